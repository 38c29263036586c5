/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spawning (MPI 5.0, section 11.8): the root of the call opens a port, has the
 * launcher start a world that is told its name, and accepts that; the world
 * connects to it in MPI_Init.
 */
#include "libchempi/didl/proc/spawn.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/proc/meet.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/proc/root.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/worlds/foreign.h"

/* One program as the caller says it; of the root. */
struct program {
    const char *command;
    char *const *argv; /* NULL: no arguments */
    int maxprocs;
    const struct chempi_info *info; /* NULL: none */
};

/* The root's part. */
struct call {
    struct chempi_meet meet;
    struct chempi_root_question question;
    bool has_asked;
    bool has_port;
    char port[CHEMPI_PORT_NAME_MAX];
};

/* ---- what is asked for --------------------------------------------------- */

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no memory to say what shall be "
                                            "started");
}

static uint32_t count_words(char *const *argv)
{
    uint32_t n = 0;

    while (argv && argv[n] && n < CHEMPI_SPAWN_WORDS_MAX)
        n++;
    return n;
}

/* Those that the launcher knows; it cannot say how many of each program it has
 * started, so "soft" counts where there is one. */
static bool is_sent(const char *key, uint32_t program_count)
{
    static const char *const keys[] = {"host", "wdir", "path", "env",
                                       CHEMPI_ERRHANDLER_INITIAL_KEY};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return program_count == 1 && strcmp(key, "soft") == 0;
}

static int check_programs(const struct program *programs, uint32_t count,
                          uint32_t *words, uint32_t *keys)
{
    *words = *keys = 0; /* at most */
    for (uint32_t i = 0; i < count; i++) {
        if (!programs[i].command || !*programs[i].command)
            return chempi_error_set(MPI_ERR_ARG, "program %u of %u has no name",
                                    i, count);
        if (programs[i].maxprocs < 1)
            return chempi_error_set(MPI_ERR_ARG,
                                    "%s: maxprocs is %d, and must be at least "
                                    "1",
                                    programs[i].command, programs[i].maxprocs);
        *words += 1 + count_words(programs[i].argv);
        if (*words > CHEMPI_SPAWN_WORDS_MAX)
            return chempi_error_set(MPI_ERR_ARG,
                                    "the programs have more than %u arguments",
                                    CHEMPI_SPAWN_WORDS_MAX);
        *keys += programs[i].info ? programs[i].info->count : 0;
    }
    return MPI_SUCCESS;
}

static uint32_t fill_keys(const struct chempi_info *info,
                          uint32_t program_count, struct chempi_spawn_key *keys)
{
    uint32_t n = 0;

    for (uint32_t i = 0; info && i < info->count; i++)
        if (is_sent(info->pairs[i].key, program_count))
            keys[n++] = (struct chempi_spawn_key){
                .key = info->pairs[i].key, .value = info->pairs[i].value};
    return n;
}

static void fill(const struct program *program, uint32_t program_count,
                 struct chempi_spawn_app *app, const char **words,
                 struct chempi_spawn_key *keys)
{
    const uint32_t argc = 1 + count_words(program->argv);

    words[0] = program->command;
    for (uint32_t i = 1; i < argc; i++)
        words[i] = program->argv[i - 1];
    *app = (struct chempi_spawn_app){
        .argv = words,
        .argc = argc,
        .maxprocs = (uint32_t)program->maxprocs,
        .keys = keys,
        .key_count = fill_keys(program->info, program_count, keys)};
}

/* The bytes of it all. */
static int put_programs(const char *port, const struct program *programs,
                        uint32_t count, struct chempi_writer *w)
{
    struct chempi_spawn spawn = {.port = port, .app_count = count};
    struct chempi_spawn_app *apps;
    struct chempi_spawn_key *keys;
    const char **words;
    uint32_t word_count;
    uint32_t key_count;
    int rc = check_programs(programs, count, &word_count, &key_count);

    if (rc != MPI_SUCCESS)
        return rc;
    apps = chempi_sys->calloc(count, sizeof(*apps));
    words = chempi_sys->calloc(word_count, sizeof(*words));
    keys = chempi_sys->calloc((size_t)key_count + 1, sizeof(*keys));
    if (apps && words && keys) {
        word_count = key_count = 0;
        for (uint32_t i = 0; i < count; i++) {
            fill(&programs[i], count, &apps[i], words + word_count,
                 keys + key_count);
            word_count += apps[i].argc;
            key_count += apps[i].key_count;
        }
        spawn.apps = apps;
        chempi_spawn_write(&spawn, w);
    } else {
        w->error = -ENOMEM;
    }
    free(apps);
    free(words);
    free(keys);
    if (w->error == -EMSGSIZE)
        return chempi_error_set(MPI_ERR_ARG,
                                "what shall be started is too long: a word has "
                                "at most %u bytes, all together %u, %u "
                                "programs",
                                CHEMPI_SPAWN_WORD_MAX - 1,
                                CHEMPI_ROOT_BYTES_MAX, CHEMPI_SPAWN_APPS_MAX);
    return w->error ? no_memory() : MPI_SUCCESS;
}

