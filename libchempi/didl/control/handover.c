/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors from process to process; see handover.h. */
#define _GNU_SOURCE /* accept4, SO_PEERCRED */
#include "libchempi/didl/control/handover.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/fd/rights.h"
#include "libchempi/didl/control/store.h"

#define PROOF_BYTES 32u
#define AUTOBIND_MAX 8u /* bytes of a name that the kernel has chosen */

/* The first message; those that follow have one byte. */
struct head {
    uint8_t proof[PROOF_BYTES];
    uint32_t count;
};

static void make_proof(const char *name, const uint8_t *secret, uint32_t count,
                       uint8_t proof[PROOF_BYTES])
{
    char text[96];
    const int len = snprintf(text, sizeof(text),
                             "chempi hand-over of %u to %.31s", count, name);

    (void)crypto_generichash(proof, PROOF_BYTES, (const uint8_t *)text,
                             (unsigned long long)len, secret,
                             CHEMPI_JOB_SECRET_BYTES);
}

static bool is_own_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           peer.uid == geteuid();
}

int chempi_handover_listen(char name[CHEMPI_HANDOVER_NAME_MAX],
                           struct chempi_err *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(addr);
    size_t bytes;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = fd < 0 ? -errno : 0;

    chempi_rights_refuse(fd); /* of strangers */
    if (!rc && (bind(fd, (struct sockaddr *)&addr, sizeof(sa_family_t)) < 0 ||
                listen(fd, 8) < 0 ||
                getsockname(fd, (struct sockaddr *)&addr, &len) < 0))
        rc = -errno;
    bytes = len - offsetof(struct sockaddr_un, sun_path);
    if (!rc && (bytes < 2 || bytes > AUTOBIND_MAX))
        rc = -EPROTO;
    if (rc) {
        if (fd >= 0)
            (void)close(fd); /* nothing was written to it */
        return chempi_err_set(err, rc,
                              "cannot listen for the other ranks of this node: "
                              "%s",
                              chempi_err_name(rc));
    }
    (void)sodium_bin2hex(name, CHEMPI_HANDOVER_NAME_MAX,
                         (const uint8_t *)addr.sun_path, bytes);
    return fd;
}

static int connect_to(const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t len;
    int fd;

    if (sodium_hex2bin((uint8_t *)addr.sun_path, AUTOBIND_MAX, name,
                       strlen(name), NULL, &len, NULL) != 0)
        return -EPROTO;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    len += offsetof(struct sockaddr_un, sun_path);
    if (connect(fd, (struct sockaddr *)&addr, (socklen_t)len) < 0) {
        const int rc = -errno;

        (void)close(fd); /* nothing was written to it */
        return rc;
    }
    return fd;
}

static int send_bunch(int fd, const void *data, size_t len, const int *fds,
                      uint32_t count)
{
    const uint64_t deadline_ns =
        chempi_clock_ns() + CHEMPI_STORE_LIMIT_MS * CHEMPI_NS_PER_MS;

    while (chempi_rights_send_fds(fd, data, len, fds, count, 0) < 0)
        if ((errno == ETOOMANYREFS || errno == EPERM) &&
            chempi_clock_ns() < deadline_ns)
            /* Until others have taken theirs, or know who this is. */
            (void)poll(NULL, 0, 1);
        else if (errno != EINTR)
            return -errno;
    return 0;
}

static uint32_t bunch_of(uint32_t left)
{
    return left < CHEMPI_RIGHTS_MAX ? left : CHEMPI_RIGHTS_MAX;
}

int chempi_handover_bring(const char *name,
                          const uint8_t secret[CHEMPI_JOB_SECRET_BYTES],
                          const int *fds, uint32_t count,
                          struct chempi_err *err)
{
    struct head head = {.count = count};
    uint32_t done = 0;
    int fd = connect_to(name);
    int rc = fd < 0 ? fd : 0;

    if (!rc && !is_own_user(fd))
        rc = -EACCES;
    make_proof(name, secret, count, head.proof);
    while (!rc && done < count) {
        const uint32_t n = bunch_of(count - done);

        rc = send_bunch(fd, &head, done ? 1 : sizeof(head), fds + done, n);
        done += n;
    }
    if (fd >= 0)
        chempi_rights_close(fd); /* what was sent stays with the receiver */
    return rc ? chempi_err_set(err, rc,
                               "cannot hand shared memory to another rank of "
                               "this node: %s",
                               chempi_err_name(rc))
              : 0;
}

static void close_all(const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)close(fds[i]); /* memory files and events have no late errors */
}

/* One message with at most `most` descriptors: how many it has, or -errno. */
static int receive_bunch(int fd, void *data, size_t len, int *fds,
                         uint32_t most)
{
    size_t count;

    if (chempi_rights_recv_fds(fd, data, len, fds, bunch_of(most), &count, 0) ==
            (ssize_t)len &&
        count > 0)
        return (int)count;
    close_all(fds, (uint32_t)count);
    return -EPROTO;
}

/* Once connected, the bringer sends all without waiting. */
static int wait_for(int fd, uint64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        const uint64_t now = chempi_clock_ns();

        if (now >= deadline_ns)
            return -ETIMEDOUT;
        if (poll(&p, 1, (int)((deadline_ns - now) / CHEMPI_NS_PER_MS) + 1) > 0)
            return 0;
    }
}

static int take_from(int fd, const char *name, const uint8_t *secret, int *fds,
                     uint32_t count, uint64_t deadline_ns)
{
    uint8_t proof[PROOF_BYTES];
    struct head head;
    uint32_t done = 0;

    make_proof(name, secret, count, proof);
    if (!is_own_user(fd))
        return -EACCES;
    chempi_rights_allow(fd);
    while (done < count) {
        const bool is_first = done == 0;
        int n = wait_for(fd, deadline_ns);

        if (n == 0)
            n = receive_bunch(fd, &head, is_first ? sizeof(head) : 1,
                              fds + done, count - done);
        if (n > 0)
            done += (uint32_t)n;
        if (n > 0 && is_first &&
            (head.count != count ||
             sodium_memcmp(head.proof, proof, sizeof(proof)) != 0))
            n = -EACCES;
        if (n < 0) {
            close_all(fds, done);
            return n;
        }
    }
    return 0;
}

int chempi_handover_take(int listener, const char *name,
                         const uint8_t secret[CHEMPI_JOB_SECRET_BYTES],
                         int *fds, uint32_t count, struct chempi_err *err)
{
    const uint64_t deadline_ns =
        chempi_clock_ns() + CHEMPI_STORE_LIMIT_MS * CHEMPI_NS_PER_MS;
    int rc;

    do { /* a stranger that knocks is sent away */
        int fd;

        rc = wait_for(listener, deadline_ns);
        if (rc)
            break;
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            rc = errno == EMFILE || errno == ENFILE ? -errno : -EAGAIN;
            continue;
        }
        rc = take_from(fd, name, secret, fds, count, deadline_ns);
        if (rc)
            chempi_rights_close(fd);
        else
            (void)close(fd); /* of a rank of this job */
    } while (rc == -EAGAIN || rc == -EACCES || rc == -EPROTO);
    return rc ? chempi_err_set(err, rc,
                               "no shared memory came from the first rank of "
                               "this node: %s",
                               chempi_err_name(rc))
              : 0;
}
