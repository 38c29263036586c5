/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes between Fortran and C.
 *
 *   A1  there is at most one cell for a value; it stands in by_value and in
 *       by_address, and refs counts the attributes that point at it
 *   A2  `lock` guards cells and key values; no callback runs under it
 */
#include "fortran/lib/callback/attribute.h"

#include <pthread.h>
#include <stdlib.h>

#include "fortran/lib/binding.h"
#include "fortran/lib/callback/procedures.h"

#define BUCKETS 256u

struct cell {
    MPI_Aint value; /* first: C programs read it through the pointer */
    long refs;
    struct cell *next_value;
    struct cell *next_address;
};

struct chempi_keyval {
    struct chempi_keyval *next;
    chempi_procedure *copy; /* NULL: copies nothing */
    chempi_procedure *drop; /* NULL: does nothing */
    bool is_dup;            /* copies the value as it is */
    bool is_old;
    MPI_Aint extra_state;
};

static struct {
    pthread_mutex_t lock;
    struct cell *by_value[BUCKETS];
    struct cell *by_address[BUCKETS];
    struct chempi_keyval *keyvals;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- cells ---- */

static unsigned hash(uint64_t x)
{
    return (unsigned)(x * UINT64_C(0x9e3779b97f4a7c15) >> 56) % BUCKETS;
}

static struct cell **find_value_locked(MPI_Aint value)
{
    struct cell **link = &all.by_value[hash((uint64_t)value)];

    while (*link && (*link)->value != value)
        link = &(*link)->next_value;
    return link;
}

static struct cell **find_address_locked(const void *address)
{
    struct cell **link = &all.by_address[hash((uint64_t)(uintptr_t)address)];

    while (*link && (const void *)*link != address)
        link = &(*link)->next_address;
    return link;
}

static struct cell *new_cell_locked(MPI_Aint value)
{
    struct cell *cell = malloc(sizeof(*cell));
    struct cell **link;

    if (!cell)
        return NULL;
    *cell = (struct cell){.value = value};
    link = &all.by_value[hash((uint64_t)value)];
    cell->next_value = *link;
    *link = cell;
    link = &all.by_address[hash((uint64_t)(uintptr_t)cell)];
    cell->next_address = *link;
    *link = cell;
    return cell;
}

void *chempi_attribute_hold(MPI_Aint value)
{
    struct cell *cell;

    (void)pthread_mutex_lock(&all.lock);
    cell = *find_value_locked(value);
    if (!cell)
        cell = new_cell_locked(value);
    if (cell)
        cell->refs++;
    (void)pthread_mutex_unlock(&all.lock);
    return cell;
}

void chempi_attribute_release(void *address)
{
    struct cell **link;
    struct cell *cell;

    (void)pthread_mutex_lock(&all.lock);
    link = find_address_locked(address);
    cell = *link;
    if (cell && --cell->refs == 0) {
        *link = cell->next_address;
        *find_value_locked(cell->value) = cell->next_value;
        free(cell);
    }
    (void)pthread_mutex_unlock(&all.lock);
}

static bool is_cell(const void *address)
{
    bool is;

    (void)pthread_mutex_lock(&all.lock);
    is = *find_address_locked(address) != NULL;
    (void)pthread_mutex_unlock(&all.lock);
    return is;
}

MPI_Aint chempi_attribute_value(void *value)
{
    return is_cell(value) ? ((struct cell *)value)->value : (MPI_Aint)value;
}

MPI_Aint chempi_attribute_value_comm(int keyval, void *value)
{
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
        return *(int *)value;
    default:
        return chempi_attribute_value(value);
    }
}

MPI_Aint chempi_attribute_value_win(int keyval, void *value)
{
    switch (keyval) {
    case MPI_WIN_BASE:
        return (MPI_Aint)value;
    case MPI_WIN_SIZE:
        return *(MPI_Aint *)value;
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *(int *)value;
    default:
        return chempi_attribute_value(value);
    }
}

/* ---- key values ---- */

static bool is_equal(const struct chempi_keyval *a,
                     const struct chempi_keyval *b)
{
    return a->copy == b->copy && a->drop == b->drop && a->is_dup == b->is_dup &&
           a->is_old == b->is_old && a->extra_state == b->extra_state;
}

