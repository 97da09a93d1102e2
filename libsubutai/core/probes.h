/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Static probes (USDT) for perf, bpftrace and SystemTap; docs/probes.md lists them with their arguments. A probe is a
 * nop, and a note in the file that says where it is and where its arguments are, until a tracer puts a breakpoint
 * there. The arguments should be at hand: what is computed for a probe is computed without a tracer too.
 *
 * SBT_PROBE_THREADS: with the provider and the names of glibc's own probes, because glibc's do not fire for objects
 * that we serve. SBT_PROBE: our own, about what glibc does not have.
 */
#ifndef SBT_CORE_PROBES_H
#define SBT_CORE_PROBES_H

#if defined(SBT_HAVE_SDT)
#include <sys/sdt.h>
#define SBT_PROBE_THREADS1(name, a) STAP_PROBE1(libpthread, name, a)
#define SBT_PROBE_THREADS2(name, a, b) STAP_PROBE2(libpthread, name, a, b)
#define SBT_PROBE_THREADS3(name, a, b, c) STAP_PROBE3(libpthread, name, a, b, c)
#define SBT_PROBE_THREADS4(name, a, b, c, d) STAP_PROBE4(libpthread, name, a, b, c, d)
#define SBT_PROBE1(name, a) STAP_PROBE1(subutai, name, a)
#define SBT_PROBE2(name, a, b) STAP_PROBE2(subutai, name, a, b)
#else
#define SBT_PROBE_THREADS1(name, a) ((void)(a))
#define SBT_PROBE_THREADS2(name, a, b) ((void)(a), (void)(b))
#define SBT_PROBE_THREADS3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define SBT_PROBE_THREADS4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define SBT_PROBE1(name, a) ((void)(a))
#define SBT_PROBE2(name, a, b) ((void)(a), (void)(b))
#endif

#endif