/* ---- the root ------------------------------------------------------------ */

static int open_port(struct call *call)
{
    struct chempi_err err = {0};
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_port_open(NULL, NULL, call->port, &err);
    chempi_lane_unlock(&chempi_lane_main);
    call->has_port = rc == 0;
    return rc ? chempi_error_set(MPI_ERR_SPAWN, "no port for the children: %s",
                                 err.text)
              : MPI_SUCCESS;
}

/* Returns when the programs have started, or not. */
static int try_start(struct call *call, const struct program *programs,
                     uint32_t count)
{
    struct chempi_writer w = {0};
    int rc = open_port(call);

    if (rc == MPI_SUCCESS)
        rc = put_programs(call->port, programs, count, &w);
    if (rc == MPI_SUCCESS) {
        rc = chempi_root_ask(&call->question, CHEMPI_ROOT_SPAWN, w.data, w.len);
        call->has_asked = rc == 0;
    }
    if (w.data)
        sodium_memzero(w.data, w.len); /* the port is a secret */
    chempi_wire_clear(&w);
    if (!call->has_asked)
        return rc;
    rc = chempi_root_await(&call->question, "nothing was started");
    if (rc != MPI_SUCCESS && call->question.app < count && count > 1)
        rc = chempi_error_set(rc,
                              "nothing was started, for program %u (%s): "
                              "%.900s",
                              call->question.app,
                              programs[call->question.app].command,
                              call->question.text);
    return rc;
}

static void finish(struct call *call)
{
    struct chempi_err err;

    if (call->has_asked)
        chempi_root_forget(&call->question);
    call->has_asked = false;
    if (!call->has_port)
        return;
    chempi_lane_lock(&chempi_lane_main);
    (void)chempi_port_close(call->port, &err); /* it is ours, and open */
    chempi_lane_unlock(&chempi_lane_main);
    call->has_port = false;
    sodium_memzero(call->port, sizeof(call->port));
}

/* Processes of a lost launcher may know the first port, and call it. */
static int start(struct call *call, const struct program *programs,
                 uint32_t count)
{
    const int rc = try_start(call, programs, count);

    if (rc == MPI_SUCCESS || !call->question.is_lost)
        return rc;
    finish(call);
    return try_start(call, programs, count);
}

/* Children that have ended before they call are not waited for. */
static int has_ended(const struct chempi_meet *meet, struct chempi_err *err)
{
    const struct call *call =
        (const struct call *)(const void *)((const char *)meet -
                                            offsetof(struct call, meet));

    if (!call->question.is_over)
        return MPI_SUCCESS;
    (void)chempi_err_set(
        err, 0, "the children have ended before MPI_Init%s%.900s",
        call->question.text[0] ? ": " : "", call->question.text);
    return MPI_ERR_SPAWN;
}

/* ---- all ----------------------------------------------------------------- */

/* With fewer than were asked for, which is of one program, the last ones are
 * missing. */
