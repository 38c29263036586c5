/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapters of several processes: death, sleep, and what is left behind. */
#define _GNU_SOURCE /* poll, kill */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/scivia/duo.h"

/* What both processes see. */
struct board {
    unsigned char addresses[2][CHEMPI_ADAPTER_ADDRESS_BYTES];
    _Atomic int steps[4];
};

static struct board *board;

static void make_board(void)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(board, MAP_FAILED);
}

static void serve_until(struct side *side, _Atomic int *step)
{
    struct pollfd item = {.fd = chempi_adapter_fd(side->adapter),
                          .events = POLLIN};

    while (*step == 0) {
        (void)poll(&item, 1, 10);
        (void)chempi_adapter_service(side->adapter);
    }
}

/* The child: exports a segment, connects to nothing, dies when told. */
static void export_and_die(struct duo *duo)
{
    struct chempi_sci_segment *segment;

    (void)alarm(120);
    duo_open_side(duo, &duo->b, 2);
    if (chempi_sci_segment_create(duo->b.adapter, 7, 4096, 99, &segment) ||
        chempi_sci_segment_prepare(segment) ||
        chempi_sci_segment_set_available(segment))
        _exit(1);
    chempi_adapter_address(duo->b.adapter, board->addresses[1]);
    board->steps[0] = 1;
    serve_until(&duo->b, &board->steps[1]);
    if (*(int *)chempi_sci_segment_memory(segment) != 4711)
        _exit(2);
    (void)raise(SIGKILL);
}

static void wait_for_step(int step)
{
    while (board->steps[step] == 0)
        (void)poll(NULL, 0, 1);
}

static void serve_once(struct side *side)
{
    struct pollfd item = {.fd = chempi_adapter_fd(side->adapter),
                          .events = POLLIN};

    (void)poll(&item, 1, 10000);
    (void)chempi_adapter_service(side->adapter);
}

Test(process, the_owners_death_invalidates_what_it_exported, .timeout = 60)
{
    struct chempi_sci_remote *remote = NULL;
    struct chempi_adapter_link *link;
    struct duo duo;
    int number = 4711;
    int status;
    pid_t child;

    make_board();
    duo_init(&duo);
    child = fork();
    if (child == 0) {
        export_and_die(&duo);
        _exit(3);
    }
    wait_for_step(0);
    duo_open_side(&duo, &duo.a, 1);
    cr_assert_eq(chempi_adapter_link_open(duo.a.adapter, board->addresses[1],
                                          CHEMPI_ADAPTER_ADDRESS_BYTES, NULL,
                                          &link),
                 0);
    while (duo.a.up == 0)
        serve_once(&duo.a);
    cr_assert_eq(chempi_sci_connect(link, 7, 99, &remote), 0);
    while (chempi_sci_state(remote) == -EINPROGRESS)
        serve_once(&duo.a);
    cr_assert_eq(chempi_sci_state(remote), 0);
    cr_assert_eq(chempi_sci_copy_surely(remote, 0, &number, sizeof(number), 1),
                 0);
    board->steps[1] = 1;
    while (duo.a.down == 0)
        serve_once(&duo.a);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    cr_expect(!duo.a.was_clean);
    cr_expect_eq(duo.a.down_status, -ECONNRESET);
    cr_expect_eq(chempi_sci_state(remote), -ENOTCONN);
    cr_expect_eq(chempi_sci_copy(remote, 0, &number, sizeof(number)),
                 -ENOTCONN);
    cr_expect_eq(chempi_sci_interrupt_trigger(link, 0), -ENOTCONN);
    /* Nothing is left under its name. */
    cr_expect_eq(chempi_adapter_link_open(duo.a.adapter, board->addresses[1],
                                          CHEMPI_ADAPTER_ADDRESS_BYTES, NULL,
                                          &link),
                 -ECONNREFUSED);
    chempi_adapter_close(duo.a.adapter);
}

/* The child: a VI that takes one message, then dies with receives posted. */
static void receive_and_die(struct duo *duo)
{
    static unsigned char buffer[50000];
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct chempi_via_descriptor recv[2];
    struct chempi_via_request *request;
    struct chempi_via_vi *vi;
    uint32_t handle;

    (void)alarm(120);
    duo_open_side(duo, &duo->b, 2);
    (void)chempi_via_ptag_create(duo->b.adapter, &attributes.ptag);
    if (chempi_via_vi_create(duo->b.adapter, &attributes, &vi) ||
        chempi_via_register(duo->b.adapter, buffer, sizeof(buffer),
                            attributes.ptag, 0, &handle))
        _exit(1);
    for (unsigned i = 0; i < 2; i++) {
        recv[i] =
            duo_descriptor(CHEMPI_VIA_RECEIVE, buffer, sizeof(buffer), handle);
        if (chempi_via_post_recv(vi, &recv[i]))
            _exit(2);
    }
    chempi_adapter_address(duo->b.adapter, board->addresses[1]);
    board->steps[0] = 1;
    while (!(request = chempi_via_connect_next(duo->b.adapter)))
        serve_once(&duo->b);
    if (chempi_via_connect_accept(request, vi))
        _exit(3);
    if (chempi_via_recv_wait(vi, 20000) != &recv[0] ||
        recv[0].length != sizeof(buffer) || buffer[49999] != 0xab)
        _exit(4);
    (void)raise(SIGKILL);
}

