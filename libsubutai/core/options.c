/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The option table and its parser. It formats by hand, into the caller's buffer. The library parses its options in the
 * first call of any kind, which may be a lock inside malloc, so it uses neither snprintf nor strtoull (locale).
 */
#include "core/options.h"

#include <string.h>

#include "decimal.h"

static const char *const engine_names[] = {"glibc", "direct", "ni", "det", NULL};
static const char *const engine_help[] = {
    "pass-through to the C library: the base line",
    "software engine: state in place, waiters in a parking lot, adaptive waiting",
    "the paper's synchronization hardware, emulated to every memory access",
    "a turn that goes round: the same order of synchronization in each run",
};
static const char *const wait_names[] = {"auto", "adaptive", "switch", "switch!", "turns!", NULL};
static const char *const wait_help[] = {
    "adaptively, and by switching while that gets more done (engines direct and det)",
    "a moment awake, then asleep in the kernel",
    "by switching to another thread of the process, if that is known to be safe for the program",
    "the same, also if it is not",
    "for tests: by switching and adaptively by turns, in any program",
};
static const char *const gap_words[] = {"auto", NULL};
static const char *const service_names[] = {"dedicated", "inline", NULL};
static const char *const service_help[] = {
    "threads of their own step the NIs",
    "the thread that asks steps the NI itself",
};
static const char *const control_full_names[] = {"evict", "software", NULL};
static const char *const control_full_help[] = {
    "an idle object gives up its element and gets another at its next use",
    "the object is served in software, as in the paper",
};
static const char *const queue_full_names[] = {"hold", "again", NULL};
static const char *const queue_full_help[] = {
    "the request stays in the network until an element is free",
    "the operation fails with EAGAIN, as in the paper",
};
static const char *const qos_names[] = {"control", "none", NULL};
static const char *const qos_help[] = {
    "control packets: they wait for the rest of one data packet at most",
    "neither: packets leave in the order of their coming",
};
static const char *const network_names[] = {"mesh", "atac", NULL};
static const char *const network_help[] = {
    "everything is a packet of the mesh",
    "barriers and broadcasts are messages of an optical network, everything else is the mesh's",
};
static const char *const calls_names[] = {"all", "waits", NULL};
static const char *const calls_help[] = {
    "each call is an event",
    "calls that waited, and those that ended a wait, are events; the others are counted",
};
static const char *const deadlock_names[] = {"wait", "abort", NULL};
static const char *const deadlock_help[] = {
    "the threads wait on, and the library says so once: a signal may come",
    "the process ends by SIGABRT after that",
};
static const char *const stall_names[] = {"wait", "release", NULL};
static const char *const stall_help[] = {
    "the others wait for it, and the library says so once",
    "it goes on outside the order, which is not the same in the next run then",
};
static const char *const stats_names[] = {"off", "text", "json", NULL};
static const char *const stats_help[] = {"nothing", "tables", "one JSON object"};

