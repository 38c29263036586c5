/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance variables (MPI 5.0, section 15.3.7). The library counts all the
 * time; a handle remembers where it began.
 *
 *   H1  a counter's value is `sum`, and what came since `base` while started
 *   H2  a high watermark's value is `peak`, or the module's if that is higher
 *       while started; the module's peak is older than no started handle's
 *       last reset, because whoever lets it begin again gives it to the
 *       others first
 *   H3  levels are continuous and cannot be written
 *   H4  a handle that is bound to an object which is gone answers
 *       MPI_T_ERR_INVALID_HANDLE; what is bound are counters only
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/tool/tool.h"

struct session {
    struct chempi_list link;
    struct chempi_list handles;
};

struct handle {
    struct chempi_list link; /* in its session */
    uint32_t index;
    int var_class;
    uint64_t bound; /* chempi_tool_pvar_bind(), or 0 */
    bool is_started;
    uint64_t sum;
    uint64_t base;
    uint64_t peak;
};

static struct chempi_list sessions = {&sessions, &sessions};

static struct session *find_session(MPI_T_pvar_session session)
{
    CHEMPI_LIST_FOR (pos, &sessions) {
        struct session *s = CHEMPI_CONTAINER_OF(pos, struct session, link);

        if ((MPI_T_pvar_session)(void *)s == session)
            return s;
    }
    return NULL;
}

static struct handle *find_handle(const struct session *s,
                                  MPI_T_pvar_handle handle)
{
    CHEMPI_LIST_FOR (pos, &s->handles) {
        struct handle *h = CHEMPI_CONTAINER_OF(pos, struct handle, link);

        if ((MPI_T_pvar_handle)(void *)h == handle)
            return h;
    }
    return NULL;
}

static bool is_index(int i)
{
    return i >= 0 && (uint32_t)i < chempi_tool_pvar_count();
}

static bool is_continuous(int var_class)
{
    return var_class == MPI_T_PVAR_CLASS_LEVEL;
}

/* ---- inquiry ---- */

int chempi_tool_pvar_get_num(int *num_pvar)
{
    if (!num_pvar)
        return MPI_T_ERR_INVALID;
    *num_pvar = (int)chempi_tool_pvar_count();
    return MPI_SUCCESS;
}

int chempi_tool_pvar_get_info(int pvar_index, char *name, int *name_len,
                              int *verbosity, int *var_class,
                              MPI_Datatype *datatype, MPI_T_enum *enumtype,
                              char *desc, int *desc_len, int *bind,
                              int *readonly, int *continuous, int *atomic)
{
    struct chempi_tool_pvar pvar;

    if (!is_index(pvar_index))
        return MPI_T_ERR_INVALID_INDEX;
    chempi_tool_pvar_at((uint32_t)pvar_index, &pvar);
    chempi_tool_put_text(pvar.name, name, name_len);
    chempi_tool_put_text(pvar.text, desc, desc_len);
    chempi_tool_put(verbosity, pvar.is_basic ? MPI_T_VERBOSITY_USER_BASIC
                                             : MPI_T_VERBOSITY_TUNER_DETAIL);
    chempi_tool_put(var_class, pvar.var_class);
    chempi_tool_put(bind, pvar.bind);
    chempi_tool_put(readonly, is_continuous(pvar.var_class));
    chempi_tool_put(continuous, is_continuous(pvar.var_class));
    chempi_tool_put(atomic, pvar.var_class == MPI_T_PVAR_CLASS_COUNTER);
    if (datatype)
        *datatype = MPI_UNSIGNED_LONG_LONG;
    if (enumtype)
        *enumtype = MPI_T_ENUM_NULL;
    return MPI_SUCCESS;
}

