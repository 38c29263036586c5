/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher that this process has started; see own_launcher.h. */
#define _GNU_SOURCE /* dladdr */
#include "libchempi/didl/control/own_launcher.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "libchempi/didl/control/detached.h"

#define PROGRAM "chempirun"
#define VARIABLE "CHEMPI_RUN"
#define PATH_BYTES 4096
#define HEAR_LIMIT_MS 5000 /* for it to hear of the end */
#define OUTPUT_MS 1        /* until the next look whether it has read */
#define REMEDY                                                                 \
    "set " VARIABLE " to its path, or start this process by "                  \
    "'chempirun -n 1 PROGRAM'"

static struct {
    struct chempi_client *client; /* NULL: there is none */
    char path[PATH_BYTES];
} own;

/* ---- where it is --------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           access(path, X_OK) == 0;
}

/* False, too, for a path that is too long. */
static bool try_path(const char *folder, size_t len, const char *name)
{
    const int n =
        snprintf(own.path, sizeof(own.path), "%.*s/%s", (int)len, folder, name);

    return n > 0 && (size_t)n < sizeof(own.path) && is_program(own.path);
}

/* Nobody can have put it there but who could have changed the library, or us:
 * folders beside the library's may be anybody's, as in /tmp. */
static bool is_of(const char *path, const struct stat *library)
{
    struct stat st;

    return stat(path, &st) == 0 && (st.st_uid == library->st_uid ||
                                    st.st_uid == 0 || st.st_uid == geteuid());
}

/* What is installed, or was built, together with this library. */
static bool find_beside(void)
{
    static const char *const places[] = {CHEMPI_BINDIR_FROM_LIBDIR "/" PROGRAM,
                                         "../chempid/" PROGRAM};
    struct stat library;
    Dl_info info;
    char *file;
    bool is_found = false;

    if (!dladdr((const void *)&own, &info) || !info.dli_fname)
        return false;
    file = realpath(info.dli_fname, NULL);
    if (file && stat(file, &library)) {
        free(file);
        return false;
    }
    for (size_t i = 0; file && !is_found && i < CHEMPI_ARRAY_LEN(places); i++)
        is_found =
            try_path(file, (size_t)(strrchr(file, '/') - file), places[i]) &&
            is_of(own.path, &library);
    free(file);
    return is_found;
}

static bool find_in_path(const char *name)
{
    const char *at = getenv("PATH");
    bool is_found = false;

    while (at && !is_found) {
        const size_t len = strcspn(at, ":");

        is_found = len > 0 && try_path(at, len, name);
        at = at[len] ? at + len + 1 : NULL;
    }
    return is_found;
}

static int find(struct chempi_err *err)
{
    const char *named = getenv(VARIABLE);

    if (getauxval(AT_SECURE))
        return chempi_err_set(err, -EOPNOTSUPP,
                              PROGRAM " starts worlds and keeps names, and "
                                      "believes its environment: a program "
                                      "with other rights than its caller's "
                                      "(set-user-ID) does not start it");
    if (!named || !*named)
        return find_beside() || find_in_path(PROGRAM)
                   ? 0
                   : chempi_err_set(err, -EOPNOTSUPP,
                                    PROGRAM " starts worlds and keeps names, "
                                            "and is neither where it is "
                                            "installed with this library nor "
                                            "in PATH: " REMEDY);
    if (!strchr(named, '/') && find_in_path(named))
        return 0;
    (void)snprintf(own.path, sizeof(own.path), "%s", named);
    return strchr(named, '/') && strlen(named) < sizeof(own.path) &&
                   is_program(named)
               ? 0
               : chempi_err_set(err, -EOPNOTSUPP,
                                PROGRAM " starts worlds and keeps names, "
                                        "and " VARIABLE
                                        "=%.500s is no program: " REMEDY,
                                named);
}

/* ---- its beginning ------------------------------------------------------- */

static int start_program(int fd)
{
    char *const argv[] = {own.path, (char[]){CHEMPI_ROOT_OPTION}, NULL};

    return chempi_detached_start(argv, fd, CHEMPI_ROOT_FD);
}

int chempi_own_launcher_start(struct chempi_err *err)
{
    int fds[2];
    int rc = own.client ? 0 : find(err);

    if (rc || own.client)
        return rc;
    if (chempi_sys->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return -errno;
    rc = start_program(fds[1]);
    (void)close(fds[1]);
    if (rc)
        rc = chempi_err_set(err, -EOPNOTSUPP,
                            PROGRAM " starts worlds and keeps names, and "
                                    "cannot be started (%.500s): %s",
                            own.path, chempi_err_name(rc));
    else
        rc = chempi_client_attach(&own.client, fds[0]);
    if (rc) {
        (void)close(fds[0]);
        return rc;
    }
    /* What is wrong with it is found when it is to answer. */
    (void)chempi_client_set_initialized(own.client);
    return 0;
}

/* ---- while it runs ------------------------------------------------------- */

int chempi_own_launcher_ask(enum chempi_root_request what, const void *blob,
                            size_t len, uint32_t *serial)
{
    return chempi_client_ask_root(own.client, what, blob, len, serial);
}

int chempi_own_launcher_fd(void)
{
    return own.client ? chempi_client_fd(own.client) : -1;
}

int chempi_own_launcher_due_ms(void)
{
    return own.client && chempi_client_has_output(own.client) ? OUTPUT_MS : -1;
}

bool chempi_own_launcher_progress(const struct chempi_client_events *events,
                                  struct chempi_err *err)
{
    if (chempi_client_progress(own.client, events, NULL, err) >= 0)
        return true;
    (void)chempi_err_set(err, -EPIPE,
                         "the launcher that this process has started (%.500s) "
                         "has ended",
                         own.path);
    return false;
}

void chempi_own_launcher_begin(void)
{
    if (own.client)
        (void)chempi_client_set_initialized(own.client); /* as in start() */
}

void chempi_own_launcher_end(void)
{
    if (!own.client)
        return;
    (void)chempi_client_set_finalized(own.client);
    (void)chempi_client_flush(own.client, HEAR_LIMIT_MS);
}

void chempi_own_launcher_close(void)
{
    chempi_client_close(own.client);
    own.client = NULL;
}
