/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of other launchers that chempirun has under another form. */
#ifndef CHEMPI_CHEMPID_OTHERS_H
#define CHEMPI_CHEMPID_OTHERS_H

#include <stddef.h>

/* How chempirun says what the option (without dashes, `len` bytes) means; NULL:
 * nobody has such an option. */
const char *chempi_others_answer(const char *name, size_t len);

/* The same for what others map by and bind to; it may have modifiers behind a
 * colon. */
const char *chempi_others_place(const char *text);

/* The same for words that say what is done with output, where chempirun has the
 * name of a file; one of such a name is ./NAME. */
const char *chempi_others_output(const char *text);

#endif
