/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Light handles (light.h): what gets one, which values are refused, that a
 * message is not taken for another one whose number is the same in 32 bits, and
 * that there are no more once one was turned into an integer.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/light.h"
#include "tests/mpi/check.h"

enum { TAG = 1, WORD = 2, LARGE = 1 << 21 };
#define TURN (UINT64_C(1) << 32) /* after which envelopes' numbers repeat */

static struct chempi_peer *peer_of(int rank)
{
    return chempi_conn_peer(&chempi_lane_main, (uint32_t)rank);
}

static MPI_Request send_one(int value)
{
    MPI_Request request;

    MPI_Isend(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    return request;
}

static void receive(int value)
{
    int got = -1;

    MPI_Recv(&got, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == value, "message %d: %d", value, got);
}

static void tell(void)
{
    MPI_Send(NULL, 0, MPI_INT, 1 - check_rank(), WORD, MPI_COMM_WORLD);
}

static void hear(void)
{
    MPI_Recv(NULL, 0, MPI_INT, 1 - check_rank(), WORD, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static bool wait_is_cancelled(MPI_Request request)
{
    MPI_Status status;
    int is = 0;

    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &is);
    return is;
}

static void look_who_gets_one(void)
{
    char *large = check_alloc(LARGE);
    MPI_Request r[4];

    if (check_rank() == 0) {
        MPI_Isend(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r[0]);
        CHECK(chempi_light_is(r[0]), "a short one");
        MPI_Issend(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r[1]);
        CHECK(!chempi_light_is(r[1]), "a synchronous one");
        MPI_Isend(large, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &r[2]);
        CHECK(!chempi_light_is(r[2]), "a large one");
        MPI_Isend(NULL, 0, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &r[3]);
        CHECK(!chempi_light_is(r[3]), "one to nobody");
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    } else {
        for (int i = 0; i < 3; i++)
            MPI_Recv(large, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    free(large);
}

static void expect_refusal(int rc, const char *what)
{
    CHECK(check_class(rc) == MPI_ERR_REQUEST, "%s: %d", what, rc);
}

static void refuse_wrong_ones(void)
{
    const struct chempi_light_message m = chempi_light_message(send_one(1));
    MPI_Request wrong[] = {
        chempi_light_handle(m.lane, m.proc, m.serial + 1),
        chempi_light_handle(m.lane, m.proc, m.serial + 1000),
        chempi_light_handle(m.lane, (uint32_t)check_size(), m.serial),
        chempi_light_handle(chempi_lane_count, m.proc, m.serial),
    };
    MPI_Request widened = (MPI_Request)(intptr_t)-1;
    MPI_Request numbered = MPI_Request_fromint(0x345678);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        expect_refusal(MPI_Cancel(&wrong[i]), "cancel");
    wrong[0] = chempi_light_handle(m.lane, m.proc, m.serial);
    expect_refusal(MPI_Start(wrong), "start");
    expect_refusal(MPI_Grequest_complete(wrong[0]), "complete");
    expect_refusal(MPI_Pready(0, wrong[0]), "ready");
    expect_refusal(MPI_Wait(&widened, MPI_STATUS_IGNORE), "a number below 0");
    expect_refusal(MPI_Cancel(&numbered), "a number that nobody has");
}

/* As if as many messages had been exchanged as there are numbers: those of
 * envelopes begin anew. */
static void skip_a_turn(void)
{
    struct chempi_peer *peer = peer_of(1 - check_rank());
    MPI_Request old;

    if (check_rank() == 0) {
        old = send_one(2);
        hear();
        chempi_lane_lock(&chempi_lane_main);
        peer->serial_out += TURN - 1;
        chempi_lane_unlock(&chempi_lane_main);
        (void)send_one(3);
        CHECK(MPI_Cancel(&old) == MPI_SUCCESS, "cancel");
        CHECK(!wait_is_cancelled(old), "another message was taken back");
        old = send_one(4);
        CHECK(MPI_Cancel(&old) == MPI_SUCCESS, "cancel");
        CHECK(wait_is_cancelled(old), "it was not taken back");
        tell();
    } else {
        receive(2);
        chempi_lane_lock(&chempi_lane_main);
        peer->serial_in--;
        chempi_lane_unlock(&chempi_lane_main);
        tell();
        hear();
        receive(3);
    }
}

static void convert(void)
{
    if (check_rank() == 0) {
        MPI_Request r = send_one(5);

        CHECK(chempi_light_is(r), "the first one");
        CHECK(MPI_Request_fromint(MPI_Request_toint(r)) == r, "round trip");
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        r = send_one(6);
        CHECK(!chempi_light_is(r), "the second one");
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else {
        receive(5);
        receive(6);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    tell(); /* now they are connected */
    hear();
    look_who_gets_one();
    if (check_rank() == 0)
        refuse_wrong_ones();
    else
        receive(1);
    skip_a_turn();
    convert();
    return check_finish();
}
