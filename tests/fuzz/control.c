/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages: frames over a socket, and every kind of field in them. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/control/channel.h"
#include "common/control/wire.h"
#include "tests/fuzz/target.h"

#define IN_MAX 4096u

/* Let the payload choose which fields it is read as. */
static uint64_t read_fields(const struct chempi_frame *frame)
{
    struct chempi_reader r;
    const uint8_t *blob;
    uint64_t sum = 0;
    size_t len = 0;

    chempi_wire_read(&r, frame->data, frame->len);
    for (unsigned i = 0; !r.is_bad && !chempi_wire_is_done(&r); i++) {
        switch ((frame->type + i) % 7) {
        case 0:
            sum += chempi_wire_get_u8(&r);
            break;
        case 1:
            sum += chempi_wire_get_u32(&r);
            break;
        case 2:
            sum += chempi_wire_get_u64(&r);
            break;
        case 3:
            sum += strlen(chempi_wire_get_str(&r, 64));
            break;
        case 4:
            blob = chempi_wire_get_blob(&r, 64, &len);
            sum += len ? blob[len - 1] : 0u;
            break;
        case 5:
            sum += chempi_wire_get_count(&r, 1000, 4);
            break;
        default:
            sum += chempi_wire_get_u16(&r);
            break;
        }
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_channel channel;
    struct chempi_frame frame;
    volatile uint64_t sum = 0;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        return 0;
    (void)!write(fds[0], data, size);
    (void)close(fds[0]);
    chempi_channel_init(&channel, fds[1], IN_MAX, IN_MAX);
    while (chempi_channel_fill(&channel) == 1) {
        int rc;

        while ((rc = chempi_channel_next(&channel, &frame)) == 1)
            sum = sum + read_fields(&frame);
        if (rc < 0)
            break;
    }
    chempi_channel_fini(&channel);
    return 0;
}

/* Three frames whose types make the reader begin with different fields. */
size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    struct chempi_writer w = {.data = NULL};
    size_t len = 0;

    if (i >= 7)
        return 0;
    for (unsigned k = 0; k < 3; k++) {
        struct chempi_writer payload = {.data = NULL};

        for (unsigned n = 0; n < 7; n++) {
            chempi_wire_put_str(&payload, "node[00-31]");
            chempi_wire_put_u64(&payload, n);
            chempi_wire_put_blob(&payload, "blob", 4);
        }
        chempi_wire_put_u32(&w, (uint32_t)payload.len);
        chempi_wire_put_u16(&w, (uint16_t)(i + k));
        chempi_wire_put_u16(&w, CHEMPI_FRAME_MAGIC);
        chempi_wire_put_u64(&w, k);
        chempi_wire_put_raw(&w, payload.data, payload.len);
        chempi_wire_clear(&payload);
    }
    if (!w.error && w.len <= FUZZ_INPUT_MAX) {
        memcpy(out, w.data, w.len);
        len = w.len;
    }
    chempi_wire_clear(&w);
    return len;
}
