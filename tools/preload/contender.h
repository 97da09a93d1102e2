/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engines that `compare` and `bench` set against each other.
 *
 * Grammar of --engines:  list = engine {"," engine};  engine = NAME [":" setting] {"," setting};
 * setting = OPTION "=" VALUE. An element with '=' and no ':' before it continues the engine before it, so the comma
 * can separate both: "glibc,direct:spin-ns=0,yields=5,ni:map=random:7". Values cannot contain commas. NAME is an engine
 * of the option table or "native": no preload at all. OPTION is any option but the engine, also by what follows a dash
 * in its name where only one name ends so: "scale" for "time-scale".
 */
#ifndef CMD_CONTENDER_H
#define CMD_CONTENDER_H

#include "command.h"

enum { MAX_CONTENDERS = 16 };

struct contender {
    const char *label; /* as the user wrote it */
    bool native;
    struct settings settings;
};

size_t contenders_parse(const struct args *args, const char *text, struct contender list[static MAX_CONTENDERS]);

/* `--engine` makes no sense beside --engines; refused with a hint. */
void contenders_refuse_engine(const struct args *args);

#endif
