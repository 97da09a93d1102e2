/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options: one table names every option, its SUBUTAI_* variable, its default, its legal values and its help line. The
 * library reads the variables. The `subutai` command turns --name VALUE into them and prints the same help. Neither
 * knows a name, a range or a default that is not in the table.
 *
 * Nothing here allocates, locks or blocks, and nothing depends on the rest of the library: the file is compiled into
 * the command too. Usable before any constructor has run.
 */
#ifndef SBT_CORE_OPTIONS_H
#define SBT_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sbt_option_kind {
    SBT_OPTION_UINT,  /* decimal number from min to max; or the word in `legal`, if there is one: UINT64_MAX */
    SBT_OPTION_ENUM,  /* one of `legal`; the value is its index */
    SBT_OPTION_BOOL,  /* 0 or 1 (also no/yes, off/on, false/true) */
    SBT_OPTION_MESH,  /* "WxH", each from min to max; the value is W << 16 | H */
    SBT_OPTION_MAP,   /* which tile the next thread gets, see the table; the value is the text, which is not copied */
    SBT_OPTION_LOCKS, /* names of locks, separated by commas; the value is the text, which is not copied */
    SBT_OPTION_STRING /* a file name, not empty; the value is the text, which is not copied */
};

/* Index into sbt_option_table and into struct sbt_options. */
enum sbt_option_id {
    SBT_OPT_ENGINE,
    SBT_OPT_VERBOSE,
    SBT_OPT_CHILDREN,
    SBT_OPT_SPIN_NS,
    SBT_OPT_YIELDS,
    SBT_OPT_WAIT,
    SBT_OPT_DELEGATE, /* .s */
    SBT_OPT_SERVERS,
    SBT_OPT_WAKE_GAP,
    SBT_OPT_LOG,
    SBT_OPT_RECORD,
    SBT_OPT_RECORD_CALLS,  /* .u: enum sbt_record_calls */
    SBT_OPT_RECORD_STACKS, /* .u */
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
    SBT_OPT_QOS,
    SBT_OPT_NETWORK,
    SBT_OPT_REQUESTS,
    SBT_OPT_STATS,
    SBT_OPT_STATS_FILE,
    SBT_OPT_SEED,
    SBT_OPT_STALL,
    SBT_OPT_DEADLOCK,
    SBT_OPT_SERIAL,
    SBT_OPT_SCHEDULE,
    SBT_OPT_SCHEDULE_TIMES,   /* .u */
    SBT_OPT_SCHEDULE_CALLERS, /* .u */
    SBT_OPT_HINTS,
    SBT_OPT_SFS,           /* .u */
    SBT_OPT_STS,           /* .u */
    SBT_OPT_SOFT_BARRIERS, /* .u */
    SBT_N_OPTIONS
};

/* Values of SBT_OPT_ENGINE: indices into that option's `legal` list and into the library's engine table. */
enum sbt_engine_id { SBT_ENGINE_GLIBC, SBT_ENGINE_DIRECT, SBT_ENGINE_NI, SBT_ENGINE_DET, SBT_N_ENGINES };

/* Values of SBT_OPT_WAIT. */
enum sbt_wait { SBT_WAIT_AUTO, SBT_WAIT_ADAPTIVE, SBT_WAIT_SWITCH, SBT_WAIT_SWITCH_INSIST, SBT_WAIT_TURNS };

/* Values of options that only SBT_ENGINE_NI reads. */
enum sbt_ni_service { SBT_NI_SERVICE_DEDICATED, SBT_NI_SERVICE_INLINE };
enum sbt_control_full { SBT_CONTROL_FULL_EVICT, SBT_CONTROL_FULL_SOFTWARE };
enum sbt_queue_full { SBT_QUEUE_FULL_HOLD, SBT_QUEUE_FULL_AGAIN };
enum sbt_network { SBT_NETWORK_MESH, SBT_NETWORK_ATAC };
enum sbt_qos { SBT_QOS_CONTROL, SBT_QOS_NONE };
enum sbt_record_calls { SBT_RECORD_ALL, SBT_RECORD_WAITS };
/* Values of SBT_OPT_STALL. */
enum sbt_stall { SBT_STALL_WAIT, SBT_STALL_RELEASE };
/* Values of SBT_OPT_DEADLOCK. */
enum sbt_deadlock { SBT_DEADLOCK_WAIT, SBT_DEADLOCK_ABORT };
enum sbt_stats_format { SBT_STATS_OFF, SBT_STATS_TEXT, SBT_STATS_JSON };

struct sbt_option {
    const char *name; /* its name on the command line, without dashes: "engine" */
    const char *env;  /* its variable: "SUBUTAI_ENGINE" */
    enum sbt_option_kind kind;
    const char *default_text;      /* the default as a user would write it; NULL: unset */
    uint64_t min, max;             /* UINT and MESH only, inclusive */
    const char *const *legal;      /* ENUM, NULL-terminated; UINT: one word, or NULL */
    const char *const *legal_help; /* ENUM only, one line for each of `legal` */
    const char *metavar;           /* "NAME", "N", "FILE": the name of the value in --help */
    const char *help;              /* one line, no full stop */
    const char *engine;            /* the only engine that reads it; NULL: every engine, or the library */
    const char *bare_text; /* the value of a bare --name; then a value must be attached by '='; NULL: a bare --name is
                              refused */
};

union sbt_option_value {
    uint64_t u; /* UINT, ENUM (index), BOOL */
    const char *s;
};

struct sbt_options {
    union sbt_option_value value[SBT_N_OPTIONS];
    bool given[SBT_N_OPTIONS]; /* by a variable that is not empty */
};

/* The options in force in this process; start/ fills them in. */
extern struct sbt_options sbt_options;

extern const struct sbt_option sbt_option_table[SBT_N_OPTIONS];

/* The option of that name on the command line; NULL: there is none. */
const struct sbt_option *sbt_option_find(const char *name);

/*
 * Parse `text` as a value of `option` into *value. On failure the result is false, and `error` (of `error_size` bytes,
 * cut if need be) has one line without newline. It names the option as `called` (its name or variable), the text, and
 * what is legal: "engine: unknown value 'foo' (legal: glibc, direct)".
 */
bool sbt_option_parse(const struct sbt_option *option, const char *called, const char *text,
                      union sbt_option_value *value, char *error, size_t error_size);

/*
 * Fill *options from the environment vector `envp`. A variable that is unset or empty gives the default. An unknown
 * SUBUTAI_* variable is refused as an illegal value is. False: `error` has the first error's line.
 */
bool sbt_options_load(struct sbt_options *options, char *const *envp, char *error, size_t error_size);

/*
 * Why an option that was given does nothing beside the other options' values: "only the engine ni reads it". NULL: it
 * was not given, or it does something.
 */
const char *sbt_option_idle(const struct sbt_options *options, enum sbt_option_id id);

/*
 * Not an option: the name that one call of the command gives the processes that it starts. The command's process id,
 * '-', and digits. core/log.h says what for; a file may have this name and that beginning.
 */
#define SBT_TREE "LIBSUBUTAI_TREE"
#define SBT_TREE_FILE "/dev/shm/subutai-said-"

#endif
