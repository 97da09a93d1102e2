/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When the NI service threads run; see service.h. */
#ifndef SBT_ENGINE_NI_SERVICE_THREAD_H
#define SBT_ENGINE_NI_SERVICE_THREAD_H

/* The process has a second thread: create the service threads, unless they exist or cannot be created. */
void ni_service_thread_begin(void);
/* The process's last thread is about to end: end the service threads, and wait until they have ended. */
void ni_service_thread_end(void);

#endif
