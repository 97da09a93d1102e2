/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A preload that serves nothing: with STUB_SAY set it says, like the library, that it was loaded and for which engine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void say(void) {
    const char *engine = getenv("SUBUTAI_ENGINE");
    if (getenv("STUB_SAY") != NULL)
        dprintf(STDERR_FILENO, "subutai: stub loaded for %s\n", engine != NULL ? engine : "the default");
}
