/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a job ended; see verdict.h. */
#define _GNU_SOURCE /* strsignal */
#include "chempid/launcher/verdict.h"
#include "chempid/job/exit_status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum weight { WEIGHT_NONE, WEIGHT_ABORT, WEIGHT_END, WEIGHT_ORDER };

/* What a rank did, in words, and the job's status for it. */
static int describe(enum chempi_end how, uint32_t code, const char *detail,
                    char *text, size_t size)
{
    const int status = (int)(code & 0xff);
    const char *sep = *detail ? ": " : "";
    const char *name;

    /* The words of a rank that asked for the end are the whole reason. */
    if (how == CHEMPI_END_ABORT && *detail) {
        (void)snprintf(text, size, ": %s", detail);
        return status ? status : CHEMPI_EXIT_FAILURE;
    }

    switch (how) {
    case CHEMPI_END_SIGNAL:
        name = strsignal((int)code);
        (void)snprintf(text, size, " was killed by signal %u (%s)%s%s", code,
                       name ? name : "?", *detail ? ", " : "", detail);
        return CHEMPI_EXIT_SIGNAL + (int)(code & 0x7f);
    case CHEMPI_END_ABORT:
        (void)snprintf(text, size, " called MPI_Abort with code %d", (int)code);
        return status ? status : CHEMPI_EXIT_FAILURE;
    case CHEMPI_END_EARLY:
        (void)snprintf(text, size,
                       " exited with code %u without calling MPI_Finalize",
                       code);
        return status ? status : CHEMPI_EXIT_FAILURE;
    case CHEMPI_END_SESSION:
        (void)snprintf(text, size,
                       " exited with code %u without calling "
                       "MPI_Session_finalize for each of its sessions",
                       code);
        return status ? status : CHEMPI_EXIT_FAILURE;
    case CHEMPI_END_START:
        (void)snprintf(text, size, " could not be started%s%s", sep, detail);
        return code == ENOENT   ? CHEMPI_EXIT_NOT_FOUND
               : code == EACCES ? CHEMPI_EXIT_NOT_EXECUTABLE
                                : CHEMPI_EXIT_FAILURE;
    case CHEMPI_END_PROTOCOL:
        (void)snprintf(text, size, " broke the control protocol%s%s", sep,
                       detail);
        return CHEMPI_EXIT_FAILURE;
    case CHEMPI_END_MISSED:
        (void)snprintf(text, size,
                       " needs rank %u, which exited with code 0 without "
                       "calling MPI_Init",
                       code);
        return CHEMPI_EXIT_FAILURE;
    default:
        (void)snprintf(text, size, " exited with code %u", code);
        return status ? status : CHEMPI_EXIT_FAILURE;
    }
}

/* What was lost at the same time is told behind the cause, as far as there is
 * room. */
static void add_besides(struct chempi_verdict *v, const char *text)
{
    const size_t at = strlen(v->besides);
    const size_t need = strlen(text) + 3;

    if (v->weight != WEIGHT_END)
        return;
    if (v->others || at + need > sizeof(v->besides)) {
        v->others++;
        return;
    }
    (void)snprintf(v->besides + at, sizeof(v->besides) - at, "%s%s",
                   at ? ", " : "", text);
    v->named++;
}

/* Ends that are no answer to the end of others, and are not the same for all
 * ranks of a program. */
static bool is_of_its_own(enum chempi_end how)
{
    return how != CHEMPI_END_ABORT && how != CHEMPI_END_MISSED &&
           how != CHEMPI_END_START;
}

bool chempi_verdict_rank(struct chempi_verdict *v,
                         const struct chempi_spec *spec, uint32_t node,
                         uint32_t rank, uint32_t pid, enum chempi_end how,
                         uint32_t code, const char *program, const char *detail)
{
    const int weight = how == CHEMPI_END_ABORT ? WEIGHT_ABORT : WEIGHT_END;
    char what[CHEMPI_TEXT_MAX];
    char other[160];
    char who[64] = "";
    const int status = describe(how, code, detail, what, sizeof(what));

    if (how == CHEMPI_END_LATE) {
        v->late = status > v->late ? status : v->late;
        return false;
    }
    if (weight <= v->weight) {
        (void)snprintf(other, sizeof(other), "rank %u on node %.40s%.80s", rank,
                       spec->node_names[node], what);
        if (is_of_its_own(how))
            add_besides(v, other);
        return true;
    }
    if (pid)
        (void)snprintf(who, sizeof(who), "pid %u, ", pid);
    v->weight = weight;
    v->status = status;
    v->rank = rank;
    v->is_unstarted = how == CHEMPI_END_START;
    /* Program and words may be long: the end of the sentence gives way. */
    if (snprintf(v->text, sizeof(v->text),
                 "rank %u on node %s (%s%.200s)%.600s" CHEMPI_VERDICT_ENDED,
                 rank, spec->node_names[node], who, program, what) < 0)
        v->text[0] = '\0';
    return true;
}

