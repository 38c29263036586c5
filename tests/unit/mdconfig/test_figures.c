/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures are put into a description as a person would put them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "mdconfig/description/edit.h"
#include "mdconfig/measure/figures.h"

#define FIGURES_MAX 32

static const struct chempi_fit fit = {
    .latency = {.value = 12.34, .spread = 0.03, .is_known = true},
    .bw = {.value = 56.7, .spread = 0.004, .is_known = true},
    .cost = {.value = 0.5, .spread = 0.11, .is_known = true},
};

#define LATENCY "12.34 us \xc2\xb1 3 %"
#define BANDWIDTH "56.7 MB/s \xc2\xb1 0.4 %"
#define COST "0.5 us \xc2\xb1 11 %"
#define ALL "latency: " LATENCY ", bandwidth: " BANDWIDTH ", cost: " COST

/* The same figures for all protocols of all networks, or of those that the
 * description has itself. */
static int put(const char *text, bool implied, const struct chempi_fit *what,
               char **out, struct chempi_err *err)
{
    struct chempi_figures figures[FIGURES_MAX];
    struct chempi_desc desc;
    size_t count = 0;
    size_t len;
    int rc;

    *err = (struct chempi_err){.code = 0};
    rc = chempi_desc_parse("t", text, strlen(text), &desc, err);
    cr_assert_eq(rc, 0, "%s\n%s", err->text, text);
    for (uint32_t i = 0; i < desc.network_count; i++) {
        const struct chempi_desc_network *net = &desc.networks[i];

        if ((net->implied && !implied) || (i > 0 && net[-1].line == net->line &&
                                           net[-1].column == net->column))
            continue;
        for (size_t k = 0; k < net->protocol_count; k++)
            figures[count++] = (struct chempi_figures){
                .network = i, .protocol = k, .fit = *what};
    }
    rc = chempi_figures_put(&desc, text, strlen(text), figures, count, out,
                            &len, err);
    chempi_desc_fini(&desc);
    return rc;
}

static void expect_put(const char *before, bool implied, const char *after)
{
    struct chempi_err err;
    char *text;
    char *again;

    cr_assert_eq(put(before, implied, &fit, &text, &err), 0, "%s\n%s", err.text,
                 before);
    cr_expect_str_eq(text, after);
    cr_assert_eq(put(text, implied, &fit, &again, &err), 0, "%s", err.text);
    cr_expect_str_eq(again, text); /* once more changes nothing more */
    free(again);
    free(text);
}

Test(figures, replace_values_and_leave_all_else)
{
    expect_put("# Ours.\n"
               "nodes: [ a, b ]   # two\n"
               "networks:\n"
               "    lan :   # the odd one\n"
               "        type:  ethernet\n"
               "        attach: all\n"
               "        protocols:\n"
               "\n"
               "            # by hand\n"
               "            eager:\n"
               "                cost:      3 us   # guessed\n"
               "                max: none\n"
               "                latency:   '40 us' # from the web\n"
               "                bandwidth: 100     # MB/s\n"
               "# The end.\n",
               false,
               "# Ours.\n"
               "nodes: [ a, b ]   # two\n"
               "networks:\n"
               "    lan :   # the odd one\n"
               "        type:  ethernet\n"
               "        attach: all\n"
               "        protocols:\n"
               "\n"
               "            # by hand\n"
               "            eager:\n"
               "                cost:      " COST "   # guessed\n"
               "                max: none\n"
               "                latency:   " LATENCY " # from the web\n"
               "                bandwidth: " BANDWIDTH "     # MB/s\n"
               "# The end.\n");
}

Test(figures, keep_the_units_of_a_person)
{
    expect_put("nodes: [ a, b ]\n"
               "networks: { lan: { type: ethernet, attach: all, protocols:\n"
               "  { eager: { latency: 0.04 ms, bandwidth: 1 Gbit/s, cost: 3 "
               "} } } }\n",
               false,
               "nodes: [ a, b ]\n"
               "networks: { lan: { type: ethernet, attach: all, protocols:\n"
               "  { eager: { latency: " LATENCY
               ", bandwidth: 0.454 Gbit/s \xc2\xb1 0.4 %, cost: " COST
               " } } } }\n");
}

Test(figures, that_are_missing_come_behind_the_others)
{
    expect_put("nodes: [ a, b ]\n"
               "networks:\n"
               "  lan:\n"
               "    type: ethernet\n"
               "    protocols:\n"
               "      eager:\n"
               "         max: 64 KiB\n"
               "         latency: 1   # why?\n"
               "      # large ones\n"
               "      rendezvous: { min: 1, }\n"
               "    attach: all\n",
               false,
               "nodes: [ a, b ]\n"
               "networks:\n"
               "  lan:\n"
               "    type: ethernet\n"
               "    protocols:\n"
               "      eager:\n"
               "         max: 64 KiB\n"
               "         latency: " LATENCY "   # why?\n"
               "         bandwidth: " BANDWIDTH "\n"
               "         cost: " COST "\n"
               "      # large ones\n"
               "      rendezvous: { min: 1, " ALL ", }\n"
               "    attach: all\n");
}

