/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's event loop: the root of a job's tree from its start to its
 * end, whatever stands below it: supervisors of its own (a private job), or a
 * daemon.
 *
 *   U1  the job has ended when every node is gone and all is written that ranks
 *       and the launcher had to say; who insists (U5) waits for neither
 *   U2  KILL is sent once; what is reported later can only improve the
 *       sentence that says why
 *   U3  when run() returns, no descendant is left that was not there before
 *   U4  the verdict stands when all ranks of all worlds have ended: time
 *       limits, signals and orders that come while figures are gathered only
 *       hasten the end
 *   U5  a job that was told to end does not keep us for longer than QUIET_S
 *       without a sign of it, one whose ranks have ended not for longer than
 *       LEAVE_S, whatever stands still below; output is waited for, but not
 *       where somebody insists (a third interrupt)
 *   U6  of a job that is refused because others have taken slots that were to
 *       be free, no program has run, no input was read, and nothing is left: it
 *       may be started anew
 */
#ifndef CHEMPI_CHEMPID_RUN_H
#define CHEMPI_CHEMPID_RUN_H

#include "chempid/job/spec.h"
#include "chempid/options/options.h"
#include "common/base/err.h"

/* Run the job with supervisors of our own; returns the exit status. What
 * there is to say is printed to standard error. */
int chempi_run_private(const struct chempi_options *opt,
                       const struct chempi_spec *spec);

struct chempi_remote;

/* Run the job with supervisors that answer already, one for each node of the
 * description in its order (remote_tree.h); connections are taken over. */
int chempi_run_far(const struct chempi_options *opt,
                   const struct chempi_spec *spec,
                   struct chempi_remote *remotes);

/* Run the job through the daemon at the other end of fd (taken over), which
 * is that of node `daemon`. taken->code is -EAGAIN, with words that were not
 * printed, when the slots that the description claims have been taken by other
 * jobs (U6); else it says nothing. */
int chempi_run_remote(const struct chempi_options *opt,
                      const struct chempi_spec *spec, int fd,
                      const char *daemon, struct chempi_err *taken);

#endif
