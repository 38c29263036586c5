/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection tags, registration, VIs and their connections; see via.h. */
#include "libchempi/devices/scivia/adapter/via/via.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/adapter/internal.h"

#define PAGE 4096u

static int check_via(struct chempi_adapter *adapter)
{
    if (adapter->has_via)
        return 0;
    return ADAPTER_FAIL(adapter, -ENOTSUP, "adapter %s has no VIA half",
                        adapter->personality.name);
}

/* --- memory --- */

int chempi_via_ptag_create(struct chempi_adapter *adapter, uint32_t *out)
{
    int rc = check_via(adapter);

    if (rc == 0)
        *out = ++adapter->last_ptag;
    return rc;
}

static size_t pages_of(const void *start, size_t len)
{
    uintptr_t first = (uintptr_t)start / PAGE;

    return ((uintptr_t)start + len + PAGE - 1) / PAGE - first;
}

int chempi_via_register(struct chempi_adapter *adapter, const void *start,
                        size_t len, uint32_t ptag, uint32_t enables,
                        uint32_t *handle)
{
    uint64_t since_ns = chempi_timing_model_begin(&adapter->pace);
    int rc = check_via(adapter);

    if (rc < 0)
        return rc;
    if (len == 0 || ptag == 0 || len > UINTPTR_MAX - (uintptr_t)start - PAGE)
        return ADAPTER_FAIL(adapter, -EINVAL,
                            "registering %zu bytes under protection tag "
                            "%" PRIu32,
                            len, ptag);
    rc = chempi_lmm_lock_area(adapter->lmm, start, len);
    if (rc < 0)
        return ADAPTER_FAIL(
            adapter, rc,
            "cannot lock %zu bytes: %s; %" PRIu64 " of %" PRIu64
            " bytes that may be locked are (raise \"ulimit -l\")",
            len, chempi_err_name(rc), chempi_lmm_locked_bytes(adapter->lmm),
            chempi_lmm_budget(adapter->lmm));
    rc = chempi_tpt_enter(&adapter->tpt, start, len, ptag, enables, handle);
    if (rc < 0) {
        (void)chempi_lmm_unlock_area(adapter->lmm, start, len);
        return ADAPTER_FAIL(adapter, rc,
                            "the translation table is full: %" PRIu32
                            " regions, %" PRIu32 " pages",
                            adapter->tpt.regions, adapter->tpt.pages);
    }
    adapter->counters.registrations++;
    chempi_timing_model_register(&adapter->pace, since_ns,
                                 pages_of(start, len));
    return 0;
}

int chempi_via_deregister(struct chempi_adapter *adapter, uint32_t handle)
{
    uint64_t since_ns = chempi_timing_model_begin(&adapter->pace);
    void *start;
    size_t len;
    bool is_locked;
    int rc = chempi_tpt_remove(&adapter->tpt, handle, &start, &len, &is_locked);

    if (rc < 0)
        return ADAPTER_FAIL(adapter, rc, "no region has handle %" PRIu32,
                            handle);
    if (is_locked)
        rc = chempi_lmm_unlock_area(adapter->lmm, start, len);
    adapter->counters.deregistrations++;
    chempi_timing_model_deregister(&adapter->pace, since_ns,
                                   pages_of(start, len));
    return rc;
}

int chempi_via_lost(struct chempi_adapter *adapter, uint32_t handle)
{
    void *start;
    size_t len;
    int rc = chempi_tpt_unlock(&adapter->tpt, handle, &start, &len);

    if (rc < 0)
        return ADAPTER_FAIL(adapter, rc, "no locked region has handle %" PRIu32,
                            handle);
    return chempi_lmm_unlock_area(adapter->lmm, start, len);
}

/* --- VIs --- */

int chempi_via_vi_create(struct chempi_adapter *adapter,
                         const struct chempi_via_attributes *attributes,
                         struct chempi_via_vi **out)
{
    struct chempi_via_vi *vi;
    void *memory;
    int rc = check_via(adapter);

