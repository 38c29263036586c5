/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has a port's name, and a library that lies: in one meeting after the
 * other it introduces itself as somebody else, breaks the rules, or leaves.
 * Each time those who accept get an error; then an honest world meets them as
 * if nothing had been.
 *
 * inside-liar accept|lie FIFO
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/proc/exchange.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/proc/roll.h"
#include "libchempi/didl/transport/foreign/foreign_device.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/didl/transport/worlds/vouch.h"
#include "tests/mpi/check.h"

enum lie {
    LEAVE,           /* without a word */
    SAY_NOTHING,     /* in the place of a roll */
    FAIL,            /* an error class in its place */
    WRONG_SIGNATURE, /* of another use */
    POSE_AS_THEIRS,  /* a rank of the other side's own world */
    PLAY_AGAIN,      /* what a rank of theirs has signed before */
    POSE_AS_WORLD,   /* the name of a world, under another key */
    OTHER_CONTEXT,   /* than was signed for */
    CLOSED_CONTEXT,  /* where only ranks of one job may send */
    TWICE,           /* the same member */
    NO_QUOTA,
    OTHER_SETTINGS,
    LEAVE_AFTER_ROLL,
    FAIL_AFTER_ROLL, /* says so */
    BABBLE_AFTER_ROLL,
    FAIL_AFTER_VERDICT,
    LIES
};

struct call {
    struct chempi_exchange *x;
    void *message;
    size_t len;
    bool takes;
    bool is_over; /* it is asked more than once */
    int rc;
};

static bool is_over(void *arg)
{
    struct call *c = arg;

    if (c->is_over)
        return true;
    c->rc = c->takes ? chempi_exchange_take(c->x, &c->message, &c->len, NULL)
                     : chempi_exchange_state(c->x, NULL);
    c->is_over = c->takes ? c->rc != -EAGAIN : c->rc != 0;
    return c->is_over;
}

/* The next message; NULL: the other side has left. */
static char *hear(struct call *c, bool takes)
{
    c->takes = takes;
    c->is_over = false;
    c->message = NULL;
    chempi_lane_lock(&chempi_lane_main);
    (void)chempi_progress_wait_locked(is_over, c, NULL, NULL);
    chempi_lane_unlock(&chempi_lane_main);
    return c->message;
}

static void say(struct call *c, int32_t class, const void *data, size_t len)
{
    char *message = check_alloc(sizeof(class) + len);

    memcpy(message, &class, sizeof(class));
    if (len)
        memcpy(message + sizeof(class), data, len);
    chempi_lane_lock(&chempi_lane_main);
    (void)chempi_exchange_send(c->x, message, sizeof(class) + len, NULL);
    chempi_lane_unlock(&chempi_lane_main);
    free(message);
}

/* From now on the process is roused by descriptors, too. */
static struct chempi_introduction introduce(void)
{
    struct chempi_introduction in;

    chempi_lane_lock(&chempi_lane_main);
    CHECK_OR_DIE(chempi_foreign_introduce(&in, NULL) == 0, "no device");
    chempi_lane_unlock(&chempi_lane_main);
    return in;
}

/* As the honest library does, so far. */
static struct chempi_roll *describe(struct call *c, enum lie lie,
                                    const struct chempi_introduction *theirs)
{
    struct chempi_vouch_use use = {.context = CHEMPI_CONTEXT_OPEN +
                                              1024 * CHEMPI_CONTEXT_STEP,
                                   .count = lie == TWICE ? 2 : 1};
    struct chempi_introduction in[2];
    struct chempi_roll *roll;

    in[0] = introduce();
    chempi_lane_lock(&chempi_lane_main);
    memcpy(use.meeting, chempi_exchange_hash(c->x), sizeof(use.meeting));
    chempi_lane_unlock(&chempi_lane_main);
    if (lie == WRONG_SIGNATURE)
        use.number = 1;
    if (lie == CLOSED_CONTEXT)
        use.context = CHEMPI_CONTEXT_STEP;
    if (lie == NO_QUOTA)
        in[0].sysmsg_quota = 0;
    if (lie == POSE_AS_THEIRS)
        in[0].name = theirs->name;
    if (lie == POSE_AS_WORLD)
        in[0].name.world[0]++;
    in[1] = in[0];
    chempi_vouch_sign(&in[0], &use);
    use.number++;
    chempi_vouch_sign(&in[1], &use);
    if (lie == PLAY_AGAIN)
        in[0] = *theirs;
    roll = chempi_roll_make(in, use.count, 0, use.context);
    CHECK_OR_DIE(roll != NULL, "no memory");
    if (lie == OTHER_CONTEXT)
        roll->context += CHEMPI_CONTEXT_STEP;
    if (lie == OTHER_SETTINGS)
        roll->settings[1]++;
    return roll;
}

