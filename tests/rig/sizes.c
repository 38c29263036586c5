/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of no bytes, of every power of two up to MOST bytes and of its
 * neighbours, between ranks 0 and 1 and both ways at once: all are started
 * before any is waited for, from memory in a row and with gaps, received
 * where there is a receive and where there is none yet. Contents are checked;
 * rank 0 prints how many came right.
 *
 * usage: sizes MOST
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define COUNT_MAX 96
#define STRIDE 3 /* bytes from one to the next of a message with gaps */

struct message {
    int len;
    int stride;
    unsigned char *out;
    unsigned char *in;
    MPI_Datatype type;
};

static unsigned char content(int rank, int number, int i)
{
    return (unsigned char)(rank * 101 + number * 31 + i * 7 + i / 251);
}

static size_t room(const struct message *m)
{
    return (size_t)m->len * (size_t)m->stride + 1;
}

static void make(struct message *m, int rank, int number, int len)
{
    m->len = len;
    m->stride = number % 3 == 2 && len <= 200000 ? STRIDE : 1;
    m->out = malloc(room(m));
    m->in = malloc(room(m));
    if (!m->out || !m->in)
        MPI_Abort(MPI_COMM_WORLD, 3);
    memset(m->in, 0xee, room(m));
    for (int i = 0; i < len; i++)
        m->out[i * m->stride] = content(rank, number, i);
    MPI_Type_vector(len, 1, m->stride, MPI_BYTE, &m->type);
    MPI_Type_commit(&m->type);
}

static int is_right(const struct message *m, int peer, int number)
{
    for (int i = 0; i < m->len; i++) {
        if (m->in[i * m->stride] != content(peer, number, i)) {
            printf("message %d of %d bytes: byte %d is wrong\n", number, m->len,
                   i);
            return 0;
        }
    }
    return 1;
}

static void done_with(struct message *m)
{
    MPI_Type_free(&m->type);
    free(m->out);
    free(m->in);
}

int main(int argc, char **argv)
{
    static struct message list[COUNT_MAX];
    MPI_Request requests[2 * COUNT_MAX];
    int most = argc == 2 ? atoi(argv[1]) : 0;
    int count = 0;
    int right = 0;
    int all = 0;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make(&list[count], rank, count, 0);
    count++;
    for (int len = 1; len > 0 && len <= most; len *= 2)
        for (int by = -1; by <= 1 && count < COUNT_MAX; by++, count++)
            make(&list[count], rank, count, len + by);
    for (int i = 0; i < count; i++) /* tag i; half of them are early */
        if (i % 2)
            MPI_Irecv(list[i].in, 1, list[i].type, 1 - rank, i, MPI_COMM_WORLD,
                      &requests[count + i]);
    for (int i = 0; i < count; i++)
        MPI_Isend(list[i].out, 1, list[i].type, 1 - rank, i, MPI_COMM_WORLD,
                  &requests[i]);
    for (int i = count - 1; i >= 0; i--)
        if (i % 2 == 0)
            MPI_Irecv(list[i].in, 1, list[i].type, 1 - rank, i, MPI_COMM_WORLD,
                      &requests[count + i]);
    MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        right += is_right(&list[i], 1 - rank, i);
        done_with(&list[i]);
    }
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sizes: %d of %d are right\n", all, 2 * count);
    MPI_Finalize();
    return 0;
}
