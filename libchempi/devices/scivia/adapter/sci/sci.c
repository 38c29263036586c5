/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments, connections to them, and remote stores; see sci.h.
 *
 * A segment is a memory file of the process that exports it; who connects maps
 * the same file. A packet is a copy into that mapping. On a faultless adapter
 * packets arrive in order at once; a wicked one draws lots for each.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/devices/scivia/adapter/sci/sci.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/copy.h"
#include "common/base/sys.h"
#include "common/fd/file.h"
#include "libchempi/devices/scivia/adapter/internal.h"

#define PAGE UINT64_C(4096)
#define LINE 64u
#define PIECE 16u
#define HEAD (LINE - sizeof(uint64_t)) /* of a line, before its last word */
#define LONG 256u                      /* bytes */

static int check_sci(struct chempi_adapter *adapter)
{
    if (adapter->has_sci)
        return 0;
    return ADAPTER_FAIL(adapter, -ENOTSUP,
                        "adapter %s has no shared-memory half",
                        adapter->personality.name);
}

/* --- exporting --- */

static struct chempi_sci_segment *find_segment(struct chempi_adapter *adapter,
                                               uint32_t id)
{
    CHEMPI_LIST_FOR (node, &adapter->segments) {
        struct chempi_sci_segment *segment =
            CHEMPI_CONTAINER_OF(node, struct chempi_sci_segment, link);

        if (segment->id == id)
            return segment;
    }
    return NULL;
}

int chempi_sci_segment_create(struct chempi_adapter *adapter, uint32_t id,
                              uint64_t len, uint32_t tag,
                              struct chempi_sci_segment **out)
{
    struct chempi_sci_segment *segment;
    int rc = check_sci(adapter);

    if (rc < 0)
        return rc;
    if (len == 0 || len > CHEMPI_SCI_SEGMENT_BYTES_MAX)
        return ADAPTER_FAIL(adapter, -EINVAL, "a segment of %" PRIu64 " bytes",
                            len);
    if (find_segment(adapter, id))
        return ADAPTER_FAIL(adapter, -EEXIST, "segment %" PRIu32 " exists", id);
    segment = chempi_sys->calloc(1, sizeof(*segment));
    if (!segment)
        return ADAPTER_FAIL(adapter, -ENOMEM, "out of memory");
    segment->adapter = adapter;
    segment->id = id;
    segment->tag = tag;
    segment->len = (len + PAGE - 1) & ~(PAGE - 1);
    chempi_list_init(&segment->users);
    rc = chempi_adapter_map_new(adapter, "chempi-segment", (size_t)segment->len,
                                &segment->fd, &segment->memory);
    if (rc < 0) {
        free(segment);
        return rc;
    }
    chempi_list_append(&adapter->segments, &segment->link);
    *out = segment;
    return 0;
}

int chempi_sci_segment_prepare(struct chempi_sci_segment *segment)
{
    const int rc = chempi_file_reserve(segment->fd, 0, segment->len);

    if (rc < 0)
        return ADAPTER_FAIL(segment->adapter, rc,
                            "cannot reserve %" PRIu64 " KiB for a segment: %s",
                            segment->len / 1024, chempi_err_name(rc));
    segment->is_prepared = true;
    return 0;
}

int chempi_sci_segment_set_available(struct chempi_sci_segment *segment)
{
    if (!segment->is_prepared)
        return ADAPTER_FAIL(segment->adapter, -EPERM,
                            "segment %" PRIu32 " is not prepared", segment->id);
    segment->is_available = true;
    return 0;
}

void chempi_sci_segment_set_unavailable(struct chempi_sci_segment *segment)
{
    segment->is_available = false;
}

static void drop_user(struct segment_user *user)
{
    chempi_list_remove(&user->link);
    free(user);
}

