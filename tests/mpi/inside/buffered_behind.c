/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buffered send behind many messages that wait for room looks at none of
 * those: all but the last one are in memory that cannot be read meanwhile.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <sys/mman.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/request.h"
#include "tests/mpi/check.h"

enum { PAGE = 4096, MANY = 8 };

static void send_behind(void)
{
    static struct chempi_outgoing last;
    static unsigned char room[MPI_BSEND_OVERHEAD + sizeof(int)];
    struct chempi_peer *peer = chempi_conn_peer(&chempi_lane_main, 1);
    struct chempi_outgoing *others = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int n = 7;

    CHECK_OR_DIE(others != MAP_FAILED, "mmap");
    MPI_Buffer_attach(room, sizeof(room));
    for (int i = 0; i < MANY; i++)
        chempi_list_append(&peer->waiting, &others[i].link);
    chempi_list_append(&peer->waiting, &last.link);
    CHECK_OR_DIE(!mprotect(others, PAGE, PROT_NONE), "mprotect");
    MPI_Bsend(&n, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    CHECK_OR_DIE(!mprotect(others, PAGE, PROT_READ | PROT_WRITE), "mprotect");
    for (int i = 0; i < MANY; i++)
        chempi_list_remove(&others[i].link);
    chempi_list_remove(&last.link);
    CHECK(!chempi_list_is_empty(&peer->waiting), "it does not wait");
    chempi_lane_lock(&chempi_lane_main);
    chempi_engine_mark(peer); /* there is room */
    chempi_lane_unlock(&chempi_lane_main);
    MPI_Buffer_detach(&(void *){NULL}, &(int){0}); /* when it has left */
    (void)munmap(others, PAGE);
}

int main(int argc, char **argv)
{
    int n = 0;

    check_start(&argc, &argv);
    check_need(2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0) {
        send_behind();
    } else if (check_rank() == 1) {
        MPI_Recv(&n, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(n == 7, "%d has come", n);
    }
    return check_finish();
}
