/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's side of the connection to its supervisor; see client.h.
 *
 * WELCOME, in order: u32 version, str job id, 32 bytes secret, u8
 * CHEMPI_JOB_* flags, 32 bytes key of ranks, u32 rank, u32 size, u32 node, u32
 * nodes, u32 gateways, u32 descriptor of the places of all processes and the
 * names of the nodes (share.h), u32 local size (both kinds), u32 app number,
 * u32 universe size, u32 want_stats, u32 region descriptor, u32 table
 * descriptor (all ones: none), u32 wake descriptors (0 or local size), each a
 * u32, u64 share of registrable memory (all ones: nobody divides it), str port
 * of the parents ("": none), u32 number of this world, u8 1: there is a root
 * that answers, or 0.
 */
#define _GNU_SOURCE /* F_DUPFD and friends, explicit_bzero */
#include "common/control/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/number.h"
#include "common/base/sys.h"
#include "common/control/channel.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"
#include "common/control/share.h"

#define WELCOME_LIMIT_MS 60000
#define ABORT_LIMIT_MS 5000
#define QUEUE_MAX (16u << 20) /* bytes queued towards the supervisor */

struct chempi_client {
    struct chempi_channel ch;
    struct chempi_job job;
    /* What job points to; ours to write and free. */
    uint32_t *places; /* shared, read only */
    size_t places_len;
    const char **node_names; /* in places */
    int *wake_fds;
    bool has_events;
    bool is_dry;           /* there was nothing to read last time */
    uint64_t fences;       /* number of the last fence entered */
    uint32_t share_serial; /* of the last BUDGET delivered */
    uint32_t asked;        /* serial of the last question to the root */
    uint32_t open;         /* of these, without an answer */
    char parent[CHEMPI_PORT_NAME_MAX];
};

static int number_in_env(const char *text, int *out)
{
    uint32_t v;

    if (!chempi_number_parse32(text, 0, INT32_MAX, &v))
        return -EINVAL;
    *out = (int)v;
    return 0;
}

/* The inherited socket, checked to be one. */
static int find_socket(int *out, struct chempi_err *err)
{
    const char *text = getenv(CHEMPI_CONTROL_ENV);
    socklen_t len = sizeof(int);
    int type;
    int fd;

    if (!text)
        return -ENOENT;
    if (number_in_env(text, &fd))
        return chempi_err_set(err, -EINVAL,
                              CHEMPI_CONTROL_ENV
                              "=%.32s is no descriptor; "
                              "start the program with chempirun or unset it",
                              text);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
        type != SOCK_STREAM)
        return chempi_err_set(err, -EBADF,
                              "descriptor %d (from " CHEMPI_CONTROL_ENV ") is "
                              "not the connection to the launcher: a wrapper "
                              "closed or replaced it",
                              fd);
    *out = fd;
    return 0;
}

static int set_cloexec(int fd, const char *what, struct chempi_err *err)
{
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return chempi_err_set(err, -errno,
                              "the inherited descriptor %d (%s) is not open: "
                              "a wrapper between chempirun and this program "
                              "closed it",
                              fd, what);
    return 0;
}

static void copy_str(char *to, size_t size, const char *from)
{
    size_t len = strlen(from);

    len = len < size ? len : size - 1;
    memcpy(to, from, len);
    to[len] = '\0';
}

/* What the file of places says, which nobody can change any more. Local ranks
 * follow from who is where, in the order of world ranks. */
static int check_places(struct chempi_client *c)
{
    const uint32_t nodes = c->job.node_count;
    const uint32_t procs = c->job.size + c->job.gateways;
    const uint32_t *node_of = c->places;
    const uint32_t *local_of = c->places + procs;
    uint32_t *used = chempi_sys->calloc(nodes, sizeof(*used));
    bool is_good = true;

    if (!used)
        return -ENOMEM;
    for (uint32_t i = 0; is_good && i < procs; i++)
        is_good = node_of[i] < nodes && local_of[i] == used[node_of[i]]++;
    if (is_good) {
        c->job.node_of_rank = node_of;
        c->job.local_rank_of_rank = local_of;
        c->job.local_rank = local_of[c->job.rank];
        c->job.local_size = used[c->job.node];
        is_good = node_of[c->job.rank] == c->job.node;
    }
    free(used);
    return is_good ? 0 : -EBADMSG;
}

