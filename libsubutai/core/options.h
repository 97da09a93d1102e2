/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options: one table that names every option, its SUBUTAI_* variable, its default, its legal values and its help
 * line. The library reads the variables, the `subutai` command turns --name VALUE into them and prints the same
 * help; neither knows a name, a range or a default that is not in the table.
 *
 * Nothing here allocates, locks or blocks, and nothing depends on the rest of the library: the file is compiled
 * into the command too. Usable before any constructor has run.
 */
#ifndef SBT_CORE_OPTIONS_H
#define SBT_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sbt_option_kind {
    SBT_OPTION_UINT,  /* decimal number, min <= value <= max */
    SBT_OPTION_ENUM,  /* one of `legal`; the value is its index */
    SBT_OPTION_BOOL,  /* 0 or 1 (also no/yes, off/on, false/true) */
    SBT_OPTION_MESH,  /* "WxH", each from min to max; the value is W << 16 | H */
    SBT_OPTION_MAP,   /* which tile the next thread gets, see the table; the value is the text itself, not copied */
    SBT_OPTION_STRING /* anything; the value is the text itself, not copied */
};

/* Index into sbt_option_table and into struct sbt_options. */
enum sbt_option_id {
    SBT_OPT_ENGINE,
    SBT_OPT_VERBOSE,
    SBT_OPT_CHILDREN,
    SBT_OPT_SPIN_NS,
    SBT_OPT_YIELDS,
    SBT_OPT_WAIT,
    SBT_OPT_LOG,
    SBT_OPT_RECORD,
    SBT_OPT_MESH,
    SBT_OPT_MAP,
    SBT_OPT_NI_SERVICE,
    SBT_OPT_NI_THREADS,
    SBT_OPT_TIME_SCALE,
    SBT_OPT_CONTROL_ELEMENTS,
    SBT_OPT_QUEUE_ELEMENTS,
    SBT_OPT_CONTROL_FULL,
    SBT_OPT_QUEUE_FULL,
    SBT_OPT_STRICT_PAPER,
    SBT_OPT_DATA_LOAD,
    SBT_OPT_REQUESTS,
    SBT_OPT_STATS,
    SBT_OPT_STATS_FILE,
    SBT_N_OPTIONS
};

/* Value of SBT_OPT_ENGINE: index into that option's `legal` list and into the library's engine table. */
enum sbt_engine_id { SBT_ENGINE_GLIBC, SBT_ENGINE_DIRECT, SBT_ENGINE_NI, SBT_N_ENGINES };

/* Values of SBT_OPT_WAIT. */
enum sbt_wait { SBT_WAIT_ADAPTIVE, SBT_WAIT_SWITCH, SBT_WAIT_SWITCH_INSIST };

/* Values of the options of SBT_ENGINE_NI that are enums. */
enum sbt_ni_service { SBT_NI_SERVICE_DEDICATED, SBT_NI_SERVICE_INLINE };
enum sbt_control_full { SBT_CONTROL_FULL_EVICT, SBT_CONTROL_FULL_SOFTWARE };
enum sbt_queue_full { SBT_QUEUE_FULL_HOLD, SBT_QUEUE_FULL_AGAIN };
enum sbt_stats_format { SBT_STATS_OFF, SBT_STATS_TEXT, SBT_STATS_JSON };

struct sbt_option {
    const char *name;              /* command line name without dashes, "engine" */
    const char *env;               /* variable, "SUBUTAI_ENGINE" */
    enum sbt_option_kind kind;     /* */
    const char *default_text;      /* default as a user would write it; NULL: unset */
    uint64_t min, max;             /* UINT and MESH only, inclusive */
    const char *const *legal;      /* ENUM only, NULL-terminated */
    const char *const *legal_help; /* ENUM only, one line for each of `legal` */
    const char *metavar;           /* "NAME", "N", "FILE": how the value is called in --help */
    const char *help;              /* one line, no full stop */
    const char *engine;            /* the one engine that reads it, the others ignore it; NULL: not so */
    const char *bare_text; /* what --name alone stands for: a value must then be attached by '='; NULL: an error */
};

union sbt_option_value {
    uint64_t u; /* UINT, ENUM (index), BOOL */
    const char *s;
};

struct sbt_options {
    union sbt_option_value value[SBT_N_OPTIONS];
};

extern const struct sbt_option sbt_option_table[SBT_N_OPTIONS];

/* The option of that command line name, or NULL. */
const struct sbt_option *sbt_option_find(const char *name);

/*
 * Parse `text` as a value of `option` into *value. On failure returns false and leaves in `error` (of `error_size`
 * bytes, truncated if need be) one line without newline that names the option, the text and what is legal:
 * "engine: unknown value 'foo' (legal: glibc, direct)". `who` is what the line calls the option (its name or variable).
 */
bool sbt_option_parse(const struct sbt_option *option, const char *who, const char *text, union sbt_option_value *value,
                      char *error, size_t error_size);

/*
 * Fill *options from the environment vector `envp`, defaults where a variable is unset or empty. A SUBUTAI_* variable
 * that no option owns is refused like an illegal value. Returns false with the first error's line in `error`.
 */
bool sbt_options_load(struct sbt_options *options, char *const *envp, char *error, size_t error_size);

#endif
