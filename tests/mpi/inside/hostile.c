/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs have met, and a rank of the one that has connected sends what no
 * process of another world may send. It is lost to the other job by that, with
 * a sentence, and nothing else comes of it: not in the other job's own
 * communicators either.
 *
 * inside-hostile accept|connect FIFO HOW [FILE]
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/part/partitioned.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/sysmsg.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "tests/mpi/check.h"

enum {
    TAG = 3,
    FLOOD = 6000,
    LEN = 4000,
    FORGED = -77,
    TRUE = 42,
    AHEAD = 16,
    MANY = 3000,
    HALF = 1000,   /* of what the case permits to hold */
    PARTS = 20000, /* more than any receive has receives for */
    OWN_PARTS = 4
};

/* ---- the one that breaks the rules ---- */

/* A message to rank 0 of the other side; number: before its turn by so much. */
static void send_raw(MPI_Comm inter, struct chempi_envelope env,
                     const void *data, uint32_t number)
{
    const struct chempi_comm *c = chempi_comm_lookup(inter);
    struct chempi_lane *lane = &chempi_lane_main;
    struct chempi_peer *peer;
    struct chempi_conn_route *route;
    int rc;

    chempi_lane_lock(lane);
    peer = chempi_conn_peer(lane, chempi_comm_proc(c, 0));
    CHECK_OR_DIE(chempi_conn_resolve(peer) == MPI_SUCCESS, "no way there");
    route = chempi_conn_route(peer, env.len);
    chempi_engine_stamp(peer, &env);
    env.serial += number;
    while ((rc = route->ops->inject(route->ep, &env, data, (size_t)env.len,
                                    false)) == -EAGAIN)
        (void)chempi_progress_poll_in(lane);
    CHECK(rc == 0 || rc == -ECONNRESET || rc == -EPIPE, "it is not sent: %d",
          rc);
    peer->serial_out += number == 0;
    if (env.flags & CHEMPI_ENVELOPE_COUNTED)
        peer->eager_out += (uint32_t)env.len;
    chempi_lane_unlock(lane);
}

static struct chempi_envelope message(uint32_t context, int source)
{
    return (struct chempi_envelope){.len = sizeof(int),
                                    .context = context,
                                    .source = source,
                                    .tag = TAG,
                                    .kind = CHEMPI_KIND_MESSAGE,
                                    .flags = CHEMPI_ENVELOPE_COUNTED};
}

static struct chempi_envelope system_message(int32_t tag, uint32_t len)
{
    return (struct chempi_envelope){
        .len = len, .context = len, .tag = tag, .kind = CHEMPI_KIND_SYSTEM};
}

/* More than the other one allows: this one has forgotten what that is. */
static void flood(MPI_Comm inter)
{
    static char data[LEN];
    const struct chempi_comm *c = chempi_comm_lookup(inter);
    MPI_Request requests[FLOOD];

    chempi_lane_lock(&chempi_lane_main);
    chempi_conn_peer(&chempi_lane_main, chempi_comm_proc(c, 0))->quota =
        UINT32_MAX;
    chempi_lane_unlock(&chempi_lane_main);
    for (int i = 0; i < FLOOD; i++)
        if (MPI_Isend(data, LEN, MPI_BYTE, 0, TAG + 1, inter, &requests[i]))
            requests[i] = MPI_REQUEST_NULL;
    (void)MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE);
}

/* In the contexts that come next, behind that of the other side's own. */
static void foresee(MPI_Comm inter, uint32_t context)
{
    const int forged = FORGED;

    for (uint32_t i = 2; i <= AHEAD; i++)
        send_raw(inter, message(context + i * CHEMPI_CONTEXT_STEP, 0), &forged,
                 0);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 2, inter);
}

/* Files that are not its own: their numbers are easily guessed. */
static void ask_files(MPI_Comm inter)
{
    for (uint64_t token = 0; token < AHEAD; token++) {
        const uint64_t ask[4] = {token, 100, 0, token};

        send_raw(inter, system_message(CHEMPI_SYSMSG_IO, sizeof(ask)), ask, 0);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 2, inter);
}

