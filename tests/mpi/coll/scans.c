/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scan and exscan, blocking, non-blocking and persistent, in place and not,
 * with an operation that commutes and with some that do not, on elements with
 * and without gaps; on the world, on a reversed copy of it and on a half.
 */
#include "check.h"

static const int counts[] = {0, 1, 2, 60, 3000, 40000, 70000};
#define COUNTS ((int)(sizeof(counts) / sizeof(counts[0])))
#define GAP 0xA5A5A5A5u

/* With a gap behind it that nobody may touch. */
struct wide {
    struct check_affine map;
    unsigned gap;
};

enum form { BLOCKING, STARTED, PREPARED, FORMS };
static const char *const form_names[FORMS] = {"", "i", "persistent "};

static struct {
    MPI_Comm comm;
    int rank;
    int size;
    MPI_Datatype map;
    MPI_Datatype wide;
    MPI_Op compose_map;
    MPI_Op compose_wide;
} on;

static struct check_affine compose(struct check_affine first,
                                   struct check_affine second)
{
    return (struct check_affine){.a = first.a * second.a,
                                 .b = first.b * second.a + second.b};
}

static void compose_wides(void *in, void *inout, int *count, MPI_Datatype *type)
{
    struct wide *first = in;
    struct wide *second = inout;

    (void)type;
    for (int i = 0; i < *count; i++)
        second[i].map = compose(first[i].map, second[i].map);
}

static struct check_affine map_of(int r, int i)
{
    uint64_t mixed = check_mix((uint64_t)r + 1, (uint64_t)i);

    return (struct check_affine){.a = (unsigned)mixed | 1,
                                 .b = (unsigned)(mixed >> 32)};
}

static uint64_t number_of(int r, int i)
{
    return check_mix((uint64_t)r + 77, (uint64_t)i);
}