static void fill_codes(int *codes, int64_t wanted, int64_t started)
{
    for (int64_t i = 0; codes && i < wanted; i++)
        codes[i] = i < started ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

static int64_t count_processes(const struct program *programs, uint32_t count)
{
    int64_t sum = 0;

    for (uint32_t i = 0; programs && i < count; i++)
        sum += programs[i].maxprocs > 0 ? programs[i].maxprocs : 0;
    return sum;
}

/* How many processes are asked for, which is how many codes all write: from the
 * root itself where other members may be of another world, and their numbers
 * anything. What cannot be sent or received is the loss of a member. */
static int64_t hear_wanted(struct chempi_comm *comm, int root, int64_t wanted)
{
    const struct chempi_comm_channel all = chempi_comm_channel(comm);
    const struct chempi_comm_channel down =
        chempi_comm_channel_from(&all, root);
    const int tag = all.tag;
    struct chempi_datatype *type = chempi_datatype_lookup(MPI_INT64_T);
    MPI_Status status;

    if (!comm->has_foreign)
        return chempi_comm_bcast(&down, MPI_SUCCESS, &wanted, sizeof(wanted))
                   ? 0
                   : wanted;
    if (comm->rank == root) {
        for (uint32_t r = 0; r < comm->size; r++)
            if ((int)r != root)
                (void)chempi_message_send_on(&wanted, 1, type, (int)r, tag,
                                             comm, CHEMPI_CONTEXT_INTERNAL);
        return wanted;
    }
    wanted = 0;
    return chempi_message_recv_on(&wanted, 1, type, root, tag, comm,
                                  CHEMPI_CONTEXT_INTERNAL, &status)
               ? 0
               : wanted;
}

/* programs: of the root, else NULL; error: of this member. */
static int spawn(const struct program *programs, uint32_t count, int error,
                 int root, struct chempi_comm *comm, MPI_Comm *intercomm,
                 int *codes)
{
    struct call call = {.meet = {.comm = comm,
                                 .root = root,
                                 .begin = chempi_meet_accept,
                                 .port = call.port,
                                 .way = "the children that are to call "
                                        "MPI_Init",
                                 .error_class = MPI_ERR_SPAWN,
                                 .most = CHEMPI_FOREIGN_MAX,
                                 .is_hopeless = has_ended}};
    const bool is_root = comm->rank == root;
    int rc = chempi_comm_vote(comm, error);
    const int64_t wanted =
        hear_wanted(comm, root, count_processes(programs, count));
    int64_t started = 0;

    if (rc == MPI_SUCCESS) {
        if (is_root)
            call.meet.error = start(&call, programs, count);
        rc = chempi_meet(&call.meet, intercomm);
        if (is_root)
            finish(&call);
    }
    if (rc == MPI_SUCCESS)
        started = chempi_comm_lookup(*intercomm)->remote_size;
    fill_codes(codes, wanted, started);
    return rc;
}

int chempi_proc_spawn(const char *command, char *argv[], int maxprocs,
                      struct chempi_info *info, int root,
                      struct chempi_comm *comm, MPI_Comm *intercomm,
                      int array_of_errcodes[], int refused)
{
    const struct program program = {
        .command = command, .argv = argv, .maxprocs = maxprocs, .info = info};
    const int named = root; /* what others say counts for nothing */
    int error;
    const int rc = chempi_meet_check(comm, &root, refused, &error);

    if (intercomm)
        *intercomm = MPI_COMM_NULL;
    return rc != MPI_SUCCESS
               ? rc
               : spawn(comm->rank == named ? &program : NULL, 1, error, root,
                       comm, intercomm, array_of_errcodes);
}

/* The root's arrays as programs: malloc'ed. */
static int take_programs(int count, char *const *commands,
                         char *const *const *argvs, const int *maxprocs,
                         const MPI_Info *infos, struct program **out)
{
    struct program *programs;

    if (count < 1 || (uint32_t)count > CHEMPI_SPAWN_APPS_MAX)
        return chempi_error_set(MPI_ERR_ARG,
                                "%d programs; there must be 1 to %u", count,
                                CHEMPI_SPAWN_APPS_MAX);
    if (!commands || !maxprocs || !infos)
        return chempi_error_set(MPI_ERR_ARG,
                                "an array of the programs is NULL");
    programs = chempi_sys->calloc((size_t)count, sizeof(*programs));
    if (!programs)
        return no_memory();
    for (int i = 0; i < count; i++) {
        programs[i] = (struct program){.command = commands[i],
                                       .argv = argvs ? argvs[i] : NULL,
                                       .maxprocs = maxprocs[i],
                                       .info = chempi_info_lookup(infos[i])};
        if (!programs[i].info && infos[i] != MPI_INFO_NULL) {
            free(programs);
            return chempi_error_set(
                MPI_ERR_INFO, "array_of_info[%d] names no info object", i);
        }
    }
    *out = programs;
    return MPI_SUCCESS;
}

int chempi_proc_spawn_multiple(int count, char *array_of_commands[],
                               char **array_of_argv[],
                               const int array_of_maxprocs[],
                               const MPI_Info array_of_info[], int root,
                               struct chempi_comm *comm, MPI_Comm *intercomm,
                               int array_of_errcodes[], int refused)
{
    struct program *programs = NULL;
    int error;
    int rc = chempi_meet_check(comm, &root, refused, &error);

    if (intercomm)
        *intercomm = MPI_COMM_NULL;
    if (rc != MPI_SUCCESS)
        return rc;
    if (comm->rank == root && !error)
        error = take_programs(count, array_of_commands,
                              (char *const *const *)array_of_argv,
                              array_of_maxprocs, array_of_info, &programs);
    rc = spawn(programs, (uint32_t)count, error, root, comm, intercomm,
               array_of_errcodes);
    free(programs);
    return rc;
}

/* ---- the children -------------------------------------------------------- */

int chempi_proc_meet_parents(void)
{
    const struct chempi_meet meet = {.comm = &chempi_comm_world,
                                     .begin = chempi_meet_connect,
                                     .port = chempi_ctx.job->parent,
                                     .way = "those that have spawned it",
                                     .error_class = MPI_ERR_SPAWN,
                                     .most = CHEMPI_FOREIGN_MAX};
    MPI_Comm parents = MPI_COMM_NULL;
    int rc;

    if (!*chempi_ctx.job->parent)
        return MPI_SUCCESS;
    rc = chempi_meet(&meet, &parents);
    if (rc == MPI_SUCCESS) {
        (void)chempi_comm_set_name(chempi_comm_lookup(parents),
                                   "MPI_COMM_PARENT");
        chempi_comm_set_parent(parents);
    }
    return rc;
}
