/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints of files; doc/files.md has the keys. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_HINTS_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_HINTS_H

#include <stdbool.h>
#include <stdint.h>

struct chempi_comm;
struct chempi_file;
struct chempi_info;

enum chempi_io_choice { CHEMPI_IO_AUTO, CHEMPI_IO_ENABLE, CHEMPI_IO_DISABLE };

/* What the hints come to. Sizes are bytes. */
struct chempi_io_hints {
    uint64_t cb_buffer; /* of an aggregator, per round */
    uint64_t ind_read;  /* of a window of sieving */
    uint64_t ind_write;
    uint64_t stripe;  /* file domains are multiples of it; at least a page */
    uint64_t nodes;   /* aggregators; 0: by the nodes */
    uint64_t perm;    /* of a file that is made, less the umask */
    uint8_t cb_read;  /* enum chempi_io_choice */
    uint8_t cb_write; /* likewise */
    uint8_t ds_read;  /* likewise */
    uint8_t ds_write; /* likewise; ENABLE: read, change and write back */
};

/* Take what is known from info (may be NULL); the rest stays. MPI class. */
int chempi_io_hints_take(struct chempi_io_hints *hints,
                         const struct chempi_info *info);
/* Collective: those of member 0 are everybody's. */
int chempi_io_hints_share(struct chempi_comm *comm,
                          struct chempi_io_hints *hints);
/* Collective: they hold from now on. Waits for accesses under way. */
int chempi_io_hints_put(struct chempi_file *file,
                        const struct chempi_io_hints *hints);
void chempi_io_hints_default(struct chempi_io_hints *hints);
bool chempi_io_hints_are_alike(const struct chempi_io_hints *a,
                               const struct chempi_io_hints *b);
/* Could they have come from chempi_io_hints_take()? */
bool chempi_io_hints_are_sane(const struct chempi_io_hints *hints);

#endif
