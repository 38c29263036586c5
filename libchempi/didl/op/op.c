/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction operations: the predefined ones, those of users, and how either is
 * applied to any count of elements (MPI 5.0, section 6.9).
 */
#include "libchempi/didl/op/op.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/op/op_loops.h"

#define PREDEFINED(index, name)                                                \
    [CHEMPI_OP_##index] = {                                                    \
        .obj = {.magic = CHEMPI_MAGIC_OP, .refs = 1},                          \
        .is_commutative = true,                                                \
        .is_predefined = true,                                                 \
        .handle = name,                                                        \
    }

struct chempi_op chempi_op_predefined[CHEMPI_OP_COUNT] = {
    PREDEFINED(SUM, MPI_SUM),         PREDEFINED(MIN, MPI_MIN),
    PREDEFINED(MAX, MPI_MAX),         PREDEFINED(PROD, MPI_PROD),
    PREDEFINED(BAND, MPI_BAND),       PREDEFINED(BOR, MPI_BOR),
    PREDEFINED(BXOR, MPI_BXOR),       PREDEFINED(LAND, MPI_LAND),
    PREDEFINED(LOR, MPI_LOR),         PREDEFINED(LXOR, MPI_LXOR),
    PREDEFINED(MINLOC, MPI_MINLOC),   PREDEFINED(MAXLOC, MPI_MAXLOC),
    PREDEFINED(REPLACE, MPI_REPLACE), PREDEFINED(NO_OP, MPI_NO_OP),
};

static const char *const op_names[CHEMPI_OP_COUNT] = {
    [CHEMPI_OP_SUM] = "MPI_SUM",         [CHEMPI_OP_MIN] = "MPI_MIN",
    [CHEMPI_OP_MAX] = "MPI_MAX",         [CHEMPI_OP_PROD] = "MPI_PROD",
    [CHEMPI_OP_BAND] = "MPI_BAND",       [CHEMPI_OP_BOR] = "MPI_BOR",
    [CHEMPI_OP_BXOR] = "MPI_BXOR",       [CHEMPI_OP_LAND] = "MPI_LAND",
    [CHEMPI_OP_LOR] = "MPI_LOR",         [CHEMPI_OP_LXOR] = "MPI_LXOR",
    [CHEMPI_OP_MINLOC] = "MPI_MINLOC",   [CHEMPI_OP_MAXLOC] = "MPI_MAXLOC",
    [CHEMPI_OP_REPLACE] = "MPI_REPLACE", [CHEMPI_OP_NO_OP] = "MPI_NO_OP",
};

static size_t predefined_index(const struct chempi_op *op)
{
    return (size_t)(op - chempi_op_predefined);
}

static chempi_op_loop *find_loop(const struct chempi_op *op,
                                 const struct chempi_datatype *type)
{
    return chempi_op_fast_loops()[predefined_index(op)][type->elem_kind];
}

/* Does it lie in memory as a predefined type of its kind does, of which it is
 * a copy perhaps? Loops know no other. */
static bool is_like_predefined(const struct chempi_datatype *type)
{
    const struct chempi_basic_type_info *basic =
        &chempi_basic_type_table[type->elem_kind];

    return type->extent == basic->extent && type->size == basic->size &&
           type->true_lb == 0;
}

int chempi_op_check(struct chempi_op *op, struct chempi_datatype *type)
{
    if (!op)
        return chempi_error_set(MPI_ERR_OP, "the operation is not valid");
    if (!op->is_predefined)
        return MPI_SUCCESS;
    if (CHEMPI_LIKELY(find_loop(op, type) &&
                      (type->is_predefined || is_like_predefined(type))))
        return MPI_SUCCESS;
    if (op->handle == MPI_REPLACE || op->handle == MPI_NO_OP)
        return chempi_error_set(MPI_ERR_OP,
                                "%s is for one-sided communication only",
                                op_names[predefined_index(op)]);
    return chempi_error_set(
        MPI_ERR_OP, "%s is not defined on %s", op_names[predefined_index(op)],
        type->name[0] ? type->name : "this derived datatype");
}

