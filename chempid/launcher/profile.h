/* SPDX-License-Identifier: BSD-3-Clause */
/* chempirun --profile and --check: the ranks load libchempi-stats or
 * libchempi-check before the library. */
#ifndef CHEMPI_CHEMPID_PROFILE_H
#define CHEMPI_CHEMPID_PROFILE_H

#include "chempid/options/options.h"

/* Add the variable to opt->env, if either is asked for. 0; -ENOENT with words
 * when the library is not where it belongs, -EINVAL when both are asked for, or
 * -ENOMEM. */
int chempi_profile_add(struct chempi_options *opt, struct chempi_err *err);

#endif
