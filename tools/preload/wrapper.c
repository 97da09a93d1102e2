/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads wrapper scripts; see wrapper.h. Source: the shell's grammar in POSIX.1-2017, XCU chapter 2, of which words,
 * simple commands, assignments and here-documents are read. Of expansions: variables, with a default, without the
 * shortest suffix of the form "/" and any text, or without the longest prefix of that form; and the substitutions of
 * commands that programs find their own directory by (dirname, basename, readlink, realpath, cd).
 */
#include "wrapper.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "find.h"

enum { SCRIPT_SIZE = 1 << 17, MAX_VARIABLES = 256, MAX_WORDS = 256, MAX_DEPTH = 8 };

/* A text that grows; `known` is false if a part of it can be known only by running the script. */
struct value {
    char *text;
    size_t n, capacity;
    bool known;
};

struct word {
    struct value value;
    bool quoted;           /* a part is, so that it is a word even if it is empty */
    bool passes_arguments; /* it is, or contains, "$@" or $* */
};

struct variable {
    char *name, *text; /* text NULL: not known */
};

struct script {
    const char *path;
    struct variable variables[MAX_VARIABLES];
    size_t n_variables;
    char *found; /* the program, allocated */
    bool by_exec, passes, runs_script;
};

static void put(struct value *v, char c) {
    if (v->n + 2 > v->capacity) {
        v->capacity = v->capacity == 0 ? 64 : 2 * v->capacity;
        v->text = cmd_reallocate(v->text, v->capacity, 1);
    }
    v->text[v->n++] = c;
    v->text[v->n] = '\0';
}

static void put_text(struct value *v, const char *text) {
    if (text == NULL)
        v->known = false;
    for (; text != NULL && *text != '\0'; text++)
        put(v, *text);
}

static const char *text_of(const struct value *v) {
    return v->text != NULL ? v->text : "";
}

/* ---- variables ---- */
static struct variable *find_variable(struct script *s, const char *name, size_t n) {
    for (size_t i = 0; i < s->n_variables; i++)
        if (strlen(s->variables[i].name) == n && strncmp(s->variables[i].name, name, n) == 0)
            return &s->variables[i];
    return NULL;
}

static bool is_missing_path(const char *text) {
    return text == NULL || (text[0] == '/' && access(text, F_OK) != 0);
}

/* An assignment in a branch that is not taken must not hide one that is right. */
static void assign(struct script *s, const char *name, size_t n, const struct value *v) {
    struct variable *old = find_variable(s, name, n);
    char *text = v->known ? cmd_format("%s", text_of(v)) : NULL;
    if (old == NULL && s->n_variables < MAX_VARIABLES) {
        old = &s->variables[s->n_variables++];
        *old = (struct variable){cmd_format("%.*s", (int)n, name), NULL};
    } else if (old == NULL || (old->text != NULL && text == NULL) ||
               (!is_missing_path(old->text) && old->text[0] == '/' && is_missing_path(text))) {
        free(text);
        return;
    }
    free(old->text);
    old->text = text;
}

/* NULL: not known. A variable that the script does not set comes from the environment; one that is not there is empty.
 */
static const char *text_of_variable(struct script *s, const char *name, size_t n) {
    struct variable *v = find_variable(s, name, n);
    if (v != NULL)
        return v->text;
    if ((n == 1 && name[0] == '0') || (n == 11 && strncmp(name, "BASH_SOURCE", n) == 0))
        return s->path;
    if (!isalpha((unsigned char)name[0]) && name[0] != '_')
        return isdigit((unsigned char)name[0]) ? "" : NULL; /* an argument, of which there are none; a status */
    char *copy = cmd_format("%.*s", (int)n, name);
    const char *value = getenv(copy);
    free(copy);
    return value != NULL ? value : "";
}

/* ---- expansions ---- */
static const char *read_word(struct script *s, const char *at, struct word *word, int depth);

static size_t name_length(const char *at) {
    size_t n = 0;
    if (isdigit((unsigned char)at[0]))
        return 1;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    return n;
}