    if (rc < 0)
        return rc;
    if (attributes->ptag == 0 ||
        attributes->transfer_max > CHEMPI_VIA_TRANSFER_MAX ||
        (unsigned)attributes->reliability > CHEMPI_VIA_RELIABLE_RECEPTION)
        return ADAPTER_FAIL(adapter, -EINVAL, "a VI with such attributes");
    vi = chempi_sys->calloc(1, sizeof(*vi));
    if (!vi)
        return ADAPTER_FAIL(adapter, -ENOMEM, "out of memory");
    vi->adapter = adapter;
    vi->attributes = *attributes;
    if (vi->attributes.transfer_max == 0)
        vi->attributes.transfer_max = CHEMPI_VIA_TRANSFER_MAX;
    rc = chempi_adapter_map_new(adapter, "chempi-vi", sizeof(struct vi_page),
                                &vi->page_fd, &memory);
    if (rc < 0) {
        free(vi);
        return rc;
    }
    vi->page = memory;
    vi->page->ptag = attributes->ptag;
    vi->token = chempi_adapter_token(adapter);
    chempi_list_init(&vi->sends);
    chempi_list_init(&vi->sent);
    chempi_list_init(&vi->receives);
    chempi_list_init(&vi->active_link);
    chempi_list_append(&adapter->vis, &vi->link);
    if (attributes->send_cq)
        attributes->send_cq->users++;
    if (attributes->recv_cq)
        attributes->recv_cq->users++;
    *out = vi;
    return 0;
}

/* Once sent, the peer has the file; its mapping keeps the memory. */
static void drop_page_fd(struct chempi_via_vi *vi)
{
    if (vi->page_fd >= 0)
        (void)close(vi->page_fd); /* nothing is buffered */
    vi->page_fd = -1;
}

void chempi_via_vi_destroy(struct chempi_via_vi *vi)
{
    if (!vi)
        return;
    chempi_via_disconnect(vi);
    if (vi->at && vi->at->bouncing == vi)
        vi->at->bouncing = NULL;
    if (vi->attributes.send_cq)
        vi->attributes.send_cq->users--;
    if (vi->attributes.recv_cq)
        vi->attributes.recv_cq->users--;
    chempi_list_remove(&vi->active_link);
    chempi_list_remove(&vi->link);
    if (vi->peer)
        (void)chempi_sys->munmap(vi->peer, sizeof(*vi->peer));
    (void)chempi_sys->munmap(vi->page, sizeof(*vi->page));
    drop_page_fd(vi);
    free(vi);
}

int chempi_via_vi_status(const struct chempi_via_vi *vi)
{
    return vi->status ? vi->status : -ECONNRESET;
}

void *chempi_via_vi_user(const struct chempi_via_vi *vi)
{
    return vi->attributes.user;
}

struct chempi_via_vi *chempi_via_find(struct chempi_adapter *adapter,
                                      const struct chempi_adapter_link *link,
                                      uint32_t token)
{
    CHEMPI_LIST_FOR (node, &adapter->vis) {
        struct chempi_via_vi *vi =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_vi, link);

        if (vi->token == token && vi->at == link)
            return vi;
    }
    return NULL;
}

/* --- connecting --- */

static int map_peer(struct chempi_via_vi *vi, int fd)
{
    void *memory;
    size_t len;
    int rc = chempi_adapter_map_foreign(vi->adapter, fd, sizeof(struct vi_page),
                                        &len, &memory);

    if (rc < 0)
        return rc;
    if (len != ((sizeof(struct vi_page) + PAGE - 1) & ~(size_t)(PAGE - 1)) &&
        len != sizeof(struct vi_page)) {
        (void)chempi_sys->munmap(memory, len);
        return ADAPTER_FAIL(vi->adapter, -EPROTO, "a VI of another shape");
    }
    vi->peer = memory;
    vi->taken = atomic_load_explicit(&vi->peer->done, memory_order_relaxed);
    return 0;
}

static int may_connect(struct chempi_via_vi *vi)
{
    return vi->state == CHEMPI_VIA_IDLE
               ? 0
               : ADAPTER_FAIL(vi->adapter, -EISCONN,
                              "the VI is connected, or was");
}

