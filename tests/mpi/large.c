/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts above 2^31 with little memory: the first 2 GiB of each buffer are one
 * window of memory, mapped again and again; what lies behind has memory of its
 * own, so that it shows whether it arrived.
 *
 * usage: large types | messages | collectives
 */
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

#define TAG 3
#define WINDOW ((size_t)64 << 20)
#define HEAD ((size_t)1 << 31)
#define TAIL (((size_t)1 << 20) + 13)
#define LEN (HEAD + TAIL)
#define STEP 61 /* bytes between two looks; prime to the pattern's lines */
#define ALLREDUCE_BYTES ((size_t)7 << 30) /* with temporary buffers */

/* ---- memory ---- */

static void need_bytes(size_t bytes)
{
    int enough = check_available_bytes() > bytes;

    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!enough)
        check_skip("not enough free memory");
}

static unsigned char *map(void)
{
    int fd = memfd_create("large", MFD_CLOEXEC);
    unsigned char *data = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK_OR_DIE(fd >= 0 && ftruncate(fd, (off_t)WINDOW) == 0 &&
                     data != MAP_FAILED,
                 "no memory to map");
    for (size_t at = 0; at < HEAD; at += WINDOW)
        CHECK_OR_DIE(mmap(data + at, WINDOW, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED,
                     "no window at %zu", at);
    close(fd);
    return data;
}

/* The tail differs from what the head would hold at its place. */
static unsigned char byte_at(size_t at, int seed)
{
    if (at >= HEAD)
        return (unsigned char)((at * 13 + (size_t)seed + 77) & 0x7f);
    at %= WINDOW;
    return (unsigned char)((at * 31 + (at >> 12) + (size_t)seed) & 0x7f);
}

static void fill(unsigned char *data, int seed)
{
    for (size_t at = 0; at < WINDOW; at++)
        data[at] = byte_at(at, seed);
    for (size_t at = HEAD; at < LEN; at++)
        data[at] = byte_at(at, seed);
}

static void clear(unsigned char *data)
{
    memset(data, 0, WINDOW);
    memset(data + HEAD, 0, TAIL);
}

static void check_data(const unsigned char *data, int seed, const char *what)
{
    size_t wrong = 0;

    for (size_t at = 0; at < WINDOW; at += STEP)
        wrong += data[at] != byte_at(at, seed);
    for (size_t at = HEAD; at < LEN; at++)
        wrong += data[at] != byte_at(at, seed);
    CHECK(wrong == 0, "%s: %zu bytes are wrong", what, wrong);
}

/* ---- types: no data is moved ---- */

static void check_sizes(MPI_Datatype type, MPI_Count size, MPI_Count extent,
                        const char *what)
{
    MPI_Count got = -1;
    MPI_Count lb = -1;
    MPI_Count x = -1;
    int small = -1;

    MPI_Type_size_c(type, &got);
    CHECK(got == size, "%s: size %lld", what, (long long)got);
    MPI_Type_size_x(type, &got);
    CHECK(got == size, "%s: size_x %lld", what, (long long)got);
    MPI_Type_size(type, &small);
    CHECK(small == MPI_UNDEFINED, "%s: size %d as an int", what, small);
    MPI_Type_get_extent_c(type, &lb, &x);
    CHECK(lb == 0 && x == extent, "%s: extent %lld", what, (long long)x);
    MPI_Type_get_true_extent_x(type, &lb, &x);
    CHECK(lb == 0 && x == extent, "%s: true extent %lld", what, (long long)x);
}

static void check_status(MPI_Datatype type, MPI_Count elements)
{
    MPI_Status status;
    MPI_Count got = -1;
    int small = -1;

    memset(&status, 0, sizeof(status));
    MPI_Status_set_elements_c(&status, type, elements);
    MPI_Get_elements_c(&status, type, &got);
    CHECK(got == elements, "%lld elements", (long long)got);
    MPI_Get_elements(&status, type, &small);
    CHECK(small == MPI_UNDEFINED, "%d elements as an int", small);
    MPI_Get_count_c(&status, type, &got);
    CHECK(got == 1, "%lld of the type", (long long)got);
    MPI_Get_count(&status, MPI_BYTE, &small);
    CHECK(small == MPI_UNDEFINED, "%d bytes as an int", small);
}

static void check_pack_size(MPI_Datatype type, MPI_Count size)
{
    MPI_Count got = -1;
    int small = -1;

    MPI_Pack_size_c(3, type, MPI_COMM_SELF, &got);
    CHECK(got == 3 * size, "packed size %lld", (long long)got);
    MPI_Pack_external_size_c("external32", 3, type, &got);
    CHECK(got == 3 * size, "external size %lld", (long long)got);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Pack_size(3, type, MPI_COMM_SELF, &small) != MPI_SUCCESS ||
              small == MPI_UNDEFINED,
          "packed size %d as an int", small);
}

