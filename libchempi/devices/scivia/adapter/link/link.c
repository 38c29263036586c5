/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: how the driver of one adapter talks to that of another. A link is a
 * sequenced-packet socket; words are of one size and carry descriptors of
 * memory files where needed. Sockets are in the abstract name space, so that
 * nothing is left behind by a process that is killed.
 *
 * Who connects must belong to the same user, which the kernel says, and know
 * the cookie in the address, which only friends were given.
 */
#define _GNU_SOURCE /* accept4, struct ucred */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/address.h"
#include "common/fd/file.h"
#include "common/fd/rights.h"
#include "libchempi/devices/scivia/adapter/internal.h"
#include "libchempi/services/cma.h"

#define NAME_BYTES 16u
#define BACKLOG 4096
#define READ_MAX 64 /* words of one link and service */

struct address {
    uint32_t magic;
    uint32_t version;
    unsigned char host[CHEMPI_FILE_HOST_BYTES];
    unsigned char name[NAME_BYTES];
    unsigned char cookie[ADAPTER_COOKIE_BYTES];
};
static_assert(sizeof(struct address) == CHEMPI_ADAPTER_ADDRESS_BYTES,
              "address layout");

/* --- addresses --- */

static socklen_t socket_name(const unsigned char name[NAME_BYTES],
                             struct sockaddr_un *out)
{
    char text[sizeof(out->sun_path)] = "chempi-scivia-";
    char *at = text + strlen(text);

    for (unsigned i = 0; i < NAME_BYTES; i++)
        at += snprintf(at, 3, "%02x", name[i]);
    return chempi_address_abstract(text, out);
}

static int open_reserve(void)
{
    return chempi_sys->open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
}

int chempi_adapter_link_listen(struct chempi_adapter *adapter,
                               struct chempi_err *err)
{
    struct address address = {.magic = ADAPTER_MAGIC,
                              .version = ADAPTER_VERSION};
    unsigned char random[NAME_BYTES + ADAPTER_COOKIE_BYTES];
    struct sockaddr_un name;
    socklen_t len;
    int rc = 0;

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return chempi_err_set(err, -EIO, "the kernel gives no random bytes");
    chempi_file_host(address.host);
    memcpy(address.name, random, NAME_BYTES);
    memcpy(address.cookie, random + NAME_BYTES, ADAPTER_COOKIE_BYTES);
    memcpy(adapter->address, &address, sizeof(address));
    len = socket_name(address.name, &name);
    adapter->listen_fd = chempi_sys->socket(
        AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (adapter->listen_fd < 0 ||
        chempi_sys->bind(adapter->listen_fd, (struct sockaddr *)(void *)&name,
                         len) != 0 ||
        chempi_sys->listen(adapter->listen_fd, BACKLOG) != 0)
        rc = chempi_err_set(err, -errno, "cannot listen for other adapters: %s",
                            chempi_err_name(errno));
    if (rc == 0)
        adapter->reserve_fd = open_reserve(); /* without, it is refused late */
    return rc;
}

/* --- making and ending --- */

static struct chempi_adapter_link *allocate(struct chempi_adapter *adapter)
{
    struct chempi_adapter_link *link = chempi_sys->calloc(1, sizeof(*link));

    if (!link)
        (void)ADAPTER_FAIL(adapter, -ENOMEM, "out of memory");
    return link;
}

/* 0 or -errno. */
static int begin(struct chempi_adapter_link *link,
                 struct chempi_adapter *adapter, int fd, enum link_role role)
{
    struct epoll_event event = {.events = EPOLLIN};

