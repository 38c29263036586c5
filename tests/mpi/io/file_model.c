/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files against a model: an array of bytes that every rank keeps. All ranks
 * draw the same plan from the seed: views that give each rank every n-th
 * block, writes by any call (blocking, non-blocking, split; explicit offset or
 * individual pointer; collective or not) from consecutive or scattered memory,
 * and reads of the same kinds through other views.
 *
 *   files SEED STEPS [HINT=VALUE ...] [watch=VARIABLE]
 */
#include "check.h"

#define MODEL_BYTES (1 << 21)
#define GAP 3 /* bytes between the pieces of scattered memory */

static unsigned char model[MODEL_BYTES];
static int64_t model_size; /* of the file */
static MPI_File file;
static MPI_Info hints = MPI_INFO_NULL;
static const char *watched; /* performance variable */

/* Rank r has blocks r, r + size, ... of `block` bytes from `start` on. */
struct plan {
    int64_t start;
    int64_t block;
    int64_t at; /* bytes into the view; per rank the same */
    int64_t len;
    int way;
    bool is_write;
    bool is_scattered; /* memory */
    int64_t piece;     /* of scattered memory, bytes */
    bool is_whole;     /* no holes: rank r has one long block */
    int idle;          /* rank that moves nothing; or none */
};

enum way {
    AT,
    POINTER,
    AT_ALL,
    ALL,
    I_AT,
    I_POINTER,
    I_AT_ALL,
    I_ALL,
    SPLIT_AT_ALL,
    SPLIT_ALL,
    WAYS
};

static int64_t draw(uint64_t *state, int64_t below)
{
    return (int64_t)(check_random(state) % (uint64_t)below);
}

static struct plan make_plan(uint64_t *state)
{
    static const int64_t blocks[] = {1, 4, 8, 12, 60, 64, 500, 4096, 10000};
    struct plan p = {0};

    p.block = blocks[draw(state, 9)];
    p.start = draw(state, 3) == 0 ? 0 : draw(state, 5000);
    p.len = draw(state, 4) == 0 ? draw(state, 200) : draw(state, 150000);
    p.at = draw(state, 2) == 0 ? 0 : draw(state, 30000);
    p.is_whole = draw(state, 5) == 0;
    if (p.is_whole)
        p.block = 120000 + draw(state, 1000);
    p.idle = (int)draw(state, check_size() + 3);
    p.way = (int)draw(state, WAYS);
    p.is_write = draw(state, 2) == 0;
    p.is_scattered = draw(state, 2) == 0;
    p.piece = 1 + draw(state, 3) * draw(state, 4000);
    return p;
}

static int64_t offset_of(const struct plan *p, int rank, int64_t position)
{
    return p->start + position / p->block * (p->block * check_size()) +
           rank * p->block + position % p->block;
}

/* Do all ranks' last bytes fit the model? */
static void fit(struct plan *p)
{
    while (p->len > 0 &&
           offset_of(p, check_size() - 1, p->at + p->len - 1) >= MODEL_BYTES) {
        p->len /= 2;
        p->at /= 2;
    }
}

static void set_view(const struct plan *p)
{
    MPI_Datatype blocks;
    MPI_Datatype tile;
    int rc;

    MPI_Type_contiguous((int)p->block, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, p->block * check_size(), &tile);
    MPI_Type_commit(&tile);
    rc = MPI_File_set_view(file, p->start + check_rank() * p->block, MPI_BYTE,
                           tile, "native", hints);
    CHECK(rc == MPI_SUCCESS, "set_view: %d", rc);
    MPI_Type_free(&blocks);
    MPI_Type_free(&tile);
}

/* The memory side: len bytes as pieces with gaps. */
static MPI_Datatype memory_type(const struct plan *p, int64_t *span)
{
    MPI_Datatype type;
    int64_t whole = p->len / p->piece;
    int64_t rest = p->len % p->piece;
    int lens[2] = {(int)p->piece, (int)rest};

    if (!p->is_scattered || p->len == 0) {
        *span = p->len;
        MPI_Type_contiguous((int)p->len, MPI_BYTE, &type);
    } else {
        MPI_Datatype parts[2];
        MPI_Aint places[2] = {0, whole * (p->piece + GAP)};

        MPI_Type_vector((int)whole, lens[0], lens[0] + GAP, MPI_BYTE,
                        &parts[0]);
        MPI_Type_contiguous(lens[1], MPI_BYTE, &parts[1]);
        lens[0] = lens[1] = 1;
        MPI_Type_create_struct(2, lens, places, parts, &type);
        MPI_Type_free(&parts[0]);
        MPI_Type_free(&parts[1]);
        *span = places[1] + rest;
    }
    MPI_Type_commit(&type);
    return type;
}

