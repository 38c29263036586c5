/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every send mode, blocking and not, at sizes that cross all protocols; what
 * the synchronous modes and buffered mode promise beyond delivery.
 */
#include "check.h"

#define TAG 5
#define GO 6
#define LARGEST ((size_t)1 << 20)

static const size_t sizes[] = {0,    1,     7,     48,     64,     100,    1000,
                               4096, 10000, 32768, 100000, 300000, LARGEST};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };

static const char *const mode_names[] = {"standard", "synchronous", "buffered",
                                         "ready"};

static void send_blocking(enum mode mode, void *data, int len, int dst)
{
    switch (mode) {
    case STANDARD:
        MPI_Send(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD);
        break;
    case SYNCHRONOUS:
        MPI_Ssend(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD);
        break;
    case BUFFERED:
        MPI_Bsend(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD);
        break;
    default:
        MPI_Rsend(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD);
        break;
    }
}

static void send_nonblocking(enum mode mode, void *data, int len, int dst)
{
    MPI_Request request = MPI_REQUEST_NULL;

    switch (mode) {
    case STANDARD:
        MPI_Isend(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD, &request);
        break;
    case SYNCHRONOUS:
        MPI_Issend(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD, &request);
        break;
    case BUFFERED:
        MPI_Ibsend(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD, &request);
        break;
    default:
        MPI_Irsend(data, len, MPI_BYTE, dst, TAG, MPI_COMM_WORLD, &request);
        break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL, "request is not null after MPI_Wait");
}

/* Rank 1 posts its receive, then says go (ready mode needs that order). */
static void send_one(enum mode mode, bool blocking, size_t len, uint64_t seed)
{
    void *data = check_alloc(len);

    check_fill(data, len, seed);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (blocking)
        send_blocking(mode, data, (int)len, 1);
    else
        send_nonblocking(mode, data, (int)len, 1);
    /* The buffer is ours again: what arrives must not change any more. */
    memset(data, 0xAA, len);
    free(data);
}

static void receive_one(enum mode mode, size_t len, uint64_t seed)
{
    void *data = check_alloc(len);
    MPI_Request request;
    MPI_Status status;
    int count = -1;

    MPI_Irecv(data, (int)len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == (int)len && status.MPI_SOURCE == 0 && status.MPI_TAG == TAG,
          "%s, %zu bytes: status says %d bytes from %d, tag %d",
          mode_names[mode], len, count, status.MPI_SOURCE, status.MPI_TAG);
    size_t at = check_differs(data, len, seed);
    CHECK(at == SIZE_MAX, "%s, %zu bytes: differs at byte %zu",
          mode_names[mode], len, at);
    free(data);
}

static void all_modes(void)
{
    for (int mode = STANDARD; mode < MODES; mode++) {
        for (size_t i = 0; i < 2 * SIZE_COUNT; i++) {
            size_t len = sizes[i / 2];
            uint64_t seed = (uint64_t)mode * 1000 + i;
            if (check_rank() == 0)
                send_one((enum mode)mode, i % 2 == 0, len, seed);
            else if (check_rank() == 1)
                receive_one((enum mode)mode, len, seed);
        }
    }
}

/* A synchronous send must not complete before its receive is posted. */
static void synchronous_waits(size_t len)
{
    void *data = check_alloc(len);
    MPI_Request request;
    int flag = 1;

    if (check_rank() == 0) {
        MPI_Issend(data, (int)len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        /* Two round trips later the message is there, yet unmatched. */
        for (int i = 0; i < 2; i++)
            MPI_Sendrecv(NULL, 0, MPI_BYTE, 1, GO, NULL, 0, MPI_BYTE, 1, GO,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "Issend of %zu bytes completed unmatched", len);
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (check_rank() == 1) {
        for (int i = 0; i < 2; i++)
            MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, GO, NULL, 0, MPI_BYTE, 0, GO,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(data, (int)len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    free(data);
}

/* Buffered sends complete without a receive; detach waits for delivery. */
static void buffered_is_local(void)
{
    enum { COUNT = 20, LEN = 5000 };
    static char data[LEN];

    if (check_rank() == 0) {
        int size = COUNT * (LEN + MPI_BSEND_OVERHEAD);
        void *space = check_alloc((size_t)size);
        void *back = NULL;
        int back_size = 0;
        MPI_Buffer_attach(space, size);
        for (int i = 0; i < COUNT; i++) {
            check_fill(data, LEN, (uint64_t)i);
            MPI_Bsend(data, LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        MPI_Buffer_detach(&back, &back_size);
        CHECK(back == space && back_size == size, "detach gave another buffer");
        free(space);
    } else if (check_rank() == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; i++) {
            MPI_Recv(data, LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            CHECK(check_differs(data, LEN, (uint64_t)i) == SIZE_MAX,
                  "buffered message %d is wrong", i);
        }
    }
}

/* A flush waits for the messages before it only: the one after it is received
 * when the flush is known to be over. */
static void flush_is_for_earlier_ones(void)
{
    enum { LEN = 1 << 20 };
    int size = 2 * (LEN + MPI_BSEND_OVERHEAD);
    char *data = check_alloc(LEN);
    void *space = check_alloc((size_t)size);
    MPI_Request flush;

    if (check_rank() == 0) {
        MPI_Buffer_attach(space, size);
        MPI_Bsend(data, LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        MPI_Buffer_iflush(&flush);
        MPI_Bsend(data, LEN, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG + 2, MPI_COMM_WORLD);
        MPI_Wait(&flush, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG + 3, MPI_COMM_WORLD);
        MPI_Buffer_flush();
        MPI_Buffer_detach(&space, &size);
    } else if (check_rank() == 1) {
        static const int lens[] = {0, LEN, 0, LEN};
        static const int tags[] = {TAG + 2, TAG, TAG + 3, TAG + 1};

        for (int i = 0; i < 4; i++)
            MPI_Recv(data, lens[i], MPI_BYTE, 0, tags[i], MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    free(space);
    free(data);
}

/* Asking for more than the attached buffer holds is an error. */
static void buffered_overflow(void)
{
    static char space[1000];
    static char data[LARGEST];
    void *back = NULL;
    int back_size = 0;

    if (check_rank() != 0)
        return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Buffer_attach(space, (int)sizeof(space));
    int error =
        MPI_Bsend(data, (int)sizeof(data), MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    int class = MPI_SUCCESS;
    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    CHECK(class == MPI_ERR_BUFFER, "overflow gave error class %d", class);
    MPI_Buffer_detach(&back, &back_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    int size = (int)LARGEST + MPI_BSEND_OVERHEAD;
    void *space = check_alloc((size_t)size);
    MPI_Buffer_attach(space, size);
    all_modes();
    MPI_Buffer_detach(&space, &size);
    free(space);
    for (size_t i = 0; i < SIZE_COUNT; i++)
        synchronous_waits(sizes[i]);
    buffered_is_local();
    flush_is_for_earlier_ones();
    buffered_overflow();
    return check_finish();
}
