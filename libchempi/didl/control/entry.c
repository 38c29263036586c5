/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way this process was started; see entry.h. */
#include "libchempi/didl/control/entry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "libchempi/didl/control/guest.h"
#include "libchempi/didl/control/store.h"

static bool has(const char *name)
{
    const char *text = getenv(name);

    return text && *text;
}

/* A number above one. */
static bool is_many(const char *name)
{
    const char *text = getenv(name);

    return text && strtol(text, NULL, 10) > 1;
}

static bool detects_supervisor(void)
{
    return getenv(CHEMPI_CONTROL_ENV) != NULL;
}

/* A process that an MPI process has started inherits that one's marks: they
 * are not its own. */
static bool is_child(void)
{
    return has("CHEMPI_JOB");
}

static bool detects_pmix(void)
{
    return !is_child() && has("PMIX_NAMESPACE") && has("PMIX_RANK") &&
           chempi_store_pmix_is_there();
}

static bool detects_pmi(void)
{
    return !is_child() && (has("PMI_FD") || (has("PMI_PORT") && has("PMI_ID")));
}

/* Slurm's plugin pmi2 serves both versions, MPICH's hydra as well; what was
 * asked of Slurm by this name is spoken. */
static bool detects_pmi2(void)
{
    return detects_pmi() && has("PMI_FD") && has("SLURM_STEP_ID");
}

/* Marks that launchers leave in the environment of one of several processes,
 * and what the user can do. The first two are of steps: in a batch script
 * without srun they are not set, or say one. */
static const struct {
    const char *size;  /* a number above one */
    const char *other; /* must be set, too, or NULL */
    const char *text;
} strangers[] = {
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID",
     "srun started this process as one of several, but with no interface that "
     "this library speaks; use srun --mpi=pmi2, srun --mpi=pmix (with libpmix "
     "on the nodes), or chempirun"},
    {"OMPI_COMM_WORLD_SIZE", NULL,
     "Open MPI's mpirun started this process as one of several, but libpmix, "
     "through which it speaks, cannot be used here; install libpmix2 on the "
     "nodes, or use chempirun"},
    {"PMI_SIZE", "PMI_RANK",
     "a launcher started this process as one of several through PMI, but left "
     "no connection to it (PMI_FD, or PMI_PORT with PMI_ID); use "
     "mpiexec.hydra or chempirun"},
    {"MV2_COMM_WORLD_SIZE", NULL,
     "MVAPICH's launcher started this process as one of several; use "
     "mpiexec.hydra or chempirun"},
    {"PALS_SIZE", NULL,
     "PALS started this process as one of several, but without PMIx or PMI; "
     "use its --pmi option, or chempirun"},
};

/* Whose child this process would be if no way is detected: the name of a
 * launcher and what to do, or NULL. */
static const char *stranger(void)
{
    if (is_child())
        return NULL;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(strangers); i++)
        if (is_many(strangers[i].size) &&
            (!strangers[i].other || has(strangers[i].other)))
            return strangers[i].text;
    if (has("PMIX_NAMESPACE") && has("PMIX_RANK"))
        return "a launcher started this process through PMIx, but libpmix "
               "cannot be used here; install libpmix2 on the nodes, or use "
               "chempirun";
    return NULL;
}

static bool detects_alone(void)
{
    return stranger() == NULL;
}

static const struct chempi_entry entries[] = {
    {.name = "chempi",
     .text = "chempirun",
     .detects = detects_supervisor,
     .ops = &chempi_entry_supervisor,
     .is_free_after_end = true},
    {.name = "pmix",
     .text = "PMIx",
     .detects = detects_pmix,
     .ops = &chempi_guest_ops,
     .store = &chempi_store_pmix,
     .begins_fenced = true},
    {.name = "pmi2",
     .text = "PMI-2",
     .detects = detects_pmi2,
     .ops = &chempi_guest_ops,
     .store = &chempi_store_pmi2,
     .begins_fenced = true},
    {.name = "pmi1",
     .text = "PMI-1",
     .detects = detects_pmi,
     .ops = &chempi_guest_ops,
     .store = &chempi_store_pmi1,
     .begins_fenced = true},
    {.name = "alone",
     .text = "no launcher",
     .detects = detects_alone,
     .ops = &chempi_entry_alone},
};

static const struct chempi_entry *find_named(const char *name,
                                             struct chempi_err *err)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(entries); i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    (void)chempi_err_set(err, -EINVAL,
                         "CHEMPI_ENTRY=%.40s: expected chempi, pmix, pmi2, "
                         "pmi1 or alone",
                         name);
    return NULL;
}

const struct chempi_entry *chempi_entry_find(struct chempi_err *err)
{
    const char *name = getenv("CHEMPI_ENTRY");

    /* Its own supervisor comes before what a user wishes for other launchers:
     * the variable may have been exported to all programs. */
    if (detects_supervisor())
        return &entries[0];
    if (name && *name && !is_child())
        return find_named(name, err);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(entries); i++)
        if (entries[i].detects())
            return &entries[i];
    (void)chempi_err_set(err, -EPROTO,
                         "%s; CHEMPI_ENTRY=alone makes each process a world "
                         "of its own",
                         stranger());
    return NULL;
}
