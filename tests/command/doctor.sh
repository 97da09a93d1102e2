#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai doctor`: its verdict on programs made for each reason.
. "$(dirname "$0")/lib.sh"
export LC_ALL=C

# verdict PROGRAM REASON TEXT
verdict() {
    local wanted=1
    [[ $2 != served ]] || wanted=0
    subutai doctor --json "$1"
    check "$3: reason $2" json ".[0].reason == \"$2\" and .[0].served == ($wanted == 0)"
    check "$3: exit status $wanted" is "$status" $wanted
}

cat >all.c <<'END'
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#define USE(f) (void *)f
void *used[] = {USE(pthread_mutex_lock), USE(pthread_cond_wait), USE(pthread_barrier_wait), USE(pthread_rwlock_rdlock),
                USE(sem_wait), USE(pthread_spin_lock), USE(pthread_once), USE(mtx_lock), USE(pthread_create),
                USE(pthread_mutexattr_init), USE(thrd_create)};
int main(void) { return 0; }
END
echo 'int main(void) { return 0; }' >plain.c
$CC -pthread -o all all.c
verdict ./all served "a program with every primitive"
check "every group is listed" json '.[0].objects[0].primitives == {
    mutex: ["pthread_mutex_lock", "pthread_mutexattr_init"],
    cond: ["pthread_cond_wait"], barrier: ["pthread_barrier_wait"], rwlock: ["pthread_rwlock_rdlock"],
    sem: ["sem_wait"],
    spin: ["pthread_spin_lock"], once: ["pthread_once"], c11: ["mtx_lock"], thread: ["pthread_create", "thrd_create"]}'
subutai doctor ./all
check "in text too" matches "$out" $'can be served\n--wait auto \\(the default\\), --wait switch: can be used\nimported primitives:\n  ./all\n    mutex    pthread_mutex_lock'

$CC -o plain plain.c
verdict ./plain no-symbols "a program without threads"
check "its children are mentioned" json '.[0].notes | any(test("starts"))'
echo '#include <pthread.h>
void *used = (void *)pthread_create; int main(void) { return 0; }' >create.c
$CC -pthread -o create create.c
verdict ./create no-symbols "a program that only starts threads"
echo '#include <unistd.h>
#include <sys/syscall.h>
int main(void) { return (int)syscall(SYS_futex, 0, 0, 0, 0, 0, 0); }' >futex.c
$CC -o futex futex.c
verdict ./futex no-symbols "a program that calls futex, without threads"
echo '#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
void *used = (void *)pthread_create; int main(void) { return (int)syscall(SYS_futex, 0, 0, 0, 0, 0, 0); }' >futexes.c
$CC -pthread -o futexes futexes.c
verdict ./futexes served "a program that waits by futexes of its own"
check "doctor says by what" json '.[0].notes | any(test("futex\\(2\\)"))'
check "and what has an order of that" json '.[0].notes | any(test("--engine det: .*--serial"))'
echo '#include <dlfcn.h>
#include <pthread.h>
void *used[] = {(void *)pthread_create, (void *)dlopen}; int main(void) { return 0; }' >launcher.c
$CC -pthread -o launcher launcher.c
verdict ./launcher served "a launcher that starts threads and loads libraries"
echo 'extern char __gcc_personality_v0[]; void *used = __gcc_personality_v0; int main(void) { return 0; }' >runtime.c
$CC -shared-libgcc -o runtime runtime.c -Wl,--no-as-needed -lgcc_s
verdict ./runtime no-symbols "a program of which only the language runtime locks"

$CC -static -pthread -o static all.c
verdict ./static static "a static program"
$CC -static-pie -pthread -o static-pie all.c
verdict ./static-pie static "a static position-independent program"
printf 'Go build' >note && objcopy --add-section .go.buildinfo=note static go-static
verdict ./go-static static "a static Go program"
check "is recognised as Go" json '.[0].detail | test("Go program")'
objcopy --add-section .go.buildinfo=note plain go-dynamic
verdict ./go-dynamic no-symbols "a dynamic Go program"
check "is recognised as Go" json '.[0].detail | test("goroutines")'
objcopy --add-section .go.buildinfo=note all go-cgo
verdict ./go-cgo served "a Go program with C code"
check "with a note" json '.[0].notes | any(test("only C code is served"))'

