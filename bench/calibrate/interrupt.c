/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an interrupt from another CPU takes from the thread that it interrupts. On a virtual machine that is often more
 * than the kernel's part: the CPU leaves the virtual machine and enters it again.
 *
 * The watcher, on the second CPU, reads the clock all the time, and notes the longest gap between two readings. The
 * sender, on the first, lets it begin anew, has the kernel interrupt it (MEMBARRIER_CMD_PRIVATE_EXPEDITED sends an
 * interrupt to each CPU with a thread of the process), and then asks for its longest gap. A tick, or another process,
 * is now and then longer: the median does not mind. Kernels without that call give no samples.
 */
#include "calibrate.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WINDOW_NS 30000 /* the interrupt has come by then */

static struct {
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t asked; /* the watcher is to begin anew; UINT32_MAX: to end */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t told;  /* it has; orders longest_ns */
    uint64_t longest_ns;                             /* until then */
} watch;
static int cpu;

static void *watcher(void *unused) {
    pin_to(cpu);
    uint64_t longest_ns = 0, last = now_ns();
    for (uint32_t told = 0, asked; (asked = atomic_load_explicit(&watch.asked, memory_order_relaxed)) != UINT32_MAX;) {
        uint64_t now = now_ns();
        longest_ns = now - last > longest_ns ? now - last : longest_ns;
        last = now;
        if (asked == told)
            continue;
        told = asked;
        watch.longest_ns = longest_ns;
        atomic_store_explicit(&watch.told, told, memory_order_release); /* with longest_gap() */
        longest_ns = 0;
        last = now_ns();
    }
    return unused;
}

/* The watcher's, since it was asked last. */
static uint64_t longest_gap(void) {
    static uint32_t n;
    atomic_store_explicit(&watch.asked, ++n, memory_order_relaxed); /* the answer orders everything */
    while (atomic_load_explicit(&watch.told, memory_order_acquire) != n)
        look_again();
    return watch.longest_ns;
}

void measure_interrupts(double seconds, int sender, int watched) {
    struct samples *s = samples_new("interrupt_ns");
    double clock_ns = clock_cost_ns();
    pthread_t thread;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
        return;
    pin_to(sender);
    cpu = watched;
    must(pthread_create(&thread, NULL, watcher, NULL), "pthread_create");
    for (uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9); samples_wanted(s, end_ns);) {
        (void)longest_gap();
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        for (uint64_t from = now_ns(); now_ns() - from < WINDOW_NS;)
            look_again();
        samples_add(s, (double)longest_gap() - clock_ns);
    }
    atomic_store_explicit(&watch.asked, UINT32_MAX, memory_order_relaxed);
    must(pthread_join(thread, NULL), "pthread_join");
}
