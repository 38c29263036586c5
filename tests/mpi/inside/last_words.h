/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that rank 1 sends to rank 0 before it dies. */
#ifndef CHEMPI_TESTS_MPI_INSIDE_LAST_WORDS_H
#define CHEMPI_TESTS_MPI_INSIDE_LAST_WORDS_H

#include <stdbool.h>

/* Tags: of those that are sent whole, and of one that is only announced. */
enum { LAST_WORDS = 20, LAST_WORDS_LONG = LAST_WORDS, LAST_WORDS_TAGS };
enum { LAST_WORDS_LEN_MAX = 600000 };

extern char last_words_data[LAST_WORDS_LEN_MAX];

void last_words_send(void);
/* When what was sent is in the systems of those that it was sent to: this one's
 * throws away the rest when somebody sends to the dead. */
_Noreturn void last_words_die(void);

int last_words_len(int tag);
/* Into last_words_data; the class. */
int last_words_receive(int tag);
/* Has this one come whole? */
bool last_words_are(int tag);

#endif