sed 's/ld-linux/ld-musl-/' all >musl && chmod +x musl
verdict ./musl other-libc "a program for musl"
check "musl is named" json '.[0].detail | test("musl")'
# e_machine is the half-word at byte 18: 183 is AArch64, 62 x86-64.
other='\267'
[[ $(uname -m) != aarch64 ]] || other='\076'
cp all other && printf '%b\000' "$other" | dd of=other bs=1 seek=18 conv=notrunc status=none
verdict ./other other-architecture "a program for another machine"

for sanitizer in address thread leak; do
    if $CC -fsanitize=$sanitizer -pthread -o "with-$sanitizer" all.c 2>/dev/null; then
        verdict "./with-$sanitizer" sanitizer "a program with the $sanitizer sanitizer"
    else
        skip "a program with the $sanitizer sanitizer" "the compiler cannot link it"
    fi
done
if $CC -fsanitize=undefined -pthread -o with-undefined all.c 2>/dev/null; then
    verdict ./with-undefined served "a program with the undefined behaviour sanitizer, which is no obstacle"
fi

# Libraries: found by $ORIGIN, through each other, by LD_LIBRARY_PATH; missing; instrumented.
mkdir lib elsewhere
echo '#include <pthread.h>
pthread_mutex_t m; int inner(void) { return pthread_mutex_lock(&m); }' >inner.c
echo 'int inner(void); int outer(void) { return inner(); }' >outer.c
echo 'int outer(void); int main(void) { return outer(); }' >uses.c
$CC -shared -fPIC -o lib/libinner.so inner.c
$CC -shared -fPIC -Wl,-soname,libouter.so -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN' \
    -o lib/libouter.so outer.c -Llib -linner
$CC -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/lib' -o uses uses.c -Llib -louter -Wl,-rpath-link,lib
verdict ./uses served "a library of the program's library locks, found by RUNPATH"
check "the library is named" \
    json '.[0].objects | any((.path | endswith("lib/libinner.so")) and .primitives.mutex == ["pthread_mutex_lock"])'
$CC -shared -fPIC -Wl,-soname,libouter.so -o lib/libouter.so outer.c -Llib -linner
verdict ./uses no-symbols "RUNPATH does not reach the libraries of libraries"
check "what is missing is said" json '.[0].notes | any(test("needs libinner.so, which was not found"))'
$CC -Wl,--disable-new-dtags -Wl,-rpath,'$ORIGIN/lib' -o uses-rpath uses.c -Llib -louter -Wl,-rpath-link,lib
verdict ./uses-rpath served "RPATH does"
cp lib/libinner.so elsewhere
LD_LIBRARY_PATH=/nowhere:$scratch/elsewhere verdict ./uses served "LD_LIBRARY_PATH is searched"
if $CC -fsanitize=address -shared -fPIC -o lib/libinner.so inner.c 2>/dev/null; then
    verdict ./uses-rpath sanitizer "a library with a sanitizer"
    check "the library is named" json '.[0].detail | test("libinner.so")'
fi

printf '#!%s/all\n' "$scratch" >script && chmod +x script
verdict ./script served "a script"
check "says which interpreter" json '.[0].scripts == ["./script is a script for '"$scratch/all"'"]'
printf '#! %s/script with arguments\n' "$scratch" >script-of-script && chmod +x script-of-script
verdict ./script-of-script served "a script for a script"
check "says both" json '.[0].scripts | length == 2'
printf '#!/usr/bin/env -S X=1 all\n' >env-script && chmod +x env-script
PATH=$scratch:$PATH verdict ./env-script served "a script by env"
check "finds what env would run" json '.[0].path == "'"$scratch/all"'"'
printf '#!/no/such/interpreter\n' >orphan && chmod +x orphan
verdict ./orphan not-elf "a script without interpreter"
printf '#!%s/loop\n' "$scratch" >loop && chmod +x loop
verdict ./loop not-elf "a script that is its own interpreter"
printf 'echo bare\n' >bare && chmod +x bare
verdict ./bare no-symbols "a script without #! is sh's"
head -c 300 /dev/zero >zeros && chmod +x zeros
verdict ./zeros not-elf "a file of zeros"
head -c 100 all >short && chmod +x short
subutai doctor --json ./short
check "a truncated ELF file gets a verdict, not a crash" is "$status" 1
: >nothing && chmod +x nothing
verdict ./nothing not-elf "an empty file"

