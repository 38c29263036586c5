/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classic and the large-count form of every call, side by side: what the
 * parts of the test share. calls.h, which is generated, has a function per
 * MPI function that takes its arguments from a struct args and a table of
 * these functions.
 */
#ifndef CHEMPI_TESTS_FORMS_FORMS_H
#define CHEMPI_TESTS_FORMS_FORMS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#define LIST_MAX 16
#define BUFFER_BYTES 16384
#define FAULTS_MAX 16

/* The same numbers in all three widths in which MPI takes them. */
struct list {
    int i[LIST_MAX];
    MPI_Count c[LIST_MAX];
    MPI_Aint a[LIST_MAX];
};

/* A member per parameter name that occurs; numbers in their widest form,
 * also for results. */
struct args {
    void *sendbuf, *recvbuf, *buf, *buffer, *inbuf, *outbuf, *inoutbuf;
    MPI_Count sendcount, recvcount, count, incount, outcount, insize, outsize;
    MPI_Count position, size, root, dest, source, tag, sendtag, recvtag;
    MPI_Count partitions, ndims, rank, order, blocklength, stride, lb, extent;
    MPI_Count true_lb, true_extent;
    struct list sendcounts, recvcounts, sdispls, rdispls, displs;
    struct list array_of_blocklengths, array_of_displacements;
    struct list array_of_sizes, array_of_subsizes, array_of_starts;
    struct list array_of_gsizes, array_of_distribs, array_of_dargs;
    struct list array_of_psizes;
    MPI_Datatype sendtypes[LIST_MAX], recvtypes[LIST_MAX];
    MPI_Datatype array_of_types[LIST_MAX];
    MPI_Datatype datatype, sendtype, recvtype, oldtype;
    MPI_Datatype *newtype;
    MPI_Comm comm;
    MPI_Op op;
    MPI_Info info;
    MPI_Session session;
    MPI_Request *request;
    MPI_Message *message;
    MPI_Status *status;
};

enum family {
    FAMILY_SEND,
    FAMILY_RECV,
    FAMILY_MRECV,
    FAMILY_SENDRECV,
    FAMILY_PARTITIONED,
    FAMILY_NEIGHBOR,
    FAMILY_COLLECTIVE,
    FAMILY_LOCAL,
    FAMILY_TYPE,
    FAMILY_BUFFER,
    FAMILY_HAND /* has no struct args; see hand.c */
};

/* When a call with a request begins. */
enum start { START_NONE, START_NOW, START_LATER };

enum fault {
    FAULT_NONE,
    FAULT_COUNT,
    FAULT_COUNTS,
    FAULT_RANK,
    FAULT_TAG,
    FAULT_TYPE,
    FAULT_TYPES,
    FAULT_COMM,
    FAULT_OP,
    FAULT_OUT,
    FAULT_BUFFER
};

/* How one argument can be spoilt. */
struct spoil {
    enum fault fault;
    size_t offset; /* in struct args */
    const char *param;
};

struct function {
    const char *name;
    enum family family;
    enum start start;
    int (*call)(bool is_wide, struct args *a);
    struct spoil spoils[FAULTS_MAX];
};

/* hand.c: one call, compared with its other form inside. */
int hand_Op_create(bool is_wide, struct args *a);
int hand_Type_get_envelope(bool is_wide, struct args *a);
int hand_Type_get_contents(bool is_wide, struct args *a);

/* Do the recipes of a type from the classic constructor and of one from the
 * large-count constructor tell the same numbers and types? */
bool hand_is_alike(MPI_Datatype narrow, MPI_Datatype wide);

#endif
