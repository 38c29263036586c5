/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of lost pages, by userfaultfd; see memory_hooks.h. */
#define _GNU_SOURCE /* syscall */
#include "libchempi/services/registration/memory_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/host/maps.h"

#define REPORTS_MAX 512u
#define BATCH 16u
#define STACK_BYTES (64u << 10)
#define USER_MODE_ONLY 1 /* UFFD_USER_MODE_ONLY, Linux 5.11 */

/* Beyond what the headers of older systems name. */
#define FEATURE_WP_UNPOPULATED (UINT64_C(1) << 13)
#define FEATURE_WP_ASYNC (UINT64_C(1) << 15)
#define FEATURES_NEEDED                                                        \
    (UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |                    \
     UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_PAGEFAULT_FLAG_WP)
/* With these, any kind of memory can be watched, not only anonymous one. */
#define FEATURES_WANTED (FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC)

struct chempi_memory_hooks {
    int fd;
    int stop_fd;
    pthread_t reader;
    pthread_mutex_t lock;
    atomic_bool has_news;
    /* under the lock */
    bool is_overrun; /* reports were lost: everything is gone */
    uint32_t head;   /* free-running */
    uint32_t tail;
    struct chempi_memory_hooks_event reports[REPORTS_MAX];
};

/* What a forked child must close (W3); -1: none. One watch per process. */
static atomic_int watched_fd = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    int fd = atomic_exchange(&watched_fd, -1);

    if (fd >= 0)
        (void)close(fd); /* nothing is buffered */
}

static void register_in_child(void)
{
    /* Without memory for it, children keep the descriptor until they exec. */
    (void)pthread_atfork(NULL, NULL, in_child);
}

/* --- the reader --- */

static void store_report(struct chempi_memory_hooks *watch,
                         const struct chempi_memory_hooks_event *event)
{
    if (watch->head - watch->tail == REPORTS_MAX)
        watch->is_overrun = true;
    else
        watch->reports[watch->head++ % REPORTS_MAX] = *event;
}

static void take_message(struct chempi_memory_hooks *watch,
                         const struct uffd_msg *msg)
{
    struct chempi_memory_hooks_event event = {0};

    switch (msg->event) {
    case UFFD_EVENT_UNMAP:
    case UFFD_EVENT_REMOVE:
        event.start = (uintptr_t)msg->arg.remove.start;
        event.end = (uintptr_t)msg->arg.remove.end;
        break;
    case UFFD_EVENT_REMAP:
        event.start = (uintptr_t)msg->arg.remap.from;
        event.end = event.start + (uintptr_t)msg->arg.remap.len;
        event.moved_to = (uintptr_t)msg->arg.remap.to;
        break;
    default:
        return; /* no page is missing or protected */
    }
    store_report(watch, &event);
}

static void read_reports(struct chempi_memory_hooks *watch)
{
    struct uffd_msg batch[BATCH];
    ssize_t n;

    (void)pthread_mutex_lock(&watch->lock);
    atomic_store_explicit(&watch->has_news, true,
                          memory_order_seq_cst); /* W1 */
    while ((n = read(watch->fd, batch, sizeof(batch))) > 0) {
        for (size_t i = 0; i < (size_t)n / sizeof(batch[0]); i++)
            take_message(watch, &batch[i]);
    }
    (void)pthread_mutex_unlock(&watch->lock);
}

static void *run_reader(void *arg)
{
    struct chempi_memory_hooks *watch = arg;
    struct pollfd fds[2] = {{.fd = watch->fd, .events = POLLIN},
                            {.fd = watch->stop_fd, .events = POLLIN}};

    while (!(fds[1].revents & POLLIN)) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[0].revents & (POLLERR | POLLNVAL | POLLHUP))
            break; /* the descriptor was closed behind our back */
        if (fds[0].revents & POLLIN)
            read_reports(watch);
    }
    (void)pthread_mutex_lock(&watch->lock);
    watch->is_overrun = true;
    atomic_store_explicit(&watch->has_news, true, memory_order_release);
    (void)pthread_mutex_unlock(&watch->lock);
    return NULL;
}

static int start_reader(struct chempi_memory_hooks *watch)
{
    size_t stack = STACK_BYTES;
    pthread_attr_t attr;
    sigset_t all;
    sigset_t old;
    int rc = pthread_attr_init(&attr);

    if (rc)
        return -rc;
    if (stack < (size_t)PTHREAD_STACK_MIN)
        stack = (size_t)PTHREAD_STACK_MIN;
    (void)pthread_attr_setstacksize(&attr, stack); /* else the default */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&watch->reader, &attr, run_reader, watch);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    return -rc;
}

/* --- opening and closing --- */

static int open_descriptor(void)
{
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);

    if (fd < 0 && errno == EINVAL) /* before Linux 5.11 */
        fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : (int)fd;
}

