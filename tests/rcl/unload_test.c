/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unload_test LIBRARY: a thread loads the RCL library, has sections run, and unloads it while the server still is
 * there. Then it ends, and the server's threads go on. Exit status 0: nothing crashed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "subutai/rcl.h"

static void add(void *n) {
    ++*(int *)n;
}

/* POSIX: a function's address fits. */
static void look_up(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

static void *use(void *name) {
    struct rcl_server *server;
    static struct rcl_lock lock; /* stays as long as its server */
    int n = 0;
    int (*create)(struct rcl_server **, int), (*init)(struct rcl_lock *, struct rcl_server *);
    int (*execute)(struct rcl_lock *, void (*)(void *), void *);
    void *library = dlopen(name, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return name;
    }
    look_up(library, "rcl_server_create", &create);
    look_up(library, "rcl_lock_init", &init);
    look_up(library, "rcl_execute", &execute);
    if (create(&server, -1) != 0 || init(&lock, server) != 0 || execute(&lock, add, &n) != 0 || n != 1)
        return name;
    return dlclose(library) == 0 ? NULL : name;
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *failed;
    if (argc != 2 || pthread_create(&thread, NULL, use, argv[1]) != 0 || pthread_join(thread, &failed) != 0)
        return 1;
    usleep(50000);
    return failed != NULL;
}
