/* SPDX-License-Identifier: BSD-3-Clause */
/* Two adapters in one process; see duo.h. */
#include "tests/unit/scivia/duo.h"

#include <errno.h>

static bool reached(void *arg, uint32_t user, const void *address)
{
    struct side *side = arg;

    (void)user;
    (void)address;
    side->reached++;
    return true;
}

static void up(void *arg, struct chempi_adapter_link *link)
{
    struct side *side = arg;

    cr_assert_eq(chempi_adapter_link_state(link), 0);
    side->up++;
}

static void down(void *arg, struct chempi_adapter_link *link, bool is_clean,
                 int status)
{
    struct side *side = arg;

    cr_assert_eq(chempi_adapter_link_state(link), status);
    side->down++;
    side->was_clean = is_clean;
    side->down_status = status;
}

static void left(void *arg, uint32_t user, bool is_clean)
{
    struct side *side = arg;

    (void)user;
    (void)is_clean;
    side->left++;
}

static void error(void *arg, struct chempi_via_vi *vi, int status,
                  const char *text)
{
    struct side *side = arg;

    cr_assert_eq(chempi_via_vi_state(vi), CHEMPI_VIA_ERROR);
    cr_assert_neq(text[0], '\0');
    side->errors++;
    side->error_status = status;
}

static const struct chempi_adapter_events events = {
    .reached = reached,
    .up = up,
    .down = down,
    .left = left,
    .error = error,
};

void duo_init(struct duo *duo)
{
    *duo = (struct duo){
        .params = {.lock_budget_bytes = UINT64_MAX, .events = &events}};
}

void duo_open_side(struct duo *duo, struct side *side, uint32_t user)
{
    struct chempi_adapter_params params = duo->params;
    struct chempi_err err = {.text = ""};

    params.user = user;
    params.arg = side;
    cr_assert_eq(chempi_adapter_open(&params, &side->adapter, &err), 0, "%s",
                 err.text);
}

static void reach(struct side *from, struct side *to)
{
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];

    chempi_adapter_address(to->adapter, address);
    cr_assert_eq(chempi_adapter_link_open(from->adapter, address,
                                          sizeof(address), to, &from->link),
                 0);
    cr_assert_eq(chempi_adapter_link_tag(from->link), to);
    cr_assert_eq(chempi_adapter_link_state(from->link), -EINPROGRESS);
}

void duo_open(struct duo *duo)
{
    duo_open_side(duo, &duo->a, 1);
    duo_open_side(duo, &duo->b, 2);
    reach(&duo->a, &duo->b);
    reach(&duo->b, &duo->a);
    duo_pump(duo);
    cr_assert_eq(chempi_adapter_link_state(duo->a.link), 0);
    cr_assert_eq(chempi_adapter_link_state(duo->b.link), 0);
    cr_assert_eq(duo->a.reached, 1);
    cr_assert_eq(duo->a.up, 1);
}

void duo_close(struct duo *duo)
{
    chempi_adapter_close(duo->a.adapter);
    chempi_adapter_close(duo->b.adapter);
}

void duo_pump(struct duo *duo)
{
    int events_now;
    int rounds = 0;

    do {
        events_now = 0;
        if (duo->a.adapter)
            events_now += chempi_adapter_service(duo->a.adapter);
        if (duo->b.adapter)
            events_now += chempi_adapter_service(duo->b.adapter);
        cr_assert_lt(rounds++, 100000);
    } while (events_now > 0);
}

struct chempi_sci_remote *duo_segment(struct duo *duo, uint64_t len,
                                      struct chempi_sci_segment **segment)
{
    struct chempi_sci_remote *remote = NULL;

    cr_assert_eq(chempi_sci_segment_create(duo->b.adapter, 7, len, 99, segment),
                 0);
    cr_assert_eq(chempi_sci_segment_prepare(*segment), 0);
    cr_assert_eq(chempi_sci_segment_set_available(*segment), 0);
    cr_assert_eq(chempi_sci_connect(duo->a.link, 7, 99, &remote), 0);
    duo_pump(duo);
    cr_assert_eq(chempi_sci_state(remote), 0);
    return remote;
}

void duo_connect(struct duo *duo, enum chempi_via_reliability reliability,
                 struct pair *pair)
{
    struct chempi_via_attributes attributes = {.reliability = reliability};
    struct chempi_via_request *request;

    cr_assert_eq(chempi_via_ptag_create(duo->a.adapter, &pair->tag_a), 0);
    cr_assert_eq(chempi_via_ptag_create(duo->b.adapter, &pair->tag_b), 0);
    attributes.ptag = pair->tag_a;
    cr_assert_eq(chempi_via_vi_create(duo->a.adapter, &attributes, &pair->a),
                 0);
    attributes.ptag = pair->tag_b;
    cr_assert_eq(chempi_via_vi_create(duo->b.adapter, &attributes, &pair->b),
                 0);
    cr_assert_eq(chempi_via_connect_request(pair->a, duo->a.link, 17), 0);
    duo_pump(duo);
    cr_assert_eq(chempi_via_vi_state(pair->a), CHEMPI_VIA_CONNECTING);
    request = chempi_via_connect_next(duo->b.adapter);
    cr_assert_not_null(request);
    cr_assert_eq(chempi_via_request_discriminator(request), 17);
    cr_assert_eq(chempi_via_request_user(request), 1);
    cr_assert_eq(chempi_via_connect_accept(request, pair->b), 0);
    duo_pump(duo);
    cr_assert_eq(chempi_via_vi_state(pair->a), CHEMPI_VIA_CONNECTED);
    cr_assert_eq(chempi_via_vi_state(pair->b), CHEMPI_VIA_CONNECTED);
}

struct chempi_via_descriptor duo_descriptor(enum chempi_via_op op, void *addr,
                                            uint32_t len, uint32_t handle)
{
    return (struct chempi_via_descriptor){
        .op = op,
        .segment_count = 1,
        .segments = {{.addr = addr, .len = len, .handle = handle}},
    };
}