/* The names of the nodes end with the file. */
static int find_names(struct chempi_client *c)
{
    const uint32_t n = c->job.node_count;
    const char *end = (const char *)c->places + c->places_len;
    const char *at = (const char *)c->places +
                     chempi_share_places_len(c->job.size + c->job.gateways);

    if ((size_t)(end - at) < n) /* not even a zero for each */
        return -EBADMSG;
    c->node_names = chempi_sys->calloc(n, sizeof(*c->node_names));
    if (!c->node_names)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const size_t len = strnlen(at, (size_t)(end - at));

        if (len == (size_t)(end - at) || len >= CHEMPI_NODE_NAME_MAX)
            return -EBADMSG;
        c->node_names[i] = at;
        at += len + 1;
    }
    c->job.node_names = c->node_names;
    return at == end ? 0 : -EBADMSG;
}

/* All ranks of a node share one file of places. */
static int map_places(struct chempi_client *c, int fd)
{
    const int wanted = F_SEAL_WRITE | F_SEAL_SHRINK;
    const int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (seals < 0 && errno == EBADF)
        return -EBADF;
    if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) < 0 ||
        (uint64_t)st.st_size <
            chempi_share_places_len(c->job.size + c->job.gateways))
        return -EBADMSG;
    c->places_len = (size_t)st.st_size;
    /* Private: before Linux 6.7 a file sealed against writing cannot be mapped
     * shared, not even to read. The pages are the same. */
    c->places =
        chempi_sys->mmap(NULL, c->places_len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (c->places == MAP_FAILED) {
        c->places = NULL;
        return -errno;
    }
    (void)close(fd); /* the mapping stays */
    return 0;
}

static int parse_places(struct chempi_client *c, struct chempi_reader *r)
{
    const uint32_t gateways = chempi_wire_get_u32(r);
    const int fd = (int)chempi_wire_get_u32(r);
    int rc;

    if (r->is_bad || gateways > CHEMPI_JOB_NODES_MAX ||
        c->job.rank >= c->job.size + gateways)
        return -EBADMSG;
    c->job.gateways = gateways;
    rc = map_places(c, fd);
    rc = rc ? rc : find_names(c);
    return rc ? rc : check_places(c);
}

static int parse_wake(struct chempi_client *c, struct chempi_reader *r)
{
    const uint32_t n = c->job.local_size;
    uint32_t events;

    c->job.region_fd = (int)chempi_wire_get_u32(r);
    c->job.table_fd = (int)chempi_wire_get_u32(r);
    events = chempi_wire_get_u32(r);
    if (events != 0 && events != n)
        return -EBADMSG;
    c->wake_fds = chempi_sys->calloc(n, sizeof(int));
    if (!c->wake_fds)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        c->wake_fds[i] = events ? (int)chempi_wire_get_u32(r) : -1;
    c->has_events = events > 0;
    c->job.wake_fds = c->wake_fds;
    c->job.memory_share = chempi_wire_get_u64(r);
    return 0;
}

static int parse_root(struct chempi_client *c, struct chempi_reader *r)
{
    uint8_t has_root;

    copy_str(c->parent, sizeof(c->parent),
             chempi_wire_get_str(r, CHEMPI_PORT_NAME_MAX));
    c->job.parent = c->parent;
    c->job.world = chempi_wire_get_u32(r);
    has_root = chempi_wire_get_u8(r);
    c->job.has_root = has_root == 1;
    return chempi_wire_is_done(r) && has_root <= 1 ? 0 : -EBADMSG;
}