/* A user's function of the int form takes at most INT_MAX elements. */
static void apply_narrow(struct chempi_op *op, const char *in, char *inout,
                         MPI_Count count, struct chempi_datatype *type)
{
    while (count > 0) {
        MPI_Datatype handle = type->handle;
        int n = count > INT_MAX ? INT_MAX : (int)count;

        /* The standard's prototype has no const; users must not write. */
        op->fn((void *)(uintptr_t)in, inout, &n, &handle);
        n = count > INT_MAX ? INT_MAX : (int)count;
        in += n * type->extent;
        inout += n * type->extent;
        count -= n;
    }
}

static void replace(const void *in, void *inout, MPI_Count count,
                    struct chempi_datatype *type)
{
    if (type->is_contiguous)
        memcpy((char *)inout + type->true_lb, (const char *)in + type->true_lb,
               (size_t)(count * type->size));
    else
        (void)chempi_datatype_copy(in, count, type, inout, count, type);
}

void chempi_op_apply(struct chempi_op *op, const void *in, void *inout,
                     MPI_Count count, struct chempi_datatype *type)
{
    chempi_op_loop *loop;

    if (count <= 0)
        return;
    if (CHEMPI_LIKELY(op->is_predefined)) {
        loop = find_loop(op, type);
        if (CHEMPI_LIKELY(loop))
            loop(in, inout, (size_t)count);
        else if (op->handle == MPI_REPLACE)
            replace(in, inout, count, type);
        return;
    }
    if (op->is_wide) {
        MPI_Datatype handle = type->handle;

        op->fn_c((void *)(uintptr_t)in, inout, &count, &handle);
        return;
    }
    apply_narrow(op, in, inout, count, type);
}

int chempi_op_create(void (*fn)(void), int commute, MPI_Op *out, bool is_wide)
{
    struct chempi_op *op;

    if (!fn)
        return chempi_error_set(MPI_ERR_ARG, "the user function is null");
    if (!out)
        return chempi_error_set(MPI_ERR_ARG, "the place for the handle is "
                                             "null");
    op = chempi_sys->calloc(1, sizeof(*op));
    if (!op)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for an operation");
    chempi_object_init(&op->obj, CHEMPI_MAGIC_OP);
    op->is_commutative = commute != 0;
    op->is_wide = is_wide;
    if (is_wide)
        op->fn_c = (MPI_User_function_c *)fn;
    else
        op->fn = (MPI_User_function *)fn;
    op->handle = (MPI_Op)(void *)op;
    *out = op->handle;
    return MPI_SUCCESS;
}

void chempi_op_release(struct chempi_op *op)
{
    if (!op || op->is_predefined || !chempi_object_drop(&op->obj))
        return;
    op->obj.magic = 0;
    free(op);
}

int chempi_op_free(MPI_Op *handle)
{
    struct chempi_op *op = handle ? chempi_op_lookup(*handle) : NULL;

    if (!op || op->is_predefined)
        return chempi_error_set(MPI_ERR_OP, "the operation is %s",
                                op ? "predefined" : "not valid");
    *handle = MPI_OP_NULL;
    chempi_op_release(op);
    return MPI_SUCCESS;
}

int chempi_op_commutative(struct chempi_op *op, int *commute)
{
    *commute = op->is_commutative;
    return MPI_SUCCESS;
}

int chempi_op_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count,
                           struct chempi_datatype *type, struct chempi_op *op)
{
    int rc = chempi_op_check(op, type);

    if (rc)
        return rc;
    if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE)
        return chempi_error_set(MPI_ERR_BUFFER, "MPI_IN_PLACE has no meaning "
                                                "for a local reduction");
    if (inbuf == inoutbuf && inbuf && count > 0 && type->size > 0)
        return chempi_error_set(MPI_ERR_BUFFER, "both buffers are the same");
    chempi_op_apply(op, inbuf, inoutbuf, count, type);
    return MPI_SUCCESS;
}
