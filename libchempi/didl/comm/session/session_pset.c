/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Process sets. They follow from what every process knows of the job: who runs
 * on which node, and which nodes the connection table attaches to which
 * network. Nothing is communicated, and nothing kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/session/session.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/locality/locality.h"

#define NODE_PREFIX "chempi://node/"
#define NETWORK_PREFIX "chempi://network/"

enum { FIXED_SETS = 3 }; /* world, self, this node */

/* A set as a rule: who belongs to it. */
struct pset {
    enum { PSET_WORLD, PSET_SELF, PSET_NODE, PSET_NETWORK } kind;
    uint32_t which; /* node of the job; network of the table */
};

/* ---- the sets of this process ---- */

uint32_t chempi_session_pset_count(void)
{
    return FIXED_SETS + chempi_locality_network_count();
}

int chempi_session_pset_name(uint32_t n, char *out, size_t room)
{
    const struct chempi_services *s = &chempi_ctx.services;

    switch (n) {
    case 0:
        return snprintf(out, room, "mpi://WORLD");
    case 1:
        return snprintf(out, room, "mpi://SELF");
    case 2:
        return snprintf(out, room, NODE_PREFIX "%s", s->node_names[s->node]);
    default:
        return snprintf(out, room, NETWORK_PREFIX "%s",
                        chempi_locality_network_name(
                            chempi_locality_network_at(n - FIXED_SETS)));
    }
}

/* ---- any set by its name ---- */

static bool find_node(const char *name, struct pset *set)
{
    const struct chempi_services *s = &chempi_ctx.services;

    set->kind = PSET_NODE;
    for (set->which = 0; set->which < s->node_count; set->which++)
        if (strcmp(s->node_names[set->which], name) == 0)
            return true;
    return false;
}

static bool find_network(const char *name, struct pset *set)
{
    set->kind = PSET_NETWORK;
    set->which = chempi_locality_find_network(name);
    return set->which != CHEMPI_LOCALITY_NONE;
}

static bool find(const char *name, struct pset *set)
{
    size_t node_len = strlen(NODE_PREFIX);
    size_t network_len = strlen(NETWORK_PREFIX);

    *set = (struct pset){.kind = PSET_WORLD};
    if (strcasecmp(name, "mpi://WORLD") == 0)
        return true;
    set->kind = PSET_SELF;
    if (strcasecmp(name, "mpi://SELF") == 0)
        return true;
    if (strncasecmp(name, NODE_PREFIX, node_len) == 0)
        return find_node(name + node_len, set);
    return strncasecmp(name, NETWORK_PREFIX, network_len) == 0 &&
           find_network(name + network_len, set);
}

/* Does the set hold the processes of this node? */
static bool has_node(const struct pset *set, uint32_t node)
{
    return set->kind == PSET_NODE
               ? set->which == node
               : chempi_locality_is_attached(node, set->which);
}

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for a process set");
}

static int unknown(const char *name)
{
    return chempi_error_set(MPI_ERR_ARG,
                            "there is no process set \"%s\"; "
                            "MPI_Session_get_nth_pset lists those of this "
                            "process",
                            name);
}

/* The processes on the nodes that the set holds. */
static int collect(const struct pset *set, uint32_t **procs, uint32_t *size)
{
    const struct chempi_services *s = &chempi_ctx.services;
    const uint32_t ranks = chempi_ctx.job->size;
    uint32_t *out = chempi_sys->malloc(ranks * sizeof(*out));
    bool *is_in = chempi_sys->malloc(s->node_count * sizeof(*is_in));
    uint32_t count = 0;

    if (!out || !is_in) {
        free(out);
        free(is_in);
        return no_memory();
    }
    for (uint32_t n = 0; n < s->node_count; n++)
        is_in[n] = has_node(set, n);
    for (uint32_t p = 0; p < ranks; p++)
        if (is_in[s->node_of_proc[p]])
            out[count++] = p;
    free(is_in);
    *procs = out;
    *size = count;
    return MPI_SUCCESS;
}

static int only_self(uint32_t **procs, uint32_t *size)
{
    uint32_t *out = chempi_sys->malloc(sizeof(*out));

    if (!out)
        return no_memory();
    *out = chempi_ctx.services.proc;
    *procs = out;
    *size = 1;
    return MPI_SUCCESS;
}

int chempi_session_pset_find(const char *name, uint32_t **procs, uint32_t *size)
{
    struct pset set;

    if (!find(name, &set))
        return unknown(name);
    if (set.kind == PSET_SELF)
        return only_self(procs, size);
    if (set.kind != PSET_WORLD) {
        int rc = collect(&set, procs, size);

        if (rc || *size > 0)
            return rc;
        free(*procs);
        *procs = NULL;
        return unknown(name); /* a network that no process of the job is on */
    }
    *procs = NULL;
    *size = chempi_ctx.job->size;
    return MPI_SUCCESS;
}

int chempi_session_pset_has_self(const char *name, bool *has_self)
{
    struct pset set;

    if (!find(name, &set))
        return unknown(name);
    *has_self = set.kind == PSET_WORLD || set.kind == PSET_SELF ||
                has_node(&set, chempi_ctx.services.node);
    return MPI_SUCCESS;
}
