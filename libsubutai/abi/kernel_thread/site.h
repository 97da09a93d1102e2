/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBT_ABI_KERNEL_THREAD_SITE_H
#define SBT_ABI_KERNEL_THREAD_SITE_H

/* Before a thread is created: serve the libraries that make futex calls themselves. */
void abi_sites_serve(void);

#endif
