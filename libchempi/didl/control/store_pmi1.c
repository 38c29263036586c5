/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1 as hydra, Slurm's pmi2 plugin and others speak it: a line for each
 * question and answer, on an inherited socket (PMI_FD), or on a connection of
 * our own (PMI_PORT) where the first lines say which process this is.
 */
#include "libchempi/didl/control/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/didl/control/pmi_line.h"

#define KVS_MAX 256 /* bytes of the store's name with zero */
#define LINE_MAX_BYTES (CHEMPI_STORE_VALUE_MAX + 1024)

static struct {
    char kvs[KVS_MAX];
    bool is_fenced; /* barrier_out has come, unasked for by fenced() */
} pmi;

static int say(const char *fmt, ...) CHEMPI_PRINTF(1, 2);

static int say(const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text))
        return -EMSGSIZE;
    return chempi_pmi_line_send(text, (size_t)len);
}

/* The answer of this name; the end of a barrier may come before it. */
static int hear(const char *command, char **message)
{
    for (;;) {
        int rc = chempi_pmi_line_next(false, CHEMPI_STORE_LIMIT_MS, message);

        if (rc <= 0)
            return rc ? rc : -ETIMEDOUT;
        if (chempi_pmi_line_is(*message, ' ', "barrier_out"))
            pmi.is_fenced = true;
        else if (chempi_pmi_line_is(*message, ' ', command))
            return 0;
        else
            return -EPROTO;
    }
}

static int failed(struct chempi_err *err, int code)
{
    chempi_pmi_line_close();
    return chempi_err_set(err, code,
                          "the launcher does not answer as PMI-1 wants it: %s; "
                          "start the program with chempirun",
                          chempi_err_name(code));
}

/* Who connects must say its number, and is told rank and size. */
static int introduce(struct chempi_store_self *self)
{
    uint32_t id = 0;
    char *message;
    int rc = chempi_pmi_line_variable("PMI_ID", &id) ? 0 : -EINVAL;

    rc = rc ? rc : say("cmd=initack pmiid=%u\n", id);
    rc = rc ? rc : hear("initack", &message);
    for (int i = 0; !rc && i < 3; i++) { /* size, rank, debug */
        rc = hear("set", &message);
        if (rc)
            break;
        self->size = chempi_pmi_line_number(message, ' ', "size", self->size);
        self->rank = chempi_pmi_line_number(message, ' ', "rank", self->rank);
    }
    return rc;
}

static int ask_about(struct chempi_store_self *self)
{
    char *message;
    int rc = say("cmd=init pmi_version=1 pmi_subversion=1\n");

    rc = rc ? rc : hear("response_to_init", &message);
    if (!rc && chempi_pmi_line_number(message, ' ', "rc", 1) != 0)
        rc = -EPROTONOSUPPORT;
    rc = rc ? rc : say("cmd=get_maxes\n");
    rc = rc ? rc : hear("maxes", &message);
    if (!rc)
        self->value_max =
            chempi_pmi_line_number(message, ' ', "vallen_max", 256);
    rc = rc ? rc : say("cmd=get_appnum\n");
    rc = rc ? rc : hear("appnum", &message);
    if (!rc)
        self->app_num = chempi_pmi_line_number(message, ' ', "appnum", 0);
    rc = rc ? rc : say("cmd=get_universe_size\n");
    rc = rc ? rc : hear("universe_size", &message);
    if (!rc)
        self->universe_size = chempi_pmi_line_number(message, ' ', "size", 0);
    rc = rc ? rc : say("cmd=get_my_kvsname\n");
    rc = rc ? rc : hear("my_kvsname", &message);
    if (!rc && !chempi_pmi_line_value(message, ' ', "kvsname", pmi.kvs,
                                      sizeof(pmi.kvs)))
        rc = -EPROTO;
    return rc;
}

static int open_store(struct chempi_store_self *self, struct chempi_err *err)
{
    const bool is_inherited = getenv("PMI_FD") != NULL;
    int rc = is_inherited ? chempi_pmi_line_inherit(err)
                          : chempi_pmi_line_connect(err);

    if (rc)
        return rc;
    pmi.is_fenced = false;
    if (!is_inherited)
        rc = introduce(self);
    else if (!chempi_pmi_line_variable("PMI_RANK", &self->rank) ||
             !chempi_pmi_line_variable("PMI_SIZE", &self->size))
        rc = -EINVAL;
    rc = rc ? rc : ask_about(self);
    return rc ? failed(err, rc) : 0;
}

static int put(const char *key, const char *value)
{
    char *message;
    int rc = say("cmd=put kvsname=%s key=%s value=%s\n", pmi.kvs, key, value);

    rc = rc ? rc : hear("put_result", &message);
    if (!rc && chempi_pmi_line_number(message, ' ', "rc", 1) != 0)
        rc = -EIO;
    return rc;
}

static int get(uint32_t rank, const char *key, char *value, size_t room)
{
    char *message;
    int rc = say("cmd=get kvsname=%s key=%s\n", pmi.kvs, key);

    (void)rank; /* keys are of the whole job */
    rc = rc ? rc : hear("get_result", &message);
    if (!rc && (chempi_pmi_line_number(message, ' ', "rc", 1) != 0 ||
                !chempi_pmi_line_value(message, ' ', "value", value, room)))
        rc = -ENOENT;
    return rc;
}

static int fence(void)
{
    pmi.is_fenced = false;
    return say("cmd=barrier_in\n");
}

static int fenced(void)
{
    char *message;
    int rc = 1;

    if (!pmi.is_fenced)
        rc = chempi_pmi_line_next(false, 0, &message);
    if (rc <= 0)
        return rc;
    if (!pmi.is_fenced && !chempi_pmi_line_is(message, ' ', "barrier_out"))
        return -EPROTO;
    pmi.is_fenced = false;
    return 1;
}

static int end_job(int exit_code, const char *text)
{
    (void)text; /* the protocol has no place for it */
    return say("cmd=abort exitcode=%d\n", exit_code);
}

static int finalize(void)
{
    char *message;
    int rc = say("cmd=finalize\n");

    return rc ? rc : hear("finalize_ack", &message);
}

const struct chempi_store_ops chempi_store_pmi1 = {
    .name = "PMI-1",
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