Test(process, a_message_crosses_and_then_the_connection_dies, .timeout = 60)
{
    static unsigned char buffer[50000];
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct chempi_via_descriptor d;
    struct chempi_via_vi *vi;
    struct chempi_adapter_link *link;
    struct duo duo;
    uint32_t handle;
    int status;
    pid_t child;

    make_board();
    duo_init(&duo);
    child = fork();
    if (child == 0) {
        receive_and_die(&duo);
        _exit(5);
    }
    wait_for_step(0);
    duo_open_side(&duo, &duo.a, 1);
    cr_assert_eq(chempi_adapter_link_open(duo.a.adapter, board->addresses[1],
                                          CHEMPI_ADAPTER_ADDRESS_BYTES, NULL,
                                          &link),
                 0);
    while (duo.a.up == 0)
        serve_once(&duo.a);
    cr_assert_eq(chempi_via_ptag_create(duo.a.adapter, &attributes.ptag), 0);
    cr_assert_eq(chempi_via_vi_create(duo.a.adapter, &attributes, &vi), 0);
    cr_assert_eq(chempi_via_register(duo.a.adapter, buffer, sizeof(buffer),
                                     attributes.ptag, 0, &handle),
                 0);
    cr_assert_eq(chempi_via_connect_request(vi, link, 0), 0);
    while (chempi_via_vi_state(vi) == CHEMPI_VIA_CONNECTING)
        serve_once(&duo.a);
    memset(buffer, 0xab, sizeof(buffer));
    d = duo_descriptor(CHEMPI_VIA_SEND, buffer, sizeof(buffer), handle);
    cr_assert_eq(chempi_via_post_send(vi, &d), 0);
    cr_assert_eq(chempi_via_send_wait(vi, 20000), &d);
    cr_expect_eq(d.status, 0);
    while (duo.a.down == 0)
        serve_once(&duo.a);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    cr_expect_eq(chempi_via_vi_state(vi), CHEMPI_VIA_ERROR);
    cr_expect_eq(duo.a.errors, 1);
    cr_assert_eq(chempi_via_post_send(vi, &d), 0);
    cr_assert_eq(chempi_via_send_done(vi), &d);
    cr_expect_eq(d.status, -ECONNRESET);
    chempi_adapter_close(duo.a.adapter);
}

/* How often this thread has gone to sleep. */
static long sleeps(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* The child triggers when told. */
static void trigger_later(struct duo *duo)
{
    struct chempi_adapter_link *link;

    (void)alarm(120);
    duo_open_side(duo, &duo->b, 2);
    if (chempi_adapter_link_open(duo->b.adapter, board->addresses[0],
                                 CHEMPI_ADAPTER_ADDRESS_BYTES, NULL, &link))
        _exit(1);
    while (duo->b.up == 0)
        serve_once(&duo->b);
    board->steps[0] = 1;
    wait_for_step(1);
    (void)poll(NULL, 0, 200); /* the other one sleeps meanwhile */
    if (chempi_sci_interrupt_trigger(link, 5))
        _exit(2);
    wait_for_step(2);
    _exit(0);
}

Test(process, who_waits_for_an_interrupt_sleeps, .timeout = 60)
{
    struct duo duo;
    long before;
    int status;
    pid_t child;

    make_board();
    duo_init(&duo);
    duo_open_side(&duo, &duo.a, 1);
    cr_assert_eq(chempi_sci_interrupt_create(duo.a.adapter, 5), 0);
    chempi_adapter_address(duo.a.adapter, board->addresses[0]);
    child = fork();
    if (child == 0)
        trigger_later(&duo);
    serve_until(&duo.a, &board->steps[0]);
    before = sleeps();
    board->steps[1] = 1;
    cr_expect_eq(chempi_sci_interrupt_wait(duo.a.adapter, 5, 20000), 0);
    /* It slept once or so, and did not look at the clock in between. */
    cr_expect_lt(sleeps() - before, 20);
    board->steps[2] = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    chempi_adapter_close(duo.a.adapter);
}
