/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where in the program's source a thread is that is inside an MPI call. Only a
 * tool that stands between program and library knows it (libchempi-check).
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_BASE_CALL_SITE_H
#define CHEMPI_LIBCHEMPI_DIDL_BASE_CALL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The call that this thread is in ("MPI_Send"), and its place in words
 * ("ring.c:12"), at most len bytes; false: not known. Any thread; it may start
 * a process and wait for it. */
typedef bool chempi_call_site_find_fn(const char **call, char *place,
                                      size_t len);

/* Has the program gone on? A number that changes when it has; 0: it may go on
 * by itself. Of the thread that asks. */
typedef uint64_t chempi_call_site_moves_fn(void);

#define CHEMPI_CALL_SITE_TEXT 256 /* bytes of a place in words */

/* A number for the call that this thread is in and its place; 0: not known, or
 * there are too many. */
typedef uint16_t chempi_call_site_number_fn(void);
/* Such a number in words: "MPI_Send at ring.c:12". As chempi_call_site_find_fn,
 * it may start a process. */
typedef void chempi_call_site_words_fn(uint16_t site, char *text, size_t len);

/* Before another thread is in MPI. */
void chempi_call_site_set(chempi_call_site_find_fn *find,
                          chempi_call_site_moves_fn *moves,
                          chempi_call_site_number_fn *site,
                          chempi_call_site_words_fn *words);

/* Is there a tool? */
bool chempi_call_site_is_known(void);
/* As the functions above; 0 and "" without a tool. */
uint16_t chempi_call_site_number(void);
void chempi_call_site_words(uint16_t site, char text[CHEMPI_CALL_SITE_TEXT]);

/* As chempi_call_site_find_fn; false without a tool. */
bool chempi_call_site_find(const char **call,
                           char place[CHEMPI_CALL_SITE_TEXT]);
/* The call only, which costs nothing to find. */
bool chempi_call_site_function(const char **call);

/* As chempi_call_site_moves_fn; 0 without a tool. */
uint64_t chempi_call_site_moves(void);

#endif
