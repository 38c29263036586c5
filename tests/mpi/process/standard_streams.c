/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard streams: "cat" copies rank 0's input to its output and says how
 * many bytes the others could read; "lines" writes many long lines from every
 * rank in pieces, to output and error.
 *
 * usage: stdio cat | stdio lines COUNT
 */
#include "check.h"

#include <unistd.h>

static void cat(void)
{
    char part[4096];
    ssize_t len;
    long bytes = 0;
    long others = 0;

    while ((len = read(0, part, sizeof(part))) > 0) {
        bytes += len;
        if (check_rank() == 0)
            fwrite(part, 1, (size_t)len, stdout);
    }
    long mine = check_rank() == 0 ? 0 : bytes;
    MPI_Reduce(&mine, &others, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank() == 0)
        printf("\nrank 0 read %ld bytes, the others %ld\n", bytes, others);
    CHECK(check_rank() != 0 || others == 0, "input went to other ranks");
}

/* A line goes out in two writes, so that whole lines at the far end mean
 * that somebody put them together. */
static void write_line(int fd, char letter, int line)
{
    char text[200];
    int len =
        snprintf(text, sizeof(text), "%c%d:%06d:", letter, check_rank(), line);
    size_t total = 100;

    memset(text + len, 'a' + check_rank() % 26, total - (size_t)len);
    text[total] = '\n';
    for (size_t at = 0; at <= total;) {
        size_t part = at == 0 ? 37 : total + 1 - at;
        ssize_t done = write(fd, text + at, part);
        CHECK_OR_DIE(done > 0, "write failed");
        at += (size_t)done;
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], "cat") == 0)
        cat();
    for (int i = 0; i < check_arg(argc, argv, 2, 0); i++) {
        write_line(1, 'o', i);
        write_line(2, 'e', i);
    }
    return check_finish();
}
