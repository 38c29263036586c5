/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank cannot open all the lanes that it may have, for want of memory or of
 * shared memory: it has those before, and its communicators are in lanes that
 * all their members have.
 *
 * usage: lanes_starved memory|maps
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { COMMS = 12, LANES = 4, LANES_LEFT = 2, LONG = 300000 /* bytes */ };

static struct {
    int refused;
} maps;

/* What the third lane maps. */
static void *take_map(void *addr, size_t len, int prot, int flags, int fd,
                      off_t off)
{
    if (chempi_lane_count != LANES_LEFT + 1 || !(flags & MAP_SHARED))
        return mmap(addr, len, prot, flags, fd, off);
    maps.refused++;
    errno = ENOMEM;
    return MAP_FAILED;
}

/* Before MPI_Init: rank 0 is not known by MPI yet. */
static void starve(const char *what)
{
    const char *rank = getenv("CHEMPI_RANK");

    starve_start((struct starve_sizes){SIZE_MAX, sizeof(struct chempi_lane)});
    if (!rank || strcmp(rank, "0") != 0)
        return;
    if (strcmp(what, "memory") == 0)
        starve_all(LANES_LEFT - 1);
    else
        starve_sys.mmap = take_map;
}

/* A message of each size to the next one; they wait for a receive. */
static void use(MPI_Comm comm, int i)
{
    static char out[LONG];
    static char in[LONG];
    const int up = (check_rank() + 1) % check_size();
    const int down = (check_rank() + check_size() - 1) % check_size();

    for (int len = 1; len <= LONG; len *= 66) {
        MPI_Request request;

        check_fill(out, (size_t)len, (uint64_t)(i + check_rank()));
        MPI_Isend(out, len, MPI_BYTE, up, i, comm, &request);
        MPI_Recv(in, len, MPI_BYTE, down, i, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(check_differs(in, (size_t)len, (uint64_t)(i + down)) == SIZE_MAX,
              "communicator %d: other bytes of %d", i, len);
    }
}

static unsigned lane_bit(MPI_Comm comm)
{
    return 1u << chempi_comm_lookup(comm)->lane->number;
}

/* Returns the lanes that are used, a bit each. */
static unsigned use_copies(void)
{
    MPI_Comm comms[COMMS];
    unsigned used = 0;

    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        used |= lane_bit(comms[i]);
        use(comms[i], i);
    }
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    return used;
}

/* The same, all begun before one is there. A rank knows the lane of one, and
 * sends in it, before others do. */
static unsigned use_copies_at_once(void)
{
    MPI_Comm comms[COMMS];
    MPI_Request requests[COMMS];
    unsigned used = 0;

    for (int i = 0; i < COMMS; i++)
        MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]);
    for (int i = 0; i < COMMS; i++) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        used |= lane_bit(comms[i]);
        use(comms[i], i);
    }
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    return used;
}

int main(int argc, char **argv)
{
    unsigned used;
    int refused;

    CHECK_OR_DIE(argc == 2, "usage: lanes_starved memory|maps");
    starve(argv[1]);
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    starve_end();
    if (check_rank() == 0) {
        CHECK(chempi_lane_count == LANES_LEFT, "there are %u lanes",
              chempi_lane_count);
        refused = starve_refused() + maps.refused;
        CHECK(refused == 1, "%d were refused", refused);
    } else {
        CHECK(chempi_lane_count == LANES, "there are %u lanes",
              chempi_lane_count);
    }
    used = use_copies() | use_copies_at_once();
    CHECK(used == 1u << (LANES_LEFT - 1), "lanes %x are used", used);
    return check_finish();
}