/* The whole list shrunk to what it says: one short element at its end. */
static void check_far_element(void)
{
    const MPI_Count lens[2] = {1, 2};
    const MPI_Count places[2] = {0, ((MPI_Count)5 << 30) + 3};
    MPI_Count numbers[4];
    MPI_Count counts[8];
    MPI_Datatype type;
    MPI_Datatype inner;
    MPI_Count lb;
    MPI_Count x;
    int combiner = -1;

    MPI_Type_indexed_c(2, lens, places, MPI_INT, &type);
    MPI_Type_get_true_extent_c(type, &lb, &x);
    CHECK(lb == 0 && x == (places[1] + 2) * 4, "far block at %lld",
          (long long)x);
    MPI_Type_get_envelope_c(type, &numbers[0], &numbers[1], &numbers[2],
                            &numbers[3], &combiner);
    CHECK(combiner == MPI_COMBINER_INDEXED && numbers[2] == 5,
          "%lld large counts", (long long)numbers[2]);
    MPI_Type_get_contents_c(type, 0, 0, 5, 1, &(int){0}, &(MPI_Aint){0}, counts,
                            &inner);
    CHECK(counts[4] == places[1] && inner == MPI_INT, "place %lld",
          (long long)counts[4]);
    MPI_Type_free(&type);
}

static void types(void)
{
    const MPI_Count many = ((MPI_Count)1 << 33) + 5;
    MPI_Datatype bytes;
    MPI_Datatype rows;

    MPI_Type_contiguous_c(many, MPI_BYTE, &bytes);
    MPI_Type_commit(&bytes);
    check_sizes(bytes, many, many, "contiguous");
    check_status(bytes, many);
    check_pack_size(bytes, many);
    MPI_Type_vector_c(4, many, 2 * many, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    check_sizes(rows, 16 * many, 28 * many, "vector");
    check_status(rows, 4 * many);
    MPI_Type_free(&rows);
    MPI_Type_free(&bytes);
    check_far_element();
}

/* ---- messages ---- */

static void check_count(const MPI_Status *status)
{
    MPI_Count count = -1;
    int small = -1;

    MPI_Get_count_c(status, MPI_BYTE, &count);
    CHECK(count == (MPI_Count)LEN, "%lld bytes arrived", (long long)count);
    MPI_Get_elements_c(status, MPI_BYTE, &count);
    CHECK(count == (MPI_Count)LEN, "%lld elements", (long long)count);
    MPI_Get_count(status, MPI_BYTE, &small);
    CHECK(small == MPI_UNDEFINED, "%d bytes as an int", small);
}

/* The head from one window, read again and again by a stride of 0. */
static MPI_Datatype folded(void)
{
    const MPI_Count lens[2] = {1, (MPI_Count)TAIL};
    const MPI_Count places[2] = {0, (MPI_Count)HEAD};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    MPI_Datatype type;

    MPI_Type_create_hvector_c((MPI_Count)(HEAD / WINDOW), (MPI_Count)WINDOW, 0,
                              MPI_BYTE, &types[0]);
    MPI_Type_create_struct_c(2, lens, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&types[0]);
    return type;
}

static void messages(unsigned char *data)
{
    MPI_Datatype fold = folded();
    MPI_Status status;

    if (check_rank() == 0) {
        fill(data, 1);
        MPI_Send_c(data, (MPI_Count)LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        fill(data, 2);
        MPI_Send_c(data, 1, fold, 1, TAG, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        clear(data);
        MPI_Recv_c(data, (MPI_Count)LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                   &status);
        check_count(&status);
        check_data(data, 1, "message");
        MPI_Recv_c(data, (MPI_Count)LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                   &status);
        check_count(&status);
        check_data(data, 2, "folded message");
    }
    MPI_Type_free(&fold);
}

/* ---- collectives ---- */

static void gatherv(unsigned char *data)
{
    MPI_Count counts[2] = {(MPI_Count)HEAD, (MPI_Count)TAIL};
    MPI_Aint places[2] = {0, (MPI_Aint)HEAD};
    int me = check_rank();

    fill(data, 4);
    if (me == 0)
        memset(data + HEAD, 0, TAIL);
    else
        memset(data, 0, WINDOW);
    MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_BYTE, data, counts, places, MPI_BYTE,
                     MPI_COMM_WORLD);
    check_data(data, 4, "allgatherv");
}

/* MPI_MAX: what is counted twice in a window is not counted wrong. */
static void allreduce(unsigned char *data)
{
    unsigned char *sum = map();

    fill(data, 5);
    clear(sum);
    if (check_rank() != 0)
        clear(data);
    MPI_Allreduce_c(data, sum, (MPI_Count)LEN, MPI_UINT8_T, MPI_MAX,
                    MPI_COMM_WORLD);
    check_data(sum, 5, "allreduce");
    munmap(sum, LEN);
}

static void collectives(unsigned char *data)
{
    if (check_rank() == 0)
        fill(data, 3);
    else
        clear(data);
    MPI_Bcast_c(data, (MPI_Count)LEN, MPI_CHAR, 0, MPI_COMM_WORLD);
    check_data(data, 3, "bcast");
    gatherv(data);
    allreduce(data);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "types";
    unsigned char *data;

    check_start(&argc, &argv);
    if (strcmp(what, "types") == 0) {
        types();
        return check_finish();
    }
    check_need(2);
    need_bytes(what[0] == 'c' ? ALLREDUCE_BYTES : 4 * WINDOW);
    data = map();
    if (what[0] == 'm')
        messages(data);
    else
        collectives(data);
    munmap(data, LEN);
    return check_finish();
}
