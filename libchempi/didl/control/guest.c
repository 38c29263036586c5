/* SPDX-License-Identifier: BSD-3-Clause */
/* Guests of other launchers; see guest.h. */
#define _GNU_SOURCE /* gethostname */
#include "libchempi/didl/control/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/auth/auth.h"
#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/containers/list.h"
#include "common/control/msg.h"
#include "common/control/share.h"
#include "common/fd/file.h"
#include "common/fd/rights.h"
#include "libchempi/didl/control/handover.h"
#include "libchempi/didl/control/store.h"

enum { READER_STEP_NS = 1000000, READER_STEPS = 2000 }; /* 2 s or more */

#define WHO_MAX 256  /* bytes of what a process says of itself, with zero */
#define HOST_MAX 128 /* the same, of what tells hosts apart */
#define JOB_MAX 160  /* the same, of the job's secret and name */
#define ENCODED_MAX sodium_base64_ENCODED_LEN(CHEMPI_KVS_VALUE_MAX, CODE)
#define CODE sodium_base64_VARIANT_URLSAFE_NO_PADDING

/* A card that was asked for, until progress() delivers it. */
struct answer {
    struct chempi_list link;
    uint32_t rank;
    char key[CHEMPI_KVS_KEY_MAX];
    size_t len;
    uint8_t value[];
};

static struct {
    const struct chempi_store_ops *store;
    struct chempi_store_self self;
    struct chempi_job job;
    uint32_t *node_of_rank;
    uint32_t *local_rank_of_rank;
    char **node_names; /* [node_count], and who said so */
    uint32_t *first_of_node;
    struct chempi_share share;
    struct chempi_list answers;
    uint64_t entered;
    uint64_t passed;
    bool has_fence; /* one is entered, and has not passed */
    bool has_begun; /* once: the cards are out (H3) */
    bool is_left;   /* H4 */
} guest;

/* What a process says of itself (H1). */
struct who {
    char node[CHEMPI_NODE_NAME_MAX];
    char host[HOST_MAX];
    char socket[CHEMPI_HANDOVER_NAME_MAX];
};

/* ---- the store ----------------------------------------------------------- */

static int lost(struct chempi_err *err, const char *what, int code)
{
    return chempi_err_set(err, code,
                          "%s failed at the launcher's %s server: %s", what,
                          guest.store->name, chempi_err_name(code));
}

static void make_key(char out[CHEMPI_STORE_KEY_MAX], uint32_t rank,
                     const char *key, uint32_t part)
{
    (void)snprintf(out, CHEMPI_STORE_KEY_MAX, "chempi-%u-%.40s-%u", rank, key,
                   part);
}

/* In parts that the store takes; the first says how many bytes follow. */
static int put_text(const char *key, const char *text)
{
    const size_t room = guest.self.value_max - 1;
    const size_t len = strlen(text);
    char name[CHEMPI_STORE_KEY_MAX];
    char part[CHEMPI_STORE_VALUE_MAX];
    uint32_t number = 0;
    int rc;

    make_key(name, guest.self.rank, key, number++);
    (void)snprintf(part, sizeof(part), "%zu", len);
    rc = guest.store->put(name, part);
    for (size_t at = 0; !rc && at < len; at += room) {
        const size_t n = len - at < room ? len - at : room;

        memcpy(part, text + at, n);
        part[n] = '\0';
        make_key(name, guest.self.rank, key, number++);
        rc = guest.store->put(name, part);
    }
    return rc;
}

static int get_text(uint32_t rank, const char *key, char *text, size_t room)
{
    char name[CHEMPI_STORE_KEY_MAX];
    char part[CHEMPI_STORE_VALUE_MAX];
    uint32_t number = 0;
    size_t at = 0;
    unsigned long len;
    char *end;
    int rc;

    make_key(name, rank, key, number++);
    rc = guest.store->get(rank, name, part, sizeof(part));
    if (rc)
        return rc;
    len = strtoul(part, &end, 10);
    if (end == part || *end || len >= room)
        return -EPROTO;
    while (at < len) {
        size_t n;

        make_key(name, rank, key, number++);
        rc = guest.store->get(rank, name, part, sizeof(part));
        n = rc ? 0 : strlen(part);
        if (rc || n == 0 || n > len - at)
            return rc ? rc : -EPROTO;
        memcpy(text + at, part, n);
        at += n;
    }
    text[len] = '\0';
    return 0;
}

