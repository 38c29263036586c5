/* SPDX-License-Identifier: BSD-3-Clause */
/* Personality files, words of faults, and the packets of a store. */
#include <criterion/criterion.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/scivia/adapter/model/faults.h"
#include "libchempi/devices/scivia/adapter/model/personality.h"
#include "libchempi/devices/scivia/adapter/model/timing_model.h"

#define SCI                                                                    \
    "packet latency: 1.5 us\nfull latency: 2 us\nfull packet: 730 ns\n"        \
    "partial packet: 0.4 us\n"                                                 \
    "stream buffers: 8\nremote read: 4.4 us\ndma setup: 30 us\n"               \
    "dma bandwidth: 0.2 GB/s\ninterrupt: 12 us\n"

#define VIA                                                                    \
    "interrupt: 12 us\ndoorbell: 1 us\nvia latency: 7 us\n"                    \
    "via bandwidth: 100 MB/s\nregister: 1 us\nregister page: 1 us\n"           \
    "deregister: 1 us\nderegister page: 1 us\ntable regions: 8\n"              \
    "table pages: 64\n"

static int parse(const char *text, struct chempi_personality *p,
                 struct chempi_err *err)
{
    return chempi_personality_parse("t", text, strlen(text), p, err);
}

Test(personality, figures_are_read_with_their_units)
{
    struct chempi_personality p = {.full_ns = 1};
    struct chempi_err err = {.text = ""};

    cr_assert_eq(
        parse("# a card\nname: d312 # old\n\nhalves: sci\n" SCI, &p, &err), 0,
        "%s", err.text);
    cr_expect_str_eq(p.name, "d312");
    cr_expect(p.has_sci && !p.has_via);
    cr_expect_eq(p.latency_ns, 1500);
    cr_expect_eq(p.full_ns, 730);
    cr_expect_eq(p.dma_bytes_per_ms, 200000);
    cr_expect_eq(p.stream_buffers, 8);
}

Test(personality, the_machine_may_be_described_too)
{
    struct chempi_personality p = {.full_ns = 1};
    struct chempi_err err = {.text = ""};

    cr_assert_eq(parse("name: d312\nhalves: sci\n" SCI
                       "store width: 4\nnarrow store: 76 ns\n"
                       "host copy: 226 MB/s\nhost cache: 1.5 MiB\n"
                       "host memory copy: 142.9 MB/s\n",
                       &p, &err),
                 0, "%s", err.text);
    cr_expect_eq(p.store_bytes, 4);
    cr_expect_eq(p.narrow_ns, 76);
    cr_expect_eq(p.host_cache_bytes, 1536u << 10);
    cr_expect_eq(p.host_memory_bytes_per_ms, 142900);
    cr_expect_eq(p.host_small_bytes_per_ms, 0);
}

struct bad {
    const char *text;
    const char *words;
};

static const struct bad bads[] = {
    {"", "t:0: the file ends without name"},
    {"name: a\n", "t:1: the file ends without halves"},
    {"name a\n", "t:1: expected \"key: value\""},
    {"\nname:\n", "t:2: no value for name"},
    {"name: a\nname: b\n", "t:2: a second time: name"},
    {"name: a\nhalves: none\n",
     "t:2: expected \"sci\", \"via\" or \"sci and via\", not none"},
    {"name: a\nspeed: 3\n", "t:2: unknown key: speed"},
    {"name: a\nhalves: sci\nfull packet: 3\n",
     "t:3: expected a time such as \"2.5 us\" (ns, us, ms; at most 1000 ms), "
     "not 3"},
    {"full packet: 2000 ms\n",
     "t:1: expected a time such as \"2.5 us\" (ns, us, ms; at most 1000 ms), "
     "not 2000 ms"},
    {"full packet: -1 ns\n",
     "t:1: expected a time such as \"2.5 us\" (ns, us, ms; at most 1000 ms), "
     "not -1 ns"},
    {"dma bandwidth: 0 MB/s\n",
     "t:1: expected a rate such as \"87.7 MB/s\" (MB/s, GB/s), not 0 MB/s"},
    {"stream buffers: 2.5\n", "t:1: expected a whole number, not 2.5"},
    {"name: a\nhalves: sci\n" SCI "doorbell: 1 us\n",
     "t:12: not a figure of these halves: doorbell"},
    {"name: a\nhalves: sci and via\n" SCI,
     "t:11: the file ends without doorbell"},
    {"store width: 3\n",
     "t:1: expected 1, 2, 4, 8, 16, 32 or 64 (bytes), not 3"},
    {"store width: 128\n",
     "t:1: expected 1, 2, 4, 8, 16, 32 or 64 (bytes), not 128"},
    {"store width: 4 KiB\n",
     "t:1: expected 1, 2, 4, 8, 16, 32 or 64 (bytes), not 4 KiB"},
    {"narrow store: 0 ns\n",
     "t:1: expected a time such as \"2.5 us\" (ns, us, ms; at most 1000 ms), "
     "not 0 ns"},
    {"\nhost cache: 32768\n",
     "t:2: expected a size such as \"32 KiB\" (B, KiB, MiB; 2 KiB to 1 GiB), "
     "not 32768"},
    {"host cache: 1 KiB\n",
     "t:1: expected a size such as \"32 KiB\" (B, KiB, MiB; 2 KiB to 1 GiB), "
     "not 1 KiB"},
    {"host cache: 2000 MiB\n",
     "t:1: expected a size such as \"32 KiB\" (B, KiB, MiB; 2 KiB to 1 GiB), "
     "not 2000 MiB"},
    {"host memory copy: 32 KiB\n",
     "t:1: expected a rate such as \"87.7 MB/s\" (MB/s, GB/s), not 32 KiB"},
    {"name: a\nhalves: sci\n" SCI "store width: 4\n",
     "t:12: the file ends without narrow store"},
    {"name: a\nhalves: sci\n" SCI "narrow store: 76 ns\n",
     "t:12: the file ends without store width"},
    {"name: a\nhalves: via\n" VIA "store width: 4\nnarrow store: 76 ns\n",
     "t:14: not a figure of these halves: store width"},
    {"name: a\nhalves: via\n" VIA "host small copy: 1 GB/s\n",
     "t:13: the file ends without host copy"},
    {"name: a\nhalves: via\n" VIA "host copy: 1 GB/s\nhost cache: 1 MiB\n",
     "t:14: the file ends without host memory copy"},
    {"name: a\nhalves: via\n" VIA
     "host cache: 1 MiB\nhost memory copy: 1 MB/s\n",
     "t:14: the file ends without host copy"},
    {"name: a\nhalves: via\n" VIA
     "host copy: 1 GB/s\nhost memory copy: 1 MB/s\n",
     "t:14: the file ends without host cache"},
    {"name: a123456789012345678901234567890123\n",
     "t:1: too long: a123456789012345678901234567890123"},
};