    link->source.kind = SOURCE_LINK;
    link->adapter = adapter;
    link->role = role;
    link->fd = fd;
    link->status = -EINPROGRESS;
    link->event_fd = -1;
    link->bounce_fd = -1;
    chempi_list_init(&link->out);
    event.data.ptr = &link->source;
    if (chempi_sys->epoll_ctl(adapter->epoll_fd, EPOLL_CTL_ADD, fd, &event) !=
        0) {
        return ADAPTER_FAIL(adapter, -errno, "cannot watch a link: %s",
                            chempi_err_name(errno));
    }
    chempi_list_append(&adapter->links, &link->link);
    adapter->guest_count += role == LINK_GUEST;
    return 0;
}

static void drop_out(struct chempi_adapter_link *link)
{
    while (!chempi_list_is_empty(&link->out)) {
        struct word_out *out = CHEMPI_CONTAINER_OF(
            chempi_list_first(&link->out), struct word_out, link);

        chempi_list_remove(&out->link);
        for (unsigned i = 0; i < ADAPTER_FDS_MAX; i++) {
            if (out->fds[i] >= 0)
                (void)close(out->fds[i]); /* never written to */
        }
        free(out);
    }
    link->out_count = 0;
}

void chempi_adapter_link_destroy(struct chempi_adapter_link *link)
{
    static const struct word bye = {.type = WORD_BYE};

    if (link->status == 0)
        (void)chempi_adapter_link_say(link, &bye, -1,
                                      -1); /* it sees the end anyway */
    chempi_list_remove(&link->link);
    drop_out(link);
    if (link->fd >= 0)
        (void)close(link->fd); /* what was sent stays readable */
    if (link->event_fd >= 0)
        (void)close(link->event_fd);
    if (link->bounce_fd >= 0)
        (void)close(link->bounce_fd);
    if (link->page)
        (void)chempi_sys->munmap(link->page, link->page_len);
    if (link->bounce)
        (void)chempi_sys->munmap(link->bounce, ADAPTER_BOUNCE_BYTES);
    if (link->peer_bounce)
        (void)chempi_sys->munmap(link->peer_bounce, ADAPTER_BOUNCE_BYTES);
    free(link);
}

void chempi_adapter_link_fail(struct chempi_adapter_link *link, int status)
{
    struct chempi_adapter *adapter = link->adapter;

    if (link->status != 0 && link->status != -EINPROGRESS)
        return;
    if (link->status == -EINPROGRESS && status == -ECONNRESET)
        status = -ECONNREFUSED;
    link->status = status;
    adapter->guest_count -= link->role == LINK_GUEST;
    (void)close(link->fd); /* leaves the epoll set with it */
    link->fd = -1;
    drop_out(link);
    chempi_list_remove(&link->link);
    chempi_list_append(&adapter->downs, &link->link);
    adapter->link_events->down(link);
}

int chempi_adapter_link_report(struct chempi_adapter *adapter)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &adapter->downs) {
        struct chempi_adapter_link *link =
            CHEMPI_CONTAINER_OF(node, struct chempi_adapter_link, link);
        bool is_clean = link->status == -ESHUTDOWN;

        chempi_list_remove(&link->link);
        events++;
        if (link->role == LINK_DIALLED) {
            /* The caller has its handle: it stays until the adapter goes. */
            chempi_list_append(&adapter->links, &link->link);
            if (adapter->events.down)
                adapter->events.down(adapter->arg, link, is_clean,
                                     link->status);
            continue;
        }
        if (link->role == LINK_SERVED && adapter->events.left)
            adapter->events.left(adapter->arg, link->user, is_clean);
        chempi_adapter_link_destroy(link);
    }
    return events;
}

int chempi_adapter_link_open(struct chempi_adapter *adapter, const void *bytes,
                             size_t len, void *tag,
                             struct chempi_adapter_link **out)
{
    struct word hello = {.type = WORD_HELLO, .arg = adapter->user};
    struct chempi_adapter_link *link;
    struct sockaddr_un name;
    struct address address;
    struct address own;
    socklen_t name_len;
    int fd;
    int rc;

