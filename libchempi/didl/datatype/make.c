/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life of a datatype and the bounds of its elements (MPI 5.0, sections 5.1.6
 * to 5.1.9).
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/attr.h"
#include "libchempi/services/layout/layout_apart.h"

/* a - b in 63 bits, noting overflow. */
static MPI_Count difference(MPI_Count a, MPI_Count b, bool *is_overflown)
{
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) {
        *is_overflown = true;
        return 0;
    }
    return a - b;
}

static MPI_Count min(MPI_Count a, MPI_Count b)
{
    return a < b ? a : b;
}

static MPI_Count max(MPI_Count a, MPI_Count b)
{
    return a > b ? a : b;
}

/* Merge the interval [lb, ub] into the bounds; an explicit bound pushes aside
 * all that are not. */
static void merge_bounds(struct chempi_datatype_bounds *bounds, MPI_Count lb,
                         MPI_Count ub, bool is_lb_set, bool is_ub_set)
{
    if (bounds->is_empty || (is_lb_set && !bounds->is_lb_set))
        bounds->lb = lb;
    else if (is_lb_set == bounds->is_lb_set)
        bounds->lb = min(bounds->lb, lb);
    if (bounds->is_empty || (is_ub_set && !bounds->is_ub_set))
        bounds->ub = ub;
    else if (is_ub_set == bounds->is_ub_set)
        bounds->ub = max(bounds->ub, ub);
    bounds->is_lb_set |= is_lb_set;
    bounds->is_ub_set |= is_ub_set;
}

static void merge_kind(struct chempi_datatype_bounds *bounds,
                       const struct chempi_datatype *type)
{
    if (type->align > bounds->align)
        bounds->align = type->align;
    if (type->elements == 0)
        return; /* nothing of any kind */
    if (bounds->elements == 0)
        bounds->elem_kind = type->elem_kind;
    else if (bounds->elem_kind != type->elem_kind)
        bounds->is_mixed = true;
    if (type->elem_kind == 0)
        bounds->is_mixed = true;
}

/* first: displacement of the first copy; low and high: of the outermost ones;
 * n: copies. */
static void merge(struct chempi_datatype_bounds *bounds,
                  struct chempi_datatype *type, MPI_Count low, MPI_Count high,
                  MPI_Count n)
{
    bool *over = &bounds->is_overflown;
    const struct chempi_datatype_recipe *recipe = type->recipe;
    MPI_Count lb = chempi_datatype_muladd(1, type->lb, low, over);
    MPI_Count ub = chempi_datatype_muladd(
        1, chempi_datatype_muladd(1, type->lb, type->extent, over), high, over);

    merge_bounds(bounds, lb, ub, recipe && recipe->is_lb_set,
                 recipe && recipe->is_ub_set);
    if (type->size > 0) {
        MPI_Count true_lb = chempi_datatype_muladd(1, type->true_lb, low, over);
        MPI_Count true_ub = chempi_datatype_muladd(
            1, type->true_lb + type->true_extent, high, over);

        bounds->true_lb =
            bounds->has_data ? min(bounds->true_lb, true_lb) : true_lb;
        bounds->true_ub =
            bounds->has_data ? max(bounds->true_ub, true_ub) : true_ub;
        bounds->has_data = true;
    }
    merge_kind(bounds, type);
    bounds->size = chempi_datatype_muladd(n, type->size, bounds->size, over);
    bounds->external_size =
        chempi_datatype_external_size(type, n, bounds->external_size);
    bounds->elements =
        chempi_datatype_muladd(n, type->elements, bounds->elements, over);
    bounds->is_empty = false;
}

void chempi_datatype_bounds_add(struct chempi_datatype_bounds *bounds,
                                struct chempi_datatype *type, MPI_Count disp,
                                MPI_Count count, MPI_Count stride)
{
    MPI_Count last;

    if (count == 0)
        return;
    last =
        chempi_datatype_muladd(count - 1, stride, disp, &bounds->is_overflown);
    merge(bounds, type, min(disp, last), max(disp, last), count);
}

