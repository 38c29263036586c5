/* SPDX-License-Identifier: BSD-3-Clause */
/* Personality files and words of faults of the emulated SCI/VIA adapter. */
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/scivia/adapter/model/faults.h"
#include "libchempi/devices/scivia/adapter/model/personality.h"
#include "tests/fuzz/target.h"

static const char *const seeds[] = {
    "name: card # a comment\nhalves: sci\npacket latency: 1.5 us\n"
    "full packet: 730 ns\npartial packet: 0.4 us\nstream buffers: 8\n"
    "remote read: 4.4 us\ndma setup: 30 us\ndma bandwidth: 0.2 GB/s\n"
    "interrupt: 12 us\n",
    "name: myri\n\nhalves: via\ndoorbell: 1 us\nvia latency: 10 us\n"
    "via bandwidth: 95 MB/s\nregister: 5.3 us\nregister page: 1.42 us\n"
    "deregister: 3.1 us\nderegister page: 390 ns\ntable regions: 2048\n"
    "table pages: 32768\n",
    ("seed=99,reorder=200,lost-packet=3,lost-response=4,late=5,"
     "lost-interrupt=1000"),
};

static void read_faults(const uint8_t *data, size_t size)
{
    struct chempi_faults faults;
    char *text = malloc(size + 1);

    if (!text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    if (chempi_faults_parse(text, &faults, NULL) == 0 &&
        (faults.reorder > CHEMPI_FAULTS_RATE_MAX ||
         faults.lost_packet > CHEMPI_FAULTS_RATE_MAX ||
         faults.lost_response > CHEMPI_FAULTS_RATE_MAX ||
         faults.late > CHEMPI_FAULTS_RATE_MAX ||
         faults.lost_interrupt > CHEMPI_FAULTS_RATE_MAX))
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_personality made;
    struct chempi_err err;

    if (chempi_personality_parse("f", (const char *)data, size, &made, &err) ==
        0) {
        if (!memchr(made.name, '\0', sizeof(made.name)) ||
            (!made.has_sci && !made.has_via))
            abort();
        /* What is divided by may not be 0. */
        if ((made.has_sci && !made.dma_bytes_per_ms) ||
            (made.has_via && !made.via_bytes_per_ms))
            abort();
    } else if (err.code >= 0 || err.text[0] == '\0') {
        abort();
    }
    read_faults(data, size);
    return 0;
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    return fuzz_text(seeds, sizeof(seeds) / sizeof(seeds[0]), i, out);
}