static int64_t memory_at(const struct plan *p, int64_t i)
{
    return p->is_scattered ? i / p->piece * (p->piece + GAP) + i % p->piece : i;
}

static int finish(int rc, MPI_Request *request, MPI_Status *status)
{
    return rc ? rc : MPI_Wait(request, status);
}

static int elements; /* of this rank, 0 or 1 */

static int write_it(const struct plan *p, const void *buf, MPI_Datatype type,
                    MPI_Status *status)
{
    MPI_Request request;

    switch ((enum way)p->way) {
    case AT:
        return MPI_File_write_at(file, p->at, buf, elements, type, status);
    case POINTER:
        return MPI_File_write(file, buf, elements, type, status);
    case AT_ALL:
        return MPI_File_write_at_all(file, p->at, buf, elements, type, status);
    case ALL:
        return MPI_File_write_all(file, buf, elements, type, status);
    case I_AT:
        return finish(
            MPI_File_iwrite_at(file, p->at, buf, elements, type, &request),
            &request, status);
    case I_POINTER:
        return finish(MPI_File_iwrite(file, buf, elements, type, &request),
                      &request, status);
    case I_AT_ALL:
        return finish(
            MPI_File_iwrite_at_all(file, p->at, buf, elements, type, &request),
            &request, status);
    case I_ALL:
        return finish(MPI_File_iwrite_all(file, buf, elements, type, &request),
                      &request, status);
    case SPLIT_AT_ALL:
        MPI_File_write_at_all_begin(file, p->at, buf, elements, type);
        return MPI_File_write_at_all_end(file, buf, status);
    default:
        MPI_File_write_all_begin(file, buf, elements, type);
        return MPI_File_write_all_end(file, buf, status);
    }
}

static int read_it(const struct plan *p, void *buf, MPI_Datatype type,
                   MPI_Status *status)
{
    MPI_Request request;

    switch ((enum way)p->way) {
    case AT:
        return MPI_File_read_at(file, p->at, buf, elements, type, status);
    case POINTER:
        return MPI_File_read(file, buf, elements, type, status);
    case AT_ALL:
        return MPI_File_read_at_all(file, p->at, buf, elements, type, status);
    case ALL:
        return MPI_File_read_all(file, buf, elements, type, status);
    case I_AT:
        return finish(
            MPI_File_iread_at(file, p->at, buf, elements, type, &request),
            &request, status);
    case I_POINTER:
        return finish(MPI_File_iread(file, buf, elements, type, &request),
                      &request, status);
    case I_AT_ALL:
        return finish(
            MPI_File_iread_at_all(file, p->at, buf, elements, type, &request),
            &request, status);
    case I_ALL:
        return finish(MPI_File_iread_all(file, buf, elements, type, &request),
                      &request, status);
    case SPLIT_AT_ALL:
        MPI_File_read_at_all_begin(file, p->at, buf, elements, type);
        return MPI_File_read_at_all_end(file, buf, status);
    default:
        MPI_File_read_all_begin(file, buf, elements, type);
        return MPI_File_read_all_end(file, buf, status);
    }
}

static unsigned char byte_of(int step, int rank, int64_t i)
{
    return (unsigned char)check_mix((uint64_t)step * 1000 + (uint64_t)rank,
                                    (uint64_t)i);
}

static void do_write(const struct plan *p, int step)
{
    int64_t span;
    MPI_Datatype type = memory_type(p, &span);
    unsigned char *buf = check_alloc((size_t)span + 1);
    MPI_Status status;
    MPI_Count got = -1;
    int rc;

    elements = check_rank() != p->idle;
    for (int64_t i = 0; i < p->len; i++)
        buf[memory_at(p, i)] = byte_of(step, check_rank(), i);
    rc = write_it(p, buf, type, &status);
    CHECK(rc == MPI_SUCCESS, "step %d, way %d: class %d", step, p->way,
          check_class(rc));
    MPI_Get_elements_x(&status, MPI_BYTE, &got);
    CHECK(got == p->len * elements, "step %d, way %d: %lld of %lld bytes", step,
          p->way, (long long)got, (long long)p->len);
    for (int r = 0; r < check_size(); r++)
        for (int64_t i = 0; i < p->len && r != p->idle; i++) {
            int64_t offset = offset_of(p, r, p->at + i);

            model[offset] = byte_of(step, r, i);
            if (offset >= model_size)
                model_size = offset + 1;
        }
    free(buf);
    MPI_Type_free(&type);
}

