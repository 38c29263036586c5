/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file on an overlay, as in containers, is one of this node's own; but what
 * the overlay keeps it on nobody says, so nothing is stored through a mapping.
 * Mounts one for this process alone, which takes root.
 *
 *   file_overlay FOLDER      in which it makes folders
 */
#define _GNU_SOURCE /* unshare */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 8, PIECES = 512, STEP = 24 };

/* The errno of what cannot be had; 0: the overlay is in ./over, with a file
 * from below. */
static int mount_overlay(const char *folder)
{
    int fd;

    if (unshare(CLONE_NEWNS) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return errno;
    if (mount("none", folder, "tmpfs", 0, NULL) || chdir(folder) ||
        mkdir("low", 0755) || mkdir("up", 0755) || mkdir("work", 0755) ||
        mkdir("over", 0755))
        return errno;
    fd = open("low/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, 100) || close(fd))
        return errno;
    return mount("none", "over", "overlay", 0,
                 "lowerdir=low,upperdir=up,workdir=work")
               ? errno
               : 0;
}

static void check_home(MPI_File file)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    MPI_Info info;

    MPI_File_get_info(file, &info);
    MPI_Info_get(info, "striping_factor", MPI_MAX_INFO_VAL, value, &found);
    CHECK(found && strcmp(value, "1") == 0, "striping_factor: %s", value);
    MPI_Info_free(&info);
}

static void check_pieces(MPI_File file)
{
    static unsigned char data[PIECE * PIECES];
    static unsigned char back[STEP * PIECES];
    MPI_Datatype type;
    int fd = open("over/file", O_RDONLY | O_CLOEXEC);

    MPI_Type_vector(PIECES, PIECE, STEP, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL);
    check_fill(data, sizeof(data), 1);
    check_watch("chempi_io_bytes_mapped");
    CHECK(MPI_File_write_at(file, 0, data, sizeof(data), MPI_BYTE,
                            MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "writing");
    CHECK(check_watched() == 0, "%llu bytes went through a mapping",
          check_watched());
    CHECK(pread(fd, back, sizeof(back), 0) == STEP * (PIECES - 1) + PIECE,
          "the length");
    for (int i = 0; i < PIECES; i++)
        CHECK(memcmp(back + STEP * i, data + PIECE * i, PIECE) == 0,
              "piece %d differs", i);
    close(fd);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    int failed = argc > 1 ? mount_overlay(argv[1]) : EINVAL;
    MPI_File file;

    check_start(&argc, &argv);
    if (failed)
        check_skip(strerror(failed));
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "over/file", MPI_MODE_RDWR,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "open");
    check_home(file);
    check_pieces(file);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    return check_finish();
}
