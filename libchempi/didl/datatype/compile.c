/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a recipe to a layout, once per commit. Layouts of types that are
 * committed already are shared. The types below one that are not are compiled
 * first, each once, however often and however deep it lies there; the list of
 * those that wait and the layouts of those that are done are in their recipes
 * for the time being, so only one thread at a time may do this.
 */
#include <stdlib.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/didl/datatype/recipe.h"

#define MULADD chempi_datatype_muladd

typedef const struct chempi_layout_node node_t;

static bool has_layout(const struct chempi_datatype *type)
{
    return type->layout || type->is_contiguous;
}

/* The layout of a type that has one or has been done; NULL when out of
 * memory. Where nobody else can ask again it is given away: what nobody shares
 * need not be copied to be changed. */
static node_t *layout_of(struct chempi_datatype *type)
{
    struct chempi_datatype_recipe *recipe = type->recipe;
    node_t *node;

    if (type->layout)
        return chempi_layout_hold(type->layout->root);
    if (type->is_contiguous)
        return chempi_layout_block(type->true_lb, (uint64_t)type->size);
    node = recipe->node;
    if (atomic_load_explicit(&type->obj.refs, memory_order_relaxed) > 1)
        return chempi_layout_hold(node);
    recipe->node = NULL;
    return node;
}

/* count copies of old, as consecutive elements. */
static node_t *elements(node_t *node, MPI_Count count, MPI_Count extent)
{
    return chempi_layout_repeat(node, (uint64_t)count, extent);
}

static node_t *compile_vector(const MPI_Count *v, MPI_Count unit,
                              struct chempi_datatype *old)
{
    bool is_overflown = false;
    MPI_Count stride = MULADD(v[2], unit, 0, &is_overflown);
    node_t *node = elements(layout_of(old), v[1], old->extent);

    if (is_overflown) {
        chempi_layout_release(node);
        return NULL;
    }
    return chempi_layout_repeat(node, (uint64_t)v[0], stride);
}

/* Block lengths and displacements of the indexed family, in bytes. */
struct pieces {
    MPI_Count count;
    const MPI_Count *lengths; /* elements; NULL: all `length` */
    MPI_Count length;
    const MPI_Count *displs;
    MPI_Count unit; /* bytes per unit of displacement */
};

static MPI_Count length_of(const struct pieces *p, MPI_Count i)
{
    return p->lengths ? p->lengths[i] : p->length;
}

static bool is_even(const struct pieces *p)
{
    for (MPI_Count i = 1; p->lengths && i < p->count; i++)
        if (p->lengths[i] != p->lengths[0])
            return false;
    return p->count > 0;
}

/* Plain blocks, when elements of the old type are consecutive bytes. */
static node_t *compile_blocks(const struct pieces *p, const int64_t *offsets,
                              node_t *old)
{
    uint64_t *lens = chempi_sys->malloc(((size_t)p->count + 1) * sizeof(*lens));
    node_t *node = NULL;
    bool is_overflown = false;

    if (lens) {
        for (MPI_Count i = 0; i < p->count; i++)
            lens[i] = (uint64_t)MULADD(length_of(p, i), (MPI_Count)old->size, 0,
                                       &is_overflown);
        if (!is_overflown)
            node = chempi_layout_shift(
                chempi_layout_blocks((uint64_t)p->count, offsets, lens),
                old->offset);
    }
    free(lens);
    chempi_layout_release(old);
    return node;
}

/* Different numbers of elements of any old type. */
static node_t *compile_mixed(const struct pieces *p, const int64_t *offsets,
                             node_t *old, MPI_Count extent)
{
    size_t n = (size_t)p->count;
    node_t **children = chempi_sys->calloc(n + 1, sizeof(node_t *));
    node_t *node = NULL;

    if (children) {
        for (MPI_Count i = 0; i < p->count; i++)
            children[i] = i > 0 && children[i - 1] &&
                                  length_of(p, i) == length_of(p, i - 1)
                              ? chempi_layout_hold(children[i - 1])
                              : elements(chempi_layout_hold(old),
                                         length_of(p, i), extent);
        node = chempi_layout_join(n, offsets, children);
    }
    free((void *)children);
    chempi_layout_release(old);
    return node;
}

