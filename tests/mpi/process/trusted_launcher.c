/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose launcher a process starts for itself. This program says for the kernel
 * what would need root to be made true.
 *
 * usage: trusted_launcher [raised|strangers]
 *
 * raised: the process has other rights than its caller's (set-user-ID): none
 * strangers: the launcher that stands beside the library is not of the
 *     library's owner, root, or this user: not that one
 * else: the one beside the library
 */
#define _FILE_OFFSET_BITS 64 /* the stat() that the library calls */
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "check.h"

#define STRANGER 4242 /* a user that owns no launcher */

static const char *what = "";

/* For the library, too: a program's own functions are found first. */
unsigned long getauxval(unsigned long type)
{
    return type == AT_SECURE && strcmp(what, "raised") == 0;
}

int stat(const char *path, struct stat *out)
{
    const char *name = strrchr(path, '/');
    const int rc = fstatat(AT_FDCWD, path, out, 0);

    if (rc == 0 && name && strcmp(name, "/chempirun") == 0 &&
        strcmp(what, "strangers") == 0)
        out->st_uid = STRANGER;
    return rc;
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    char text[MPI_MAX_ERROR_STRING];
    const int wanted = argc > 1 ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_NAME;
    int len;
    int rc;

    check_start(&argc, &argv);
    what = argc > 1 ? argv[1] : "";
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    rc = MPI_Lookup_name("nobody's", MPI_INFO_NULL, port);
    CHECK(check_class(rc) == wanted, "class %d", check_class(rc));
    MPI_Error_string(rc, text, &len);
    puts(text);
    return check_finish();
}