/* Wait until all processes of the job are here; before it begins, so that
 * nobody needs anything of this one meanwhile. Others may come late: there is
 * no limit, the launcher has one. */
static int fence_blocking(void)
{
    struct pollfd p = {.events = POLLIN};
    int rc = guest.store->fence();

    while (!rc) {
        rc = guest.store->fenced();
        p.fd = guest.store->fd();
        if (rc == 0)
            (void)poll(&p, 1, -1);
    }
    return rc < 0 ? rc : 0;
}

/* ---- who is where -------------------------------------------------------- */

/* Processes with the same may hand descriptors to each other, and see each
 * other's process numbers. */
static void name_host(char host[HOST_MAX])
{
    char boot[48];

    (void)chempi_file_read("/proc/sys/kernel/random/boot_id", boot,
                           sizeof(boot)); /* or it is empty */
    boot[strcspn(boot, "\n")] = '\0';
    (void)snprintf(host, HOST_MAX, "%s.%" PRIx64 ".%" PRIx64 ".%lx", boot,
                   chempi_file_inode("/proc/self/ns/net"),
                   chempi_file_inode("/proc/self/ns/pid"),
                   (unsigned long)geteuid());
}

/* Blanks part the words of what is put; none of these has one. */
static int name_node(char node[CHEMPI_NODE_NAME_MAX], struct chempi_err *err)
{
    const char *set = getenv("CHEMPI_NODE");

    if (!set || !*set)
        set = getenv("SLURMD_NODENAME");
    if (set && *set) {
        if (strlen(set) >= CHEMPI_NODE_NAME_MAX || strpbrk(set, " ,:#/\t\n;"))
            return chempi_err_set(err, -EINVAL,
                                  "CHEMPI_NODE=%.80s is no node name (1 to %d "
                                  "characters, without blank, comma, colon, "
                                  "hash and slash)",
                                  set, CHEMPI_NODE_NAME_MAX - 1);
        (void)snprintf(node, CHEMPI_NODE_NAME_MAX, "%s", set);
        return 0;
    }
    if (gethostname(node, CHEMPI_NODE_NAME_MAX) != 0)
        (void)snprintf(node, CHEMPI_NODE_NAME_MAX, "localhost");
    node[CHEMPI_NODE_NAME_MAX - 1] = '\0';
    node[strcspn(node, ".")] = '\0';
    return 0;
}

static int put_encoded(const char *key, const void *value, size_t len)
{
    char text[ENCODED_MAX];

    (void)sodium_bin2base64(text, sizeof(text), value, len, CODE);
    return put_text(key, text);
}

static int get_encoded(uint32_t rank, const char *key, void *value, size_t room,
                       size_t *len)
{
    char text[ENCODED_MAX];
    int rc = get_text(rank, key, text, sizeof(text));

    if (!rc && sodium_base642bin(value, room, text, strlen(text), NULL, len,
                                 NULL, CODE) != 0)
        rc = -EPROTO;
    return rc;
}

static int put_who(const struct who *me)
{
    char text[WHO_MAX];

    (void)snprintf(text, sizeof(text), "%s %s %s", me->node, me->host,
                   me->socket);
    return put_encoded("who", text, strlen(text));
}

static int get_who(uint32_t rank, struct who *who)
{
    char text[WHO_MAX];
    size_t len;
    int rc = get_encoded(rank, "who", text, sizeof(text) - 1, &len);

    if (rc)
        return rc;
    text[len] = '\0';
    return sscanf(text, "%63s %127s %31s", who->node, who->host, who->socket) ==
                   3
               ? 0
               : -EPROTO;
}

/* Rank 0 makes them for all. The secret lies in the launcher's store in clear:
 * doc/security.md says who can read it. */
