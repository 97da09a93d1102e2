/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the machine is: names, CPUs, and the caches of a CPU as the kernel describes them. */
#include "calibrate.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "json_file.h"

/* The first line of a file of /sys, without its end; false: there is no such file. */
static bool read_line(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool got = fgets(text, (int)size, file) != NULL;
    fclose(file);
    if (got)
        text[strcspn(text, "\n")] = '\0';
    return got;
}

struct caches caches_of_cpu(int cpu) {
    struct caches c = {.line_bytes = 64, .last_level_cpus = 1};
    char path[128], text[64], type[64];
    for (int i = 0, highest = 0; i < 16; i++) {
        int n = snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/level", cpu, i);
        if (!read_line(path, text, sizeof text))
            break;
        int level = atoi(text);
        char *name = path + n - strlen("level");
        size_t room = sizeof path - (size_t)(name - path);
        snprintf(name, room, "type");
        if (!read_line(path, type, sizeof type) || strcmp(type, "Instruction") == 0)
            continue;
        snprintf(name, room, "size");
        if (!read_line(path, text, sizeof text))
            continue;
        char *unit;
        uint64_t bytes = strtoull(text, &unit, 10);
        bytes <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
        uint64_t *place = level == 1 ? &c.l1d_bytes : level == 2 ? &c.l2_bytes : level == 3 ? &c.l3_bytes : NULL;
        if (place != NULL)
            *place = bytes;
        snprintf(name, room, "coherency_line_size");
        if (read_line(path, text, sizeof text) && atoi(text) > 0)
            c.line_bytes = (uint64_t)atoi(text);
        if (level > highest && level <= 3) {
            char list[64];
            snprintf(list, sizeof list, "cache/index%d/shared_cpu_list", i);
            highest = level;
            c.last_level_cpus = cpus_sharing(cpu, list);
        }
    }
    if (c.l1d_bytes == 0)
        refuse("the kernel does not tell the caches of CPU %d", cpu);
    return c;
}

/* "model name" on x86. On ARM the kernel has numbers only: of the maker and of the part. */
static void cpu_name(char *name, size_t size) {
    char line[512], maker[32] = "", part[32] = "";
    FILE *info = fopen("/proc/cpuinfo", "re");
    name[0] = '\0';
    while (info != NULL && name[0] == '\0' && fgets(line, sizeof line, info) != NULL) {
        char *value = strchr(line, ':');
        if (value == NULL)
            continue;
        value += 1 + (value[1] == ' ');
        value[strcspn(value, "\n")] = '\0';
        if (strncmp(line, "model name", strlen("model name")) == 0)
            snprintf(name, size, "%s", value);
        else if (strncmp(line, "CPU implementer", strlen("CPU implementer")) == 0)
            snprintf(maker, sizeof maker, "%s", value);
        else if (strncmp(line, "CPU part", strlen("CPU part")) == 0)
            snprintf(part, sizeof part, "%s", value);
    }
    if (info != NULL)
        fclose(info);
    if (name[0] == '\0' && maker[0] != '\0')
        snprintf(name, size, "implementer %s, part %s", maker, part);
    if (name[0] == '\0')
        snprintf(name, size, "unknown");
}

void print_machine(void) {
    const struct cpus *cpus = cpus_usable();
    struct caches c = caches_of_cpu(cpus->cpu[0]);
    struct utsname kernel;
    char text[128];
    int pair[2];
    struct json j = json_on(stdout);
    cpus_pair(pair); /* what cannot be measured is refused at the beginning */
    if (uname(&kernel) != 0)
        fail("uname failed");
    json_open(&j, NULL, '{');
    json_open(&j, "machine", '{');
    cpu_name(text, sizeof text);
    json_text(&j, "cpu", text);
    snprintf(text, sizeof text, "%.20s %.90s", kernel.sysname, kernel.release);
    json_text(&j, "kernel", text);
    snprintf(text, sizeof text, "glibc %s", gnu_get_libc_version());
    json_text(&j, "libc", text);
    json_int(&j, "n_cpus", cpus->n);
    json_int(&j, "n_cores", cpus->n_cores);
    json_close(&j, '}');
    json_open(&j, "caches", '{');
    json_uint(&j, "line_bytes", c.line_bytes);
    json_uint(&j, "l1d_bytes", c.l1d_bytes);
    json_uint(&j, "l2_bytes", c.l2_bytes);
    json_uint(&j, "l3_bytes", c.l3_bytes);
    json_int(&j, "last_level_cpus", c.last_level_cpus);
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}
