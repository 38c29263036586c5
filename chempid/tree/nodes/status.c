/* SPDX-License-Identifier: BSD-3-Clause */
/* What daemons say of their nodes; see status.h. */
#define _GNU_SOURCE /* getloadavg */
#include "chempid/tree/nodes/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/control/msg.h"
#include "common/fd/file.h"
#include "common/words/plain.h"

static uint8_t fall_of(enum chempi_status_fate fate)
{
    static const uint8_t falls[] = {
        [CHEMPI_FATE_UP] = 0,
        [CHEMPI_FATE_DRAINED] = CHEMPI_FALL_DRAINED + 1,
        [CHEMPI_FATE_LOST] = CHEMPI_FALL_LOST + 1,
    };

    return falls[fate];
}

static enum chempi_status_fate fate_of(uint8_t fall)
{
    if (fall == 0)
        return CHEMPI_FATE_UP;
    return fall == CHEMPI_FALL_DRAINED + 1 ? CHEMPI_FATE_DRAINED
                                           : CHEMPI_FATE_LOST;
}

static void write_memory(struct chempi_writer *w, const struct chempi_status *s)
{
    chempi_wire_put_u64(w, s->memory);
    chempi_wire_put_u64(w, s->memory_granted);
    chempi_wire_put_u32(w, s->grant_count);
    for (uint32_t i = 0; i < s->grant_count; i++) {
        const struct chempi_status_grant *g = &s->grants[i];

        chempi_wire_put_str(w, g->job);
        chempi_wire_put_u32(w, g->rank);
        chempi_wire_put_u64(w, g->granted);
        chempi_wire_put_u64(w, g->ordered);
        chempi_wire_put_u64(w, g->used);
        chempi_wire_put_u64(w, g->wanted);
        chempi_wire_put_u64(w, g->degraded);
        chempi_wire_put_u32(w, g->due_ms);
        chempi_wire_put_u8(w, g->is_late);
    }
}

void chempi_status_write(struct chempi_writer *w, const struct chempi_status *s)
{
    char program[CHEMPI_STATUS_PROGRAM_MAX];

    chempi_wire_put_str(w, s->node);
    chempi_wire_put_str(w, s->error);
    if (*s->error)
        return;
    chempi_wire_put_u64(w, s->host);
    chempi_wire_put_u32(w, s->slots);
    chempi_wire_put_u32(w, s->load);
    chempi_wire_put_u32(w, s->busy);
    chempi_wire_put_u32(w, s->pid);
    chempi_wire_put_str(w, s->version);
    chempi_wire_put_str(w, s->tables ? s->tables : "");
    chempi_wire_put_u8(w, s->is_drained);
    chempi_wire_put_u32(w, s->job_count);
    for (uint32_t i = 0; i < s->job_count; i++) {
        chempi_wire_put_str(w, s->jobs[i].id);
        chempi_wire_put_u32(w, s->jobs[i].uid);
        chempi_wire_put_u32(w, s->jobs[i].size);
        chempi_wire_put_u32(w, s->jobs[i].local);
        (void)snprintf(program, sizeof(program), "%s", s->jobs[i].program);
        chempi_wire_put_str(w, program);
        chempi_wire_put_u8(w, s->jobs[i].is_cut);
        chempi_wire_put_u32(w, s->jobs[i].gateway_count);
        for (uint32_t k = 0; k < s->jobs[i].gateway_count; k++) {
            chempi_wire_put_str(w, s->jobs[i].gateways[k].node);
            chempi_wire_put_u8(w, fall_of(s->jobs[i].gateways[k].fate));
            chempi_wire_put_u32(w, s->jobs[i].gateways[k].pid);
        }
    }
    write_memory(w, s);
}

static char *copy_str(struct chempi_reader *r, struct chempi_pool *pool,
                      size_t max)
{
    static char none[1];
    char *copy = chempi_pool_str(pool, chempi_wire_get_str(r, max));

    if (!copy) {
        r->is_bad = true;
        return none;
    }
    return copy;
}

/* What is shown as it is. */
static const char *copy_plain(struct chempi_reader *r, struct chempi_pool *pool,
                              size_t max)
{
    char *copy = copy_str(r, pool, max);

    chempi_plain(copy, strlen(copy), "");
    return copy;
}

static void read_gateways(struct chempi_reader *r, struct chempi_pool *pool,
                          struct chempi_status_job *job)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_STATUS_GATEWAYS_MAX, 10);

    job->gateways = chempi_pool_array(pool, n, sizeof(*job->gateways));
    if (!job->gateways) {
        r->is_bad = true;
        return;
    }
    job->gateway_count = n;
    for (uint32_t i = 0; i < n; i++) {
        job->gateways[i].node = copy_plain(r, pool, CHEMPI_NODE_NAME_MAX);
        job->gateways[i].fate = fate_of(chempi_wire_get_u8(r));
        job->gateways[i].pid = chempi_wire_get_u32(r);
    }
}