Test(figures, of_protocols_without_any_are_written_whole)
{
    expect_put("nodes: [ a, b ]\n"
               "networks:\n"
               "  lan: # here\n"
               "    type: ethernet\n"
               "    attach: all\n"
               "    protocols: # all of them\n"
               "      eager:\n"
               "      rendezvous: ~ # none\n"
               "  wan: { type: ethernet, attach: all,\n"
               "         protocols: { eager: , rendezvous: {} } }\n"
               "  man: { type: ethernet, attach: all, protocols: { eager } }\n",
               false,
               "nodes: [ a, b ]\n"
               "networks:\n"
               "  lan: # here\n"
               "    type: ethernet\n"
               "    attach: all\n"
               "    protocols: # all of them\n"
               "      eager: { " ALL " }\n"
               "      rendezvous: { " ALL " } # none\n"
               "  wan: { type: ethernet, attach: all,\n"
               "         protocols: { eager: { " ALL " } , rendezvous: { " ALL
               " } } }\n"
               "  man: { type: ethernet, attach: all, protocols: { eager: "
               "{ " ALL " } } }\n");
}

Test(figures, of_networks_without_protocols_get_them_all)
{
    expect_put("nodes: [ 'r[0-1]n[0-1]' ]\n"
               "networks:\n"
               "  rack[0-1]: # two of them\n"
               "     type: ethernet  # copper\n"
               "     attach:\n"
               "     - r[0-1]n[0-1]\n"
               "\n"
               "  spine: { type: ethernet, attach: all }\n",
               false,
               "nodes: [ 'r[0-1]n[0-1]' ]\n"
               "networks:\n"
               "  rack[0-1]: # two of them\n"
               "     type: ethernet  # copper\n"
               "     protocols:\n"
               "       eager: { " ALL " }\n"
               "       rendezvous: { " ALL " }\n"
               "     attach:\n"
               "     - r[0-1]n[0-1]\n"
               "\n"
               "  spine: { type: ethernet, protocols: { eager: { " ALL
               " }, rendezvous: { " ALL " } }, attach: all }\n");
}

#define SMP                                                                    \
    "type: smp\n    protocols:\n      short: { " ALL " }\n"                    \
    "      eager: { " ALL " }\n      pipeline: { " ALL " }\n"                  \
    "      single-copy: { " ALL " }\n"

Test(figures, of_some_protocols_do_not_take_the_others_away)
{
    static const char text[] = "nodes: [ a, b ]\nnetworks:\n"
                               "  lan: { type: ethernet, attach: all }\n";
    struct chempi_err err = {.code = 0};
    struct chempi_figures one = {.protocol = 1, .fit = fit};
    struct chempi_desc desc;
    char *out;
    size_t len;

    cr_assert_eq(chempi_desc_parse("t", text, strlen(text), &desc, &err), 0);
    one.network = chempi_names_find(&desc.network_names, "lan");
    cr_assert_eq(chempi_figures_put(&desc, text, strlen(text), &one, 1, &out,
                                    &len, &err),
                 0, "%s", err.text);
    cr_expect(strstr(out, "eager: { latency: "), "%s", out);
    cr_expect(strstr(out, "rendezvous: { " ALL " }"), "%s", out);
    free(out);
    chempi_desc_fini(&desc);
}

Test(figures, of_a_network_that_is_implied_make_it_a_network)
{
    expect_put("nodes: [ a ]\n", true,
               "nodes: [ a ]\nnetworks:\n  smp:\n    " SMP);
    expect_put("nodes: [ a ]", true,
               "nodes: [ a ]\nnetworks:\n  smp:\n    " SMP);
    expect_put("nodes: [ a, b ]\n"
               "networks:\n"
               "  # Copper.\n"
               "  lan: { type: ethernet, attach: all,\n"
               "         protocols: { eager: } }\n",
               true,
               "nodes: [ a, b ]\n"
               "networks:\n"
               "  # Copper.\n"
               "  smp:\n    " SMP "  lan: { type: ethernet, attach: all,\n"
               "         protocols: { eager: { " ALL " } } }\n");
}