static int parse_head(struct chempi_client *c, struct chempi_reader *r)
{
    struct chempi_job *job = &c->job;
    const uint8_t *secret;
    const uint8_t *key;
    uint8_t flags;

    if (chempi_wire_get_u32(r) != CHEMPI_CONTROL_VERSION)
        return -EPROTO;
    copy_str(job->id, sizeof(job->id),
             chempi_wire_get_str(r, CHEMPI_JOB_ID_MAX));
    secret = chempi_wire_get_raw(r, CHEMPI_JOB_SECRET_BYTES);
    if (secret)
        memcpy(job->secret, secret, CHEMPI_JOB_SECRET_BYTES);
    flags = chempi_wire_get_u8(r);
    job->is_secure = flags & CHEMPI_JOB_SECURE;
    job->survives = flags & CHEMPI_JOB_SURVIVES;
    key = chempi_wire_get_raw(r, CHEMPI_JOB_SECRET_BYTES);
    if (key)
        memcpy(job->rank_key, key, CHEMPI_JOB_SECRET_BYTES);
    job->rank = chempi_wire_get_u32(r);
    job->size = chempi_wire_get_u32(r);
    job->node = chempi_wire_get_u32(r);
    job->node_count = chempi_wire_get_u32(r);
    if (r->is_bad || job->size == 0 || job->size > CHEMPI_JOB_RANKS_MAX ||
        job->node_count > CHEMPI_JOB_NODES_MAX || job->node >= job->node_count)
        return -EBADMSG;
    return 0;
}

static int parse_welcome(struct chempi_client *c,
                         const struct chempi_frame *frame)
{
    struct chempi_reader r;
    uint32_t local_size;
    int rc;

    chempi_wire_read(&r, frame->data, frame->len);
    rc = parse_head(c, &r);
    rc = rc ? rc : parse_places(c, &r);
    if (rc)
        return rc;
    local_size = chempi_wire_get_u32(&r);
    c->job.app_num = chempi_wire_get_u32(&r);
    c->job.universe_size = chempi_wire_get_u32(&r);
    c->job.want_stats = chempi_wire_get_u32(&r);
    if (local_size != c->job.local_size)
        return -EBADMSG;
    rc = parse_wake(c, &r);
    return rc ? rc : parse_root(c, &r);
}

/* Wait for one whole frame, until the deadline. */
static int await_frame(struct chempi_client *c, uint64_t deadline_ns,
                       struct chempi_frame *out)
{
    struct pollfd p = {.fd = c->ch.fd, .events = POLLIN};

    for (;;) {
        int rc = chempi_channel_next(&c->ch, out);
        uint64_t now;
        uint64_t left_ms;

        if (rc)
            return rc < 0 ? rc : 0;
        rc = chempi_channel_fill(&c->ch);
        if (rc < 0)
            return rc;
        if (rc > 0)
            continue;
        now = chempi_clock_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        left_ms = (deadline_ns - now) / CHEMPI_NS_PER_MS + 1;
        (void)poll(&p, 1, left_ms < INT_MAX ? (int)left_ms : -1);
    }
}

static int greet(struct chempi_client *c)
{
    struct chempi_writer *w = chempi_channel_begin(&c->ch, CHEMPI_MSG_HELLO, 0);

    chempi_wire_put_u32(w, CHEMPI_CONTROL_VERSION);
    chempi_wire_put_u32(w, (uint32_t)getpid());
    return chempi_channel_end(&c->ch);
}

static int shake_hands(struct chempi_client *c, struct chempi_err *err)
{
    const uint64_t deadline =
        chempi_clock_ns() + WELCOME_LIMIT_MS * CHEMPI_NS_PER_MS;
    struct chempi_frame frame;
    int rc = greet(c);

    if (!rc)
        rc = chempi_channel_flush(&c->ch);
    rc = rc < 0 ? rc : await_frame(c, deadline, &frame);
    if (!rc && frame.type == CHEMPI_MSG_HOLD) /* for as long as people take */
        rc = await_frame(c, UINT64_MAX, &frame);
    if (rc)
        return chempi_err_set(err, rc, "no word from the supervisor: %s",
                              chempi_err_name(rc));
    rc = frame.type == CHEMPI_MSG_WELCOME ? parse_welcome(c, &frame) : -EBADMSG;
    if (rc == -EPROTO)
        return chempi_err_set(err, rc,
                              "chempirun and this program's library are of "
                              "different versions");
    if (rc == -EBADF)
        return chempi_err_set(err, rc,
                              "the inherited descriptors are not open: a "
                              "wrapper between chempirun and this program "
                              "closed them");
    if (rc)
        return chempi_err_set(err, rc,
                              "cannot take the supervisor's welcome: %s",
                              chempi_err_name(rc));
    return 0;
}

