/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks and the gateway of a node tell of their messages (chempirun
 * --stats, --trace-routes), as their supervisor collects it. Ranks tell when
 * they finalize or abort. When the job is killed, or before a signal is passed
 * on that ends most programs, those that have not told are asked, and so is the
 * gateway at the very end; whoever does not answer in time is named, so that
 * nobody takes the figures for the whole.
 *
 * Besides the lines of traffic.h, files.h, windows.h and trace.h a supervisor
 * says: node N         it has told all that it knows of node N missing RANK
 * this rank has ended without telling gateway N      and the gateway on node N
 * has told short N        there was no room for all figures of node N
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "chempid/stats/files.h"
#include "chempid/stats/report.h"
#include "chempid/stats/trace.h"
#include "chempid/stats/traffic.h"
#include "chempid/stats/windows.h"
#include "chempid/supervisor/super.h"
#include "common/control/client.h"

static void put_line(struct chempi_writer *w, const char *word, uint32_t n)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "%s %u\n", word, n);

    if (len > 0)
        chempi_wire_put_raw(w, line, (size_t)len);
}

int chempi_stats_collect_take(struct chempi_rank *rank, struct chempi_reader *r,
                              struct chempi_err *err)
{
    struct chempi_super *s = rank->super;
    struct chempi_writer *report = &s->report;
    size_t len;
    const uint8_t has_more = chempi_wire_get_u8(r);
    const uint8_t *text = chempi_wire_get_blob(r, CHEMPI_REPORT_MAX, &len);

    if (!chempi_wire_is_done(r) || has_more > 1)
        return chempi_err_set(err, -EBADMSG, "a malformed message (report)");
    if (report->len + len >= CHEMPI_TREE_MAX / 2)
        report->error = report->error ? report->error : -ENOSPC;
    chempi_wire_put_raw(report, text, len);
    chempi_wire_put_u8(report, '\n');
    if (has_more)
        return 0;
    rank->has_told = true;
    rank->is_asked = false;
    return 0;
}

static bool is_speechless(const struct chempi_rank *rank)
{
    return rank->phase != CHEMPI_PHASE_FRESH && !rank->has_told;
}

void chempi_stats_collect_send(struct chempi_super *s)
{
    static const struct chempi_lines_kind *const kinds[] = {
        &chempi_traffic_kind,  &chempi_files_kind,   &chempi_windows_kind,
        &chempi_windows_locks, &chempi_trace_routes, &chempi_trace_hops};
    struct chempi_writer merged = {0};
    struct chempi_report_set tight;
    struct chempi_writer *w;

    if (!s->spec->want_stats)
        return;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(kinds); i++)
        chempi_lines_merge(kinds[i], (const char *)s->report.data,
                           s->report.len, &merged);
    for (uint32_t i = 0; i < s->local_size; i++)
        if (is_speechless(&s->ranks[i]))
            put_line(&merged, "missing", s->ranks[i].world);
    if (s->gateway && s->gateway->has_told)
        put_line(&merged, "gateway", s->node);
    tight = chempi_report_find(s->report.data, s->report.len, "short");
    if (s->report.error || tight.count)
        put_line(&merged, "short", s->node);
    if (!merged.error)
        put_line(&merged, "node", s->node);
    w = chempi_link_begin(&s->up, CHEMPI_MSG_STATS, s->spec->job);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_blob(w, merged.data, merged.len);
    chempi_link_end(&s->up);
    chempi_wire_clear(&merged);
    chempi_wire_clear(&s->report);
    free(tight.list);
}

static void ask(struct chempi_rank *rank)
{
    rank->is_asked = true;
    chempi_control_send(rank, CHEMPI_MSG_TELL, NULL, 0);
}

void chempi_stats_collect_ask(struct chempi_super *s)
{
    for (uint32_t i = 0; s->spec->want_stats && i < s->local_size; i++)
        if (s->ranks[i].phase == CHEMPI_PHASE_INITIALIZED &&
            s->ranks[i].pid > 0 && s->ranks[i].link.is_open &&
            (!s->ranks[i].has_told || s->was_signalled))
            ask(&s->ranks[i]);
}

/* Ranks and the gateway, which stands behind them. */
bool chempi_stats_collect_are_due(const struct chempi_super *s)
{
    for (uint32_t i = 0; i < s->local_size + (s->gateway != NULL); i++)
        if (s->ranks[i].is_asked && s->ranks[i].pid > 0 &&
            s->ranks[i].link.is_open)
            return true;
    return false;
}

bool chempi_stats_collect_ask_gateway(struct chempi_super *s)
{
    if (!(s->spec->want_stats & CHEMPI_STATS_ROUTES) || !s->gateway ||
        !s->gateway->pid || !s->gateway->link.is_open)
        return false;
    ask(s->gateway);
    return true;
}
