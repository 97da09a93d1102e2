/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stacks of simulated threads, and switching from one to another. A switch saves what a function call must keep, and
 * nothing else but C++'s account of exceptions: all stacks are of one kernel thread, with one TLS and one signal mask.
 */
#ifndef SIM_STACK_H
#define SIM_STACK_H

#include <stdbool.h>
#include <stddef.h>

struct sim_stack {
    void *sp;     /* where its registers are saved while it does not run */
    void *memory; /* NULL: the stack on which the program runs */
    size_t bytes;
    void *fake; /* AddressSanitizer's */
};

/* A stack that calls entry(argument) when it is switched to first. entry does not return. False: no memory. */
bool sim_stack_new(struct sim_stack *stack, size_t bytes, void (*entry)(void *argument), void *argument);
void sim_stack_free(struct sim_stack *stack);

/* To another stack; returns when this one is switched to. */
void sim_stack_switch(struct sim_stack *from, struct sim_stack *to);
/* First of all on a new stack. */
void sim_stack_begun(void);

#endif