/* Descriptors that follow each other, as those of wake events do: asked one by
 * one, they would be a million calls on a node with 1,000 ranks. */
static int set_cloexec_run(const int *fds, uint32_t count, const char *what,
                           struct chempi_err *err)
{
    const int last = fds[count - 1];
    int rc = set_cloexec(fds[0], what, err);

    if (!rc)
        rc = set_cloexec(last, what, err);
    if (rc || count <= 2 ||
        close_range((unsigned)fds[0], (unsigned)last, CLOSE_RANGE_CLOEXEC) == 0)
        return rc;
    for (uint32_t i = 0; !rc && i < count; i++) /* an older kernel */
        rc = set_cloexec(fds[i], what, err);
    return rc;
}

static int adopt_wake_events(const int *fds, uint32_t count,
                             struct chempi_err *err)
{
    uint32_t end;
    int rc = 0;

    for (uint32_t i = 0; !rc && i < count; i = end) {
        for (end = i + 1; end < count && fds[end] == fds[end - 1] + 1; end++)
            ;
        rc = set_cloexec_run(fds + i, end - i, "wake event", err);
    }
    return rc;
}

static int adopt_descriptors(struct chempi_client *c, struct chempi_err *err)
{
    int rc = set_cloexec(c->ch.fd, "control", err);

    if (!rc)
        rc = set_cloexec(c->job.region_fd, "shared region", err);
    if (!rc && c->job.table_fd >= 0)
        rc = set_cloexec(c->job.table_fd, "connection table", err);
    if (rc || !c->has_events)
        return rc;
    return adopt_wake_events(c->job.wake_fds, c->job.local_size, err);
}

int chempi_client_open(struct chempi_client **out, struct chempi_err *err)
{
    struct chempi_client *c;
    int fd = -1;
    int rc = find_socket(&fd, err);

    if (rc)
        return rc;
    c = chempi_sys->calloc(1, sizeof(*c));
    if (!c)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    chempi_channel_init(&c->ch, fd, CHEMPI_RANK_OUT_MAX, QUEUE_MAX);
    rc = shake_hands(c, err);
    if (!rc)
        rc = adopt_descriptors(c, err);
    if (rc) {
        chempi_client_close(c);
        return rc;
    }
    (void)unsetenv(CHEMPI_CONTROL_ENV); /* fails for malformed names only */
    *out = c;
    return 0;
}

int chempi_client_attach(struct chempi_client **out, int fd)
{
    struct chempi_client *c = chempi_sys->calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    chempi_channel_init(&c->ch, fd, CHEMPI_RANK_OUT_MAX, QUEUE_MAX);
    c->job.has_root = true;
    c->job.memory_share = UINT64_MAX;
    if (greet(c)) {
        c->ch.fd = -1;
        chempi_client_close(c);
        return -ENOMEM;
    }
    *out = c;
    return 0;
}

void chempi_client_close(struct chempi_client *c)
{
    if (!c)
        return;
    chempi_channel_fini(&c->ch);
    if (c->places)
        (void)chempi_sys->munmap(c->places, c->places_len);
    free(c->node_names);
    free(c->wake_fds);
    explicit_bzero(c->job.secret, sizeof(c->job.secret));
    explicit_bzero(c->job.rank_key, sizeof(c->job.rank_key));
    explicit_bzero(c->parent, sizeof(c->parent));
    free(c);
}

const struct chempi_job *chempi_client_job(const struct chempi_client *c)
{
    return &c->job;
}

int chempi_client_fd(const struct chempi_client *c)
{
    return c->ch.fd;
}

bool chempi_client_has_output(const struct chempi_client *c)
{
    return chempi_channel_has_output(&c->ch);
}

bool chempi_client_is_quiet(const struct chempi_client *c)
{
    return c->is_dry && !chempi_client_has_output(c);
}

/* Finish the frame and write what the socket takes now. A lost supervisor is
 * reported by progress(), not here. */
static int push(struct chempi_client *c)
{
    int rc = chempi_channel_end(&c->ch);

    if (rc)
        return rc;
    rc = chempi_channel_flush(&c->ch);
    return rc > 0 ? 0 : rc;
}

static bool is_key(const char *key)
{
    return key[0] && strlen(key) < CHEMPI_KVS_KEY_MAX;
}

