/* SPDX-License-Identifier: BSD-3-Clause */
/* What the processes of a job have counted; see tally.h. */
#include "chempid/launcher/tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "chempid/tree/files.h"
#include "chempid/tree/report.h"
#include "chempid/tree/trace.h"
#include "chempid/tree/traffic.h"
#include "chempid/tree/windows.h"

void chempi_tally_print(const struct chempi_options *opt,
                        const struct chempi_spec *spec, const void *text,
                        size_t len)
{
    bool *lacking = chempi_report_lacking(spec, text, len);

    chempi_report_gaps(stderr, spec, text, len);
    if (opt->has_stats && len) {
        chempi_traffic_print(stderr, text, len, spec->node_names,
                             spec->node_count, lacking);
        chempi_files_print(stderr, text, len);
        chempi_windows_print(stderr, text, len);
    }
    if (opt->has_routes)
        chempi_trace_print(stderr, text, len, spec->node_names,
                           spec->node_count, lacking);
    free(lacking);
}