static int put_job(void)
{
    struct {
        uint8_t secret[CHEMPI_JOB_SECRET_BYTES];
        uint8_t id[8];
    } job;
    int rc = chempi_auth_make_key(job.secret);

    if (rc)
        return rc;
    randombytes_buf(job.id, sizeof(job.id));
    rc = put_encoded("job", &job, sizeof(job));
    sodium_memzero(&job, sizeof(job));
    return rc;
}

static int get_job(void)
{
    uint8_t job[CHEMPI_JOB_SECRET_BYTES + 8];
    size_t len = 0;
    int rc = get_encoded(0, "job", job, sizeof(job), &len);

    if (!rc && len != sizeof(job))
        rc = -EPROTO;
    if (rc)
        return rc;
    memcpy(guest.job.secret, job, CHEMPI_JOB_SECRET_BYTES);
    memcpy(guest.job.id, "guest-", 6);
    (void)sodium_bin2hex(guest.job.id + 6, sizeof(guest.job.id) - 6,
                         job + CHEMPI_JOB_SECRET_BYTES, 8);
    sodium_memzero(job, sizeof(job));
    return 0;
}

/* ---- places -------------------------------------------------------------- */

static void free_places(void)
{
    for (uint32_t i = 0; guest.node_names && i < guest.job.node_count; i++)
        free(guest.node_names[i]);
    free(guest.node_names);
    free(guest.first_of_node);
    free(guest.node_of_rank);
    free(guest.local_rank_of_rank);
    guest.node_names = NULL;
    guest.first_of_node = NULL;
    guest.node_of_rank = guest.local_rank_of_rank = NULL;
}

static int make_places(uint32_t size)
{
    guest.node_of_rank = chempi_sys->calloc(size, sizeof(uint32_t));
    guest.local_rank_of_rank = chempi_sys->calloc(size, sizeof(uint32_t));
    guest.first_of_node = chempi_sys->calloc(size, sizeof(uint32_t));
    guest.node_names = chempi_sys->calloc(size, sizeof(char *));
    return guest.node_of_rank && guest.local_rank_of_rank &&
                   guest.first_of_node && guest.node_names
               ? 0
               : -ENOMEM;
}

/* Ranks come in their order, so that nodes are numbered by their first. Most
 * often a rank is where the one before it is. */
static uint32_t find_node(const char *name, uint32_t hint)
{
    if (hint < guest.job.node_count &&
        strcmp(guest.node_names[hint], name) == 0)
        return hint;
    for (uint32_t i = 0; i < guest.job.node_count; i++)
        if (strcmp(guest.node_names[i], name) == 0)
            return i;
    return guest.job.node_count;
}

static int add_node(const char *name, uint32_t rank, struct chempi_err *err)
{
    const uint32_t node = guest.job.node_count;

    if (node == CHEMPI_JOB_NODES_MAX)
        return chempi_err_set(err, -EPROTO, "too many nodes (limit: %u)",
                              CHEMPI_JOB_NODES_MAX);
    guest.node_names[node] = strdup(name);
    if (!guest.node_names[node])
        return chempi_err_set(err, -ENOMEM, "out of memory");
    guest.first_of_node[node] = rank;
    guest.job.node_count++;
    return 0;
}

/* Two hosts of one name would be taken for one. */
static int check_host(const struct who *all, uint32_t rank, uint32_t first,
                      struct chempi_err *err)
{
    if (strcmp(all[rank].host, all[first].host) == 0)
        return 0;
    return chempi_err_set(err, -EINVAL,
                          "ranks %u and %u are both on a node %s, but do not "
                          "share a host, namespaces and a user; give them "
                          "different names in CHEMPI_NODE",
                          first, rank, all[rank].node);
}

static int place_ranks(const struct who *all, struct chempi_err *err)
{
    const uint32_t size = guest.self.size;
    uint32_t node = 0;
    int rc = 0;

    for (uint32_t i = 0; !rc && i < size; i++) {
        node = find_node(all[i].node, node);
        if (node == guest.job.node_count)
            rc = add_node(all[i].node, i, err);
        if (rc)
            return rc;
        guest.node_of_rank[i] = node;
        rc = check_host(all, i, guest.first_of_node[node], err);
    }
    if (rc)
        return rc;
    guest.job.node = guest.node_of_rank[guest.self.rank];
    for (uint32_t k = 0; k < guest.job.node_count; k++) {
        uint32_t local = 0;

        for (uint32_t i = guest.first_of_node[k]; i < size; i++)
            if (guest.node_of_rank[i] == k)
                guest.local_rank_of_rank[i] = local++;
        if (k == guest.job.node)
            guest.job.local_size = local;
    }
    guest.job.local_rank = guest.local_rank_of_rank[guest.self.rank];
    return 0;
}