void chempi_sci_segment_remove(struct chempi_sci_segment *segment)
{
    if (!segment)
        return;
    chempi_list_remove(&segment->link);
    while (!chempi_list_is_empty(&segment->users)) {
        struct segment_user *user = CHEMPI_CONTAINER_OF(
            chempi_list_first(&segment->users), struct segment_user, link);
        const struct word gone = {.type = WORD_SEG_GONE, .token = user->token};
        struct chempi_adapter_link *at = user->at;

        drop_user(user);
        (void)chempi_adapter_link_say(at, &gone, -1, -1); /* else it is down */
    }
    (void)chempi_sys->munmap(segment->memory, (size_t)segment->len);
    (void)close(segment->fd); /* who maps it keeps the memory */
    free(segment);
}

void *chempi_sci_segment_memory(const struct chempi_sci_segment *segment)
{
    return segment->memory;
}

uint64_t chempi_sci_segment_len(const struct chempi_sci_segment *segment)
{
    return segment->len;
}

void chempi_sci_asked(struct chempi_adapter_link *link, const struct word *word)
{
    struct chempi_sci_segment *segment = find_segment(link->adapter, word->id);
    struct word answer = {.type = WORD_SEG_ANSWER, .token = word->token};
    struct segment_user *user = NULL;
    int fd = -1;

    if (!segment || !segment->is_available) {
        answer.status = -ENOENT;
    } else if (segment->tag != word->arg) {
        answer.status = -EACCES;
        link->adapter->counters.refused++;
    } else {
        user = chempi_sys->calloc(1, sizeof(*user));
        answer.status = user ? 0 : -ENOMEM;
    }
    if (user) {
        user->at = link;
        user->token = word->token;
        chempi_list_append(&segment->users, &user->link);
        answer.a = segment->len;
        fd = segment->fd;
    }
    (void)chempi_adapter_link_say(link, &answer, fd, -1); /* else it is down */
}

/* Those at the other end of the link; of them, those of *token unless it is
 * NULL. */
static void drop_users(struct chempi_adapter_link *link, const uint32_t *token)
{
    CHEMPI_LIST_FOR (node, &link->adapter->segments) {
        struct chempi_sci_segment *segment =
            CHEMPI_CONTAINER_OF(node, struct chempi_sci_segment, link);

        CHEMPI_LIST_FOR_SAFE (n, &segment->users) {
            struct segment_user *user =
                CHEMPI_CONTAINER_OF(n, struct segment_user, link);

            if (user->at == link && (!token || user->token == *token))
                drop_user(user);
        }
    }
}

/* A remote that was connected has gone. */
void chempi_sci_left(struct chempi_adapter_link *link, const struct word *word)
{
    drop_users(link, &word->token);
}

/* --- importing --- */

int chempi_sci_connect(struct chempi_adapter_link *link, uint32_t id,
                       uint32_t tag, struct chempi_sci_remote **out)
{
    struct chempi_adapter *adapter = link->adapter;
    struct word ask = {.type = WORD_SEG_CONNECT, .id = id, .arg = tag};
    struct chempi_sci_remote *remote;
    int rc = check_sci(adapter);

    if (rc < 0)
        return rc;
    if (link->status != 0)
        return ADAPTER_FAIL(adapter, -ENOTCONN, "the link is not up");
    remote = chempi_sys->calloc(1, sizeof(*remote));
    if (!remote)
        return ADAPTER_FAIL(adapter, -ENOMEM, "out of memory");
    remote->at = link;
    remote->status = -EINPROGRESS;
    remote->token = ask.token = chempi_adapter_token(adapter);
    chempi_list_append(&adapter->remotes, &remote->link);
    rc = chempi_adapter_link_say(link, &ask, -1, -1);
    if (rc < 0) {
        chempi_sci_disconnect(remote);
        return ADAPTER_FAIL(adapter, rc, "the link has gone down");
    }
    *out = remote;
    return 0;
}

static struct chempi_sci_remote *find_remote(struct chempi_adapter_link *link,
                                             uint32_t token)
{
    CHEMPI_LIST_FOR (node, &link->adapter->remotes) {
        struct chempi_sci_remote *remote =
            CHEMPI_CONTAINER_OF(node, struct chempi_sci_remote, link);

        if (remote->at == link && remote->token == token)
            return remote;
    }
    return NULL;
}

