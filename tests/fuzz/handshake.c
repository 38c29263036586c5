/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What strangers say to a daemon before they have proven a key: the messages
 * of the handshake. The first byte chooses; what follows is said to a daemon
 * that was called, or changes (by exclusive or) one message of two that have
 * the same cluster key. A handshake ends well if nothing was changed, and
 * never if something was.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/handshake.h"
#include "tests/fuzz/target.h"

#define RAW CHEMPI_NOISE_MESSAGES /* the choice of bytes without a caller */

static struct chempi_keys keys[2];

static void make_keys(void)
{
    if (keys[0].cluster_count)
        return;
    for (uint32_t i = 0; i < 2; i++) {
        memset(keys[i].cluster[0], 0x5a, sizeof(keys[i].cluster[0]));
        memset(keys[i].node.secret, (int)i + 1, sizeof(keys[i].node.secret));
        chempi_noise_find_public(&keys[i].node);
        keys[i].cluster_count = 1;
    }
}

static void begin(struct chempi_handshake *hs, bool is_caller)
{
    if (chempi_handshake_init(hs, is_caller, &keys[is_caller], "fuzz", 4, NULL,
                              NULL))
        abort();
}

/* A2: nothing more is taken or said. */
static void check_spent(struct chempi_handshake *hs)
{
    uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX];
    struct chempi_noise_cipher tx;
    struct chempi_noise_cipher rx;
    struct chempi_err err;
    size_t len = 1;

    if (chempi_handshake_need(hs) != 0 ||
        chempi_handshake_step(hs, NULL, 0, out, &len, &err) >= 0 || len != 0 ||
        chempi_handshake_split(hs, &tx, &rx) == 0)
        abort();
}

static void say_raw(const uint8_t *data, size_t size)
{
    uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX];
    struct chempi_handshake hs;
    struct chempi_err err;
    size_t len;
    int rc = 0;

    begin(&hs, false);
    while (rc == 0 && size >= chempi_handshake_need(&hs)) {
        const size_t need = chempi_handshake_need(&hs);

        rc = chempi_handshake_step(&hs, data, need, out, &len, &err);
        data += need;
        size -= need;
    }
    if (rc > 0)
        abort(); /* it holds no key */
    if (rc < 0)
        check_spent(&hs);
    chempi_handshake_fini(&hs);
}

/* Returns whether it was changed. */
static bool change(uint8_t *message, size_t len, const uint8_t *data,
                   size_t size)
{
    bool is_changed = false;

    for (size_t i = 0; i < len && i < size; i++) {
        message[i] ^= data[i];
        is_changed |= data[i] != 0;
    }
    return is_changed;
}

static void say_changed(unsigned which, const uint8_t *data, size_t size)
{
    uint8_t messages[2][CHEMPI_HANDSHAKE_MSG_MAX];
    struct chempi_handshake sides[2];
    struct chempi_err err;
    bool is_changed = false;
    size_t len = 0;
    int rc = 0;

    begin(&sides[0], true);
    begin(&sides[1], false);
    for (unsigned n = 0; rc >= 0 && n <= CHEMPI_NOISE_MESSAGES; n++) {
        struct chempi_handshake *hs = &sides[n % 2];
        size_t out_len;

        if (n == which + 1)
            is_changed = change(messages[(n + 1) % 2], len, data, size);
        rc = chempi_handshake_step(hs, messages[(n + 1) % 2], len,
                                   messages[n % 2], &out_len, &err);
        len = out_len;
        if (rc < 0)
            check_spent(hs);
        if ((rc < 0) != is_changed || (rc < 0 && len != 0))
            abort();
    }
    if (!is_changed && rc != 1)
        abort();
    chempi_handshake_fini(&sides[0]);
    chempi_handshake_fini(&sides[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    make_keys();
    if (size == 0)
        return 0;
    if (data[0] % (RAW + 1) == RAW)
        say_raw(data + 1, size - 1);
    else
        say_changed(data[0] % (RAW + 1), data + 1, size - 1);
    return 0;
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    const size_t len = 1 + CHEMPI_HANDSHAKE_MSG_MAX;

    memset(out, 0, len);
    if (i == 0) { /* magic, and no key */
        out[0] = RAW;
        memcpy(out + 1, "CHEMPIn1", 8);
        return len;
    }
    out[0] = 1; /* the second message, not changed */
    return i == 1 ? len : 0;
}
