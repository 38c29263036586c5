/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into a gateway with "-Wl,--wrap=chempi_neighbors_queue": one that does
 * more than to pass on what rank 0 sends. CHEMPI_TEST_THIEF says what:
 *
 *   FILE     writes every frame to this file
 *   bit      changes a bit in the middle of a frame
 *   clear    takes away the mark that one is sealed
 *   twice    sends one twice
 *   back     sends one back, as if the other had sent it
 *   as-is    sends one back as it is
 *   lose     leaves one out
 *   swap     sends one behind the next
 *   gone     says that rank 1 has finished
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/neighbors/neighbors.h"

#define VICTIM 1u /* number of the frame that something happens to */

int __real_chempi_neighbors_queue(struct chempi_neighbors *neighbors,
                                  uint32_t proc,
                                  struct chempi_neighbor_buf *buf);
int __wrap_chempi_neighbors_queue(struct chempi_neighbors *neighbors,
                                  uint32_t proc,
                                  struct chempi_neighbor_buf *buf);

static struct chempi_neighbor_buf *late; /* swap */

static void keep(const char *path, const struct chempi_neighbor_buf *buf)
{
    FILE *file = fopen(path, "ab");

    if (!file || fwrite(buf->data, buf->len, 1, file) != 1 || fclose(file))
        abort();
}

static struct chempi_neighbor_buf *copy(const struct chempi_neighbor_buf *buf)
{
    struct chempi_neighbor_buf *other = chempi_neighbor_buf_create(buf->len);

    if (!other)
        abort();
    memcpy(other->data, buf->data, buf->len);
    return other;
}

static void send(struct chempi_neighbors *neighbors, uint32_t proc,
                 struct chempi_neighbor_buf *buf)
{
    if (__real_chempi_neighbors_queue(neighbors, proc, buf))
        chempi_neighbor_buf_drop(buf);
}

/* What rank 1 would have sent to rank 0 with the same words. */
static struct chempi_neighbor_buf *turn(const struct chempi_neighbor_buf *buf)
{
    struct chempi_neighbor_buf *other = copy(buf);
    struct chempi_neighbor_wire wire; /* frames need not be aligned */
    uint32_t src;

    memcpy(&wire, other->data, sizeof(wire));
    src = wire.src;
    wire.src = wire.dst;
    wire.dst = src;
    memcpy(other->data, &wire, sizeof(wire));
    return other;
}

static void say_gone(struct chempi_neighbors *neighbors,
                     const struct chempi_neighbor_frame *f)
{
    const struct chempi_neighbor_frame gone = {.kind = CHEMPI_NEIGHBOR_GONE,
                                               .gateway_count = 1,
                                               .at = 1,
                                               .src = f->dst,
                                               .dst = f->src,
                                               .gateways = {f->gateways[0]}};
    uint8_t head[CHEMPI_NEIGHBOR_FIXED_MAX];
    const size_t len = chempi_neighbor_frame_put(head, &gone);
    struct chempi_neighbor_buf *buf = chempi_neighbor_buf_create(len);

    if (!buf)
        abort();
    memcpy(buf->data, head, len);
    send(neighbors, f->src, buf);
}

/* Is there no more to do? */
static bool steal(const char *how, struct chempi_neighbors *neighbors,
                  const struct chempi_neighbor_frame *f, uint32_t proc,
                  struct chempi_neighbor_buf *buf)
{
    if (strcmp(how, "bit") == 0)
        buf->data[buf->len / 2] ^= 1;
    else if (strcmp(how, "clear") == 0)
        chempi_neighbor_frame_set_sealed(buf->data, false);
    else if (strcmp(how, "twice") == 0)
        send(neighbors, proc, copy(buf));
    else if (strcmp(how, "back") == 0)
        send(neighbors, f->src, turn(buf));
    else if (strcmp(how, "as-is") == 0)
        send(neighbors, f->src, copy(buf));
    else if (strcmp(how, "gone") == 0)
        say_gone(neighbors, f);
    else if (strcmp(how, "swap") == 0)
        late = copy(buf);
    return strcmp(how, "lose") == 0 || late;
}

int __wrap_chempi_neighbors_queue(struct chempi_neighbors *neighbors,
                                  uint32_t proc,
                                  struct chempi_neighbor_buf *buf)
{
    const char *how = getenv("CHEMPI_TEST_THIEF");
    struct chempi_neighbor_buf *before = late;
    struct chempi_neighbor_frame f;
    const char *why;
    int rc;

    if (!how || chempi_neighbor_frame_head(buf->data, buf->len, &f, &why) < 0 ||
        f.src != 0 || !chempi_neighbor_is_numbered(f.kind))
        return __real_chempi_neighbors_queue(neighbors, proc, buf);
    if (how[0] == '/')
        keep(how, buf);
    else if (f.seq == VICTIM && !before &&
             steal(how, neighbors, &f, proc, buf)) {
        chempi_neighbor_buf_drop(buf);
        return 0;
    }
    rc = __real_chempi_neighbors_queue(neighbors, proc, buf);
    if (before) {
        late = NULL;
        send(neighbors, proc, before);
    }
    return rc;
}
