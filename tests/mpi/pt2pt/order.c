/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order and content of messages whose sizes, tags and modes change from one
 * to the next, so that a pair keeps switching between protocols and devices.
 *
 * The i-th message from s to d is known to both (a function of the seed), so
 * the receiver knows exactly what must come. All ranks send to all, itself
 * included. Receives are posted in batches of one of seven kinds; within a
 * batch the posting order fixes which message each receive must get.
 *
 * No deadlock: message i of a stream is posted once i - WINDOW is complete,
 * and a batch is chosen so that the messages it needs lie in the windows.
 *
 * usage: order [seed [messages per pair [largest message, bytes]]]
 */
#include "check.h"

#define WINDOW 16
#define BATCH_MAX 8
#define TAGS 4

struct message {
    size_t len;
    int tag;
    bool synchronous;
    uint64_t seed;
};

/* One direction of one pair, as its sender or its receiver sees it. */
struct stream {
    int src;
    int dst;
    long done;          /* all messages below are complete */
    long posted;        /* sender: all messages below are posted */
    bool *ready;        /* [messages] */
    void *data[WINDOW]; /* sender's buffers */
};

static struct {
    uint64_t seed;
    long messages;
    size_t max_len;
    uint64_t random;
    struct stream *out;    /* [size] */
    struct stream *in;     /* [size] */
    MPI_Request *requests; /* size * WINDOW sends, then BATCH_MAX receives */
    int *indices;
    MPI_Status *statuses;
    char *buffers[BATCH_MAX];
} test;

static struct message message_of(int src, int dst, long i)
{
    uint64_t state = check_mix(check_mix(test.seed, (uint64_t)i),
                               (uint64_t)(src * 4096 + dst));
    uint64_t kind = check_random(&state) % 100;
    size_t limit = kind < 40   ? 65
                   : kind < 70 ? 5000
                   : kind < 88 ? 40000
                   : kind < 97 ? 300000
                               : test.max_len + 1;
    struct message message = {.seed = check_random(&state)};

    if (limit > test.max_len + 1)
        limit = test.max_len + 1;
    message.len = check_random(&state) % limit;
    message.tag = (int)(check_random(&state) % TAGS);
    message.synchronous = check_random(&state) % 5 == 0;
    return message;
}

/* Messages of the stream that may be waited for now: from, to (exclusive). */
static long window_end(const struct stream *stream)
{
    long end = stream->done + WINDOW;

    return end < test.messages ? end : test.messages;
}

static void post_sends(struct stream *stream)
{
    while (stream->posted < window_end(stream)) {
        long i = stream->posted++;
        struct message m = message_of(stream->src, stream->dst, i);
        int slot = stream->dst * WINDOW + (int)(i % WINDOW);
        void *data = check_alloc(m.len);

        check_fill(data, m.len, m.seed);
        stream->data[i % WINDOW] = data;
        if (m.synchronous)
            MPI_Issend(data, (int)m.len, MPI_BYTE, stream->dst, m.tag,
                       MPI_COMM_WORLD, &test.requests[slot]);
        else
            MPI_Isend(data, (int)m.len, MPI_BYTE, stream->dst, m.tag,
                      MPI_COMM_WORLD, &test.requests[slot]);
    }
}

/* Mark one message complete and move the lower end of the window. */
static void advance(struct stream *stream, long i)
{
    stream->ready[i] = true;
    while (stream->done < test.messages && stream->ready[stream->done])
        stream->done++;
}

static void send_completed(int slot)
{
    struct stream *stream = &test.out[slot / WINDOW];
    int place = slot % WINDOW;
    long base = stream->done - stream->done % WINDOW;
    long i =
        base + place >= stream->done ? base + place : base + place + WINDOW;

    free(stream->data[place]);
    stream->data[place] = NULL;
    advance(stream, i);
    post_sends(stream);
}

/* Wait until all receives of the batch (and, with drain, all sends) are
 * complete; the statuses of the receives are kept by place. */
