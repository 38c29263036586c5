/* SPDX-License-Identifier: BSD-3-Clause */
/* Times by part; see parts.h. */
#include "common/table/parts.h"

#include <stdbool.h>

static const struct {
    const char *name;
    const char *words;
} parts[] = {
    [CHEMPI_TABLE_FORWARDING] = {"forwarding", "forwarding"},
    [CHEMPI_TABLE_LATENCY] = {"latency", "latency of "},
    [CHEMPI_TABLE_COST] = {"per-message cost", "per-message cost of "},
    [CHEMPI_TABLE_FIRST_CHUNK] = {"first chunk", "the first chunk over "},
    [CHEMPI_TABLE_BYTES] = {"bytes", "the bytes over "},
    [CHEMPI_TABLE_REST] = {"rest", "the rest at the speed of "},
};

void chempi_table_each_part(const struct chempi_table_times *times,
                            uint32_t count, uint64_t chunk, uint64_t len,
                            chempi_table_part_fn *put, void *arg)
{
    const bool is_cut = chunk > 0 && len > chunk;
    double slowest = 0;
    uint32_t slow = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_table_times *t = &times[i];
        const double busy = chempi_table_busy_us(t, chunk);

        if (i > 0)
            put(arg, CHEMPI_TABLE_FORWARDING, i, t->forward_us);
        put(arg, CHEMPI_TABLE_LATENCY, i, t->latency_us);
        if (t->cost_us > 0)
            put(arg, CHEMPI_TABLE_COST, i, t->cost_us);
        if (is_cut)
            put(arg, CHEMPI_TABLE_FIRST_CHUNK, i,
                busy - t->forward_us - t->cost_us);
        else
            put(arg, CHEMPI_TABLE_BYTES, i, (double)len / t->bw_bytes_per_us);
        if (busy > slowest) {
            slowest = busy;
            slow = i;
        }
    }
    if (is_cut)
        put(arg, CHEMPI_TABLE_REST, slow,
            (double)(len - chunk) / (double)chunk * slowest);
}

const char *chempi_table_part_name(enum chempi_table_part part)
{
    return parts[part].name;
}

const char *chempi_table_part_words(enum chempi_table_part part)
{
    return parts[part].words;
}
