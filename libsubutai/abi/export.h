/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a function becomes a symbol that other libraries bind. */
#ifndef SBT_ABI_EXPORT_H
#define SBT_ABI_EXPORT_H

#define SBT_EXPORT __attribute__((visibility("default")))

/* The attributes of `name`, for a declaration of the same function under another name. */
#if defined(__has_attribute) && __has_attribute(copy)
#define SBT_LIKE(name) __attribute__((copy(name)))
#else
#define SBT_LIKE(name)
#endif

/* Define `alias_name` as another name of the function `name`. Each symbol is the string `prefix` and the name. */
#define SBT_ALIAS_AS(prefix, alias_name, name)                                                                         \
    extern __typeof(name) alias_name __asm__(prefix #alias_name) SBT_LIKE(name)                                        \
        __attribute__((visibility("default"), alias(prefix #name)))

/*
 * On x86-64 the C library has two versions of each function of conditions. A program that was linked before 2003 asks
 * for the old version; its conditions are served too. A definition without a version would serve both, but a definition
 * with a version (subutai_x86_64.map) serves that version alone. So each function is defined under both versions.
 */
#if defined(__x86_64__)
#define SBT_OLD_VERSION(name)                                                                                          \
    extern __typeof(name) sbt_old_##name SBT_LIKE(name) __attribute__((visibility("default"), alias(#name)));          \
    __asm__(".symver sbt_old_" #name "," #name "@GLIBC_2.2.5\n.symver " #name "," #name "@@@GLIBC_2.3.2")
#else
#define SBT_OLD_VERSION(name) extern __typeof(name) name
#endif
#define SBT_OLD_COND_VERSIONS                                                                                          \
    SBT_OLD_VERSION(pthread_cond_init);                                                                                \
    SBT_OLD_VERSION(pthread_cond_destroy);                                                                             \
    SBT_OLD_VERSION(pthread_cond_wait);                                                                                \
    SBT_OLD_VERSION(pthread_cond_timedwait);                                                                           \
    SBT_OLD_VERSION(pthread_cond_signal);                                                                              \
    SBT_OLD_VERSION(pthread_cond_broadcast)

#endif
