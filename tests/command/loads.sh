#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A program that loads plug-ins one by one: each is searched for futex calls once, not again with each one that follows,
# and one that comes to the place of another is searched too.
. "$(dirname "$0")/lib.sh"

# Clean code, and code with a futex call of its own: the number in the register, and the instruction.
echo 'int plug(int n) { return n + 1; }' >clean.c
cat >calls.c <<'END'
int plug(int n) {
#if defined(__x86_64__)
    long r = 202;
    int word = 1;
    __asm__ volatile("movl $202, %%eax; syscall" : "=a"(r) : "D"(&word), "S"(1 | 128), "d"(0) : "rcx", "r11", "memory");
    return n + 1 + (int)r;
#else
    register long x8 __asm__("x8") = 98, x0 __asm__("x0");
    int word = 1;
    x0 = (long)&word;
    register long x1 __asm__("x1") = 1 | 128, x2 __asm__("x2") = 0;
    __asm__ volatile("mov w8, #98; svc 0" : "+r"(x0), "+r"(x8) : "r"(x1), "r"(x2) : "memory");
    return n + 1 + (int)x0;
#endif
}
END
cat >loads.c <<'END'
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static uint32_t word = 1;
static void wake(int n) {
    for (int i = 0; i < n; i++)
        syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
}
/* NAME...: loads each; -NAME unloads it. */
int main(int argc, char **argv) {
    void *loaded[64];
    int n = 0;
    wake(1000); /* the library looks at what is loaded */
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            for (int k = 1; k < i; k++)
                if (strcmp(argv[k], argv[i] + 1) == 0)
                    dlclose(loaded[k]);
        } else {
            loaded[i] = dlopen(argv[i], RTLD_NOW);
            if (loaded[i] == NULL)
                return puts(dlerror()), 1;
            n = ((int (*)(int))dlsym(loaded[i], "plug"))(n);
        }
        wake(1);
    }
    printf("%d\n", n);
    return 0;
}
END
${CC:-cc} -o loads loads.c -ldl || exit 99
modules=()
for i in {1..12}; do
    ${CC:-cc} -shared -fPIC -Wl,--build-id=sha1 -o "m$i.so" clean.c -Wl,-soname,"m$i.so" || exit 99
    modules+=("./m$i.so")
done
${CC:-cc} -shared -fPIC -Wl,--build-id=sha1 -o calls.so calls.c || exit 99

# searched: how many objects were, in all looks but the first.
searched() {
    grep -o 'searched for futex calls: [0-9]*' <<<"$err" | tail -n +2 | awk '{ n += $NF } END { print n + 0 }'
}

subutai run --verbose 3 -- ./loads "${modules[@]}"
check "twelve plug-ins are loaded" is "$status $out" "0 12"
check "and searched once each" is "$(searched)" 12
subutai run --verbose 3 -- ./loads "${modules[@]:0:6}" -./m3.so "${modules[@]:6}"
check "also if one is unloaded in between" is "$status $out $(searched)" "0 12 12"
subutai run --verbose 3 -- ./loads ./m1.so -./m1.so ./calls.so ./m2.so
check "what comes to the place of another is searched too" is "$status $out $(searched)" "0 3 3"
subutai run --verbose 3 -- ./loads ./m1.so -./m1.so ./m1.so ./m2.so
check "what comes back to its own place is known" is "$status $out $(searched)" "0 3 2"
cat >forks.c <<'END'
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t loads = PTHREAD_MUTEX_INITIALIZER; /* no fork copies the dynamic linker in the midst of one */
static volatile int over;
static uint32_t word = 1;
static void look(void) {
    syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
}
static void *load_and_look(void *unused) {
    while (!over) {
        pthread_mutex_lock(&loads);
        void *loaded = dlopen("./m1.so", RTLD_NOW);
        pthread_mutex_unlock(&loads);
        look();
        pthread_mutex_lock(&loads);
        dlclose(loaded);
        pthread_mutex_unlock(&loads);
        look();
    }
    return unused;
}
static void *load(void *unused) {
    dlopen("./m2.so", RTLD_NOW);
    return unused;
}
int main(void) {
    pthread_t thread;
    int n = 0;
    for (int i = 0; i < 1000; i++)
        look();
    pthread_create(&thread, NULL, load_and_look, NULL);
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&loads);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            pthread_create(&thread, NULL, load, NULL);
            pthread_join(thread, NULL);
            _exit(0);
        }
        pthread_mutex_unlock(&loads);
        int status = -1;
        waitpid(pid, &status, 0);
        n += status == 0;
        if (status != 0)
            break;
    }
    over = 1;
    pthread_join(thread, NULL);
    printf("%d\n", n);
    return 0;
}
END
${CC:-cc} -o forks forks.c -ldl -pthread || exit 99
within 60 "$SUBUTAI" run -- ./forks
check "children that were forked while another thread searched load and end threads" is "$status $out" "0 200"
finish
