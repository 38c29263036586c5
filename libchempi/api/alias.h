/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For MPI functions written by hand: after the definition of PMPI_X, make
 * MPI_X its weak alias. An alias must stand in the file of its target.
 */
#ifndef CHEMPI_LIBCHEMPI_API_ALIAS_H
#define CHEMPI_LIBCHEMPI_API_ALIAS_H

#include "common/base/compiler.h"

#define CHEMPI_API_ALIAS(returns, name, params)                                \
    CHEMPI_EXPORT CHEMPI_WEAK_ALIAS("P" #name) returns name params

#endif