    memcpy(&own, adapter->address, sizeof(own));
    if (len != sizeof(address))
        return ADAPTER_FAIL(adapter, -EINVAL,
                            "an address of %zu bytes; expected %zu", len,
                            sizeof(address));
    memcpy(&address, bytes, sizeof(address));
    if (address.magic != ADAPTER_MAGIC || address.version != ADAPTER_VERSION)
        return ADAPTER_FAIL(adapter, -EINVAL,
                            "not the address of an adapter of this version");
    if (memcmp(address.host, own.host, sizeof(own.host)) != 0)
        return ADAPTER_FAIL(adapter, -EHOSTUNREACH,
                            "the adapter is on another host (or in another "
                            "network name space); emulated adapters reach "
                            "each other on one host only");
    link = allocate(adapter);
    if (!link)
        return -ENOMEM;
    name_len = socket_name(address.name, &name);
    fd = chempi_sys->socket(AF_UNIX,
                            SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || chempi_sys->connect(fd, (struct sockaddr *)(void *)&name,
                                      name_len) != 0) {
        int code = -errno;

        if (fd >= 0)
            (void)close(fd); /* not connected */
        free(link);
        return ADAPTER_FAIL(adapter, code, "cannot reach the adapter: %s",
                            chempi_err_name(code));
    }
    rc = begin(link, adapter, fd, LINK_DIALLED);
    if (rc < 0) {
        (void)close(fd); /* nothing was sent */
        free(link);
        return rc;
    }
    link->tag = tag;
    memcpy(link->address, bytes, sizeof(address));
    memcpy(hello.bytes, &own, sizeof(own));
    /* The cookie proves that we were given the address. */
    memcpy(&hello.a, address.cookie, sizeof(hello.a));
    memcpy(&hello.b, address.cookie + sizeof(hello.a), sizeof(hello.b));
    (void)chempi_adapter_link_say(link, &hello, adapter->page_fd,
                                  adapter->event_fd);
    *out = link;
    return 0;
}

void chempi_adapter_link_close(struct chempi_adapter_link *link)
{
    assert(link->role == LINK_DIALLED && link->fd < 0);
    chempi_adapter_link_destroy(link);
}

void *chempi_adapter_link_tag(const struct chempi_adapter_link *link)
{
    return link->tag;
}

int chempi_adapter_link_state(const struct chempi_adapter_link *link)
{
    return link->status;
}

/* The kernel's word on who is at the other end. */
static int find_peer(int fd, pid_t *pid)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        return -errno;
    if (cred.uid != geteuid())
        return -EPERM;
    *pid = cred.pid;
    return 0;
}

/* Descriptors are short: give the reserve up for a moment, so that whoever
 * asks sees an end, and does not keep the listener readable for ever. */