static bool is_survived(enum chempi_end how)
{
    return how == CHEMPI_END_SIGNAL || how == CHEMPI_END_EXIT ||
           how == CHEMPI_END_EARLY || how == CHEMPI_END_SESSION;
}

bool chempi_verdict_spare(struct chempi_verdict *v,
                          const struct chempi_spec *spec, uint32_t node,
                          uint32_t rank, uint32_t pid, enum chempi_end how,
                          uint32_t code, const char *program,
                          const char *detail, char *text, size_t len)
{
    char what[CHEMPI_TEXT_MAX];
    int status;

    if (!is_survived(how))
        return false;
    status = describe(how, code, detail, what, sizeof(what));
    v->late = status > v->late ? status : v->late;
    (void)snprintf(text, len,
                   "rank %u on node %s (pid %u, %.200s)%.600s; the others go "
                   "on",
                   rank, spec->node_names[node], pid, program, what);
    return true;
}

/* Do the cause's words say the same, of a node by another name? Then its name's
 * place in the text: one word, as far as len. */
static bool is_same_of(const struct chempi_verdict *v, const char *text,
                       const char **name, int *len)
{
    size_t at = 0;
    const char *a;
    const char *b;

    while (text[at] && text[at] == v->text[at])
        at++;
    while (at > 0 && text[at - 1] != ' ')
        at--;
    a = v->text + at + strcspn(v->text + at, " ");
    b = text + at + strcspn(text + at, " ");
    *name = text + at;
    *len = (int)(b - *name);
    return *b && strncmp(a, b, strlen(b)) == 0 &&
           strcmp(a + strlen(b), CHEMPI_VERDICT_ENDED) == 0;
}

void chempi_verdict_node(struct chempi_verdict *v, const char *text)
{
    char other[160];
    const char *name;
    int len;

    if (v->weight >= WEIGHT_END) {
        if (is_same_of(v, text, &name, &len))
            (void)snprintf(other, sizeof(other), "the same of %.*s",
                           len < 40 ? len : 40, name);
        else
            (void)snprintf(other, sizeof(other), "%.150s%s", text,
                           strlen(text) > 150 ? "..." : "");
        add_besides(v, other);
        return;
    }
    v->weight = WEIGHT_END;
    v->status = CHEMPI_EXIT_FAILURE;
    v->rank = CHEMPI_NODE_ANY;
    (void)snprintf(v->text, sizeof(v->text), "%.900s" CHEMPI_VERDICT_ENDED,
                   text);
}

void chempi_verdict_order(struct chempi_verdict *v, int status,
                          const char *text)
{
    if (v->weight >= WEIGHT_ORDER)
        return;
    v->weight = WEIGHT_ORDER;
    v->status = status;
    v->rank = CHEMPI_NODE_ANY;
    v->is_unstarted = false;
    (void)snprintf(v->text, sizeof(v->text), "%.1000s", text);
}

bool chempi_verdict_is_ordered(const struct chempi_verdict *v)
{
    return v->weight >= WEIGHT_ORDER;
}

bool chempi_verdict_takes_cut(const struct chempi_verdict *v)
{
    return v->weight < WEIGHT_ABORT;
}

void chempi_verdict_cut(struct chempi_verdict *v, uint32_t rank,
                        const char *text)
{
    if (!chempi_verdict_takes_cut(v))
        return;
    v->weight = WEIGHT_ABORT;
    v->status = CHEMPI_EXIT_FAILURE;
    v->rank = rank;
    (void)snprintf(v->text, sizeof(v->text), "%.1000s" CHEMPI_VERDICT_ENDED,
                   text);
}

void chempi_verdict_put(const struct chempi_verdict *v, char *buf, size_t len)
{
    const size_t tail = strlen(CHEMPI_VERDICT_ENDED);
    size_t keep = strlen(v->text);
    char more[48] = "";

    if (!v->named || keep < tail ||
        strcmp(v->text + keep - tail, CHEMPI_VERDICT_ENDED) != 0) {
        (void)snprintf(buf, len, "%s", v->text);
        return;
    }
    keep -= tail;
    if (v->others)
        (void)snprintf(more, sizeof(more), " and %u more", v->others);
    (void)snprintf(buf, len, "%.*s; besides, %s%s" CHEMPI_VERDICT_ENDED,
                   (int)keep, v->text, v->besides, more);
}

int chempi_verdict_status(const struct chempi_verdict *v)
{
    return v->weight ? v->status : v->late;
}