int chempi_client_put(struct chempi_client *c, const char *key,
                      const void *value, size_t len)
{
    struct chempi_writer *w;

    if (!is_key(key) || len > CHEMPI_KVS_VALUE_MAX)
        return -EINVAL;
    w = chempi_channel_begin(&c->ch, CHEMPI_MSG_PUT, 0);
    chempi_wire_put_str(w, key);
    chempi_wire_put_blob(w, value, len);
    return push(c);
}

int chempi_client_get(struct chempi_client *c, uint32_t rank, const char *key)
{
    struct chempi_writer *w;

    if (!is_key(key) || rank >= c->job.size + c->job.gateways)
        return -EINVAL;
    w = chempi_channel_begin(&c->ch, CHEMPI_MSG_GET, 0);
    chempi_wire_put_u32(w, rank);
    chempi_wire_put_str(w, key);
    return push(c);
}

int chempi_client_fence(struct chempi_client *c, uint64_t *fence)
{
    struct chempi_writer *w = chempi_channel_begin(&c->ch, CHEMPI_MSG_FENCE, 0);
    int rc;

    chempi_wire_put_u64(w, c->fences + 1);
    rc = push(c);
    if (!rc)
        *fence = ++c->fences;
    return rc;
}

static int push_empty(struct chempi_client *c, uint16_t type)
{
    (void)chempi_channel_begin(&c->ch, type, 0);
    return push(c);
}

int chempi_client_set_initialized(struct chempi_client *c)
{
    int rc;

    (void)chempi_channel_begin(&c->ch, CHEMPI_MSG_INIT, 0);
    rc = chempi_channel_end(&c->ch);
    if (!rc)
        (void)chempi_channel_flush(&c->ch); /* what stays goes later */
    return rc;
}

int chempi_client_set_finalized(struct chempi_client *c)
{
    return push_empty(c, CHEMPI_MSG_FINAL);
}

int chempi_client_need_world(struct chempi_client *c)
{
    return push_empty(c, CHEMPI_MSG_WORLD);
}

int chempi_client_leave_world(struct chempi_client *c)
{
    return push_empty(c, CHEMPI_MSG_UNWORLD);
}

int chempi_client_care(struct chempi_client *c, bool cares)
{
    struct chempi_writer *w = chempi_channel_begin(&c->ch, CHEMPI_MSG_CARE, 0);

    chempi_wire_put_u8(w, cares);
    return push(c);
}

int chempi_client_cut(struct chempi_client *c, uint32_t gateway,
                      const char *why)
{
    struct chempi_writer *w = chempi_channel_begin(&c->ch, CHEMPI_MSG_CUT, 0);
    char cut[CHEMPI_TEXT_MAX];

    copy_str(cut, sizeof(cut), why);
    chempi_wire_put_u32(w, gateway);
    chempi_wire_put_str(w, cut);
    return push(c);
}

int chempi_client_memory(struct chempi_client *c,
                         const struct chempi_client_memory *memory)
{
    struct chempi_writer *w;

    if (c->job.memory_share == UINT64_MAX)
        return 0;
    w = chempi_channel_begin(&c->ch, CHEMPI_MSG_MEMORY, 0);
    chempi_wire_put_u32(w, c->share_serial);
    chempi_wire_put_u64(w, memory->held);
    chempi_wire_put_u64(w, memory->used);
    chempi_wire_put_u64(w, memory->wanted);
    chempi_wire_put_u64(w, memory->needed);
    chempi_wire_put_u64(w, memory->degraded);
    return push(c);
}

int chempi_client_ask_root(struct chempi_client *c,
                           enum chempi_root_request what, const void *blob,
                           size_t len, uint32_t *serial)
{
    struct chempi_writer *w;
    int rc;

    if (!c->job.has_root)
        return -EOPNOTSUPP;
    if (len > CHEMPI_ROOT_BYTES_MAX)
        return -EMSGSIZE;
    if (c->open >= CHEMPI_ROOT_REQUESTS_MAX || c->asked == UINT32_MAX)
        return -EBUSY;
    w = chempi_channel_begin(&c->ch, CHEMPI_MSG_ROOT_REQUEST, 0);
    chempi_wire_put_u32(w, c->asked + 1);
    chempi_wire_put_u8(w, (uint8_t)what);
    chempi_wire_put_blob(w, blob, len);
    rc = chempi_channel_end(&c->ch);
    if (rc)
        return rc == -ENOBUFS ? -EBUSY : rc;
    *serial = ++c->asked;
    c->open++;
    (void)chempi_channel_flush(&c->ch); /* progress() finds what is wrong */
    return 0;
}