# Wrappers: shell scripts that execute a program with their own arguments.
# wraps PROGRAM TEXT: the script on standard input executes that program.
wraps() {
    local scripts='["./wrapper is a script for /bin/sh, which executes '$1'"]' reason=served
    [[ $1 != nothing ]] || scripts='["./wrapper is a script for /bin/sh"]' reason=no-symbols
    cat >wrapper && chmod +x wrapper
    subutai doctor --json ./wrapper
    check "wrapper: $2" json ".[0].scripts == $scripts and .[0].reason == \"$reason\""
}
mkdir -p app/bin && cp all app/bin/all
wraps "$scratch/all" "exec with the arguments" <<END
#!/bin/sh
exec $scratch/all "\$@"
END
wraps "$scratch/all" "the program of variables, options before it" <<END
#!/bin/sh
# exec /bin/true "\$@"
NAME=all
DIR='$scratch' # where it is
FLAGS=\$NOT_SET
case \$1 in -g) exec gdb --args \$DIR/\$NAME "\$@" ;; esac
if [ \$# -eq 0 ]; then
    exec \${DEBUGGER} "\${DIR}/\$NAME" \$FLAGS \${1+"\$@"}
fi
exec /bin/echo no
END
wraps "$scratch/app/bin/all" "the script's own directory" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
[ -n "$HOMEDIR" ] || HOMEDIR=$here/app
HOMEDIR=/no/such/directory
LD_LIBRARY_PATH=$HOMEDIR/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
X=1 exec env -i Y=2 "${HOMEDIR}"//bin/all "$@"
END
wraps "./app/bin/all" "without the last part of its own path; a continued line" <<'END'
#!/bin/sh
exec -a other \
    "${0%/*}/app/bin/all" "$@" 2>/dev/null
END
wraps "$scratch/all" "no exec: a command with a path and the arguments" <<END
#!/bin/sh
cat <<STOP
exec $scratch/plain "\$@"
STOP
$scratch/plain --check
$scratch/all --quiet -- "\$@"
END
wraps nothing "a program that gets no arguments is no wrapper's" <<END
#!/bin/sh
$scratch/all --version
ls "\$@"
END
wraps nothing "what only a run could tell" <<'END'
#!/bin/sh
program=$(find . -name all | head -1)
exec "$program" "$@"
exec "$0" "$@"
exec /no/such/program "$@"
END
wraps nothing "quotes, braces and substitutions that do not end" <<'END'
#!/bin/sh
a=${b c=$(d e=`f
exec "${x:-$(y "$@
END
printf '#!/bin/sh\n'"'''exec'"' "%s" "$0" "$@"\n'"' '''"'\nimport threading\n' "$scratch/all" >entry && chmod +x entry
subutai doctor --json ./entry
check "an entry point of an interpreter with a long path" \
    json '.[0].scripts == ["./entry is a script for /bin/sh, which is run by '"$scratch/all"'"] and .[0].served'
printf '#!/bin/sh\nexec ./wrapper2 "$@"\n' >wrapper1
printf '#!/usr/bin/env bash\nexec %s/script "$@"\n' "$scratch" >wrapper2
chmod +x wrapper1 wrapper2
subutai doctor --json ./wrapper1
check "a wrapper of a wrapper of a script" json '(.[0].scripts | length) == 3 and .[0].reason == "served"'
printf '#!/bin/sh\nexec ./round2 "$@"\n' >round1
printf '#!/bin/sh\nexec ./round1 "$@"\n' >round2
chmod +x round1 round2
subutai doctor --json ./round1
check "wrappers of each other come to an end" is "$status" 1

# What a program may load later: the libraries beside it.
mkdir loads loads/plugins
echo '#include <dlfcn.h>
#include <pthread.h>
pthread_mutex_t m;
void *used[] = {(void *)pthread_create, (void *)dlopen}; int main(void) { return pthread_mutex_lock(&m); }' >loads.c
echo '#include <signal.h>
int refused(void); int refused(void) { return sighold(SIGUSR1); }' >refused.c
echo 'int refused(void); int needs(void) { return refused(); }' >needs.c
$CC -pthread -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN/plugins' -o loads/loads loads.c -ldl
subutai doctor ./loads/loads
check "nothing beside it" matches "$out" $'checked when it is loaded\nimported'
$CC -shared -fPIC -o loads/harmless.so inner.c
subutai doctor ./loads/loads
check "a harmless library beside it" matches "$out" 'if it loads the library beside it, switching goes on'
$CC -D_GNU_SOURCE -shared -fPIC -Wno-deprecated-declarations -o loads/plugins/librefused.so.1 refused.c
$CC -shared -fPIC -o loads/needs.so needs.c -Wl,-rpath,"$scratch/loads/plugins" loads/plugins/librefused.so.1
echo text >loads/text.so
subutai doctor ./loads/loads
check "one in its DT_RUNPATH that ends switching" matches "$out" \
    'can be used; .*if it loads [^ ]*/plugins/librefused.so.1, switching ends then: [^ ]*librefused.so.1 uses sighold, which '
check "the other does not" matches "$out" 'if it loads the other library beside it, switching goes on'
subutai doctor --json ./loads/loads
check "JSON: which, and why" json '(.[0].later | length) == 2 and (.[0].later | any((.path | endswith("librefused.so.1")) and
    (.switch_detail | test("uses sighold, which")))) and .[0].switchable'
check "they are not among what is linked in" json '.[0].objects | all(.path | test("refused|harmless") | not)'

# libpsx signals all threads, and needs no import.
echo 'int psx(void) { return 1; }' >psx.c
echo '#include <pthread.h>
int psx(void); pthread_mutex_t m; int main(void) { return psx() + pthread_mutex_lock(&m); }' >psxer.c
$CC -shared -fPIC -Wl,-soname,libpsx.so.2 -o lib/libpsx.so.2 psx.c
$CC -pthread -o psxer psxer.c lib/libpsx.so.2 -Wl,-rpath,"$scratch/lib"
subutai doctor ./psxer
check "libpsx: not switched" matches "$out" \
    'cannot be used:.*the process uses [^ ]*/libpsx.so.2, which can have every thread run a function'

# Set-ID bits and capabilities need root to be made and another user to matter.
if [[ $(id -u) -eq 0 ]] && ! findmnt -no OPTIONS -T "$scratch" | grep -q nosuid; then
    chmod 755 "$scratch"
    cp all setuid && chown 65534 setuid && chmod 4755 setuid
    verdict ./setuid set-id "a set-user-ID program of another user"
    cp all setgid && chgrp 65534 setgid && chmod 2755 setgid
    verdict ./setgid set-id "a set-group-ID program of another group"
    cp all own && chmod 4755 own
    verdict ./own served "a set-user-ID program of one's own"
    check "with a note" json '.[0].notes | any(test("other users"))'
    cp "$SUBUTAI" command && chmod 755 command
    as_nobody() {
        run setpriv --reuid 65534 --regid 65534 --clear-groups ./command doctor --json "$1"
    }
    as_nobody ./own
    check "which another user is told" json '.[0].reason == "set-id"'
    cp all capable && setcap cap_net_raw+ep capable
    as_nobody ./capable
    check "file capabilities" json '.[0].reason == "capabilities"'
    chmod 711 all
    as_nobody ./all
    check "a program that can be run but not read" json '.[0].reason == "unreadable"'
else
    skip "set-ID bits and capabilities" "only root can make such files, on a file system that honours them"
fi
finish
