/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs have met, and a rank of the one that has connected ends without a
 * word. All of its world is lost then: whatever waits for it at the other job
 * fails with MPI_ERR_PROC_ABORTED, at ranks that have never spoken to it, too;
 * the other job goes on, and can meet the next one.
 *
 * meet_lost accept|connect FIFO [silent]: before it has said anything
 * meet_lost alone: a rank of the own side ends while nobody calls
 */
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { TAG = 3 };

/* The last rank ends when rank 0 of the other side, which waits for it, says
 * so; the others wait for what does not come. */
static void end(MPI_Comm inter, bool is_silent)
{
    int none;

    if (is_silent && check_rank() == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, inter, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, check_size() - 1, TAG, MPI_COMM_WORLD);
    }
    if (check_rank() == check_size() - 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, is_silent ? MPI_COMM_WORLD : inter,
                 MPI_STATUS_IGNORE);
        (void)raise(SIGKILL);
    }
    MPI_Recv(&none, 1, MPI_INT, 0, TAG + 1, inter, MPI_STATUS_IGNORE);
}

/* Memory of both worlds: a window, or none of who says nothing. */
static MPI_Win make_window(MPI_Comm inter, bool accepts, bool is_silent)
{
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm both;
    int *memory;

    if (is_silent)
        return win;
    MPI_Intercomm_merge(inter, !accepts, &both);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, both, &memory,
                     &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    for (int rank = 0, size = check_size(); rank <= size; rank++)
        MPI_Accumulate(&(int){1}, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM,
                       win);
    MPI_Win_unlock_all(win);
    MPI_Comm_free(&both);
    return win;
}

static void outlive(MPI_Comm inter, MPI_Win win, const char *name,
                    bool is_silent)
{
    MPI_Comm next;
    int remote, none, sum = 0;
    int rc;

    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Barrier(MPI_COMM_WORLD); /* all have met, and have the window */
    if (check_rank() == 0)
        MPI_Send(NULL, 0, MPI_BYTE, is_silent ? 0 : remote - 1, TAG, inter);
    rc = MPI_Recv(&none, 1, MPI_INT, check_rank() % remote, TAG, inter,
                  MPI_STATUS_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a receive ends with %d",
          rc);
    rc = MPI_Recv(&none, 1, MPI_INT, MPI_ANY_SOURCE, TAG, inter,
                  MPI_STATUS_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "any source: %d", rc);
    rc = MPI_Barrier(inter);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a barrier: %d", rc);
    rc = MPI_Send(&none, 1, MPI_INT, remote - 1, TAG, inter);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "a send: %d", rc);
    if (win != MPI_WIN_NULL) {
        rc = MPI_Win_free(&win);
        CHECK(rc == MPI_SUCCESS && win == MPI_WIN_NULL, "MPI_Win_free: %d", rc);
    }
    MPI_Comm_disconnect(&inter);
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == check_size(), "this job has %d ranks", sum);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (check_rank() == 0) { /* nobody calls any more */
        MPI_Info info;

        MPI_Info_create(&info);
        MPI_Info_set(info, "timeout", "0.2");
        rc = MPI_Comm_accept(name, info, 0, MPI_COMM_SELF, &next);
        CHECK(check_class(rc) == MPI_ERR_PORT, "an accept ends with %d", rc);
        MPI_Info_free(&info);
    }
}

/* It has slept each time for so many looks: it is in the accept by now. */
static void await_sleep(int pid)
{
    char path[64];
    char stat[256];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    for (int i = 0; i < 2000; i++) {
        FILE *file = fopen(path, "r");

        if (!file || !fgets(stat, sizeof(stat), file))
            _exit(1);
        (void)fclose(file);
        i = strstr(stat, ") S ") ? i : 0;
        (void)sched_yield();
    }
}

/* The last rank ends within the call. */
static void lose_one(void)
{
    int pid = (int)getpid();
    MPI_Comm inter;
    char name[MPI_MAX_PORT_NAME];
    int rc;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (check_rank() == check_size() - 1) {
        const pid_t parent = getpid();

        if (fork() == 0) {
            await_sleep(pid);
            (void)kill(parent, SIGKILL);
            _exit(0);
        }
    }
    rc = MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    CHECK_OR_DIE(check_class(rc) == MPI_ERR_PROC_ABORTED,
                 "the accept ends with %d", rc);
    MPI_Close_port(name);
    printf("it has ended\n");
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    bool accepts;
    MPI_Comm inter;
    MPI_Win win;

    check_start(&argc, &argv);
    if (argc == 2 && strcmp(argv[1], "alone") == 0) {
        lose_one();
        MPI_Finalize();
        return 0;
    }
    CHECK_OR_DIE(argc > 2, "usage: meet_lost accept|connect FIFO");
    accepts = strcmp(argv[1], "accept") == 0;
    if (accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    if (!accepts) {
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        (void)make_window(inter, accepts, argc > 3);
        end(inter, argc > 3);
        return 1;
    }
    MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    win = make_window(inter, accepts, argc > 3);
    outlive(inter, win, name, argc > 3);
    if (check_rank() == 0)
        MPI_Close_port(name);
    return check_finish();
}
