/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's place in the tree: combining, finding ways, losing children. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chempid/tree/hub.h"
#include "common/control/client.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"

/* What went where, as words. */
static char trace[1024];

static void note(const char *where, unsigned child, unsigned type, size_t len)
{
    const size_t used = strlen(trace);

    (void)snprintf(trace + used, sizeof(trace) - used, "%s%u:%u/%zu ", where,
                   child, type, len);
}

static void up(void *arg, uint16_t type, const void *data, size_t len)
{
    (void)arg;
    (void)data;
    note("up", 0, type, len);
}

static void down(void *arg, uint32_t child, uint16_t type, const void *data,
                 size_t len)
{
    (void)arg;
    (void)data;
    note("down", child, type, len);
}

static const struct chempi_hub_ops ops = {.up = up, .down = down};
static struct chempi_hub hub;

/* Nodes 0..4: 1 below child 0; 2 and 3 below child 1; 0 and 4 above. */
static void set_up(void)
{
    cr_assert_eq(chempi_hub_init(&hub, 5, 2, &ops, NULL), 0);
    cr_assert_eq(chempi_hub_add(&hub, (uint32_t[]){1}, 1), 0);
    cr_assert_eq(chempi_hub_add(&hub, (uint32_t[]){2, 3}, 2), 1);
    trace[0] = '\0';
}

static void tear_down(void)
{
    chempi_hub_fini(&hub);
}

TestSuite(hub, .init = set_up, .fini = tear_down);

static int take(uint32_t child, uint16_t type, const struct chempi_writer *w)
{
    const struct chempi_frame f = {
        .type = type, .data = w->data, .len = (uint32_t)w->len};

    return chempi_hub_take(&hub, child, &f, NULL);
}

static int take_u32(uint32_t child, uint16_t type, uint32_t value)
{
    struct chempi_writer w = {0};
    int rc;

    chempi_wire_put_u32(&w, value);
    rc = take(child, type, &w);
    chempi_wire_clear(&w);
    return rc;
}

static int take_fence(uint32_t child, uint64_t value)
{
    struct chempi_writer w = {0};
    int rc;

    chempi_wire_put_u64(&w, value);
    rc = take(child, CHEMPI_MSG_ENTERED, &w);
    chempi_wire_clear(&w);
    return rc;
}

Test(hub, counts_go_up_once_when_all_below_have_reported)
{
    cr_assert_eq(take_u32(0, CHEMPI_MSG_STARTED, 1), 0);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_STARTED, 1), 0);
    cr_assert_str_eq(trace, "");
    cr_assert_eq(take_u32(1, CHEMPI_MSG_STARTED, 1), 0);
    cr_assert_str_eq(trace, "up0:32/4 ");
}

Test(hub, a_child_cannot_report_more_nodes_than_it_has)
{
    cr_assert_eq(take_u32(1, CHEMPI_MSG_DONE, 3), -EBADMSG);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_DONE, 2), 0);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_DONE, 1), -EBADMSG);
}

Test(hub, a_fence_goes_up_when_the_last_child_enters)
{
    cr_assert_eq(take_fence(0, 1), 0);
    cr_assert_eq(take_fence(0, 2), 0);
    cr_assert_str_eq(trace, "");
    cr_assert_eq(take_fence(1, 1), 0);
    cr_assert_str_eq(trace, "up0:37/8 ");
    cr_assert_eq(take_fence(1, 2), 0);
    cr_assert_str_eq(trace, "up0:37/8 up0:37/8 ");
    cr_assert_eq(take_fence(1, 4), -EBADMSG);
}

Test(hub, questions_to_the_root_come_from_nodes_below)
{
    cr_assert_eq(take_u32(0, CHEMPI_MSG_ROOT_REQUEST, 2), -EBADMSG);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_ROOT_REQUEST, 2), 0);
    cr_assert_str_eq(trace, "up0:62/4 ");
}

static int pass(bool from_above, uint32_t child, uint32_t node)
{
    struct chempi_writer w = {0};
    int rc;

    chempi_wire_put_u32(&w, node);
    trace[0] = '\0';
    rc = from_above
             ? chempi_hub_down(&hub, CHEMPI_MSG_ANSWER, w.data, w.len, NULL)
             : take(child, CHEMPI_MSG_ANSWER, &w);
    chempi_wire_clear(&w);
    return rc;
}

Test(hub, addressed_messages_find_their_way)
{
    cr_assert_eq(pass(false, 0, 3), 0);
    cr_assert_str_eq(trace, "down1:61/4 ");
    cr_assert_eq(pass(false, 0, 4), 0);
    cr_assert_str_eq(trace, "up0:61/4 ");
    cr_assert_eq(pass(true, 0, 1), 0);
    cr_assert_str_eq(trace, "down0:61/4 ");
    cr_assert_eq(pass(true, 0, 4), -EBADMSG, "it would go round in a circle");
    cr_assert_eq(pass(true, 0, 5), -EBADMSG);
}

