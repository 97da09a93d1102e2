/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define STACK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STACK_ASAN 1
#endif
#endif
#ifdef STACK_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* stack_x86_64.S, stack_aarch64.S */
void sim_stack_swap(void **from, void *to);
void sim_stack_entry(void);

/*
 * Stacks begin at different places of their pages. Else the same lines of all of them would have the same few sets of
 * the host's caches.
 */
enum { COLOURS = 16, COLOUR_BYTES = 192 };

enum {
#if defined(__x86_64__)
    SAVED = 8, /* r15, r14, r13, r12, rbx, rbp, return address, and a word that keeps the stack aligned */
    ENTRY = 4, /* rbx */
    ARGUMENT = 3,
    RETURN = 6
#elif defined(__aarch64__)
    SAVED = 20, /* x19 to x30, d8 to d15 */
    ENTRY = 0,  /* x19 */
    ARGUMENT = 1,
    RETURN = 11 /* x30 */
#else
#error "no switch of stacks for this architecture"
#endif
};

bool sim_stack_new(struct sim_stack *stack, size_t bytes, void (*entry)(void *argument), void *argument) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page + page;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    if (mprotect(memory, page, PROT_NONE) != 0) { /* a stack that overflows is an error, and not another's memory */
        munmap(memory, bytes);
        return false;
    }
    static uint32_t n_stacks;
    uintptr_t *top = (uintptr_t *)(void *)((char *)memory + bytes - n_stacks++ % COLOURS * COLOUR_BYTES) - SAVED;
    top[ENTRY] = (uintptr_t)entry;
    top[ARGUMENT] = (uintptr_t)argument;
    top[RETURN] = (uintptr_t)sim_stack_entry;
    *stack = (struct sim_stack){.sp = top, .memory = memory, .bytes = bytes};
    return true;
}

void sim_stack_free(struct sim_stack *stack) {
#ifdef STACK_ASAN
    if (stack->memory != NULL) /* frames that did not return: what is mapped here next would seem to have them */
        __asan_unpoison_memory_region(stack->memory, stack->bytes);
#endif
    if (stack->memory != NULL)
        munmap(stack->memory, stack->bytes);
    stack->memory = NULL;
}

/*
 * What C++ has for each kernel thread and each stack needs for itself: the exceptions that are being handled, and how
 * many are on their way (Itanium C++ ABI, section 2.2.2). A program without C++ does not have it.
 */
struct exceptions {
    void *caught;
    unsigned int n_uncaught;
};
struct exceptions *__cxa_get_globals(void) __attribute__((weak));

static struct exceptions swap_exceptions(struct exceptions with) {
    struct exceptions *current = __cxa_get_globals != NULL ? __cxa_get_globals() : NULL, before = {NULL, 0};
    if (current != NULL) {
        before = *current;
        *current = with;
    }
    return before;
}

#ifdef STACK_ASAN
/* The bounds of the stack on which the program runs, as the sanitizer knows them. */
static const void *own;
static size_t own_bytes;

void sim_stack_begun(void) {
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &bytes);
    if (own == NULL) { /* the first switch of all comes from there */
        own = bottom;
        own_bytes = bytes;
    }
}
#else
void sim_stack_begun(void) {}
#endif

/* A new stack begins without exceptions. */
void sim_stack_switch(struct sim_stack *from, struct sim_stack *to) {
    struct exceptions kept = swap_exceptions((struct exceptions){NULL, 0});
#ifdef STACK_ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->memory != NULL ? to->memory : own,
                                   to->memory != NULL ? to->bytes : own_bytes);
#endif
    sim_stack_swap(&from->sp, to->sp);
#ifdef STACK_ASAN
    __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
    swap_exceptions(kept);
}
