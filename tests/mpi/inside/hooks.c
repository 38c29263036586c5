/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work for a hook that is published after a poll has called the hook, and
 * before the process sleeps, is done: nobody wakes a process that is awake.
 * The settings in the list make a wait sleep after two polls; the work comes
 * after the first one, after the second one, and when the process has already
 * said that it sleeps.
 */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "tests/mpi/check.h"

static struct {
    int polls; /* in this wait */
    int late;  /* which of them is followed by work */
    int work;
    int done;
} my;

static int do_work(struct chempi_progress_hook *hook)
{
    int events = my.work;

    (void)hook;
    my.done += my.work;
    my.work = 0;
    return events;
}

/* In the place of another thread, behind the first hook. */
static int publish(struct chempi_progress_hook *hook)
{
    (void)hook;
    if (++my.polls == my.late) {
        my.work = 1;
        chempi_progress_rouse_local(chempi_ctx.services.local_rank);
    }
    return 0;
}

static bool is_done(void *arg)
{
    (void)arg;
    return my.done > 0;
}

int main(int argc, char **argv)
{
    struct chempi_progress_hook hooks[] = {{.poll = do_work},
                                           {.poll = publish}};

    check_start(&argc, &argv);
    for (int late = 1; late <= 3; late++) {
        my.polls = my.work = my.done = 0;
        my.late = late;
        chempi_lane_lock(&chempi_lane_main);
        chempi_progress_add_hook(&hooks[0]);
        chempi_progress_add_hook(&hooks[1]);
        chempi_lane_unlock(&chempi_lane_main);
        (void)chempi_progress_wait(is_done, NULL);
        chempi_lane_lock(&chempi_lane_main);
        CHECK(my.polls >= late, "%d polls, %d expected", my.polls, late);
        chempi_progress_remove_hook(&hooks[0]);
        chempi_progress_remove_hook(&hooks[1]);
        chempi_lane_unlock(&chempi_lane_main);
    }
    return check_finish();
}