static void put_directory(struct value *to, const char *path) {
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (path == NULL)
        to->known = false;
    else if (slash == NULL)
        put(to, '.');
    for (const char *p = path; slash != NULL && p < (slash == path ? slash + 1 : slash); p++)
        put(to, *p);
}

static void put_base(struct value *to, const char *path) {
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    put_text(to, slash != NULL ? slash + 1 : path);
}

static void put_canonical(struct value *to, const char *path) {
    char *canonical = path != NULL ? realpath(path, NULL) : NULL;
    put_text(to, canonical);
    free(canonical);
}

/* What the command in `body` would print, if it is one of those that are read. */
static void put_substitution(struct script *s, struct value *to, const char *body, int depth) {
    static const struct {
        const char *name;
        void (*put)(struct value *to, const char *path);
    } commands[] = {{"dirname", put_directory},
                    {"basename", put_base},
                    {"readlink", put_canonical},
                    {"realpath", put_canonical},
                    {"cd", put_canonical}};
    struct word name = {0}, operand = {0};
    const char *at = depth < MAX_DEPTH ? read_word(s, body, &name, depth + 1) : body;
    do {
        free(operand.value.text);
        operand = (struct word){0};
        at = depth < MAX_DEPTH ? read_word(s, at, &operand, depth + 1) : "";
    } while (operand.value.known && text_of(&operand.value)[0] == '-');
    bool known = false;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(text_of(&name.value), commands[i].name) == 0) {
            commands[i].put(to, operand.value.known ? text_of(&operand.value) : NULL);
            known = true;
        }
    to->known = to->known && known;
    free(name.value.text);
    free(operand.value.text);
}

/* From behind "${" to behind "}". */
static const char *read_braces(struct script *s, const char *at, struct word *word, int depth) {
    if ((at[0] == '@' || at[0] == '*') && at[1] == '}') {
        word->passes_arguments = true;
        return at + 2;
    }
    size_t n = name_length(at);
    const char *name = at, *text = text_of_variable(s, name, n);
    const char *end = at + n;
    if (*end == '[') /* BASH_SOURCE[0] */
        end += strcspn(end, "]}") + 1;
    const char *operation = end;
    bool is_default = strncmp(operation, ":-", 2) == 0 || operation[0] == '-';
    struct word rest = {0};
    if (is_default || operation[0] == '+' || strncmp(operation, ":+", 2) == 0) {
        end = operation + (operation[0] == ':' ? 2 : 1);
        /* up to the brace, as a word in which blanks do not count */
        rest.value.known = true;
        while (*end != '\0' && *end != '}') {
            struct word part = {0};
            const char *next = depth < MAX_DEPTH ? read_word(s, end, &part, depth + 1) : end;
            if (next == end)
                next++;
            put_text(&rest.value, part.value.known ? text_of(&part.value) : NULL);
            rest.passes_arguments = rest.passes_arguments || part.passes_arguments;
            free(part.value.text);
            end = next;
        }
    } else {
        while (*end != '\0' && *end != '}')
            end++;
    }
    word->passes_arguments = word->passes_arguments || rest.passes_arguments;
    if (n == 0 || (!is_default && operation[0] != '}' && strncmp(operation, "%/*}", 4) != 0 &&
                   strncmp(operation, "##*/}", 5) != 0 && !rest.passes_arguments))
        word->value.known = false;
    else if (operation[0] == '%')
        put_directory(&word->value, text);
    else if (operation[0] == '#')
        put_base(&word->value, text);
    else if (is_default && text != NULL && text[0] == '\0')
        put_text(&word->value, rest.value.known ? text_of(&rest.value) : NULL);
    else if (!rest.passes_arguments)
        put_text(&word->value, text);
    free(rest.value.text);
    return *end == '}' ? end + 1 : end;
}