int chempi_via_connect_request(struct chempi_via_vi *vi,
                               struct chempi_adapter_link *link,
                               uint64_t discriminator)
{
    const struct word word = {
        .type = WORD_VI_REQUEST,
        .token = vi->token,
        .id = vi->attributes.reliability,
        .a = discriminator,
        .b = vi->attributes.transfer_max,
    };
    int rc = may_connect(vi);

    if (rc < 0)
        return rc;
    if (link->status != 0)
        return ADAPTER_FAIL(vi->adapter, -ENOTCONN, "the link is not up");
    vi->at = link;
    vi->discriminator = discriminator;
    vi->state = CHEMPI_VIA_CONNECTING;
    rc = chempi_adapter_link_say(link, &word, vi->page_fd, -1);
    return rc < 0 ? ADAPTER_FAIL(vi->adapter, rc, "the link has gone down") : 0;
}

static void drop_request(struct chempi_via_request *request)
{
    chempi_list_remove(&request->link);
    if (request->fd >= 0)
        (void)close(request->fd); /* not mapped */
    free(request);
}

static void answer(struct chempi_adapter_link *link, uint32_t token,
                   uint32_t own, int status, int fd)
{
    const struct word word = {
        .type = WORD_VI_ANSWER, .token = token, .id = own, .status = status};

    (void)chempi_adapter_link_say(link, &word, status == 0 ? fd : -1, -1);
}

void chempi_via_requested(struct chempi_adapter_link *link,
                          const struct word *word, int fd)
{
    struct chempi_adapter *adapter = link->adapter;
    struct chempi_via_request *request;

    request = adapter->has_via ? chempi_sys->calloc(1, sizeof(*request)) : NULL;
    if (!request) {
        (void)close(fd); /* not wanted */
        answer(link, word->token, 0, -ECONNREFUSED, -1);
        return;
    }
    request->at = link;
    request->user = link->user;
    request->word = *word;
    request->fd = fd;
    chempi_list_append(&adapter->requests, &request->link);
    CHEMPI_LIST_FOR (node, &adapter->vis) {
        struct chempi_via_vi *vi =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_vi, link);

        if (vi->is_waiting_peer && vi->discriminator == word->a && vi->at &&
            memcmp(vi->at->address, link->address, sizeof(link->address)) ==
                0) {
            vi->is_waiting_peer = false;
            vi->state = CHEMPI_VIA_IDLE;
            if (chempi_via_connect_accept(request, vi) < 0)
                chempi_via_connect_reject(request);
            return;
        }
    }
}

struct chempi_via_request *
chempi_via_connect_next(struct chempi_adapter *adapter)
{
    while (!chempi_list_is_empty(&adapter->requests)) {
        struct chempi_via_request *request =
            CHEMPI_CONTAINER_OF(chempi_list_first(&adapter->requests),
                                struct chempi_via_request, link);

        if (request->at)
            return request;
        drop_request(request);
    }
    return NULL;
}

uint64_t
chempi_via_request_discriminator(const struct chempi_via_request *request)
{
    return request->word.a;
}

uint32_t chempi_via_request_user(const struct chempi_via_request *request)
{
    return request->user;
}

int chempi_via_connect_accept(struct chempi_via_request *request,
                              struct chempi_via_vi *vi)
{
    struct chempi_adapter *adapter = vi->adapter;
    int rc = may_connect(vi);

    if (rc < 0)
        return rc;
    if (!request->at || request->at->status != 0)
        return ADAPTER_FAIL(adapter, -ENOTCONN, "the client is gone");
    if (request->word.id != (uint32_t)vi->attributes.reliability ||
        request->word.b != vi->attributes.transfer_max)
        return ADAPTER_FAIL(adapter, -EINVAL,
                            "the client's VI has another reliability or "
                            "maximal transfer size");
    rc = map_peer(vi, request->fd);
    request->fd = -1;
    if (rc < 0)
        return rc;
    vi->at = request->at;
    vi->peer_token = request->word.token;
    vi->state = CHEMPI_VIA_CONNECTED;
    answer(vi->at, vi->peer_token, vi->token, 0, vi->page_fd);
    drop_page_fd(vi);
    drop_request(request);
    return 0;
}

