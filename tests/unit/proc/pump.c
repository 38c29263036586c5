/* SPDX-License-Identifier: BSD-3-Clause */
/* A process without a job; see pump.h. */
#define _GNU_SOURCE /* opendir */
#include "tests/unit/proc/pump.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/services/pollset.h"

#define PATIENCE_NS (UINT64_C(60) * CHEMPI_NS_PER_S) /* a broken test ends */

static struct {
    struct chempi_sys table;
    unsigned nth;
    unsigned calls;
} rigged;

void pump_open(void)
{
    cr_assert_eq(chempi_pollset_create(&chempi_ctx.services.pollset), 0);
}

void pump_close(void)
{
    cr_assert(chempi_pollset_is_empty(chempi_ctx.services.pollset));
    chempi_pollset_destroy(chempi_ctx.services.pollset);
    chempi_ctx.services.pollset = NULL;
}

void pump(int wait_ms)
{
    struct chempi_pollset *set = chempi_ctx.services.pollset;

    if (chempi_pollset_collect(set, wait_ms) > 0)
        (void)chempi_pollset_dispatch(set);
}

bool pump_until(pump_done_fn *done, void *arg)
{
    const uint64_t end = chempi_clock_ns() + PATIENCE_NS;

    while (!done(arg)) {
        if (chempi_clock_ns() > end)
            return false;
        pump(20);
    }
    return true;
}

static bool is_decided(void *arg)
{
    return chempi_exchange_state(arg, NULL) != 0;
}

int pump_state(struct chempi_exchange *x, struct chempi_err *err)
{
    cr_assert(pump_until(is_decided, x));
    return chempi_exchange_state(x, err);
}

struct taking {
    struct chempi_exchange *x;
    void *data;
    size_t len;
    int rc;
};

static bool has_taken(void *arg)
{
    struct taking *t = arg;

    t->rc = chempi_exchange_take(t->x, &t->data, &t->len, NULL);
    return t->rc != -EAGAIN;
}

void *pump_take(struct chempi_exchange *x, size_t *len)
{
    struct taking t = {.x = x};

    cr_assert(pump_until(has_taken, &t));
    *len = t.rc ? 0 : t.len;
    return t.rc ? NULL : t.data;
}

void pump_set_patience(unsigned ms)
{
    atomic_store(&chempi_setting_values[CHEMPI_SET_MEET_PATIENCE], ms);
}

size_t pump_count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

/* ---- calls that fail ------------------------------------------------- */

static bool is_hit(int error)
{
    if (++rigged.calls != rigged.nth)
        return false;
    errno = error;
    return true;
}

static void *rig_malloc(size_t size)
{
    return is_hit(ENOMEM) ? NULL : malloc(size);
}

static void *rig_calloc(size_t n, size_t size)
{
    return is_hit(ENOMEM) ? NULL : calloc(n, size);
}

static void *rig_realloc(void *ptr, size_t size)
{
    return is_hit(ENOMEM) ? NULL : realloc(ptr, size);
}

static void *rig_mmap(void *addr, size_t len, int prot, int flags, int fd,
                      off_t off)
{
    return is_hit(ENOMEM)
               ? (void *)-1
               : chempi_sys_libc.mmap(addr, len, prot, flags, fd, off);
}

static int rig_socket(int domain, int type, int protocol)
{
    return is_hit(EMFILE) ? -1 : chempi_sys_libc.socket(domain, type, protocol);
}

static int rig_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    return is_hit(EMFILE) ? -1 : chempi_sys_libc.accept4(fd, addr, len, flags);
}

static int rig_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
    if (op != EPOLL_CTL_DEL && is_hit(ENOSPC))
        return -1;
    return chempi_sys_libc.epoll_ctl(epfd, op, fd, ev);
}

void pump_rig(unsigned nth)
{
    rigged.table = chempi_sys_libc;
    rigged.table.malloc = rig_malloc;
    rigged.table.calloc = rig_calloc;
    rigged.table.realloc = rig_realloc;
    rigged.table.mmap = rig_mmap;
    rigged.table.socket = rig_socket;
    rigged.table.accept4 = rig_accept4;
    rigged.table.epoll_ctl = rig_epoll_ctl;
    rigged.nth = nth;
    rigged.calls = 0;
    chempi_sys = nth ? &rigged.table : &chempi_sys_libc;
}

unsigned pump_rigged(void)
{
    return rigged.calls;
}
