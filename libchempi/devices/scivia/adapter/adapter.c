/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, closing and serving an adapter; see adapter.h. */
#define _GNU_SOURCE /* memfd_create, eventfd */
#include "libchempi/devices/scivia/adapter/adapter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/fd/file.h"
#include "common/fd/rights.h"
#include "common/wake/wake.h"
#include "libchempi/devices/scivia/adapter/internal.h"

#define PAGE 4096u
#define SERVE_MAX 64 /* events of one service */

/* --- opening --- */

static size_t page_bytes(uint32_t regions)
{
    size_t len =
        sizeof(struct adapter_page) + regions * sizeof(struct chempi_tpt_entry);

    return (len + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static int open_page(struct chempi_adapter *adapter, struct chempi_err *err)
{
    const struct chempi_personality *p = &adapter->personality;
    uint32_t regions = CHEMPI_TPT_REGION_MAX;
    uint32_t pages = CHEMPI_TPT_PAGE_MAX;
    void *memory;
    int rc;

    if (adapter->has_personality && adapter->has_via) {
        regions = p->table_regions < regions ? p->table_regions : regions;
        pages = p->table_pages < pages ? p->table_pages : pages;
    }
    adapter->page_len = page_bytes(regions);
    rc = chempi_adapter_map_new(adapter, "chempi-nic", adapter->page_len,
                                &adapter->page_fd, &memory);
    if (rc < 0) {
        if (err)
            *err = adapter->err;
        return rc;
    }
    adapter->page = memory;
    adapter->probe_byte =
        (unsigned char)(chempi_clock_ns() >> 8 ^ (uint64_t)getpid() * 167);
    adapter->page->magic = ADAPTER_MAGIC;
    adapter->page->version = ADAPTER_VERSION;
    adapter->page->pid = (int32_t)getpid();
    adapter->page->region_max = regions;
    adapter->page->probe_addr = (uint64_t)(uintptr_t)&adapter->probe_byte;
    adapter->page->probe_value = adapter->probe_byte;
    adapter->has_barrier = adapter->is_registered && chempi_wake_barrier();
    adapter->page->has_barrier = adapter->has_barrier;
    adapter->tpt = (struct chempi_tpt){.entries = adapter->page->table,
                                       .region_max = regions,
                                       .page_max = pages};
    return 0;
}

static int watch(struct chempi_adapter *adapter, int fd, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = source}};

    return chempi_sys->epoll_ctl(adapter->epoll_fd, EPOLL_CTL_ADD, fd,
                                 &event) != 0
               ? -errno
               : 0;
}

static int open_fds(struct chempi_adapter *adapter, struct chempi_err *err)
{
    int rc = 0;

    adapter->epoll_fd = chempi_sys->epoll_create1(EPOLL_CLOEXEC);
    adapter->event_fd = chempi_sys->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (adapter->epoll_fd < 0 || adapter->event_fd < 0)
        rc = -errno;
    adapter->event_source.kind = SOURCE_EVENT;
    adapter->listen_source.kind = SOURCE_LISTEN;
    if (rc == 0)
        rc = watch(adapter, adapter->event_fd, &adapter->event_source);
    if (rc < 0)
        return chempi_err_set(err, rc, "cannot open an adapter: %s",
                              chempi_err_name(rc));
    rc = chempi_adapter_link_listen(adapter, err);
    if (rc == 0)
        rc = watch(adapter, adapter->listen_fd, &adapter->listen_source);
    return rc;
}

static int take_params(struct chempi_adapter *adapter,
                       const struct chempi_adapter_params *params,
                       struct chempi_err *err)
{
    const struct chempi_faults *f = &params->faults;
    int rc = chempi_faults_check(f, err);

    if (rc)
        return rc;
    adapter->user = params->user;
    adapter->arg = params->arg;
    if (params->events)
        adapter->events = *params->events;
    adapter->faults = *f;
    adapter->is_registered = params->is_registered;
    adapter->is_wicked = f->reorder || f->lost_packet || f->lost_response;
    adapter->is_plain = !adapter->is_wicked && !params->personality;
    chempi_dice_start(&adapter->dice, f->seed, params->user + UINT64_C(1));
    adapter->has_sci = adapter->has_via = true;
    if (params->personality) {
        adapter->personality = *params->personality;
        adapter->has_personality = true;
        adapter->has_sci = params->personality->has_sci;
        adapter->has_via = params->personality->has_via;
    }
    adapter->has_sci &= !params->without_sci;
    chempi_timing_model_init(&adapter->pace, adapter->has_personality
                                                 ? &adapter->personality
                                                 : NULL);
    return 0;
}

int chempi_adapter_open(const struct chempi_adapter_params *params,
                        struct chempi_adapter **out, struct chempi_err *err)
{
    struct chempi_adapter *adapter = chempi_sys->calloc(1, sizeof(*adapter));
    int rc;

