/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes with an emulated adapter each, without MPI, as a user of the
 * installed library would write it: a remote store into a segment, an RDMA
 * write into registered memory, and what the card refuses.
 */
#define _GNU_SOURCE /* socketpair, poll */
#include <chempi/adapter.h>
#include <chempi/sci.h>
#include <chempi/via.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define SEGMENT 7
#define TAG 1234u
#define WAIT_MS                                                                \
    1000 /* then look again; nothing is expected to take so long               \
          */

static const char stored[] = "stored by the processor";
static const char written[] = "written by the card";

static void die(struct chempi_adapter *adapter, const char *what)
{
    (void)fprintf(stderr, "pair: %s: %s\n", what,
                  adapter ? chempi_adapter_words(adapter)->text : "");
    exit(1);
}

static struct chempi_adapter *open_adapter(uint32_t user)
{
    const struct chempi_adapter_params params = {
        .user = user,
        .lock_budget_bytes = 4 * PAGE,
    };
    struct chempi_adapter *adapter;
    struct chempi_err err = {.text = ""};

    if (chempi_adapter_open(&params, &adapter, &err) < 0) {
        (void)fprintf(stderr, "pair: %s\n", err.text);
        exit(1);
    }
    return adapter;
}

/* Let the driver work; sleeps until there is something to do. */
static void serve(struct chempi_adapter *adapter)
{
    struct pollfd item = {.fd = chempi_adapter_fd(adapter), .events = POLLIN};

    if (!chempi_adapter_is_busy(adapter))
        (void)poll(&item, 1, WAIT_MS);
    (void)chempi_adapter_service(adapter);
}

struct offer {
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];
    uint64_t at; /* RDMA */
    uint32_t handle;
};

static void put(int fd, const void *data, size_t len)
{
    if (write(fd, data, len) != (ssize_t)len)
        exit(1);
}

static void get(int fd, void *data, size_t len)
{
    if (read(fd, data, len) != (ssize_t)len)
        exit(1);
}

/* Exports a segment and registered memory, and waits for both to be filled. */
static int target(int fd)
{
    struct chempi_adapter *adapter = open_adapter(1);
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION};
    struct chempi_sci_segment *segment;
    struct chempi_via_request *request;
    struct chempi_via_vi *vi;
    struct offer offer;
    char *memory = aligned_alloc(PAGE, 8 * PAGE);
    uint32_t handle;
    char word;

    if (!memory ||
        chempi_sci_segment_create(adapter, SEGMENT, PAGE, TAG, &segment) < 0 ||
        chempi_sci_segment_prepare(segment) < 0 ||
        chempi_sci_segment_set_available(segment) < 0)
        die(adapter, "segment");
    if (chempi_via_ptag_create(adapter, &attributes.ptag) < 0 ||
        chempi_via_register(adapter, memory, PAGE, attributes.ptag,
                            CHEMPI_VIA_ENABLE_WRITE, &offer.handle) < 0)
        die(adapter, "registration");
    /* More than the budget of locked memory. */
    if (chempi_via_register(adapter, memory, 8 * PAGE, attributes.ptag, 0,
                            &handle) != -ENOSPC)
        die(adapter, "a registration beyond the budget");
    chempi_adapter_address(adapter, offer.address);
    offer.at = (uint64_t)(uintptr_t)memory;
    put(fd, &offer, sizeof(offer));
    while (!(request = chempi_via_connect_next(adapter)))
        serve(adapter);
    if (chempi_via_vi_create(adapter, &attributes, &vi) < 0 ||
        chempi_via_connect_accept(request, vi) < 0)
        die(adapter, "connection");
    get(fd, &word, 1);
    if (strcmp(chempi_sci_segment_memory(segment), stored) != 0 ||
        strcmp(memory, written) != 0)
        die(NULL, "what arrived is not what was sent");
    chempi_adapter_close(adapter);
    free(memory);
    return 0;
}

static void store(struct chempi_adapter *adapter,
                  struct chempi_adapter_link *link)
{
    struct chempi_sci_remote *remote;
    int rc;

    if (chempi_sci_connect(link, SEGMENT, TAG + 1, &remote) < 0)
        die(adapter, "connect");
    while ((rc = chempi_sci_state(remote)) == -EINPROGRESS)
        serve(adapter);
    if (rc != -EACCES)
        die(adapter, "a connection with another tag");
    chempi_sci_disconnect(remote);
    if (chempi_sci_connect(link, SEGMENT, TAG, &remote) < 0)
        die(adapter, "connect");
    while ((rc = chempi_sci_state(remote)) == -EINPROGRESS)
        serve(adapter);
    if (rc < 0 ||
        chempi_sci_copy_surely(remote, 0, stored, sizeof(stored), 10) < 0)
        die(adapter, "store");
}

static void write_remotely(struct chempi_adapter *adapter,
                           struct chempi_adapter_link *link,
                           const struct offer *offer)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION};
    struct chempi_via_descriptor descriptor = {
        .op = CHEMPI_VIA_RDMA_WRITE,
        .segment_count = 1,
        .remote_addr = offer->at,
        .remote_handle = offer->handle,
    };
    struct chempi_via_vi *vi;
    char *memory = aligned_alloc(PAGE, PAGE);

    if (!memory || chempi_via_ptag_create(adapter, &attributes.ptag) < 0 ||
        chempi_via_register(adapter, memory, PAGE, attributes.ptag, 0,
                            &descriptor.segments[0].handle) < 0)
        die(adapter, "registration");
    (void)memcpy(memory, written, sizeof(written));
    descriptor.segments[0].addr = memory;
    descriptor.segments[0].len = sizeof(written);
    if (chempi_via_vi_create(adapter, &attributes, &vi) < 0 ||
        chempi_via_connect_request(vi, link, 0) < 0)
        die(adapter, "connection");
    while (chempi_via_vi_state(vi) == CHEMPI_VIA_CONNECTING)
        serve(adapter);
    if (chempi_via_post_send(vi, &descriptor) < 0)
        die(adapter, "post");
    while (!chempi_via_send_done(vi))
        serve(adapter);
    if (descriptor.status != 0 || descriptor.length != sizeof(written))
        die(adapter, "RDMA write");
    chempi_via_vi_destroy(vi);
    free(memory);
}

static int source(int fd)
{
    struct chempi_adapter *adapter = open_adapter(0);
    struct chempi_adapter_link *link;
    struct offer offer;

    get(fd, &offer, sizeof(offer));
    if (chempi_adapter_link_open(adapter, offer.address, sizeof(offer.address),
                                 NULL, &link) < 0)
        die(adapter, "link");
    while (chempi_adapter_link_state(link) == -EINPROGRESS)
        serve(adapter);
    store(adapter, link);
    write_remotely(adapter, link, &offer);
    put(fd, "x", 1);
    chempi_adapter_close(adapter);
    return 0;
}

int main(void)
{
    int status = 1;
    int fds[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        return 1;
    child = fork();
    if (child < 0)
        return 1;
    if (child == 0) {
        (void)close(fds[0]); /* so that the other's end is seen */
        _exit(target(fds[1]));
    }
    (void)close(fds[1]);
    if (source(fds[0]) != 0 || waitpid(child, &status, 0) != child ||
        status != 0)
        return 1;
    (void)printf("ok\n");
    return 0;
}
