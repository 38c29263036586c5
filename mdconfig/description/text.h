/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words of a description and of a command line: times and bandwidths with their
 * units, in both directions, sizes as they are written (common/words/size.h
 * reads them), and suggestions for misspelt words. No function depends on the
 * locale.
 */
#ifndef CHEMPI_MDCONFIG_TEXT_H
#define CHEMPI_MDCONFIG_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define CHEMPI_TEXT_QUANTITY_MAX 32 /* bytes with the terminating zero */

/*
 * A number, perhaps with a fraction, and a unit. 0, or -EINVAL: no number;
 * -ENOTSUP: no such unit; -ERANGE: too large.
 */

/* ns, us (or none), ms, s. */
int chempi_text_time(const char *text, double *us);
/* B/s, kB/s, MB/s (or none), GB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s,
 * Mbit/s, Gbit/s, Tbit/s. */
int chempi_text_bandwidth(const char *text, double *bytes_per_us);

/*
 * A figure that was measured, with its spread: "31.2 us ± 4 %", or "+-"
 * in place of the sign. Copies what stands before the sign; *spread is a
 * fraction, 0 without any. 0, or -EINVAL: what follows the sign is no
 * percentage; -ERANGE: too long, or beyond 1000 %.
 */
int chempi_text_split_spread(const char *text, char *figure, size_t size,
                             double *spread);

/* The units of each kind in words, for messages. */
extern const char chempi_text_time_units[];
extern const char chempi_text_bandwidth_units[];

/* Words, for as long as the expression that has them: put_size(n).text. */
struct chempi_text_quantity {
    char text[CHEMPI_TEXT_QUANTITY_MAX];
};

/* "64 KiB", "100 B", "any size" for UINT64_MAX; exact. */
struct chempi_text_quantity chempi_text_put_size(uint64_t bytes);
/* "412 us", "1.25 ms"; three or four significant digits. */
struct chempi_text_quantity chempi_text_put_time(double us);
/* "87.7 MB/s" */
struct chempi_text_quantity chempi_text_put_bandwidth(double bytes_per_us);

/* A time or a bandwidth in the unit that `model` uses, or, when that is no
 * such quantity, in the one that the functions above choose. */
struct chempi_text_quantity chempi_text_put_time_like(double us,
                                                      const char *model);
struct chempi_text_quantity chempi_text_put_bandwidth_like(double bytes_per_us,
                                                           const char *model);

/* "s" unless the number is one. */
const char *chempi_text_plural(uint64_t number);

/* The word of a list (of `count`) most like `word`, or NULL when none is
 * near: a third of its letters may differ, or it is the beginning. */
const char *chempi_text_suggest(const char *word, const char *const *list,
                                size_t count);

#endif