/* ---- what a node shares -------------------------------------------------- */

static void set_cloexec(const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)fcntl(fds[i], F_SETFD, FD_CLOEXEC); /* they are open */
}

/* H2: [0] is the region, the wake events of the local ranks follow. */
static int bring_all(const struct who *all, const int *fds, uint32_t count,
                     struct chempi_err *err)
{
    int rc = 0;

    for (uint32_t i = guest.self.rank + 1; !rc && i < guest.self.size; i++)
        if (guest.node_of_rank[i] == guest.job.node)
            rc = chempi_handover_bring(all[i].socket, guest.job.secret, fds,
                                       count, err);
    return rc;
}

static int share_as_first(const struct who *all, int *fds, uint32_t count,
                          struct chempi_err *err)
{
    int rc = chempi_share_init(&guest.share, guest.job.local_size, true, err);

    if (rc)
        return rc;
    fds[0] = guest.share.region_fd;
    memcpy(fds + 1, guest.share.wake_fds, (count - 1) * sizeof(*fds));
    set_cloexec(fds, count);
    return bring_all(all, fds, count, err);
}

static int share_as_other(const struct who *me, int listener, int *fds,
                          uint32_t count, struct chempi_err *err)
{
    int rc;

    guest.share.local_size = guest.job.local_size;
    guest.share.wake_fds = chempi_sys->malloc((count - 1) * sizeof(int));
    if (!guest.share.wake_fds)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    memset(guest.share.wake_fds, 0xff, (count - 1) * sizeof(int)); /* -1 */
    rc = chempi_handover_take(listener, me->socket, guest.job.secret, fds,
                              count, err);
    if (rc)
        return rc;
    guest.share.region_fd = fds[0];
    memcpy(guest.share.wake_fds, fds + 1, (count - 1) * sizeof(int));
    return 0;
}

static int share_node(const struct who *all, int listener,
                      struct chempi_err *err)
{
    const uint32_t count = guest.job.local_size + 1;
    int *fds = chempi_sys->calloc(count, sizeof(*fds));
    int rc;

    if (!fds)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    rc = guest.job.local_rank == 0
             ? share_as_first(all, fds, count, err)
             : share_as_other(&all[guest.self.rank], listener, fds, count, err);
    free(fds);
    return rc;
}

static int make_table(struct chempi_err *err)
{
    const char *tables = getenv("CHEMPI_NETWORK");
    const struct chempi_share_nodes nodes = {
        .names = (const char *const *)guest.node_names,
        .count = guest.job.node_count,
        .self = guest.job.node,
        .tables = tables && *tables ? tables : NULL,
    };
    int rc = chempi_share_set_table(&guest.share, &nodes, err);

    if (!rc && guest.share.table_fd >= 0)
        set_cloexec(&guest.share.table_fd, 1);
    return rc;
}

/* ---- opening ------------------------------------------------------------- */

static int check_self(const struct chempi_store_self *self,
                      struct chempi_err *err)
{
    if (self->size == 0 || self->size > CHEMPI_JOB_RANKS_MAX ||
        self->rank >= self->size)
        return chempi_err_set(err, -EPROTO,
                              "the launcher's %s server calls this process "
                              "rank %u of %u",
                              guest.store->name, self->rank, self->size);
    if (self->value_max < 32 || self->value_max > CHEMPI_STORE_VALUE_MAX)
        guest.self.value_max =
            self->value_max < 32 ? 32 : CHEMPI_STORE_VALUE_MAX;
    return 0;
}

static int learn_all(struct who *all, struct chempi_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; !rc && i < guest.self.size; i++)
        if (i != guest.self.rank)
            rc = get_who(i, &all[i]);
    rc = rc ? rc : get_job();
    return rc ? lost(err, "asking about other ranks", rc) : 0;
}

