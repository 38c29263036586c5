/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts above 2^31 with little memory: the first 2 GiB of each buffer are one
 * window of memory, mapped again and again; what lies behind has memory of its
 * own, so that it shows whether it arrived. With a number of GiB as second
 * argument so much is one window.
 *
 * usage: large types | packs | messages | modes | collectives | blocks | later
 *        [GiB]
 */
#include "check.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#define TAG 3
#define WINDOW ((size_t)64 << 20)
#define TAIL (((size_t)1 << 20) + 13)
#define HEAD head_bytes
#define LEN (HEAD + TAIL)
#define SLOT (HEAD + ((size_t)2 << 20)) /* of a block: whole pages */
#define STEP 61 /* bytes between two looks; prime to the pattern's lines */
#define WINDOWS (8 * WINDOW)

static size_t head_bytes = (size_t)1 << 31;

/* ---- memory ---- */

static void need_bytes(size_t bytes)
{
    int enough = check_available_bytes() > bytes;

    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!enough)
        check_skip("not enough free memory");
}

/* Turn the first HEAD bytes into one window. */
static void map_head(unsigned char *data)
{
    int fd = memfd_create("large", MFD_CLOEXEC);

    CHECK_OR_DIE(fd >= 0 && ftruncate(fd, (off_t)WINDOW) == 0,
                 "no memory to map");
    for (size_t at = 0; at < HEAD; at += WINDOW)
        CHECK_OR_DIE(mmap(data + at, WINDOW, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED,
                     "no window at %zu", at);
    close(fd);
}

/* Blocks of LEN bytes, one every SLOT bytes; each has a window of its own. */
static unsigned char *map_blocks(int blocks)
{
    unsigned char *data =
        mmap(NULL, (size_t)blocks * SLOT, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK_OR_DIE(data != MAP_FAILED, "no addresses for %d blocks", blocks);
    for (int i = 0; i < blocks; i++)
        map_head(data + (size_t)i * SLOT);
    return data;
}

static void unmap_blocks(unsigned char *data, int blocks)
{
    munmap(data, (size_t)blocks * SLOT);
}

static unsigned char *map(void)
{
    return map_blocks(1);
}

static void unmap(unsigned char *data)
{
    unmap_blocks(data, 1);
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

/* As many bytes as a count can say. */
static void check_most(void)
{
    MPI_Status status;
    MPI_Count got = -1;

    memset(&status, 0, sizeof(status));
    CHECK(MPI_Status_set_elements_c(&status, MPI_BYTE, INT64_MAX) ==
              MPI_SUCCESS,
          "the largest count");
    MPI_Get_elements_c(&status, MPI_BYTE, &got);
    CHECK(got == INT64_MAX, "%lld elements", (long long)got);
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
    check_most();
    check_pack_size(bytes, many);
    MPI_Type_vector_c(4, many, 2 * many, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    check_sizes(rows, 16 * many, 28 * many, "vector");
    check_status(rows, 4 * many);
    MPI_Type_free(&rows);
    MPI_Type_free(&bytes);
    check_far_element();
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

/* The same bytes in their places, by constructors that take ints. */
static MPI_Datatype whole(void)
{
    const int rows = 1 << 20;
    const int lens[2] = {(int)(HEAD / (size_t)rows), (int)TAIL};
    const MPI_Aint places[2] = {0, (MPI_Aint)HEAD};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    MPI_Datatype type;

    MPI_Type_contiguous(rows, MPI_BYTE, &types[0]);
    MPI_Type_create_struct(2, lens, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&types[0]);
    return type;
}

/* ---- packing ---- */

static void pack_bytes(const unsigned char *data, unsigned char *packed)
{
    MPI_Count position = 0;

    clear(packed);
    MPI_Pack_c(data, (MPI_Count)LEN, MPI_BYTE, packed, (MPI_Count)LEN,
               &position, MPI_COMM_SELF);
    CHECK(position == (MPI_Count)LEN, "packed up to %lld", (long long)position);
    check_data(packed, 1, "packed");
}

/* Both sides begin behind the head. */
static void pack_behind(const unsigned char *data, unsigned char *packed)
{
    MPI_Count position = (MPI_Count)HEAD;
    unsigned char *out = check_alloc(TAIL);

    memset(packed + HEAD, 0, TAIL);
    MPI_Pack_c(data + HEAD, (MPI_Count)TAIL, MPI_BYTE, packed, (MPI_Count)LEN,
               &position, MPI_COMM_SELF);
    CHECK(position == (MPI_Count)LEN, "packed up to %lld", (long long)position);
    check_data(packed, 1, "packed behind");
    position = (MPI_Count)HEAD;
    MPI_Unpack_c(packed, (MPI_Count)LEN, &position, out, (MPI_Count)TAIL,
                 MPI_BYTE, MPI_COMM_SELF);
    CHECK(position == (MPI_Count)LEN, "unpacked up to %lld",
          (long long)position);
    CHECK(memcmp(out, data + HEAD, TAIL) == 0, "unpacked from behind");
    free(out);
}

/* Into the pieces of a type, from memory without gaps. */
static void unpack_folded(const unsigned char *packed, unsigned char *data)
{
    MPI_Datatype fold = folded();
    MPI_Count position = 0;

    clear(data);
    MPI_Unpack_c(packed, (MPI_Count)LEN, &position, data, 1, fold,
                 MPI_COMM_SELF);
    CHECK(position == (MPI_Count)LEN, "unpacked up to %lld",
          (long long)position);
    check_data(data, 1, "unpacked");
    MPI_Type_free(&fold);
}

/* There and back, through big-endian ints and a byte. */
static void pack_external(unsigned char *data, unsigned char *packed)
{
    const MPI_Count ints = (MPI_Count)(LEN / 4);
    MPI_Count position = 0;

    _Static_assert(TAIL % 4 == 1, "a byte is left");
    clear(packed);
    MPI_Pack_external_c("external32", data, ints, MPI_INT32_T, packed,
                        (MPI_Count)LEN, &position);
    MPI_Pack_external_c("external32", data + LEN - 1, 1, MPI_BYTE, packed,
                        (MPI_Count)LEN, &position);
    CHECK(position == (MPI_Count)LEN, "packed up to %lld", (long long)position);
    for (size_t at = HEAD; at + 4 < LEN; at += 4)
        if (packed[at] != byte_at(at + 3, 1)) {
            CHECK(false, "byte %zu is not swapped", at);
            break;
        }
    clear(data);
    position = 0;
    MPI_Unpack_external_c("external32", packed, (MPI_Count)LEN, &position, data,
                          ints, MPI_INT32_T);
    MPI_Unpack_external_c("external32", packed, (MPI_Count)LEN, &position,
                          data + LEN - 1, 1, MPI_BYTE);
    check_data(data, 1, "external32");
}

/* What an int cannot say is refused, and nothing is written. */
static void pack_too_much(const unsigned char *data, unsigned char *packed)
{
    MPI_Datatype type = whole();
    int position = 0;

    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    clear(packed);
    CHECK(MPI_Pack(data, 1, type, packed, INT_MAX, &position, MPI_COMM_SELF) !=
              MPI_SUCCESS,
          "packed into less");
    CHECK(position == 0 && packed[0] == 0, "packed up to %d", position);
    MPI_Type_free(&type);
}

static void packs(void)
{
    unsigned char *data = map();
    unsigned char *packed = map();

    fill(data, 1);
    pack_bytes(data, packed);
    pack_behind(data, packed);
    unpack_folded(packed, data);
    pack_external(data, packed);
    pack_too_much(data, packed);
    unmap(packed);
    unmap(data);
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

static void messages(void)
{
    unsigned char *data = map();
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
    unmap(data);
}

/* ---- other ways to send ---- */

typedef void run_mode(unsigned char *data);

/* From rank 0 to rank 1. */
static void try_mode(run_mode *run, unsigned char *data, int seed,
                     const char *what)
{
    if (check_rank() == 0)
        fill(data, seed);
    else
        clear(data);
    run(data);
    if (check_rank() == 1)
        check_data(data, seed, what);
}

/* One element, as far as the call can see. */
static void send_one(unsigned char *data)
{
    MPI_Datatype type = whole();
    MPI_Count bytes = -1;
    int count = -1;
    MPI_Status status;

    if (check_rank() == 0) {
        MPI_Send(data, 1, type, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, 1, type, 0, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, type, &count);
        CHECK(count == 1, "%d of the type", count);
        MPI_Get_elements(&status, type, &count);
        CHECK(count == MPI_UNDEFINED, "%d elements as an int", count);
        MPI_Get_elements_x(&status, type, &bytes);
        CHECK(bytes == (MPI_Count)LEN, "%lld elements", (long long)bytes);
    }
    MPI_Type_free(&type);
}

static void send_matched(unsigned char *data)
{
    MPI_Message message;
    MPI_Status status;

    if (check_rank() == 0) {
        MPI_Ssend_c(data, (MPI_Count)LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        return;
    }
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
    check_count(&status);
    MPI_Mrecv_c(data, (MPI_Count)LEN, MPI_BYTE, &message, &status);
    check_count(&status);
}

static void send_persistent(unsigned char *data)
{
    MPI_Request request;
    MPI_Status status;

    if (check_rank() == 0)
        MPI_Send_init_c(data, (MPI_Count)LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
                        &request);
    else
        MPI_Recv_init_c(data, (MPI_Count)LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                        &request);
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    if (check_rank() == 1)
        check_count(&status);
    MPI_Request_free(&request);
}

/* Two partitions at the sender; one, of more than an int, at the receiver. */
static void send_partitioned(unsigned char *data)
{
    MPI_Request request;

    if (check_rank() == 0)
        MPI_Psend_init_c(data, 2, (MPI_Count)(SLOT / 2), MPI_BYTE, 1, TAG,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init_c(data, 1, (MPI_Count)SLOT, MPI_BYTE, 0, TAG,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (check_rank() == 0)
        MPI_Pready_range(0, 1, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

/* The attached buffer needs memory of its own. */
static void send_buffered(unsigned char *data)
{
    const size_t room = LEN + MPI_BSEND_OVERHEAD;
    void *buffer;
    MPI_Count len = -1;

    if (check_rank() == 1) {
        MPI_Recv_c(data, (MPI_Count)LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
        return;
    }
    buffer = malloc(room);
    CHECK_OR_DIE(buffer != NULL, "no memory for %zu bytes", room);
    MPI_Buffer_attach_c(buffer, (MPI_Count)room);
    MPI_Bsend_c(data, (MPI_Count)LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    clear(data);
    MPI_Buffer_detach_c(&buffer, &len);
    CHECK(len == (MPI_Count)room, "%lld bytes detached", (long long)len);
    free(buffer);
}

static void send_to_less(unsigned char *data)
{
    unsigned char first[16] = {0};
    MPI_Status status;
    int class;

    if (check_rank() == 0) {
        MPI_Send_c(data, (MPI_Count)LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        return;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    class = check_class(
        MPI_Recv(first, 15, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status));
    CHECK(class == MPI_ERR_TRUNCATE, "error class %d", class);
    CHECK(first[15] == 0, "written behind the buffer");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* In both directions at the same time. */
static void exchange(unsigned char *data)
{
    unsigned char *other = map();
    MPI_Status status;

    if (check_rank() < 2) {
        int peer = 1 - check_rank();
        fill(data, 20 + check_rank());
        clear(other);
        MPI_Sendrecv_c(data, (MPI_Count)LEN, MPI_BYTE, peer, TAG, other,
                       (MPI_Count)LEN, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                       &status);
        check_count(&status);
        check_data(other, 20 + peer, "exchange");
    }
    unmap(other);
}

static void modes(void)
{
    unsigned char *data = map();

    if (check_rank() < 2) {
        try_mode(send_one, data, 11, "one element");
        try_mode(send_matched, data, 12, "matched message");
        try_mode(send_persistent, data, 13, "persistent message");
        try_mode(send_partitioned, data, 14, "partitioned message");
        try_mode(send_buffered, data, 15, "buffered message");
        send_to_less(data);
        exchange(data);
    }
    unmap(data);
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
    unmap(sum);
}

static void collectives(void)
{
    unsigned char *data = map();

    if (check_rank() == 0)
        fill(data, 3);
    else
        clear(data);
    MPI_Bcast_c(data, (MPI_Count)LEN, MPI_CHAR, 0, MPI_COMM_WORLD);
    check_data(data, 3, "bcast");
    gatherv(data);
    allreduce(data);
    unmap(data);
}

/* ---- collectives on blocks that are each too long for an int ---- */

/* LEN bytes, and the next one SLOT bytes further on. */
static MPI_Datatype slot(void)
{
    MPI_Datatype bytes;
    MPI_Datatype type;

    MPI_Type_contiguous_c((MPI_Count)LEN, MPI_BYTE, &bytes);
    MPI_Type_create_resized_c(bytes, 0, (MPI_Count)SLOT, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&bytes);
    return type;
}

static void fill_blocks(unsigned char *all, int seed)
{
    for (int i = 0; i < check_size(); i++)
        fill(all + (size_t)i * SLOT, seed + i);
}

static void clear_blocks(unsigned char *all)
{
    for (int i = 0; i < check_size(); i++)
        clear(all + (size_t)i * SLOT);
}

static void gather(unsigned char *all, unsigned char *mine)
{
    MPI_Datatype type = slot();

    fill(mine, 30 + check_rank());
    clear_blocks(all);
    MPI_Gather_c(mine, (MPI_Count)LEN, MPI_BYTE, all, 1, type, 0,
                 MPI_COMM_WORLD);
    for (int i = 0; check_rank() == 0 && i < check_size(); i++)
        check_data(all + (size_t)i * SLOT, 30 + i, "gather");
    MPI_Type_free(&type);
}

static void scatter(unsigned char *all, unsigned char *mine)
{
    MPI_Datatype type = slot();

    clear(mine);
    fill_blocks(all, 40);
    MPI_Scatter_c(all, 1, type, mine, (MPI_Count)LEN, MPI_BYTE,
                  check_size() - 1, MPI_COMM_WORLD);
    check_data(mine, 40 + check_rank(), "scatter");
    MPI_Type_free(&type);
}

/* Each sends to the next one only, as v-form and as w-form. */
static void alltoall(unsigned char *all, unsigned char *mine, bool is_w)
{
    const int n = check_size();
    const int next = (check_rank() + 1) % n;
    const int before = (check_rank() + n - 1) % n;
    MPI_Count *counts = check_alloc(4 * (size_t)n * sizeof(*counts));
    MPI_Aint *places = check_alloc(2 * (size_t)n * sizeof(*places));
    MPI_Datatype *types = check_alloc((size_t)n * sizeof(MPI_Datatype));
    MPI_Request request = MPI_REQUEST_NULL;

    for (int i = 0; i < n; i++) {
        places[i] = (MPI_Aint)((size_t)i * SLOT);
        types[i] = MPI_BYTE;
    }
    counts[next] = (MPI_Count)LEN;
    counts[n + before] = (MPI_Count)LEN;
    fill_blocks(all, 50 + n * check_rank());
    clear(mine);
    if (is_w)
        MPI_Ialltoallw_c(all, counts, places, types, mine, counts + n,
                         places + n, types, MPI_COMM_WORLD, &request);
    else
        MPI_Alltoallv_c(all, counts, places, MPI_BYTE, mine, counts + n,
                        places + n, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_data(mine, 50 + n * before + check_rank(), "alltoall");
    free(types);
    free(places);
    free(counts);
}

/* The first member gets the head, the last one the tail. */
static void reduce_scatter(unsigned char *data, unsigned char *mine)
{
    MPI_Count *counts = check_alloc((size_t)check_size() * sizeof(*counts));
    size_t wrong = 0;

    counts[0] = (MPI_Count)HEAD;
    counts[check_size() - 1] = (MPI_Count)TAIL;
    if (check_rank() == 0)
        fill(data, 60);
    else
        clear(data);
    clear(mine);
    MPI_Reduce_scatter_c(data, mine, counts, MPI_UINT8_T, MPI_MAX,
                         MPI_COMM_WORLD);
    if (check_rank() == 0)
        for (size_t at = 0; at < WINDOW; at += STEP)
            wrong += mine[at] != byte_at(at, 60);
    if (check_rank() == check_size() - 1)
        for (size_t at = 0; at < TAIL; at++)
            wrong += mine[at] != byte_at(HEAD + at, 60);
    CHECK(wrong == 0, "reduce_scatter: %zu bytes are wrong", wrong);
    free(counts);
}

static void blocks(void)
{
    unsigned char *all = map_blocks(check_size());
    unsigned char *mine = map();

    gather(all, mine);
    scatter(all, mine);
    alltoall(all, mine, false);
    alltoall(all, mine, true);
    reduce_scatter(all, mine);
    unmap(mine);
    unmap_blocks(all, check_size());
}

/* ---- collectives as requests, scans, operations of the user ---- */

static void ibcast(unsigned char *data)
{
    MPI_Datatype type = whole();
    MPI_Request request;

    if (check_rank() == 1)
        fill(data, 70);
    else
        clear(data);
    MPI_Ibcast(data, 1, type, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_data(data, 70, "ibcast");
    MPI_Type_free(&type);
}

static void reduce_init(unsigned char *data, unsigned char *result)
{
    MPI_Request request;

    if (check_rank() == 0)
        fill(data, 71);
    else
        clear(data);
    clear(result);
    MPI_Reduce_init_c(data, result, (MPI_Count)LEN, MPI_UINT8_T, MPI_MAX, 1,
                      MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    if (check_rank() == 1)
        check_data(result, 71, "reduce_init");
}

static void scans(unsigned char *data, unsigned char *result)
{
    if (check_rank() == 0)
        fill(data, 72);
    else
        clear(data);
    clear(result);
    MPI_Scan_c(data, result, (MPI_Count)LEN, MPI_UINT8_T, MPI_MAX,
               MPI_COMM_WORLD);
    check_data(result, 72, "scan");
    clear(result);
    MPI_Exscan_c(data, result, (MPI_Count)LEN, MPI_UINT8_T, MPI_MAX,
                 MPI_COMM_WORLD);
    if (check_rank() != 0)
        check_data(result, 72, "exscan");
}

/* Around a ring. */
static void neighbours(unsigned char *data, unsigned char *result)
{
    const int n = check_size();
    int next = (check_rank() + 1) % n;
    int before = (check_rank() + n - 1) % n;
    MPI_Comm ring;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED,
                                   1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &ring);
    fill(data, 80 + check_rank());
    clear(result);
    MPI_Neighbor_allgather_c(data, (MPI_Count)LEN, MPI_BYTE, result,
                             (MPI_Count)LEN, MPI_BYTE, ring);
    check_data(result, 80 + before, "neighbor_allgather");
    MPI_Comm_free(&ring);
}

static long long seen; /* elements that an operation was given */

static void count_narrow(void *in, void *inout, int *len, MPI_Datatype *type)
{
    unsigned char *to = inout;

    (void)type;
    CHECK(*len > 0, "%d elements", *len);
    to[*len - 1] = ((const unsigned char *)in)[*len - 1];
    seen += *len;
}

static void count_wide(void *in, void *inout, MPI_Count *len,
                       MPI_Datatype *type)
{
    unsigned char *to = inout;

    (void)type;
    CHECK(*len > 0, "%lld elements", (long long)*len);
    to[*len - 1] = ((const unsigned char *)in)[*len - 1];
    seen += *len;
}

/* A function that takes an int is given no more than an int can say. */
static void reduce_local(unsigned char *data, unsigned char *result)
{
    MPI_Op ops[2];

    MPI_Op_create(count_narrow, 1, &ops[0]);
    MPI_Op_create_c(count_wide, 1, &ops[1]);
    fill(data, 90);
    for (int i = 0; i < 2; i++) {
        seen = 0;
        clear(result);
        MPI_Reduce_local_c(data, result, (MPI_Count)LEN, MPI_UINT8_T, ops[i]);
        CHECK(seen == (long long)LEN, "%lld elements were seen", seen);
        CHECK(result[LEN - 1] == data[LEN - 1], "the last one was not");
        MPI_Op_free(&ops[i]);
    }
}

static void later(void)
{
    unsigned char *data = map();
    unsigned char *result = map();

    ibcast(data);
    reduce_init(data, result);
    scans(data, result);
    neighbours(data, result);
    reduce_local(data, result);
    unmap(result);
    unmap(data);
}

static const struct {
    const char *name;
    void (*run)(void);
    int ranks;    /* at least */
    size_t heads; /* of memory, besides windows */
} kinds[] = {
    {"types", types, 1, 0},
    {"packs", packs, 1, 0},
    {"messages", messages, 2, 0},
    {"modes", modes, 2, 1}, /* a buffer is attached */
    {"collectives", collectives, 2, 0},
    {"blocks", blocks, 2, 1}, /* reduce_scatter by messages */
    {"later", later, 2, 0},
};

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "types";

    check_start(&argc, &argv);
    head_bytes = (size_t)check_arg(argc, argv, 2, 2) << 30;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(what, kinds[i].name) != 0)
            continue;
        check_need(kinds[i].ranks);
        need_bytes(kinds[i].heads * HEAD + WINDOWS);
        kinds[i].run();
        return check_finish();
    }
    CHECK(false, "there is no %s", what);
    return check_finish();
}
