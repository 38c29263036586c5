/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a connection table; chempi-table(5) describes them for people.
 *
 * An image is three parts one after the other: NODE (who reads this),
 * ROUTES (the ways of a class of nodes), DIRECTORY (all nodes and networks).
 * Every part has a header with its own checksum and is a multiple of 8 bytes
 * long. The file of a node holds either the whole image or the NODE part
 * alone; then it names the files of the two others, which nodes share, and
 * the loader puts them together (load.h). All numbers are little-endian; the
 * sections of a part follow each other without gaps in the order below, so
 * the counts determine the length of the part exactly.
 */
#ifndef CHEMPI_COMMON_TABLE_FORMAT_H
#define CHEMPI_COMMON_TABLE_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CHEMPI_TABLE_MAGIC "CHEMPItb" /* 8 bytes, no terminating zero */

enum chempi_table_part {
    CHEMPI_TABLE_PART_NODE = 1,
    CHEMPI_TABLE_PART_ROUTES = 2,
    CHEMPI_TABLE_PART_DIRECTORY = 3
};

/* Header of every part. */
enum {
    CHEMPI_PART_MAGIC = 0,     /* 8 bytes */
    CHEMPI_PART_VERSION = 8,   /* u32 */
    CHEMPI_PART_KIND = 12,     /* u32 */
    CHEMPI_PART_LEN = 16,      /* u64, header included */
    CHEMPI_PART_SUM = 24,      /* u32, CRC-32C of what follows the header */
    CHEMPI_PART_HEAD_SUM = 28, /* u32, CRC-32C of bytes 0..27 */
    CHEMPI_PART_HEAD = 32
};

/* NODE. File names are at most 31 bytes, zero-filled, empty when the part is
 * in the same file. */
enum {
    CHEMPI_NODE_SELF = 32,       /* u32 */
    CHEMPI_NODE_CLASS = 36,      /* u32 */
    CHEMPI_NODE_ROUTES_SUM = 40, /* u32, the SUM of the ROUTES part */
    CHEMPI_NODE_DIR_SUM = 44,    /* u32, the SUM of the DIRECTORY part */
    CHEMPI_NODE_ROUTES_LEN = 48, /* u64 */
    CHEMPI_NODE_DIR_LEN = 56,    /* u64 */
    CHEMPI_NODE_ROUTES_FILE = 64,
    CHEMPI_NODE_DIR_FILE = 96,
    CHEMPI_NODE_LEN = 128,
    CHEMPI_NODE_FILE_LEN = 32
};

/* ROUTES: head, lists[classes + 1], ranges, stages, hops, strings. The last
 * list is the way of a node's messages to itself. */
enum {
    CHEMPI_ROUTES_CLASS = 32,
    CHEMPI_ROUTES_CLASSES = 36,
    CHEMPI_ROUTES_RANGES = 40,
    CHEMPI_ROUTES_STAGES = 44,
    CHEMPI_ROUTES_HOPS = 48,
    CHEMPI_ROUTES_STRINGS = 52, /* bytes */
    CHEMPI_ROUTES_HEAD = 56,

    CHEMPI_LIST_FIRST = 0, /* u32, range */
    CHEMPI_LIST_COUNT = 4, /* u32; 0: cannot be reached */
    CHEMPI_LIST_LEN = 8,

    CHEMPI_RANGE_MAX = 0,    /* u64 */
    CHEMPI_RANGE_COST = 8,   /* IEEE double, us */
    CHEMPI_RANGE_FIRST = 16, /* u32, stage */
    CHEMPI_RANGE_COUNT = 20, /* u32, stages */
    CHEMPI_RANGE_CHUNK = 24, /* u32, bytes */
    CHEMPI_RANGE_SHARE = 28, /* u32 */
    CHEMPI_RANGE_LEN = 32,