static void refuse(struct chempi_adapter *adapter)
{
    int fd;

    if (adapter->reserve_fd >= 0)
        (void)close(adapter->reserve_fd); /* nothing is in it */
    fd = chempi_sys->accept4(adapter->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        chempi_rights_close(fd); /* it may be anybody's */
    adapter->reserve_fd = open_reserve();
}

/* Anybody can connect. Friends send descriptors with their first word, so the
 * kernel cannot refuse them; who is none has its connection closed unread. */
void chempi_adapter_link_accept(struct chempi_adapter *adapter)
{
    struct chempi_adapter_link *link = allocate(adapter);
    int fd;

    if (!link && chempi_shortage_may_wait(&adapter->shortage))
        return; /* it is still there the next time */
    if (!link) {
        refuse(adapter);
        return;
    }
    chempi_shortage_end(&adapter->shortage);
    fd = chempi_sys->accept4(adapter->listen_fd, NULL, NULL,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        refuse(adapter);
    if (fd >= 0 && find_peer(fd, &link->pid) == 0 &&
        adapter->guest_count < ADAPTER_GUEST_MAX &&
        begin(link, adapter, fd, LINK_GUEST) == 0)
        return;
    free(link);
    if (fd >= 0)
        chempi_rights_close(fd); /* it will see the end */
}

/* --- sending --- */

/* 0 or -errno. */
static int send_word(int fd, const struct word *word, const int *fds)
{
    size_t count = 0;

    while (count < ADAPTER_FDS_MAX && fds[count] >= 0)
        count++;
    return chempi_rights_send_fds(fd, word, sizeof(*word), fds, count,
                                  MSG_DONTWAIT) < 0
               ? -errno
               : 0;
}

static bool is_closed(int rc)
{
    return rc == -EPIPE || rc == -ECONNRESET;
}

static void set_events(struct chempi_adapter_link *link, uint32_t events)
{
    struct epoll_event event = {.events = events,
                                .data = {.ptr = &link->source}};

    if (chempi_sys->epoll_ctl(link->adapter->epoll_fd, EPOLL_CTL_MOD, link->fd,
                              &event) != 0)
        chempi_adapter_link_fail(link, -errno);
}

static int queue_word(struct chempi_adapter_link *link, const struct word *word,
                      const int *fds)
{
    struct word_out *out;

    if (link->out_count == ADAPTER_OUT_MAX)
        return -ENOBUFS;
    out = chempi_sys->calloc(1, sizeof(*out));
    if (!out)
        return -ENOMEM;
    out->word = *word;
    for (unsigned i = 0; i < ADAPTER_FDS_MAX; i++)
        out->fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
    chempi_list_append(&link->out, &out->link);
    link->out_count++;
    if (!link->wants_out) {
        link->wants_out = true;
        set_events(link, EPOLLIN | EPOLLOUT);
    }
    return 0;
}

int chempi_adapter_link_say(struct chempi_adapter_link *link,
                            const struct word *word, int fd0, int fd1)
{
    const int fds[ADAPTER_FDS_MAX] = {fd0, fd1};
    int rc = -EAGAIN;

    if (link->fd < 0)
        return -ENOTCONN;
    if (chempi_list_is_empty(&link->out))
        rc = send_word(link->fd, word, fds);
    if (rc == -EAGAIN || rc == -EINTR)
        rc = queue_word(link, word, fds);
    /* Of an end that is closed, the last words are still to be read. */
    if (rc < 0 && !is_closed(rc))
        chempi_adapter_link_fail(link, rc);
    return rc < 0 ? -ENOTCONN : 0;
}

static void flush_out(struct chempi_adapter_link *link)
{
    while (!chempi_list_is_empty(&link->out)) {
        struct word_out *out = CHEMPI_CONTAINER_OF(
            chempi_list_first(&link->out), struct word_out, link);
        int rc = send_word(link->fd, &out->word, out->fds);

        if (rc == -EAGAIN || rc == -EINTR)
            return;
        if (is_closed(rc)) {
            drop_out(link);
            break;
        }
        if (rc < 0) {
            chempi_adapter_link_fail(link, rc);
            return;
        }
        for (unsigned i = 0; i < ADAPTER_FDS_MAX; i++) {
            if (out->fds[i] >= 0)
                (void)close(out->fds[i]); /* the kernel has its own */
        }
        chempi_list_remove(&out->link);
        free(out);
        link->out_count--;
    }
    link->wants_out = false;
    set_events(link, EPOLLIN);
}

/* --- receiving --- */

/* Take over the other side's page and event. Closes the descriptors. */
static int greet(struct chempi_adapter_link *link, int page_fd, int event_fd)
{
    struct chempi_adapter *adapter = link->adapter;
    void *memory = NULL;
    int rc;

    rc = find_peer(link->fd, &link->pid);
    if (rc == 0)
        rc = chempi_adapter_map_foreign(adapter, page_fd,
                                        sizeof(struct adapter_page),
                                        &link->page_len, &memory);
    else if (page_fd >= 0)
        (void)close(page_fd); /* not wanted */
    link->event_fd = event_fd;
    if (rc < 0)
        return rc;
    link->page = memory;
    link->region_max = link->page->region_max;
    link->is_ordered =
        link->page->has_barrier == 1 && link->adapter->is_registered;
    if (event_fd < 0 || link->page->magic != ADAPTER_MAGIC ||
        link->page->version != ADAPTER_VERSION ||
        link->region_max > CHEMPI_TPT_REGION_MAX ||
        link->page_len < sizeof(struct adapter_page) +
                             link->region_max * sizeof(struct chempi_tpt_entry))
        return -EPROTO;
    link->is_cma_refused =
        chempi_cma_probe(link->pid,
                         (const void *)(uintptr_t)link->page->probe_addr,
                         (unsigned char)link->page->probe_value) != 0;
    link->status = 0;
    return 0;
}

static void hear_hello(struct chempi_adapter_link *link,
                       const struct word *word, const int *fds)
{
    struct chempi_adapter *adapter = link->adapter;
    const struct word welcome = {.type = WORD_WELCOME};
    struct address own;
    int rc;

    memcpy(&own, adapter->address, sizeof(own));
    if (memcmp(own.cookie, &word->a, sizeof(word->a)) != 0 ||
        memcmp(own.cookie + sizeof(word->a), &word->b, sizeof(word->b)) != 0) {
        for (unsigned i = 0; i < ADAPTER_FDS_MAX; i++)
            (void)close(fds[i]); /* a stranger's */
        chempi_adapter_link_fail(link, -EPERM);
        return;
    }
    adapter->guest_count--;
    link->role = LINK_SERVED;
    link->user = word->arg;
    memcpy(link->address, word->bytes, sizeof(link->address));
    rc = greet(link, fds[0], fds[1]);
    if (rc < 0) {
        link->role = LINK_GUEST; /* nobody was told */
        adapter->guest_count++;
        chempi_adapter_link_fail(link, rc);
        return;
    }
    if (adapter->events.reached &&
        !adapter->events.reached(adapter->arg, link->user, link->address))
        chempi_adapter_link_fail(link, -ENOMEM); /* it is asked for again */
    else
        (void)chempi_adapter_link_say(link, &welcome, adapter->page_fd,
                                      adapter->event_fd); /* else down */
}

static void hear_welcome(struct chempi_adapter_link *link, const int *fds)
{
    struct chempi_adapter *adapter = link->adapter;
    int rc = greet(link, fds[0], fds[1]);

    if (rc < 0)
        chempi_adapter_link_fail(link, rc);
    else if (adapter->events.up)
        adapter->events.up(adapter->arg, link);
}

/* How many descriptors belong to a word. */
static size_t fds_of(uint32_t type, const struct word *word)
{
    switch (type) {
    case WORD_HELLO:
    case WORD_WELCOME:
        return 2;
    case WORD_SEG_ANSWER:
    case WORD_VI_ANSWER:
        return word->status == 0;
    case WORD_VI_REQUEST:
        return 1;
    case WORD_BOUNCE:
        return word->reserved == 1;
    default:
        return 0;
    }
}

static void hear(struct chempi_adapter_link *link, const struct word *word,
                 const int *fds, size_t fd_count)
{
    bool is_good = fd_count == fds_of(word->type, word);

    if (is_good && link->role == LINK_GUEST && word->type == WORD_HELLO) {
        hear_hello(link, word, fds);
        return;
    }
    if (is_good && link->role == LINK_DIALLED && word->type == WORD_WELCOME &&
        link->status == -EINPROGRESS) {
        hear_welcome(link, fds);
        return;
    }
    if (is_good && link->status == 0 &&
        link->adapter->link_events->hear(link, word, fds[0]))
        return;
    for (size_t i = 0; i < fd_count; i++)
        (void)close(fds[i]); /* not wanted */
    chempi_adapter_link_fail(link, -EPROTO);
}

/* 1: a word was handled; 0: there is none. */
static int read_word(struct chempi_adapter_link *link)
{
    int fds[ADAPTER_FDS_MAX] = {-1, -1};
    struct word word;
    size_t fd_count;
    const ssize_t n =
        chempi_rights_recv_fds(link->fd, &word, sizeof(word), fds,
                               ADAPTER_FDS_MAX, &fd_count, MSG_DONTWAIT);

    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return 0;
        /* Said once when the other side had not read all; its own last words
         * follow, and then its end. */
        if (errno != ECONNRESET)
            chempi_adapter_link_fail(link, -errno);
        return 1;
    }
    if (n == (ssize_t)sizeof(word)) {
        hear(link, &word, fds, fd_count);
        return 1;
    }
    for (size_t i = 0; i < fd_count; i++)
        (void)close(fds[i]); /* not wanted */
    chempi_adapter_link_fail(link, n == 0 ? -ECONNRESET : -EPROTO);
    return 1;
}

int chempi_adapter_link_ready(struct chempi_adapter_link *link, uint32_t events)
{
    int count = 0;

    if (events & EPOLLOUT)
        flush_out(link);
    /* A link that fails is not freed before it is reported. */
    while (link->fd >= 0 && count < READ_MAX && read_word(link) > 0)
        count++;
    return count + ((events & EPOLLOUT) != 0);
}