static void call(enum form form, bool is_ex, const void *in, void *out, int n,
                 MPI_Datatype type, MPI_Op op)
{
    MPI_Request req = MPI_REQUEST_NULL;

    if (form == BLOCKING && is_ex)
        MPI_Exscan(in, out, n, type, op, on.comm);
    else if (form == BLOCKING)
        MPI_Scan(in, out, n, type, op, on.comm);
    else if (form == STARTED && is_ex)
        MPI_Iexscan(in, out, n, type, op, on.comm, &req);
    else if (form == STARTED)
        MPI_Iscan(in, out, n, type, op, on.comm, &req);
    else if (is_ex)
        MPI_Exscan_init(in, out, n, type, op, on.comm, MPI_INFO_NULL, &req);
    else
        MPI_Scan_init(in, out, n, type, op, on.comm, MPI_INFO_NULL, &req);
    if (form == PREPARED)
        MPI_Start(&req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    if (form == PREPARED)
        MPI_Request_free(&req);
}

/* How many operands the result of this rank has. */
static int operands(bool is_ex)
{
    return is_ex ? on.rank : on.rank + 1;
}

static void tell(bool is_right, const char *what, enum form form, bool is_ex,
                 bool is_in_place, int n)
{
    CHECK(is_right, "%s%s of %d %s%s on %d ranks", form_names[form],
          is_ex ? "exscan" : "scan", n, what, is_in_place ? ", in place" : "",
          on.size);
}

static void numbers(enum form form, bool is_ex, bool is_in_place, int n)
{
    uint64_t *in = check_alloc(sizeof(*in) * (size_t)n);
    uint64_t *out = check_alloc(sizeof(*out) * (size_t)n);
    bool is_right = true;

    for (int i = 0; i < n; i++)
        in[i] = out[i] = number_of(on.rank, i);
    call(form, is_ex, is_in_place ? MPI_IN_PLACE : in, out, n, MPI_UINT64_T,
         MPI_SUM);
    for (int i = 0; operands(is_ex) > 0 && i < n; i++) {
        uint64_t want = 0;

        for (int r = 0; r < operands(is_ex); r++)
            want += number_of(r, i);
        is_right = is_right && out[i] == want && in[i] == number_of(on.rank, i);
    }
    tell(is_right, "numbers", form, is_ex, is_in_place, n);
    free(out);
    free(in);
}

static struct check_affine wanted_map(int many, int i)
{
    struct check_affine want = map_of(0, i);

    for (int r = 1; r < many; r++)
        want = compose(want, map_of(r, i));
    return want;
}

static void maps(enum form form, bool is_ex, bool is_in_place, int n)
{
    struct check_affine *in = check_alloc(sizeof(*in) * (size_t)n);
    struct check_affine *out = check_alloc(sizeof(*out) * (size_t)n);
    bool is_right = true;

    for (int i = 0; i < n; i++)
        in[i] = out[i] = map_of(on.rank, i);
    call(form, is_ex, is_in_place ? MPI_IN_PLACE : in, out, n, on.map,
         on.compose_map);
    for (int i = 0; operands(is_ex) > 0 && i < n; i++) {
        struct check_affine want = wanted_map(operands(is_ex), i);

        is_right = is_right && memcmp(&out[i], &want, sizeof(want)) == 0;
    }
    tell(is_right, "maps", form, is_ex, is_in_place, n);
    free(out);
    free(in);
}

static void wides(enum form form, bool is_ex, bool is_in_place, int n)
{
    struct wide *in = check_alloc(sizeof(*in) * (size_t)n);
    struct wide *out = check_alloc(sizeof(*out) * (size_t)n);
    bool is_right = true;

    for (int i = 0; i < n; i++)
        in[i] = out[i] = (struct wide){map_of(on.rank, i), GAP};
    call(form, is_ex, is_in_place ? MPI_IN_PLACE : in, out, n, on.wide,
         on.compose_wide);
    for (int i = 0; operands(is_ex) > 0 && i < n; i++) {
        struct check_affine want = wanted_map(operands(is_ex), i);

        is_right = is_right && out[i].gap == GAP &&
                   memcmp(&out[i].map, &want, sizeof(want)) == 0;
    }
    tell(is_right, "maps with gaps", form, is_ex, is_in_place, n);
    free(out);
    free(in);
}

/* Many in a row: ranks run ahead of each other. */
static void many(bool is_ex)
{
    int wrong = 0;

    for (int i = 0; i < 100; i++) {
        struct check_affine mine = map_of(on.rank, i);
        struct check_affine found = mine;
        struct check_affine want;

        call(BLOCKING, is_ex, &mine, &found, 1, on.map, on.compose_map);
        if (operands(is_ex) == 0)
            continue;
        want = wanted_map(operands(is_ex), i);
        wrong += memcmp(&found, &want, sizeof(want)) != 0;
    }
    CHECK(wrong == 0, "%d of 100 %s in a row are wrong", wrong,
          is_ex ? "exscans" : "scans");
}

static void on_comm(MPI_Comm comm, int most)
{
    on.comm = comm;
    MPI_Comm_rank(comm, &on.rank);
    MPI_Comm_size(comm, &on.size);
    for (int k = 0; k < COUNTS && counts[k] <= most; k++)
        for (int way = 0; way < 4 * FORMS; way++) {
            enum form form = (enum form)(way / 4);
            bool is_ex = way % 2 != 0;
            bool is_in_place = way / 2 % 2 != 0;

            numbers(form, is_ex, is_in_place, counts[k]);
            maps(form, is_ex, is_in_place, counts[k]);
            wides(form, is_ex, is_in_place, counts[k]);
        }
    many(false);
    many(true);
}

static void make_types(void)
{
    MPI_Datatype pair;

    MPI_Type_contiguous(2, MPI_UNSIGNED, &on.map);
    MPI_Type_commit(&on.map);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(struct wide), &on.wide);
    MPI_Type_commit(&on.wide);
    MPI_Type_free(&pair);
    MPI_Op_create(check_compose, 0, &on.compose_map);
    MPI_Op_create(compose_wides, 0, &on.compose_wide);
}

static void free_types(void)
{
    MPI_Op_free(&on.compose_wide);
    MPI_Op_free(&on.compose_map);
    MPI_Type_free(&on.wide);
    MPI_Type_free(&on.map);
}

/* usage: scans [most elements, on the world] */
int main(int argc, char **argv)
{
    int most = (int)check_arg(argc, argv, 1, counts[COUNTS - 1]);
    MPI_Comm comm;

    check_start(&argc, &argv);
    make_types();
    on_comm(MPI_COMM_WORLD, most);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank(), &comm);
    on_comm(comm, 3000);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank() % 2, 0, &comm);
    on_comm(comm, 3000);
    MPI_Comm_free(&comm);
    free_types();
    return check_finish();
}