void chempi_via_connect_reject(struct chempi_via_request *request)
{
    if (request->at)
        answer(request->at, request->word.token, 0, -ECONNREFUSED, -1);
    drop_request(request);
}

void chempi_via_answered(struct chempi_adapter_link *link,
                         const struct word *word, int fd)
{
    struct chempi_via_vi *vi =
        chempi_via_find(link->adapter, link, word->token);

    if (!vi || vi->state != CHEMPI_VIA_CONNECTING) {
        if (fd >= 0)
            (void)close(fd); /* it was given up meanwhile */
        return;
    }
    if (word->status != 0) {
        chempi_via_break(vi, -ECONNREFUSED, "the connection was refused");
        return;
    }
    vi->peer_token = word->id;
    drop_page_fd(vi);
    if (map_peer(vi, fd) < 0)
        chempi_via_break(vi, -EPROTO, "the other VI cannot be mapped");
    else
        vi->state = CHEMPI_VIA_CONNECTED;
}

int chempi_via_connect_peer(struct chempi_via_vi *vi,
                            struct chempi_adapter_link *link,
                            uint64_t discriminator)
{
    struct chempi_adapter *adapter = vi->adapter;
    int rc = may_connect(vi);

    if (rc < 0)
        return rc;
    if (memcmp(adapter->address, link->address, sizeof(link->address)) < 0)
        return chempi_via_connect_request(vi, link, discriminator);
    if (link->status != 0)
        return ADAPTER_FAIL(adapter, -ENOTCONN, "the link is not up");
    CHEMPI_LIST_FOR_SAFE (node, &adapter->requests) {
        struct chempi_via_request *request =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_request, link);

        if (request->at && request->word.a == discriminator &&
            memcmp(request->at->address, link->address,
                   sizeof(link->address)) == 0)
            return chempi_via_connect_accept(request, vi);
    }
    vi->at = link;
    vi->discriminator = discriminator;
    vi->is_waiting_peer = true;
    vi->state = CHEMPI_VIA_CONNECTING;
    return 0;
}

void chempi_via_disconnect(struct chempi_via_vi *vi)
{
    vi->is_waiting_peer = false;
    vi->is_told = true; /* the caller knows */
    if (vi->state != CHEMPI_VIA_IDLE)
        chempi_via_break(vi, -ENOTCONN, "disconnected");
}

void chempi_via_broken(struct chempi_adapter_link *link,
                       const struct word *word)
{
    struct chempi_via_vi *vi =
        chempi_via_find(link->adapter, link, word->token);

    if (vi)
        chempi_via_break(vi, -ECONNRESET,
                         "the other side broke the "
                         "connection");
}

void chempi_via_link_down(struct chempi_adapter_link *link)
{
    struct chempi_adapter *adapter = link->adapter;

    CHEMPI_LIST_FOR (node, &adapter->vis) {
        struct chempi_via_vi *vi =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_vi, link);

        if (vi->at != link)
            continue;
        vi->is_waiting_peer = false;
        chempi_via_break(vi, -ECONNRESET, "the other adapter is gone");
        vi->at = NULL;
    }
    CHEMPI_LIST_FOR (node, &adapter->requests) {
        struct chempi_via_request *request =
            CHEMPI_CONTAINER_OF(node, struct chempi_via_request, link);

        if (request->at == link)
            request->at = NULL;
    }
}

void chempi_via_fini(struct chempi_adapter *adapter)
{
    while (!chempi_list_is_empty(&adapter->requests))
        drop_request(CHEMPI_CONTAINER_OF(chempi_list_first(&adapter->requests),
                                         struct chempi_via_request, link));
    while (!chempi_list_is_empty(&adapter->vis)) {
        struct chempi_via_vi *vi = CHEMPI_CONTAINER_OF(
            chempi_list_first(&adapter->vis), struct chempi_via_vi, link);

        vi->attributes.send_cq = NULL; /* the queues may be gone already */
        vi->attributes.recv_cq = NULL;
        chempi_via_vi_destroy(vi);
    }
}