/* H1, and all that follows from it. */
static int meet(struct who *all, int listener, struct chempi_err *err)
{
    int rc = put_who(&all[guest.self.rank]);

    if (!rc && guest.self.rank == 0)
        rc = put_job();
    rc = rc ? rc : fence_blocking();
    if (rc)
        return lost(err, "meeting other ranks", rc);
    rc = learn_all(all, err);
    rc = rc ? rc : place_ranks(all, err);
    rc = rc ? rc : share_node(all, listener, err);
    return rc ? rc : make_table(err);
}

static int describe(struct chempi_err *err)
{
    struct who *all = chempi_sys->calloc(guest.self.size, sizeof(*all));
    struct who *me = all ? &all[guest.self.rank] : NULL;
    int listener;
    int rc;

    if (!all || make_places(guest.self.size)) {
        free(all);
        return chempi_err_set(err, -ENOMEM, "out of memory");
    }
    name_host(me->host);
    rc = name_node(me->node, err);
    listener = rc ? rc : chempi_handover_listen(me->socket, err);
    rc = rc ? rc : listener < 0 ? listener : meet(all, listener, err);
    if (listener >= 0)
        chempi_rights_close_listener(listener);
    free(all);
    return rc;
}

static void fill_job(void)
{
    struct chempi_job *job = &guest.job;

    job->rank = guest.self.rank;
    job->size = guest.self.size;
    job->node_of_rank = guest.node_of_rank;
    job->local_rank_of_rank = guest.local_rank_of_rank;
    job->node_names = (const char *const *)guest.node_names;
    job->app_num = guest.self.app_num;
    job->universe_size =
        guest.self.universe_size ? guest.self.universe_size : guest.self.size;
    job->region_fd = guest.share.region_fd; /* the region closes it */
    job->table_fd = guest.share.table_fd;   /* so does who reads it */
    job->wake_fds = guest.share.wake_fds;
    job->memory_share = UINT64_MAX;
    job->parent = "";
    guest.share.region_fd = guest.share.table_fd = -1;
}

/* Whoever this process starts is not of this job. */
static void leave_mark(void)
{
    (void)setenv("CHEMPI_JOB", guest.job.id, 1);
    (void)unsetenv("PMI_FD"); /* these fail for malformed names only */
}

static void close_guest(void)
{
    if (guest.store && !guest.is_left)
        (void)guest.store->finalize(); /* the last that it hears of us */
    if (guest.store)
        guest.store->close();
    CHEMPI_LIST_FOR_SAFE (pos, &guest.answers) {
        chempi_list_remove(pos);
        free(CHEMPI_CONTAINER_OF(pos, struct answer, link));
    }
    chempi_share_fini(&guest.share);
    free_places();
    sodium_memzero(guest.job.secret, sizeof(guest.job.secret));
    guest.store = NULL;
}

static int open_guest(const struct chempi_entry *entry,
                      const struct chempi_job **job, struct chempi_err *err)
{
    int rc;

    memset(&guest, 0, sizeof(guest));
    guest.share.region_fd = guest.share.table_fd = -1;
    chempi_list_init(&guest.answers);
    if (sodium_init() < 0)
        return chempi_err_set(err, -EIO, "libsodium does not start");
    rc = entry->store->open(&guest.self, err);
    if (rc)
        return rc;
    guest.store = entry->store;
    rc = check_self(&guest.self, err);
    rc = rc ? rc : describe(err);
    if (rc) {
        /* The launcher shall not take it for a good end. */
        guest.is_left = true;
        close_guest();
        return rc;
    }
    fill_job();
    leave_mark();
    *job = &guest.job;
    return 0;
}

/* ---- while it runs ------------------------------------------------------- */

static int fd(void)
{
    return guest.store->fd();
}

static bool needs_fd(void)
{
    return guest.has_fence;
}

static int due_ms(void)
{
    return chempi_list_is_empty(&guest.answers) ? -1 : 0;
}

static int put(const char *key, const void *value, size_t len)
{
    if (len > CHEMPI_KVS_VALUE_MAX)
        return -EMSGSIZE;
    if (guest.has_begun)
        return -EALREADY; /* H3 */
    return put_encoded(key, value, len);
}

