/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Open_port, MPI_Close_port, MPI_Comm_accept, MPI_Comm_connect and
 * MPI_Comm_join; what they have in common is meet.c's. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/proc/meet.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/transport/lane.h"

/* Longer ones are none: 30 years. */
#define LIMIT_MAX_NS (UINT64_C(1000000000) * CHEMPI_NS_PER_S)

int chempi_meet_accept(const struct chempi_meet *meet,
                       struct chempi_exchange **out, struct chempi_err *err)
{
    return chempi_port_accept(meet->port, out, err);
}

int chempi_meet_connect(const struct chempi_meet *meet,
                        struct chempi_exchange **out, struct chempi_err *err)
{
    return chempi_port_connect(meet->port, out, err);
}

static int begin_join(const struct chempi_meet *meet,
                      struct chempi_exchange **out, struct chempi_err *err)
{
    return chempi_exchange_join(meet->fd, out, err);
}

int chempi_meet_check(const struct chempi_comm *comm, int *root, int refused,
                      int *error)
{
    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "the communicator is an "
                                              "intercommunicator");
    *error = refused;
    if (*root >= 0 && (uint32_t)*root < comm->size)
        return MPI_SUCCESS;
    if (!refused)
        *error = chempi_error_set(
            MPI_ERR_ROOT, "root %d is not in 0..%ld of the communicator", *root,
            (long)comm->size - 1);
    *root = 0;
    return MPI_SUCCESS;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Of the key "timeout": seconds as "12" or "0.5", whatever the program's locale
 * is; what is none does not count. */
static uint64_t limit_of(const struct chempi_info *info)
{
    const char *c = info ? chempi_info_find(info, "timeout") : NULL;
    uint64_t unit_ns = CHEMPI_NS_PER_S;
    uint64_t ns = 0;

    if (!c)
        return 0;
    for (; is_digit(*c) && ns <= LIMIT_MAX_NS; c++)
        ns = 10 * ns + (uint64_t)(*c - '0') * unit_ns;
    if (*c == '.')
        for (c++; is_digit(*c); c++) {
            unit_ns /= 10;
            ns += (uint64_t)(*c - '0') * unit_ns;
        }
    return *c == '\0' && ns <= LIMIT_MAX_NS ? ns : 0;
}

/* Whoever has a port's name, or a socket, may be a stranger. */
static uint32_t most_processes(void)
{
    return (uint32_t)chempi_setting(CHEMPI_SET_MEET_PROCESSES);
}

/* Port name and info count at the root. */
static int meet_by_port(struct chempi_meet *meet, const char *port_name,
                        const struct chempi_info *info, int refused,
                        MPI_Comm *newcomm)
{
    int rc = chempi_meet_check(meet->comm, &meet->root, refused, &meet->error);

    if (newcomm)
        *newcomm = MPI_COMM_NULL;
    if (rc != MPI_SUCCESS)
        return rc;
    if (meet->comm->rank == meet->root && !meet->error) {
        meet->most = most_processes();
        meet->port = port_name;
        meet->limit_ns = limit_of(info);
    }
    return chempi_meet(meet, newcomm);
}

int chempi_proc_accept(const char *port_name, struct chempi_info *info,
                       int root, struct chempi_comm *comm, MPI_Comm *newcomm,
                       int refused)
{
    struct chempi_meet meet = {.comm = comm,
                               .root = root,
                               .begin = chempi_meet_accept,
                               .way = "a caller of the port",
                               .error_class = MPI_ERR_PORT};

    return meet_by_port(&meet, port_name, info, refused, newcomm);
}

int chempi_proc_connect(const char *port_name, struct chempi_info *info,
                        int root, struct chempi_comm *comm, MPI_Comm *newcomm,
                        int refused)
{
    struct chempi_meet meet = {.comm = comm,
                               .root = root,
                               .begin = chempi_meet_connect,
                               .way = "the owner of the port",
                               .error_class = MPI_ERR_PORT};

    return meet_by_port(&meet, port_name, info, refused, newcomm);
}

int chempi_proc_join(int fd, MPI_Comm *intercomm)
{
    const struct chempi_meet meet = {.comm = &chempi_comm_self,
                                     .begin = begin_join,
                                     .fd = fd,
                                     .most = most_processes(),
                                     .way = "the other end of the socket",
                                     .error_class = MPI_ERR_OTHER};

    *intercomm = MPI_COMM_NULL;
    return chempi_meet(&meet, intercomm);
}

int chempi_proc_open_port(struct chempi_info *info, char *port_name)
{
    char name[CHEMPI_PORT_NAME_MAX];
    struct chempi_err err = {0};
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_port_open(info ? chempi_info_find(info, "ip_port") : NULL,
                          info ? chempi_info_find(info, "ip_address") : NULL,
                          name, &err);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return chempi_error_set(rc == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_PORT,
                                "%s", err.text);
    memcpy(port_name, name, strlen(name) + 1);
    return MPI_SUCCESS;
}

int chempi_proc_close_port(const char *port_name)
{
    struct chempi_err err = {0};
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_port_close(port_name, &err);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? chempi_error_set(MPI_ERR_PORT, "%s", err.text) : MPI_SUCCESS;
}
