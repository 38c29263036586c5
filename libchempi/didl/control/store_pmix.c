/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx, as Slurm, PRRTE and Open MPI's mpirun serve it. libpmix is loaded when
 * it is needed, so that a program runs where there is none. It has a thread of
 * its own; what that one has to say (a fence has passed) comes through an
 * event descriptor.
 */
#include "libchempi/didl/control/store.h"

#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"

#define LIBRARY "libpmix.so.2"

/* What is used of libpmix. */
static struct {
    void *lib;
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t[], size_t);
    pmix_status_t (*finalize)(const pmix_info_t[], size_t);
    pmix_status_t (*abort)(int, const char[], pmix_proc_t[], size_t);
    pmix_status_t (*put)(pmix_scope_t, const char[], pmix_value_t *);
    pmix_status_t (*commit)(void);
    pmix_status_t (*fence)(const pmix_proc_t[], size_t, const pmix_info_t[],
                           size_t, pmix_op_cbfunc_t, void *);
    pmix_status_t (*get)(const pmix_proc_t *, const char[], const pmix_info_t[],
                         size_t, pmix_value_t **);
    const char *(*words)(pmix_status_t);
} pmix;

static struct {
    pmix_proc_t me;
    int event_fd;
    _Atomic int passed;  /* 1, or -errno; 0: the fence has not passed */
    pmix_info_t collect; /* all data with the fence */
} store = {.event_fd = -1};

static bool load(void)
{
    static const struct {
        const char *name;
        void *to;
    } symbols[] = {
        {"PMIx_Init", &pmix.init},     {"PMIx_Finalize", &pmix.finalize},
        {"PMIx_Abort", &pmix.abort},   {"PMIx_Put", &pmix.put},
        {"PMIx_Commit", &pmix.commit}, {"PMIx_Fence_nb", &pmix.fence},
        {"PMIx_Get", &pmix.get},       {"PMIx_Error_string", &pmix.words},
    };

    if (pmix.lib)
        return true;
    pmix.lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; pmix.lib && i < CHEMPI_ARRAY_LEN(symbols); i++) {
        void *found = dlsym(pmix.lib, symbols[i].name);

        if (!found)
            pmix.lib = NULL; /* too old; its handle is not worth closing */
        else
            memcpy(symbols[i].to, &found, sizeof(found)); /* POSIX: they are
                                                             alike */
    }
    return pmix.lib != NULL;
}

bool chempi_store_pmix_is_there(void)
{
    return load();
}

/* A number of this process or (PMIX_RANK_WILDCARD) of the job; 0: there is
 * none. */
static uint32_t number(pmix_rank_t rank, const char *key)
{
    pmix_proc_t proc = store.me;
    pmix_value_t *value = NULL;
    uint32_t found = 0;

    proc.rank = rank;
    if (pmix.get(&proc, key, NULL, 0, &value) != PMIX_SUCCESS || !value)
        return 0;
    if (value->type == PMIX_UINT32)
        found = value->data.uint32;
    free(value); /* a number points nowhere */
    return found;
}

static int open_store(struct chempi_store_self *self, struct chempi_err *err)
{
    pmix_status_t rc;

    if (!load())
        return chempi_err_set(err, -ENOENT,
                              LIBRARY " cannot be loaded; install it on the "
                                      "nodes, or use chempirun");
    rc = pmix.init(&store.me, NULL, 0);
    if (rc != PMIX_SUCCESS)
        return chempi_err_set(err, -EPROTO,
                              "the launcher's PMIx server does not let this "
                              "process in: %s; try another interface of the "
                              "launcher (srun --mpi=pmi2), or chempirun",
                              pmix.words(rc));
    store.event_fd = chempi_sys->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (store.event_fd < 0) {
        const int code = -errno;

        (void)pmix.finalize(NULL, 0);
        return chempi_err_set(err, code, "cannot create an event: %s",
                              chempi_err_name(code));
    }
    (void)snprintf(store.collect.key, sizeof(store.collect.key), "%s",
                   PMIX_COLLECT_DATA);
    store.collect.value.type = PMIX_BOOL;
    store.collect.value.data.flag = true;
    self->rank = store.me.rank;
    self->size = number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    self->universe_size = number(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE);
    self->app_num = number(store.me.rank, PMIX_APPNUM);
    self->value_max = CHEMPI_STORE_VALUE_MAX;
    return 0;
}

static void close_store(void)
{
    if (store.event_fd >= 0)
        (void)close(store.event_fd); /* events have no late errors */
    store.event_fd = -1;
}

static int put(const char *key, const char *text)
{
    char copy[CHEMPI_STORE_VALUE_MAX];
    pmix_value_t value = {.type = PMIX_STRING};

    (void)snprintf(copy, sizeof(copy), "%s", text);
    value.data.string = copy; /* it is copied */
    return pmix.put(PMIX_GLOBAL, key, &value) == PMIX_SUCCESS ? 0 : -EIO;
}

static int get(uint32_t rank, const char *key, char *text, size_t room)
{
    pmix_proc_t proc = store.me;
    pmix_value_t *value = NULL;
    int rc = -ENOENT;

    proc.rank = rank;
    if (pmix.get(&proc, key, NULL, 0, &value) != PMIX_SUCCESS || !value)
        return -ENOENT;
    if (value->type == PMIX_STRING && value->data.string) {
        if (strlen(value->data.string) < room) {
            (void)snprintf(text, room, "%s", value->data.string);
            rc = 0;
        }
        free(value->data.string);
    }
    free(value);
    return rc;
}

/* By libpmix's thread. */
static void fence_passed(pmix_status_t status, void *unused)
{
    const uint64_t one = 1;

    (void)unused;
    atomic_store(&store.passed, status == PMIX_SUCCESS ? 1 : -EPIPE);
    if (write(store.event_fd, &one, sizeof(one)) < 0) {
        /* Full: it is readable, which is all that is wanted. */
    }
}

static int fence(void)
{
    pmix_status_t rc;

    atomic_store(&store.passed, 0);
    if (pmix.commit() != PMIX_SUCCESS)
        return -EIO;
    rc = pmix.fence(NULL, 0, &store.collect, 1, fence_passed, NULL);
    if (rc == PMIX_OPERATION_SUCCEEDED)
        fence_passed(PMIX_SUCCESS, NULL);
    else if (rc != PMIX_SUCCESS)
        return -EPIPE;
    return 0;
}

/* Who waits for the event is woken once. */
static void calm(void)
{
    uint64_t count;

    if (read(store.event_fd, &count, sizeof(count)) < 0) {
        /* Not yet, or it was read before: `passed` says it. */
    }
}

static int fenced(void)
{
    calm();
    return atomic_load(&store.passed);
}

/* Who loses its PMIx server is ended by the launcher: libpmix says nothing of
 * it through the event, which may come after its fence was seen to be over. */
static int look(void)
{
    calm();
    return 0;
}

static int fd(void)
{
    return store.event_fd;
}

static int end_job(int exit_code, const char *text)
{
    return pmix.abort(exit_code, text, NULL, 0) == PMIX_SUCCESS ? 0 : -EPIPE;
}

static int finalize(void)
{
    return pmix.finalize(NULL, 0) == PMIX_SUCCESS ? 0 : -EPIPE;
}

const struct chempi_store_ops chempi_store_pmix = {
    .name = "PMIx",
    .open = open_store,
    .close = close_store,
    .put = put,
    .get = get,
    .fence = fence,
    .fenced = fenced,
    .look = look,
    .fd = fd,
    .abort = end_job,
    .finalize = finalize,
};
