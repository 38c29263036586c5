/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading and writing connections of secure jobs, in place of the system's
 * calls: the bytes of frames go through records (common/auth/seal.h), whose
 * bounds have nothing to do with those of frames or reads. What a record has
 * beyond a read is kept until the next one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/devices/tcp/internal.h"

bool chempi_tcp_sealed_is_pending(const struct chempi_tcp_link *link)
{
    return link->seal && link->seal->out.len;
}

ssize_t chempi_tcp_sealed_write(struct chempi_tcp_link *link,
                                const struct iovec *iov, size_t count)
{
    ssize_t total = 0;
    int rc = chempi_seal_flush(link->seal, link->item.fd);

    for (size_t i = 0; rc == 0 && i < count; i++) {
        size_t done = 0;

        while (rc == 0 && done < iov[i].iov_len) {
            const ssize_t n =
                chempi_seal_put(link->seal, (uint8_t *)iov[i].iov_base + done,
                                iov[i].iov_len - done);

            if (n < 0)
                return total ? total : n;
            done += (size_t)n;
            total += n;
            rc = chempi_seal_flush(link->seal, link->item.fd);
        }
    }
    return rc < 0 ? rc : total;
}

/* The bytes of the next record, which is here; 0: end of stream, -EAGAIN: none
 * now. */
static ssize_t find_record(struct chempi_tcp_link *link, bool *is_dry)
{
    for (;;) {
        ssize_t n = chempi_seal_next(link->seal);

        if (n)
            return n;
        if (*is_dry || link->is_sparing)
            return -EAGAIN;
        n = chempi_seal_fill(link->seal, link->item.fd, is_dry);
        link->ep->has_come |= n > 0;
        if (n <= 0 && n != -EINTR)
            return n;
    }
}

/* Open the next record, of len bytes, to link->plain. */
static int open_plain(struct chempi_tcp_link *link, size_t len)
{
    int rc;

    if (!link->plain)
        link->plain = chempi_sys->malloc(CHEMPI_SEAL_PLAIN_MAX);
    if (!link->plain)
        return -ENOMEM;
    rc = chempi_seal_open(link->seal, link->plain);
    if (rc)
        return rc;
    link->plain_head = 0;
    link->plain_len = len;
    return 0;
}

static size_t look_at_plain(const struct chempi_tcp_link *link, uint8_t *to,
                            size_t room)
{
    const size_t n = link->plain_len < room ? link->plain_len : room;

    memcpy(to, link->plain + link->plain_head, n);
    return n;
}

static size_t take_plain(struct chempi_tcp_link *link, uint8_t *to, size_t room)
{
    const size_t n = look_at_plain(link, to, room);

    link->plain_head += n;
    link->plain_len -= n;
    return n;
}

/* Some bytes for the reader, whose room the next record goes to if it has
 * enough; 0: end of stream, -EAGAIN: none now. */
static ssize_t read_some(struct chempi_tcp_link *link, uint8_t *to, size_t room,
                         bool *is_dry)
{
    ssize_t n;
    int rc;

    if (link->plain_len)
        return (ssize_t)take_plain(link, to, room);
    n = find_record(link, is_dry);
    if (n <= 0)
        return n == -EBADMSG ? -EKEYREJECTED : n;
    rc = (size_t)n <= room ? chempi_seal_open(link->seal, to)
                           : open_plain(link, (size_t)n);
    if (rc)
        return rc == -EBADMSG ? -EKEYREJECTED : rc;
    return (size_t)n <= room ? n : (ssize_t)take_plain(link, to, room);
}

ssize_t chempi_tcp_sealed_peek(struct chempi_tcp_link *link, uint8_t *to,
                               size_t room)
{
    bool is_dry = false;
    ssize_t n;
    int rc = 0;

    if (!link->plain_len) {
        n = find_record(link, &is_dry);
        rc = n > 0 ? open_plain(link, (size_t)n) : (int)n;
        if (n == 0 || rc)
            return rc == -EBADMSG ? -EKEYREJECTED : rc;
    }
    return (ssize_t)look_at_plain(link, to, room);
}

ssize_t chempi_tcp_sealed_read(struct chempi_tcp_link *link,
                               const struct iovec *iov, size_t count)
{
    bool is_dry = false;
    ssize_t total = 0;

    for (size_t i = 0; i < count; i++) {
        size_t done = 0;

        while (done < iov[i].iov_len) {
            const ssize_t n = read_some(link, (uint8_t *)iov[i].iov_base + done,
                                        iov[i].iov_len - done, &is_dry);

            if (n <= 0)
                return total ? total : n;
            done += (size_t)n;
            total += n;
        }
    }
    return total;
}

bool chempi_tcp_sealed_has_input(const struct chempi_tcp_link *link)
{
    return link->seal && (link->plain_len || chempi_seal_next(link->seal) != 0);
}

void chempi_tcp_sealed_close(struct chempi_tcp_link *link)
{
    chempi_seal_destroy(link->seal);
    free(link->plain);
    link->seal = NULL;
    link->plain = NULL;
    link->plain_len = 0;
}
