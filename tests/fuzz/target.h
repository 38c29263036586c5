/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a fuzz target is. Each file here but replay.c defines these two; it
 * runs under libFuzzer (make fuzz) and under replay.c, which is a unit test:
 * it feeds the target its seeds and a fixed number of mutations of them.
 */
#ifndef CHEMPI_TESTS_FUZZ_TARGET_H
#define CHEMPI_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FUZZ_INPUT_MAX 65536u /* bytes of one input */

/* Feed the parser; must not crash, leak, hang or take memory out of
 * proportion. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Write valid input number i to out; its length, 0 when there are no more. */
size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX]);

/* For fuzz_seed() of a target that reads text. */
static inline size_t fuzz_text(const char *const *seeds, size_t count,
                               unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    size_t len = i < count ? strlen(seeds[i]) : 0;

    memcpy(out, len ? seeds[i] : "", len);
    return len;
}

#endif
