/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions that are right make the model, wrong ones name the place. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/base/compiler.h"
#include "mdconfig/description/desc.h"

static int parse(const char *text, struct chempi_desc *desc,
                 struct chempi_err *err)
{
    *err = (struct chempi_err){.code = 0};
    return chempi_desc_parse("t", text, strlen(text), desc, err);
}

Test(description, of_nodes_alone_gets_shared_memory)
{
    struct chempi_desc d;
    struct chempi_err err;

    cr_assert_eq(parse("nodes: n[0-3]", &d, &err), 0, "%s", err.text);
    cr_expect_eq(d.node_count, 4);
    cr_expect_eq(d.class_count, 1);
    cr_assert_eq(d.network_count, 1);
    cr_expect_str_eq(d.networks[0].device, "shm");
    cr_expect(d.networks[0].inside_node && d.networks[0].implied);
    cr_expect_eq(d.nodes[3].attachment_count, 1);
    chempi_desc_fini(&d);
}

Test(description, deals_nodes_to_networks_with_ranges)
{
    struct chempi_desc d;
    struct chempi_err err;

    cr_assert_eq(parse("nodes: [ 'r[0-2]n[0-3]' ]\n"
                       "networks:\n"
                       "  rack[0-2]: { type: sci, attach: { 'r[0-2]n[0-3]': "
                       "} }\n",
                       &d, &err),
                 0, "%s", err.text);
    cr_expect_eq(d.class_count, 3);
    cr_expect_eq(d.network_count, 4);
    cr_expect_str_eq(d.nodes[7].name, "r1n3");
    cr_expect_not_null(chempi_desc_attached(&d, 7, 1));
    cr_expect_null(chempi_desc_attached(&d, 7, 0));
    chempi_desc_fini(&d);
}

Test(description, pairs_addresses_with_nodes)
{
    struct chempi_desc d;
    struct chempi_err err;

    cr_assert_eq(
        parse("nodes: { 'n[8-11]': { slots: 3, gateway: yes } }\n"
              "networks:\n"
              "  lan:\n"
              "    type: ethernet\n"
              "    attach:\n"
              "      n[8-9]: 10.0.0.[1-2]\n"
              "      n10: { address: 'fe80::1%eth0', interface: eth0 }\n"
              "      n11: { direction: receive }\n",
              &d, &err),
        0, "%s", err.text);
    cr_expect_str_eq(chempi_desc_attached(&d, 1, 0)->address, "10.0.0.2");
    cr_expect_str_eq(chempi_desc_attached(&d, 2, 0)->address, "fe80::1%eth0");
    cr_expect_str_eq(chempi_desc_attached(&d, 2, 0)->interface, "eth0");
    cr_expect(!chempi_desc_attached(&d, 3, 0)->can_send);
    cr_expect_eq(d.nodes[0].slots, 3);
    cr_expect_eq(d.class_count, 2);
    chempi_desc_fini(&d);
}

#define NET "nodes: [ a, b ]\nnetworks:\n  n:\n    type: ethernet\n"

