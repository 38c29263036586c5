/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank leaves that has no memory for what the other one, behind gateways, is
 * still to get. Its only session ends, so nobody is waited for. By its
 * argument:
 *
 *   strays  what lay in a gateway that is lost: it leaves when that has been
 *           sent by another one
 *   lost    the same, and memory is missing for too long: the other one is lost
 *           (chempirun --survive), and nothing is to be sent any more
 *   drop    the word that it wants nothing of a message: likewise
 *
 * and a second one in a secure job.
 */
#define _GNU_SOURCE /* kill */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/routed/internal.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/gateways.h"
#include "tests/mpi/inside/starve.h"

enum { LEN = 3000, LONG = 600000, MESSAGES = 20, ANNOUNCED = MESSAGES, NEVER };
enum { POLLS = 2000, REFUSALS = 200 };

static char data[LONG];
static int pids[2];
static MPI_Comm world;

static struct chempi_routed_flow *flow_to(int rank)
{
    return (struct chempi_routed_flow *)(void *)chempi_conn_route(
               chempi_conn_peer(&chempi_lane_main, (uint32_t)rank), LEN)
        ->ep;
}

/* What the only flow of rank 0 has, while nobody changes it. */
struct state {
    bool has_strays;
    uint32_t undecided;
    uint32_t dropped_count;
    int gateway; /* that it sends by */
};

static struct state look(void)
{
    const struct chempi_routed_flow *flow;
    struct state s;

    chempi_lane_lock(&chempi_lane_main);
    flow = flow_to(1);
    s = (struct state){
        .has_strays = flow->has_strays,
        .undecided = flow->undecided,
        .dropped_count = flow->dropped_count,
        .gateway = (int)(chempi_routed_way_find(flow, LEN)->gateways[0] -
                         chempi_routed_of(flow)->rank_count)};
    chempi_lane_unlock(&chempi_lane_main);
    return s;
}

static void poll_once(void)
{
    int is_there;

    MPI_Iprobe(MPI_ANY_SOURCE, NEVER, world, &is_there, MPI_STATUS_IGNORE);
}

/* What a frame takes with so much payload: no other piece of memory is as long.
 */
static size_t frame_bytes(uint8_t kind, size_t payload)
{
    const struct chempi_neighbor_frame f = {.kind = kind, .gateway_count = 1};
    uint8_t head[CHEMPI_NEIGHBOR_FIXED_MAX];

    return sizeof(struct chempi_neighbor_buf) +
           chempi_neighbor_frame_put(head, &f) + payload;
}

static void make_strays(void)
{
    gateways_stop();
    for (int i = 0; i < MESSAGES; i++) {
        memset(data, i + 1, LEN);
        MPI_Send(data, LEN, MPI_CHAR, 1, i, world);
    }
    starve_all(0);
    gateways_kill(look().gateway);
    while (!look().has_strays)
        poll_once();
    gateways_go_on();
}

/* That gateways have them is not enough while one has not. However long that
 * takes here, memory is not missing for too long. */
static void stay_with_strays(void)
{
    bool is_drained = false;

    for (int i = 0; i < POLLS; i++) {
        poll_once();
        chempi_lane_lock(&chempi_lane_main);
        is_drained |= chempi_conn_is_drained(&chempi_lane_main);
        chempi_shortage_end(&flow_to(1)->shortages[CHEMPI_ROUTED_FOR_STRAYS]);
        chempi_lane_unlock(&chempi_lane_main);
    }
    CHECK(look().has_strays, "there was memory");
    CHECK(!is_drained, "it leaves what no gateway has");
    starve_some(0, REFUSALS);
}

static void fail_to_drop(void)
{
    int code;

    while (!look().undecided)
        poll_once();
    starve_all(0);
    code = MPI_Recv(NULL, 0, MPI_CHAR, 1, ANNOUNCED, world, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_TRUNCATE, "class %d", code);
    CHECK(look().dropped_count == 1, "there was memory");
}

/* It has lasted for long. */
static void lose(enum chempi_routed_want want)
{
    chempi_lane_lock(&chempi_lane_main);
    flow_to(1)->shortages[want] = (struct chempi_shortage){
        .since_ns = 1, .refused_ns = chempi_clock_ns()};
    chempi_lane_unlock(&chempi_lane_main);
    while (!chempi_conn_missing_count())
        poll_once();
    starve_end();
    (void)kill(pids[1], SIGKILL);
}

static void receive_all(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Recv(data, LEN, MPI_CHAR, 0, i, world, MPI_STATUS_IGNORE);
        CHECK(data[0] == i + 1 && data[LEN - 1] == i + 1, "message %d: %d", i,
              data[0]);
    }
    puts("all was received");
}

/* The rank in it. */
static int join(MPI_Session *session)
{
    int pid = (int)getpid();
    MPI_Group group;
    int rank;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session);
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                               &world);
    MPI_Group_free(&group);
    MPI_Comm_rank(world, &rank);
    gateways_find(2);
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, world);
    MPI_Barrier(world);
    return rank;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const bool is_drop = strcmp(what, "drop") == 0;
    const bool is_strays = strcmp(what, "strays") == 0;
    const size_t seal = argc > 2 ? CHEMPI_NEIGHBOR_SEAL_BYTES : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Session session;
    int rank;

    starve_start((struct starve_sizes){
        SIZE_MAX, is_drop ? frame_bytes(CHEMPI_NEIGHBOR_DROP, 0)
                          : frame_bytes(CHEMPI_NEIGHBOR_EAGER, LEN + seal)});
    rank = join(&session);
    if (rank == 0 && is_drop) {
        fail_to_drop();
        lose(CHEMPI_ROUTED_FOR_DROP);
    } else if (rank == 0) {
        make_strays();
        if (is_strays)
            stay_with_strays();
        else
            lose(CHEMPI_ROUTED_FOR_STRAYS);
    } else if (is_strays) {
        receive_all();
    } else {
        if (is_drop)
            MPI_Isend(data, LONG, MPI_CHAR, 0, ANNOUNCED, world, &request);
        MPI_Recv(NULL, 0, MPI_CHAR, 0, NEVER, world, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&world);
    MPI_Session_finalize(&session);
    if (rank == 0)
        puts("the first has left");
    return 0;
}