/* As many partitions as the other side has bytes; then far more, none of which
 * has any, and none of which comes. */
static void announce_partitions(MPI_Comm inter, uint32_t context)
{
    const struct chempi_partitioned_hello hello = {
        .first = PARTS, .partitions = 10L * PARTS, .len = 0};
    struct chempi_envelope env =
        message(context + CHEMPI_CONTEXT_PARTITIONED, 1);
    char *data = check_alloc(PARTS);
    MPI_Request request;

    check_fill(data, PARTS, 0);
    MPI_Psend_init(data, PARTS, 1, MPI_BYTE, 0, TAG, inter, MPI_INFO_NULL,
                   &request);
    MPI_Start(&request);
    MPI_Pready_range(0, PARTS - 1, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    env.len = sizeof(hello);
    send_raw(inter, env, &hello, 0);
    free(data);
}

/* The same before their turn; what is missing comes when rank 0 says that the
 * other side has made them. */
static void overtake(MPI_Comm inter, uint32_t context)
{
    const int forged = FORGED;

    for (uint32_t i = 2; i <= AHEAD; i++)
        send_raw(inter, message(context + i * CHEMPI_CONTEXT_STEP, 0), &forged,
                 i - 1);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    (void)MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 3, inter);
}

static void help_overtake(MPI_Comm inter)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    (void)MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 2, inter);
    (void)MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG + 5, inter, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

static void attack(MPI_Comm inter, const char *how)
{
    const struct chempi_comm *c = chempi_comm_lookup(inter);
    const uint32_t context = c->send_context;
    const int forged = FORGED;
    uint64_t words[4] = {0};

    if (strcmp(how, "world") == 0) {
        send_raw(inter, message(1 * CHEMPI_CONTEXT_STEP, 1), &forged, 0);
    } else if (strcmp(how, "name") == 0) {
        send_raw(inter, message(context, 0), &forged, 0);
    } else if (strcmp(how, "later") == 0) {
        foresee(inter, context);
    } else if (strcmp(how, "early") == 0) {
        overtake(inter, context);
    } else if (strcmp(how, "file") == 0) {
        ask_files(inter);
    } else if (strcmp(how, "partitions") == 0) {
        announce_partitions(inter, context);
    } else if (strcmp(how, "quota") == 0) {
        flood(inter);
    } else if (strcmp(how, "uncounted") == 0) {
        struct chempi_envelope env = message(context, 1);

        env.flags = 0;
        send_raw(inter, env, &forged, 0);
    } else if (strcmp(how, "ahead") == 0) {
        send_raw(inter, message(context, 1), &forged, 1u << 20);
    } else if (strcmp(how, "backwards") == 0) {
        for (uint32_t i = 100; i > 0; i--)
            send_raw(inter, message(context, 1), &forged, i);
    } else if (strcmp(how, "head") == 0) {
        send_raw(inter, system_message(CHEMPI_SYSMSG_CREDIT, 4), words, 0);
    } else if (strcmp(how, "many") == 0) {
        for (int i = 0; i < MANY; i++)
            send_raw(inter, message(context, 1), &forged, 0);
    } else if (strcmp(how, "twice") == 0) {
        send_raw(inter, message(context, 1), &forged, 1);
        send_raw(inter, message(context, 1), &forged, 1);
    } else if (strcmp(how, "system") == 0) {
        send_raw(inter, system_message(CHEMPI_SYSMSG_TEST, 0), NULL, 0);
    } else if (strcmp(how, "places") == 0) {
        send_raw(inter, system_message(CHEMPI_SYSMSG_ORIGIN, 4), words, 0);
    } else if (strcmp(how, "body") == 0) {
        send_raw(inter, system_message(CHEMPI_SYSMSG_BODY, 8), words, 0);
    } else if (strcmp(how, "credit") == 0) {
        chempi_lane_lock(&chempi_lane_main);
        chempi_conn_peer(&chempi_lane_main, chempi_comm_proc(c, 0))
            ->eager_released += 1u << 20;
        chempi_lane_unlock(&chempi_lane_main);
        send_raw(inter, system_message(CHEMPI_SYSMSG_CREDIT, 0), NULL, 0);
    } else {
        CHECK_OR_DIE(false, "no attack is named %s", how);
    }
}