/* As many whole lines as one piece of a report may hold, in bytes. */
static size_t cut_report(const char *text, size_t len)
{
    size_t n = CHEMPI_REPORT_MAX;

    if (len <= n)
        return len;
    while (n && text[n - 1] != '\n')
        n--;
    return n;
}

int chempi_client_report(struct chempi_client *c, const void *text, size_t len)
{
    const char *at = text;
    int rc;

    do {
        const size_t n = cut_report(at, len);
        struct chempi_writer *w;

        if (n == 0 && len)
            return -EMSGSIZE;
        w = chempi_channel_begin(&c->ch, CHEMPI_MSG_REPORT, 0);
        chempi_wire_put_u8(w, n < len);
        chempi_wire_put_blob(w, at, n);
        rc = push(c);
        at = n ? at + n : at;
        len -= n;
    } while (len && !rc);
    return rc;
}

int chempi_client_here(struct chempi_client *c,
                       const struct chempi_client_wait *wait)
{
    struct chempi_writer *w = chempi_channel_begin(&c->ch, CHEMPI_MSG_HERE, 0);
    char cut[CHEMPI_HERE_MAX];
    char site[CHEMPI_HERE_SITE_MAX];

    copy_str(cut, sizeof(cut), wait->text);
    chempi_wire_put_u8(w, wait->is_waiting ? CHEMPI_HERE_WAITS
                                           : CHEMPI_HERE_TESTS);
    chempi_wire_put_str(w, cut);
    copy_str(site, sizeof(site), wait->site);
    chempi_wire_put_str(w, site);
    chempi_wire_put_u64(w, wait->moves);
    chempi_wire_put_u32(w, wait->count);
    for (uint32_t i = 0; i < wait->count; i++)
        chempi_wire_put_u32(w, wait->ranks[i]);
    chempi_wire_put_u8(w, wait->has_more);
    return push(c);
}

int chempi_client_abort(struct chempi_client *c, int exit_code,
                        const char *text)
{
    struct chempi_writer *w = chempi_channel_begin(&c->ch, CHEMPI_MSG_ABORT, 0);
    char cut[CHEMPI_TEXT_MAX];
    int rc;

    copy_str(cut, sizeof(cut), text ? text : "");
    chempi_wire_put_u32(w, (uint32_t)exit_code);
    chempi_wire_put_str(w, cut);
    rc = push(c);
    return rc ? rc : chempi_client_flush(c, ABORT_LIMIT_MS);
}

int chempi_client_flush(struct chempi_client *c, int timeout_ms)
{
    const uint64_t deadline =
        chempi_clock_ns() + (uint64_t)timeout_ms * CHEMPI_NS_PER_MS;
    struct pollfd p = {.fd = c->ch.fd, .events = POLLOUT};

    for (;;) {
        int rc = chempi_channel_flush(&c->ch);
        uint64_t now;

        if (rc <= 0)
            return rc;
        now = chempi_clock_ns();
        if (now >= deadline)
            return -ETIMEDOUT;
        (void)poll(&p, 1, (int)((deadline - now) / CHEMPI_NS_PER_MS) + 1);
    }
}

static int dispatch_got(const struct chempi_client *c, struct chempi_reader *r,
                        const struct chempi_client_events *ev, void *arg)
{
    uint32_t rank = chempi_wire_get_u32(r);
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);
    size_t len;
    const uint8_t *value = chempi_wire_get_blob(r, CHEMPI_KVS_VALUE_MAX, &len);

    if (!chempi_wire_is_done(r) || rank >= c->job.size + c->job.gateways)
        return -EBADMSG;
    ev->got(arg, rank, key, value, len);
    return 0;
}