Test(personality, errors_name_the_line_and_what_was_expected)
{
    for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
        struct chempi_personality p = {.full_ns = 77};
        struct chempi_err err = {.text = ""};

        cr_expect_eq(parse(bads[i].text, &p, &err), -EINVAL);
        cr_expect_str_eq(err.text, bads[i].words);
        cr_expect_eq(p.full_ns, 77);
    }
}

Test(personality, no_cut_of_a_file_does_harm)
{
    static const char text[] = "name: d312\nhalves: sci\n" SCI;
    struct chempi_personality p;

    for (size_t len = 0; len + 1 < sizeof(text); len++) {
        char *copy = malloc(len + 1);

        memcpy(copy, text, len);
        cr_expect_lt(chempi_personality_parse("t", copy, len, &p, NULL),
                     len + 2 < sizeof(text) ? 0 : 1);
        free(copy);
    }
}

Test(personality, the_ones_that_come_along_can_be_read)
{
    const char *root = getenv("CHEMPI_SOURCE_ROOT");
    char pattern[512];
    glob_t found = {0};

    cr_assert_not_null(root);
    (void)snprintf(pattern, sizeof(pattern), "%s/etc/personalities/*.yaml",
                   root);
    cr_assert_eq(glob(pattern, 0, NULL, &found), 0);
    cr_expect_geq(found.gl_pathc, 6);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct chempi_personality p;
        struct chempi_err err = {.text = ""};
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;

        cr_expect_eq(chempi_personality_load(found.gl_pathv[i], &p, &err), 0,
                     "%s", err.text);
        /* A file is called as what it describes. */
        cr_expect_eq(strncmp(name, p.name, strlen(p.name)), 0);
        cr_expect_str_eq(name + strlen(p.name), ".yaml");
    }
    globfree(&found);
    cr_expect_eq(chempi_personality_load("/nonexistent", NULL, NULL), -ENOENT);
}

Test(faults, rates_are_read_by_name)
{
    struct chempi_faults m = {0};
    struct chempi_err err = {.text = ""};

    cr_assert_eq(chempi_faults_parse("seed=99,reorder=200,lost-packet=3,"
                                     "lost-response=4,late=5,"
                                     "lost-interrupt=1000",
                                     &m, &err),
                 0);
    cr_expect_eq(m.seed, 99);
    cr_expect_eq(m.reorder, 200);
    cr_expect_eq(m.lost_packet, 3);
    cr_expect_eq(m.lost_response, 4);
    cr_expect_eq(m.late, 5);
    cr_expect_eq(m.lost_interrupt, 1000);
    cr_expect_eq(chempi_faults_parse("", &m, &err), 0);
    cr_expect_eq(m.reorder, 0);
}

Test(faults, wrong_words_are_refused)
{
    static const char *const wrong[] = {"reorder",
                                        "reorder=",
                                        "reorder=1001",
                                        "reorder=1,reorder=2",
                                        "noise=3",
                                        "late=3x",
                                        "late=-1",
                                        "=5",
                                        "seed=99999999999999999999999"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct chempi_faults m = {.seed = 42};
        struct chempi_err err = {.text = ""};

        cr_expect_eq(chempi_faults_parse(wrong[i], &m, &err), -EINVAL, "%s",
                     wrong[i]);
        cr_expect_eq(m.seed, 42);
        cr_expect_neq(err.text[0], '\0');
    }
}

Test(timing_model, packets_are_counted_as_the_stream_buffers_make_them)
{
    static const struct {
        size_t offset;
        size_t len;
        unsigned full;
        unsigned partial;
    } cases[] = {
        {0, 0, 0, 0},  {0, 64, 1, 0},  {0, 60, 0, 4},  {0, 16, 0, 1},
        {8, 16, 0, 2}, {0, 128, 2, 0}, {32, 64, 0, 4}, {60, 8, 0, 2},
        {0, 65, 1, 1}, {63, 66, 1, 2}, {4, 4, 0, 1},   {128, 64 * 9, 9, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t full = 99;
        uint64_t partial = 99;

        chempi_timing_model_packets(cases[i].offset, cases[i].len, &full,
                                    &partial);
        cr_expect_eq(full, cases[i].full, "case %zu", i);
        cr_expect_eq(partial, cases[i].partial, "case %zu", i);
    }
}