static int shake_hands(int fd, uint64_t features, uint64_t *known)
{
    struct uffdio_api api = {.api = UFFD_API, .features = features};

    if (ioctl(fd, UFFDIO_API, &api) < 0)
        return -errno;
    *known = api.features;
    return 0;
}

/* The hands are shaken once per descriptor: ask with one, use another. */
static int open_watching(void)
{
    uint64_t known = 0;
    int fd = open_descriptor();
    int rc;

    if (fd < 0)
        return fd;
    rc = shake_hands(fd, 0, &known);
    (void)close(fd); /* nothing is buffered */
    if (rc == 0 && (known & FEATURES_NEEDED) != FEATURES_NEEDED)
        rc = -ENOSYS;
    if (rc < 0)
        return rc;
    fd = open_descriptor();
    if (fd < 0)
        return fd;
    known &= FEATURES_NEEDED | FEATURES_WANTED;
    if ((known & FEATURES_WANTED) != FEATURES_WANTED)
        known &= ~FEATURES_WANTED;
    rc = shake_hands(fd, known, &known);
    if (rc < 0) {
        (void)close(fd); /* nothing is buffered */
        return rc;
    }
    return fd;
}

int chempi_memory_hooks_open(struct chempi_memory_hooks **out)
{
    struct chempi_memory_hooks *watch = chempi_sys->calloc(1, sizeof(*watch));
    int rc;

    if (!watch)
        return -ENOMEM;
    (void)pthread_once(&once, register_in_child);
    (void)pthread_mutex_init(&watch->lock, NULL);
    watch->stop_fd = chempi_sys->eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = watch->stop_fd < 0 ? -errno : 0;
    watch->fd = rc == 0 ? open_watching() : -1;
    if (rc == 0 && watch->fd < 0)
        rc = watch->fd;
    if (rc == 0)
        rc = start_reader(watch);
    if (rc == 0) {
        atomic_store(&watched_fd, watch->fd);
        *out = watch;
        return 0;
    }
    if (watch->fd >= 0)
        (void)close(watch->fd); /* nothing is buffered */
    if (watch->stop_fd >= 0)
        (void)close(watch->stop_fd); /* likewise */
    (void)pthread_mutex_destroy(&watch->lock);
    free(watch);
    return rc;
}

void chempi_memory_hooks_close(struct chempi_memory_hooks *watch)
{
    const uint64_t one = 1;

    if (!watch)
        return;
    atomic_store(&watched_fd, -1);
    if (write(watch->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
        (void)pthread_join(watch->reader, NULL);
    (void)close(watch->fd); /* the kernel lets go of all ranges */
    (void)close(watch->stop_fd);
    (void)pthread_mutex_destroy(&watch->lock);
    free(watch);
}

/* --- ranges --- */

int chempi_memory_hooks_add(struct chempi_memory_hooks *watch, uintptr_t start,
                            size_t len)
{
    /* Protection that nobody asks for: no fault comes of it. */
    struct uffdio_register what = {.range = {.start = start, .len = len},
                                   .mode = UFFDIO_REGISTER_MODE_WP};

    return ioctl(watch->fd, UFFDIO_REGISTER, &what) < 0 ? -errno : 0;
}

static int unregister(struct chempi_memory_hooks *watch, uintptr_t start,
                      size_t len)
{
    struct uffdio_range range = {.start = start, .len = len};

    return ioctl(watch->fd, UFFDIO_UNREGISTER, &range);
}

static void unregister_part(void *arg, uintptr_t start, size_t len)
{
    (void)unregister(arg, start, len); /* was not watched, then */
}

void chempi_memory_hooks_remove(struct chempi_memory_hooks *watch,
                                uintptr_t start, size_t len)
{
    if (unregister(watch, start, len) == 0)
        return;
    /* Nothing of it is mapped, or something else is now that cannot be watched
     * and so is not: mapping by mapping. */
    (void)chempi_maps_each(start, start + len, unregister_part, watch);
}

/* --- news --- */

bool chempi_memory_hooks_has_news(const struct chempi_memory_hooks *watch)
{
    return atomic_load_explicit(&watch->has_news, memory_order_seq_cst);
}

bool chempi_memory_hooks_next(struct chempi_memory_hooks *watch,
                              struct chempi_memory_hooks_event *event)
{
    bool is_any = true;

    (void)pthread_mutex_lock(&watch->lock);
    if (watch->is_overrun) {
        watch->is_overrun = false;
        watch->tail = watch->head;
        *event =
            (struct chempi_memory_hooks_event){.start = 0, .end = UINTPTR_MAX};
    } else if (watch->head != watch->tail) {
        *event = watch->reports[watch->tail++ % REPORTS_MAX];
    } else {
        is_any = false;
        atomic_store_explicit(&watch->has_news, false, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&watch->lock);
    return is_any;
}