    if (!adapter)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    adapter->epoll_fd = adapter->listen_fd = adapter->event_fd =
        adapter->page_fd = adapter->reserve_fd = -1;
    adapter->link_events = &chempi_words_events;
    chempi_list_init(&adapter->links);
    chempi_list_init(&adapter->downs);
    chempi_list_init(&adapter->segments);
    chempi_list_init(&adapter->remotes);
    chempi_list_init(&adapter->vis);
    chempi_list_init(&adapter->active);
    chempi_list_init(&adapter->requests);
    rc = take_params(adapter, params, err);
    if (rc == 0)
        rc = open_page(adapter, err);
    if (rc == 0)
        rc = open_fds(adapter, err);
    if (rc == 0) {
        rc = chempi_lmm_create(NULL, params->lock_budget_bytes, &adapter->lmm);
        if (rc < 0)
            (void)chempi_err_set(err, rc, "out of memory");
    }
    if (rc < 0) {
        chempi_adapter_close(adapter);
        return rc;
    }
    *out = adapter;
    return 0;
}

void chempi_adapter_close(struct chempi_adapter *adapter)
{
    if (!adapter)
        return;
    memset(&adapter->events, 0, sizeof(adapter->events));
    chempi_via_fini(adapter);
    chempi_sci_fini(adapter);
    while (!chempi_list_is_empty(&adapter->downs))
        chempi_adapter_link_destroy(
            CHEMPI_CONTAINER_OF(chempi_list_first(&adapter->downs),
                                struct chempi_adapter_link, link));
    while (!chempi_list_is_empty(&adapter->links))
        chempi_adapter_link_destroy(
            CHEMPI_CONTAINER_OF(chempi_list_first(&adapter->links),
                                struct chempi_adapter_link, link));
    if (adapter->listen_fd >= 0)
        chempi_rights_close_listener(adapter->listen_fd);
    chempi_file_close(adapter->event_fd);
    chempi_file_close(adapter->epoll_fd);
    chempi_file_close(adapter->page_fd);
    chempi_file_close(adapter->reserve_fd);
    if (adapter->page)
        (void)chempi_sys->munmap(adapter->page, adapter->page_len);
    chempi_lmm_destroy(adapter->lmm);
    free(adapter);
}

/* --- looking at it --- */

const struct chempi_err *
chempi_adapter_words(const struct chempi_adapter *adapter)
{
    return &adapter->err;
}

void chempi_adapter_address(const struct chempi_adapter *adapter,
                            unsigned char out[CHEMPI_ADAPTER_ADDRESS_BYTES])
{
    memcpy(out, adapter->address, CHEMPI_ADAPTER_ADDRESS_BYTES);
}

void chempi_adapter_attributes(const struct chempi_adapter *adapter,
                               struct chempi_adapter_attributes *out)
{
    *out = (struct chempi_adapter_attributes){
        .has_sci = adapter->has_sci,
        .has_via = adapter->has_via,
        .region_max = adapter->tpt.region_max,
        .page_max = adapter->tpt.page_max,
        .transfer_max = CHEMPI_VIA_TRANSFER_MAX,
        .segment_max = CHEMPI_VIA_SEGMENT_MAX,
        .descriptor_max = CHEMPI_VIA_DEPTH,
        .interrupt_max = adapter->has_sci ? CHEMPI_SCI_INTERRUPT_MAX : 0,
        .loses_interrupts = adapter->faults.lost_interrupt > 0,
    };
    (void)snprintf(out->name, sizeof(out->name), "%s",
                   adapter->has_personality ? adapter->personality.name
                                            : "free");
}

const struct chempi_adapter_counters *
chempi_adapter_counters(const struct chempi_adapter *adapter)
{
    return &adapter->counters;
}

struct chempi_lmm *chempi_adapter_lmm(struct chempi_adapter *adapter)
{
    return adapter->lmm;
}

int chempi_adapter_fd(const struct chempi_adapter *adapter)
{
    return adapter->epoll_fd;
}

void chempi_adapter_host_copy(struct chempi_adapter *adapter, void *dst,
                              const void *src, size_t len)
{
    uint64_t since_ns = chempi_timing_model_begin(&adapter->pace);

    memcpy(dst, src, len);
    chempi_timing_model_host_copy(&adapter->pace, since_ns, dst, len);
}

/* --- serving --- */

static int serve_event(struct chempi_adapter *adapter, uint32_t events,
                       struct source *source)
{
    uint64_t count;

    switch (source->kind) {
    case SOURCE_LISTEN:
        chempi_adapter_link_accept(adapter);
        return 1;
    case SOURCE_EVENT:
        adapter->is_armed = false;
        (void)chempi_sys->read(adapter->event_fd, &count, sizeof(count));
        chempi_timing_model_wake(
            &adapter->pace, atomic_load_explicit(&adapter->page->notified_ns,
                                                 memory_order_relaxed));
        return 1;
    case SOURCE_LINK:
        return chempi_adapter_link_ready(
            CHEMPI_CONTAINER_OF(source, struct chempi_adapter_link, source),
            events);
    }
    return 0;
}

int chempi_adapter_service(struct chempi_adapter *adapter)
{
    int events = 0;

    if (adapter->is_serving)
        return 0;
    adapter->is_serving = true;
    for (int i = 0; i < SERVE_MAX; i++) {
        struct epoll_event event;

        /* One at a time: what an event causes may end another's link. */
        if (chempi_sys->epoll_wait(adapter->epoll_fd, &event, 1, 0) <= 0)
            break;
        events += serve_event(adapter, event.events, event.data.ptr);
    }
    events += chempi_queue_run_active(adapter, false);
    events += chempi_adapter_link_report(adapter);
    adapter->is_serving = false;
    return events;
}
