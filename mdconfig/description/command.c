/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines, taken apart; see command.h. */
#include "mdconfig/description/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/size.h"
#include "mdconfig/description/mem.h"
#include "mdconfig/description/text.h"

int chempi_command_usage(struct chempi_err *err, const char *what,
                         const char *word)
{
    (void)chempi_err_set(err, -EINVAL, "%s%s", what, word);
    return CHEMPI_COMMAND_USAGE;
}

static bool take_flag(struct chempi_command_line *line, const char *word)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"--alone", &line->alone},
        {"--shared", &line->shared},
        {"--allow-unreachable", &line->allow_unreachable},
        {"--local", &line->local},
        {"--strict", &line->strict},
        {"--all", &line->all},
        {"--dot", &line->dot},
        {"--csv", &line->csv},
        {"--json", &line->is_json},
        {"--virtual", &line->is_virtual},
    };

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(flags); i++) {
        if (strcmp(word, flags[i].name) == 0) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

/* Where the value of an option belongs. */
static const char **value_of(struct chempi_command_line *line, const char *word)
{
    const struct {
        const char *name;
        const char **value;
    } values[] = {
        {"-o", &line->output},           {"--from", &line->from},
        {"--size", &line->size},         {"--hosts", &line->hosts},
        {"--scontrol", &line->scontrol}, {"--topology", &line->topology},
        {"--network", &line->network},   {"--seconds", &line->seconds},
        {"--pairs", &line->pairs},       {"--scratch", &line->scratch},
        {"--layout", &line->layout},
    };
    size_t i = 0;

    while (strcmp(word, values[i].name) != 0)
        i++; /* it is one of them: allowed, and no flag */
    return values[i].value;
}

/* Is the word one of those of "[-o FILE] [--alone|--shared]"? */
static bool is_allowed(const char *arguments, const char *word)
{
    static const char between[] = " []|\n";
    size_t len = strlen(word);

    while (*arguments) {
        size_t n = strcspn(arguments, between);

        if (n == len && strncmp(arguments, word, len) == 0)
            return true;
        arguments += n;
        arguments += strspn(arguments, between);
    }
    return false;
}

int chempi_command_read_line(int argc, char **argv,
                             const struct chempi_command *command,
                             struct chempi_command_line *line,
                             struct chempi_err *err)
{
    bool options = true;

    *line = (struct chempi_command_line){.count = 0};
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1]) {
            if (!is_allowed(command->arguments, word))
                return chempi_command_usage(err, "unknown option ", word);
            if (take_flag(line, word))
                continue;
            if (i + 1 == argc)
                return chempi_command_usage(err, "expected a value after ",
                                            word);
            *value_of(line, word) = argv[++i];
        } else if (line->count == command->most) {
            return chempi_command_usage(err, "too many arguments from ", word);
        } else {
            line->arguments[line->count++] = word;
        }
    }
    if (line->count < command->least)
        return chempi_command_usage(err, "too few arguments", "");
    return 0;
}

int chempi_command_read_size(const char *text, uint64_t *len,
                             struct chempi_err *err)
{
    return chempi_size_parse(text, UINT64_MAX, len) == 0
               ? 0
               : chempi_command_usage(
                     err, "expected a size such as 64KiB, found ", text);
}

uint32_t chempi_command_find_node(const struct chempi_desc *desc,
                                  const char *name, struct chempi_err *err)
{
    uint32_t node = chempi_names_find(&desc->node_names, name);
    const char **words;
    const char *near;
    size_t count = desc->node_count < 4096 ? desc->node_count : 4096;

    if (node != CHEMPI_NAMES_NONE)
        return node;
    words = chempi_mem_get(count, sizeof(*words));
    for (size_t i = 0; i < count; i++)
        words[i] = desc->nodes[i].name;
    near = chempi_text_suggest(name, words, count);
    (void)chempi_err_set(err, -ENOENT, "%s: no node '%.80s'%s%s%s", desc->file,
                         name, near ? "; did you mean '" : "", near ? near : "",
                         near ? "'?" : "");
    free(words);
    return node;
}

bool chempi_command_find_ends(const struct chempi_desc *desc,
                              const struct chempi_command_line *line,
                              uint32_t *from, uint32_t *to,
                              struct chempi_err *err)
{
    *from = chempi_command_find_node(desc, line->arguments[1], err);
    if (*from == CHEMPI_NAMES_NONE)
        return false;
    *to = chempi_command_find_node(desc, line->arguments[2], err);
    return *to != CHEMPI_NAMES_NONE;
}
