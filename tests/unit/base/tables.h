/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection tables of a description, in a folder of the test's own. */
#ifndef CHEMPI_TESTS_UNIT_BASE_TABLES_H
#define CHEMPI_TESTS_UNIT_BASE_TABLES_H

#include "mdconfig/routes/compile.h"

/* The folder; chempi_tables_compile() makes it, once per process. */
extern char chempi_tables_dir[];

/* Compile the tables of this description into the folder. */
void chempi_tables_compile(const char *yaml, enum chempi_compile_layout layout);
/* Remove the folder and what is in it: a test's .fini. */
void chempi_tables_remove(void);

#endif