static void complete(int receives, MPI_Status *kept, bool drain)
{
    int sends = check_size() * WINDOW;
    int missing = receives;

    while (missing > 0 || drain) {
        int count = 0;
        MPI_Waitsome(sends + receives, test.requests, &count, test.indices,
                     test.statuses);
        if (count == MPI_UNDEFINED)
            break;
        for (int k = 0; k < count; k++) {
            if (test.indices[k] < sends) {
                send_completed(test.indices[k]);
                continue;
            }
            kept[test.indices[k] - sends] = test.statuses[k];
            missing--;
        }
    }
}

/* The message below `end` that is the skip-th (from 0) not yet received with
 * this tag or any; -1 when there is none. */
static long next_index(const struct stream *stream, int tag, int skip, long end)
{
    for (long i = stream->done; i < end; i++) {
        if (stream->ready[i])
            continue;
        if (tag != MPI_ANY_TAG &&
            message_of(stream->src, stream->dst, i).tag != tag)
            continue;
        if (skip-- == 0)
            return i;
    }
    return -1;
}

/* How many messages that match lie in the windows, up to BATCH_MAX. (An
 * eager sender may be ahead of its receiver's window: what comes may lie
 * outside, but that many do come.) */
static int available(int src, int tag)
{
    int all = 0;

    for (int s = 0; s < check_size() && all < BATCH_MAX; s++) {
        const struct stream *stream = &test.in[s];
        int found = 0;
        if (src != MPI_ANY_SOURCE && src != s)
            continue;
        while (next_index(stream, tag, found, window_end(stream)) >= 0)
            found++;
        all += found;
    }
    return all < BATCH_MAX ? all : BATCH_MAX;
}

/* Check one received message against what had to come; tag_asked is the tag
 * of the receive. */
static void take(const char *data, const MPI_Status *status, int tag_asked)
{
    int src = status->MPI_SOURCE;
    int count = -1;

    CHECK_OR_DIE(src >= 0 && src < check_size(), "odd source %d", src);
    struct stream *stream = &test.in[src];
    long i = next_index(stream, tag_asked, 0, test.messages);
    CHECK_OR_DIE(i >= 0, "a message too many from %d", src);
    struct message m = message_of(src, check_rank(), i);
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK_OR_DIE(status->MPI_TAG == m.tag && count == (int)m.len,
                 "message %ld from %d: tag %d, %d bytes; expected tag %d, "
                 "%zu bytes",
                 i, src, status->MPI_TAG, count, m.tag, m.len);
    size_t at = check_differs(data, m.len, m.seed);
    CHECK_OR_DIE(at == SIZE_MAX,
                 "message %ld from %d (%zu bytes) differs at byte %zu", i, src,
                 m.len, at);
    advance(stream, i);
}

/* Probe, then receive exactly what was seen. */
static void receive_probed(int src, int tag, bool matched)
{
    MPI_Status seen;
    MPI_Status status;
    int flag = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    int count = 0;

    while (!flag) {
        if (matched)
            MPI_Improbe(src, tag, MPI_COMM_WORLD, &flag, &handle, &seen);
        else
            MPI_Iprobe(src, tag, MPI_COMM_WORLD, &flag, &seen);
        /* Our own sends must move on too; nothing else drives them here. */
        int outcount = 0;
        MPI_Testsome(check_size() * WINDOW, test.requests, &outcount,
                     test.indices, test.statuses);
        for (int k = 0; outcount != MPI_UNDEFINED && k < outcount; k++)
            send_completed(test.indices[k]);
    }
    MPI_Get_count(&seen, MPI_BYTE, &count);
    if (matched)
        MPI_Mrecv(test.buffers[0], count, MPI_BYTE, &handle, &status);
    else
        MPI_Recv(test.buffers[0], count, MPI_BYTE, seen.MPI_SOURCE,
                 seen.MPI_TAG, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == seen.MPI_SOURCE &&
              status.MPI_TAG == seen.MPI_TAG,
          "probe saw %d/%d, receive got %d/%d", seen.MPI_SOURCE, seen.MPI_TAG,
          status.MPI_SOURCE, status.MPI_TAG);
    take(test.buffers[0], &status, tag);
}