static node_t *compile_pieces(const struct pieces *p,
                              struct chempi_datatype *old)
{
    size_t n = (size_t)p->count;
    int64_t *offsets = chempi_sys->malloc((n + 1) * sizeof(*offsets));
    node_t *node = layout_of(old);
    bool is_overflown = false;

    if (offsets && node) {
        for (size_t i = 0; i < n; i++)
            offsets[i] = MULADD(p->displs[i], p->unit, 0, &is_overflown);
        if (is_overflown) {
            chempi_layout_release(node);
            node = NULL;
        } else if (node->kind == CHEMPI_LAYOUT_BLOCK &&
                   (MPI_Count)node->size == old->extent) {
            node = compile_blocks(p, offsets, node);
        } else if (is_even(p)) {
            node = chempi_layout_indexed(
                elements(node, length_of(p, 0), old->extent), n, offsets);
        } else {
            node = compile_mixed(p, offsets, node, old->extent);
        }
    } else {
        chempi_layout_release(node);
        node = NULL;
    }
    free(offsets);
    return node;
}

static node_t *compile_struct(const struct chempi_datatype_recipe *recipe)
{
    size_t n = (size_t)recipe->type_count;
    const MPI_Count *lengths = recipe->values + 1;
    node_t **children = chempi_sys->calloc(n + 1, sizeof(node_t *));
    node_t *node = NULL;

    if (!children)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        struct chempi_datatype *old = recipe->types[i];

        if (i > 0 && old == recipe->types[i - 1] &&
            lengths[i] == lengths[i - 1] && children[i - 1])
            children[i] = chempi_layout_hold(children[i - 1]);
        else
            children[i] = elements(layout_of(old), lengths[i], old->extent);
    }
    node = chempi_layout_join(n, lengths + n, children);
    free((void *)children);
    return node;
}

static node_t *compile_subarray(const MPI_Count *v, struct chempi_datatype *old)
{
    MPI_Count ndims = v[0];
    const MPI_Count *sizes = v + 1;
    const MPI_Count *subsizes = sizes + ndims;
    const MPI_Count *starts = subsizes + ndims;
    MPI_Count order = starts[ndims];
    MPI_Count stride = old->extent;
    node_t *node = layout_of(old);

    /* The bounds were computed when the type was made: nothing overflows. */
    for (MPI_Count i = 0; i < ndims; i++) {
        MPI_Count d = chempi_datatype_fastest(ndims, order, i);

        node = chempi_layout_shift(
            chempi_layout_repeat(node, (uint64_t)subsizes[d], stride),
            starts[d] * stride);
        stride *= sizes[d];
    }
    return node;
}

/* One dimension's share of the elements that `node` describes. */
static node_t *compile_share(node_t *node,
                             const struct chempi_datatype_share *share,
                             MPI_Count stride)
{
    node_t *parts[2];
    int64_t offsets[2] = {share->start * stride, share->rest_start * stride};

    if (!node)
        return NULL;
    parts[0] = chempi_layout_repeat(
        chempi_layout_repeat(chempi_layout_hold(node), (uint64_t)share->block,
                             stride),
        (uint64_t)share->count, share->stride * stride);
    parts[1] = chempi_layout_repeat(node, (uint64_t)share->rest, stride);
    return chempi_layout_join(2, offsets, parts);
}

