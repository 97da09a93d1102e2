/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of the options share: one value that is taken, one that is refused with its line. */
#ifndef OPTIONS_CHECK_H
#define OPTIONS_CHECK_H

#include <string.h>

#include "core/options.h"
#include "lib/suite.h"

static char error[256];

static inline void check_value(const struct sbt_option *option, const char *written, uint64_t expected) {
    union sbt_option_value value = {.u = 12345};
    strcpy(error, "untouched");
    ck_assert_msg(sbt_option_parse(option, option->name, written, &value, error, sizeof error), "%s refuses '%s': %s",
                  option->name, written, error);
    ck_assert_uint_eq(value.u, expected);
    ck_assert_str_eq(error, "untouched");
}

static inline void check_refused(const struct sbt_option *option, const char *called, const char *written,
                                 const char *line) {
    union sbt_option_value value;
    ck_assert_msg(!sbt_option_parse(option, called, written, &value, error, sizeof error), "%s takes '%s'",
                  option->name, written);
    ck_assert_str_eq(error, line);
}

#endif