/* To the owner, who keeps an account of who is connected. */
static void say_left(const struct chempi_sci_remote *remote)
{
    const struct word leave = {.type = WORD_SEG_LEAVE, .token = remote->token};

    (void)chempi_adapter_link_say(remote->at, &leave, -1, -1); /* else down */
}

void chempi_sci_answered(struct chempi_adapter_link *link,
                         const struct word *word, int fd)
{
    struct chempi_sci_remote *remote = find_remote(link, word->token);
    void *memory;
    size_t len;

    if (!remote || remote->status != -EINPROGRESS) {
        if (fd >= 0)
            (void)close(fd); /* it was given up meanwhile */
        return;
    }
    if (word->status < 0) {
        remote->status = word->status == -ENOENT || word->status == -EACCES
                             ? word->status
                             : -ENOMEM;
        return;
    }
    remote->status = chempi_adapter_map_foreign(link->adapter, fd,
                                                (size_t)word->a, &len, &memory);
    if (remote->status < 0) {
        say_left(remote);
        return;
    }
    remote->memory = memory;
    remote->len = len;
}

void chempi_sci_gone(struct chempi_adapter_link *link, const struct word *word)
{
    struct chempi_sci_remote *remote = find_remote(link, word->token);

    if (remote)
        remote->status = -ENOTCONN;
}

void chempi_sci_link_down(struct chempi_adapter_link *link)
{
    CHEMPI_LIST_FOR (node, &link->adapter->remotes) {
        struct chempi_sci_remote *remote =
            CHEMPI_CONTAINER_OF(node, struct chempi_sci_remote, link);

        if (remote->at == link)
            remote->status = -ENOTCONN;
    }
    drop_users(link, NULL);
}

int chempi_sci_state(const struct chempi_sci_remote *remote)
{
    return remote->status;
}

uint64_t chempi_sci_len(const struct chempi_sci_remote *remote)
{
    return remote->len;
}

void chempi_sci_disconnect(struct chempi_sci_remote *remote)
{
    if (!remote)
        return;
    if (remote->status == 0)
        say_left(remote);
    chempi_list_remove(&remote->link);
    if (remote->memory)
        (void)chempi_sys->munmap(remote->memory, (size_t)remote->len);
    free(remote);
}

void chempi_sci_fini(struct chempi_adapter *adapter)
{
    while (!chempi_list_is_empty(&adapter->remotes))
        chempi_sci_disconnect(
            CHEMPI_CONTAINER_OF(chempi_list_first(&adapter->remotes),
                                struct chempi_sci_remote, link));
    while (!chempi_list_is_empty(&adapter->segments))
        chempi_sci_segment_remove(
            CHEMPI_CONTAINER_OF(chempi_list_first(&adapter->segments),
                                struct chempi_sci_segment, link));
}

/* --- packets --- */

/* A whole aligned line, or a part of one; the last word last if it is one. */
static inline void deliver(unsigned char *dst, const unsigned char *src,
                           size_t len)
{
    if (CHEMPI_LIKELY(len == LINE)) {
        uint64_t last;

        memcpy(dst, src, HEAD);
        memcpy(&last, src + HEAD, sizeof(last));
        atomic_store_explicit((_Atomic uint64_t *)(void *)(dst + HEAD), last,
                              memory_order_release);
        return;
    }
    if (len == sizeof(uint32_t) && (uintptr_t)dst % sizeof(uint32_t) == 0) {
        uint32_t word;

        memcpy(&word, src, sizeof(word));
        atomic_store_explicit((_Atomic uint32_t *)(void *)dst, word,
                              memory_order_release);
        return;
    }
    if (len >= sizeof(uint64_t) &&
        (uintptr_t)(dst + len) % sizeof(uint64_t) == 0) {
        uint64_t last;

        len -= sizeof(last);
        memcpy(dst, src, len);
        memcpy(&last, src + len, sizeof(last));
        atomic_store_explicit((_Atomic uint64_t *)(void *)(dst + len), last,
                              memory_order_release);
        return;
    }
    memcpy(dst, src, len);
}

