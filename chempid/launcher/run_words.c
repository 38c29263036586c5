/* SPDX-License-Identifier: BSD-3-Clause */
/* What the launcher says of a job on standard error; see run_words.h. */
#define _GNU_SOURCE /* sigset_t, open_memstream */
#include "chempid/launcher/run_words.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chempid/job/exit_status.h"
#include "chempid/launcher/job_stats.h"
#include "chempid/worlds/above.h"

void chempi_run_say(const char *text)
{
    if (*text) /* a failing standard error leaves nobody to tell */
        (void)fprintf(stderr, "chempirun: %s\n", text);
}

void chempi_run_tell(struct run *r, const char *text)
{
    char line[CHEMPI_VERDICT_MAX + 16];
    const int len = snprintf(line, sizeof(line), "chempirun: %.*s\n",
                             (int)CHEMPI_VERDICT_MAX - 1, text);

    if (len > 0 && *text)
        chempi_console_say(&r->console, line, (size_t)len);
}

/* Whoever has started the world, whose own job goes on, is told why it has
 * ended; where its programs did not all start, nobody else. */
static void conclude_world(struct run *r, const char *text)
{
    const uint32_t rank = r->verdict.rank;
    char line[CHEMPI_VERDICT_MAX];
    const char *path;
    uint32_t app = 0;
    char *end;

    if (rank < r->spec->size)
        app = (uint32_t)(chempi_spec_app(r->spec, rank) - r->spec->apps);
    (void)snprintf(line, sizeof(line), "%.*s", (int)CHEMPI_TEXT_MAX - 1, text);
    end = strstr(line, CHEMPI_VERDICT_ENDED);
    if (end)
        *end = '\0';
    path = app < r->opt->program_count ? r->opt->programs[app].path : NULL;
    if (path && r->verdict.is_unstarted)
        (void)snprintf(line + strlen(line), sizeof(line) - strlen(line),
                       ", nor is it in path=%.200s", path);
    chempi_above_refused(r->opt->above, app, line);
    chempi_above_gone(r->opt->above, line);
    if (!r->opt->above->has_started || r->is_ordered || !*text)
        return;
    (void)snprintf(line, sizeof(line), "world %u: %.*s", r->spec->world,
                   (int)sizeof(line) - 32, text);
    chempi_run_tell(r, line);
}

/* Who insists has dropped all that was queued, and without memory nothing can
 * be: then if standard error takes it. */
static void tell_last(struct run *r, const char *text)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    chempi_run_tell(r, text); /* not when it has dropped what was queued */
    if (r->console.out[1].is_broken && poll(&p, 1, 0) > 0)
        chempi_run_say(text);
}

static void tell_stats(struct run *r)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    if (file)
        chempi_job_stats_print(file, r->opt, r->spec, r->stats.data,
                               r->stats.len);
    if (file && fclose(file) == 0)
        chempi_console_say_whole(&r->console, text, len);
    else
        chempi_run_tell(r, "out of memory for the statistics");
    free(text);
}

void chempi_run_conclude(struct run *r)
{
    char text[CHEMPI_VERDICT_MAX];

    r->status = chempi_verdict_status(&r->verdict);
    if (!r->status)
        r->status = r->worlds.status;
    if (r->spec->want_stats && !r->has_left)
        tell_stats(r);
    chempi_verdict_put(&r->verdict, text, sizeof(text));
    if (r->is_taken && !r->has_begun &&
        !chempi_verdict_is_ordered(&r->verdict)) {
        (void)chempi_err_set(&r->taken, -EAGAIN, "%s", text);
        r->status = CHEMPI_EXIT_FAILURE;
    } else if (r->opt->above) {
        conclude_world(r, text);
    } else {
        tell_last(r, text);
    }
}
