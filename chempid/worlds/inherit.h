/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a world that ranks have started has of the command line of the first
 * one: where it runs, and how it looks. Programs, their number, input, files,
 * limits of time and figures are not inherited.
 */
#ifndef CHEMPI_CHEMPID_INHERIT_H
#define CHEMPI_CHEMPID_INHERIT_H

#include "chempid/options/options.h"
#include "common/base/err.h"
#include "common/control/dynamic.h"

/* Append them; failure stays in the writer. */
void chempi_inherit_write(const struct chempi_options *opt,
                          struct chempi_writer *w);
/* Options with these, without programs. -EBADMSG, -ENOMEM. On failure nothing
 * is left. */
int chempi_inherit_read(struct chempi_options *opt, struct chempi_reader *r);

/* Programs as ranks have asked for them. 0, or -errno with words; then *app is
 * whose they are. */
int chempi_inherit_programs(struct chempi_options *opt,
                            const struct chempi_spawn *spawn, uint32_t *app,
                            struct chempi_err *err);

/*
 * Where they run, once the nodes of the first world are known: "host" chooses
 * among those that the user, or a batch system, has named. Where nobody has,
 * its words stay to be compared with what there is (is_loose): this host, or
 * the nodes of a daemon. So ranks reach no host that the user has not named.
 * 0, -ENXIO and others with words.
 */
int chempi_inherit_choose(struct chempi_options *opt, struct chempi_err *err);
/* -ENXIO with words. */
int chempi_inherit_refuse(const char *host, struct chempi_err *err);

#endif