static int dispatch_lost(const struct chempi_client *c, struct chempi_reader *r,
                         const struct chempi_client_events *ev, void *arg)
{
    uint32_t rank = chempi_wire_get_u32(r);
    const char *text = chempi_wire_get_str(r, CHEMPI_TEXT_MAX);

    if (!chempi_wire_is_done(r) ||
        (rank >= c->job.size + c->job.gateways && rank != CHEMPI_NODE_ANY))
        return -EBADMSG;
    ev->rank_lost(arg, rank, text);
    return 0;
}

static int dispatch_drained(const struct chempi_client *c,
                            struct chempi_reader *r,
                            const struct chempi_client_events *ev, void *arg)
{
    const uint32_t gateway = chempi_wire_get_u32(r);
    const uint8_t is_drained = chempi_wire_get_u8(r);

    if (!chempi_wire_is_done(r) || gateway < c->job.size ||
        gateway >= c->job.size + c->job.gateways || is_drained > 1)
        return -EBADMSG;
    ev->drained(arg, gateway, is_drained == 1);
    return 0;
}

static int dispatch_reply(struct chempi_client *c, struct chempi_reader *r,
                          const struct chempi_client_events *ev, void *arg)
{
    struct chempi_reply reply;

    if (chempi_reply_read(r, &reply) || reply.serial == 0 ||
        reply.serial > c->asked)
        return -EBADMSG;
    if (reply.state != CHEMPI_REPLY_OVER) {
        if (c->open == 0)
            return -EBADMSG;
        c->open--;
    }
    ev->root_replied(arg, &reply);
    return 0;
}

static int dispatch(struct chempi_client *c, const struct chempi_frame *frame,
                    const struct chempi_client_events *ev, void *arg)
{
    struct chempi_reader r;
    uint64_t number;
    uint32_t limit_ms;
    uint32_t serial;
    uint8_t flag;

    chempi_wire_read(&r, frame->data, frame->len);
    switch (frame->type) {
    case CHEMPI_MSG_GOT:
        return dispatch_got(c, &r, ev, arg);
    case CHEMPI_MSG_LOST:
        return dispatch_lost(c, &r, ev, arg);
    case CHEMPI_MSG_DRAINED:
        return dispatch_drained(c, &r, ev, arg);
    case CHEMPI_MSG_ROOT_REPLY:
        return dispatch_reply(c, &r, ev, arg);
    case CHEMPI_MSG_TELL:
        if (!chempi_wire_is_done(&r))
            return -EBADMSG;
        ev->tell(arg);
        return 0;
    case CHEMPI_MSG_WHERE:
        flag = chempi_wire_get_u8(&r);
        if (!chempi_wire_is_done(&r) || flag > CHEMPI_WAIT_STACK)
            return -EBADMSG;
        ev->where(arg, (enum chempi_wait_depth)flag);
        return 0;
    case CHEMPI_MSG_FENCED:
        number = chempi_wire_get_u64(&r);
        if (!chempi_wire_is_done(&r) || number > c->fences)
            return -EBADMSG;
        ev->fenced(arg, number);
        return 0;
    case CHEMPI_MSG_BUDGET:
        number = chempi_wire_get_u64(&r);
        limit_ms = chempi_wire_get_u32(&r);
        serial = chempi_wire_get_u32(&r);
        if (!chempi_wire_is_done(&r))
            return -EBADMSG;
        c->share_serial = serial;
        ev->budget(arg, number, limit_ms);
        return 0;
    default:
        return -EBADMSG;
    }
}

static int lost(struct chempi_err *err, int code)
{
    return chempi_err_set(err, -EPIPE,
                          "the supervisor of this node is lost: %s",
                          chempi_err_name(code));
}

int chempi_client_progress(struct chempi_client *c,
                           const struct chempi_client_events *ev, void *arg,
                           struct chempi_err *err)
{
    struct chempi_frame frame;
    int count = 0;
    int filled = chempi_channel_fill(&c->ch);
    int rc;

    c->is_dry = filled == 0;
    while ((rc = chempi_channel_next(&c->ch, &frame)) == 1) {
        rc = dispatch(c, &frame, ev, arg);
        if (rc)
            break;
        count++;
    }
    if (rc < 0)
        return lost(err, rc);
    if (filled < 0)
        return count ? count : lost(err, filled);
    rc = chempi_channel_flush(&c->ch);
    return rc < 0 && !count ? lost(err, rc) : count;
}
