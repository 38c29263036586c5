/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and jobs as JSON; see status_json.h. */
#include "chempid/ctl/status_json.h"

int chempi_status_json(FILE *to, const struct chempi_status *list,
                       uint32_t count,
                       void (*put)(struct chempi_json *j,
                                   const struct chempi_status *s))
{
    struct chempi_json j = {.file = to};
    int status = 0;

    chempi_json_open_list(&j, NULL);
    for (uint32_t i = 0; i < count; i++) {
        chempi_json_open(&j, NULL);
        chempi_json_text(&j, "node", list[i].node);
        if (*list[i].error)
            chempi_json_text(&j, "error", list[i].error);
        else
            put(&j, &list[i]);
        chempi_json_close(&j);
        status |= *list[i].error != '\0';
    }
    chempi_json_close_list(&j);
    chempi_json_end(&j);
    return status;
}

void chempi_status_json_node(struct chempi_json *j,
                             const struct chempi_status *s)
{
    chempi_json_number(j, "slots", s->slots);
    chempi_json_number(j, "ranks", s->busy);
    chempi_json_decimal(j, "load", s->load, 2);
    chempi_json_number(j, "pid", s->pid);
    chempi_json_text(j, "version", s->version);
    chempi_json_bool(j, "is_drained", s->is_drained);
}

/* ---- jobs ---------------------------------------------------------------- */

static void put_nodes(struct chempi_json *j, const struct chempi_status *list,
                      uint32_t count, const struct chempi_status_job *job)
{
    chempi_json_open(j, "nodes");
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_status_job *part =
            chempi_status_find(&list[i], job->id, job->uid);

        if (part && part->local)
            chempi_json_number(j, list[i].node, part->local);
    }
    chempi_json_close(j);
}

void chempi_status_json_gateway(struct chempi_json *j,
                                const struct chempi_status_gateway *gateway)
{
    chempi_json_open(j, NULL);
    chempi_json_text(j, "node", gateway->node);
    chempi_json_text(j, "state", chempi_status_fate_word(gateway->fate));
    chempi_json_close(j);
}

static void put_gateways(struct chempi_json *j,
                         const struct chempi_status_job *job)
{
    chempi_json_open_list(j, "gateways");
    for (uint32_t i = 0; i < job->gateway_count; i++)
        chempi_status_json_gateway(j, &job->gateways[i]);
    chempi_json_close_list(j);
}

void chempi_status_json_jobs(FILE *to, const struct chempi_status *list,
                             uint32_t count)
{
    struct chempi_json j = {.file = to};

    chempi_json_open_list(&j, NULL);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].job_count; k++) {
            const struct chempi_status_job *job = &list[i].jobs[k];

            if (chempi_status_has_job(list, i, job))
                continue;
            chempi_json_open(&j, NULL);
            chempi_json_text(&j, "job", job->id);
            chempi_json_number(&j, "uid", job->uid);
            chempi_json_number(&j, "ranks", job->size);
            chempi_json_text(&j, "program", job->program);
            put_nodes(&j, list, count, job);
            put_gateways(&j, job);
            chempi_json_close(&j);
        }
    chempi_json_close_list(&j);
    chempi_json_end(&j);
}