/* The end of a substitution that begins at `at`, with `closing`; nested ones of the same kind are counted. */
static const char *end_of_substitution(const char *at, char closing) {
    int nested = 0;
    for (; *at != '\0'; at++) {
        if (closing == ')' && *at == '(')
            nested++;
        else if (*at == closing && nested-- == 0)
            break;
        else if (*at == '\\' && at[1] != '\0')
            at++;
    }
    return at;
}

/* From "$" or "`" to behind the expansion. */
static const char *read_expansion(struct script *s, const char *at, struct word *word, int depth) {
    bool quoted = *at == '`';
    if (quoted || (at[1] == '(' && at[2] != '(')) {
        const char *from = at + (quoted ? 1 : 2), *end = end_of_substitution(from, quoted ? '`' : ')');
        char *body = cmd_format("%.*s", (int)(end - from), from);
        put_substitution(s, &word->value, body, depth);
        free(body);
        return *end != '\0' ? end + 1 : end;
    }
    if (at[1] == '{')
        return read_braces(s, at + 2, word, depth);
    if (at[1] == '@' || at[1] == '*') {
        word->passes_arguments = true;
        return at + 2;
    }
    size_t n = name_length(at + 1);
    if (n > 0)
        put_text(&word->value, text_of_variable(s, at + 1, n));
    else
        word->value.known = false;
    return at + 1 + (n > 0 ? n : at[1] != '\0');
}

static bool ends_word(char c) {
    return c == '\0' || strchr(" \t\n;&|()<>}", c) != NULL;
}

/* Read one word, with blanks before it. The result is behind it; `at` itself if there is no word. */
static const char *read_word(struct script *s, const char *at, struct word *word, int depth) {
    word->value.known = true;
    at += strspn(at, " \t");
    bool in_quotes = false;
    while (*at != '\0' && (in_quotes || !ends_word(*at))) {
        if (*at == '"') {
            in_quotes = !in_quotes;
            word->quoted = true;
            at++;
        } else if (*at == '\'' && !in_quotes) {
            const char *end = strchr(at + 1, '\'');
            word->quoted = true;
            for (at++; *at != '\0' && at != end; at++)
                put(&word->value, *at);
            at += *at == '\'';
        } else if (*at == '\\' && at[1] != '\0') {
            put(&word->value, at[1]);
            at += 2;
        } else if (*at == '$' || *at == '`') {
            at = read_expansion(s, at, word, depth);
        } else {
            put(&word->value, *at++);
        }
    }
    return at;
}

/* ---- commands ---- */
static size_t assigned_name(const char *at) {
    size_t n = name_length(at);
    return n > 0 && !isdigit((unsigned char)at[0]) && at[n] == '=' ? n : 0;
}

