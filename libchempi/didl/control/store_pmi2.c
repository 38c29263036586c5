/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-2 as Slurm's plugin of this name and hydra speak it: messages with their
 * length before them, words separated by semicolons, on an inherited socket
 * (PMI_FD). What is put here holds no semicolon, so none needs doubling.
 *
 *   V1  a server may answer a fence at once, and let questions wait until all
 *       have entered it (hydra does). So a fence has passed when it is
 *       answered, and so is a question for a key that nobody puts
 *   V2  of two questions under way, the one that finds nothing is V1's
 */
#include "libchempi/didl/control/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/didl/control/pmi_line.h"

#define JOB_MAX 256    /* bytes of the job's name with zero */
#define HEAD 6         /* digits of the length */
#define VALUE_MAX 1024 /* PMI2_MAX_VALLEN: bytes with zero */
#define BODY_MAX (CHEMPI_STORE_VALUE_MAX + 1024)

static struct {
    char job[JOB_MAX];
    enum { NONE, ENTERED, ASKED, PASSED } fence; /* V1 */
} pmi;

static int say(const char *fmt, ...) CHEMPI_PRINTF(1, 2);

static int say(const char *fmt, ...)
{
    char text[HEAD + BODY_MAX];
    char head[16];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text + HEAD, BODY_MAX, fmt, args);
    va_end(args);
    if (len < 0 || len >= BODY_MAX)
        return -EMSGSIZE;
    (void)snprintf(head, sizeof(head), "%6d", len);
    memcpy(text, head, HEAD);
    return chempi_pmi_line_send(text, HEAD + (size_t)len);
}

static int result(const char *message)
{
    return chempi_pmi_line_number(message, ';', "rc", 1) == 0 ? 0 : -EIO;
}

/* Does the answer to a question say that there is nothing? Slurm has another
 * word than hydra. */
static bool is_nothing(const char *message)
{
    char word[16];

    return chempi_pmi_line_value(message, ';', "found", word, sizeof(word)) ||
                   chempi_pmi_line_value(message, ';', "flag", word,
                                         sizeof(word))
               ? strcmp(word, "TRUE") != 0
               : result(message) != 0;
}

/* Is the message the next step of a fence (V1)? 1, 0: no, -errno. */
static int follow_fence(const char *message)
{
    if (pmi.fence == ENTERED &&
        chempi_pmi_line_is(message, ';', "kvs-fence-response")) {
        int rc = result(message);

        pmi.fence = ASKED;
        rc = rc ? rc
                : say("cmd=kvs-get;jobid=%s;srcid=-1;key=chempi-nothing;",
                      pmi.job);
        return rc ? rc : 1;
    }
    if (pmi.fence != ASKED ||
        !chempi_pmi_line_is(message, ';', "kvs-get-response") ||
        !is_nothing(message))
        return 0;
    pmi.fence = PASSED;
    return 1;
}

/* The answer of this name; steps of a fence may come before it. */
static int hear(const char *command, char **message)
{
    for (;;) {
        int rc = chempi_pmi_line_next(true, CHEMPI_STORE_LIMIT_MS, message);

        if (rc <= 0)
            return rc ? rc : -ETIMEDOUT;
        rc = follow_fence(*message);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return chempi_pmi_line_is(*message, ';', command) ? 0 : -EPROTO;
    }
}