static void read_jobs(struct chempi_reader *r, struct chempi_pool *pool,
                      struct chempi_status *s)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_STATUS_JOBS_MAX, 27);

    s->jobs = chempi_pool_array(pool, n, sizeof(*s->jobs));
    if (!s->jobs) {
        r->is_bad = true;
        return;
    }
    s->job_count = n;
    for (uint32_t i = 0; i < n; i++) {
        s->jobs[i].id = copy_plain(r, pool, CHEMPI_JOB_ID_MAX);
        s->jobs[i].uid = chempi_wire_get_u32(r);
        s->jobs[i].size = chempi_wire_get_u32(r);
        s->jobs[i].local = chempi_wire_get_u32(r);
        s->jobs[i].program = copy_str(r, pool, CHEMPI_STATUS_PROGRAM_MAX);
        s->jobs[i].is_cut = chempi_wire_get_u8(r) != 0;
        read_gateways(r, pool, &s->jobs[i]);
    }
}

static void read_memory(struct chempi_reader *r, struct chempi_pool *pool,
                        struct chempi_status *s)
{
    uint32_t n;

    s->memory = chempi_wire_get_u64(r);
    s->memory_granted = chempi_wire_get_u64(r);
    n = chempi_wire_get_count(r, CHEMPI_JOB_RANKS_MAX, 54);
    s->grants = chempi_pool_array(pool, n, sizeof(*s->grants));
    if (!s->grants) {
        r->is_bad = true;
        return;
    }
    s->grant_count = n;
    for (uint32_t i = 0; i < n; i++) {
        struct chempi_status_grant *g = &s->grants[i];

        g->job = copy_plain(r, pool, CHEMPI_JOB_ID_MAX);
        g->rank = chempi_wire_get_u32(r);
        g->granted = chempi_wire_get_u64(r);
        g->ordered = chempi_wire_get_u64(r);
        g->used = chempi_wire_get_u64(r);
        g->wanted = chempi_wire_get_u64(r);
        g->degraded = chempi_wire_get_u64(r);
        g->due_ms = chempi_wire_get_u32(r);
        g->is_late = chempi_wire_get_u8(r) != 0;
    }
}

void chempi_status_read(struct chempi_reader *r, struct chempi_pool *pool,
                        struct chempi_status *s)
{
    *s = (struct chempi_status){0};
    s->node = copy_plain(r, pool, CHEMPI_NODE_NAME_MAX);
    s->error = copy_plain(r, pool, CHEMPI_TEXT_MAX);
    s->version = "";
    s->tables = "";
    if (*s->error || r->is_bad)
        return;
    s->host = chempi_wire_get_u64(r);
    s->slots = chempi_wire_get_u32(r);
    s->load = chempi_wire_get_u32(r);
    s->busy = chempi_wire_get_u32(r);
    s->pid = chempi_wire_get_u32(r);
    s->version = copy_plain(r, pool, CHEMPI_STATUS_VERSION_MAX);
    s->tables = copy_str(r, pool, CHEMPI_STATUS_PATH_MAX);
    s->is_drained = chempi_wire_get_u8(r) != 0;
    read_jobs(r, pool, s);
    if (!r->is_bad)
        read_memory(r, pool, s);
}

const char *chempi_status_fate_word(enum chempi_status_fate fate)
{
    static const char *const words[] = {
        [CHEMPI_FATE_UP] = "in use",
        [CHEMPI_FATE_DRAINED] = "drained",
        [CHEMPI_FATE_LOST] = "lost",
    };

    return words[fate];
}

enum chempi_status_fate
chempi_status_fate_of(const struct chempi_status_job *job, const char *node)
{
    for (uint32_t i = 0; job && i < job->gateway_count; i++)
        if (strcmp(job->gateways[i].node, node) == 0)
            return job->gateways[i].fate;
    return CHEMPI_FATE_UP;
}

const struct chempi_status_job *
chempi_status_find(const struct chempi_status *s, const char *id, uint32_t uid)
{
    for (uint32_t i = 0; i < s->job_count; i++)
        if (s->jobs[i].uid == uid && strcmp(s->jobs[i].id, id) == 0)
            return &s->jobs[i];
    return NULL;
}

bool chempi_status_has_job(const struct chempi_status *list, uint32_t count,
                           const struct chempi_status_job *job)
{
    for (uint32_t i = 0; i < count; i++)
        if (chempi_status_find(&list[i], job->id, job->uid))
            return true;
    return false;
}

int chempi_status_owner(const struct chempi_status *list, uint32_t count,
                        const char *id, uint32_t asker, uint32_t *uid,
                        uint32_t *other)
{
    int rc = -ESRCH;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].job_count; k++) {
            const struct chempi_status_job *job = &list[i].jobs[k];

            if (strcmp(job->id, id) != 0)
                continue;
            if (job->uid == asker) {
                *uid = asker;
                return 0;
            }
            if (rc == 0 && job->uid != *uid) {
                *other = job->uid;
                rc = -EEXIST;
            } else if (rc == -ESRCH) {
                *uid = job->uid;
                rc = 0;
            }
        }
    return rc;
}

uint64_t chempi_status_host(void)
{
    uint64_t h = UINT64_C(14695981039346656037);
    char text[64];
    const ssize_t n =
        chempi_file_read("/proc/sys/kernel/random/boot_id", text, sizeof(text));

    if (n < 0)
        return (uint64_t)gethostid();
    for (ssize_t i = 0; i < n; i++) /* FNV-1a */
        h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return h;
}

uint32_t chempi_status_load(void)
{
    double load = 0;

    if (getloadavg(&load, 1) != 1 || load < 0 || load > 1e6)
        return 0;
    return (uint32_t)(load * 100);
}
