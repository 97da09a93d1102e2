/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens and closes the plugin (argument 1) again and again, alone and beside running threads; it names no pthread
 * function before that in its single-threaded part. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long use(const char *path, int n_items) {
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    long (*work)(int);
    *(void **)&work = dlsym(plugin, "plugin_work");
    long result = work == NULL ? -1 : work(n_items);
    if (dlclose(plugin) != 0)
        exit(1);
    return result;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stop;
static long n_turns;

static void *turn(void *arg) {
    for (int done = 0; !done;) {
        pthread_mutex_lock(&lock);
        n_turns++;
        done = stop;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    for (int i = 0; i < 20; i++)
        printf("alone %ld\n", use(argv[1], 10 * i + 1));
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread[i], NULL, turn, NULL) != 0)
            return 1;
    for (int i = 0; i < 20; i++)
        printf("beside threads %ld\n", use(argv[1], 10 * i + 1));
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    printf("threads turned: %s\n", n_turns > 0 ? "yes" : "no");
    return n_turns == 0;
}
