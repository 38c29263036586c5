/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tcp device reads from a stranger: greeting, cards, frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/tcp/card.h"
#include "libchempi/devices/tcp/wire.h"
#include "tests/fuzz/target.h"

static void read_frames(const uint8_t *data, size_t size)
{
    size_t at = 0;

    while (at < size) {
        struct chempi_tcp_frame frame;
        const char *why = NULL;
        int n = chempi_tcp_wire_get(data + at, size - at, &frame, &why);

        if (n <= 0)
            break;
        if ((size_t)n > size - at)
            abort(); /* it has read past the end */
        at += (size_t)n;
        at += frame.len < size - at ? frame.len : size - at;
    }
}

static void read_card(const uint8_t *data, size_t size)
{
    struct chempi_address addresses[CHEMPI_TCP_ENTRY_MAX];
    struct chempi_tcp_card card;

    if (chempi_tcp_card_get(data, size, &card) != 0)
        return;
    if (card.count > CHEMPI_TCP_ENTRY_MAX)
        abort();
    for (uint32_t i = 0; i < card.count; i++)
        (void)chempi_tcp_card_choose(&card, &card, card.entries[i].network,
                                     addresses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_tcp_preamble preamble;
    struct chempi_tcp_verdict verdict;

    if (size >= sizeof(preamble))
        (void)chempi_tcp_wire_get_preamble(data, &preamble);
    if (size >= sizeof(verdict))
        (void)chempi_tcp_wire_get_verdict(data, &verdict);
    read_frames(data, size);
    read_card(data, size);
    return 0;
}

static size_t seed_frames(uint8_t *out)
{
    struct chempi_envelope env = {
        .len = 10, .context = 4, .tag = 7, .kind = CHEMPI_KIND_MESSAGE};
    size_t len = chempi_tcp_wire_put_eager(out, &env);

    memset(out + len, 'x', 10);
    len += 10;
    env.len = 1u << 20;
    len += chempi_tcp_wire_put_rts(out + len, &env, 3);
    len += chempi_tcp_wire_put_cts(out + len, 3, 4, 1u << 20);
    len += chempi_tcp_wire_put_data(out + len, 4, 0, 10);
    memset(out + len, 'y', 10);
    len += 10;
    len += chempi_tcp_wire_put_drop(out + len, 3);
    return len + chempi_tcp_wire_put_bye(out + len);
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_tcp_card card = {.count = 2};
    struct chempi_tcp_preamble preamble;
    struct chempi_tcp_verdict verdict;

    switch (i) {
    case 0:
        return seed_frames(out);
    case 1:
        chempi_tcp_wire_put_preamble(&preamble, NULL, 1, 2, 3);
        memcpy(out, &preamble, sizeof(preamble));
        return sizeof(preamble);
    case 2:
        chempi_tcp_wire_put_verdict(&verdict, CHEMPI_TCP_WELCOME);
        memcpy(out, &verdict, sizeof(verdict));
        return sizeof(verdict);
    case 3:
        (void)chempi_address_parse("127.0.0.1", &card.entries[0].address);
        (void)chempi_address_parse("fe80::1", &card.entries[1].address);
        return chempi_tcp_card_put(&card, out);
    default:
        return 0;
    }
}
