/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of job descriptions as bytes; see strings.h. */
#include "chempid/job/strings.h"

#include "chempid/job/spec.h"

uint32_t chempi_strings_count(char *const *list)
{
    uint32_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

void chempi_strings_write(char *const *list, struct chempi_writer *w)
{
    const uint32_t n = chempi_strings_count(list);

    chempi_wire_put_u32(w, n);
    for (uint32_t i = 0; i < n; i++)
        chempi_wire_put_str(w, list[i]);
}

void chempi_strings_write_optional(const char *s, struct chempi_writer *w)
{
    chempi_wire_put_str(w, s ? s : "");
}

char *chempi_strings_read_one(struct chempi_pool *pool, struct chempi_reader *r,
                              size_t max)
{
    const char *s = chempi_wire_get_str(r, max);
    char *copy = r->is_bad ? NULL : chempi_pool_str(pool, s);

    r->is_bad |= !copy;
    return copy;
}

char *chempi_strings_read_optional(struct chempi_pool *pool,
                                   struct chempi_reader *r)
{
    char *s = chempi_strings_read_one(pool, r, CHEMPI_SPEC_STRING_MAX);

    return s && *s ? s : NULL;
}

char **chempi_strings_read(struct chempi_pool *pool, struct chempi_reader *r)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_SPEC_STRINGS_MAX, 5);
    char **list = chempi_pool_array(pool, (size_t)n + 1, sizeof(*list));

    r->is_bad |= !list;
    for (uint32_t i = 0; i < n && !r->is_bad; i++)
        list[i] = chempi_strings_read_one(pool, r, CHEMPI_SPEC_STRING_MAX);
    return r->is_bad ? NULL : list;
}