const struct sbt_option sbt_option_table[SBT_N_OPTIONS] = {
    [SBT_OPT_ENGINE] = {"engine", "SUBUTAI_ENGINE", SBT_OPTION_ENUM, "direct", 0, 0, engine_names, engine_help, "NAME",
                        "engine that serves the synchronization objects", NULL, NULL},
    [SBT_OPT_VERBOSE] = {"verbose", "SUBUTAI_VERBOSE", SBT_OPTION_UINT, "1", 0, 3, NULL, NULL, "N",
                         "0 says nothing, 1 says when the library steps aside, 2 what it serves, 3 debugging", NULL,
                         NULL},
    [SBT_OPT_CHILDREN] = {"children", "SUBUTAI_CHILDREN", SBT_OPTION_BOOL, "1", 0, 1, NULL, NULL, "0|1",
                          "whether programs that the program starts are served too", NULL, NULL},
    [SBT_OPT_SPIN_NS] = {"spin-ns", "SUBUTAI_SPIN_NS", SBT_OPTION_UINT, "2000", 0, 1000000, NULL, NULL, "NS",
                         "longest busy wait in nanoseconds, while every runnable thread has a core", NULL, NULL},
    [SBT_OPT_YIELDS] = {"yields", "SUBUTAI_YIELDS", SBT_OPTION_UINT, "12", 0, 100000, NULL, NULL, "N",
                        "most sched_yield calls of one wait that switch to another thread, before it is parked", NULL,
                        NULL},
    [SBT_OPT_WAIT] = {"wait", "SUBUTAI_WAIT", SBT_OPTION_ENUM, "auto", 0, 0, wait_names, wait_help, "HOW",
                      "how a thread waits for what another thread has to do", "direct", NULL},
    [SBT_OPT_DELEGATE] =
        {"delegate", "SUBUTAI_DELEGATE", SBT_OPTION_LOCKS, "none", 0, 0, NULL, NULL, "LOCKS",
         "mutexes of which contended sections run one after the other on one core: none, all, auto (those of which it "
         "pays, found while the program runs), or names as profile and report print them, separated by commas, with "
         "@SERVER behind each; threads have to be switched",
         "direct", NULL},
    [SBT_OPT_SERVERS] = {"servers", "SUBUTAI_SERVERS", SBT_OPTION_UINT, "0", 0, 1024, NULL, NULL, "N",
                         "carriers that run nothing but contended sections of the mutexes of --delegate, no more than "
                         "CPUs, and than 63; 0: the thread that unlocks runs the next section",
                         "direct", NULL},
    [SBT_OPT_WAKE_GAP] = {"wake-gap", "SUBUTAI_WAKE_GAP", SBT_OPTION_UINT, "0", 0, 1000000, gap_words, NULL, "NS",
                          "nanoseconds between two wake-ups of many threads that sleep in the kernel; auto finds the "
                          "best gap while the program runs",
                          NULL, NULL},
    [SBT_OPT_LOG] = {"log", "SUBUTAI_LOG", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "FILE",
                     "append the library's messages to FILE instead of stderr", NULL, NULL},
    [SBT_OPT_RECORD] = {"record", "SUBUTAI_RECORD", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "FILE",
                        "record what the program synchronizes in FILE, a new one; its children in files of their own",
                        NULL, NULL},
    [SBT_OPT_RECORD_CALLS] = {"record-calls", "SUBUTAI_RECORD_CALLS", SBT_OPTION_ENUM, "all", 0, 0, calls_names,
                              calls_help, "WHICH", "which calls --record writes down one by one", NULL, NULL},
    [SBT_OPT_RECORD_STACKS] = {"record-stacks", "SUBUTAI_RECORD_STACKS", SBT_OPTION_BOOL, "0", 0, 1, NULL, NULL, "0|1",
                               "whether --record writes down the call stacks of long waits, and of what ended them",
                               NULL, NULL},
    [SBT_OPT_MESH] = {"mesh", "SUBUTAI_MESH", SBT_OPTION_MESH, "8x8", 1, 32, NULL, NULL, "WxH",
                      "tiles of the mesh, each with a core and an NI", "ni", NULL},
    [SBT_OPT_MAP] = {"map", "SUBUTAI_MAP", SBT_OPTION_MAP, "linear", 0, 0, NULL, NULL, "MAP",
                     "which tile the next thread gets, in turn: row by row, a permutation made from SEED (0 unless "
                     "given), or the tile numbers in the file PATH, separated by white space",
                     "ni", NULL},
    [SBT_OPT_NI_SERVICE] = {"ni-service", "SUBUTAI_NI_SERVICE", SBT_OPTION_ENUM, "dedicated", 0, 0, service_names,
                            service_help, "HOW", "what steps the NIs: threads of the engine, or the calling thread",
                            "ni", NULL},
    [SBT_OPT_NI_THREADS] = {"ni-threads", "SUBUTAI_NI_THREADS", SBT_OPTION_UINT, "0", 0, 64, NULL, NULL, "N",
                            "threads that step the NIs; 0: one for 32 tiles, at most half the CPUs, at least one", "ni",
                            NULL},
    [SBT_OPT_TIME_SCALE] = {"time-scale", "SUBUTAI_TIME_SCALE", SBT_OPTION_UINT, "0", 0, 1000000, NULL, NULL, "N",
                            "wall-clock nanoseconds for each nanosecond of the model; 0: no delay", "ni", NULL},
    [SBT_OPT_CONTROL_ELEMENTS] = {"control-elements", "SUBUTAI_CONTROL_ELEMENTS", SBT_OPTION_UINT, "4", 1, 256, NULL,
                                  NULL, "N", "control elements of each NI: objects it holds at a time", "ni", NULL},
    [SBT_OPT_QUEUE_ELEMENTS] = {"queue-elements", "SUBUTAI_QUEUE_ELEMENTS", SBT_OPTION_UINT, "122", 1, 16000, NULL,
                                NULL, "N", "queue elements of each NI: waiting threads it holds at a time", "ni", NULL},
    [SBT_OPT_CONTROL_FULL] = {"control-full", "SUBUTAI_CONTROL_FULL", SBT_OPTION_ENUM, "evict", 0, 0,
                              control_full_names, control_full_help, "WHAT",
                              "without a free control element: evict an idle object, or serve the new one in software",
                              "ni", NULL},
    [SBT_OPT_QUEUE_FULL] = {"queue-full", "SUBUTAI_QUEUE_FULL", SBT_OPTION_ENUM, "hold", 0, 0, queue_full_names,
                            queue_full_help, "WHAT",
                            "without a free queue element: hold the request in the network, or fail with EAGAIN", "ni",
                            NULL},
    [SBT_OPT_STRICT_PAPER] = {"strict-paper", "SUBUTAI_STRICT_PAPER", SBT_OPTION_BOOL, "0", 0, 1, NULL, NULL, "0|1",
                              "the paper's choices: --control-full software and --queue-full again", "ni", "1"},
    [SBT_OPT_DATA_LOAD] = {"data-load", "SUBUTAI_DATA_LOAD", SBT_OPTION_UINT, "0", 0, 900, NULL, NULL, "PERMILLE",
                           "background data traffic on each link, in thousandths of its capacity", "ni", NULL},
    [SBT_OPT_QOS] = {"qos", "SUBUTAI_QOS", SBT_OPTION_ENUM, "control", 0, 0, qos_names, qos_help, "WHAT",
                     "which packets a router sends first, beside --data-load", "ni", NULL},
    [SBT_OPT_NETWORK] = {"network", "SUBUTAI_NETWORK", SBT_OPTION_ENUM, "mesh", 0, 0, network_names, network_help,
                         "NET", "what carries barriers, and broadcasts of conditions", "ni", NULL},
    [SBT_OPT_REQUESTS] = {"requests", "SUBUTAI_REQUESTS", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "FILE",
                          "append to FILE what reaches each NI and what leaves it, to replay it elsewhere", "ni", NULL},
    [SBT_OPT_STATS] = {"stats", "SUBUTAI_STATS", SBT_OPTION_ENUM, "off", 0, 0, stats_names, stats_help, "FORMAT",
                       "what the engine says about itself when the program ends", "ni", "text"},
    [SBT_OPT_STATS_FILE] = {"stats-file", "SUBUTAI_STATS_FILE", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "FILE",
                            "write that to FILE instead of stderr", "ni", NULL},
    [SBT_OPT_SEED] = {"seed", "SUBUTAI_SEED", SBT_OPTION_UINT, "0", 0, 1000000000, NULL, NULL, "N",
                      "the order of the threads: 0, as they were created; another number draws one, the same each time",
                      "det", NULL},
    [SBT_OPT_STALL] = {"stall", "SUBUTAI_STALL", SBT_OPTION_ENUM, "wait", 0, 0, stall_names, stall_help, "WHAT",
                       "what to do about a thread that keeps others waiting and does not synchronize", "det", NULL},
    [SBT_OPT_DEADLOCK] = {"deadlock", "SUBUTAI_DEADLOCK", SBT_OPTION_ENUM, "wait", 0, 0, deadlock_names, deadlock_help,
                          "WHAT", "what to do when no thread can go on any more", "det", NULL},
    [SBT_OPT_SERIAL] = {"serial", "SUBUTAI_SERIAL", SBT_OPTION_BOOL, "0", 0, 1, NULL, NULL, "0|1",
                        "whether only the thread that has the turn computes: also data races have one result then",
                        "det", "1"},
    [SBT_OPT_SCHEDULE] = {"schedule", "SUBUTAI_SCHEDULE", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "FILE",
                          "write the order of all operations to FILE, a new one; children in files of their own", "det",
                          NULL},
    [SBT_OPT_SCHEDULE_TIMES] = {"schedule-times", "SUBUTAI_SCHEDULE_TIMES", SBT_OPTION_BOOL, "0", 0, 1, NULL, NULL,
                                "0|1",
                                "whether that file says when each operation was made, and how long its thread had "
                                "waited for the turn",
                                "det", NULL},
    [SBT_OPT_SCHEDULE_CALLERS] = {"schedule-callers", "SUBUTAI_SCHEDULE_CALLERS", SBT_OPTION_UINT, "0", 0, 3, NULL,
                                  NULL, "N",
                                  "how many callers of the function that makes an operation are in that file", "det",
                                  NULL},
    [SBT_OPT_HINTS] = {"hints", "SUBUTAI_HINTS", SBT_OPTION_STRING, NULL, 0, 0, NULL, NULL, "FILE",
                       "hints for call sites, from FILE: where a thread gives the turn up, waits for others, or leaves "
                       "the order",
                       "det", NULL},
    [SBT_OPT_SFS] = {"sfs", "SUBUTAI_SFS", SBT_OPTION_BOOL, "1", 0, 1, NULL, NULL, "0|1",
                     "whether hints let a thread give the turn up: LBDR's synchronization-free sections", "det", NULL},
    [SBT_OPT_STS] = {"sts", "SUBUTAI_STS", SBT_OPTION_BOOL, "1", 0, 1, NULL, NULL, "0|1",
                     "whether the only runnable thread keeps the turn without passing it: LBDR's single-threaded "
                     "sections; the schedule is the same without",
                     "det", NULL},
    [SBT_OPT_SOFT_BARRIERS] = {"soft-barriers", "SUBUTAI_SOFT_BARRIERS", SBT_OPTION_BOOL, "1", 0, 1, NULL, NULL, "0|1",
                               "whether threads wait for each other where hints say so: PARROT's soft barriers", "det",
                               NULL},
};

