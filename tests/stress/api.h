/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions under test. Plain, a torture calls pthread_mutex_lock and gets glibc's or a preloaded library's.
 * With SBT_PREFIX it is linked with the engines and calls sbt_pthread_mutex_lock: a sanitizer intercepts the names
 * of POSIX itself, so that is the only way to have it see through the engines instead of around them.
 *
 * Every file of the suite includes this one before any other header, so that no call escapes the renaming.
 */
#ifndef STRESS_API_H
#define STRESS_API_H

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#ifdef SBT_PREFIX
#define SBT_TWIN(name) extern __typeof__(name) sbt_##name

SBT_TWIN(pthread_mutex_init);
SBT_TWIN(pthread_mutex_destroy);
SBT_TWIN(pthread_mutex_lock);
SBT_TWIN(pthread_mutex_trylock);
SBT_TWIN(pthread_mutex_timedlock);
SBT_TWIN(pthread_mutex_clocklock);
SBT_TWIN(pthread_mutex_unlock);
SBT_TWIN(pthread_mutex_consistent);
SBT_TWIN(pthread_cond_init);
SBT_TWIN(pthread_cond_destroy);
SBT_TWIN(pthread_cond_wait);
SBT_TWIN(pthread_cond_timedwait);
SBT_TWIN(pthread_cond_clockwait);
SBT_TWIN(pthread_cond_signal);
SBT_TWIN(pthread_cond_broadcast);
SBT_TWIN(pthread_barrier_init);
SBT_TWIN(pthread_barrier_destroy);
SBT_TWIN(pthread_barrier_wait);
SBT_TWIN(pthread_rwlock_init);
SBT_TWIN(pthread_rwlock_destroy);
SBT_TWIN(pthread_rwlock_rdlock);
SBT_TWIN(pthread_rwlock_tryrdlock);
SBT_TWIN(pthread_rwlock_timedrdlock);
SBT_TWIN(pthread_rwlock_clockrdlock);
SBT_TWIN(pthread_rwlock_wrlock);
SBT_TWIN(pthread_rwlock_trywrlock);
SBT_TWIN(pthread_rwlock_timedwrlock);
SBT_TWIN(pthread_rwlock_clockwrlock);
SBT_TWIN(pthread_rwlock_unlock);
SBT_TWIN(pthread_spin_init);
SBT_TWIN(pthread_spin_destroy);
SBT_TWIN(pthread_spin_lock);
SBT_TWIN(pthread_spin_trylock);
SBT_TWIN(pthread_spin_unlock);
SBT_TWIN(pthread_once);
SBT_TWIN(pthread_create);
SBT_TWIN(pthread_join);
SBT_TWIN(sem_init);
SBT_TWIN(sem_destroy);
SBT_TWIN(sem_wait);
SBT_TWIN(sem_trywait);
SBT_TWIN(sem_timedwait);
SBT_TWIN(sem_clockwait);
SBT_TWIN(sem_post);
SBT_TWIN(sem_getvalue);
SBT_TWIN(mtx_init);
SBT_TWIN(mtx_destroy);
SBT_TWIN(mtx_lock);
SBT_TWIN(mtx_trylock);
SBT_TWIN(mtx_timedlock);
SBT_TWIN(mtx_unlock);
SBT_TWIN(cnd_init);
SBT_TWIN(cnd_destroy);
SBT_TWIN(cnd_wait);
SBT_TWIN(cnd_timedwait);
SBT_TWIN(cnd_signal);
SBT_TWIN(cnd_broadcast);
SBT_TWIN(call_once);
SBT_TWIN(pthread_timedjoin_np);
SBT_TWIN(pthread_clockjoin_np);

