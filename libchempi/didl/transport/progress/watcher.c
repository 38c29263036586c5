/* SPDX-License-Identifier: BSD-3-Clause */
/* The watcher; see watcher.h. */
#define _GNU_SOURCE /* eventfd */
#include "libchempi/didl/transport/progress/watcher.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/file.h"
#include "common/wake/futex.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/thread.h"
#include "libchempi/didl/locality/affinity.h"

_Atomic bool chempi_watcher_up;

static struct {
    struct chempi_wake *wake;
    pthread_t thread;
    _Atomic uint32_t armed; /* a futex */
    _Atomic bool is_stopping;
    struct chempi_poll_item end; /* an eventfd: leave the pollset */
} watcher = {.end = {.fd = -1}};

static void *run(void *arg)
{
    (void)arg;
    (void)prctl(PR_SET_NAME, "chempi-watcher");
    chempi_affinity_free_thread();
    for (;;) {
        while (!atomic_load(&watcher.armed))
            chempi_futex_wait(&watcher.armed, 0, -1);
        if (!atomic_load(&watcher.is_stopping))
            chempi_pollset_watch(chempi_ctx.services.pollset);
        if (atomic_load(&watcher.is_stopping))
            return NULL;
        atomic_store(&watcher.armed, 0);
        atomic_thread_fence(memory_order_seq_cst); /* W2: partner: arm() */
        chempi_wake_look_urgently(watcher.wake, -1);
    }
}

void chempi_watcher_arm(void)
{
    if (CHEMPI_LIKELY(!chempi_watcher_is_up()))
        return;
    atomic_thread_fence(memory_order_seq_cst); /* W2: partner: run() */
    if (atomic_exchange(&watcher.armed, 1) == 0)
        chempi_futex_wake(&watcher.armed);
}

void chempi_watcher_sleep(struct chempi_wake *wake, int timeout_ms)
{
    chempi_watcher_arm();
    chempi_wake_sleep(wake, timeout_ms);
    if (chempi_watcher_is_up())
        (void)chempi_pollset_collect(chempi_ctx.services.pollset, 0);
}

/* ---- start and end ---- */

static void ended(struct chempi_poll_item *item, uint32_t events)
{
    (void)item; /* it stays ready: nobody waits any more */
    (void)events;
}

static void forget_end(void)
{
    chempi_pollset_remove(chempi_ctx.services.pollset, &watcher.end);
    chempi_file_close(watcher.end.fd);
    watcher.end.fd = -1;
}

static int start(void)
{
    const struct chempi_services *s = &chempi_ctx.services;
    int rc;

    watcher.wake = &s->wakes[s->local_rank];
    atomic_store(&watcher.armed, 0);
    atomic_store(&watcher.is_stopping, false);
    watcher.end.ready = ended;
    watcher.end.fd = chempi_sys->eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watcher.end.fd < 0)
        return -errno;
    rc = chempi_pollset_add(s->pollset, &watcher.end, EPOLLIN);
    rc = rc ? rc : chempi_thread_start(&watcher.thread, run);
    if (rc)
        forget_end();
    return rc;
}

int chempi_watcher_start(struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    int rc = 0;

    if (s->wake_fds[s->local_rank] < 0 && !chempi_watcher_is_up()) {
        rc = start();
        if (rc)
            return chempi_err_set(err, rc,
                                  "no thread can be made that waits "
                                  "for other worlds");
        atomic_store(&chempi_watcher_up, true);
    }
    return 0;
}

void chempi_watcher_stop(void)
{
    const uint64_t one = 1;

    if (!chempi_watcher_is_up())
        return;
    atomic_store(&watcher.is_stopping, true);
    if (write(watcher.end.fd, &one, sizeof(one)) < 0) {
        /* It cannot be full. */
    }
    chempi_watcher_arm();
    (void)pthread_join(watcher.thread, NULL);
    atomic_store(&chempi_watcher_up, false);
    forget_end();
}