struct sbt_options sbt_options;

/* A text of bounded length: never overrun, always terminated. */
struct text {
    char *at, *end;
};

static void text_add(struct text *t, const char *s) {
    while (*s != '\0' && t->at + 1 < t->end)
        *t->at++ = *s++;
    *t->at = '\0';
}

static void text_add_uint(struct text *t, uint64_t u) {
    char digits[DECIMAL_SIZE];
    text_add(t, decimal_of(digits, u));
}

const struct sbt_option *sbt_option_find(const char *name) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        if (strcmp(sbt_option_table[i].name, name) == 0)
            return &sbt_option_table[i];
    return NULL;
}

static bool parse_uint(const char *text, uint64_t *value) {
    uint64_t u = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || u > (UINT64_MAX - 9) / 10)
            return false;
        u = u * 10 + (uint64_t)(*text - '0');
    }
    *value = u;
    return true;
}

/* Its range is another question. */
static bool is_number(const char *text) {
    text += *text == '-';
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool parse_bool(const char *text, uint64_t *value) {
    static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i & 1;
            return true;
        }
    return false;
}

static bool parse_enum(const struct sbt_option *option, const char *text, uint64_t *value) {
    for (size_t i = 0; option->legal[i] != NULL; i++)
        if (strcmp(text, option->legal[i]) == 0) {
            *value = i;
            return true;
        }
    return false;
}

