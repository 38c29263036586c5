/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of other worlds: their names, their indexes and the bonds with them
 * (bond.h). foreign_device.h reaches them. doc/dynamic.md has the whole.
 *
 *   -   indexes below chempi_ctx.services.proc_count are those of the own job;
 *       from there on, up to CHEMPI_FOREIGN_MAX more, they are given out in
 *       the order in which processes become known, and never taken back
 *   -   a name is (world, rank); two indexes have different names, and a
 *       process of the own job has its rank for index, whoever names it
 *   -   tables by index are addresses that are reserved at the start: they
 *       grow without moving, and cost pages that were written to
 *   -   what processes of several worlds must agree on uses names, never
 *       indexes (chempi_foreign_compare(), chempi_foreign_hash())
 *   -   a foreign process's node has an index of its own kind, behind those of
 *       the job: nobody takes it for a node whose memory can be shared
 *
 * Writers hold the first lane's lock; any thread may read what it has an index
 * for.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_WORLDS_FOREIGN_H
#define CHEMPI_LIBCHEMPI_DIDL_WORLDS_FOREIGN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "libchempi/services/bond.h"

#define CHEMPI_FOREIGN_MAX 65536u /* processes of other worlds, in a life */
/* Bytes in a life for members of bonds who were known before: whoever meets
 * this process again and again has it keep no more. A bond that brings nobody
 * new takes a page at least. */
#define CHEMPI_FOREIGN_AGAIN_MAX (64u << 20)
#define CHEMPI_FOREIGN_CARD_MAX 1024u
#define CHEMPI_FOREIGN_KEY_BYTES 32u
#define CHEMPI_FOREIGN_SIGNATURE_BYTES 64u

/* A process, everywhere the same. */
struct chempi_name {
    uint64_t world[2]; /* digest of its key (vouch.h) */
    uint32_t rank;     /* in its MPI_COMM_WORLD */
};

/* What a process tells others of itself. Fixed size: lists of them are
 * gathered and handed down. */
struct chempi_introduction {
    struct chempi_name name;
    char node[64];     /* with the zero */
    uint32_t survives; /* 1: the end of a rank does not end its world */
    uint32_t is_secure;
    uint32_t eager_quota; /* bytes; the smaller one of two processes counts */
    uint32_t sysmsg_quota;
    uint32_t card_len;
    uint8_t card[CHEMPI_FOREIGN_CARD_MAX]; /* of the device that is called */
    uint8_t key[CHEMPI_FOREIGN_KEY_BYTES]; /* its world's */
    uint8_t signature[CHEMPI_FOREIGN_SIGNATURE_BYTES]; /* of all before */
};

/* What is known of a process of another world. */
struct chempi_foreign {
    struct chempi_name name;
    uint32_t node;   /* behind those of the own job, from 0 */
    uint32_t bond;   /* by which it is called, from 0 */
    uint32_t number; /* in it */
    bool is_agreed;  /* that bond is */
    bool survives;
    bool is_secure;
    uint32_t eager_quota;
    uint32_t sysmsg_quota;
    uint32_t card_len;
    uint8_t *card;
    uint8_t key[CHEMPI_FOREIGN_KEY_BYTES]; /* its world's */
    char who[48];                          /* "rank 3 of world 5f2c81d0" */
    const char *_Atomic loss;              /* a sentence, once it is missing */
};

/* The same world? */
static inline bool chempi_foreign_is_world(const uint64_t a[2],
                                           const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

/* True: this index is no process of the own job. */
bool chempi_foreign_is(uint32_t index);
/* Of such an index. It stays where it is. */
const struct chempi_foreign *chempi_foreign_at(uint32_t index);
/* The index of a process; UINT32_MAX: it is not known, or cannot be. */
uint32_t chempi_foreign_find(const struct chempi_name *name);

/* Of any index. */
struct chempi_name chempi_foreign_name(uint32_t index);
int chempi_foreign_compare(const struct chempi_name *a,
                           const struct chempi_name *b);
uint32_t chempi_foreign_hash(const struct chempi_name *name);
/* Of any index: "rank 3 of world 5f2c81d0 on node b", cut; worlds are named by
 * the beginning of their digest, everywhere alike. */
void chempi_foreign_words(uint32_t index, char *buf, size_t len);
/* Such a process, or all of its world that are known, are missing: the
 * sentence for errors. The first one of a process counts. Holder of the first
 * lane. */
void chempi_foreign_note_loss(uint32_t index, bool is_all,
                              const char *sentence);
/* Of such an index, or NULL. It stays where it is. From any thread. */
const char *chempi_foreign_loss(uint32_t index);
/* Of any index; for own ones services.node_of_proc. */
uint32_t chempi_foreign_node(uint32_t index);
const char *chempi_foreign_node_name(uint32_t index);

/*
 * A bond comes to be in three steps, so that nobody is called who does not know
 * it yet, and one that comes to nothing leaves nothing:
 *
 *   prepare   what it takes is there; nobody sees it
 *   take in   its members have indexes, and who calls under it is let in.
 *             Cannot fail. When all have prepared it
 *   agree     its members are called under it, unless there is another one
 *             that is agreed. When all have taken it in
 *
 * Members are those of side 0 and then those of side 1, in this order at all of
 * them; this process is one. Members of the own job keep their ranks. Who is
 * known already, and is introduced as another one, is refused. -errno with
 * words: -EPROTO for what cannot be, -EALREADY: a process would meet itself,
 * -ENOSPC: too many are known, or were met again, -ENOMEM.
 */
int chempi_foreign_prepare(const uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                           const struct chempi_introduction *members,
                           uint32_t count, struct chempi_bond **out,
                           struct chempi_err *err);
/* Of a prepared one: is there anybody who is not called by another bond that is
 * agreed? If not at any member, all can drop it. */
bool chempi_foreign_needs(const struct chempi_bond *bond);
void chempi_foreign_take_in(struct chempi_bond *bond);
void chempi_foreign_agree(struct chempi_bond *bond);
/* A prepared one; NULL is fine. */
void chempi_foreign_drop(struct chempi_bond *bond);
/* [bond->size]; UINT32_MAX: not known yet, of a prepared one. */
const uint32_t *chempi_foreign_indexes(const struct chempi_bond *bond);

/* NULL, or what of F1 to F5 does not hold (invariant.h). */
const char *chempi_foreign_check(void);

/* For the device that reaches them. */
const struct chempi_bonds *chempi_foreign_bonds(void);

/* Forget all of them, behind the devices. */
void chempi_foreign_fini(void);

/* Once for each bond: the ranks of the own job that are in one with somebody of
 * this world. */
void chempi_foreign_for_met(const uint64_t world[2],
                            void (*visit)(uint32_t rank, const void *arg),
                            const void *arg);

#endif