Test(figures, keep_ends_of_lines_and_characters_of_several_bytes)
{
    expect_put(
        "\xef\xbb\xbf# gr\xc3\xbc\xc3\x9f\r\n"
        "nodes: [ a, b ]\r\n"
        "networks:\r\n"
        "  lan:\r\n"
        "    type: ethernet # \xe2\x82\xac\r\n"
        "    attach: all\r\n"
        "    protocols:\r\n"
        "      eager:\r\n"
        "        latency: 20 \xc2\xb5s # \xe2\x82\xac\r\n"
        "        bandwidth: 1 # \xe2\x82\xac\r\n",
        false,
        "\xef\xbb\xbf# gr\xc3\xbc\xc3\x9f\r\n"
        "nodes: [ a, b ]\r\n"
        "networks:\r\n"
        "  lan:\r\n"
        "    type: ethernet # \xe2\x82\xac\r\n"
        "    attach: all\r\n"
        "    protocols:\r\n"
        "      eager:\r\n"
        "        latency: 12.34 \xc2\xb5s \xc2\xb1 3 % # \xe2\x82\xac\r\n"
        "        bandwidth: " BANDWIDTH " # \xe2\x82\xac\r\n"
        "        cost: " COST "\r\n");
}

Test(figures, that_are_not_known_leave_what_is_there)
{
    struct chempi_fit half = fit;
    struct chempi_err err;
    char *text;

    half.bw.is_known = false;
    cr_assert_eq(put("nodes: [ a, b ]\n"
                     "networks:\n"
                     "  lan: { type: ethernet, attach: all, protocols: {\n"
                     "    eager: { bandwidth: 80 },\n"
                     "    rendezvous: } }\n",
                     false, &half, &text, &err),
                 0, "%s", err.text);
    cr_expect_str_eq(text,
                     "nodes: [ a, b ]\n"
                     "networks:\n"
                     "  lan: { type: ethernet, attach: all, protocols: {\n"
                     "    eager: { bandwidth: 80, latency: " LATENCY
                     ", cost: " COST " },\n"
                     "    rendezvous: { latency: " LATENCY
                     ", bandwidth: 117 MB/s, cost: " COST " } } }\n");
    free(text);
}

Test(figures, that_networks_share_are_not_changed_for_one)
{
    struct chempi_err err;
    char *text;

    cr_expect_eq(put("nodes: [ a, b ]\n"
                     "networks:\n"
                     "  lan: { type: ethernet, attach: all,\n"
                     "    protocols: &p { eager: { latency: 1 } } }\n"
                     "  wan: { type: ethernet, attach: all, protocols: *p }\n",
                     false, &fit, &text, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "t:4: ") && strstr(err.text, "alias"), "%s",
              err.text);
}

Test(spread, is_read_with_a_figure)
{
    static const char text[] =
        "nodes: [ a, b ]\n"
        "networks: { lan: { type: ethernet, attach: all, protocols: { eager: {"
        " latency: 3 us +- 4.5 %, bandwidth: 80 MB/s \xc2\xb1 2%, cost: 1 us "
        "} } } }\n";
    struct chempi_desc desc;
    struct chempi_err err = {.code = 0};
    const struct chempi_desc_protocol *p;

    cr_assert_eq(chempi_desc_parse("t", text, strlen(text), &desc, &err), 0,
                 "%s", err.text);
    p = &desc.networks[0].protocols[0];
    cr_expect_float_eq(p->latency_us, 3, 1e-9);
    cr_expect_float_eq(p->latency_spread, 0.045, 1e-9);
    cr_expect_float_eq(p->bw_spread, 0.02, 1e-9);
    cr_expect_eq(p->cost_spread, 0);
    chempi_desc_fini(&desc);
}

Test(spread, that_is_none_is_refused)
{
    static const char *const wrong[] = {
        "latency: 3 us +-",        "latency: 3 us +- 4",
        "latency: +- 4 %",         "latency: 3 us +- 4 % +- 4 %",
        "latency: 3 us +- 2000 %", "min: 3 +- 4 %"};
    struct chempi_desc desc;
    struct chempi_err err;
    char text[256];

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(wrong); i++) {
        (void)snprintf(text, sizeof(text),
                       "nodes: [ a, b ]\nnetworks: { lan: { type: ethernet, "
                       "attach: all, protocols: { eager: { %s } } } }\n",
                       wrong[i]);
        err = (struct chempi_err){.code = 0};
        cr_expect_eq(chempi_desc_parse("t", text, strlen(text), &desc, &err),
                     -EINVAL, "%s", wrong[i]);
        cr_expect(strstr(err.text, "t:2:"), "%s", err.text);
    }
}

Test(edits, are_made_in_the_order_of_the_text)
{
    struct chempi_edits edits = {.count = 0};
    size_t where = 0;
    size_t len;
    char *text;

    chempi_edits_add(&edits, 6, 5, "moon");
    chempi_edits_add(&edits, 0, 0, "O ");
    chempi_edits_add(&edits, 11, 0, "!");
    text = chempi_edits_apply(&edits, "hello world", 11, &len, &where);
    cr_assert_not_null(text);
    cr_expect_str_eq(text, "O hello moon!");
    cr_expect_eq(len, strlen(text));
    free(text);
    chempi_edits_add(&edits, 8, 1, "x");
    cr_expect_null(chempi_edits_apply(&edits, "hello world", 11, &len, &where));
    cr_expect_eq(where, 8);
    chempi_edits_fini(&edits);
}
