/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measure what a protocol costs on a network: a job of two processes
 * (chempi-probe) between two nodes of the network, whose connection tables
 * are made so that this protocol of this network is the fastest way at every
 * size that it takes. What the job reports of its traffic must agree.
 */
#ifndef CHEMPI_MDCONFIG_MEASURE_H
#define CHEMPI_MDCONFIG_MEASURE_H

#include "mdconfig/description/desc.h"
#include "mdconfig/measure/fit.h"

#define CHEMPI_MEASURE_AT_MOST 7 /* once, for twice, for four times as long */

struct chempi_measure {
    const struct chempi_desc *desc;
    const char *scratch; /* a directory that all nodes see */
    double seconds;      /* of measuring, per protocol and pair; up to
                          * CHEMPI_MEASURE_AT_MOST times that where the figures
                          * are not steady */
    bool is_virtual;     /* nodes are virtual ones of this host, no daemons */
};

/*
 * Between two nodes, which are the same for a network inside nodes. Errors:
 * -errno with words; -EINTR when the user wants it to end; -ENOTSUP when the
 * messages took another way than the one that was asked for, or would all be
 * too long; -EBUSY when the figures did not become steady.
 */
int chempi_measure_pair(const struct chempi_measure *measure, uint32_t network,
                        size_t protocol, uint32_t from, uint32_t to,
                        struct chempi_fit *out, struct chempi_err *err);

/*
 * Of each node whether its daemon answers; [desc->node_count], free()
 * releases it. With virtual nodes all do. Errors: -ENOTCONN with words when no
 * daemon can be asked.
 */
int chempi_measure_alive(const struct chempi_measure *measure, bool **out,
                         struct chempi_err *err);

/* What chempi-probe prints, read without trust. -EBADMSG with words. */
int chempi_measure_read(const char *text, struct chempi_fit_samples *out,
                        struct chempi_err *err);
/* The share of messages that went over a network by a protocol, from what
 * chempirun --stats prints; *other is the protocol that had most of the rest,
 * "" without any. */
double chempi_measure_share(const char *text, const char *network,
                            const char *protocol, char other[64]);

#endif
