/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keyvals and attributes.
 *
 *   A1  a keyval has a reference from its creator, until it is freed, and one
 *       from every attribute that uses it; its number is used again only
 *       after the last
 *   A2  the table of keyvals and all lists of attributes are guarded by
 *       `table.lock`, which is never held while a callback runs
 *   A3  an attribute that is off its list belongs to the thread that took it
 */
#include "libchempi/didl/info/attr.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"

#define FIRST_KEYVAL 1024     /* above the ABI's predefined ones */
#define MAX_KEYVALS (1 << 24) /* a limit against runaway loops */
#define DUP_FN 1              /* the ABI's number for "copy the value" */

struct keyval {
    int number; /* FIRST_KEYVAL + slot */
    int refs;
    bool is_freed;
    uint32_t kind; /* enum chempi_magic, of the objects that it is for */
    void (*copy)(void);
    void (*drop)(void);
    void *extra_state;
};

struct attr {
    struct chempi_list link;
    struct keyval *keyval; /* held */
    void *value;
};

static struct {
    pthread_mutex_t lock;
    struct keyval **slots;
    int count; /* slots ever used */
    int room;
    int first_free; /* no free slot below */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct attr *attr_of(struct chempi_list *link)
{
    return CHEMPI_CONTAINER_OF(link, struct attr, link);
}

static int bad_keyval(int keyval)
{
    if (keyval >= MPI_TAG_UB && keyval < FIRST_KEYVAL)
        return chempi_error_set(MPI_ERR_KEYVAL,
                                "attribute key %d is "
                                "predefined: its attribute cannot be set, "
                                "deleted or freed",
                                keyval);
    return chempi_error_set(MPI_ERR_KEYVAL,
                            "%d is not an attribute key for "
                            "this kind of object",
                            keyval);
}

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for an attribute");
}

static struct keyval *find_locked(uint32_t kind, int number)
{
    struct keyval *keyval;

    if (number < FIRST_KEYVAL || number - FIRST_KEYVAL >= table.count)
        return NULL;
    keyval = table.slots[number - FIRST_KEYVAL];
    return keyval && keyval->kind == kind ? keyval : NULL;
}

static int take_slot_locked(void)
{
    while (table.first_free < table.count && table.slots[table.first_free])
        table.first_free++;
    if (table.first_free < table.count)
        return table.first_free;
    if (table.count >= MAX_KEYVALS ||
        !CHEMPI_ARRAY_FIT(table.slots, table.room, table.count + 1))
        return -1;
    return table.count++;
}

static void release_locked(struct keyval *keyval)
{
    int slot = keyval->number - FIRST_KEYVAL;

    if (--keyval->refs > 0)
        return;
    table.slots[slot] = NULL;
    if (slot < table.first_free)
        table.first_free = slot;
    free(keyval);
}

int chempi_attr_create_keyval(void (*copy)(void), void (*drop)(void),
                              int *keyval, void *extra_state, int kind)
{
    struct keyval *made = chempi_sys->calloc(1, sizeof(*made));
    int slot;

    if (!made)
        return no_memory();
    (void)pthread_mutex_lock(&table.lock);
    slot = take_slot_locked();
    if (slot >= 0) {
        *made = (struct keyval){.number = FIRST_KEYVAL + slot,
                                .refs = 1,
                                .kind = (uint32_t)kind,
                                .copy = copy,
                                .drop = drop,
                                .extra_state = extra_state};
        table.slots[slot] = made;
        *keyval = made->number;
    }
    (void)pthread_mutex_unlock(&table.lock);
    if (slot >= 0)
        return MPI_SUCCESS;
    free(made);
    return no_memory();
}

