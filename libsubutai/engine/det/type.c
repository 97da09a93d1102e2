/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/det/type.h"

/*
 * The cancellation may act in pthread_setcanceltype. Then the C library would call the clean-ups that the jump has
 * called once more, if they were still in its list.
 */
void det_type_left(void *kept) {
    struct _pthread_cleanup_buffer *buffer = kept;
    _pthread_cleanup_pop(buffer, 0);
    if (buffer->__canceltype == PTHREAD_CANCEL_ASYNCHRONOUS)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

bool det_type_defer(struct _pthread_cleanup_buffer *kept) {
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (type != PTHREAD_CANCEL_ASYNCHRONOUS)
        return false;
    kept->__canceltype = type;
    _pthread_cleanup_push(kept, det_type_left, kept);
    return true;
}

void det_type_restore(struct _pthread_cleanup_buffer *kept) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL); /* first: a handler may jump in between */
    _pthread_cleanup_pop(kept, 0);
}

void det_type_forget(struct _pthread_cleanup_buffer *kept) {
    _pthread_cleanup_pop(kept, 0);
}