/* Half of what may be held, so that it is looked at once; rank 0 of the other
 * side has more by then that is not received. */
static void send_late(MPI_Comm inter, const char *file)
{
    static char data[FLOOD][LEN];
    static MPI_Request requests[FLOOD];

    for (int i = 0; i < FLOOD; i++)
        MPI_Irecv(data[i], LEN, MPI_BYTE, 0, TAG + 1, inter, &requests[i]);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 2, inter);
    while (access(file, F_OK) != 0)
        sched_yield();
    for (int i = 0; i < HALF; i++)
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 1, inter);
    (void)MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE);
}

/* Nothing of the job is touched by it, and nobody is lost. */
static bool is_harmless(const char *how)
{
    return strcmp(how, "file") == 0 || strcmp(how, "partitions") == 0 ||
           strcmp(how, "late") == 0;
}

/* Rank 1 attacks; until it is cut off. */
static void be_hostile(MPI_Comm inter, const char *how, const char *file)
{
    int none;

    if (check_rank() == 0 && strcmp(how, "early") == 0)
        help_overtake(inter);
    if (check_rank() == 1) {
        MPI_Recv(&none, 1, MPI_INT, 0, TAG, inter, MPI_STATUS_IGNORE);
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        if (strcmp(how, "late") == 0)
            send_late(inter, file);
        else
            attack(inter, how);
        CHECK((MPI_Recv(&none, 1, MPI_INT, 0, TAG, inter, MPI_STATUS_IGNORE) ==
               MPI_SUCCESS) == is_harmless(how),
              "nothing comes of it");
    }
}

/* ---- the other one ---- */

/* An intercommunicator of this job's ranks, in whose contexts rank 1 of the
 * other one has sent already. */
static void make_halves(MPI_Comm inter, bool is_early)
{
    MPI_Comm own;
    int value = -1;

    MPI_Recv(NULL, 0, MPI_BYTE, is_early ? 0 : 1, TAG + 2, inter,
             MPI_STATUS_IGNORE);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1, 9, &own);
    if (is_early) {
        (void)MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 5, inter);
        (void)MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 3, inter, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&value, 1, MPI_INT, 0, TAG, own, MPI_STATUS_IGNORE);
    CHECK(value == TRUE, "%d has come from rank 1", value);
    MPI_Comm_free(&own);
}

static void help_make_halves(void)
{
    const int value = TRUE;
    MPI_Comm own;

    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 0, 9, &own);
    MPI_Send(&value, 1, MPI_INT, 0, TAG, own);
    MPI_Comm_free(&own);
}

/* Of a file of this job, whose pointer is here. */
static void keep_file(MPI_Comm inter, const char *path)
{
    MPI_Offset at = -1;
    MPI_File file;

    MPI_File_open(MPI_COMM_WORLD, path,
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    if (check_rank() == 0) {
        MPI_Send(&(int){0}, 1, MPI_INT, 1, TAG, inter);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 2, inter, MPI_STATUS_IGNORE);
        MPI_File_get_position_shared(file, &at);
        CHECK(at == 0, "the pointer is at %lld", (long long)at);
        MPI_Send(&(int){0}, 1, MPI_INT, 1, TAG, inter);
    }
    MPI_File_close(&file);
}

static int receive_parts(MPI_Comm inter, char *data)
{
    MPI_Request request;
    int rc;

    MPI_Precv_init(data, OWN_PARTS, PARTS / OWN_PARTS, MPI_BYTE, 1, TAG, inter,
                   MPI_INFO_NULL, &request);
    MPI_Start(&request);
    rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return rc;
}

