/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What root's helper reads of the daemon that has given up root: packets, with
 * descriptors or without. An input is
 *
 *     u8 how many descriptors come along, the packet
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC, O_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/helper/helper.h"
#include "chempid/helper/passing.h"
#include "common/fd/rights.h"
#include "tests/fuzz/target.h"

#define FDS_MAX 3

static void send_packet(int to, const uint8_t *data, size_t len, size_t count)
{
    const int fds[FDS_MAX] = {to, to, to};

    if (chempi_rights_send_fds(to, data, len, fds, count, MSG_DONTWAIT) !=
        (ssize_t)len)
        abort(); /* the socket is empty: there is room */
}

static void check_order(const struct chempi_helper_order *o, bool has_fd)
{
    if (!chempi_helper_is_order(o, has_fd))
        return;
    if (o->what == CHEMPI_HELPER_START
            ? !has_fd || o->limit_count > RLIM_NLIMITS || o->is_known > 1
            : has_fd)
        abort();
    if (o->what == CHEMPI_HELPER_OPEN && o->number >= CHEMPI_HELPER_FILES)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_helper_order order;
    int pair[2];
    size_t count;
    int fd;
    int rc;
    int spare;

    if (size < 1 || size > 4096 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return 0;
    count = data[0] % (FDS_MAX + 1);
    send_packet(pair[0], data + 1, size - 1, count);
    rc = chempi_passing_receive(pair[1], &order, sizeof(order), &fd);
    if ((rc == 1) != (size - 1 == sizeof(order) && count <= 1))
        abort(); /* taken, and another length or more descriptors */
    if ((fd >= 0) != (rc == 1 && count == 1))
        abort();
    if (rc == 1)
        check_order(&order, fd >= 0);
    if (fd >= 0)
        (void)close(fd);
    (void)close(pair[0]);
    (void)close(pair[1]);
    spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (spare > 64)
        abort(); /* descriptors stay open */
    if (spare >= 0)
        (void)close(spare);
    return 0;
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    const uint32_t what[] = {CHEMPI_HELPER_START, CHEMPI_HELPER_KILL,
                             CHEMPI_HELPER_LET_GO, CHEMPI_HELPER_OPEN};
    struct chempi_helper_order order = {.number = 1, .uid = 1000, .gid = 1000};

    if (i >= 2 * sizeof(what) / sizeof(*what))
        return 0;
    order.what = what[i / 2];
    order.limit_count = i % 2 ? RLIM_NLIMITS : 0;
    out[0] = order.what == CHEMPI_HELPER_START ? 1 : (uint8_t)(i % 2);
    memcpy(out + 1, &order, sizeof(order));
    return 1 + sizeof(order);
}
