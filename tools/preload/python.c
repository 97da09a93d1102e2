/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Becoming Python; see python.h. */
#include "python.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "find.h"

/*
 * Refuses an interpreter that is too old and one without the package, which python3 -m would say in its own words. What
 * the package misses of other packages is said in the same way. The placeholders: subcommand, extra, module.
 */
static const char begin[] =
    "import sys\n"
    "name, extra = '%s', '%s'\n"
    "install = f\"(legal: Python 3.11 or later with the package: pip install './python[{extra}]' in Subutai's "
    "sources)\"\n"
    "if sys.version_info < (3, 11):\n"
    "    print(f'subutai: {name}: {sys.executable} is Python {sys.version.split()[0]} {install}', file=sys.stderr)\n"
    "    sys.exit(2)\n"
    "try:\n"
    "    from %s import main\n"
    "    status = main()\n"
    "except ModuleNotFoundError as error:\n"
    "    print(f'subutai: {name}: {sys.executable} has no module {error.name} {install}', file=sys.stderr)\n"
    "    sys.exit(2)\n"
    "sys.exit(status)\n";

static void set(const char *subcommand, const char *name, const char *value) {
    if (setenv(name, value, 0) != 0)
        cmd_refuse("%s: out of memory", subcommand);
}

void python_become(const char *subcommand, const char *module, const char *extra, char *const *words, size_t n_words) {
    char exe[PATH_MAX] = "";
    const char *given = getenv("PYSUBUTAI_PYTHON"), *why;
    const char *name = given != NULL && given[0] != '\0' ? given : "python3";
    char **argv = cmd_allocate(n_words + 4, sizeof *argv);
    argv[0] = find_in_path(name, &why);
    if (argv[0] == NULL)
        cmd_refuse("%s: '%s': %s (legal: Python 3.11 or later in PATH, or its path in PYSUBUTAI_PYTHON)", subcommand,
                   name, why);
    argv[1] = cmd_format("-c");
    argv[2] = cmd_format(begin, subcommand, extra, module);
    memcpy(argv + 3, words, n_words * sizeof *argv);
    /* What Python runs of Subutai is this command, and not another one in PATH. */
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) > 0)
        set(subcommand, "PYSUBUTAI_COMMAND", exe);
    set(subcommand, "PYTHONSAFEPATH", "1"); /* no module of the current directory's */
    execv(argv[0], argv);
    cmd_refuse("%s: '%s' cannot be executed: %s", subcommand, argv[0], strerror(errno));
}
