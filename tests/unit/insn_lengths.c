/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads lines "BYTES|TEXT": the bytes of one instruction in hexadecimal and its text, from a disassembler. Reads each
 * instruction by sbt_insn_read, with other bytes behind it, and prints those that it takes for longer or shorter, for
 * a system call or a branch that is none, or the other way round. The last line is "N instructions, N differ".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/insn.h"

static bool jumps_anywhere(const char *text) {
    const char *jump = strstr(text, "jmp ");
    return jump != NULL && jump[4 + strspn(jump + 4, " ")] == '*';
}

static bool is_branch(const char *text) {
    static const char *const names[] = {"j",
                                        "call",
                                        "bnd j",
                                        "bnd call",
                                        "notrack j",
                                        "notrack call",
                                        "ret",
                                        "bnd ret",
                                        "ud2",
                                        "repz ret",
                                        "loop",
                                        "int",
                                        "hlt",
                                        "iret",
                                        "rep ret",
                                        "data16 data16 rex.W call",
                                        "data16 rex.W call",
                                        "lret",
                                        "ljmp",
                                        "lcall",
                                        "rex.W call"};
    text += strspn(text, " ");
    if (strncmp(text, "cs ", 3) == 0 || strncmp(text, "ds ", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0)
            return true;
    return strstr(text, ",pn") != NULL || strstr(text, ",pt") != NULL;
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    unsigned long n = 0, differ = 0;
    while (getline(&line, &room, stdin) > 0) {
        uint8_t code[32];
        struct sbt_insn insn;
        size_t bytes = 0;
        char *at = line, *text = strchr(line, '|'), *end;
        if (text == NULL)
            continue;
        memset(code, 0xcc, sizeof code);
        for (*text++ = '\0'; bytes < 16; at = end) {
            unsigned long byte = strtoul(at, &end, 16);
            if (end == at)
                break;
            code[bytes++] = (uint8_t)byte;
        }
        const int wanted = strncmp(text, "syscall", 7) == 0 ? SBT_INSN_SYSCALL
                           : jumps_anywhere(text)           ? SBT_INSN_JUMP_ANYWHERE
                           : is_branch(text)                ? SBT_INSN_BRANCH
                                                            : SBT_INSN_OTHER;
        const bool known = sbt_insn_read(&insn, code, sizeof code);
        n++;
        if (!known || insn.n_bytes != bytes || insn.kind != wanted ||
            (known && sbt_insn_read(&insn, code, bytes - 1))) {
            differ++;
            printf("%s|%s  read as %d bytes, kind %d\n", line, strtok(text, "\n"), known ? insn.n_bytes : 0, insn.kind);
        }
    }
    free(line);
    printf("%lu instructions, %lu differ\n", n, differ);
    return 0;
}
