/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calling many hosts as a tree, and sending the launch along it: what the
 * launcher and remotes with others below them do alike (remote.h).
 *
 *   O1  a group is called by its first remote; the groups are consecutive, and
 *       at most CHEMPI_REMOTE_CALLS
 *   -   nothing is said to a remote between CALLED and LAUNCH
 */
#ifndef CHEMPI_CHEMPID_REMOTE_TREE_H
#define CHEMPI_CHEMPID_REMOTE_TREE_H

#include "chempid/job/spec.h"
#include "chempid/remote/remote.h"
#include "chempid/tree/hub.h"
#include "chempid/tree/link.h"

/* So many hosts, and fewer, the launcher calls itself. */
#define CHEMPI_REMOTE_FLAT 20u
/* For a host to answer that another one calls; each level of the tree has half
 * as much. */
#define CHEMPI_REMOTE_GROUP_MS 10000u

/*
 * Call all these remotes as a tree. Afterwards `via` says how each is reached,
 * and `why` why not. Blocks, for the way's limit and twice that of groups. As
 * chempi_remote_call().
 */
int chempi_remote_spread(struct chempi_remote *remotes, uint32_t count,
                         const struct chempi_remote_way *way,
                         struct chempi_err *err);

/*
 * Call all of the remotes, from the root: the first `tree_count` of them as a
 * tree if they are many, and all that are not reached so by itself, which
 * `is_verbose` tells on standard error. Blocks. 0, or -errno with words that
 * name the host; then none is left.
 */
int chempi_remote_reach(struct chempi_remote *remotes, uint32_t count,
                        uint32_t tree_count, const char *launcher,
                        bool is_verbose, struct chempi_err *err);

/*
 * Tell remote `at`, with which we speak, its part of the job and that of all
 * which it has called, and put them below the hub. The link takes the
 * connection over; the caller sets its callbacks. 0 or -errno with words.
 */
int chempi_remote_start(struct chempi_remote *remotes, uint32_t count,
                        uint32_t at, const struct chempi_spec *spec,
                        struct chempi_hub *hub, struct chempi_link *link,
                        struct ev_loop *loop, struct chempi_err *err);

/* CALLED of remote `head`: those of its group that it has not reached have no
 * `via` then. 0; -EBADMSG: it is malformed, or tells of others. */
int chempi_remote_take_called(struct chempi_remote *remotes, uint32_t count,
                              uint32_t head, const struct chempi_frame *frame);

/* Wait for the next frame: 0, -ETIMEDOUT, or -errno as reading fails. */
int chempi_remote_await(struct chempi_channel *ch, uint64_t deadline_ns,
                        struct chempi_frame *frame);
/* Write all that is queued: the same. */
int chempi_remote_flush(struct chempi_channel *ch, uint64_t deadline_ns);

/* In a process of its own: serve a remote that was told to call others, over
 * fd, on which CALL comes first. Does not return. */
_Noreturn void chempi_remote_serve_inner(int fd);

#endif