void chempi_datatype_bounds_add_rows(struct chempi_datatype_bounds *bounds,
                                     struct chempi_datatype *type,
                                     MPI_Count disp, MPI_Count count,
                                     MPI_Count outer, MPI_Count outer_stride)
{
    bool *over = &bounds->is_overflown;
    MPI_Count inner = chempi_datatype_muladd(count - 1, type->extent, 0, over);
    MPI_Count reach = chempi_datatype_muladd(outer - 1, outer_stride, 0, over);
    MPI_Count low = disp;
    MPI_Count high = disp;

    if (count == 0 || outer == 0)
        return;
    low = chempi_datatype_muladd(1, min(inner, 0), low, over);
    low = chempi_datatype_muladd(1, min(reach, 0), low, over);
    high = chempi_datatype_muladd(1, max(inner, 0), high, over);
    high = chempi_datatype_muladd(1, max(reach, 0), high, over);
    merge(bounds, type, low, high,
          chempi_datatype_muladd(count, outer, 0, over));
}

void chempi_datatype_bounds_pad(struct chempi_datatype_bounds *bounds)
{
    MPI_Count rest;

    if (bounds->is_ub_set || bounds->is_empty || bounds->is_overflown)
        return;
    rest = difference(bounds->ub, bounds->lb, &bounds->is_overflown) %
           bounds->align;
    if (rest > 0)
        bounds->ub = chempi_datatype_muladd(1, bounds->align - rest, bounds->ub,
                                            &bounds->is_overflown);
}

void chempi_datatype_bounds_resize(struct chempi_datatype_bounds *bounds,
                                   MPI_Count lb, MPI_Count extent)
{
    bounds->lb = lb;
    bounds->ub = chempi_datatype_muladd(1, lb, extent, &bounds->is_overflown);
    bounds->is_lb_set = true;
    bounds->is_ub_set = true;
}

/* A user's datatype and its recipe in one piece of memory. */
struct made {
    struct chempi_datatype type;
    struct chempi_datatype_recipe recipe;
    struct made *next; /* to be destroyed, once nobody has a reference */
};

/* Drop a reference; the last one puts the type on the list. */
static void drop(struct chempi_datatype *type, struct made **doomed)
{
    struct made *made;

    if (!type || type->is_predefined || !chempi_object_drop(&type->obj))
        return;
    made = CHEMPI_CONTAINER_OF(type, struct made, type);
    made->next = *doomed;
    *doomed = made;
}

static void destroy(struct made *made, struct made **doomed)
{
    struct chempi_datatype *type = &made->type;
    struct chempi_datatype_recipe *recipe = &made->recipe;

    chempi_attr_drop_all(&type->attrs);
    if (type->layout) {
        chempi_layout_release(type->layout->root);
        free((void *)(uintptr_t)type->layout);
    }
    for (MPI_Count i = 0; recipe->types && i < recipe->type_count; i++)
        drop(recipe->types[i], doomed);
    free(recipe->values);
    free(recipe->types);
    type->obj.magic = 0;
    free(made);
}

/* Types may be nested more deeply than a stack has room for. */
void chempi_datatype_release(struct chempi_datatype *type)
{
    struct made *doomed = NULL;

    drop(type, &doomed);
    while (doomed) {
        struct made *made = doomed;

        doomed = made->next;
        destroy(made, &doomed);
    }
}

