/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Engine specs: the engines that `compare` and `bench` compare, each with its settings.
 *
 * Grammar of --engines: list = engine {"," engine}; engine = NAME [":" setting] {"," setting}; setting = OPTION "="
 * VALUE. An element with '=' and without ':' before it belongs to the engine before it, so the comma can separate both:
 * "glibc,direct:spin-ns=0,yields=5,ni:map=random:7". Values cannot contain commas. NAME is an engine of the option
 * table, a short name for one with settings (delegate-combine, delegate-server), or "native": no preload at all. OPTION
 * is the name of any option but the engine. The part of the name behind a dash suffices if no other name ends with it:
 * "scale" stands for "time-scale".
 *
 * --engine = NAME [":" setting {"," setting}], with a NAME of the option table.
 */
#ifndef CMD_ENGINE_SPEC_H
#define CMD_ENGINE_SPEC_H

#include "command.h"

enum { MAX_ENGINE_SPECS = 16 };

struct engine_spec {
    const char *label; /* as the user wrote it */
    bool native;
    struct settings settings;
};

size_t engine_specs_parse(const struct args *args, const char *text, struct engine_spec list[static MAX_ENGINE_SPECS]);

/* The value of --engine: the engine and each setting are as if they were options. */
void engine_spec_set(const struct args *args, const char *text);

/* Refuse `--engine`, which has no meaning where --engines is given. */
void engine_specs_refuse_engine(const struct args *args);

#endif
