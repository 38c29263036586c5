/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What still comes of a process that has ended (T6): its system sends the rest
 * before it ends a connection, however slow the network is, and one network may
 * be slower than the other. No end comes where that system is gone itself or
 * cannot be reached, or where another process has the connection, too: then
 * nothing comes, or not what is waited for. Time counts while somebody looks.
 */
#define _GNU_SOURCE /* clock_gettime */
#include <errno.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "libchempi/devices/tcp/internal.h"

#define TIMES 4 /* of ended_ms at most, whatever comes */
/* Of a look, and the time before it: more than a tick. Who loses the processor
 * in a look has not looked meanwhile. */
#define STEP_MAX_NS UINT64_C(100000000)

/* The look that has begun at start_ns is over. */
static bool is_worth_waiting(struct chempi_tcp_ep *ep, uint64_t start_ns)
{
    const uint64_t limit_ns =
        chempi_dev_setting(ep->ep.dev, CHEMPI_TCP_SET_ENDED) * CHEMPI_NS_PER_MS;
    const uint64_t now_ns = chempi_clock_ns();
    uint64_t step_ns = now_ns - (ep->looked_ns ? ep->looked_ns : start_ns);

    step_ns = step_ns < STEP_MAX_NS ? step_ns : STEP_MAX_NS;
    ep->waited_ns += step_ns;
    ep->quiet_ns = ep->has_come ? 0 : ep->quiet_ns + step_ns;
    ep->looked_ns = now_ns;
    ep->has_come = false;
    return ep->quiet_ns < limit_ns && ep->waited_ns < TIMES * limit_ns;
}

enum chempi_remains chempi_tcp_rest_take(struct chempi_tcp_ep *ep)
{
    const uint64_t start_ns = chempi_clock_ns();
    bool is_read = true;
    bool may_come = false;

    for (uint32_t i = 0; i < ep->link_count; i++) {
        struct chempi_tcp_link *link = ep->links[i];

        if (link->state == CHEMPI_TCP_DIALING && ep->status)
            link->item.ready(&link->item, EPOLLIN); /* is it welcome? */
        is_read = chempi_tcp_drain_rest(link) && is_read;
        may_come |=
            chempi_tcp_is_open(link) || link->state == CHEMPI_TCP_DIALING;
    }
    if (!is_read)
        return CHEMPI_REMAINS_LEFT;
    if (ep->is_lost && may_come && is_worth_waiting(ep, start_ns))
        return CHEMPI_REMAINS_COMING;
    chempi_tcp_link_end_all(ep);
    return CHEMPI_REMAINS_NONE;
}