/* After a roll that is true. */
static void end(struct call *c, enum lie lie)
{
    const char flag = 1;
    char babble[100] = {0};

    if (lie == LEAVE_AFTER_ROLL)
        return;
    if (lie == FAIL_AFTER_ROLL)
        say(c, MPI_ERR_OTHER, NULL, 0);
    else if (lie == BABBLE_AFTER_ROLL)
        say(c, MPI_SUCCESS, babble, sizeof(babble));
    else
        say(c, MPI_SUCCESS, &flag, 1);
    free(hear(c, true));
    if (lie == FAIL_AFTER_VERDICT)
        say(c, INT32_MIN, NULL, 0);
    free(hear(c, true));
}

/* theirs: member 0 of the other side, as it was introduced; set if it was. */
static void tell_lie(const char *name, enum lie lie,
                     struct chempi_introduction *theirs)
{
    struct call c = {.takes = false};
    struct chempi_roll *roll;
    char *heard;

    chempi_lane_lock(&chempi_lane_main);
    CHECK_OR_DIE(chempi_port_connect(name, &c.x, NULL) == 0, "no port");
    chempi_lane_unlock(&chempi_lane_main);
    (void)hear(&c, false);
    CHECK_OR_DIE(c.rc == 1, "lie %d is not accepted", (int)lie);
    if (lie == SAY_NOTHING) {
        chempi_lane_lock(&chempi_lane_main);
        (void)chempi_exchange_send(c.x, "", 0, NULL);
        chempi_lane_unlock(&chempi_lane_main);
        free(hear(&c, true));
    } else if (lie == FAIL) {
        say(&c, MPI_ERR_LASTCODE + 1, NULL, 0);
        free(hear(&c, true));
    } else if (lie == LEAVE) {
        free(hear(&c, true)); /* it is accepted */
    } else {
        roll = describe(&c, lie, theirs);
        say(&c, MPI_SUCCESS, roll, chempi_roll_len(roll->count));
        free(roll);
        heard = hear(&c, true);
        CHECK_OR_DIE(heard && c.len >= 4 + chempi_roll_len(1),
                     "no roll is the answer to lie %d, but %zu bytes (%d)",
                     (int)lie, heard ? c.len : 0, c.rc);
        memcpy(theirs, heard + 4 + sizeof(struct chempi_roll), sizeof(*theirs));
        free(heard);
        end(&c, lie);
    }
    chempi_lane_lock(&chempi_lane_main);
    chempi_exchange_close(c.x);
    chempi_lane_unlock(&chempi_lane_main);
}

static void use(MPI_Comm inter)
{
    MPI_Comm both;
    int sum = 1;

    MPI_Intercomm_merge(inter, 0, &both);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, both);
    CHECK(sum == check_size() + 1, "%d ranks", sum);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
}

/* Behind the last place that a process of another world has. */
static uint32_t look_at_places(void)
{
    uint32_t end;

    chempi_lane_lock(&chempi_lane_main);
    CHECK(!chempi_foreign_check(), "%s", chempi_foreign_check());
    end = chempi_foreign_bonds()->index_end();
    chempi_lane_unlock(&chempi_lane_main);
    return end;
}

static void accept_all(char *name, const char *fifo)
{
    const uint32_t first = look_at_places();
    MPI_Comm comm, inter;
    FILE *file;
    int rc;

    if (check_rank() == 0) {
        MPI_Open_port(MPI_INFO_NULL, name);
        CHECK_OR_DIE(mkfifo(fifo, 0600) == 0 || errno == EEXIST, "mkfifo");
        file = fopen(fifo, "w");
        CHECK_OR_DIE(file && fputs(name, file) >= 0 && fclose(file) == 0,
                     "write the name");
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int lie = 0; lie < LIES; lie++) {
        inter = MPI_COMM_WORLD;
        rc = MPI_Comm_accept(name, MPI_INFO_NULL, 0, comm, &inter);
        CHECK(rc != MPI_SUCCESS, "lie %d is believed", lie);
        CHECK(inter == MPI_COMM_NULL, "lie %d gives something", lie);
        CHECK(look_at_places() == first || lie == FAIL_AFTER_VERDICT,
              "lie %d leaves something", lie);
    }
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_accept(name, MPI_INFO_NULL, 0, comm, &inter);
    use(inter);
    MPI_Comm_free(&comm);
    if (check_rank() == 0)
        MPI_Close_port(name);
}

static void lie_and_meet(char *name, const char *fifo)
{
    struct chempi_introduction theirs = {.card_len = 0};
    MPI_Comm inter, both;
    FILE *file = fopen(fifo, "r");
    int sum = 1;

    while (!file && errno == ENOENT)
        file = fopen(fifo, "r");
    CHECK_OR_DIE(file && fgets(name, MPI_MAX_PORT_NAME, file) &&
                     fclose(file) == 0,
                 "read the name");
    (void)introduce();
    for (int lie = 0; lie < LIES; lie++)
        tell_lie(name, (enum lie)lie, &theirs);
    MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Intercomm_merge(inter, 1, &both);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, both);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc == 3, "accept|lie FIFO");
    if (strcmp(argv[1], "accept") == 0)
        accept_all(name, argv[2]);
    else
        lie_and_meet(name, argv[2]);
    return check_finish();
}