/*
 * "WxH" to W << 16 | H. False: the text is not of that form. Each number fits 16 bits; its range is checked elsewhere.
 */
static bool parse_mesh(const char *text, uint64_t *value) {
    char width[8];
    uint64_t w, h;
    size_t n = strcspn(text, "x");
    if (n >= sizeof width || text[n] == '\0')
        return false;
    memcpy(width, text, n);
    width[n] = '\0';
    if (!parse_uint(width, &w) || !parse_uint(text + n + 1, &h) || w > UINT16_MAX || h > UINT16_MAX)
        return false;
    *value = w << 16 | h;
    return true;
}

static bool mesh_in_range(const struct sbt_option *option, uint64_t value) {
    uint64_t w = value >> 16, h = value & UINT16_MAX;
    return w >= option->min && w <= option->max && h >= option->min && h <= option->max;
}

/* Does the text have the form of a map? The engine finds out whether the file exists and what it holds. */
static bool is_map(const char *text) {
    uint64_t seed;
    if (strncmp(text, "random:", 7) == 0)
        return parse_uint(text + 7, &seed);
    if (strncmp(text, "file:", 5) == 0)
        return text[5] != '\0';
    return strcmp(text, "linear") == 0 || strcmp(text, "random") == 0;
}

static void describe_legal(struct text *t, const struct sbt_option *option) {
    switch (option->kind) {
    case SBT_OPTION_UINT:
        text_add(t, " (legal: ");
        text_add_uint(t, option->min);
        text_add(t, " to ");
        text_add_uint(t, option->max);
        text_add(t, option->legal != NULL ? ", " : "");
        text_add(t, option->legal != NULL ? option->legal[0] : "");
        break;
    case SBT_OPTION_ENUM:
        text_add(t, " (legal: ");
        for (size_t i = 0; option->legal[i] != NULL; i++) {
            text_add(t, i == 0 ? "" : ", ");
            text_add(t, option->legal[i]);
        }
        break;
    case SBT_OPTION_BOOL:
        text_add(t, " (legal: 0, 1, no, yes, off, on, false, true");
        break;
    case SBT_OPTION_MESH:
        text_add(t, " (legal: WxH, each ");
        text_add_uint(t, option->min);
        text_add(t, " to ");
        text_add_uint(t, option->max);
        break;
    case SBT_OPTION_MAP:
        text_add(t, " (legal: linear, random, random:SEED, file:PATH");
        break;
    case SBT_OPTION_STRING:
        text_add(t, " (legal: a file name");
        break;
    case SBT_OPTION_LOCKS:
        text_add(t, " (legal: none, all, auto, NAME,...");
        break;
    }
    text_add(t, ")");
}

