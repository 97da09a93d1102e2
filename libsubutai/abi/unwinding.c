/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What compiled clean-ups call, in a library that is not linked to libgcc_s (os/unwinder.h): the linker's --wrap sends
 * their calls here. An exception, pthread_exit or a cancellation is passing one of this library's frames.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/log.h"
#include "os/arch.h"
#include "os/unwinder.h"

extern void __wrap__Unwind_Resume(struct _Unwind_Exception *exception) __attribute__((noreturn));
extern _Unwind_Reason_Code __wrap___gcc_personality_v0(int version, _Unwind_Action actions,
                                                       _Unwind_Exception_Class class,
                                                       struct _Unwind_Exception *exception,
                                                       struct _Unwind_Context *context);

/* A cancellation has loaded it before its signal was sent: an asynchronous one may have come in the midst of malloc. */
static void need(bool is_there) {
    if (SBT_LIKELY(is_there) || sbt_unwinder_load())
        return;
    sbt_log(0, "libgcc_s.so.1 must be there for exceptions, pthread_exit and cancellation", NULL);
    __builtin_trap(); /* the C library ends such a process, too */
}

/* ---- what the C library unwinds: a cancellation, or pthread_exit ---- */

#define THREAD_RECORD 4096 /* bytes; the C library's is smaller, and no stack begins so near behind it */
enum { OMITTED = 0xff, ULEB128 = 0x01, UDATA4 = 0x03 }; /* encodings of a table of call sites */

/* The C library has that exception in the thread's own record, and of no class. */
static bool is_forced(const struct _Unwind_Exception *exception) {
    return exception->exception_class == 0 && (uintptr_t)exception - (uintptr_t)pthread_self() < THREAD_RECORD;
}

static uintptr_t read_uleb128(const unsigned char **at) {
    uintptr_t value = 0;
    unsigned shift = 0;
    unsigned char byte;
    do {
        byte = *(*at)++;
        value |= (uintptr_t)(byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0);
    return value;
}

static uintptr_t read_encoded(const unsigned char **at, unsigned encoding) {
    uint32_t value;
    if (encoding == ULEB128)
        return read_uleb128(at);
    memcpy(&value, *at, sizeof value);
    *at += sizeof value;
    return value;
}

/*
 * Where the clean-up begins for a call at that offset in its function; 0: the call has none. The table is this
 * library's own, as gcc and clang write it: landing pads count from the function's beginning.
 */
static uintptr_t clean_up_of(const unsigned char *table, uintptr_t offset) {
    if (*table++ != OMITTED)
        __builtin_trap();
    if (*table++ != OMITTED)
        read_uleb128(&table);
    unsigned encoding = *table++;
    if (encoding != ULEB128 && encoding != UDATA4)
        __builtin_trap();
    uintptr_t bytes = read_uleb128(&table);
    for (const unsigned char *end = table + bytes; table < end;) {
        uintptr_t start = read_encoded(&table, encoding), length = read_encoded(&table, encoding);
        uintptr_t pad = read_encoded(&table, encoding);
        read_uleb128(&table); /* the action: a clean-up has no other */
        if (offset - start < length)
            return pad;
    }
    return 0;
}

static _Unwind_Reason_Code go_to_clean_up(struct _Unwind_Exception *exception, struct _Unwind_Context *context) {
    const struct sbt_unwinder_forced *u = &sbt_unwinder_forced;
    const unsigned char *table = u->language_data(context);
    int is_before = 0;
    uintptr_t ip = u->ip_info(context, &is_before), begin = u->region(context);
    uintptr_t pad = table != NULL ? clean_up_of(table, ip - (is_before == 0) - begin) : 0;
    if (pad == 0)
        return _URC_CONTINUE_UNWIND;
    u->set_register(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
    u->set_register(context, __builtin_eh_return_data_regno(1), 0);
    u->set_ip(context, begin + pad);
    return _URC_INSTALL_CONTEXT;
}

/* ---- what compiled code calls ---- */

void __wrap__Unwind_Resume(struct _Unwind_Exception *exception) {
    if (is_forced(exception)) { /* its personality routine has come before */
        sbt_unwinder_forced.resume(exception);
        __builtin_unreachable();
    }
    need(__atomic_load_n(&sbt_unwinder.resume, __ATOMIC_ACQUIRE) != NULL); /* pairs with sbt_unwinder_load */
    sbt_unwinder.resume(exception);
    __builtin_unreachable();
}

_Unwind_Reason_Code __wrap___gcc_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                                struct _Unwind_Exception *exception, struct _Unwind_Context *context) {
    if (is_forced(exception)) {
        need(__atomic_load_n(&sbt_unwinder_forced.set_ip, __ATOMIC_ACQUIRE) != NULL); /* the last that is loaded */
        return go_to_clean_up(exception, context);
    }
    need(__atomic_load_n(&sbt_unwinder.personality, __ATOMIC_ACQUIRE) != NULL); /* as above */
    return sbt_unwinder.personality(version, actions, class, exception, context);
}
