/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

const char atac_settings[] = " software few many patience spin dram directory invalidate server system";

bool atac_number(const char *text, uint32_t least, uint32_t most, uint32_t *number) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < least || value > most)
        return false;
    *number = (uint32_t)value;
    return true;
}

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
    uint32_t value;
    if (equals == NULL || !atac_number(equals + 1, 0, UINT32_MAX, &value))
        return false;
    size_t length = (size_t)(equals - setting);
    if (length == strlen("spin") && strncmp(setting, "spin", length) == 0) {
        config->settings.mutexes_spin = value != 0;
        return value <= 1;
    }
    uint32_t *field = place(config, setting, length);
    if (field != NULL)
        *field = value;
    return field != NULL;
}
