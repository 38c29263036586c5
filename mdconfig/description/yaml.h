/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A YAML document with the helpers that give errors their form:
 * "file:line:column: expected WHAT, found WHAT". Only yaml.c sees libyaml.
 *
 * A value is a handle into the document, valid until close. Aliases make
 * values shared; readers descend only as deep as their schema, so that a
 * document which contains itself cannot lead them in circles.
 */
#ifndef CHEMPI_MDCONFIG_YAML_H
#define CHEMPI_MDCONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "mdconfig/description/mem.h"

#define CHEMPI_YAML_FILE_MAX (16u << 20) /* bytes */

struct chempi_yaml;
typedef int chempi_yaml_value; /* 0: none */

enum chempi_yaml_kind {
    CHEMPI_YAML_NULL, /* empty, "~" or "null" */
    CHEMPI_YAML_SCALAR,
    CHEMPI_YAML_LIST,
    CHEMPI_YAML_MAPPING
};

struct chempi_yaml_pair {
    chempi_yaml_value key;
    chempi_yaml_value value;
    const char *name; /* the key's text; never NULL */
};

/* Read a file ("-": standard input), as text or as YAML, or text in memory that
 * errors call `name`. Errors: -errno of the file, -EFBIG, -EINVAL with place.
 */
int chempi_yaml_read(const char *path, char **text, size_t *len,
                     struct chempi_err *err); /* free(*text) */
int chempi_yaml_open(const char *path, struct chempi_yaml **out,
                     struct chempi_err *err);
int chempi_yaml_parse(const char *name, const void *text, size_t len,
                      struct chempi_yaml **out, struct chempi_err *err);
void chempi_yaml_close(struct chempi_yaml *yaml);

/* The top of the document; 0 when it is empty. */
chempi_yaml_value chempi_yaml_root(const struct chempi_yaml *yaml);
enum chempi_yaml_kind chempi_yaml_kind_of(const struct chempi_yaml *yaml,
                                          chempi_yaml_value value);
/* Text of a scalar, without embedded zeros. */
const char *chempi_yaml_text(const struct chempi_yaml *yaml,
                             chempi_yaml_value value);
size_t chempi_yaml_line(const struct chempi_yaml *yaml,
                        chempi_yaml_value value); /* from 1 */
size_t chempi_yaml_column(const struct chempi_yaml *yaml,
                          chempi_yaml_value value); /* from 1 */

/*
 * Where a value stands in the text that was parsed: bytes [*from, *to). An
 * empty value has from == to. Where a list or mapping in block style ends says
 * nothing about its last line.
 */
void chempi_yaml_span(const struct chempi_yaml *yaml, chempi_yaml_value value,
                      size_t *from, size_t *to);
/* A list or mapping in brackets or braces. */
bool chempi_yaml_is_flow(const struct chempi_yaml *yaml,
                         chempi_yaml_value value);

/* Items of a list or mapping. */
size_t chempi_yaml_count(const struct chempi_yaml *yaml,
                         chempi_yaml_value value);
chempi_yaml_value chempi_yaml_item(const struct chempi_yaml *yaml,
                                   chempi_yaml_value list, size_t i);

/*
 * The pairs of a mapping, in the order of the file, in memory of the arena.
 * -EINVAL when it is no mapping ("expected WHAT"), a key is no scalar, or a
 * key stands there twice.
 */
int chempi_yaml_pairs(const struct chempi_yaml *yaml, chempi_yaml_value value,
                      const char *what, struct chempi_arena *arena,
                      struct chempi_yaml_pair **out, size_t *count,
                      struct chempi_err *err);

/* The pair with this name, or NULL. */
const struct chempi_yaml_pair *
chempi_yaml_find(const struct chempi_yaml_pair *pairs, size_t count,
                 const char *name);

/* err = "file:line:column: " and the words; returns -EINVAL. */
int chempi_yaml_fail(const struct chempi_yaml *yaml, chempi_yaml_value value,
                     struct chempi_err *err, const char *fmt, ...)
    CHEMPI_PRINTF(4, 5);
/* err = "file:line:column: expected WHAT, found ..."; returns -EINVAL. */
int chempi_yaml_expected(const struct chempi_yaml *yaml,
                         chempi_yaml_value value, struct chempi_err *err,
                         const char *what);

#endif
