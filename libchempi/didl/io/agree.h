/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreeing on errors and arguments; see agree.c. All of it is collective. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_AGREE_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_AGREE_H

#include <stdint.h>

struct chempi_comm;
struct chempi_file;

#define CHEMPI_IO_SAME_WORDS 72

/* An argument that is to be alike everywhere. */
struct chempi_io_same {
    const char *name;
    int64_t value;
    const char *text; /* NULL: the number */
};

/*
 * The first member's error, if any has one, with its words; they say whose it
 * was, and name the file. Every member calls it, with its own class.
 */
int chempi_io_agree(struct chempi_file *file, int rc);
/* The same before there is a file. */
int chempi_io_agree_on(struct chempi_comm *comm, const char *path, int rc);
/* The same; and MPI_ERR_NOT_SAME where one of these arguments, of which there
 * are at most CHEMPI_IO_SAME_MAX, differs. */
int chempi_io_agree_args(struct chempi_file *file, int rc,
                         const struct chempi_io_same *same, int count);
/* All of that; without an error *wish becomes the largest of all members'. */
int chempi_io_agree_same(struct chempi_comm *comm, const char *path, int rc,
                         const struct chempi_io_same *same, int count,
                         uint8_t *wish);

#endif
