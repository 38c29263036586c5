/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: what text is understood, what is refused and with which words. */
#define _GNU_SOURCE /* setenv */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/services/setting.h"

static const char *const shape_list[] = {"round", "flat"};
static const struct chempi_words shapes = {"shape", shape_list, 2};

static const struct chempi_setting table[] = {
    {"disk", "size_max", "Bytes.", 100, 10, UINT64_C(3) << 30, NULL,
     CHEMPI_SETTING_LOCAL, false, true},
    {"", "shape", "A shape.", 1, 0, 1, &shapes, CHEMPI_SETTING_ALL, true, true},
    {"disk", "spin", "A switch.", 1, 0, 1, &chempi_words_switch,
     CHEMPI_SETTING_LOCAL, false, false},
};

/* The value, or what is sure to be wrong after a refusal. */
static uint64_t parsed(int i, const char *text)
{
    struct chempi_err err = {0};
    uint64_t value = 12345;
    int rc = chempi_setting_parse(&table[i], text, &value, &err);

    if (rc == 0)
        return value;
    cr_assert_eq(rc, -EINVAL);
    cr_assert_eq(value, 12345, "untouched after a refusal");
    cr_assert(strstr(err.text, text), "%s", err.text);
    return UINT64_MAX;
}

Test(setting, is_named_by_module_and_name)
{
    char name[CHEMPI_SETTING_NAME_MAX];

    chempi_setting_name(&table[0], name);
    cr_assert_str_eq(name, "chempi_disk_size_max");
    chempi_setting_variable(&table[0], name);
    cr_assert_str_eq(name, "CHEMPI_DISK_SIZE_MAX");
    chempi_setting_variable(&table[1], name);
    cr_assert_str_eq(name, "CHEMPI_SHAPE");
}

Test(setting, takes_numbers_with_units_in_its_range)
{
    cr_assert_eq(parsed(0, "10"), 10);
    cr_assert_eq(parsed(0, "64k"), 65536);
    cr_assert_eq(parsed(0, "2M"), 2u << 20);
    cr_assert_eq(parsed(0, "3G"), UINT64_C(3) << 30);
}

Test(setting, refuses_everything_else)
{
    static const char *const bad[] = {"",     "9",   "4G",   "-1",   "+20",
                                      " 20",  "20 ", "20kb", "0x20", "2e3",
                                      "20.5", "k",   "20T",  "20kk", "abc"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(bad); i++)
        cr_assert_eq(parsed(0, bad[i]), UINT64_MAX, "\"%s\"", bad[i]);
    cr_assert_eq(parsed(0, "99999999999999999999999"), UINT64_MAX);
    cr_assert_eq(parsed(0, "18446744073709551615G"), UINT64_MAX);
}

Test(setting, takes_words_of_an_enumeration)
{
    cr_assert_eq(parsed(1, "flat"), 1);
    cr_assert_eq(parsed(1, "ROUND"), 0);
    cr_assert_eq(parsed(1, "1"), UINT64_MAX);
    cr_assert_eq(parsed(2, "off"), 0);
    cr_assert_eq(parsed(2, "no"), 0);
    cr_assert_eq(parsed(2, "1"), 1);
    cr_assert_eq(parsed(2, "true"), 1);
    cr_assert_eq(parsed(2, "2"), UINT64_MAX);
}

Test(setting, tells_the_first_of_several_wrong_variables)
{
    _Atomic uint64_t values[3] = {100, 1, 1};
    const struct chempi_settings settings = {table, values, 3};
    struct chempi_err err = {0};

    cr_assert_eq(setenv("CHEMPI_DISK_SIZE_MAX", "many", 1), 0);
    cr_assert_eq(setenv("CHEMPI_SHAPE", "round", 1), 0);
    cr_assert_eq(setenv("CHEMPI_DISK_SPIN", "perhaps", 1), 0);
    cr_assert_eq(chempi_setting_load(&settings, &err), -EINVAL);
    cr_assert(strstr(err.text, "CHEMPI_DISK_SIZE_MAX is \"many\""), "%s",
              err.text);
    cr_assert(strstr(err.text, "from 10 to 3221225472"), "%s", err.text);
    cr_assert_eq(values[0], 100);
    cr_assert_eq(values[1], 0);
    cr_assert_eq(values[2], 1);
}
