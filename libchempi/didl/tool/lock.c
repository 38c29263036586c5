/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool interface: its users and its lock, and strings; see tool.h. */
#include <pthread.h>
#include <string.h>

#include "libchempi/didl/tool/tool.h"

static struct {
    pthread_mutex_t lock;
    uint32_t users;   /* MPI_T_init_thread without MPI_T_finalize */
    bool is_threaded; /* one of them may call from several threads */
} tool = {.lock = PTHREAD_MUTEX_INITIALIZER};

int chempi_tool_enter(void)
{
    (void)pthread_mutex_lock(&tool.lock);
    if (tool.users > 0)
        return MPI_SUCCESS;
    (void)pthread_mutex_unlock(&tool.lock);
    return MPI_T_ERR_NOT_INITIALIZED;
}

int chempi_tool_leave(int rc)
{
    (void)pthread_mutex_unlock(&tool.lock);
    return rc;
}

bool chempi_tool_is_threaded(void)
{
    bool is_threaded;

    (void)pthread_mutex_lock(&tool.lock);
    is_threaded = tool.is_threaded;
    (void)pthread_mutex_unlock(&tool.lock);
    return is_threaded;
}

void chempi_tool_open(bool is_threaded)
{
    (void)pthread_mutex_lock(&tool.lock);
    tool.users++;
    tool.is_threaded |= is_threaded;
    (void)pthread_mutex_unlock(&tool.lock);
}

bool chempi_tool_close_locked(void)
{
    return --tool.users == 0;
}

void chempi_tool_put_text(const char *text, char *buf, int *len)
{
    size_t need = strlen(text) + 1;

    if (!len)
        return;
    if (buf && *len > 0) {
        size_t n = need < (size_t)*len ? need : (size_t)*len;

        memcpy(buf, text, n);
        buf[n - 1] = '\0';
    }
    *len = (int)need;
}
