/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of processors, and their spelling as the kernel's lists: "0-3,8".
 */
#ifndef CHEMPI_COMMON_HOST_CPUS_H
#define CHEMPI_COMMON_HOST_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_CPUS_MAX 8192u      /* largest processor number, plus one */
#define CHEMPI_CPUS_TEXT_MAX 4096u /* bytes of a list; longer ones are cut */

struct chempi_cpus {
    uint8_t bits[CHEMPI_CPUS_MAX / 8];
};

static inline bool chempi_cpus_has(const struct chempi_cpus *cpus, uint32_t cpu)
{
    return cpus->bits[cpu / 8] & (1u << (cpu % 8));
}

static inline void chempi_cpus_add(struct chempi_cpus *cpus, uint32_t cpu)
{
    cpus->bits[cpu / 8] |= (uint8_t)(1u << (cpu % 8));
}

static inline void chempi_cpus_join(struct chempi_cpus *cpus,
                                    const struct chempi_cpus *more)
{
    for (size_t i = 0; i < sizeof(cpus->bits); i++)
        cpus->bits[i] |= more->bits[i];
}

uint32_t chempi_cpus_count(const struct chempi_cpus *cpus);

/* The list that a text begins with; *text is then behind it. -EINVAL: there is
 * none, or it names a processor beyond CHEMPI_CPUS_MAX; *text is where. */
int chempi_cpus_scan(const char **text, struct chempi_cpus *cpus);
/* A text that is a list, perhaps with a newline behind it; errors as above. */
int chempi_cpus_parse(const char *text, struct chempi_cpus *cpus);

/* The list, without the ranges that have no room: false if there are such. */
bool chempi_cpus_format(const struct chempi_cpus *cpus, char *text,
                        size_t size);

/* Those that the calling thread may run on, or the thread `tid` of this
 * process (0: the caller), and to change them. 0 or -errno. */
int chempi_cpus_get(struct chempi_cpus *cpus);
int chempi_cpus_get_of(int tid, struct chempi_cpus *cpus);
int chempi_cpus_set(int tid, const struct chempi_cpus *cpus);

#endif
