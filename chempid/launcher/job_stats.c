/* SPDX-License-Identifier: BSD-3-Clause */
/* What the processes of a job have counted; see job_stats.h. */
#include "chempid/launcher/job_stats.h"

#include <stdlib.h>

#include "chempid/stats/files.h"
#include "chempid/stats/report.h"
#include "chempid/stats/trace.h"
#include "chempid/stats/traffic.h"
#include "chempid/stats/traffic_print.h"
#include "chempid/stats/windows.h"
#include "common/words/json.h"

/* All in one line, so that it can be told from what ranks write. */
static void print_json(FILE *file, const struct chempi_options *opt,
                       const struct chempi_spec *spec, const void *text,
                       size_t len, const bool *lacking)
{
    struct chempi_json j = {.file = file};

    chempi_json_open(&j, NULL);
    chempi_json_text(&j, "job", spec->id);
    chempi_json_open_list(&j, "nodes");
    for (uint32_t i = 0; i < spec->node_count; i++)
        chempi_json_text(&j, NULL, spec->node_names[i]);
    chempi_json_close_list(&j);
    if (opt->has_stats) {
        chempi_traffic_json(&j, text, len, spec->node_names, spec->node_count,
                            lacking);
        chempi_files_json(&j, text, len);
        chempi_windows_json(&j, text, len);
    }
    if (opt->has_routes)
        chempi_routes_json(&j, text, len, spec->node_names, spec->node_count,
                           lacking);
    chempi_json_close(&j);
    chempi_json_end(&j);
}

static void print_traffic(FILE *file, const struct chempi_options *opt,
                          const struct chempi_spec *spec, const void *text,
                          size_t len, const bool *lacking)
{
    if (opt->has_long_stats)
        chempi_traffic_print(file, text, len, spec->node_names,
                             spec->node_count, lacking);
    else
        chempi_traffic_summary(file, text, len, spec->node_names,
                               spec->node_count, lacking);
    chempi_files_print(file, text, len);
    chempi_windows_print(file, text, len);
}

void chempi_job_stats_print(FILE *file, const struct chempi_options *opt,
                            const struct chempi_spec *spec, const void *text,
                            size_t len)
{
    bool *lacking = chempi_report_lacking(spec, text, len);

    chempi_report_gaps(file, spec, text, len);
    if (opt->has_json)
        print_json(file, opt, spec, text, len, lacking);
    else if (opt->has_stats && len)
        print_traffic(file, opt, spec, text, len, lacking);
    if (opt->has_routes && !opt->has_json)
        chempi_trace_print(file, text, len, spec->node_names, spec->node_count,
                           lacking);
    free(lacking);
}