static void receive_posted(int src, int tag, int batch)
{
    MPI_Status kept[BATCH_MAX];
    MPI_Request *requests = test.requests + check_size() * WINDOW;

    for (int k = 0; k < batch; k++)
        MPI_Irecv(test.buffers[k], (int)test.max_len, MPI_BYTE, src, tag,
                  MPI_COMM_WORLD, &requests[k]);
    complete(batch, kept, false);
    for (int k = 0; k < batch; k++)
        take(test.buffers[k], &kept[k], tag);
}

/* One batch of a random kind; false when nothing is left to receive. */
static bool receive_batch(void)
{
    int start = (int)(check_random(&test.random) % (uint64_t)check_size());
    int src = -1;

    for (int k = 0; k < check_size() && src < 0; k++) {
        int s = (start + k) % check_size();
        if (test.in[s].done < test.messages)
            src = s;
    }
    if (src < 0)
        return false;
    long oldest = next_index(&test.in[src], MPI_ANY_TAG, 0, test.messages);
    int tag = message_of(src, check_rank(), oldest).tag;
    uint64_t kind = check_random(&test.random) % 7;
    if (kind == 1 || kind == 3 || kind >= 5)
        tag = MPI_ANY_TAG;
    if (kind == 2 || kind == 3 || kind == 6)
        src = MPI_ANY_SOURCE;
    if (kind >= 4) {
        receive_probed(src, tag, check_random(&test.random) % 2 == 0);
        return true;
    }
    int most = available(src, tag);
    receive_posted(src, tag,
                   1 + (int)(check_random(&test.random) % (uint64_t)most));
    return true;
}

static void set_up(int argc, char **argv)
{
    size_t size = (size_t)check_size();
    size_t slots = size * WINDOW + BATCH_MAX;

    test.seed = (uint64_t)check_arg(argc, argv, 1, 1);
    test.messages = check_arg(argc, argv, 2, 300);
    test.max_len = (size_t)check_arg(argc, argv, 3, 3 << 20);
    test.random = check_mix(test.seed, (uint64_t)check_rank() + 77);
    test.out = check_alloc(size * sizeof(*test.out));
    test.in = check_alloc(size * sizeof(*test.in));
    test.requests = check_alloc(slots * sizeof(*test.requests));
    test.indices = check_alloc(slots * sizeof(*test.indices));
    test.statuses = check_alloc(slots * sizeof(*test.statuses));
    for (size_t k = 0; k < slots; k++)
        test.requests[k] = MPI_REQUEST_NULL;
    for (int k = 0; k < BATCH_MAX; k++)
        test.buffers[k] = check_alloc(test.max_len);
    for (int r = 0; r < check_size(); r++) {
        test.out[r] = (struct stream){.src = check_rank(), .dst = r};
        test.out[r].ready = check_alloc((size_t)test.messages);
        test.in[r] = (struct stream){.src = r, .dst = check_rank()};
        test.in[r].ready = check_alloc((size_t)test.messages);
    }
}

static void tear_down(void)
{
    for (int k = 0; k < BATCH_MAX; k++)
        free(test.buffers[k]);
    for (int r = 0; r < check_size(); r++) {
        free(test.out[r].ready);
        free(test.in[r].ready);
    }
    free(test.statuses);
    free(test.indices);
    free(test.requests);
    free(test.in);
    free(test.out);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    set_up(argc, argv);
    for (int r = 0; r < check_size(); r++)
        post_sends(&test.out[r]);
    while (receive_batch())
        ;
    complete(0, NULL, true);
    tear_down();
    return check_finish();
}
