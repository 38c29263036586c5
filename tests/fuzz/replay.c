/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without a fuzzer:
 *     replay             seeds and mutations of them (a unit test)
 *     replay FILE...     these inputs, to look into a finding
 *     replay -seeds DIR  write the seeds, for libFuzzer to start from
 */
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/target.h"

#define MUTATIONS_PER_SEED 4000

static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static uint32_t next_random(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

static const uint8_t odd_bytes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '\n', ':'};

/* Change a few bytes, or cut, or repeat a piece. Returns the new length. */
static size_t mutate(uint8_t *data, size_t len)
{
    uint32_t changes = 1 + next_random(4);

    if (len < 2)
        return len;
    for (uint32_t i = 0; i < changes; i++) {
        size_t at = next_random((uint32_t)len);

        switch (next_random(6)) {
        case 0:
            data[at] = odd_bytes[next_random(sizeof(odd_bytes))];
            break;
        case 1:
            data[at] = (uint8_t)(data[at] ^ (1u << next_random(8)));
            break;
        case 2:
            data[at] = (uint8_t)next_random(256);
            break;
        case 3:
            len = at + 1;
            break;
        case 4:
            memmove(data, data + at, len - at);
            break;
        default:
            memset(data + at, 0xff, len - at < 4 ? len - at : 4);
            break;
        }
    }
    return len;
}

static int run_seeds(void)
{
    static uint8_t seed[FUZZ_INPUT_MAX];
    static uint8_t input[FUZZ_INPUT_MAX];
    unsigned count = 0;
    size_t len;

    while ((len = fuzz_seed(count, seed)) != 0) {
        (void)LLVMFuzzerTestOneInput(seed, len);
        for (int i = 0; i < MUTATIONS_PER_SEED; i++) {
            memcpy(input, seed, len);
            (void)LLVMFuzzerTestOneInput(input, mutate(input, len));
        }
        count++;
    }
    printf("%u seeds, %d mutations each\n", count, MUTATIONS_PER_SEED);
    return count == 0;
}

static int run_file(const char *path)
{
    static uint8_t input[FUZZ_INPUT_MAX];
    FILE *f = fopen(path, "rb");
    size_t len;

    if (!f) {
        perror(path);
        return 1;
    }
    len = fread(input, 1, sizeof(input), f);
    (void)fclose(f);
    return LLVMFuzzerTestOneInput(input, len);
}

static int write_seeds(const char *dir)
{
    static uint8_t seed[FUZZ_INPUT_MAX];
    char path[4096];
    size_t len;

    for (unsigned i = 0; (len = fuzz_seed(i, seed)) != 0; i++) {
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/seed-%u", dir, i);
        f = fopen(path, "wb");
        if (!f) {
            perror(path);
            return 1;
        }
        (void)fwrite(seed, 1, len, f);
        if (fclose(f) != 0) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rc = 0;

    if (argc == 3 && strcmp(argv[1], "-seeds") == 0)
        return write_seeds(argv[2]);
    if (argc == 1)
        return run_seeds();
    for (int i = 1; i < argc; i++)
        rc |= run_file(argv[i]);
    return rc;
}
