/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exchange whose last member does not do its part: every other one hears
 * why and goes on, and none takes that for want of memory, which would end it.
 * A member that had no memory for the views of the others when they were set
 * has the data written all the same.
 *
 *   files_views FOLDER HOW
 *
 * HOW is poor: no memory; damaged: the member's view, before it tells it, or
 * short: the same of a view that travels with what is told of the access; lost:
 * the member dies when it sends its view to the others, as it is long; or a
 * number: it dies at its so-many-th message of a later access, so that some
 * have heard from it and some have not; nothing comes to the file then but what
 * was to be written. It can die over TCP only, and with --survive.
 */
#define _GNU_SOURCE /* pread */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/didl/io/file.h"
#include "tests/mpi/check.h"

enum {
    PIECES = 1000,
    PIECE = 30,     /* bytes; all pieces lie within 256 KiB */
    VIEW_MIN = 4096 /* bytes that the view takes as a message, at least */
};

static struct chempi_sys rigged;
static char data[PIECES * PIECE];
static MPI_File file;
static int kept;      /* of the same, which has no name any more */
static off_t tile;    /* bytes in which the pieces of all members lie */
static long messages; /* until the end; 0: until the first long one */

static void die_in_time(size_t len)
{
    if (messages > 0 ? --messages == 0 : len >= VIEW_MIN)
        (void)kill(getpid(), SIGKILL);
}

static ssize_t send_or_die(int fd, const void *buf, size_t len, int flags)
{
    die_in_time(len);
    return chempi_sys_libc.send(fd, buf, len, flags);
}

static ssize_t sendmsg_or_die(int fd, const struct msghdr *msg, int flags)
{
    size_t len = 0;

    for (size_t i = 0; i < msg->msg_iovlen; i++)
        len += msg->msg_iov[i].iov_len;
    die_in_time(len);
    return chempi_sys_libc.sendmsg(fd, msg, flags);
}

/* Pieces at distances that no rule gives, so that the view is long. */
static void set_view(void)
{
    uint64_t state = 1;
    int at = 0;
    int places[PIECES];
    MPI_Datatype type;

    for (int i = 0; i < PIECES; i++) {
        places[i] = (at * check_size() + check_rank()) * PIECE;
        tile = (off_t)(at + 1) * check_size() * PIECE;
        at += 1 + (int)(check_random(&state) % 3);
    }
    MPI_Type_create_indexed_block(PIECES, PIECE, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    CHECK_OR_DIE(MPI_File_set_view(file, 0, MPI_BYTE, type, "native",
                                   MPI_INFO_NULL) == MPI_SUCCESS,
                 "set_view");
    MPI_Type_free(&type);
}

static void *no_views(size_t n, size_t size)
{
    if (n > 1 && size == sizeof(struct chempi_io_view)) {
        errno = ENOMEM;
        return NULL;
    }
    return chempi_sys_libc.calloc(n, size);
}

/* Pieces in turn, so that views are short and travel at once. */
static void set_view_poorly(bool is_poor)
{
    MPI_Datatype pieces;
    MPI_Datatype type;
    int rc;

    rigged = chempi_sys_libc;
    rigged.calloc = no_views;
    tile = (off_t)PIECES * PIECE * check_size();
    MPI_Type_vector(PIECES, PIECE, PIECE * check_size(), MPI_BYTE, &pieces);
    MPI_Type_create_resized(pieces, 0, tile, &type);
    MPI_Type_free(&pieces);
    MPI_Type_commit(&type);
    chempi_sys = is_poor ? &rigged : &chempi_sys_libc;
    rc = MPI_File_set_view(file, (MPI_Offset)check_rank() * PIECE, MPI_BYTE,
                           type, "native", MPI_INFO_NULL);
    chempi_sys = &chempi_sys_libc;
    CHECK_OR_DIE(rc == MPI_SUCCESS, "set_view");
    MPI_Type_free(&type);
}

/* All pieces of a tile of the view. */
static void write_all(int number, char value, int wanted)
{
    int rc;

    memset(data, value, sizeof(data));
    rc = MPI_File_write_at_all(file, number * (MPI_Offset)sizeof(data), data,
                               sizeof(data), MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK_OR_DIE(check_class(rc) == wanted, "class %d, not %d", check_class(rc),
                 wanted);
}

/* Behind the first tile, whose value is another. */
static void check_second(char value)
{
    char byte;

    for (off_t at = tile; pread(kept, &byte, 1, at) == 1; at++)
        CHECK_OR_DIE(byte == 0 || byte == value, "byte %lld is '%c'",
                     (long long)at, byte);
}

/* The first access finds out, the second one has the views. */
static void be_poor(bool is_last)
{
    char byte;

    set_view_poorly(is_last);
    for (int i = 0; i < 2; i++) {
        write_all(i, (char)('a' + i), MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        for (off_t at = i * tile; at < (i + 1) * tile; at++)
            CHECK_OR_DIE(pread(kept, &byte, 1, at) == 1 && byte == 'a' + i,
                         "byte %lld of %d is not there", (long long)at, i);
    }
    MPI_File_close(&file);
}

static void prepare_death(void)
{
    rigged = chempi_sys_libc;
    rigged.send = send_or_die;
    rigged.sendmsg = sendmsg_or_die;
    chempi_sys = &rigged;
}

int main(int argc, char **argv)
{
    bool is_short;
    bool is_damaged;
    bool is_last;
    int rc;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc == 3 && chdir(argv[1]) == 0,
                 "usage: files_views FOLDER poor|damaged|short|lost|NUMBER");
    is_short = strcmp(argv[2], "short") == 0;
    is_damaged = is_short || strcmp(argv[2], "damaged") == 0;
    messages = strtol(argv[2], NULL, 10);
    is_last = check_rank() == check_size() - 1;
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "views.tmp",
                               MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                               &file) == MPI_SUCCESS,
                 "open");
    kept = open("views.tmp", O_RDONLY | O_CLOEXEC);
    MPI_Barrier(MPI_COMM_WORLD);
    remove("views.tmp");
    if (strcmp(argv[2], "poor") == 0) {
        be_poor(is_last);
        return check_finish();
    }
    if (is_short) {
        set_view_poorly(false);
        MPI_File_set_info(file, MPI_INFO_NULL); /* it travels once more */
    } else {
        set_view();
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (messages > 0)
        write_all(0, 'a', MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD); /* perhaps beside a death */
    if (is_last && is_damaged)
        chempi_file_lookup(file)->view->tile.size--;
    else if (is_last)
        prepare_death();
    write_all(1, 'b', is_damaged ? MPI_ERR_INTERN : MPI_ERR_PROC_ABORTED);
    check_second('b');
    rc = MPI_File_close(&file);
    CHECK_OR_DIE(check_class(rc) ==
                     (is_damaged ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED),
                 "closing: class %d", check_class(rc));
    printf("rank %d went on\n", check_rank());
    if (is_damaged)
        return check_finish();
    MPI_Finalize();
    return 0;
}
