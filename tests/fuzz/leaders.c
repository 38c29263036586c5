/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What leaders of other worlds are believed: the first byte chooses whether the
 * rest is the name of a port, what a stranger says to one, what a proven caller
 * says (sealed; the second byte cuts it into pieces), or what comes over a
 * user's socket.
 */
#define _GNU_SOURCE /* MSG_NOSIGNAL */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/auth/seal.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/proc/internal.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/proc/port_name.h"
#include "libchempi/services/pollset.h"
#include "tests/fuzz/target.h"

enum { NAME, STRANGER, PROVEN, JOIN, CHOICES };

static void pump(void)
{
    struct chempi_pollset *set = chempi_ctx.services.pollset;

    for (int i = 0; i < 100; i++) {
        if (chempi_pollset_collect(set, 0) <= 0)
            return;
        (void)chempi_pollset_dispatch(set);
    }
}

/* What is read can be written, and is the same then. */
static void read_name(const uint8_t *data, size_t size)
{
    struct chempi_port_name name;
    struct chempi_port_name again;
    char *text = calloc(1, size + 1);
    char written[CHEMPI_PORT_NAME_MAX];

    if (!text)
        abort();
    memcpy(text, data, size);
    if (chempi_port_name_read(text, &name) == 0) {
        chempi_port_name_write(&name, written);
        if (chempi_port_name_read(written, &again) != 0 ||
            memcmp(&name, &again, sizeof(name)) != 0)
            abort();
    }
    free(text);
}

static void put(int fd, const uint8_t *data, size_t size)
{
    if (size && send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* it has hung up */
}

/* It gets no answer. */
static void be_stranger(const uint8_t *data, size_t size)
{
    static char name[CHEMPI_PORT_NAME_MAX]; /* of a port that stays */
    struct chempi_port_name parts;
    uint8_t answer;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if ((!*name && chempi_port_open(NULL, "127.0.0.1", name, NULL) != 0) ||
        chempi_port_name_read(name, &parts) != 0 ||
        connect(fd, &parts.addresses[0].u.sa,
                chempi_address_len(&parts.addresses[0])) != 0)
        abort();
    pump();
    put(fd, data, size / 2);
    pump();
    put(fd, data + size / 2, size - size / 2);
    pump();
    if (recv(fd, &answer, 1, MSG_DONTWAIT) > 0)
        abort();
    (void)close(fd);
    pump();
}

static void take_all(struct chempi_exchange *x)
{
    void *message;
    size_t len;

    while (chempi_exchange_take(x, &message, &len, NULL) == 0) {
        volatile uint8_t sum = 0; /* all readable? */

        for (size_t i = 0; i < len; i++)
            sum ^= ((const uint8_t *)message)[i];
        (void)sum;
        free(message);
    }
}

static struct chempi_seal *make_seal(void)
{
    struct chempi_noise_cipher cipher = {.has_key = true};
    struct chempi_seal *seal = chempi_seal_create(&cipher, &cipher);

    if (!seal)
        abort();
    return seal;
}

static void be_proven(const uint8_t *data, size_t size)
{
    const size_t piece = size ? 1 + data[0] % 64u : 1;
    struct chempi_exchange *x = chempi_exchange_create();
    struct chempi_seal *seal = make_seal();
    int fds[2];

    if (!x || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        abort();
    chempi_exchange_open(x, fds[0], true, make_seal());
    for (size_t at = 1; at < size; at += piece) {
        if (chempi_seal_put(seal, data + at,
                            size - at < piece ? size - at : piece) < 0 ||
            chempi_seal_flush(seal, fds[1]) < 0)
            break; /* it has hung up */
        take_all(x);
        pump();
    }
    (void)close(fds[1]);
    take_all(x);
    pump();
    take_all(x);
    if (chempi_exchange_state(x, NULL) >= 0)
        abort(); /* the end was overlooked */
    chempi_exchange_close(x);
    chempi_seal_destroy(seal);
}

static void be_joined(const uint8_t *data, size_t size)
{
    struct chempi_exchange *x;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 ||
        chempi_exchange_join(fds[0], &x, NULL) != 0)
        abort();
    put(fds[1], data, size);
    pump();
    if (chempi_exchange_state(x, NULL) > 0)
        abort(); /* it has no key */
    (void)shutdown(fds[1], SHUT_RDWR);
    pump();
    if (chempi_exchange_state(x, NULL) >= 0)
        abort(); /* the end was overlooked */
    chempi_exchange_close(x);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const choices[CHOICES])(const uint8_t *data, size_t size) = {
        [NAME] = read_name,
        [STRANGER] = be_stranger,
        [PROVEN] = be_proven,
        [JOIN] = be_joined,
    };

    if (!chempi_ctx.services.pollset &&
        chempi_pollset_create(&chempi_ctx.services.pollset) != 0)
        abort();
    if (size)
        choices[data[0] % CHOICES](data + 1, size - 1);
    return 0;
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_port_name name = {.count = 2};
    char text[CHEMPI_PORT_NAME_MAX];
    size_t len = 150;

    if (i >= CHOICES)
        return 0;
    memset(out, 0, len + 1);
    out[0] = (uint8_t)i;
    if (i == NAME) {
        (void)chempi_address_parse("::1", &name.addresses[0]);
        (void)chempi_address_parse("10.1.2.3", &name.addresses[1]);
        chempi_address_set_port(&name.addresses[0], 1);
        chempi_address_set_port(&name.addresses[1], 65535);
        chempi_port_name_write(&name, text);
        len = strlen(text);
        memcpy(out + 1, text, len);
    } else if (i == PROVEN) { /* messages of 0, 3 and 100 bytes */
        out[1] = 20;
        out[6] = 3;
        out[13] = 100;
    } else {
        memcpy(out + 1, i == JOIN ? "CHEMPIj1" : "CHEMPIn1", 8);
    }
    return len + 1;
}