static node_t *compile_darray(const MPI_Count *v, struct chempi_datatype *old)
{
    MPI_Count ndims = v[2];
    const MPI_Count *gsizes = v + 3;
    const MPI_Count *distribs = gsizes + ndims;
    const MPI_Count *dargs = distribs + ndims;
    const MPI_Count *psizes = dargs + ndims;
    MPI_Count order = psizes[ndims];
    MPI_Count stride = old->extent;
    node_t *node = layout_of(old);

    for (MPI_Count i = 0; i < ndims; i++) {
        MPI_Count d = chempi_datatype_fastest(ndims, order, i);
        MPI_Count coord = v[1];
        struct chempi_datatype_share share;

        for (MPI_Count k = ndims - 1; k > d; k--)
            coord /= psizes[k];
        chempi_datatype_share_of(gsizes[d], (int)distribs[d], dargs[d],
                                 psizes[d], coord % psizes[d], &share);
        node = compile_share(node, &share, stride);
        stride *= gsizes[d];
    }
    return node;
}

static node_t *
compile_indexed_family(const struct chempi_datatype_recipe *recipe)
{
    const MPI_Count *v = recipe->values;
    struct chempi_datatype *old = recipe->types[0];
    bool is_block = recipe->combiner == MPI_COMBINER_INDEXED_BLOCK ||
                    recipe->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    bool is_bytes = recipe->combiner == MPI_COMBINER_HINDEXED ||
                    recipe->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    struct pieces pieces = {.count = v[0],
                            .lengths = is_block ? NULL : v + 1,
                            .length = is_block ? v[1] : 0,
                            .displs = is_block ? v + 2 : v + 1 + v[0],
                            .unit = is_bytes ? 1 : old->extent};

    return compile_pieces(&pieces, old);
}

/* The types that it is made of have layouts, or are done. */
static node_t *compile(const struct chempi_datatype *type)
{
    const struct chempi_datatype_recipe *recipe = type->recipe;
    struct chempi_datatype *old =
        recipe->type_count > 0 ? recipe->types[0] : NULL;

    switch (recipe->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        return elements(layout_of(old), recipe->values[0], old->extent);
    case MPI_COMBINER_VECTOR:
        return compile_vector(recipe->values, old->extent, old);
    case MPI_COMBINER_HVECTOR:
        return compile_vector(recipe->values, 1, old);
    case MPI_COMBINER_STRUCT:
        return compile_struct(recipe);
    case MPI_COMBINER_SUBARRAY:
        return compile_subarray(recipe->values, old);
    case MPI_COMBINER_DARRAY:
        return compile_darray(recipe->values, old);
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return layout_of(old);
    default:
        return compile_indexed_family(recipe);
    }
}

static void push(struct chempi_datatype **list, struct chempi_datatype *type)
{
    type->recipe->next = *list;
    *list = type;
}

static struct chempi_datatype *pop(struct chempi_datatype **list)
{
    struct chempi_datatype *type = *list;

    *list = type->recipe->next;
    return type;
}

/* The next type below that has to be done before this one, or NULL. */
static struct chempi_datatype *next_below(struct chempi_datatype_recipe *recipe)
{
    while (recipe->at < recipe->type_count) {
        struct chempi_datatype *old = recipe->types[recipe->at++];

        if (!has_layout(old) && !old->recipe->node)
            return old;
    }
    return NULL;
}

const struct chempi_layout_node *
chempi_datatype_compile_locked(struct chempi_datatype *type)
{
    struct chempi_datatype *waiting = NULL; /* each below the one after it */
    struct chempi_datatype *done = NULL;
    bool is_good = true;
    node_t *node;

    type->recipe->at = 0;
    push(&waiting, type);
    while (waiting && is_good) {
        struct chempi_datatype_recipe *recipe = waiting->recipe;
        struct chempi_datatype *below = next_below(recipe);

        if (below) {
            below->recipe->at = 0;
            push(&waiting, below);
            continue;
        }
        recipe->node = compile(waiting);
        is_good = recipe->node != NULL;
        if (is_good)
            CHEMPI_CHECK(chempi_layout_check(recipe->node));
        push(&done, pop(&waiting));
    }
    node = type->recipe->node;
    type->recipe->node = NULL;
    while (done) {
        struct chempi_datatype_recipe *recipe = pop(&done)->recipe;

        chempi_layout_release(recipe->node);
        recipe->node = NULL;
    }
    return node;
}