static void deliver_held(struct chempi_sci_remote *remote, uint32_t which)
{
    struct held_packet *held = &remote->held[which];

    deliver(remote->memory + held->offset, held->bytes, held->len);
    remote->held[which] = remote->held[--remote->held_count];
}

static void deliver_any(struct chempi_sci_remote *remote)
{
    deliver_held(remote, chempi_dice_roll(&remote->at->adapter->dice) %
                             remote->held_count);
}

static uint32_t held_max(const struct chempi_adapter *adapter)
{
    uint32_t buffers = adapter->personality.stream_buffers;

    return adapter->has_personality && buffers < ADAPTER_HELD_MAX
               ? buffers
               : ADAPTER_HELD_MAX;
}

/* One packet on a wicked adapter. */
static void send_packet(struct chempi_sci_remote *remote, uint64_t offset,
                        const unsigned char *src, uint32_t len)
{
    struct chempi_adapter *adapter = remote->at->adapter;
    const struct chempi_faults *m = &adapter->faults;
    struct held_packet *held;

    if (chempi_dice_strikes(&adapter->dice, m->lost_packet)) {
        adapter->counters.packets_lost++;
        remote->has_error = true;
        return;
    }
    if (chempi_dice_strikes(&adapter->dice, m->lost_response)) {
        adapter->counters.packets_lost++;
        remote->has_error = true;
    }
    if (!chempi_dice_strikes(&adapter->dice, m->reorder)) {
        deliver(remote->memory + offset, src, len);
        if (remote->held_count && chempi_dice_roll(&adapter->dice) % 4 == 0)
            deliver_any(remote);
        return;
    }
    if (remote->held_count == held_max(adapter))
        deliver_any(remote);
    held = &remote->held[remote->held_count++];
    held->offset = offset;
    held->len = len;
    memcpy(held->bytes, src, len);
}

/* Cut at the borders of packets and hand to `send`. */
static void cut(struct chempi_sci_remote *remote, uint64_t offset,
                const unsigned char *src, size_t len)
{
    while (len > 0) {
        bool is_line = offset % LINE == 0 && len >= LINE;
        size_t size = is_line ? LINE : PIECE - offset % PIECE;

        size = size < len ? size : len;
        send_packet(remote, offset, src, (uint32_t)size);
        offset += size;
        src += size;
        len -= size;
    }
}

/* The faultless way: parts of lines at both ends, whole lines between. */
static inline void stream(unsigned char *dst, const unsigned char *src,
                          size_t len)
{
    size_t part = (LINE - (uintptr_t)dst % LINE) % LINE;

    part = part < len ? part : len;
    if (part) {
        deliver(dst, src, part);
        dst += part;
        src += part;
        len -= part;
    }
    for (; len >= LINE; len -= LINE) {
        deliver(dst, src, LINE);
        dst += LINE;
        src += LINE;
    }
    if (len)
        deliver(dst, src, len);
}

/* Of long ones only the last line is ordered. */
static inline void stream_surely(unsigned char *dst, const unsigned char *src,
                                 size_t len)
{
    if (len > LONG) {
        size_t last = ((uintptr_t)dst + len - 1) % LINE + 1;

        len -= last;
        chempi_copy(dst, src, len);
        dst += len;
        src += len;
        len = last;
    }
    stream(dst, src, len);
}

static int out_of_range(struct chempi_sci_remote *remote, uint64_t offset,
                        size_t len)
{
    if (remote->status < 0)
        return ADAPTER_FAIL(remote->at->adapter, -ENOTCONN,
                            "the segment or its owner is gone");
    return ADAPTER_FAIL(remote->at->adapter, -ERANGE,
                        "%zu bytes at %" PRIu64 " exceed a segment of %" PRIu64
                        " bytes",
                        len, offset, remote->len);
}

