/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of programs for chempirun --configfile. */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/options/configfile.h"

static struct chempi_pool pool;
static struct chempi_configfile file;
static struct chempi_err err;

static int read_bytes(const char *text, size_t len)
{
    char path[] = "/tmp/chempi-programs-XXXXXX";
    const int fd = mkstemp(path);
    int rc;

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, len), (ssize_t)len);
    cr_assert_eq(close(fd), 0);
    file = (struct chempi_configfile){0};
    rc = chempi_configfile_read(&file, &pool, path, &err);
    cr_assert_eq(unlink(path), 0);
    return rc;
}

static int read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void tear_down(void)
{
    chempi_pool_fini(&pool);
}

TestSuite(configfile, .fini = tear_down);

/* The words of a line with a "|" behind each. */
static void expect_line(uint32_t i, uint32_t number, const char *want)
{
    char got[256] = "";

    cr_assert_lt(i, file.count);
    for (char **w = file.lines[i].words; *w; w++) {
        strcat(got, *w);
        strcat(got, "|");
    }
    cr_expect_str_eq(got, want);
    cr_expect_eq(file.lines[i].number, number, "%s begins in line %u", want,
                 file.lines[i].number);
}

/* A file of one line. */
static void expect_words(const char *text, const char *want)
{
    cr_assert_eq(read_text(text), 0, "%s: %s", text, err.text);
    cr_assert_eq(file.count, 1, "%s", text);
    expect_line(0, 1, want);
}

Test(configfile, has_a_program_a_line_and_comments)
{
    cr_assert_eq(read_text("# ocean and atmosphere\n"
                           "\n"
                           "-n 5 -wdir /x\tocean  \n"
                           "   # a comment that ends with a backslash \\\n"
                           "  -n 10 atmos in : #1 a#b\n"
                           " \t\n"),
                 0);
    cr_assert_eq(file.count, 2);
    expect_line(0, 3, "-n|5|-wdir|/x|ocean|");
    expect_line(1, 5, "-n|10|atmos|in|:|#1|a#b|");
}

Test(configfile, lines_are_joined_by_a_backslash)
{
    cr_assert_eq(read_text("-n 2 \\\n  a\\\nb \\\r\n \\\n\n-n 3 c\n d\\"), 0);
    cr_assert_eq(file.count, 3);
    expect_line(0, 1, "-n|2|ab|");
    expect_line(1, 6, "-n|3|c|");
    expect_line(2, 7, "d|");
    expect_words("\\\n# no comment\n", "#|no|comment|");
    cr_expect_eq(file.lines[0].number, 1);
}

Test(configfile, ends_of_lines_may_be_those_of_other_systems)
{
    cr_assert_eq(read_text("a b\r\n\r\n# c\r\nd 'e f'\r\ng"), 0);
    cr_assert_eq(file.count, 3);
    expect_line(0, 1, "a|b|");
    expect_line(1, 4, "d|e f|");
    expect_line(2, 5, "g|");
}

Test(configfile, quotes_and_backslashes_are_as_a_shells)
{
    expect_words("p \"good day\" 'a \"b\" \\n' x' 'y\"z\"",
                 "p|good day|a \"b\" "
                 "\\n|x yz|");
    expect_words("p \"a\\\"b\\\\c\\d\\$e\\`\" \\\"f\\ g\\h \\#",
                 "p|a\"b\\c\\d$e`|\"f gh|#|");
    expect_words("'' \"\" p ''\n", "||p||");
    expect_words("\"a\\\nb\" 'c\\\nd'", "ab|c\\\nd|");
    expect_words("'c\\\r\nd' '\\\n'e\\\nf", "c\\\nd|\\\nef|");
    expect_words("p 'it'\\''s' $HOME *", "p|it's|$HOME|*|");
    expect_words("p a\\\\\n", "p|a\\|");
}

Test(configfile, mistakes_are_named_with_file_and_line)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", ": no program to run"},
        {"# nothing\n\n  \n", ": no program to run"},
        {"a\nb \"c\nd\n", ":2: a quote (\") is not closed"},
        {"a\nb 'c", ":2: a quote (') is not closed"},
        {"b 'c\\", ":1: a quote (') is not closed"},
        {"a\n\nb 'c \\\n d\n", ":4: a quote (') is not closed"},
        {"a\nb \\ \nc\n", ":2: blanks follow the backslash"},
        {"a \\\t ", ":1: blanks follow the backslash"},
        {"a \\\r", ":1: blanks follow the backslash"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(read_text(bad[i].text), -EINVAL, "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].words) && err.text[0] == '/',
                  "%s: %s", bad[i].text, err.text);
        cr_expect_eq(file.count, 0);
    }
    cr_expect_eq(read_bytes("a\nb\0c\n", 6), -EINVAL);
    cr_expect(strstr(err.text, ":2: a zero byte"), "%s", err.text);
}

Test(configfile, what_cannot_be_read_is_told)
{
    cr_expect_eq(chempi_configfile_read(&file, &pool, "/nonexistent/f", &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "/nonexistent/f: No such file or directory");
    cr_expect_eq(chempi_configfile_read(&file, &pool, "/", &err), -EINVAL);
    cr_expect(strstr(err.text, "/: it cannot be read: Is a directory"), "%s",
              err.text);
    cr_expect_eq(chempi_configfile_read(&file, &pool, "/dev/zero", &err),
                 -EINVAL);
}

Test(configfile, size_is_limited)
{
    char *text = malloc(CHEMPI_CONFIGFILE_BYTES_MAX + 1);

    cr_assert_not_null(text);
    for (size_t i = 0; i <= CHEMPI_CONFIGFILE_BYTES_MAX; i++)
        text[i] = i % 2 ? '\n' : 'a'; /* as many lines and words as can be */
    cr_expect_eq(read_bytes(text, CHEMPI_CONFIGFILE_BYTES_MAX + 1), -EINVAL);
    cr_expect(strstr(err.text, "it has more than 1048576 bytes"), "%s",
              err.text);
    cr_assert_eq(read_bytes(text, CHEMPI_CONFIGFILE_BYTES_MAX), 0);
    cr_expect_eq(file.count, CHEMPI_CONFIGFILE_BYTES_MAX / 2);
    cr_expect_str_eq(file.lines[file.count - 1].words[0], "a");
    cr_expect_null(file.lines[file.count - 1].words[1]);
    free(text);
}