bool sbt_option_parse(const struct sbt_option *option, const char *called, const char *text,
                      union sbt_option_value *value, char *error, size_t error_size) {
    const char *complaint = "unknown value";
    bool ok = false;
    switch (option->kind) {
    case SBT_OPTION_UINT:
        if (option->legal != NULL && strcmp(text, option->legal[0]) == 0) {
            value->u = UINT64_MAX;
            return true;
        }
        ok = parse_uint(text, &value->u);
        complaint = is_number(text) ? "value out of range" : "not a number:";
        ok = ok && value->u >= option->min && value->u <= option->max;
        break;
    case SBT_OPTION_ENUM:
        ok = parse_enum(option, text, &value->u);
        break;
    case SBT_OPTION_BOOL:
        ok = parse_bool(text, &value->u);
        break;
    case SBT_OPTION_MESH:
        ok = parse_mesh(text, &value->u);
        complaint = ok ? "value out of range" : "not a mesh:";
        ok = ok && mesh_in_range(option, value->u);
        break;
    case SBT_OPTION_MAP:
        value->s = text;
        ok = is_map(text);
        break;
    case SBT_OPTION_LOCKS:
        value->s = text;
        ok = text[0] != '\0'; /* the engine says what is wrong with a list, and the program runs */
        break;
    case SBT_OPTION_STRING:
        value->s = text;
        ok = text[0] != '\0';
        break;
    }
    if (!ok && error_size > 0) {
        struct text t = {error, error + error_size};
        text_add(&t, called);
        text_add(&t, ": ");
        text_add(&t, complaint);
        text_add(&t, " '");
        text_add(&t, text);
        text_add(&t, "'");
        describe_legal(&t, option);
    }
    return ok;
}

static const struct sbt_option *owner_of(const char *entry) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        size_t n = strlen(sbt_option_table[i].env);
        if (strncmp(entry, sbt_option_table[i].env, n) == 0 && entry[n] == '=')
            return &sbt_option_table[i];
    }
    return NULL;
}

static void refuse_variable(const char *entry, char *error, size_t error_size) {
    if (error_size == 0)
        return;
    struct text t = {error, error + error_size};
    char name[64];
    size_t n = strcspn(entry, "=");
    n = n < sizeof name - 1 ? n : sizeof name - 1;
    memcpy(name, entry, n);
    name[n] = '\0';
    text_add(&t, name);
    text_add(&t, ": unknown variable (legal: ");
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        text_add(&t, i == 0 ? "" : ", ");
        text_add(&t, sbt_option_table[i].env);
    }
    text_add(&t, ")");
}

