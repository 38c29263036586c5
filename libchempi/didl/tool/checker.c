/* SPDX-License-Identifier: BSD-3-Clause */
/* The door for libchempi-check; see checker.h. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "libchempi/didl/tool/checker.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

#include "libchempi/didl/base/call_site.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/send_site.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/datatype/signature.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/match.h"

static bool signature(MPI_Datatype handle, MPI_Count count,
                      struct chempi_checker_signature *out)
{
    struct chempi_datatype *type = chempi_datatype_lookup(handle);
    struct chempi_signature s;

    if (!type || count < 0)
        return false;
    s = chempi_signature_of(type, count);
    *out = (struct chempi_checker_signature){
        .hash = s.hash,
        .bytes = s.bytes,
        .kind = s.kind,
        .is_open = s.is_open,
    };
    return true;
}

static bool piece(MPI_Datatype handle, MPI_Count count, MPI_Count *start,
                  MPI_Count *bytes)
{
    const struct chempi_datatype *type = chempi_datatype_lookup(handle);

    /* No holes in an element, and none between two. */
    if (!type || type->size == 0 || type->size != type->true_extent ||
        (count > 1 && type->extent != type->size) ||
        CHEMPI_MUL_OVERFLOWS(type->size, count, bytes))
        return false;
    *start = type->true_lb;
    return *bytes > 0;
}

static const char *kind_name(uint64_t kind)
{
    return chempi_signature_name(kind < CHEMPI_BASIC_TYPE_COUNT
                                     ? (uint8_t)kind
                                     : CHEMPI_BASIC_TYPE_NONE);
}

static_assert(CHEMPI_CHECKER_TEXT == CHEMPI_CALL_SITE_TEXT, "both are one");

static bool origin_of(MPI_Message message, char text[CHEMPI_CHECKER_TEXT])
{
    const struct chempi_held *held = (const void *)message;

    return chempi_handle_is_address(message) &&
           held->obj.magic == CHEMPI_MAGIC_MESSAGE &&
           chempi_send_site_ask(held->peer, held->env.serial, text);
}

static void take_notices(void)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_daemon_poll();
    chempi_lane_unlock(&chempi_lane_main);
}

static void hide(MPI_Comm handle)
{
    struct chempi_comm *comm = chempi_comm_lookup(handle);

    if (comm)
        comm->is_unseen = true;
}

static const struct chempi_checker_door door = {
    .version = CHEMPI_CHECKER_VERSION,
    .signature = signature,
    .piece = piece,
    .kind_name = kind_name,
    .watch_signatures = chempi_signature_watch,
    .set_place = chempi_call_site_set,
    .origin = origin_of,
    .listen = take_notices,
    .hide = hide,
    .end_self = chempi_comm_run_self_deleters,
};

void chempi_tool_attach_checker(void)
{
    void *found = dlsym(RTLD_DEFAULT, CHEMPI_CHECKER_SYMBOL);
    chempi_checker_attach_fn *attach = NULL;

    if (!found)
        return;
    chempi_light_refuse(); /* messages tell of their types and places */
    memcpy(&attach, &found, sizeof(attach)); /* C has no such cast */
    attach(&door);
}