static bool is_before_command(const char *word) {
    static const char *const words[] = {"then", "else", "do",     "if",       "elif",  "while",  "!",
                                        "{",    "time", "export", "readonly", "local", "declare"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static bool is_same_file(const char *a, const char *b) {
    char *x = realpath(a, NULL), *y = realpath(b, NULL);
    bool same = x != NULL && y != NULL && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

/* words[0] is the command's name. Does it become the program? A later one does, if it is not worse. */
static void judge_command(struct script *s, const struct word *words, size_t n) {
    size_t i = 0;
    const char *why;
    bool by_exec = n > 0 && strcmp(text_of(&words[0].value), "exec") == 0, passes = false;
    i += by_exec;
    while (by_exec && i < n && text_of(&words[i].value)[0] == '-')
        i += strcmp(text_of(&words[i].value), "-a") == 0 ? 2 : 1;
    /* an empty expansion is no word; `env` and its assignments are passed over */
    for (bool in_env = false; i < n && words[i].value.known; i++) {
        const char *text = text_of(&words[i].value);
        bool is_env = strcmp(text, "env") == 0;
        if (!is_env && (text[0] != '\0' || words[i].quoted) && !(in_env && (text[0] == '-' || assigned_name(text) > 0)))
            break;
        in_env = in_env || is_env;
    }
    for (size_t k = i; k < n; k++)
        passes = passes || words[k].passes_arguments;
    if (i >= n || !words[i].value.known || (!passes && !by_exec) ||
        (!by_exec && strchr(text_of(&words[i].value), '/') == NULL) ||
        (s->found != NULL && (s->by_exec > by_exec || (s->by_exec == by_exec && s->passes > passes))))
        return;
    char *path = find_in_path(text_of(&words[i].value), &why);
    if (path == NULL || is_same_file(path, s->path)) {
        free(path);
        return;
    }
    for (char *p = path; (p = strstr(p, "//")) != NULL;)
        memmove(p, p + 1, strlen(p + 1) + 1);
    free(s->found);
    s->found = path;
    s->by_exec = by_exec;
    s->passes = passes;
    s->runs_script = i + 1 < n && words[i + 1].value.known && strcmp(text_of(&words[i + 1].value), s->path) == 0;
}

/* Read a line of commands. Assignments that stand alone are made. */
static void read_line(struct script *s, const char *at) {
    static struct word words[MAX_WORDS];
    while (*at != '\0') {
        size_t n = 0;
        bool only_assignments = true;
        for (;;) {
            at += strspn(at, " \t");
            if (*at == '\0' || *at == '#' || strchr(";&|()}", *at) != NULL)
                break;
            if (*at == '<' || *at == '>') { /* a redirection, and where to */
                struct word where = {0};
                at = read_word(s, at + strspn(at, "<>&"), &where, 0);
                free(where.value.text);
                continue;
            }
            size_t name = n == 0 ? assigned_name(at) : 0;
            struct word word = {0};
            const char *from = at;
            at = read_word(s, at + (name > 0 ? name + 1 : 0), &word, 0);
            if (name > 0 && only_assignments)
                assign(s, from, name, &word.value);
            bool drop =
                name > 0 || n == MAX_WORDS || (n == 0 && !word.quoted && is_before_command(text_of(&word.value)));
            if (drop)
                free(word.value.text);
            else
                words[n++] = word;
            if (at == from)
                at++;
        }
        judge_command(s, words, n);
        for (size_t i = 0; i < n; i++)
            free(words[i].value.text);
        if (*at == '#')
            break;
        at += *at != '\0';
    }
}

/* The word that ends a here-document that begins in the line; NULL: none does. */
static char *here_document(const char *line) {
    const char *at = strstr(line, "<<");
    if (at == NULL || at[2] == '<')
        return NULL;
    at += 2 + (at[2] == '-');
    at += strspn(at, " \t\\'\"");
    return cmd_format("%.*s", (int)strcspn(at, " \t\n;&|<>'\""), at);
}

static void read_script(struct script *s, char *text) {
    char *document = NULL, *rest = text, *line;
    for (char *p = text; (p = strstr(p, "\\\n")) != NULL;)
        memmove(p, p + 2, strlen(p + 2) + 1);
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (document != NULL) {
            if (strcmp(line + strspn(line, "\t"), document) != 0)
                continue;
            free(document);
            document = NULL;
            continue;
        }
        document = here_document(line);
        read_line(s, line);
    }
    free(document);
}

bool wrapper_is_shell(const char *interpreter) {
    static const char *const shells[] = {"sh", "bash", "dash", "ksh"};
    const char *slash = strrchr(interpreter, '/'), *name = slash != NULL ? slash + 1 : interpreter;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(name, shells[i]) == 0)
            return true;
    return false;
}

char *wrapper_program(const char *path, bool *runs_script) {
    struct script s = {.path = path};
    FILE *file = fopen(path, "re");
    char *text = cmd_allocate(SCRIPT_SIZE, 1);
    size_t n = file != NULL ? fread(text, 1, SCRIPT_SIZE - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[n] = '\0'; /* a script ends at its first zero */
    read_script(&s, text);
    for (size_t i = 0; i < s.n_variables; i++) {
        free(s.variables[i].name);
        free(s.variables[i].text);
    }
    free(text);
    *runs_script = s.runs_script;
    return s.found;
}