int chempi_tool_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    if (!name || !pvar_index)
        return MPI_T_ERR_INVALID;
    for (uint32_t i = 0; i < chempi_tool_pvar_count(); i++) {
        struct chempi_tool_pvar pvar;

        chempi_tool_pvar_at(i, &pvar);
        if (pvar.var_class != var_class || strcmp(pvar.name, name) != 0)
            continue;
        *pvar_index = (int)i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

/* ---- sessions and handles ---- */

int chempi_tool_pvar_session_create(MPI_T_pvar_session *session)
{
    struct session *s;

    if (!session)
        return MPI_T_ERR_INVALID;
    s = chempi_sys->malloc(sizeof(*s));
    if (!s)
        return MPI_T_ERR_OUT_OF_SESSIONS;
    chempi_list_init(&s->handles);
    chempi_list_append(&sessions, &s->link);
    *session = (MPI_T_pvar_session)(void *)s;
    return MPI_SUCCESS;
}

static void destroy_handle(struct handle *h)
{
    chempi_list_remove(&h->link);
    free(h);
}

static void destroy_session(struct session *s)
{
    CHEMPI_LIST_FOR_SAFE (pos, &s->handles)
        destroy_handle(CHEMPI_CONTAINER_OF(pos, struct handle, link));
    chempi_list_remove(&s->link);
    free(s);
}

int chempi_tool_pvar_session_free(MPI_T_pvar_session *session)
{
    struct session *s;

    s = session ? find_session(*session) : NULL;
    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    destroy_session(s);
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

void chempi_tool_pvar_fini(void)
{
    CHEMPI_LIST_FOR_SAFE (pos, &sessions)
        destroy_session(CHEMPI_CONTAINER_OF(pos, struct session, link));
}

int chempi_tool_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index,
                                  void *obj_handle, MPI_T_pvar_handle *handle,
                                  int *count)
{
    struct chempi_tool_pvar pvar;
    uint64_t bound = 0;
    struct session *s = find_session(session);
    struct handle *h;

    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    if (!is_index(pvar_index))
        return MPI_T_ERR_INVALID_INDEX;
    if (!handle || !count)
        return MPI_T_ERR_INVALID;
    chempi_tool_pvar_at((uint32_t)pvar_index, &pvar);
    if (pvar.bind != MPI_T_BIND_NO_OBJECT) {
        bound = chempi_tool_pvar_bind(pvar.bind, obj_handle);
        if (!bound)
            return MPI_T_ERR_INVALID;
    }
    h = chempi_sys->calloc(1, sizeof(*h));
    if (!h)
        return MPI_T_ERR_OUT_OF_HANDLES;
    h->bound = bound;
    h->index = (uint32_t)pvar_index;
    h->var_class = pvar.var_class;
    chempi_list_append(&s->handles, &h->link);
    *handle = (MPI_T_pvar_handle)(void *)h;
    *count = 1;
    return MPI_SUCCESS;
}

int chempi_tool_pvar_handle_free(MPI_T_pvar_session session,
                                 MPI_T_pvar_handle *handle)
{
    struct session *s = find_session(session);
    struct handle *h;

    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    h = handle ? find_handle(s, *handle) : NULL;
    if (!h)
        return MPI_T_ERR_INVALID_HANDLE;
    destroy_handle(h);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

/* ---- values ---- */

/* H2: every started handle of the watermark takes over the module's peak. */
static void share_peak(uint32_t index, uint64_t peak)
{
    CHEMPI_LIST_FOR (spos, &sessions) {
        struct session *s = CHEMPI_CONTAINER_OF(spos, struct session, link);

        CHEMPI_LIST_FOR (hpos, &s->handles) {
            struct handle *h = CHEMPI_CONTAINER_OF(hpos, struct handle, link);

            if (h->index == index && h->is_started && h->peak < peak)
                h->peak = peak;
        }
    }
}

/* Watermarks are bound to nothing, so there always is a value. */
static uint64_t rearm(uint32_t index)
{
    uint64_t raw = 0;

    (void)chempi_tool_pvar_raw(index, 0, &raw);
    share_peak(index, raw);
    return chempi_tool_pvar_rearm(index);
}

static int raw_of(const struct handle *h, uint64_t *out)
{
    return chempi_tool_pvar_raw(h->index, h->bound, out)
               ? MPI_SUCCESS
               : MPI_T_ERR_INVALID_HANDLE;
}

static int value_of(const struct handle *h, uint64_t *out)
{
    uint64_t raw;
    int rc;

    *out = h->var_class == MPI_T_PVAR_CLASS_COUNTER ? h->sum : h->peak;
    if (!h->is_started && !is_continuous(h->var_class))
        return MPI_SUCCESS;
    rc = raw_of(h, &raw);
    if (rc)
        return rc;
    if (h->var_class == MPI_T_PVAR_CLASS_COUNTER)
        *out += raw - h->base;
    else if (raw > h->peak)
        *out = raw;
    return MPI_SUCCESS;
}

static int start(struct handle *h)
{
    int rc = MPI_SUCCESS;

    if (is_continuous(h->var_class))
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    if (h->is_started)
        return MPI_SUCCESS;
    if (h->var_class == MPI_T_PVAR_CLASS_COUNTER) {
        rc = raw_of(h, &h->base);
    } else {
        uint64_t level = rearm(h->index);

        h->peak = h->peak > level ? h->peak : level;
    }
    h->is_started = rc == MPI_SUCCESS;
    return rc;
}

static int stop(struct handle *h)
{
    uint64_t value;
    int rc;

    if (is_continuous(h->var_class))
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    rc = value_of(h, &value);
    h->is_started = false;
    if (rc)
        return rc;
    h->sum = value;
    h->peak = value;
    return MPI_SUCCESS;
}

static int set(struct handle *h, uint64_t value)
{
    int rc = MPI_SUCCESS;

    if (is_continuous(h->var_class))
        return MPI_T_ERR_PVAR_NO_WRITE;
    h->sum = value;
    if (h->var_class == MPI_T_PVAR_CLASS_HIGHWATERMARK && h->is_started)
        (void)rearm(h->index);
    else if (h->is_started)
        rc = raw_of(h, &h->base);
    h->peak = value;
    return rc;
}

static int reset(struct handle *h)
{
    uint64_t start_value = 0;

    if (h->var_class == MPI_T_PVAR_CLASS_HIGHWATERMARK)
        start_value = rearm(h->index);
    return set(h, start_value);
}

/* One handle, or all of a session that it can be done to. */
int chempi_tool_pvar_change(MPI_T_pvar_session session,
                            MPI_T_pvar_handle handle, int what)
{
    static int (*const changes[])(struct handle * h) = {
        [CHEMPI_TOOL_PVAR_START] = start,
        [CHEMPI_TOOL_PVAR_STOP] = stop,
        [CHEMPI_TOOL_PVAR_RESET] = reset,
    };
    struct session *s = find_session(session);
    struct handle *h;

    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    if (handle == MPI_T_PVAR_ALL_HANDLES) {
        CHEMPI_LIST_FOR (pos, &s->handles)
            (void)changes[what](CHEMPI_CONTAINER_OF(pos, struct handle, link));
        return MPI_SUCCESS;
    }
    h = find_handle(s, handle);
    return h ? changes[what](h) : MPI_T_ERR_INVALID_HANDLE;
}

static int find(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                const void *buf, struct handle **out)
{
    struct session *s = find_session(session);

    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    *out = find_handle(s, handle);
    if (!*out)
        return MPI_T_ERR_INVALID_HANDLE;
    return buf ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

int chempi_tool_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                          void *buf)
{
    struct handle *h;
    uint64_t value;
    int rc = find(session, handle, buf, &h);

    if (rc)
        return rc;
    rc = value_of(h, &value);
    if (rc == MPI_SUCCESS)
        *(unsigned long long *)buf = value;
    return rc;
}

int chempi_tool_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                           const void *buf)
{
    struct handle *h;
    int rc = find(session, handle, buf, &h);

    if (rc)
        return rc;
    return set(h, *(const unsigned long long *)buf);
}

int chempi_tool_pvar_readreset(MPI_T_pvar_session session,
                               MPI_T_pvar_handle handle, void *buf)
{
    struct handle *h;
    uint64_t value;
    int rc = find(session, handle, buf, &h);

    if (rc)
        return rc;
    if (is_continuous(h->var_class))
        return MPI_T_ERR_PVAR_NO_WRITE;
    if (h->var_class != MPI_T_PVAR_CLASS_COUNTER)
        return MPI_T_ERR_PVAR_NO_ATOMIC;
    rc = value_of(h, &value);
    if (rc)
        return rc;
    *(unsigned long long *)buf = value;
    h->base += value - h->sum; /* nothing that comes meanwhile is lost */
    h->sum = 0;
    return MPI_SUCCESS;
}
