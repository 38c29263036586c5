/* SPDX-License-Identifier: BSD-3-Clause */
/* What the checker says: mistakes at once, what is left at the end in one
 * list for all ranks. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/libchempi-check/check.h"

int check_rank = -1;
pthread_mutex_t check_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Lines of notes, each with its end; the lock of its own guards both. */
static struct {
    pthread_mutex_t lock;
    char *text;
    size_t len;
    _Atomic unsigned long mistakes; /* that were said at once */
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* In one piece, so that lines of ranks do not mix. */
static CHEMPI_PRINTF(1, 0) void say(const char *fmt, va_list args)
{
    char line[CHECK_LINE];
    char whole[CHECK_LINE + 64];

    (void)vsnprintf(line, sizeof(line), fmt, args); /* cut is fine */
    (void)snprintf(whole, sizeof(whole), "check: rank %d: %s\n", check_rank,
                   line);
    (void)fflush(stdout); /* what the program printed before comes first */
    (void)fputs(whole, stderr);
    (void)fflush(stderr);
}

void check_report(const char *fmt, ...)
{
    va_list args;

    atomic_fetch_add(&notes.mistakes, 1);
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

void check_fail(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
    (void)PMPI_Abort(MPI_COMM_WORLD, 1);
    abort(); /* does not happen */
}

void check_note(const char *fmt, ...)
{
    char line[CHECK_LINE];
    va_list args;
    size_t len;
    char *more;

    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args); /* cut is fine */
    va_end(args);
    len = strlen(line) + 1;
    (void)pthread_mutex_lock(&notes.lock);
    more = realloc(notes.text, notes.len + len);
    if (more) {
        memcpy(more + notes.len, line, len);
        notes.text = more;
        notes.len += len;
    }
    (void)pthread_mutex_unlock(&notes.lock);
}

/* ---- the end ---- */

struct line {
    const char *text;
    int rank;
};

static int compare(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    const int order = strcmp(x->text, y->text);

    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* "rank 3", "ranks 0-2, 5" of lines with one text; cut is fine. */
static void put_ranks(const struct line *lines, size_t n, char *out,
                      size_t room)
{
    size_t at = (size_t)snprintf(out, room, "rank%s ",
                                 lines[n - 1].rank > lines[0].rank ? "s" : "");

    for (size_t i = 0; i < n && at < room;) {
        size_t end = i;

        while (end + 1 < n && lines[end + 1].rank <= lines[end].rank + 1)
            end++;
        at += (size_t)snprintf(out + at, room - at, "%s%d", i ? ", " : "",
                               lines[i].rank);
        if (lines[end].rank > lines[i].rank && at < room)
            at += (size_t)snprintf(out + at, room - at, "-%d", lines[end].rank);
        i = end + 1;
    }
}

/* Each text once, with the ranks that have noted it; a rank that has noted it
 * several times: how often. */
static void print_lines(struct line *lines, size_t count)
{
    char ranks[256];

    qsort(lines, count, sizeof(*lines), compare);
    for (size_t i = 0; i < count;) {
        size_t n = 1;
        size_t same = 1;

        while (i + n < count && strcmp(lines[i + n].text, lines[i].text) == 0)
            n++;
        while (same < n && lines[i + same].rank == lines[i].rank)
            same++;
        put_ranks(&lines[i], n, ranks, sizeof(ranks));
        if (same > 1)
            (void)fprintf(stderr, "check: %s: %s (%zu times)\n", ranks,
                          lines[i].text, same);
        else
            (void)fprintf(stderr, "check: %s: %s\n", ranks, lines[i].text);
        i += n;
    }
}

static void print_all(const char *text, const int *lens, int ranks,
                      unsigned long mistakes)
{
    struct line *lines;
    size_t count = 0;
    size_t sum = 0;
    size_t at = 0;

    for (int r = 0; r < ranks; r++)
        sum += (size_t)lens[r];
    lines = calloc(sum + 1, sizeof(*lines));
    if (!lines)
        return;
    for (int r = 0; r < ranks; r++)
        for (const size_t end = at + (size_t)lens[r]; at < end;
             at += strlen(text + at) + 1)
            lines[count++] = (struct line){text + at, r};
    print_lines(lines, count);
    if (mistakes + count == 0)
        (void)fprintf(stderr, "check: no mistakes were found\n");
    (void)fflush(stderr);
    free(lines);
}

void check_print_notes(MPI_Comm shadow)
{
    unsigned long mistakes = atomic_load(&notes.mistakes);
    unsigned long all = 0;
    int len = (int)notes.len;
    int *lens = NULL;
    int *places = NULL;
    char *text = NULL;
    int size = 1;

    (void)PMPI_Comm_size(shadow, &size);
    lens = calloc((size_t)size, sizeof(*lens));
    places = calloc((size_t)size + 1, sizeof(*places));
    if (!lens || !places)
        (void)PMPI_Abort(MPI_COMM_WORLD, 1); /* the others wait */
    (void)PMPI_Reduce(&mistakes, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0,
                      shadow);
    (void)PMPI_Gather(&len, 1, MPI_INT, lens, 1, MPI_INT, 0, shadow);
    for (int r = 0; r < size; r++)
        places[r + 1] = places[r] + lens[r];
    text = malloc((size_t)places[size] + 1);
    if (!text)
        (void)PMPI_Abort(MPI_COMM_WORLD, 1);
    (void)PMPI_Gatherv(notes.text, len, MPI_CHAR, text, lens, places, MPI_CHAR,
                       0, shadow);
    if (check_rank == 0)
        print_all(text, lens, size, all);
    free(text);
    free(lens);
    free(places);
    free(notes.text);
    notes.text = NULL;
    notes.len = 0;
}
