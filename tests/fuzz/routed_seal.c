/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank opens of what gateways hand on in a secure job: nothing but what
 * its peer has sealed for it, whatever they change. */
#include <stdlib.h>
#include <string.h>

#include "libchempi/neighbors/seal.h"
#include "tests/fuzz/target.h"

#define SEEDS CHEMPI_NEIGHBOR_PART
#define BYTES 40 /* of payload */
#define PEER 1u
#define SELF 2u

static const uint8_t key[CHEMPI_NEIGHBOR_SEAL_KEY] =
    "the key of ranks in this target";

/* A frame in clear from PEER to SELF; its length. */
static size_t put_plain(unsigned i, uint8_t *out)
{
    struct chempi_neighbor_frame frame = {
        .kind = (uint8_t)(i + 1),
        .gateway_count = (uint8_t)(i % 3 + 1),
        .src = PEER,
        .dst = SELF,
        .seq = 77,
        .ack = 66,
        .gateways = {8, 9, 10},
        .env = {.len = BYTES, .context = 4, .kind = CHEMPI_KIND_MESSAGE},
        .sender = 1,
        .receiver = 2,
        .number = BYTES,
    };
    size_t len;

    if (frame.kind == CHEMPI_NEIGHBOR_PART)
        frame.env.len = 2 * BYTES; /* the second half of it */
    len = chempi_neighbor_frame_put(out, &frame);
    if (frame.kind != CHEMPI_NEIGHBOR_EAGER &&
        frame.kind != CHEMPI_NEIGHBOR_DATA &&
        frame.kind != CHEMPI_NEIGHBOR_PART)
        return len;
    memset(out + len, 'x', BYTES);
    return len + BYTES;
}

/* A gateway may count on its way (`at`), and change nothing else. */
static bool is_known(const uint8_t *opened, size_t len)
{
    uint8_t plain[CHEMPI_NEIGHBOR_FIXED_MAX + BYTES];
    uint8_t again[CHEMPI_NEIGHBOR_FIXED_MAX];
    struct chempi_neighbor_frame f;
    const char *why;
    size_t head;

    if (chempi_neighbor_frame_get(opened, len, &f, &why))
        return false;
    f.at = 0;
    f.flags = 0;
    head = chempi_neighbor_frame_put(again, &f);
    for (unsigned i = 0; i < SEEDS; i++) {
        if (put_plain(i, plain) == len && memcmp(plain, again, head) == 0 &&
            memcmp(plain + head, opened + head, len - head) == 0)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_neighbor_seal seal = {.is_ready = false};
    uint8_t *opened = malloc(size ? size : 1);
    const char *why = NULL;
    int n;

    if (!opened)
        return 0;
    chempi_neighbor_seal_init(&seal, key, SELF, PEER);
    n = chempi_neighbor_seal_get(&seal, data, size, 70, 60, opened, &why);
    if (n >= 0 ? !is_known(opened, (size_t)n) : !why)
        abort(); /* opened, and nobody has sealed it; or refused without words
                  */
    if (n >= 0 &&
        chempi_neighbor_seal_get(&seal, data, size, 70, 60, opened, &why) >= 0)
        abort(); /* opened twice */
    free(opened);
    return 0;
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_neighbor_seal seal = {.is_ready = false};
    size_t len;

    if (i >= SEEDS)
        return 0;
    chempi_neighbor_seal_init(&seal, key, PEER, SELF);
    len = put_plain(i, out);
    chempi_neighbor_seal_put(
        &seal, out, len, chempi_neighbor_is_numbered((uint8_t)(i + 1)) ? 77 : 0,
        66);
    return len + CHEMPI_NEIGHBOR_SEAL_BYTES;
}
