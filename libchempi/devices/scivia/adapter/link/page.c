/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that adapters share, interrupts between them, and what else all
 * parts of an adapter lean on. */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/wake/wake.h"
#include "libchempi/devices/scivia/adapter/internal.h"

/* --- memory --- */

int chempi_adapter_map_new(struct chempi_adapter *adapter, const char *name,
                           size_t len, int *fd, void **memory)
{
    int code;

    *fd = chempi_sys->memfd_create(name, MFD_CLOEXEC);
    if (*fd < 0)
        return ADAPTER_FAIL(adapter, -errno, "cannot create a memory file: %s",
                            chempi_err_name(errno));
    if (chempi_sys->ftruncate(*fd, (off_t)len) != 0) {
        code = -errno;
    } else {
        *memory = chempi_sys->mmap(NULL, len, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_NORESERVE, *fd, 0);
        if (*memory != MAP_FAILED)
            return 0;
        code = -errno;
    }
    (void)close(*fd); /* nothing was written */
    *fd = -1;
    return ADAPTER_FAIL(adapter, code,
                        "cannot map %zu bytes of a memory file: %s", len,
                        chempi_err_name(code));
}

int chempi_adapter_map_foreign(struct chempi_adapter *adapter, int fd,
                               size_t least, size_t *len, void **memory)
{
    struct stat st;
    int code = 0;

    if (fd < 0)
        return ADAPTER_FAIL(adapter, -EPROTO, "a memory file did not come");
    if (fstat(fd, &st) != 0)
        code = -errno;
    else if (st.st_size < 0 || (uint64_t)st.st_size < least ||
             !S_ISREG(st.st_mode))
        code = -EPROTO;
    if (code == 0) {
        *len = (size_t)st.st_size;
        *memory = chempi_sys->mmap(NULL, *len, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (*memory == MAP_FAILED)
            code = -errno;
    }
    (void)close(fd); /* the mapping keeps the file */
    if (code < 0)
        return ADAPTER_FAIL(adapter, code, "cannot map remote memory: %s",
                            chempi_err_name(code));
    return 0;
}

uint32_t chempi_adapter_token(struct chempi_adapter *adapter)
{
    return ++adapter->last_token;
}

/* --- being interrupted --- */

void chempi_adapter_arm(struct chempi_adapter *adapter)
{
    adapter->is_armed = true;
    atomic_store_explicit(&adapter->page->armed, 1, memory_order_seq_cst);
    chempi_adapter_order(adapter);
}

/* Partners: notify, is_armed. */
void chempi_adapter_order(const struct chempi_adapter *adapter)
{
    if (adapter->has_barrier)
        (void)chempi_wake_barrier(); /* it has been tried */
    else
        atomic_thread_fence(memory_order_seq_cst);
}

void chempi_adapter_disarm(struct chempi_adapter *adapter)
{
    adapter->is_armed = false;
    atomic_store_explicit(&adapter->page->armed, 0, memory_order_relaxed);
}

void chempi_adapter_notify(struct chempi_adapter_link *link)
{
    struct chempi_adapter *adapter = link->adapter;
    const uint64_t one = 1;

    atomic_thread_fence(memory_order_seq_cst); /* partner: arm */
    if (CHEMPI_LIKELY(atomic_load_explicit(&link->page->armed,
                                           memory_order_relaxed) == 0) ||
        atomic_exchange(&link->page->armed, 0) == 0)
        return;
    adapter->counters.interrupts++;
    atomic_store_explicit(&link->page->notified_ns, chempi_clock_ns(),
                          memory_order_relaxed);
    /* Cannot fill up: one is written for each arming. */
    (void)chempi_sys->write(link->event_fd, &one, sizeof(one));
}

/* --- what there is to do --- */

bool chempi_adapter_is_busy(const struct chempi_adapter *adapter)
{
    CHEMPI_LIST_FOR (node, &adapter->active) {
        const struct chempi_via_vi *vi =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_vi, active_link);

        if (!vi->is_bouncing && !vi->share.is_waiting)
            return true; /* else the other side answers */
    }
    return !chempi_list_is_empty(&adapter->downs);
}

bool chempi_adapter_has_posts(const struct chempi_adapter *adapter)
{
    return !chempi_list_is_empty(&adapter->active);
}

enum chempi_via_state chempi_via_vi_state(const struct chempi_via_vi *vi)
{
    if (vi->state == CHEMPI_VIA_CONNECTED &&
        atomic_load_explicit(&vi->page->is_broken, memory_order_acquire))
        return CHEMPI_VIA_ERROR;
    return vi->state;
}