/* Whatever is announced: a receive has as many receives as it has room for. */
static void keep_parts(MPI_Comm inter)
{
    char *data = check_alloc(PARTS);
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    int rc;

    if (check_rank() == 0) {
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        MPI_Send(&(int){0}, 1, MPI_INT, 1, TAG, inter);
        rc = receive_parts(inter, data);
        CHECK(rc == MPI_SUCCESS && check_differs(data, PARTS, 0) == SIZE_MAX,
              "parts of all bytes: %d", rc);
        rc = receive_parts(inter, data);
        CHECK(check_class(rc) == MPI_ERR_TRUNCATE, "too many parts: %d", rc);
        MPI_Error_string(rc, text, &len);
        printf("%s\n", text);
        MPI_Send(&(int){0}, 1, MPI_INT, 1, TAG, inter);
    }
    free(data);
}

/* What this side sends and the other one does not take yet is no fault of the
 * other one's. */
static void send_much(MPI_Comm inter, const char *file)
{
    static char data[LEN];
    static MPI_Request requests[FLOOD];
    char text[MPI_MAX_ERROR_STRING] = "";
    uint64_t waiting;
    int rc = MPI_SUCCESS;
    int len;
    int fd;

    if (check_rank() > 0)
        return;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Send(&(int){0}, 1, MPI_INT, 1, TAG, inter);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 2, inter, MPI_STATUS_IGNORE);
    for (int i = 0; i < FLOOD; i++)
        MPI_Isend(data, LEN, MPI_BYTE, 1, TAG + 1, inter, &requests[i]);
    chempi_lane_lock(&chempi_lane_main);
    waiting = chempi_engine_waiting_count(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
    CHECK(waiting > HALF, "the network takes all");
    fd = open(file, O_CREAT | O_WRONLY, 0600);
    CHECK_OR_DIE(fd >= 0, "cannot create %s", file);
    close(fd);
    for (int i = 0; i < HALF && rc == MPI_SUCCESS; i++)
        rc = MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 1, inter, MPI_STATUS_IGNORE);
    if (rc)
        MPI_Error_string(rc, text, &len);
    CHECK(rc == MPI_SUCCESS, "the other side is lost: %s", text);
    (void)MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE);
    MPI_Send(&(int){0}, 1, MPI_INT, 1, TAG, inter);
}

static void defend(MPI_Comm inter, const char *how)
{
    const bool is_early = strcmp(how, "early") == 0;
    const bool is_later = is_early || strcmp(how, "later") == 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Request request;
    int value = 0;
    int len;
    int rc;

    MPI_Irecv(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Send(&value, 1, MPI_INT, 1, TAG, inter);
    if (is_later)
        make_halves(inter, is_early);
    rc = MPI_Recv(&len, 1, MPI_INT, 1, TAG + 4, inter, MPI_STATUS_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a receive ends with %d",
          rc);
    MPI_Error_string(rc, text, &len);
    printf("%s\n", text);
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(value == TRUE, "%d has come from rank 1 of this job", value);
}

static void help(const char *how)
{
    const int value = TRUE;

    if (strcmp(how, "later") == 0 || strcmp(how, "early") == 0)
        help_make_halves();
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    bool accepts;
    MPI_Comm inter;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 3, "usage: hostile accept|connect FIFO HOW");
    check_need(2);
    accepts = strcmp(argv[1], "accept") == 0;
    if (accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    if (!accepts) {
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        be_hostile(inter, argv[3], argv[argc - 1]);
        return check_finish();
    }
    MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    if (strcmp(argv[3], "file") == 0)
        keep_file(inter, argv[4]);
    else if (strcmp(argv[3], "late") == 0)
        send_much(inter, argv[4]);
    else if (strcmp(argv[3], "partitions") == 0)
        keep_parts(inter);
    else if (check_rank() == 0)
        defend(inter, argv[3]);
    else
        help(argv[3]);
    return check_finish();
}
