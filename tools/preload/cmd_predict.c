/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai predict`: how fast would recorded programs be on a chip with these cores? Reads the command line and opens
 * the traces. Whatever can be refused is refused before the first simulation.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "predict.h"

enum {
    PREDICT_APP,
    PREDICT_MACHINE,
    PREDICT_CORES,
    PREDICT_MESH,
    PREDICT_SYNC,
    PREDICT_SCHED,
    PREDICT_SLOT,
    PREDICT_ORDER,
    PREDICT_PINNED,
    PREDICT_WITHOUT,
    PREDICT_MEMORY,
    PREDICT_SERVERS,
    PREDICT_CONTROL,
    PREDICT_QUEUE,
    PREDICT_STRICT,
    PREDICT_STRICT_TRACE,
    PREDICT_LOAD,
    PREDICT_QOS,
    PREDICT_SEED,
    PREDICT_CHANNELS,
    PREDICT_TRANSPORT,
    PREDICT_CONTROLLER,
    PREDICT_CHECK,
    PREDICT_INTERFACE,
    PREDICT_CALLS,
    PREDICT_UNFAIRNESS,
    PREDICT_TIMELINE,
    PREDICT_JSON,
    PREDICT_PROGRESS,
    PREDICT_N_OPTIONS
};
static const struct own_option predict_options[] = {
    [PREDICT_APP] = {0, "app", "LIST", "more applications: FILE or FILE*N, N copies of it, separated by commas"},
    [PREDICT_MACHINE] =
        {0, "machine", "LIST",
         "paper, host: the paper's chip; a machine with Linux and the reference costs, or host:FILE with those "
         "that subutai calibrate has written (default paper)"},
    [PREDICT_CORES] = {0, "cores", "LIST",
                       "cores of the machine, each 1 to 1024 (default: the mesh's, 64, or the host's)"},
    [PREDICT_MESH] = {0, "mesh", "WxH", "the network between them (default: as square as the cores allow)"},
    [PREDICT_SYNC] =
        {0, "sync", "LIST",
         "software, subutai, optical, atac, glibc, direct, switch, delegate: what synchronizes; the first four on the "
         "paper's chip, optical and atac with an optical network beside the mesh, the others on the host (default all "
         "of the machine but optical, atac and delegate)"},
    [PREDICT_SCHED] = {0, "sched", "LIST",
                       "rr, csa, oat: round robin, critical section-aware, one application at a "
                       "time (default rr)"},
    [PREDICT_SLOT] = {0, "slot-ns", "NS", "time slot of a core's scheduler (default 1000000)"},
    [PREDICT_ORDER] = {0, "order", "ORDER",
                       "free: a mutex goes to the thread that asks first; recorded: in the trace's order "
                       "(default free)"},
    [PREDICT_PINNED] = {0, "pinned", NULL, "threads stay on the core where they began"},
    [PREDICT_WITHOUT] = {0, "without", "LIST",
                         "lines, latency, slices, balance, memory, preempt, ahead, interrupts, protect, delay: effects "
                         "of the host that "
                         "are left out; outside: waits for "
                         "other processes, devices and time (default none)"},
    [PREDICT_MEMORY] =
        {0, "memory-share", "PERCENT",
         "how much of the programs' work waits for memory, if it has one core: on the host cores share its bandwidth "
         "(default 0)"},
    [PREDICT_SERVERS] = {0, "servers", "N",
                         "cores of the host that run sections only, with --sync delegate (default 1)"},
    [PREDICT_CONTROL] = {0, "control-elements", "N", "of each scratchpad (default 4)"},
    [PREDICT_QUEUE] = {0, "queue-elements", "N", "of each scratchpad (default 122)"},
    [PREDICT_STRICT] = {0, "strict-paper", NULL, "the paper's choices where the hardware is full, as in the engine ni"},
    [PREDICT_STRICT_TRACE] = {0, "strict-trace", NULL,
                              "fail when threads wait for what is not in the trace; otherwise such waits end, and are "
                              "counted"},
    [PREDICT_LOAD] = {0, "data-load", "N", "other traffic on the network, in thousandths of its cycles (default 0)"},
    [PREDICT_QOS] =
        {0, "qos", "WHAT",
         "control: routers send control packets before that traffic (default); none: in the order of coming"},
    [PREDICT_SEED] = {0, "seed", "N", "of that traffic (default 1)"},
    [PREDICT_CHANNELS] = {0, "channels", "N",
                          "of the optical network: barriers and conditions beyond them are the mesh's (default 64)"},
    [PREDICT_TRANSPORT] = {0, "transport-cycles", "N", "of a message on the optical network (default 5)"},
    [PREDICT_CONTROLLER] = {0, "controller-cycles", "N", "from a lambda queue to the message buffer (default 10)"},
    [PREDICT_CHECK] = {0, "check-cycles", "N", "of a core for each look into its message buffer (default 3)"},
    [PREDICT_INTERFACE] = {0, "interface-cycles", "N",
                           "of a core, in software, for each message that it sends or retrieves (default 300)"},
    [PREDICT_CALLS] = {0, "calls", NULL, "also a table of calls: how many, mean, median, 99th percentile"},
    [PREDICT_UNFAIRNESS] = {0, "unfairness", NULL, "also simulate each application alone, for Eq. 1 of the paper"},
    [PREDICT_TIMELINE] = {0, "timeline", "FILE", "what each thread did when, as CSV"},
    [PREDICT_JSON] = {0, "json", NULL, "print one JSON object"},
    [PREDICT_PROGRESS] = {0, "progress", NULL, "a progress line on stderr each second, also if that is no terminal"},
    {0, NULL, NULL, NULL},
};

/* ---- applications ---- */

/* A profile has events of those calls only that waited, or ended a wait. */
static void say_what_a_profile_lacks(const char *path, const struct sbt_trace *trace) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_tally tally;
    struct sbt_trace_error error;
    uint64_t n = 0;
    int r;
    sbt_trace_tally_begin(trace, &cursor);
    while ((r = sbt_trace_tally_next(&cursor, &tally, &error)) == 1)
        n += tally.n;
    if (r < 0)
        cmd_refuse("predict: %s: at byte %ju: %s", path, (uintmax_t)error.offset, error.reason);
    cmd_warn("predict: %s: a profile, in which %ju of %ju calls (%.1f %%) are only counted and are not replayed (for a "
             "prediction: subutai record, or subutai profile --full)",
             path, (uintmax_t)n, (uintmax_t)(n + info->n_events), 100.0 * (double)n / (double)(n + info->n_events));
}

static size_t open_file(struct predict *p, const char *path) {
    struct sbt_trace_error error = {0};
    for (size_t i = 0; i < p->n_files; i++)
        if (strcmp(p->files[i].path, path) == 0)
            return i;
    struct predict_file *files = cmd_allocate(p->n_files + 1, sizeof *files);
    if (p->n_files > 0)
        memcpy(files, p->files, p->n_files * sizeof *files);
    free(p->files);
    p->files = files;
    struct predict_file *file = &files[p->n_files];
    *file = (struct predict_file){.path = path, .trace = sbt_trace_open(path, &error)};
    if (file->trace == NULL)
        cmd_refuse("predict: %s: at byte %ju: %s", path, (uintmax_t)error.offset, error.reason);
    const struct sbt_trace_info *info = sbt_trace_info(file->trace);
    if (info->n_events == 0)
        cmd_refuse("predict: %s: an empty trace", path);
    if (!info->whole)
        cmd_warn("predict: %s: the recorded program did not end; its trace is used as far as it goes", path);
    if ((info->whole || info->completed) && info->n_lost > 0)
        cmd_warn("predict: %s: the recorder has lost %ju events", path, (uintmax_t)info->n_lost);
    if (info->profile)
        say_what_a_profile_lacks(path, file->trace);
    return p->n_files++;
}

static void add_application(struct predict *p, const char *path, uint64_t n) {
    size_t file = open_file(p, path);
    if (p->n_applications + n > SIM_MAX_APPLICATIONS)
        cmd_refuse("predict: more than %d applications", SIM_MAX_APPLICATIONS);
    while (n-- > 0)
        p->application[p->n_applications++] = file;
}

static void add_list(const struct args *args, struct predict *p, const char *text) {
    char *rest = cmd_format("%s", text), *item; /* kept: the names point into it */
    while ((item = strsep(&rest, ",")) != NULL) {
        char *star = strrchr(item, '*');
        uint64_t n = 1;
        if (star != NULL) {
            *star = '\0';
            n = args_uint(args, "--app: copies", star + 1, 1, SIM_MAX_APPLICATIONS);
        }
        if (item[0] == '\0')
            cmd_refuse("predict: --app: '%s' names no file (legal: FILE or FILE*N, separated by commas)", text);
        add_application(p, item, n);
    }
}

/* ---- the chip ---- */

/* The value of an option that the engine ni has too, with that option's legal values. */
static uint64_t engine_value(enum sbt_option_id id, const char *text) {
    union sbt_option_value value;
    char error[256], *name = cmd_format("--%s", sbt_option_table[id].name);
    if (!sbt_option_parse(&sbt_option_table[id], name, text, &value, error, sizeof error))
        cmd_refuse("predict: %s", error);
    free(name);
    return value.u;
}

static struct predict_chip choose_mesh(uint32_t n_cores) {
    uint32_t width = 0;
    for (uint32_t w = 1; w <= 32; w++) /* the smallest width that is not less than the height */
        if (n_cores % w == 0 && n_cores / w <= 32 && n_cores / w <= w && width == 0)
            width = w;
    if (width == 0) /* no mesh has that many tiles: take a nearly square one with room for them */
        for (width = 1; width * width < n_cores; width++)
            ;
    return (struct predict_chip){n_cores, width, (n_cores + width - 1) / width};
}

static struct predict_chip read_mesh(const struct predict *p) {
    uint64_t mesh = engine_value(SBT_OPT_MESH, p->mesh);
    uint32_t width = (uint32_t)(mesh >> 16), height = (uint32_t)(mesh & UINT16_MAX);
    return (struct predict_chip){width * height, width, height};
}

/* The values of --cores with their networks, in `chips`; how many. */
static unsigned read_chips(const struct args *args, const struct predict *p, const struct predict_machine *machine,
                           struct predict_chip *chips) {
    static uint64_t cores[SIM_MAX_CORES];
    size_t n = 1;
    bool meshed = p->mesh != NULL && !machine->on_host;
    if (p->cores != NULL)
        n = args_uint_list(args, "--cores", p->cores, 1, SIM_MAX_CORES, cores, SIM_MAX_CORES);
    else
        cores[0] = machine->on_host ? machine->costs.n_cpus : 64;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            if (cores[k] == cores[i])
                cmd_refuse("predict: --cores: '%ju' twice", (uintmax_t)cores[i]);
        chips[i] = meshed ? read_mesh(p) : choose_mesh((uint32_t)cores[i]);
        if (p->cores != NULL && chips[i].n_cores != cores[i])
            cmd_refuse("predict: --cores %ju: a mesh of %ux%u has %u cores", (uintmax_t)cores[i], chips[i].width,
                       chips[i].height, chips[i].n_cores);
    }
    return (unsigned)n;
}

/* The number of `word` among `names`; refused if it is not there. */
static unsigned number_of(const char *option, const char *word, const char *const *names, unsigned n) {
    char legal[96] = "";
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(word, names[i]) == 0)
            return i;
        snprintf(legal + strlen(legal), sizeof legal - strlen(legal), "%s%s", i > 0 ? ", " : "", names[i]);
    }
    cmd_refuse("predict: %s: unknown value '%s' (legal: %s)", option, word, legal);
}

static unsigned read_names(const char *option, const char *text, const char *const *names, unsigned n, unsigned *list) {
    char *copy = cmd_format("%s", text), *rest = copy, *word;
    unsigned count = 0, seen = 0;
    while ((word = strsep(&rest, ",")) != NULL) {
        unsigned i = number_of(option, word, names, n);
        if (seen >> i & 1)
            cmd_refuse("predict: %s: '%s' twice", option, word);
        seen |= 1u << i;
        list[count++] = i;
    }
    free(copy);
    return count;
}

/* paper, host or host:FILE. Does not return if it is none of these. */
static struct predict_machine read_machine(const char *name) {
    struct predict_machine m = {.name = name, .on_host = true};
    char error[256];
    if (strcmp(name, "paper") == 0)
        return (struct predict_machine){.name = name};
    if (strcmp(name, "host") == 0)
        m.costs = sim_host_costs_reference();
    else if (strncmp(name, "host:", 5) != 0 || name[5] == '\0')
        cmd_refuse("predict: --machine: unknown value '%s' (legal: paper, host, host:FILE)", name);
    else if (sim_host_costs_read(name + 5, &m.costs, error, sizeof error) != 0)
        cmd_refuse("predict: --machine: %s: %s", name + 5, error);
    if (m.costs.n_cpus > SIM_MAX_CORES)
        m.costs.n_cpus = SIM_MAX_CORES;
    return m;
}

static void read_machines(struct predict *p) {
    char *rest = cmd_format("%s", p->machine), *name; /* kept: the names point into it */
    size_t n = 1;
    for (const char *c = rest; *c != '\0'; c++)
        n += *c == ',';
    p->machines = cmd_allocate(n, sizeof *p->machines);
    while ((name = strsep(&rest, ",")) != NULL) {
        for (size_t i = 0; i < p->n_machines; i++)
            if (strcmp(p->machines[i].name, name) == 0)
                cmd_refuse("predict: --machine: '%s' twice", name);
        p->machines[p->n_machines++] = read_machine(name);
        *(p->machines[p->n_machines - 1].on_host ? &p->has_host : &p->has_paper) = true;
    }
    if (!p->has_paper && p->mesh != NULL)
        cmd_refuse("predict: --mesh: the host has none (legal with --machine paper)");
    if (!p->has_paper && p->sched != NULL)
        cmd_refuse("predict: --sched: the host has Linux's scheduler (legal with --machine paper)");
}

/* What serves the calls: the paper's, then the host's. */
static const char *const sync_names[] = {"software", "subutai", "optical", "atac",
                                         "glibc",    "direct",  "switch",  "delegate"};

/* A value of --sync that only the machine has that is not in the list of machines. */
static void refuse_other_machine(const struct predict *p) {
    char *copy = cmd_format("%s", p->sync), *rest = copy, *word;
    while ((word = strsep(&rest, ",")) != NULL)
        for (unsigned i = 0; i < SIM_N_ALL_SYNCS; i++)
            if (strcmp(word, sync_names[i]) == 0 && (i < SIM_N_SYNCS ? !p->has_paper : !p->has_host))
                cmd_refuse("predict: --sync: '%s': %s has none (legal with --machine %s)", word,
                           p->has_host ? "the host" : "the paper's chip", p->has_host ? "paper" : "host");
    free(copy);
}

/*
 * The values of --sync that belong to the machine, in `list`; how many. A value that belongs to no machine of the list
 * is refused, and a machine to which no value belongs.
 */
static unsigned read_syncs(const struct predict *p, const struct predict_machine *machine, unsigned *list) {
    unsigned first = p->has_paper ? 0 : (unsigned)SIM_N_SYNCS, end = p->has_host ? SIM_N_ALL_SYNCS : SIM_N_SYNCS;
    unsigned own_first = machine->on_host ? SIM_N_SYNCS : 0, own_end = machine->on_host ? SIM_N_ALL_SYNCS : SIM_N_SYNCS;
    unsigned all[SIM_N_ALL_SYNCS], n_all = 0, n = 0;
    for (unsigned i = first; i < end; i++)
        if (!sim_sync_has_optics((enum sim_sync)i) && i != SIM_DELEGATE)
            all[n_all++] = i - first;
    if (p->sync != NULL) {
        refuse_other_machine(p);
        n_all = read_names("--sync", p->sync, sync_names + first, end - first, all);
    }
    for (unsigned i = 0; i < n_all; i++)
        if (first + all[i] >= own_first && first + all[i] < own_end)
            list[n++] = first + all[i];
    if (n == 0)
        cmd_refuse("predict: --sync: '%s' has nothing for --machine %s (legal there: %s)", p->sync, machine->name,
                   machine->on_host ? "glibc, direct, switch, delegate" : "software, subutai, optical, atac");
    return n;
}

/* What there are lists of, the one that changes slowest first. Each combination of their values is a run. */
enum { DIMENSION_CHIP, DIMENSION_SYNC, DIMENSION_SCHED, N_DIMENSIONS };

static void add_runs(const struct args *args, struct predict *p, const struct predict_machine *machine) {
    static struct predict_chip chips[SIM_MAX_CORES];
    static const char *const scheds[] = {"rr", "csa", "oat"};
    unsigned sync[SIM_N_ALL_SYNCS], sched[CSA_N_POLICIES];
    const char *sched_list = p->sched != NULL && !machine->on_host ? p->sched : "rr";
    const unsigned n[N_DIMENSIONS] = {
        [DIMENSION_CHIP] = read_chips(args, p, machine, chips),
        [DIMENSION_SYNC] = read_syncs(p, machine, sync),
        [DIMENSION_SCHED] = read_names("--sched", sched_list, scheds, CSA_N_POLICIES, sched),
    };
    size_t n_before = p->n_runs, n_more = 1;
    struct predict_run *before = p->runs;
    p->n_chips = n[DIMENSION_CHIP];
    for (unsigned d = 0; d < N_DIMENSIONS; d++)
        n_more *= n[d];
    p->runs = cmd_allocate(n_before + n_more, sizeof *p->runs);
    if (n_before > 0)
        memcpy(p->runs, before, n_before * sizeof *before);
    free(before);
    p->n_runs += n_more;
    for (unsigned i = 0; i < n[DIMENSION_SYNC] * n[DIMENSION_CHIP]; i++) {
        uint32_t n_cores = chips[i / n[DIMENSION_SYNC]].n_cores;
        if (sync[i % n[DIMENSION_SYNC]] == SIM_DELEGATE && p->n_servers != 0 && p->n_servers >= n_cores)
            cmd_refuse("predict: --servers: %u of %u cores (legal: fewer than cores)", p->n_servers, n_cores);
    }
    for (size_t i = 0; i < n_more; i++) {
        unsigned at[N_DIMENSIONS];
        size_t rest = i;
        for (unsigned d = N_DIMENSIONS; d-- > 0; rest /= n[d])
            at[d] = (unsigned)(rest % n[d]);
        p->runs[n_before + i] = (struct predict_run){.machine = machine,
                                                     .chip = chips[at[DIMENSION_CHIP]],
                                                     .sync = (enum sim_sync)sync[at[DIMENSION_SYNC]],
                                                     .sched = (enum csa_policy)sched[at[DIMENSION_SCHED]]};
    }
}

/* ---- options ---- */

/* Effects of the host, and waits for the outside, which both machines have. */
static void read_without(struct predict *p, const char *text) {
    const char *names[SIM_HOST_N_EFFECTS + 1];
    unsigned list[SIM_HOST_N_EFFECTS + 1], n;
    memcpy(names, sim_host_effect_names, sizeof sim_host_effect_names);
    names[SIM_HOST_N_EFFECTS] = "outside";
    n = read_names("--without", text, names, SIM_HOST_N_EFFECTS + 1, list);
    p->without = 0;
    p->config.without_outside = false;
    for (unsigned i = 0; i < n; i++) {
        if (list[i] == SIM_HOST_N_EFFECTS)
            p->config.without_outside = true;
        else
            p->without |= UINT32_C(1) << list[i];
    }
}

/* The same, of the optical network. */
static bool read_optical_option(const struct args *args, struct predict *p, int option) {
    uint32_t *values[] = {&p->config.optical.n_channels, &p->config.optical.transport_cycles,
                          &p->config.optical.controller_cycles, &p->config.optical.check_cycles,
                          &p->config.interface_cycles};
    if (option < PREDICT_CHANNELS || option > PREDICT_INTERFACE)
        return false;
    bool channels = option == PREDICT_CHANNELS;
    char *name = cmd_format("--%s", predict_options[option].name);
    *values[option - PREDICT_CHANNELS] = (uint32_t)args_uint(
        args, name, args->value, channels, channels ? HW_OPTICAL_MAX_CHANNELS : HW_OPTICAL_MAX_CYCLES);
    free(name);
    return true;
}

/* False: the option does not describe the chip. */
static bool read_chip_option(const struct args *args, struct predict *p, int option) {
    static const char *const orders[] = {"free", "recorded"};
    switch (option) {
    case PREDICT_CORES:
        p->cores = args->value;
        break;
    case PREDICT_MESH:
        p->mesh = args->value;
        break;
    case PREDICT_SLOT:
        p->config.sched.slot_ns =
            args_uint(args, "--slot-ns", args->value, p->config.costs.switch_ns + 1, UINT64_C(1000000000000));
        /* The cap keeps its proportion to the slot. */
        p->config.sched.frame_ns = 100 * p->config.sched.slot_ns;
        p->config.sched.cap_ns = 50 * p->config.sched.slot_ns;
        break;
    case PREDICT_ORDER:
        p->config.recorded_order = number_of("--order", args->value, orders, 2) == 1;
        break;
    case PREDICT_PINNED:
        p->config.migrate = false;
        break;
    case PREDICT_WITHOUT:
        read_without(p, args->value);
        break;
    case PREDICT_MEMORY:
        p->memory_percent = (uint32_t)args_uint(args, "--memory-share", args->value, 0, 100);
        break;
    case PREDICT_SERVERS:
        p->n_servers = (uint32_t)args_uint(args, "--servers", args->value, 1, SIM_MAX_CORES - 1);
        break;
    case PREDICT_CONTROL:
        p->config.n_control = (uint32_t)engine_value(SBT_OPT_CONTROL_ELEMENTS, args->value);
        break;
    case PREDICT_QUEUE:
        p->config.n_queue = (uint32_t)engine_value(SBT_OPT_QUEUE_ELEMENTS, args->value);
        break;
    case PREDICT_STRICT:
        p->config.strict_paper = true;
        break;
    case PREDICT_STRICT_TRACE:
        p->config.let_pass = false;
        break;
    case PREDICT_LOAD:
        p->config.load_permille = (uint32_t)engine_value(SBT_OPT_DATA_LOAD, args->value);
        break;
    case PREDICT_QOS:
        p->config.qos = engine_value(SBT_OPT_QOS, args->value) == SBT_QOS_NONE ? HW_QOS_NONE : HW_QOS_CONTROL_FIRST;
        break;
    case PREDICT_SEED:
        p->config.seed = args_uint(args, "--seed", args->value, 0, UINT64_MAX);
        break;
    default:
        return read_optical_option(args, p, option);
    }
    return true;
}

static void read_option(const struct args *args, struct predict *p, int option) {
    if (option != ARGS_OPERAND)
        p->given |= UINT32_C(1) << option;
    if (read_chip_option(args, p, option))
        return;
    switch (option) {
    case ARGS_OPERAND:
        add_application(p, args->value, 1);
        break;
    case PREDICT_MACHINE:
        p->machine = args->value;
        break;
    case PREDICT_APP:
        add_list(args, p, args->value);
        break;
    case PREDICT_SYNC:
        p->sync = args->value;
        break;
    case PREDICT_SCHED:
        p->sched = args->value;
        break;
    case PREDICT_CALLS:
        p->calls = true;
        break;
    case PREDICT_UNFAIRNESS:
        p->unfairness = true;
        break;
    case PREDICT_TIMELINE:
        p->timeline = args->value;
        break;
    case PREDICT_JSON:
        p->json = true;
        break;
    case PREDICT_PROGRESS:
        p->progress = true;
        break;
    default: /* an option of the table without a case here */
        abort();
    }
}

/* Why an option that was given does nothing; NULL: it does something. */
static const char *idle(const struct predict *p, int option) {
    bool has_hardware = false, has_optical = false, has_servers = false;
    for (size_t i = 0; i < p->n_runs; i++) {
        has_hardware = has_hardware || sim_sync_has_nis(p->runs[i].sync);
        has_optical = has_optical || sim_sync_has_optics(p->runs[i].sync);
        has_servers = has_servers || p->runs[i].sync == SIM_DELEGATE;
    }
    if (!p->has_paper && (option == PREDICT_SLOT || (option >= PREDICT_CONTROL && option <= PREDICT_INTERFACE)))
        return "the host has no such part";
    if (!has_optical && option >= PREDICT_CHANNELS && option <= PREDICT_INTERFACE)
        return "only --sync optical and atac have an optical network";
    if (!p->has_host && (option == PREDICT_MEMORY || (option == PREDICT_WITHOUT && p->without != 0)))
        return "the paper's chip has no such part";
    switch (option) {
    case PREDICT_MEMORY:
        return p->memory_percent > 0 && p->without & SIM_HOST_MEMORY ? "--without has memory" : NULL;
    case PREDICT_SERVERS:
        return has_servers ? NULL : "only --sync delegate has servers";
    case PREDICT_CONTROL:
    case PREDICT_QUEUE:
    case PREDICT_STRICT:
        return has_hardware ? NULL : "software has no scratchpads";
    case PREDICT_QOS:
        return !has_hardware                  ? "software sends no packets"
               : p->config.load_permille == 0 ? "without data load no packet waits for data"
                                              : NULL;
    case PREDICT_SEED:
        return !has_hardware                  ? "software sends no packets"
               : p->config.load_permille == 0 ? "there is no data load"
                                              : NULL;
    case PREDICT_LOAD:
        return has_hardware || p->config.load_permille == 0 ? NULL : "software sends no packets";
    default:
        return NULL;
    }
}

static void warn_idle(const struct predict *p) {
    for (int option = 0; option < PREDICT_N_OPTIONS; option++) {
        const char *why = p->given >> option & 1 ? idle(p, option) : NULL;
        if (why != NULL)
            cmd_warn("predict: --%s does nothing: %s", predict_options[option].name, why);
    }
}

static int predict_main(const struct command *self, int argc, char **argv) {
    static struct predict p = {.machine = "paper"};
    struct args args = {.command = self, .argc = argc, .argv = argv};
    p.config = sim_config_default();
    p.config.let_pass = true;
    cmd_survive_cut_files();
    p.application = cmd_allocate(SIM_MAX_APPLICATIONS, sizeof *p.application);
    for (int option; (option = args_next(&args)) != ARGS_END;)
        read_option(&args, &p, option);
    read_machines(&p);
    for (size_t i = 0; i < p.n_machines; i++)
        add_runs(&args, &p, &p.machines[i]);
    if (p.n_applications == 0)
        cmd_refuse("predict: no trace given (legal: files written by subutai record)");
    warn_idle(&p);
    predict_simulate(&p);
    if (p.json)
        predict_print_json(&p, stdout);
    else
        predict_print(&p, stdout);
    return CMD_OK;
}

const struct command command_predict = {
    .name = "predict",
    .synopsis = "[options] FILE...",
    .summary = "what another machine, or the paper's hardware, would make of recorded programs",
    .details =
        "Each FILE is a trace, as subutai record writes them, and one application of the chip's. All combinations of\n"
        "--machine, --cores, --sync and --sched are simulated; the speed-up is the first one's time by each one's. "
        "Times are the\n"
        "chip's. Exit status 0, 2 if nothing was simulated, 3 if a simulation failed: a damaged trace, a lack of "
        "memory,\n"
        "nothing can advance any more (then it says which threads wait for what).\n",
    .options = predict_options,
    .main = predict_main,
};