    CHEMPI_STAGE_NETWORK = 0,
    CHEMPI_STAGE_DEVICE = 4,   /* string */
    CHEMPI_STAGE_PROTOCOL = 8, /* string */
    CHEMPI_STAGE_FIRST = 12,   /* u32, hop */
    CHEMPI_STAGE_COUNT = 16,   /* u32, hops */
    CHEMPI_STAGE_FORWARD = 20, /* IEEE floats: us before it begins, ... */
    CHEMPI_STAGE_LATENCY = 24, /* ... us, */
    CHEMPI_STAGE_COST = 28,    /* ... us per message, */
    CHEMPI_STAGE_BW = 32,      /* ... bytes per us; 0: unknown, all of them */
    CHEMPI_STAGE_LEN = 36
};

/* DIRECTORY: head, nodes, order (node indices by name), kinds, attachments,
 * networks, strings. A node's attachments end where the next node's begin. A
 * kind is what many attachments have in common. */
enum {
    CHEMPI_DIR_NODES = 32,
    CHEMPI_DIR_NETWORKS = 36,
    CHEMPI_DIR_ATTACHMENTS = 40,
    CHEMPI_DIR_CLASSES = 44,
    CHEMPI_DIR_STRINGS = 48, /* bytes */
    CHEMPI_DIR_CLUSTER = 52, /* string */
    CHEMPI_DIR_KINDS = 56,
    CHEMPI_DIR_HEAD = 60,

    CHEMPI_ENTRY_NAME = 0,  /* string */
    CHEMPI_ENTRY_FIRST = 4, /* u32, attachment */
    CHEMPI_ENTRY_CLASS = 8,
    CHEMPI_ENTRY_SLOTS = 12, /* u16 */
    CHEMPI_ENTRY_FLAGS = 14, /* u16 */
    CHEMPI_ENTRY_LEN = 16,
    CHEMPI_ENTRY_GATEWAY = 1,   /* flag */
    CHEMPI_ENTRY_HAS_SLOTS = 2, /* flag: somebody has said how many */

    CHEMPI_KIND_NETWORK = 0,
    CHEMPI_KIND_INTERFACE = 4, /* string or NONE */
    CHEMPI_KIND_FORM = 8,      /* of the addresses */
    CHEMPI_KIND_LEN = 12,
    CHEMPI_FORM_TEXT = 0, /* string or NONE */
    CHEMPI_FORM_IPV4 = 1, /* the first byte of it is the lowest */

    CHEMPI_ATT_KIND = 0,
    CHEMPI_ATT_ADDRESS = 4, /* in the form of the kind */
    CHEMPI_ATT_LEN = 8,

    CHEMPI_NET_NAME = 0,   /* string */
    CHEMPI_NET_TYPE = 4,   /* string */
    CHEMPI_NET_DEVICE = 8, /* string */
    CHEMPI_NET_LEN = 12
};

static inline uint32_t chempi_le16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t chempi_le32(const unsigned char *p)
{
    return chempi_le16(p) | chempi_le16(p + 2) << 16;
}

static inline uint64_t chempi_le64(const unsigned char *p)
{
    return chempi_le32(p) | (uint64_t)chempi_le32(p + 4) << 32;
}

static inline double chempi_le_float(const unsigned char *p)
{
    uint32_t bits = chempi_le32(p);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static inline double chempi_le_double(const unsigned char *p)
{
    uint64_t bits = chempi_le64(p);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline void chempi_put_le16(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)(v & 0xff);
    p[1] = (unsigned char)(v >> 8 & 0xff);
}

static inline void chempi_put_le32(unsigned char *p, uint32_t v)
{
    chempi_put_le16(p, v & 0xffff);
    chempi_put_le16(p + 2, v >> 16);
}

static inline void chempi_put_le64(unsigned char *p, uint64_t v)
{
    chempi_put_le32(p, (uint32_t)(v & UINT32_MAX));
    chempi_put_le32(p + 4, (uint32_t)(v >> 32));
}

static inline void chempi_put_le_float(unsigned char *p, double v)
{
    const float value = (float)v;
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    chempi_put_le32(p, bits);
}

static inline void chempi_put_le_double(unsigned char *p, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    chempi_put_le64(p, bits);
}

#endif