static inline bool is_good(const struct chempi_sci_remote *remote,
                           uint64_t offset, size_t len)
{
    return remote->status == 0 && offset <= remote->len &&
           len <= remote->len - offset;
}

static inline void count(struct chempi_adapter *adapter, uint64_t offset,
                         size_t len)
{
    uint64_t full = 1;
    uint64_t partial = 0;

    if (len != LINE || offset % LINE != 0)
        chempi_timing_model_packets((size_t)offset, len, &full, &partial);
    adapter->counters.packets += full + partial;
    adapter->counters.bytes_stored += len;
}

static inline int store(struct chempi_sci_remote *remote, uint64_t offset,
                        const void *src, size_t len,
                        enum chempi_timing_model_width width)
{
    struct chempi_adapter *adapter = remote->at->adapter;

    if (CHEMPI_UNLIKELY(!is_good(remote, offset, len)))
        return out_of_range(remote, offset, len);
    count(adapter, offset, len);
    chempi_timing_model_store(&adapter->pace, remote, (size_t)offset, len,
                              width);
    if (CHEMPI_UNLIKELY(adapter->is_wicked))
        cut(remote, offset, src, len);
    else
        stream(remote->memory + offset, src, len);
    return 0;
}

int chempi_sci_copy(struct chempi_sci_remote *remote, uint64_t offset,
                    const void *src, size_t len)
{
    return store(remote, offset, src, len, CHEMPI_TIMING_MODEL_WIDE);
}

int chempi_sci_copy_narrow(struct chempi_sci_remote *remote, uint64_t offset,
                           const void *src, size_t len)
{
    return store(remote, offset, src, len, CHEMPI_TIMING_MODEL_NARROW);
}

/* The emulated link is a cache line that moves from core to core. It may as
 * well begin to move early. */
void chempi_sci_expect(const struct chempi_sci_remote *remote, uint64_t offset,
                       size_t len)
{
    if (CHEMPI_UNLIKELY(!is_good(remote, offset, len)))
        return;
    for (size_t at = 0; at < len; at += LINE)
        CHEMPI_PREFETCH_WRITE(remote->memory + offset + at);
}

/* What is stored from now on becomes visible after what was stored before. */
static inline void flush(struct chempi_sci_remote *remote)
{
    while (CHEMPI_UNLIKELY(remote->held_count))
        deliver_any(remote);
    chempi_timing_model_barrier(&remote->at->adapter->pace);
    atomic_thread_fence(memory_order_release);
}

void chempi_sci_store_barrier(struct chempi_sci_remote *remote)
{
    flush(remote);
    atomic_thread_fence(memory_order_seq_cst);
}

int chempi_sci_sequence_start(struct chempi_sci_remote *remote)
{
    if (CHEMPI_UNLIKELY(remote->status < 0))
        return out_of_range(remote, 0, 0);
    remote->has_error = false;
    return 0;
}

int chempi_sci_sequence_check(struct chempi_sci_remote *remote)
{
    flush(remote);
    if (CHEMPI_UNLIKELY(remote->status < 0))
        return out_of_range(remote, 0, 0);
    if (CHEMPI_LIKELY(!remote->has_error))
        return 0;
    remote->has_error = false;
    return ADAPTER_FAIL(remote->at->adapter, -EAGAIN,
                        "the card's error counter was raised");
}

static CHEMPI_NOINLINE int try_surely(struct chempi_sci_remote *remote,
                                      uint64_t offset, const void *src,
                                      size_t len, unsigned tries)
{
    for (unsigned i = 0; i < tries; i++) {
        int rc = chempi_sci_sequence_start(remote);

        if (rc == 0)
            rc = chempi_sci_copy(remote, offset, src, len);
        if (rc == 0)
            rc = chempi_sci_sequence_check(remote);
        if (CHEMPI_LIKELY(rc != -EAGAIN))
            return rc;
    }
    return ADAPTER_FAIL(remote->at->adapter, -EIO,
                        "packets were lost %u times in a row", tries);
}