Test(hub, a_child_speaks_for_its_own_nodes_only)
{
    cr_assert_eq(take_u32(0, CHEMPI_MSG_OUTPUT, 2), -EBADMSG);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_OUTPUT, 2), 0);
    cr_assert_str_eq(trace, "up0:33/4 ");
}

Test(hub, orders_reach_all_children_that_are_left)
{
    chempi_hub_lose(&hub, 0, "gone");
    trace[0] = '\0';
    cr_assert_eq(chempi_hub_down(&hub, CHEMPI_MSG_KILL, NULL, 0, NULL), 0);
    cr_assert_str_eq(trace, "down1:52/0 ");
}

Test(hub, a_lost_child_is_reported_once_and_counts_as_gone)
{
    cr_assert_eq(take_u32(1, CHEMPI_MSG_STARTED, 2), 0);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_DONE, 2), 0);
    chempi_hub_lose(&hub, 0, "gone");
    cr_assert_str_eq(trace, "up0:36/13 up0:32/4 up0:39/4 ");
    trace[0] = '\0';
    chempi_hub_lose(&hub, 0, "gone");
    cr_assert_str_eq(trace, "");
    cr_assert_not(chempi_hub_is_over(&hub));
    chempi_hub_leave(&hub, 1);
    cr_assert_str_eq(trace, "up0:40/4 ");
    cr_assert(chempi_hub_is_over(&hub));
}

Test(hub, all_are_asked_where_their_ranks_wait)
{
    cr_assert_eq(chempi_hub_down(&hub, CHEMPI_MSG_LOCATE, "abc", 4, NULL), 0);
    cr_assert_str_eq(trace, "down0:56/4 down1:56/4 ");
    trace[0] = '\0';
    cr_assert_eq(take_u32(0, CHEMPI_MSG_PLACES, 1), 0);
    cr_assert_eq(take_u32(0, CHEMPI_MSG_PLACES, 2), -EBADMSG);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_SOUGHT, 3), 0);
    cr_assert_str_eq(trace, "up0:44/4 up0:45/4 ");
}

Test(hub, a_node_says_for_itself_only_that_its_slots_are_taken)
{
    cr_assert_eq(take_u32(1, CHEMPI_MSG_TAKEN, 3), 0);
    cr_assert_str_eq(trace, "up0:47/4 ");
    cr_assert_eq(take_u32(0, CHEMPI_MSG_TAKEN, 3), -EBADMSG);
}

Test(hub, unknown_messages_are_refused)
{
    cr_assert_eq(take_u32(0, 999, 0), -EBADMSG);
    cr_assert_eq(take_u32(0, CHEMPI_MSG_KILL, 0), -EBADMSG);
    cr_assert_eq(chempi_hub_down(&hub, CHEMPI_MSG_OUTPUT, NULL, 0, NULL),
                 -EBADMSG);
}

/* Of nodes 0..4, 2 and 3 without ranks, both below child 1. */
Test(hub, a_lost_child_without_ranks_is_told_by_node_and_holds_up_no_fence)
{
    chempi_hub_spare(&hub, 2);
    cr_assert_eq(take_fence(0, 1), 0);
    cr_assert_eq(take_fence(0, 2), 0);
    chempi_hub_lose(&hub, 1, "gone");
    cr_expect_str_eq(trace, "up0:36/13 up0:36/13 up0:37/8 up0:37/8 ");
    cr_expect_eq(hub.fence, 2);
    trace[0] = '\0';
    cr_assert_eq(take_u32(0, CHEMPI_MSG_STARTED, 1), 0);
    cr_assert_eq(take_u32(0, CHEMPI_MSG_DONE, 1), 0);
    cr_expect_str_eq(trace, "up0:32/4 up0:39/4 ");
}

Test(hub, a_child_without_ranks_may_go_in_parts)
{
    chempi_hub_spare(&hub, 2);
    cr_assert_eq(take_fence(0, 1), 0);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_GONE, 1), 0);
    cr_expect_str_eq(trace, "");
    cr_assert_eq(take_u32(1, CHEMPI_MSG_GONE, 1), 0);
    cr_expect_str_eq(trace, "up0:37/8 ");
}

/* It may go before the fences of the others have come up. */
Test(hub, a_child_without_ranks_that_has_left_holds_up_no_fence)
{
    chempi_hub_spare(&hub, 2);
    cr_assert_eq(take_fence(0, 1), 0);
    chempi_hub_leave(&hub, 1);
    cr_expect_str_eq(trace, "up0:37/8 ");
}

