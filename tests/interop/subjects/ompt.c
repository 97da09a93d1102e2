/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A tool of OpenMP's tools interface (OMPT), loaded by LLVM's run-time library. It counts what it is told, and prints
 * the counts at the end. Counts that depend on which thread comes first are not printed.
 */
#include <omp-tools.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_long threads, regions_begun, regions_ended, tasks_begun, barriers_begun, barriers_ended;

static void thread_begin(ompt_thread_t type, ompt_data_t *data) {
    (void)type, (void)data;
    atomic_fetch_add(&threads, 1);
}

static void parallel_begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *region, unsigned n, int flags,
                           const void *caller) {
    (void)task, (void)frame, (void)region, (void)n, (void)flags, (void)caller;
    atomic_fetch_add(&regions_begun, 1);
}

static void parallel_end(ompt_data_t *region, ompt_data_t *task, int flags, const void *caller) {
    (void)region, (void)task, (void)flags, (void)caller;
    atomic_fetch_add(&regions_ended, 1);
}

static void implicit_task(ompt_scope_endpoint_t end, ompt_data_t *region, ompt_data_t *task, unsigned n, unsigned index,
                          int flags) {
    (void)region, (void)task, (void)n, (void)index, (void)flags;
    if (end == ompt_scope_begin)
        atomic_fetch_add(&tasks_begun, 1);
}

static void sync_region(ompt_sync_region_t kind, ompt_scope_endpoint_t end, ompt_data_t *region, ompt_data_t *task,
                        const void *caller) {
    (void)region, (void)task, (void)caller;
    if (kind == ompt_sync_region_barrier || kind == ompt_sync_region_barrier_explicit)
        atomic_fetch_add(end == ompt_scope_begin ? &barriers_begun : &barriers_ended, 1);
}

static int initialize(ompt_function_lookup_t look_up, int device, ompt_data_t *data) {
    (void)device, (void)data;
    ompt_set_callback_t set = (ompt_set_callback_t)look_up("ompt_set_callback");
    if (set == NULL)
        return 0;
    set(ompt_callback_thread_begin, (ompt_callback_t)thread_begin);
    set(ompt_callback_parallel_begin, (ompt_callback_t)parallel_begin);
    set(ompt_callback_parallel_end, (ompt_callback_t)parallel_end);
    set(ompt_callback_implicit_task, (ompt_callback_t)implicit_task);
    set(ompt_callback_sync_region, (ompt_callback_t)sync_region);
    return 1;
}

static void finalize(ompt_data_t *data) {
    (void)data;
    printf("tool: %ld threads, %ld regions begun and %ld ended, %ld tasks, %ld barriers begun and %ld ended\n",
           atomic_load(&threads), atomic_load(&regions_begun), atomic_load(&regions_ended), atomic_load(&tasks_begun),
           atomic_load(&barriers_begun), atomic_load(&barriers_ended));
}

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime);
ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    (void)version, (void)runtime;
    return &result;
}
