/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records: what a channel says, sealed for a peer whose handshake is over
 * (common/auth/noise.h). A record is a u16, little-endian, the bytes that
 * follow, and these: one message of the ciphers, at most CHEMPI_SEAL_PLAIN_MAX
 * bytes of the stream with their tag. Where frames begin and end is nothing
 * that records know.
 *
 *   -   nothing of a record is handed on before it has opened
 *   -   a record that does not open is the last one that is looked at
 *   S3  buffers have a fixed bound each (CHEMPI_SEAL_BUFFER), and are given
 *       back while they are empty
 */
#ifndef CHEMPI_COMMON_AUTH_SEAL_H
#define CHEMPI_COMMON_AUTH_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/auth/noise.h"

#define CHEMPI_SEAL_PLAIN_MAX 16384u /* bytes of the stream in a record */
#define CHEMPI_SEAL_BUFFER 65536u    /* bytes of a full buffer */

struct chempi_seal_buffer {
    uint8_t *data;
    size_t cap;
    size_t head; /* first byte in use */
    size_t len;  /* bytes in use */
};

struct chempi_seal {
    struct chempi_noise_cipher tx;
    struct chempi_noise_cipher rx;
    uint8_t hash[CHEMPI_NOISE_HASH_BYTES]; /* the handshake's, if it is set */
    struct chempi_seal_buffer out;         /* sealed, not yet written */
    struct chempi_seal_buffer in;          /* read, not yet opened */
};

/* The ciphers are copied. */
struct chempi_seal *chempi_seal_create(const struct chempi_noise_cipher *tx,
                                       const struct chempi_noise_cipher *rx);
/* Forgets the keys; NULL is allowed. */
void chempi_seal_destroy(struct chempi_seal *s);

/* Seal what fits of the data; returns the bytes taken, 0 while the buffer is
 * full, -ENOMEM, -EOVERFLOW: the keys are at their end. */
ssize_t chempi_seal_put(struct chempi_seal *s, const uint8_t *data, size_t len);
/* Write what is sealed: 0: none left, 1: the socket is full, -errno. Nor does
 * it block for a pipe that nobody else writes to. */
int chempi_seal_flush(struct chempi_seal *s, int fd);

/* Read once: bytes, 0: end of stream, -errno (-EAGAIN: nothing now). is_dry:
 * nothing more is there. What is no socket is read as it is, and may block. */
ssize_t chempi_seal_fill(struct chempi_seal *s, int fd, bool *is_dry);
/* The same, but no byte beyond the next record, of which something is
 * missing; -EBADMSG: it cannot be one. */
ssize_t chempi_seal_fill_record(struct chempi_seal *s, int fd);
/* Bytes of the stream in the next record: 0: none is whole, -EBADMSG. */
ssize_t chempi_seal_next(const struct chempi_seal *s);
/* Open it to `out`, which has room for so many. 0, -EBADMSG, -EOVERFLOW. */
int chempi_seal_open(struct chempi_seal *s, uint8_t *out);

#endif