Test(hub, the_end_is_noted_on_its_way)
{
    cr_assert_not(hub.has_ended);
    cr_assert_eq(chempi_hub_down(&hub, CHEMPI_MSG_KILL, NULL, 0, NULL), 0);
    cr_assert_not(hub.has_ended);
    cr_assert_eq(chempi_hub_down(&hub, CHEMPI_MSG_END, NULL, 0, NULL), 0);
    cr_assert(hub.has_ended);
}

/* Done, but not over: others may need its gateway. */
Test(hub, a_child_without_ranks_that_is_done_can_still_be_lost)
{
    chempi_hub_spare(&hub, 2);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_STARTED, 2), 0);
    cr_assert_eq(take_u32(1, CHEMPI_MSG_DONE, 2), 0);
    chempi_hub_lose(&hub, 1, "gone");
    cr_expect_str_eq(trace, "up0:36/13 up0:36/13 ");
}

Test(hub, a_lost_child_with_ranks_lets_no_fence_pass)
{
    chempi_hub_spare(&hub, 3);
    cr_assert_eq(take_fence(0, 1), 0);
    chempi_hub_lose(&hub, 1, "gone");
    cr_expect_str_eq(trace, "up0:36/13 ");
}

/* H1; there is room for two children, and both are there. */
Test(hub, more_children_than_there_is_room_for_are_refused)
{
    cr_assert_eq(chempi_hub_add(&hub, (uint32_t[]){0}, 1), -ENOBUFS);
    cr_assert_eq(hub.child_count, 2);
    cr_assert_eq(hub.next[0], 0);
}

Test(hub, a_node_goes_below_one_child_only)
{
    struct chempi_hub other;

    cr_assert_eq(chempi_hub_init(&other, 5, 3, &ops, NULL), 0);
    cr_assert_eq(chempi_hub_add(&other, (uint32_t[]){1}, 1), 0);
    cr_assert_eq(chempi_hub_add(&other, (uint32_t[]){0, 2, 1}, 3), -EINVAL);
    cr_assert_eq(chempi_hub_add(&other, (uint32_t[]){3, 3}, 2), -EINVAL);
    cr_assert_eq(chempi_hub_add(&other, (uint32_t[]){5}, 1), -EINVAL);
    cr_assert_eq(chempi_hub_add(&other, NULL, 0), -EINVAL);
    cr_assert_eq(other.child_count, 1);
    cr_assert_eq(chempi_hub_add(&other, (uint32_t[]){0, 2, 3}, 3), 1);
    chempi_hub_fini(&other);
}

/* H5 */
Test(hub, what_is_longer_than_any_such_message_does_not_go_down)
{
    static const uint8_t data[CHEMPI_STDIN_WINDOW + 65]; /* for node 0 */
    static const struct {
        uint16_t type;
        size_t most;
    } kinds[] = {
        {CHEMPI_MSG_SIGNAL, CHEMPI_TEXT_MAX + 64},
        {CHEMPI_MSG_KILL, CHEMPI_TEXT_MAX + 64},
        {CHEMPI_MSG_FALLEN, CHEMPI_TEXT_MAX + 64},
        {CHEMPI_MSG_INPUT, CHEMPI_STDIN_WINDOW + 64},
        {CHEMPI_MSG_ROOT_REPLY, CHEMPI_PORT_NAME_MAX + 64},
        {CHEMPI_MSG_ANSWER, CHEMPI_KVS_KEY_MAX + CHEMPI_KVS_VALUE_MAX + 64},
    };
    struct chempi_hub other;

    cr_assert_eq(chempi_hub_init(&other, 1, 1, &ops, NULL), 0);
    cr_assert_eq(chempi_hub_add(&other, (uint32_t[]){0}, 1), 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        trace[0] = '\0';
        cr_expect_eq(chempi_hub_down(&other, kinds[i].type, data,
                                     kinds[i].most + 1, NULL),
                     -EBADMSG);
        cr_expect_str_eq(trace, "");
        cr_expect_eq(
            chempi_hub_down(&other, kinds[i].type, data, kinds[i].most, NULL),
            0);
        cr_expect_str_neq(trace, "");
    }
    chempi_hub_fini(&other);
}

Test(hub, what_is_broken_on_purpose_is_found)
{
    cr_assert_null(chempi_hub_check(&hub));
    hub.next[4] = 3;
    cr_assert(strstr(chempi_hub_check(&hub), "H1"));
    hub.next[4] = 0;
    hub.children[1].done = 3;
    cr_assert(strstr(chempi_hub_check(&hub), "H2"));
    hub.children[1].done = 0;
    hub.children[1].is_lost = true;
    cr_assert(strstr(chempi_hub_check(&hub), "H3"));
    hub.children[1].is_lost = false;
    hub.fence = 1;
    cr_assert(strstr(chempi_hub_check(&hub), "H4"));
}
