/* SPDX-License-Identifier: BSD-3-Clause */
/* The control groups of a daemon's jobs; see groups.h. */
#include "chempid/helper/groups.h"

#include "chempid/helper/joblimits.h"
#include "common/base/log.h"

int chempi_groups_open(struct chempi_cgroups *groups, const char *node,
                       const char *limits, struct chempi_err *err)
{
    struct chempi_cgroup_limits wanted = {0};
    struct chempi_err why;
    int rc = limits ? chempi_joblimits_read(&wanted, limits, err) : 0;

    if (rc)
        return rc;
    if (chempi_cgroups_open(groups, node, &wanted, &why))
        chempi_log(limits ? CHEMPI_LOG_WARNING : CHEMPI_LOG_INFO, "groups",
                   "%s", why.text);
    return 0;
}

void chempi_groups_close(struct chempi_cgroups *groups)
{
    chempi_cgroups_sweep(groups);
    chempi_cgroups_fini(groups);
}
