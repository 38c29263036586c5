/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateways of this job, all on this machine, to be stopped and killed; they
 * count from 0 in the order of their nodes' names. */
#ifndef CHEMPI_TESTS_MPI_INSIDE_GATEWAYS_H
#define CHEMPI_TESTS_MPI_INSIDE_GATEWAYS_H

/* Wait until there are so many: the following ones are about these. */
void gateways_find(int count);
/* When it returns, none of them runs. */
void gateways_stop(void);
void gateways_go_on(void);
void gateways_kill(int number);
/* When it returns, those that run have nothing to do. */
void gateways_await_rest(void);

#endif
