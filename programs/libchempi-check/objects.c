/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators, datatypes, windows and files that live, and who made them.
 * Each communicator with several members has a shadow, made when it is made:
 * to make it at the first operation would wait where the program need not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/libchempi-check/check.h"

struct object {
    struct object *next;
    const void *handle;
    enum check_kind kind;
    bool is_own; /* the program has made it */
    struct check_site site;
    MPI_Comm shadow; /* MPI_COMM_NULL: none */
};

enum { BUCKETS = 1024, PREDEFINED_END = 0x1000 };

static struct object *table[BUCKETS]; /* K1 */

static size_t bucket_of(const void *handle)
{
    return (((uintptr_t)handle >> 4) * 2654435761u) % BUCKETS;
}

/* Under the lock; the place of the pointer to it. */
static struct object **find(enum check_kind kind, const void *handle)
{
    struct object **at = &table[bucket_of(handle)];

    while (*at && ((*at)->handle != handle || (*at)->kind != kind))
        at = &(*at)->next;
    return at;
}

static void add(enum check_kind kind, const void *handle,
                const struct check_site *site, MPI_Comm shadow)
{
    struct object *o = calloc(1, sizeof(*o));
    struct object **at = &table[bucket_of(handle)];

    if (!o)
        return; /* it is not watched */
    o->handle = handle;
    o->kind = kind;
    o->shadow = shadow;
    o->is_own = site != NULL;
    if (site)
        o->site = *site;
    check_lock();
    o->next = *at;
    *at = o;
    check_unlock();
}

/* Not by duplicating, which would run the program's functions for
 * attributes. */
static MPI_Comm make_shadow(MPI_Comm comm)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    MPI_Comm shadow = MPI_COMM_NULL;
    MPI_Group group;
    int is_inter = 0;
    int size = 1;
    int len = 0;

    (void)PMPI_Comm_test_inter(comm, &is_inter);
    (void)PMPI_Comm_size(comm, &size);
    if (is_inter || size < 2)
        return MPI_COMM_NULL;
    (void)PMPI_Comm_group(comm, &group);
    (void)PMPI_Comm_create(comm, group, &shadow);
    (void)PMPI_Group_free(&group);
    (void)PMPI_Comm_get_name(comm, name, &len);
    if (shadow != MPI_COMM_NULL && len > 0)
        (void)PMPI_Comm_set_name(shadow, name); /* for chempictl where */
    if (shadow != MPI_COMM_NULL)
        check_door->hide(shadow);
    return shadow;
}

void check_made(const struct check_call *call, enum check_kind kind,
                const void *handle)
{
    MPI_Comm shadow = MPI_COMM_NULL;

    if (!check_is_on() || (uintptr_t)handle < PREDEFINED_END)
        return;
    if (kind == CHECK_COMM)
        shadow = make_shadow((MPI_Comm)(uintptr_t)handle);
    add(kind, handle, &call->site, shadow);
}

/* The last open that failed (K1). */
static struct {
    bool is_there;
    struct check_site site;
    char words[MPI_MAX_ERROR_STRING];
} failed_open;

void check_open_failed(const struct check_call *call, int rc)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int len = 0;

    (void)PMPI_Error_string(rc, words, &len);
    check_lock();
    failed_open.is_there = true;
    failed_open.site = call->site;
    memcpy(failed_open.words, words, sizeof(words));
    check_unlock();
}

void check_no_file(const struct check_call *call, MPI_File file)
{
    char here[CHECK_WORDS];
    char there[CHECK_WORDS];
    char why[MPI_MAX_ERROR_STRING];
    struct check_site site;
    bool is_there;

    if (file != MPI_FILE_NULL || !check_is_on())
        return;
    check_lock();
    is_there = failed_open.is_there;
    site = failed_open.site;
    memcpy(why, failed_open.words, sizeof(why));
    check_unlock();
    if (is_there)
        check_note("%s: it names MPI_FILE_NULL; %s has failed (%s), and errors "
                   "of files are returned: look at what the calls return, or "
                   "call MPI_File_set_errhandler(MPI_FILE_NULL, "
                   "MPI_ERRORS_ARE_FATAL) first",
                   check_site_words(&call->site, here, sizeof(here)),
                   check_site_words(&site, there, sizeof(there)), why);
    else
        check_note("%s: it names MPI_FILE_NULL",
                   check_site_words(&call->site, here, sizeof(here)));
}