int chempi_sci_copy_surely(struct chempi_sci_remote *remote, uint64_t offset,
                           const void *src, size_t len, unsigned tries)
{
    struct chempi_adapter *adapter = remote->at->adapter;

    if (CHEMPI_UNLIKELY(!adapter->is_plain || !is_good(remote, offset, len)))
        return try_surely(remote, offset, src, len, tries);
    count(adapter, offset, len);
    stream_surely(remote->memory + offset, src, len);
    atomic_thread_fence(memory_order_release); /* as flush() */
    return 0;
}

int chempi_sci_read(struct chempi_sci_remote *remote, uint64_t offset,
                    void *dst, size_t len)
{
    struct chempi_adapter *adapter = remote->at->adapter;

    if (!is_good(remote, offset, len))
        return out_of_range(remote, offset, len);
    chempi_sci_store_barrier(remote); /* loads do not pass stores */
    chempi_timing_model_read(&adapter->pace, len);
    memcpy(dst, remote->memory + offset, len);
    adapter->counters.bytes_read += len;
    return 0;
}

/* --- remote interrupts --- */

int chempi_sci_interrupt_create(struct chempi_adapter *adapter, uint32_t number)
{
    int rc = check_sci(adapter);

    if (rc < 0)
        return rc;
    if (number >= CHEMPI_SCI_INTERRUPT_MAX)
        return ADAPTER_FAIL(adapter, -EINVAL, "no interrupt %" PRIu32, number);
    if (adapter->page->interrupts_made & 1u << number)
        return ADAPTER_FAIL(adapter, -EEXIST, "interrupt %" PRIu32 " exists",
                            number);
    adapter->page->interrupts_made |= 1u << number;
    return 0;
}

void chempi_sci_interrupt_remove(struct chempi_adapter *adapter,
                                 uint32_t number)
{
    if (number < CHEMPI_SCI_INTERRUPT_MAX)
        adapter->page->interrupts_made &= ~(1u << number);
}

uint32_t chempi_sci_interrupt_take(struct chempi_adapter *adapter,
                                   uint32_t number)
{
    uint32_t now;
    uint32_t fresh;

    if (number >= CHEMPI_SCI_INTERRUPT_MAX)
        return 0;
    now = atomic_load_explicit(&adapter->page->interrupts[number],
                               memory_order_acquire);
    fresh = now - adapter->interrupts_taken[number];
    adapter->interrupts_taken[number] = now;
    return fresh;
}

int chempi_sci_interrupt_trigger(struct chempi_adapter_link *link,
                                 uint32_t number)
{
    struct chempi_adapter *adapter = link->adapter;

    if (CHEMPI_UNLIKELY(link->status != 0))
        return ADAPTER_FAIL(adapter, -ENOTCONN, "the link is not up");
    if (CHEMPI_UNLIKELY(number >= CHEMPI_SCI_INTERRUPT_MAX))
        return ADAPTER_FAIL(adapter, -EINVAL, "no interrupt %" PRIu32, number);
    if (CHEMPI_UNLIKELY(!(link->page->interrupts_made & 1u << number)))
        return ADAPTER_FAIL(adapter, -ENOENT,
                            "interrupt %" PRIu32 " was not made there", number);
    if (chempi_dice_strikes(&adapter->dice, adapter->faults.broken_link)) {
        chempi_adapter_link_fail(link, -ECONNRESET);
        return ADAPTER_FAIL(adapter, -ENOTCONN, "the link broke");
    }
    if (chempi_dice_strikes(&adapter->dice, adapter->faults.lost_interrupt))
        return 0;
    (void)atomic_fetch_add_explicit(&link->page->interrupts[number], 1,
                                    memory_order_release);
    chempi_adapter_notify(link);
    return 0;
}

int chempi_sci_interrupt_call(struct chempi_adapter_link *link, uint32_t number)
{
    const struct chempi_faults *m = &link->adapter->faults;

    if (CHEMPI_LIKELY(link->status == 0 && !chempi_adapter_is_armed(link) &&
                      m->broken_link == 0))
        return 0;
    return chempi_sci_interrupt_trigger(link, number);
}