static const struct {
    const char *text;
    const char *error;
} wrong[] = {
    {"", "t:1:1: expected a network description, found nothing"},
    {"[]", "t:1:1: expected a network description, found a list"},
    {"{}", "t:1:1: expected the key 'nodes' in a network description, "
           "found none"},
    {"nodes: {}", "t:1:8: expected the names of nodes"},
    {"node: a", "t:1:1: expected a key of a network description, found "
                "'node'; did you mean 'nodes'?"},
    {"nodes: [a, b, a]",
     "t:1:15: expected each node once, found 'a' again (first in line 1)"},
    {"nodes: { a: , a: }", "t:1:15: expected each key once, found 'a' "
                           "again (first in line 1)"},
    {"nodes: a/b", "t:1:8: expected the name of a node"},
    {"nodes: all", "t:1:8: expected the name of a node, found 'all'"},
    {"nodes: 'a[3-1]'", "t:1:8: expected a range that ascends at character 6"},
    {"nodes: { a: { slots: 0 } }", "t:1:22: expected a number of "
                                   "processes from 1 to 65535, found '0'"},
    {"nodes: { a: { slot: 1 } }", "did you mean 'slots'?"},
    {"nodes: { a: { forward: 3 us } }",
     "t:1:24: expected 'gateway: true' beside 'forward'"},
    {"nodes: a\nforwarding: { ways: fast }", "did you mean 'fastest'?"},
    {"nodes: a\nforwarding: { chunk: 100 }",
     "t:2:22: expected a chunk from 1 KiB to 16 MiB, found '100'"},
    {"nodes: a\nforwarding: { cost: 3 hours }",
     "t:2:21: expected a time with a unit of ns, us, ms, s, found '3 "
     "hours'"},
    {"nodes: a\nnetworks: { n: { type: ethernt, attach: all } }",
     "t:2:24: expected the type of a network (smp, ethernet, sci, "
     "myrinet, via, infiniband, omni-path), found 'ethernt'; did you mean "
     "'ethernet'?"},
    {"nodes: a\nnetworks: { n: { type: sci, device: tpc, attach: all } }",
     "did you mean 'tcp'?"},
    {"nodes: a\nnetworks: { n: { type: sci, device: shm, attach: all } }",
     "expected a device that joins nodes, found 'shm'"},
    {"nodes: a\nnetworks: { n: { attach: all } }",
     "t:2:16: expected the key 'type' in a network, found none"},
    {NET, "t:4:5: expected the key 'attach' in network 'n', found none"},
    {NET "    attach: [ a, c ]\n",
     "t:5:18: expected a node, found 'c', which is not among the nodes"},
    {NET "    attach: [ a, b, a ]\n",
     "t:5:21: expected each node once, found 'a' attached to 'n' again"},
    {NET "    attach: { a: '10.0.0.[1-2]' }\n",
     "expected as many addresses as nodes (1), found 2"},
    {NET "    attach: { a: 10.0.0.256 }\n",
     "expected an IPv4 or IPv6 address, found '10.0.0.256'"},
    {NET "    attach: { a: { adress: 10.0.0.1 } }\n",
     "t:5:20: expected a key of an attachment, found 'adress'; did you "
     "mean 'address'?"},
    {NET "    attach: all\n    protocols: { eagre: }\n",
     "t:6:18: expected a protocol of device tcp (eager, rendezvous), "
     "found 'eagre'; did you mean 'eager'?"},
    {"nodes: a\nnetworks: { n: { type: sci, attach: all,\n"
     "    protocols: { send: } } }",
     "t:3:18: expected a protocol of device scivia on networks of type sci "
     "(shared-memory, one-copy, zero-copy), found 'send'"},
    {"nodes: a\nnetworks: { n: { type: via, attach: all,\n"
     "    protocols: { shared-memory: } } }",
     "t:3:18: expected a protocol of device scivia on networks of type "
     "via (send, one-copy, zero-copy), found 'shared-memory'"},
    {NET "    attach: all\n    protocols: { eager: { latency: 0 us } }\n",
     "expected a time above 0"},
    {NET "    attach: all\n    protocols: { eager: { bandwidth: 9 Mb/s } }\n",
     "t:6:38: expected a bandwidth with a unit of MB/s, GB/s, MiB/s, "
     "Mbit/s, Gbit/s, found '9 Mb/s'"},
    {NET "    attach: all\n    protocols: { eager: { min: 9, max: 8 } }\n",
     "t:6:18: expected limits with min <= max"},
    {NET "    attach: all\n    protocols: { eager: { max: 8 } }\n",
     "t:6:16: expected protocols for messages of every size, found none "
     "for 9 bytes"},
    {NET "    attach: all\n    protocols: {}\n",
     "t:6:16: expected from 1 to 16 protocols, found a mapping"},
    {"nodes: [a\n", "not valid YAML"},
    {"nodes:\n  a: {}\n\tb: {}\n",
     "t:3:1: expected spaces before the first word, found a tab"},
    {"nodes:\n  a: {}\n \tb: {}\n", "t:3:2: expected spaces before"},
    {"nodes: {\n\ta: {},\n\tb: ]\n}\n", "t:3:5: not valid YAML"},
    {"nodes: {\n\ta: @x\n}\n", "t:2:5: not valid YAML"},
    {"nodes: \xff", "expected UTF-8 text"},
    {"nodes: \"a\\0b\"", "expected text, found a zero byte"},
    {"nodes: a\n---\nnodes: b\n", "t:2:1: expected the end of the file"},
    {"nodes: &x [ *x ]", "expected a node's name, found a list"},
    {"? [a]\n: b\n", "t:1:3: expected a key, found a list"},
};

Test(description, that_is_wrong_names_place_and_expectation)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(wrong); i++) {
        struct chempi_desc d;
        struct chempi_err err;
        int rc = parse(wrong[i].text, &d, &err);

        cr_expect_eq(rc, -EINVAL, "%s: %d", wrong[i].text, rc);
        cr_expect(strstr(err.text, wrong[i].error),
                  "%s\n  expected %s\n"
                  "  found    %s",
                  wrong[i].text, wrong[i].error, err.text);
    }
}

Test(description, that_is_too_large_is_refused)
{
    struct chempi_desc d;
    struct chempi_err err;

    cr_expect_eq(parse("nodes: 'n[0-131072]'", &d, &err), -EINVAL);
    cr_expect(strstr(err.text, "at most 131072 nodes"), "%s", err.text);
    cr_expect_eq(parse("nodes: a\nnetworks: { 'n[0-4999]': { type: sci, "
                       "attach: all } }",
                       &d, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "at most 4096 networks"), "%s", err.text);
}

Test(description, can_share_values_by_alias)
{
    struct chempi_desc d;
    struct chempi_err err;

    cr_assert_eq(parse("nodes: [ a, b ]\n"
                       "networks:\n"
                       "  n: { type: ethernet, attach: all, protocols: &p { "
                       "eager: { latency: 3 us, bandwidth: 50 } } }\n"
                       "  m: { type: sci, device: tcp, attach: all, "
                       "protocols: *p }\n",
                       &d, &err),
                 0, "%s", err.text);
    cr_expect_float_eq(d.networks[1].protocols[0].bw_bytes_per_us, 50, 0);
    chempi_desc_fini(&d);
}
