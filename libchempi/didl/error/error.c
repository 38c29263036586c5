/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of errors, of this thread and of lost peers; see error.h. */
#include "libchempi/didl/error/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Words for the error that this thread raises next. */
static _Thread_local char words[CHEMPI_ERR_TEXT_MAX];
static _Thread_local int words_class; /* what they are for; 0: none are noted */

/* The error that this thread raised last: chempi_error_detail(). */
static _Thread_local struct {
    int code;
    const char *func;
    char words[CHEMPI_ERR_TEXT_MAX];
} raised;

/* The peers that were lost; by whoever has the lane. */
static struct {
    _Atomic uint32_t count; /* stored last */
    uint32_t ranks[CHEMPI_ERROR_LOST_MAX];
    char words[CHEMPI_ERR_TEXT_MAX]; /* of the first one */
} loss;

/* Of the last process of another world, if it was lost last of all. */
static const char *_Atomic foreign_loss;

int chempi_error_set(int errclass, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, args); /* cut is fine */
    va_end(args);
    words_class = errclass;
    return errclass;
}

int chempi_error_class_of_others(int64_t errclass)
{
    return errclass > MPI_SUCCESS && errclass <= MPI_ERR_LASTCODE
               ? (int)errclass
               : MPI_ERR_INTERN;
}

char *chempi_error_put_handle(char text[CHEMPI_ERROR_HANDLE_TEXT],
                              const void *handle)
{
    if (chempi_handle_is_address(handle))
        (void)snprintf(text, CHEMPI_ERROR_HANDLE_TEXT, "%p", handle);
    else
        (void)snprintf(text, CHEMPI_ERROR_HANDLE_TEXT, "%d",
                       (int)(intptr_t)handle);
    return text;
}

void chempi_error_forget(void)
{
    words_class = MPI_SUCCESS;
}

static void note_loss(uint32_t rank, const char *who, const char *why)
{
    const uint32_t count =
        atomic_load_explicit(&loss.count, memory_order_relaxed);

    if (count < CHEMPI_ERROR_LOST_MAX)
        loss.ranks[count] = rank;
    if (count == 0)
        (void)snprintf(loss.words, sizeof(loss.words), "%s is lost: %s", who,
                       why); /* cut is fine */
    /* Orders the words before; partner: chempi_error_explain(). */
    atomic_store_explicit(&loss.count, count + 1, memory_order_release);
}

void chempi_error_note_loss(uint32_t rank, const char *why)
{
    char who[32];

    (void)snprintf(who, sizeof(who), "rank %u", (unsigned)rank);
    note_loss(rank, who, why);
    chempi_error_note_foreign_loss(NULL);
}

void chempi_error_note_foreign_loss(const char *sentence)
{
    /* Orders the words before; partner: chempi_error_explain(). */
    atomic_store_explicit(&foreign_loss, sentence, memory_order_release);
}

void chempi_error_put_ranks(const uint32_t *ranks, uint32_t count, char *buf,
                            size_t len)
{
    const uint32_t named =
        count < CHEMPI_ERROR_LOST_MAX ? count : CHEMPI_ERROR_LOST_MAX;
    size_t at = 0;

    buf[0] = '\0';
    for (uint32_t i = 1; i < named && at < len; i++) {
        (void)snprintf(buf + at, len - at, "%s%u",
                       i > 1        ? ", "
                       : count == 2 ? "; so is rank "
                                    : "; so are ranks ",
                       (unsigned)ranks[i]);
        at += strlen(buf + at);
    }
    if (count > named && at < len)
        (void)snprintf(buf + at, len - at, " and %u more",
                       (unsigned)(count - named));
}

void chempi_error_explain(int code)
{
    const char *foreign =
        atomic_load_explicit(&foreign_loss, memory_order_acquire);

    if (code != MPI_ERR_PROC_ABORTED || words_class == code)
        return;
    if (foreign)
        (void)chempi_error_set(code, "%s", foreign);
    else
        chempi_error_explain_own(code);
}

void chempi_error_explain_own(int code)
{
    const uint32_t count =
        atomic_load_explicit(&loss.count, memory_order_acquire);
    char others[CHEMPI_ERROR_RANKS_TEXT];

    if (code != MPI_ERR_PROC_ABORTED || words_class == code || count == 0)
        return;
    chempi_error_put_ranks(loss.ranks, count, others, sizeof(others));
    (void)chempi_error_set(code, "%s%s", loss.words, others);
}

const char *chempi_error_words(void)
{
    return words;
}

const char *chempi_error_noted(int code)
{
    return code != MPI_SUCCESS && words_class == code ? words : NULL;
}

const char *chempi_error_detail(int code, const char **func)
{
    if (code == MPI_SUCCESS || code != raised.code)
        return NULL;
    *func = raised.func;
    return raised.words;
}

int chempi_error_class_of_errno(int neg_errno)
{
    switch (-neg_errno) {
    case 0:
        return MPI_SUCCESS;
    case ENOMEM:
    case ENOSPC:
        return MPI_ERR_NO_MEM;
    case EINVAL:
        return MPI_ERR_ARG;
    case EMSGSIZE:
        return MPI_ERR_TRUNCATE;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED: /* each rank listens before others know of it */
    case ENOTCONN:
    case ESHUTDOWN:
    case EHOSTUNREACH:
        return MPI_ERR_PROC_ABORTED;
    case ENOTSUP:
    case ENOSYS:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_OTHER;
    }
}

int chempi_error_from(int neg_errno, const struct chempi_err *err)
{
    if (neg_errno == 0)
        return MPI_SUCCESS;
    return chempi_error_set(
        chempi_error_class_of_errno(neg_errno), "%s",
        err && err->text[0] != '\0' ? err->text : chempi_err_name(neg_errno));
}

void chempi_error_note_raised(int code, const char *func)
{
    raised.code = code;
    raised.func = func;
    (void)snprintf(raised.words, sizeof(raised.words), "%s",
                   code != MPI_SUCCESS && words_class == code ? words : "");
    words_class = MPI_SUCCESS;
}