int chempi_attr_free_keyval(int *keyval, int kind)
{
    struct keyval *found;
    int rc = MPI_SUCCESS;

    (void)pthread_mutex_lock(&table.lock);
    found = find_locked((uint32_t)kind, *keyval);
    if (found) {
        /* One that lives on by its attributes may be freed again. */
        if (!found->is_freed) {
            found->is_freed = true;
            release_locked(found);
        }
        *keyval = MPI_KEYVAL_INVALID;
    } else {
        rc = bad_keyval(*keyval);
    }
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

/* A copy callback's verdict on one value; *flag says whether to keep *out. */
static int call_copy(const struct keyval *keyval, void *handle, void *in,
                     void **out, int *flag)
{
    int number = keyval->number;
    void *extra = keyval->extra_state;

    *flag = 0;
    if (!keyval->copy)
        return MPI_SUCCESS;
    if ((uintptr_t)keyval->copy == DUP_FN) {
        *out = in;
        *flag = 1;
        return MPI_SUCCESS;
    }
    switch (keyval->kind) {
    case CHEMPI_MAGIC_COMM:
        return ((MPI_Comm_copy_attr_function *)keyval->copy)(
            (MPI_Comm)handle, number, extra, in, out, flag);
    case CHEMPI_MAGIC_DATATYPE:
        return ((MPI_Type_copy_attr_function *)keyval->copy)(
            (MPI_Datatype)handle, number, extra, in, out, flag);
    default:
        return ((MPI_Win_copy_attr_function *)keyval->copy)(
            (MPI_Win)handle, number, extra, in, out, flag);
    }
}

static int call_drop(const struct keyval *keyval, void *handle, void *value)
{
    int number = keyval->number;
    void *extra = keyval->extra_state;

    if (!keyval->drop)
        return MPI_SUCCESS;
    switch (keyval->kind) {
    case CHEMPI_MAGIC_COMM:
        return ((MPI_Comm_delete_attr_function *)keyval->drop)(
            (MPI_Comm)handle, number, value, extra);
    case CHEMPI_MAGIC_DATATYPE:
        return ((MPI_Type_delete_attr_function *)keyval->drop)(
            (MPI_Datatype)handle, number, value, extra);
    default:
        return ((MPI_Win_delete_attr_function *)keyval->drop)(
            (MPI_Win)handle, number, value, extra);
    }
}

static struct attr *find_attr_locked(struct chempi_attrs *attrs, int number)
{
    if (!attrs)
        return NULL;
    CHEMPI_LIST_FOR (link, &attrs->list)
        if (attr_of(link)->keyval->number == number)
            return attr_of(link);
    return NULL;
}

/* The list of an object, made when there is none yet. */
static struct chempi_attrs *
need_list_locked(const struct chempi_error_subject *it)
{
    if (!*it->attrs) {
        struct chempi_attrs *attrs = chempi_sys->calloc(1, sizeof(*attrs));

        if (!attrs)
            return NULL;
        chempi_list_init(&attrs->list);
        *it->attrs = attrs;
    }
    return *it->attrs;
}

/* Put a new attribute at the end of the list. */
static int append_locked(const struct chempi_error_subject *it,
                         struct keyval *keyval, void *value)
{
    struct chempi_attrs *attrs = need_list_locked(it);
    struct attr *attr = attrs ? chempi_sys->calloc(1, sizeof(*attr)) : NULL;

    if (!attr)
        return no_memory();
    attr->keyval = keyval;
    attr->value = value;
    keyval->refs++;
    chempi_list_append(&attrs->list, &attr->link);
    return MPI_SUCCESS;
}

static void destroy_locked(struct attr *attr)
{
    release_locked(attr->keyval);
    free(attr);
}

/* Run the delete callback of an attribute that was taken off its list; put it
 * back at the end when the callback fails. */
static int discard(const struct chempi_error_subject *it, struct attr *attr)
{
    int rc = call_drop(attr->keyval, it->handle, attr->value);

    (void)pthread_mutex_lock(&table.lock);
    if (rc == MPI_SUCCESS)
        destroy_locked(attr);
    else
        chempi_list_append(&(*it->attrs)->list, &attr->link);
    (void)pthread_mutex_unlock(&table.lock);
    if (rc != MPI_SUCCESS)
        (void)chempi_error_set(rc,
                               "a delete callback of the program returned "
                               "%d",
                               rc);
    return rc;
}

int chempi_attr_set(struct chempi_object *object, int keyval, void *value)
{
    const struct chempi_error_subject it = chempi_error_subject_of(object);
    struct keyval *found;
    struct attr *old;
    void *old_value = NULL;
    int rc = MPI_SUCCESS;

    (void)pthread_mutex_lock(&table.lock);
    found = find_locked(object->magic, keyval);
    old = found ? find_attr_locked(*it.attrs, keyval) : NULL;
    if (!found)
        rc = bad_keyval(keyval);
    else if (!old)
        rc = append_locked(&it, found, value);
    else {
        old_value = old->value;
        found->refs++; /* callbacks may free the keyval */
    }
    (void)pthread_mutex_unlock(&table.lock);
    if (!old)
        return rc;

    rc = call_drop(found, it.handle, old_value);
    (void)pthread_mutex_lock(&table.lock);
    old = find_attr_locked(*it.attrs, keyval);
    if (rc != MPI_SUCCESS)
        (void)chempi_error_set(rc,
                               "a delete callback of the program returned "
                               "%d",
                               rc);
    else if (old)
        old->value = value;
    else
        rc = append_locked(&it, found, value);
    release_locked(found);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

int chempi_attr_delete(struct chempi_object *object, int keyval)
{
    const struct chempi_error_subject it = chempi_error_subject_of(object);
    struct attr *attr;

    (void)pthread_mutex_lock(&table.lock);
    attr = find_locked(object->magic, keyval)
               ? find_attr_locked(*it.attrs, keyval)
               : NULL;
    if (attr)
        chempi_list_remove(&attr->link);
    (void)pthread_mutex_unlock(&table.lock);
    return attr ? discard(&it, attr) : bad_keyval(keyval);
}

/* Off its list; NULL: there is none. */
static struct attr *take_last(const struct chempi_error_subject *it)
{
    struct chempi_list *last = NULL;

    (void)pthread_mutex_lock(&table.lock);
    if (*it->attrs && !chempi_list_is_empty(&(*it->attrs)->list)) {
        last = (*it->attrs)->list.prev;
        chempi_list_remove(last);
    }
    (void)pthread_mutex_unlock(&table.lock);
    return last ? attr_of(last) : NULL;
}

int chempi_attr_delete_all(struct chempi_object *object)
{
    const struct chempi_error_subject it = chempi_error_subject_of(object);
    struct attr *last;
    int rc = MPI_SUCCESS;

    while (rc == MPI_SUCCESS && (last = take_last(&it)))
        rc = discard(&it, last);
    return rc;
}

void chempi_attr_end_all(struct chempi_object *object)
{
    const struct chempi_error_subject it = chempi_error_subject_of(object);
    struct attr *last;

    while ((last = take_last(&it))) {
        (void)call_drop(last->keyval, it.handle, last->value);
        (void)pthread_mutex_lock(&table.lock);
        destroy_locked(last);
        (void)pthread_mutex_unlock(&table.lock);
    }
}

void chempi_attr_drop_all(struct chempi_attrs **attrs)
{
    if (!*attrs)
        return;
    (void)pthread_mutex_lock(&table.lock);
    CHEMPI_LIST_FOR_SAFE (link, &(*attrs)->list)
        destroy_locked(attr_of(link));
    (void)pthread_mutex_unlock(&table.lock);
    free(*attrs);
    *attrs = NULL;
}

/* Copy one attribute; the caller has a reference to the keyval. */
static int copy_one(const struct chempi_error_subject *from,
                    const struct chempi_error_subject *to,
                    struct keyval *keyval, void *value)
{
    void *copy = NULL;
    int flag = 0;
    int rc = call_copy(keyval, from->handle, value, &copy, &flag);

    if (rc != MPI_SUCCESS)
        return chempi_error_set(rc,
                                "a copy callback of the program returned "
                                "%d",
                                rc);
    if (!flag)
        return MPI_SUCCESS;
    (void)pthread_mutex_lock(&table.lock);
    rc = append_locked(to, keyval, copy);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

/* A snapshot: callbacks may change the list that is being copied. */
struct snapshot {
    struct keyval *keyval; /* held */
    void *value;
};

static size_t count_locked(struct chempi_attrs *attrs)
{
    size_t n = 0;

    if (attrs)
        CHEMPI_LIST_FOR (link, &attrs->list)
            n++;
    return n;
}

static int take_snapshot(struct chempi_attrs *attrs, struct snapshot **out,
                         size_t *count)
{
    struct snapshot *list = NULL;
    size_t n;

    (void)pthread_mutex_lock(&table.lock);
    n = count_locked(attrs);
    if (n > 0)
        list = chempi_sys->calloc(n, sizeof(*list));
    if (list) {
        size_t i = 0;

        CHEMPI_LIST_FOR (link, &attrs->list) {
            list[i].keyval = attr_of(link)->keyval;
            list[i].keyval->refs++;
            list[i++].value = attr_of(link)->value;
        }
    }
    (void)pthread_mutex_unlock(&table.lock);
    *out = list;
    *count = list ? n : 0;
    return n > 0 && !list ? no_memory() : MPI_SUCCESS;
}

int chempi_attr_copy_all(struct chempi_object *from, struct chempi_object *to)
{
    const struct chempi_error_subject source = chempi_error_subject_of(from);
    const struct chempi_error_subject copy = chempi_error_subject_of(to);
    struct snapshot *list;
    size_t count;
    int rc = take_snapshot(*source.attrs, &list, &count);

    for (size_t i = 0; i < count && rc == MPI_SUCCESS; i++)
        rc = copy_one(&source, &copy, list[i].keyval, list[i].value);
    (void)pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < count; i++)
        release_locked(list[i].keyval);
    (void)pthread_mutex_unlock(&table.lock);
    free(list);
    return rc;
}

/* An attribute that the program set. */
static int get_own_locked(const struct chempi_error_subject *it, uint32_t kind,
                          int keyval, void **value, int *flag)
{
    const struct attr *attr;

    if (!find_locked(kind, keyval))
        return bad_keyval(keyval);
    attr = find_attr_locked(*it->attrs, keyval);
    *flag = attr != NULL;
    if (attr)
        *value = attr->value;
    return MPI_SUCCESS;
}

int chempi_attr_get(struct chempi_object *object, int keyval,
                    void *attribute_val, int *flag)
{
    const struct chempi_error_subject it = chempi_error_subject_of(object);
    int rc = MPI_SUCCESS;

    (void)pthread_mutex_lock(&table.lock);
    if (!it.predefined || !it.predefined(object, keyval, attribute_val, flag))
        rc = get_own_locked(&it, object->magic, keyval, attribute_val, flag);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}
