/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

const char atac_settings[] = " software few many patience spin dram directory invalidate server system";

static uint32_t *place(struct atac_config *config, const char *name, size_t length) {
    const struct {
        const char *name;
        uint32_t *place;
    } all[] = {
        {"software", &config->settings.software_cycles},
        {"few", &config->settings.few},
        {"many", &config->settings.many},
        {"patience", &config->settings.patience_cycles},
        {"dram", &config->chip.memory.dram_cycles},
        {"directory", &config->chip.memory.directory_cycles},
        {"invalidate", &config->chip.memory.invalidate_flits},
        {"server", &config->chip.memory.server_cycles},
        {"system", &config->chip.memory.system_cycles},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].name) == length && strncmp(all[i].name, name, length) == 0)
            return all[i].place;
    return NULL;
}

bool atac_set(struct atac_config *config, const char *setting) {
    const char *equals = strchr(setting, '=');
    if (equals == NULL || equals[1] < '0' || equals[1] > '9')
        return false;
    char *end;
    unsigned long value = strtoul(equals + 1, &end, 10);
    if (*end != '\0' || value > UINT32_MAX)
        return false;
    size_t length = (size_t)(equals - setting);
    if (length == strlen("spin") && strncmp(setting, "spin", length) == 0) {
        config->settings.mutexes_spin = value != 0;
        return value <= 1;
    }
    uint32_t *field = place(config, setting, length);
    if (field != NULL)
        *field = (uint32_t)value;
    return field != NULL;
}