#define pthread_mutex_init sbt_pthread_mutex_init
#define pthread_mutex_destroy sbt_pthread_mutex_destroy
#define pthread_mutex_lock sbt_pthread_mutex_lock
#define pthread_mutex_trylock sbt_pthread_mutex_trylock
#define pthread_mutex_timedlock sbt_pthread_mutex_timedlock
#define pthread_mutex_clocklock sbt_pthread_mutex_clocklock
#define pthread_mutex_unlock sbt_pthread_mutex_unlock
#define pthread_mutex_consistent sbt_pthread_mutex_consistent
#define pthread_cond_init sbt_pthread_cond_init
#define pthread_cond_destroy sbt_pthread_cond_destroy
#define pthread_cond_wait sbt_pthread_cond_wait
#define pthread_cond_timedwait sbt_pthread_cond_timedwait
#define pthread_cond_clockwait sbt_pthread_cond_clockwait
#define pthread_cond_signal sbt_pthread_cond_signal
#define pthread_cond_broadcast sbt_pthread_cond_broadcast
#define pthread_barrier_init sbt_pthread_barrier_init
#define pthread_barrier_destroy sbt_pthread_barrier_destroy
#define pthread_barrier_wait sbt_pthread_barrier_wait
#define pthread_rwlock_init sbt_pthread_rwlock_init
#define pthread_rwlock_destroy sbt_pthread_rwlock_destroy
#define pthread_rwlock_rdlock sbt_pthread_rwlock_rdlock
#define pthread_rwlock_tryrdlock sbt_pthread_rwlock_tryrdlock
#define pthread_rwlock_timedrdlock sbt_pthread_rwlock_timedrdlock
#define pthread_rwlock_clockrdlock sbt_pthread_rwlock_clockrdlock
#define pthread_rwlock_wrlock sbt_pthread_rwlock_wrlock
#define pthread_rwlock_trywrlock sbt_pthread_rwlock_trywrlock
#define pthread_rwlock_timedwrlock sbt_pthread_rwlock_timedwrlock
#define pthread_rwlock_clockwrlock sbt_pthread_rwlock_clockwrlock
#define pthread_rwlock_unlock sbt_pthread_rwlock_unlock
#define pthread_spin_init sbt_pthread_spin_init
#define pthread_spin_destroy sbt_pthread_spin_destroy
#define pthread_spin_lock sbt_pthread_spin_lock
#define pthread_spin_trylock sbt_pthread_spin_trylock
#define pthread_spin_unlock sbt_pthread_spin_unlock
#define pthread_once sbt_pthread_once
#define pthread_create sbt_pthread_create
#define pthread_join sbt_pthread_join
#define sem_init sbt_sem_init
#define sem_destroy sbt_sem_destroy
#define sem_wait sbt_sem_wait
#define sem_trywait sbt_sem_trywait
#define sem_timedwait sbt_sem_timedwait
#define sem_clockwait sbt_sem_clockwait
#define sem_post sbt_sem_post
#define sem_getvalue sbt_sem_getvalue
#define mtx_init sbt_mtx_init
#define mtx_destroy sbt_mtx_destroy
#define mtx_lock sbt_mtx_lock
#define mtx_trylock sbt_mtx_trylock
#define mtx_timedlock sbt_mtx_timedlock
#define mtx_unlock sbt_mtx_unlock
#define cnd_init sbt_cnd_init
#define cnd_destroy sbt_cnd_destroy
#define cnd_wait sbt_cnd_wait
#define cnd_timedwait sbt_cnd_timedwait
#define cnd_signal sbt_cnd_signal
#define cnd_broadcast sbt_cnd_broadcast
#define call_once sbt_call_once
#define pthread_timedjoin_np sbt_pthread_timedjoin_np
#define pthread_clockjoin_np sbt_pthread_clockjoin_np
#endif

/* What a sanitizer of this build sees, and so what must not be tried with it. */
#if defined __SANITIZE_THREAD__
#define HAVE_TSAN 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define HAVE_TSAN 1
#endif
#endif
#ifndef HAVE_TSAN
#define HAVE_TSAN 0
#endif
#if defined __SANITIZE_ADDRESS__
#define HAVE_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifndef HAVE_ASAN
#define HAVE_ASAN 0
#endif

/* ThreadSanitizer watching glibc's names: it does not know the clock variants of locks (it would report the data they
 * protect) and reports every deliberate misuse (EPERM, EDEADLK). Neither holds for linked engines. */
#if HAVE_TSAN && !defined SBT_PREFIX
#define TSAN_OF_GLIBC 1
#else
#define TSAN_OF_GLIBC 0
#endif

/* glibc serves some kinds itself (process-shared, robust, inheritance). With linked engines ThreadSanitizer sees half
 * of those calls: it intercepts some of the functions that the library passes on to, and not others. */
#if HAVE_TSAN && defined SBT_PREFIX
#define GLIBC_KINDS 0
#else
#define GLIBC_KINDS 1
#endif

#endif