/* It is gone, so another thread's new one may have its handle: the oldest. */
void check_freed(enum check_kind kind, const void *handle)
{
    struct object **oldest = NULL;
    struct object *o = NULL;

    if ((uintptr_t)handle < PREDEFINED_END)
        return;
    check_lock();
    for (struct object **at = &table[bucket_of(handle)]; *at; at = &(*at)->next)
        if ((*at)->handle == handle && (*at)->kind == kind)
            oldest = at;
    if (oldest) {
        o = *oldest;
        *oldest = o->next;
    }
    check_unlock();
    free(o);
}

bool check_maker(enum check_kind kind, const void *handle,
                 struct check_site *out)
{
    const struct object *o;
    bool is_known;

    check_lock();
    o = *find(kind, handle);
    is_known = o && o->is_own;
    if (is_known)
        *out = o->site;
    check_unlock();
    return is_known;
}

MPI_Comm check_shadow(MPI_Comm comm)
{
    const struct object *o;
    MPI_Comm shadow;

    check_lock();
    o = *find(CHECK_COMM, (const void *)comm);
    shadow = o ? o->shadow : MPI_COMM_NULL;
    check_unlock();
    return shadow;
}

void check_drop_shadow(const void *handle)
{
    MPI_Comm shadow = MPI_COMM_NULL;
    struct object *o;

    check_lock();
    o = *find(CHECK_COMM, handle);
    if (o && o->is_own) {
        shadow = o->shadow;
        o->shadow = MPI_COMM_NULL;
    }
    check_unlock();
    if (shadow != MPI_COMM_NULL)
        (void)PMPI_Comm_free(&shadow);
}

MPI_Comm check_comm_at(size_t i)
{
    MPI_Comm found = MPI_COMM_NULL;

    check_lock();
    for (size_t b = 0; b < BUCKETS && found == MPI_COMM_NULL; b++)
        for (const struct object *o = table[b]; o; o = o->next)
            if (o->kind == CHECK_COMM && i-- == 0) {
                found = (MPI_Comm)(uintptr_t)o->handle;
                break;
            }
    check_unlock();
    return found;
}

void check_objects_begin(void)
{
    add(CHECK_COMM, (const void *)MPI_COMM_WORLD, NULL,
        make_shadow(MPI_COMM_WORLD));
    add(CHECK_COMM, (const void *)MPI_COMM_SELF, NULL, MPI_COMM_NULL);
}

void check_note_objects(void)
{
    static const char *const words[CHECK_KINDS] = {
        [CHECK_COMM] = "communicator was never freed; call MPI_Comm_free",
        [CHECK_TYPE] = "datatype was never freed; call MPI_Type_free",
        [CHECK_WIN] = "window was never freed; call MPI_Win_free",
        [CHECK_FILE] = "file was never closed; call MPI_File_close",
    };
    char site[CHECK_WORDS];

    for (size_t b = 0; b < BUCKETS; b++)
        for (const struct object *o = table[b]; o; o = o->next)
            if (o->is_own)
                check_note("%s: its %s",
                           check_site_words(&o->site, site, sizeof(site)),
                           words[o->kind]);
}

/* Shadows of those that the program has not freed, too. */
void check_objects_end(void)
{
    for (size_t b = 0; b < BUCKETS; b++)
        while (table[b]) {
            struct object *o = table[b];

            table[b] = o->next;
            if (o->shadow != MPI_COMM_NULL)
                (void)PMPI_Comm_free(&o->shadow);
            free(o);
        }
}

char *check_comm_words(MPI_Comm comm, char *out, size_t len)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    char words[CHECK_WORDS];
    struct check_site site;
    int n = 0;

    (void)PMPI_Comm_get_name(comm, name, &n);
    if (n > 0)
        (void)snprintf(out, len, "%s", name);
    else if (check_maker(CHECK_COMM, (const void *)comm, &site))
        (void)snprintf(out, len, "the communicator of %s",
                       check_site_words(&site, words, sizeof(words)));
    else
        (void)snprintf(out, len, "a communicator");
    return out;
}
