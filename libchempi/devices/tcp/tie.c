/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ties this process to another one: a secret that both hold, and numbers
 * by which both call themselves. In the own job that is the job's, and ranks;
 * with processes of other worlds a bond (services/bond.h).
 */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/devices/tcp/internal.h"

#define PURPOSE "chempi tcp device"

uint32_t chempi_tcp_tie_max(const struct chempi_services *services)
{
    return services->bonds ? services->bonds->index_max : services->proc_count;
}

uint32_t chempi_tcp_tie_end(const struct chempi_services *services)
{
    return services->bonds ? services->bonds->index_end()
                           : services->proc_count;
}

bool chempi_tcp_tie_leads_to(const struct chempi_services *services,
                             uint32_t proc)
{
    if (services->bonds)
        return proc >= services->bonds->index_begin &&
               proc < services->bonds->index_end();
    return proc < services->proc_count && proc != services->proc;
}

int chempi_tcp_tie_get(const struct chempi_services *services, uint32_t proc,
                       struct chempi_tcp_tie *out)
{
    struct chempi_bond_place place;

    if (!services->bonds) {
        *out = (struct chempi_tcp_tie){.self = services->proc, .peer = proc};
        return 0;
    }
    if (!services->bonds->place(proc, &place))
        return -EHOSTUNREACH;
    *out = (struct chempi_tcp_tie){
        .bond = place.bond, .self = place.bond->self, .peer = place.number};
    return 0;
}

/* The bond that is named, or none (the own job) if there is no name. */
static int find_bond(const struct chempi_services *services,
                     const uint8_t name[CHEMPI_BOND_NAME_BYTES],
                     const struct chempi_bond **out)
{
    *out = NULL;
    if (!services->bonds)
        return sodium_is_zero(name, CHEMPI_BOND_NAME_BYTES) ? 0 : -ENOENT;
    *out = services->bonds->find(name);
    return *out ? 0 : -ENOENT;
}

int chempi_tcp_tie_find(const struct chempi_services *services,
                        const struct chempi_tcp_preamble *preamble,
                        struct chempi_tcp_tie *out, uint32_t *proc)
{
    struct chempi_tcp_tie tie = {.self = services->proc,
                                 .peer = preamble->from};
    uint32_t index = preamble->from;

    if (find_bond(services, preamble->bond, &tie.bond))
        return -ENOENT;
    if (tie.bond) {
        tie.self = tie.bond->self;
        index = services->bonds->index(tie.bond, preamble->from);
    }
    if (preamble->to != tie.self || !chempi_tcp_tie_leads_to(services, index))
        return -ENOENT;
    *out = tie;
    *proc = index;
    return 0;
}

bool chempi_tcp_tie_is_before(const struct chempi_services *services,
                              uint32_t proc)
{
    return services->bonds ? services->bonds->is_before(proc)
                           : services->proc < proc;
}

size_t chempi_tcp_tie_context(const struct chempi_services *services,
                              const struct chempi_bond *bond, uint32_t from,
                              uint32_t to, uint32_t network,
                              uint8_t context[CHEMPI_AUTH_CONTEXT_MAX])
{
    char name[2 * CHEMPI_BOND_NAME_BYTES + 1];
    int n;

    if (bond)
        (void)sodium_bin2hex(name, sizeof(name), bond->name,
                             sizeof(bond->name));
    n = snprintf((char *)context, CHEMPI_AUTH_CONTEXT_MAX,
                 PURPOSE " %d from %u to %u by %u of %s%.64s",
                 CHEMPI_TCP_VERSION, (unsigned)from, (unsigned)to,
                 (unsigned)network, bond ? "bond " : "",
                 bond ? name : services->job_id);
    return n < CHEMPI_AUTH_CONTEXT_MAX ? (size_t)n
                                       : CHEMPI_AUTH_CONTEXT_MAX - 1;
}

/* What proves this process to that one of its job and seals what they say;
 * NULL: the job is not secure. */
static const struct chempi_keys *job_keys(const struct chempi_tcp_dev *dev,
                                          uint32_t peer)
{
    return dev->rank_keys && peer < dev->dev.params.services->rank_count
               ? dev->rank_keys
               : dev->keys;
}

/* A secure bond's keys are made for one proof, and forgotten with it. */
static int prove_sealed(struct chempi_tcp_proof *p, bool is_caller,
                        const uint8_t *secret, const uint8_t *context,
                        size_t len)
{
    struct chempi_keys *keys = chempi_tcp_proof_make_keys(secret);
    int rc;

    if (!keys)
        return -ENOMEM;
    rc = chempi_tcp_proof_init(p, is_caller, secret, keys, context, len);
    if (rc)
        chempi_tcp_proof_forget_keys(keys);
    else
        p->own = keys;
    return rc;
}

/* To a process of another world. */
static int prove_by_bond(const struct chempi_services *s,
                         const struct chempi_tcp_tie *tie, bool is_caller,
                         const uint8_t *context, size_t len,
                         struct chempi_tcp_proof *p)
{
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES];
    int rc;

    if (!s->bonds->secret(tie->bond, tie->peer, secret))
        return -EHOSTUNREACH;
    rc = tie->bond->is_secure
             ? prove_sealed(p, is_caller, secret, context, len)
             : chempi_tcp_proof_init(p, is_caller, secret, NULL, context, len);
    sodium_memzero(secret, sizeof(secret));
    return rc;
}

int chempi_tcp_tie_prove(const struct chempi_tcp_dev *dev,
                         const struct chempi_tcp_tie *tie, bool is_caller,
                         uint32_t network, struct chempi_tcp_proof *p)
{
    const struct chempi_services *s = dev->dev.params.services;
    const uint32_t from = is_caller ? tie->self : tie->peer;
    const uint32_t to = is_caller ? tie->peer : tie->self;
    uint8_t context[CHEMPI_AUTH_CONTEXT_MAX];
    size_t len =
        chempi_tcp_tie_context(s, tie->bond, from, to, network, context);

    return tie->bond
               ? prove_by_bond(s, tie, is_caller, context, len, p)
               : chempi_tcp_proof_init(p, is_caller, s->secret,
                                       job_keys(dev, tie->peer), context, len);
}

const char *chempi_tcp_tie_words(const struct chempi_services *services,
                                 uint32_t proc, char buf[CHEMPI_TCP_WHO_MAX])
{
    struct chempi_bond_place place;

    if (services->bonds && services->bonds->place(proc, &place))
        (void)snprintf(buf, CHEMPI_TCP_WHO_MAX, "%s on node %s", place.who,
                       place.node);
    else
        (void)snprintf(buf, CHEMPI_TCP_WHO_MAX, "process %u", (unsigned)proc);
    return buf;
}