struct chempi_datatype *chempi_datatype_make(int combiner, bool is_wide,
                                             MPI_Count int_count,
                                             MPI_Count value_count,
                                             MPI_Count type_count)
{
    struct made *made = chempi_sys->malloc(sizeof(*made));
    struct chempi_datatype_recipe *recipe;

    if (made) {
        memset(made, 0, sizeof(*made));
        recipe = &made->recipe;
        chempi_object_init(&made->type.obj, CHEMPI_MAGIC_DATATYPE);
        made->type.handle = (MPI_Datatype)(void *)&made->type;
        made->type.recipe = recipe;
        recipe->combiner = combiner;
        recipe->is_wide = is_wide;
        recipe->int_count = int_count;
        recipe->value_count = value_count;
        recipe->type_count = type_count;
        recipe->values = chempi_sys->calloc((size_t)value_count + 1,
                                            sizeof(*recipe->values));
        recipe->types = chempi_sys->calloc((size_t)type_count + 1,
                                           sizeof(struct chempi_datatype *));
        if (recipe->values && recipe->types)
            return &made->type;
        chempi_datatype_release(&made->type);
    }
    (void)chempi_error_set(MPI_ERR_NO_MEM,
                           "no room for a datatype of %lld "
                           "numbers",
                           (long long)value_count);
    return NULL;
}

/* Holds what commit finds out of all types, which is read without it only where
 * the standard wants a committed type. Then another thread's commit is over;
 * asked for contents or copied may be while it goes on. */
static pthread_mutex_t committing = PTHREAD_MUTEX_INITIALIZER;

/* What constructor and commit have found out, but the identity. Holder of
 * committing. */
static void copy_facts(struct chempi_datatype *to,
                       const struct chempi_datatype *from)
{
    to->is_contiguous = from->is_contiguous;
    to->is_committed = from->is_committed;
    to->elem_kind = from->elem_kind;
    to->align = from->align;
    to->elements = from->elements;
    to->size = from->size;
    to->lb = from->lb;
    to->extent = from->extent;
    to->true_lb = from->true_lb;
    to->true_extent = from->true_extent;
    to->recipe->external_size = from->recipe->external_size;
    to->recipe->is_lb_set = from->recipe->is_lb_set;
    to->recipe->is_ub_set = from->recipe->is_ub_set;
}

void chempi_datatype_note_type(struct chempi_datatype *type, MPI_Count i,
                               struct chempi_datatype *old)
{
    struct chempi_datatype_recipe *recipe = type->recipe;

    chempi_datatype_hold(old);
    recipe->types[i] = old;
    if (!old->is_predefined && old->recipe->depth >= recipe->depth)
        recipe->depth = old->recipe->depth + 1;
}

/* The same of the layout, if there is one. Holder of committing. */
static bool copy_layout(struct chempi_datatype *to,
                        const struct chempi_datatype *from)
{
    struct chempi_layout *layout;

    if (!from->layout)
        return true;
    layout = chempi_sys->malloc(sizeof(*layout));
    if (!layout)
        return false;
    *layout = *from->layout;
    (void)chempi_layout_hold(layout->root);
    to->layout = layout;
    return true;
}

struct chempi_datatype *
chempi_datatype_copy_of(const struct chempi_datatype *from)
{
    const struct chempi_datatype_recipe *recipe = from->recipe;
    struct chempi_datatype *type = chempi_datatype_make(
        recipe->combiner, recipe->is_wide, recipe->int_count,
        recipe->value_count, recipe->type_count);
    bool is_good;

    if (!type)
        return NULL;
    memcpy(type->recipe->values, recipe->values,
           (size_t)recipe->value_count * sizeof(*recipe->values));
    for (MPI_Count i = 0; i < recipe->type_count; i++)
        chempi_datatype_note_type(type, i, recipe->types[i]);
    (void)pthread_mutex_lock(&committing);
    copy_facts(type, from);
    is_good = copy_layout(type, from);
    (void)pthread_mutex_unlock(&committing);
    if (is_good)
        return type;
    chempi_datatype_release(type);
    (void)chempi_error_set(MPI_ERR_NO_MEM, "no room for a datatype");
    return NULL;
}

