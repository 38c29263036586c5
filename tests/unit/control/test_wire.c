/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of control messages, good and malformed. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/control/wire.h"

Test(wire, what_is_written_is_read)
{
    struct chempi_writer w = {0};
    struct chempi_reader r;
    size_t len;

    chempi_wire_put_u8(&w, 0xa5);
    chempi_wire_put_u16(&w, 0xbeef);
    chempi_wire_put_u32(&w, 0xdeadbeef);
    chempi_wire_put_u64(&w, UINT64_C(0x0123456789abcdef));
    chempi_wire_put_str(&w, "word");
    chempi_wire_put_str(&w, "");
    chempi_wire_put_blob(&w, "\0\1", 2);
    cr_assert_eq(w.error, 0);
    chempi_wire_read(&r, w.data, w.len);
    cr_assert_eq(chempi_wire_get_u8(&r), 0xa5);
    cr_assert_eq(chempi_wire_get_u16(&r), 0xbeef);
    cr_assert_eq(chempi_wire_get_u32(&r), 0xdeadbeef);
    cr_assert_eq(chempi_wire_get_u64(&r), UINT64_C(0x0123456789abcdef));
    cr_assert_str_eq(chempi_wire_get_str(&r, 5), "word");
    cr_assert_str_eq(chempi_wire_get_str(&r, 1), "");
    cr_assert_eq(memcmp(chempi_wire_get_blob(&r, 2, &len), "\0\1", 2), 0);
    cr_assert_eq(len, 2);
    cr_assert(chempi_wire_is_done(&r));
    chempi_wire_clear(&w);
}

Test(wire, numbers_are_little_endian)
{
    struct chempi_writer w = {0};

    chempi_wire_put_u32(&w, 0x04030201);
    cr_assert_eq(memcmp(w.data, "\1\2\3\4", 4), 0);
    chempi_wire_clear(&w);
}

Test(wire, a_reader_does_not_pass_its_end)
{
    static const uint8_t bytes[3] = {1, 2, 3};
    struct chempi_reader r;

    chempi_wire_read(&r, bytes, sizeof(bytes));
    cr_assert_eq(chempi_wire_get_u32(&r), 0);
    cr_assert(r.is_bad);
    cr_assert_eq(chempi_wire_get_u8(&r), 0, "a bad reader gives nothing");
    cr_assert_not(chempi_wire_is_done(&r));
}

static void expect_bad_string(const void *bytes, size_t len, size_t max)
{
    struct chempi_reader r;

    chempi_wire_read(&r, bytes, len);
    cr_assert_str_eq(chempi_wire_get_str(&r, max), "");
    cr_assert(r.is_bad);
}

Test(wire, strings_must_fit_and_end_with_their_only_zero)
{
    expect_bad_string("\4\0\0\0abc", 7, 64);    /* cut */
    expect_bad_string("\3\0\0\0abc", 7, 64);    /* no zero */
    expect_bad_string("\4\0\0\0a\0c\0", 8, 64); /* a zero inside */
    expect_bad_string("\4\0\0\0abc\0", 8, 3);   /* over the limit */
    expect_bad_string("\0\0\0\0", 4, 64);       /* not even a zero */
    expect_bad_string("\xff\xff\xff\xff"
                      "a",
                      5, 64); /* a huge length */
}

Test(wire, counts_are_bounded_by_limit_and_by_what_is_there)
{
    static const uint8_t bytes[8] = {2, 0, 0, 0};
    struct chempi_reader r;

    chempi_wire_read(&r, bytes, sizeof(bytes));
    cr_assert_eq(chempi_wire_get_count(&r, 2, 2), 2);
    chempi_wire_read(&r, bytes, sizeof(bytes));
    cr_assert_eq(chempi_wire_get_count(&r, 1, 2), 0);
    cr_assert(r.is_bad);
    chempi_wire_read(&r, bytes, sizeof(bytes));
    cr_assert_eq(chempi_wire_get_count(&r, 2, 3), 0);
    cr_assert(r.is_bad);
}

static void *no_memory(void *ptr, size_t size)
{
    (void)ptr;
    (void)size;
    return NULL;
}

Test(wire, a_writer_without_memory_remembers_it)
{
    struct chempi_sys rigged = chempi_sys_libc;
    struct chempi_writer w = {0};

    rigged.realloc = no_memory;
    chempi_sys = &rigged;
    chempi_wire_put_str(&w, "text");
    chempi_sys = &chempi_sys_libc;
    chempi_wire_put_u8(&w, 1);
    cr_assert_eq(w.error, -ENOMEM);
    cr_assert_eq(w.len, 0);
}