static void do_read(const struct plan *p, int step)
{
    int64_t span;
    MPI_Datatype type = memory_type(p, &span);
    unsigned char *buf = check_alloc((size_t)span + 1);
    MPI_Status status;
    MPI_Count got = -1;
    int64_t want = 0;
    int64_t wrong = -1;
    int rc;

    elements = check_rank() != p->idle;
    memset(buf, 0xa5, (size_t)span + 1);
    rc = read_it(p, buf, type, &status);
    CHECK(rc == MPI_SUCCESS, "step %d, way %d: class %d", step, p->way,
          check_class(rc));
    while (elements && want < p->len &&
           offset_of(p, check_rank(), p->at + want) < model_size)
        want++;
    MPI_Get_elements_x(&status, MPI_BYTE, &got);
    CHECK(got == want, "step %d, way %d: %lld bytes, not %lld", step, p->way,
          (long long)got, (long long)want);
    for (int64_t i = 0; i < p->len && wrong < 0; i++) {
        unsigned char good =
            i < want ? model[offset_of(p, check_rank(), p->at + i)] : 0xa5;

        if (buf[memory_at(p, i)] != good)
            wrong = i;
    }
    CHECK(wrong < 0, "step %d, way %d: byte %lld of %lld differs", step, p->way,
          (long long)wrong, (long long)p->len);
    free(buf);
    MPI_Type_free(&type);
}

static void do_step(struct plan *p, int step)
{
    MPI_Offset at = -1;

    fit(p);
    set_view(p);
    MPI_File_seek(file, p->at, MPI_SEEK_SET);
    if (p->is_write)
        do_write(p, step);
    else
        do_read(p, step);
    MPI_File_get_position(file, &at);
    if (p->is_write && (p->way == POINTER || p->way == ALL))
        CHECK(at == p->at + p->len * elements, "step %d: pointer at %lld", step,
              (long long)at);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

/* What is in the file, by means of the system alone. */
static void compare_whole(const char *path)
{
    FILE *in = fopen(path, "rb");
    unsigned char *whole = check_alloc(MODEL_BYTES);
    size_t n = in ? fread(whole, 1, MODEL_BYTES, in) : 0;

    CHECK((int64_t)n == model_size, "%zu bytes in the file, not %lld", n,
          (long long)model_size);
    CHECK(memcmp(whole, model, n) == 0, "the file differs from the model");
    if (in)
        fclose(in);
    free(whole);
}

static void take_hints(int argc, char **argv)
{
    MPI_Info_create(&hints);
    for (int i = 3; i < argc; i++) {
        char *equals = strchr(argv[i], '=');

        if (strncmp(argv[i], "watch=", 6) == 0) {
            watched = argv[i] + 6;
            continue;
        }
        *equals = '\0';
        MPI_Info_set(hints, argv[i], equals + 1);
        *equals = '=';
    }
}

int main(int argc, char **argv)
{
    char path[128];
    uint64_t state;
    int steps;
    int rc;

    check_start(&argc, &argv);
    state = (uint64_t)check_arg(argc, argv, 1, 1);
    steps = (int)check_arg(argc, argv, 2, 60);
    take_hints(argc, argv);
    snprintf(path, sizeof(path), "files-%d-%ld.tmp", check_size(),
             check_arg(argc, argv, 1, 1));
    rc = MPI_File_open(MPI_COMM_WORLD, path,
                       MPI_MODE_CREATE | MPI_MODE_RDWR |
                           MPI_MODE_DELETE_ON_CLOSE,
                       hints, &file);
    CHECK_OR_DIE(rc == MPI_SUCCESS, "open: class %d", check_class(rc));
    MPI_File_set_size(file, 0);
    if (watched)
        check_watch(watched);
    for (int i = 0; i < steps; i++) {
        struct plan p = make_plan(&state);

        do_step(&p, i);
    }
    if (watched)
        check_was_used();
    if (check_rank() == 0)
        compare_whole(path);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    MPI_Info_free(&hints);
    return check_finish();
}