static int get(uint32_t rank, const char *key)
{
    struct answer *answer =
        chempi_sys->malloc(sizeof(*answer) + CHEMPI_KVS_VALUE_MAX);
    int rc;

    if (!answer)
        return -ENOMEM;
    answer->rank = rank;
    (void)snprintf(answer->key, sizeof(answer->key), "%s", key);
    answer->len = 0; /* none was published */
    rc = guest.is_left ? -ESHUTDOWN
                       : get_encoded(rank, key, answer->value,
                                     CHEMPI_KVS_VALUE_MAX, &answer->len);
    if (rc && rc != -ENOENT) {
        free(answer);
        return rc;
    }
    chempi_list_append(&guest.answers, &answer->link);
    return 0;
}

/* Of several that are wanted at once (there are none) the last one counts. */
static int fence(uint64_t *number)
{
    int rc = guest.is_left ? -ESHUTDOWN : guest.store->fence();

    if (rc)
        return rc;
    *number = ++guest.entered;
    guest.has_fence = true;
    return 0;
}

static int progress(const struct chempi_client_events *events, void *arg,
                    struct chempi_err *err)
{
    int count = 0;
    int rc = 0;

    CHEMPI_LIST_FOR_SAFE (pos, &guest.answers) {
        struct answer *answer = CHEMPI_CONTAINER_OF(pos, struct answer, link);

        chempi_list_remove(pos);
        events->got(arg, answer->rank, answer->key, answer->value, answer->len);
        free(answer);
        count++;
    }
    if (guest.has_fence)
        rc = guest.store->fenced();
    else if (!guest.is_left)
        rc = guest.store->look();
    if (rc < 0)
        return chempi_err_set(err, -EPIPE,
                              "the launcher is lost: its %s server "
                              "answers with %s",
                              guest.store->name, chempi_err_name(rc));
    if (!guest.has_fence || rc == 0)
        return count;
    guest.has_fence = false;
    guest.passed = guest.entered;
    events->fenced(arg, guest.passed);
    return count + 1;
}

static int begin(struct chempi_err *err)
{
    int rc = guest.has_begun ? 0 : fence_blocking();

    guest.has_begun = true;
    return rc ? lost(err, "the exchange of addresses", rc) : 0;
}

static int end(bool is_for_good)
{
    if (!is_for_good || guest.is_left)
        return 0;
    guest.is_left = true;
    return guest.store->finalize();
}

/*
 * Wait until somebody has read what this process wrote into a pipe, or the
 * limit has passed: a launcher that hears of the end first throws it away.
 */
static void await_reader(int fd)
{
    const struct timespec pause = {.tv_nsec = READER_STEP_NS};
    struct stat st;
    int unread = 0;

    if (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
        return;
    for (int i = 0; i < READER_STEPS; i++) {
        if (ioctl(fd, FIONREAD, &unread) != 0 || unread == 0)
            return;
        (void)nanosleep(&pause, NULL);
    }
}

/* The launcher says that the job was ended, but not why: this process does. */
static int end_job(int exit_code, const char *text)
{
    if (guest.is_left)
        return -ESHUTDOWN;
    if (*text)
        (void)fprintf(stderr, "rank %u on node %s: %s\n", guest.job.rank,
                      guest.node_names[guest.job.node], text);
    else
        (void)fprintf(
            stderr, "rank %u on node %s called MPI_Abort with code %d\n",
            guest.job.rank, guest.node_names[guest.job.node], exit_code);
    (void)fflush(stderr);
    await_reader(STDOUT_FILENO);
    await_reader(STDERR_FILENO);
    return guest.store->abort(exit_code, *text ? text : "MPI_Abort");
}

const struct chempi_entry_ops chempi_guest_ops = {
    .open = open_guest,
    .close = close_guest,
    .fd = fd,
    .needs_fd = needs_fd,
    .due_ms = due_ms,
    .put = put,
    .get = get,
    .fence = fence,
    .progress = progress,
    .is_quiet = chempi_entry_no_question,
    .begin = begin,
    .end = end,
    .abort = end_job,
    .ask_root = chempi_entry_no_root,
    .client = chempi_entry_no_client,
};