int chempi_datatype_give(struct chempi_datatype *type,
                         const struct chempi_datatype_bounds *bounds,
                         MPI_Datatype *newtype)
{
    bool is_overflown = bounds->is_overflown;
    MPI_Count extent = difference(bounds->ub, bounds->lb, &is_overflown);
    MPI_Count true_extent =
        difference(bounds->true_ub, bounds->true_lb, &is_overflown);

    if (is_overflown) {
        chempi_datatype_release(type);
        return chempi_error_set(MPI_ERR_ARG, "the datatype would be larger "
                                             "than 2^63 bytes");
    }
    type->size = bounds->size;
    type->elements = bounds->elements;
    type->lb = bounds->lb;
    type->extent = extent;
    type->true_lb = bounds->true_lb;
    type->true_extent = true_extent;
    type->align = bounds->align;
    type->elem_kind = bounds->is_mixed ? 0 : bounds->elem_kind;
    type->recipe->external_size = bounds->external_size;
    type->recipe->is_lb_set = bounds->is_lb_set;
    type->recipe->is_ub_set = bounds->is_ub_set;
    *newtype = type->handle;
    return MPI_SUCCESS;
}

/* Holder of committing. */
static int commit_locked(struct chempi_datatype *type)
{
    const struct chempi_layout_node *root;
    struct chempi_layout *layout = NULL;

    if (type->is_committed)
        return MPI_SUCCESS;
    assert(!type->layout);
    root = chempi_datatype_compile_locked(type);
    type->is_contiguous =
        root && root->kind == CHEMPI_LAYOUT_BLOCK && type->size == type->extent;
    if (root && !type->is_contiguous)
        layout = chempi_sys->malloc(sizeof(*layout));
    if (layout) {
        *layout = (struct chempi_layout){
            .size = (uint64_t)type->size, .extent = type->extent, .root = root};
        type->layout = layout;
    } else {
        chempi_layout_release(root);
    }
    type->is_committed = type->is_contiguous || layout;
    if (type->is_committed)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for the layout of a "
                                            "datatype");
}

int chempi_datatype_commit(MPI_Datatype *datatype)
{
    struct chempi_datatype *type = chempi_datatype_lookup(*datatype);
    int rc;

    if (!type)
        return chempi_error_set(MPI_ERR_TYPE, "argument datatype names no "
                                              "datatype");
    (void)pthread_mutex_lock(&committing);
    rc = commit_locked(type);
    (void)pthread_mutex_unlock(&committing);
    return rc;
}

bool chempi_datatype_is_committed(const struct chempi_datatype *type)
{
    bool is_committed;

    (void)pthread_mutex_lock(&committing);
    is_committed = type->is_committed;
    (void)pthread_mutex_unlock(&committing);
    return is_committed;
}

int chempi_datatype_free(MPI_Datatype *datatype)
{
    struct chempi_datatype *type = chempi_datatype_lookup(*datatype);
    int rc;

    if (!type)
        return chempi_error_set(MPI_ERR_TYPE,
                                "argument datatype names no datatype; it "
                                "cannot be freed");
    if (type->is_predefined) /* a pair for a value and an index has no name */
        return chempi_error_set(
            MPI_ERR_TYPE, "%s cannot be freed",
            type->name[0] ? type->name : "what MPI_Type_get_value_index gives");
    rc = chempi_attr_delete_all(&type->obj);
    if (rc != MPI_SUCCESS)
        return rc;
    chempi_datatype_release(type);
    *datatype = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

bool chempi_datatype_find_apart(struct chempi_datatype *type, MPI_Count count)
{
    uint64_t known = atomic_load_explicit(&type->apart, memory_order_relaxed);

    if (!known) {
        known = chempi_layout_apart(type->layout);
        known += known < UINT64_MAX;
        atomic_store_explicit(&type->apart, known, memory_order_relaxed);
    }
    return count <= 0 || (uint64_t)count < known;
}

static void describe(struct chempi_object *object,
                     struct chempi_error_subject *out)
{
    struct chempi_datatype *type =
        CHEMPI_CONTAINER_OF(object, struct chempi_datatype, obj);

    *out = (struct chempi_error_subject){.attrs = &type->attrs,
                                         .handle = type->handle};
}

void chempi_datatype_prepare(void)
{
    chempi_error_set_subject(CHEMPI_MAGIC_DATATYPE, describe);
}
