/* SPDX-License-Identifier: BSD-3-Clause */
/* System messages and their handlers; see sysmsg.h. */
#include "libchempi/didl/transport/sysmsg.h"

#include <string.h>

#include "common/base/log.h"
#include "libchempi/didl/base/fatal.h"
#include "libchempi/didl/transport/engine.h"

typedef void sysmsg_fn(struct chempi_peer *peer, const uint32_t *words);

struct handler {
    uint32_t len; /* bytes of payload, exactly */
    sysmsg_fn *run;
};

int chempi_sysmsg_send(struct chempi_peer *peer, enum chempi_sysmsg_tag tag,
                       const void *data, size_t len)
{
    return chempi_engine_queue_sysmsg(peer, (int32_t)tag, data, len);
}

void chempi_sysmsg_answer(struct chempi_peer *peer, enum chempi_sysmsg_tag tag,
                          const void *data, size_t len)
{
    if (CHEMPI_UNLIKELY(chempi_sysmsg_send(peer, tag, data, len) != 0))
        chempi_fatal_die(1,
                         "out of memory for an answer to rank %u, which would "
                         "wait for it for ever; use less memory",
                         peer->proc);
}

/* The sync send with this number, or NULL. */
static struct chempi_request *find_sync(struct chempi_peer *peer,
                                        uint32_t serial)
{
    CHEMPI_LIST_FOR (pos, &peer->sync) {
        struct chempi_request *req =
            CHEMPI_CONTAINER_OF(pos, struct chempi_request, match_link);

        if (req->u.tx.env.serial == serial)
            return req;
    }
    return NULL;
}

static void on_matched(struct chempi_peer *peer, const uint32_t *words)
{
    struct chempi_request *req = find_sync(peer, words[0]);

    if (!req)
        return; /* taken back in the meantime */
    chempi_list_remove(&req->match_link);
    req->is_queued = false;
    chempi_request_progress(req, MPI_SUCCESS);
}

static void on_credit(struct chempi_peer *peer, const uint32_t *words)
{
    (void)peer;
    (void)words; /* the envelope has said it */
}

static void on_cancel(struct chempi_peer *peer, const uint32_t *words)
{
    struct chempi_held *held = chempi_match_take_serial(peer, words[0]);
    uint32_t answer[2] = {words[0], held != NULL};

    if (held)
        chempi_engine_drop_held(held);
    chempi_sysmsg_answer(peer, CHEMPI_SYSMSG_CANCEL_ANSWER, answer,
                         sizeof(answer));
}

static void on_cancel_answer(struct chempi_peer *peer, const uint32_t *words)
{
    chempi_request_cancel_answered(peer, words[0], words[1] == 1);
}

static const struct handler handlers[] = {
    [-CHEMPI_SYSMSG_MATCHED] = {4, on_matched},
    [-CHEMPI_SYSMSG_CREDIT] = {0, on_credit},
    [-CHEMPI_SYSMSG_CANCEL] = {4, on_cancel},
    [-CHEMPI_SYSMSG_CANCEL_ANSWER] = {8, on_cancel_answer},
};

void chempi_sysmsg_arrived(struct chempi_peer *peer, int32_t tag,
                           const void *data, uint64_t len)
{
    uint32_t words[CHEMPI_SYSMSG_MAX / 4] = {0};

    if (tag >= 0 || tag < CHEMPI_SYSMSG_LAST || len != handlers[-tag].len) {
        chempi_log(CHEMPI_LOG_WARNING, "sysmsg",
                   "ignored a system message %d of %llu bytes from rank %u",
                   tag, (unsigned long long)len, peer->proc);
        return;
    }
    if (len)
        memcpy(words, data, (size_t)len);
    handlers[-tag].run(peer, words);
}
