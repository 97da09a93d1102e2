/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The JSON writer on a stdio stream, for programs. A failed write shows in ferror() of the stream. */
#ifndef TEXT_JSON_FILE_H
#define TEXT_JSON_FILE_H

#include <stdio.h>

#include "json.h"

static inline void json_to_file(void *to, const char *bytes, size_t n) {
    fwrite(bytes, 1, n, (FILE *)to);
}

static inline struct json json_on(FILE *file) {
    return (struct json){.put = json_to_file, .to = file};
}

#endif
