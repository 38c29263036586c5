/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views that members tell each other before an exchange of few bytes, of which
 * one does not come as it should: every member hears why, and none takes that
 * for want of memory, which would end it.
 *
 *   files_views FOLDER lost|damaged     lost: over TCP, with --survive
 */
#include <signal.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/didl/io/file.h"
#include "tests/mpi/check.h"

enum { PIECES = 1000, WORDS_MIN = 4096 /* bytes of a view, and of no other */ };

static struct chempi_sys rigged;
static char data[PIECES];
static MPI_File file;

static void die_if_long(size_t len)
{
    if (len >= WORDS_MIN)
        (void)kill(getpid(), SIGKILL);
}

static ssize_t send_or_die(int fd, const void *buf, size_t len, int flags)
{
    die_if_long(len);
    return chempi_sys_libc.send(fd, buf, len, flags);
}

static ssize_t sendmsg_or_die(int fd, const struct msghdr *msg, int flags)
{
    size_t len = 0;

    for (size_t i = 0; i < msg->msg_iovlen; i++)
        len += msg->msg_iov[i].iov_len;
    die_if_long(len);
    return chempi_sys_libc.sendmsg(fd, msg, flags);
}

/* Single bytes at distances that no rule gives, so that the view is long. */
static void set_view(void)
{
    uint64_t state = 1;
    int at = 0;
    int places[PIECES];
    MPI_Datatype type;

    for (int i = 0; i < PIECES; i++) {
        places[i] = at * check_size() + check_rank();
        at += 1 + (int)(check_random(&state) % 8);
    }
    MPI_Type_create_indexed_block(PIECES, 1, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    CHECK_OR_DIE(MPI_File_set_view(file, 0, MPI_BYTE, type, "native",
                                   MPI_INFO_NULL) == MPI_SUCCESS,
                 "set_view");
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    bool is_lost;
    bool is_last;
    int rc;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc == 3 && chdir(argv[1]) == 0,
                 "usage: files_views FOLDER lost|damaged");
    is_lost = strcmp(argv[2], "lost") == 0;
    is_last = check_rank() == check_size() - 1;
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "views.tmp",
                               MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                               &file) == MPI_SUCCESS,
                 "open");
    remove("views.tmp");
    set_view();
    if (is_last && is_lost) {
        rigged = chempi_sys_libc;
        rigged.send = send_or_die;
        rigged.sendmsg = sendmsg_or_die;
        chempi_sys = &rigged;
    } else if (is_last) {
        chempi_file_lookup(file)->view->tile.size++;
    }
    rc = MPI_File_write_at_all(file, 0, data, PIECES, MPI_BYTE,
                               MPI_STATUS_IGNORE);
    CHECK_OR_DIE(check_class(rc) ==
                     (is_lost ? MPI_ERR_PROC_ABORTED : MPI_ERR_INTERN),
                 "class %d", check_class(rc));
    rc = MPI_File_close(&file);
    CHECK_OR_DIE(check_class(rc) ==
                     (is_lost ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS),
                 "closing: class %d", check_class(rc));
    printf("rank %d went on\n", check_rank());
    if (!is_lost)
        return check_finish();
    MPI_Finalize();
    return 0;
}
