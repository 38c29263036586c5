/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from text; see setting.h. */
#include "libchempi/services/setting.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/words/size.h"

static const char *const switch_list[] = {"off", "on"};
const struct chempi_words chempi_words_switch = {
    .name = "switch",
    .list = switch_list,
    .count = CHEMPI_ARRAY_LEN(switch_list),
};

void chempi_setting_name(const struct chempi_setting *setting,
                         char name[CHEMPI_SETTING_NAME_MAX])
{
    (void)snprintf(name, CHEMPI_SETTING_NAME_MAX, "chempi_%s%s%s",
                   setting->module, setting->module[0] ? "_" : "",
                   setting->name);
}

void chempi_setting_variable(const struct chempi_setting *setting,
                             char name[CHEMPI_SETTING_NAME_MAX])
{
    chempi_setting_name(setting, name);
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

/* ---- text to value ---- */

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcasecmp(text, *list) == 0)
            return true;
    return false;
}

static bool parse_word(const struct chempi_words *words, const char *text,
                       uint64_t *value)
{
    static const char *const yes[] = {"1", "yes", "true", NULL};
    static const char *const no[] = {"0", "no", "false", NULL};

    for (uint32_t i = 0; i < words->count; i++) {
        if (strcasecmp(text, words->list[i]) != 0)
            continue;
        *value = i;
        return true;
    }
    if (words != &chempi_words_switch ||
        (!is_one_of(text, yes) && !is_one_of(text, no)))
        return false;
    *value = is_one_of(text, yes);
    return true;
}

static bool parse_number(const char *text, uint64_t *value)
{
    return chempi_size_parse(text, UINT64_MAX, value) == 0;
}

static int refuse_word(const struct chempi_setting *setting, const char *text,
                       const char *variable, struct chempi_err *err)
{
    char all[256] = "";

    for (uint32_t i = 0; i < setting->words->count; i++) {
        size_t used = strlen(all);

        (void)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                       setting->words->list[i]);
    }
    return chempi_err_set(err, -EINVAL,
                          "environment variable %s is \"%.64s\"; it must be "
                          "one of %s",
                          variable, text, all);
}

int chempi_setting_parse(const struct chempi_setting *setting, const char *text,
                         uint64_t *value, struct chempi_err *err)
{
    char variable[CHEMPI_SETTING_NAME_MAX];
    uint64_t parsed;

    chempi_setting_variable(setting, variable);
    if (setting->words) {
        if (!parse_word(setting->words, text, &parsed))
            return refuse_word(setting, text, variable, err);
    } else if (!parse_number(text, &parsed) || parsed < setting->min ||
               parsed > setting->max) {
        return chempi_err_set(err, -EINVAL,
                              "environment variable %s is \"%.64s\"; it must "
                              "be a number from %" PRIu64 " to %" PRIu64,
                              variable, text, setting->min, setting->max);
    }
    *value = parsed;
    return 0;
}

int chempi_setting_load(const struct chempi_settings *settings,
                        struct chempi_err *err)
{
    int first = 0;

    for (uint32_t i = 0; i < settings->count; i++) {
        const struct chempi_setting *setting = &settings->table[i];
        char variable[CHEMPI_SETTING_NAME_MAX];
        const char *text;
        uint64_t value;
        int rc;

        chempi_setting_variable(setting, variable);
        text = getenv(variable);
        if (!text)
            continue;
        rc = chempi_setting_parse(setting, text, &value, first ? NULL : err);
        if (!rc)
            atomic_store_explicit(&settings->values[i], value,
                                  memory_order_relaxed);
        else if (!first)
            first = rc;
    }
    return first;
}