struct chempi_keyval *chempi_attribute_keyval(chempi_procedure *copy,
                                              chempi_procedure *drop,
                                              MPI_Aint extra_state, bool is_old)
{
    struct chempi_keyval wanted = {.is_dup = chempi_procedures_is_dup(copy),
                                   .is_old = is_old,
                                   .extra_state = extra_state};
    struct chempi_keyval *k;

    if (!chempi_procedures_is_predefined(copy))
        wanted.copy = copy;
    if (!chempi_procedures_is_predefined(drop))
        wanted.drop = drop;
    (void)pthread_mutex_lock(&all.lock);
    for (k = all.keyvals; k; k = k->next)
        if (is_equal(k, &wanted))
            break;
    if (!k) {
        k = malloc(sizeof(*k));
        if (k) {
            *k = wanted;
            k->next = all.keyvals;
            all.keyvals = k;
        }
    }
    (void)pthread_mutex_unlock(&all.lock);
    return k;
}

typedef void copy_procedure(int *handle, int *keyval, MPI_Aint *state,
                            MPI_Aint *in, MPI_Aint *out, int *flag,
                            int *ierror);
typedef void old_copy_procedure(int *handle, int *keyval, int *state, int *in,
                                int *out, int *flag, int *ierror);
typedef void drop_procedure(int *handle, int *keyval, MPI_Aint *value,
                            MPI_Aint *state, int *ierror);
typedef void old_drop_procedure(int *handle, int *keyval, int *value,
                                int *state, int *ierror);

/* Ask the user's procedure: *out is a value for Fortran. */
static int ask(struct chempi_keyval *k, int handle, int keyval, MPI_Aint in,
               MPI_Aint *out, int *flag)
{
    int yes = chempi_fortran_false;
    int ierror = MPI_SUCCESS;

    if (k->is_old) {
        int old_state = (int)k->extra_state;
        int old_in = (int)in;
        int old_out = 0;

        ((old_copy_procedure *)k->copy)(&handle, &keyval, &old_state, &old_in,
                                        &old_out, &yes, &ierror);
        *out = old_out;
    } else {
        ((copy_procedure *)k->copy)(&handle, &keyval, &k->extra_state, &in, out,
                                    &yes, &ierror);
    }
    *flag = chempi_in_logical(yes);
    return ierror;
}

static int copy(void *state, int handle, int keyval, void *in, void **out,
                int *flag)
{
    struct chempi_keyval *k = state;
    MPI_Aint value = chempi_attribute_value(in);
    int rc = MPI_SUCCESS;

    *flag = k->is_dup;
    if (k->copy)
        rc = ask(k, handle, keyval, value, &value, flag);
    if (rc || !*flag)
        return rc;
    if (k->is_dup && !is_cell(in)) {
        *out = in; /* C's own pointer stays that */
        return MPI_SUCCESS;
    }
    *out = chempi_attribute_hold(value);
    return *out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int drop(void *state, int handle, int keyval, void *value)
{
    struct chempi_keyval *k = state;
    MPI_Aint number = chempi_attribute_value(value);
    int ierror = MPI_SUCCESS;

    if (k->drop && k->is_old) {
        int old_value = (int)number;
        int old_state = (int)k->extra_state;

        ((old_drop_procedure *)k->drop)(&handle, &keyval, &old_value,
                                        &old_state, &ierror);
    } else if (k->drop) {
        ((drop_procedure *)k->drop)(&handle, &keyval, &number, &k->extra_state,
                                    &ierror);
    }
    if (ierror == MPI_SUCCESS)
        chempi_attribute_release(value);
    return ierror;
}

#define OBJECT(kind, type)                                                     \
    int chempi_attribute_copy_##kind(type object, int keyval, void *state,     \
                                     void *in, void *out, int *flag)           \
    {                                                                          \
        return copy(state, chempi_out_##kind(object), keyval, in, out, flag);  \
    }                                                                          \
    int chempi_attribute_drop_##kind(type object, int keyval, void *value,     \
                                     void *state)                              \
    {                                                                          \
        return drop(state, chempi_out_##kind(object), keyval, value);          \
    }

OBJECT(comm, MPI_Comm)
OBJECT(type, MPI_Datatype)
OBJECT(win, MPI_Win)