bool sbt_options_load(struct sbt_options *options, char *const *envp, char *error, size_t error_size) {
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        const struct sbt_option *option = &sbt_option_table[i];
        options->value[i].s = NULL;
        options->given[i] = false;
        if (option->default_text != NULL &&
            !sbt_option_parse(option, option->env, option->default_text, &options->value[i], error, error_size))
            return false;
    }
    for (; envp != NULL && *envp != NULL; envp++) {
        if (strncmp(*envp, "SUBUTAI_", 8) != 0)
            continue;
        const struct sbt_option *option = owner_of(*envp);
        if (option == NULL) {
            refuse_variable(*envp, error, error_size);
            return false;
        }
        const char *text = strchr(*envp, '=') + 1;
        if (*text == '\0')
            continue;
        options->given[option - sbt_option_table] = true;
        if (!sbt_option_parse(option, option->env, text, &options->value[option - sbt_option_table], error, error_size))
            return false;
    }
    return true;
}

/* Beside other options of the engine ni. */
static const char *idle_under_ni(const union sbt_option_value *value, enum sbt_option_id id) {
    bool reported = value[SBT_OPT_STATS].u != SBT_STATS_OFF;
    switch (id) {
    case SBT_OPT_DATA_LOAD:
        return value[id].u == 0 || reported || value[SBT_OPT_TIME_SCALE].u != 0
                   ? NULL
                   : "without statistics and without a time scale no packet takes time";
    case SBT_OPT_QOS:
        return value[SBT_OPT_DATA_LOAD].u == 0 ? "without data load no packet waits for data"
               : reported || value[SBT_OPT_TIME_SCALE].u != 0
                   ? NULL
                   : "without statistics and without a time scale no packet takes time";
    case SBT_OPT_STATS_FILE:
        return reported ? NULL : "there are no statistics to write";
    case SBT_OPT_NI_THREADS:
        return value[SBT_OPT_NI_SERVICE].u == SBT_NI_SERVICE_INLINE ? "inline service has no NI threads" : NULL;
    case SBT_OPT_CONTROL_FULL:
        return value[SBT_OPT_STRICT_PAPER].u != 0 && value[id].u != SBT_CONTROL_FULL_SOFTWARE
                   ? "strict-paper goes before it"
                   : NULL;
    case SBT_OPT_QUEUE_FULL:
        return value[SBT_OPT_STRICT_PAPER].u != 0 && value[id].u != SBT_QUEUE_FULL_AGAIN ? "strict-paper goes before it"
                                                                                         : NULL;
    default:
        return NULL;
    }
}

static const char *idle_delegation(const struct sbt_options *options, enum sbt_option_id id) {
    if (options->value[SBT_OPT_ENGINE].u != SBT_ENGINE_DIRECT)
        return "only the engine direct reads it";
    if (options->value[SBT_OPT_WAIT].u == SBT_WAIT_ADAPTIVE)
        return "with --wait adaptive no thread is switched";
    bool delegates = strcmp(options->value[SBT_OPT_DELEGATE].s, "none") != 0;
    return id == SBT_OPT_SERVERS && !delegates ? "no mutex is delegated (legal: beside --delegate)" : NULL;
}

const char *sbt_option_idle(const struct sbt_options *options, enum sbt_option_id id) {
    uint64_t engine = options->value[SBT_OPT_ENGINE].u;
    const char *reader = sbt_option_table[id].engine;
    if (!options->given[id])
        return NULL;
    if (reader != NULL && strcmp(reader, engine_names[SBT_ENGINE_NI]) == 0)
        return engine == SBT_ENGINE_NI ? idle_under_ni(options->value, id) : "only the engine ni reads it";
    if (reader != NULL && strcmp(reader, engine_names[SBT_ENGINE_DET]) == 0)
        return engine != SBT_ENGINE_DET ? "it is an option of the engine det"
               : (id == SBT_OPT_SCHEDULE_TIMES || id == SBT_OPT_SCHEDULE_CALLERS) &&
                       options->value[SBT_OPT_SCHEDULE].s == NULL
                   ? "no schedule is written (legal: beside --schedule)"
                   : NULL;
    if (id == SBT_OPT_DELEGATE || id == SBT_OPT_SERVERS)
        return idle_delegation(options, id);
    bool waits = id == SBT_OPT_SPIN_NS || id == SBT_OPT_YIELDS || id == SBT_OPT_WAIT || id == SBT_OPT_WAKE_GAP;
    return waits && engine == SBT_ENGINE_GLIBC ? "the engine glibc does not read it" : NULL;
}