/* The first exchange is a line of PMI-1's form. */
static int agree(void)
{
    static const char hello[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
    char *message;
    int rc = chempi_pmi_line_send(hello, sizeof(hello) - 1);

    if (!rc)
        rc = chempi_pmi_line_next(false, CHEMPI_STORE_LIMIT_MS, &message);
    if (rc <= 0)
        return rc ? rc : -ETIMEDOUT;
    return chempi_pmi_line_number(message, ' ', "rc", 1) == 0 &&
                   chempi_pmi_line_number(message, ' ', "pmi_version", 0) == 2
               ? 0
               : -EPROTONOSUPPORT;
}

static int ask_about(struct chempi_store_self *self)
{
    const char *job = getenv("PMI_JOBID");
    char *message;
    int rc;

    rc = say("cmd=fullinit;pmijobid=%s;pmirank=%u;threaded=FALSE;",
             job ? job : "", self->rank);
    rc = rc ? rc : hear("fullinit-response", &message);
    rc = rc ? rc : result(message);
    if (rc)
        return rc;
    self->rank = chempi_pmi_line_number(message, ';', "rank", self->rank);
    self->size = chempi_pmi_line_number(message, ';', "size", self->size);
    self->app_num = chempi_pmi_line_number(message, ';', "appnum", 0);
    rc = say("cmd=job-getid;");
    rc = rc ? rc : hear("job-getid-response", &message);
    if (!rc &&
        !chempi_pmi_line_value(message, ';', "jobid", pmi.job, sizeof(pmi.job)))
        rc = -EPROTO;
    rc = rc ? rc : say("cmd=info-getjobattr;key=universeSize;");
    rc = rc ? rc : hear("info-getjobattr-response", &message);
    if (!rc)
        self->universe_size = chempi_pmi_line_number(message, ';', "value", 0);
    return rc;
}

static int open_store(struct chempi_store_self *self, struct chempi_err *err)
{
    int rc = chempi_pmi_line_inherit(err);

    if (rc)
        return rc;
    pmi.fence = NONE;
    self->value_max = VALUE_MAX;
    if (!chempi_pmi_line_variable("PMI_RANK", &self->rank))
        rc = -EINVAL;
    (void)chempi_pmi_line_variable("PMI_SIZE", &self->size); /* else told */
    rc = rc ? rc : agree();
    rc = rc ? rc : ask_about(self);
    if (!rc)
        return 0;
    chempi_pmi_line_close();
    return chempi_err_set(err, rc,
                          "the launcher does not answer as PMI-2 wants it: %s; "
                          "CHEMPI_ENTRY=pmi1 speaks PMI-1, or use chempirun",
                          chempi_err_name(rc));
}

static int put(const char *key, const char *value)
{
    char *message;
    int rc = say("cmd=kvs-put;key=%s;value=%s;", key, value);

    rc = rc ? rc : hear("kvs-put-response", &message);
    return rc ? rc : result(message);
}

static int get(uint32_t rank, const char *key, char *value, size_t room)
{
    char *message;
    int rc = say("cmd=kvs-get;jobid=%s;srcid=-1;key=%s;", pmi.job, key);

    (void)rank; /* keys are of the whole job */
    rc = rc ? rc : hear("kvs-get-response", &message);
    if (!rc && (is_nothing(message) ||
                !chempi_pmi_line_value(message, ';', "value", value, room)))
        rc = -ENOENT;
    return rc;
}

static int fence(void)
{
    pmi.fence = ENTERED;
    return say("cmd=kvs-fence;");
}

static int fenced(void)
{
    int rc = 1;

    while (rc > 0 && pmi.fence != PASSED) {
        char *message;

        rc = chempi_pmi_line_next(true, 0, &message);
        if (rc > 0)
            rc = follow_fence(message);
        else if (rc == 0)
            return 0;
        if (rc == 0)
            return -EPROTO;
    }
    if (rc > 0)
        pmi.fence = NONE;
    return rc;
}

/* Some read the words up to the first semicolon. */
static int end_job(int exit_code, const char *text)
{
    char words[512];

    (void)exit_code; /* the protocol has no place for it */
    (void)snprintf(words, sizeof(words), "%s", text);
    for (char *at = words; *at; at++)
        if (*at == ';' || *at == '\n')
            *at = ',';
    return say("cmd=abort;isworld=TRUE;msg=%s;", words);
}

static int finalize(void)
{
    char *message;
    int rc = say("cmd=finalize;");

    return rc ? rc : hear("finalize-response", &message);
}

const struct chempi_store_ops chempi_store_pmi2 = {
    .name = "PMI-2",
    .open = open_store,
    .close = chempi_pmi_line_close,
    .put = put,
    .get = get,
    .fence = fence,
    .fenced = fenced,
    .look = chempi_pmi_line_look,
    .fd = chempi_pmi_line_fd,
    .abort = end_job,
    .finalize = finalize,
};
