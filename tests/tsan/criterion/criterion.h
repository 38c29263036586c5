/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for Criterion in builds with ThreadSanitizer, whose memory layout
 * Criterion's sandbox does not survive. Only what our tests use: each test
 * runs in a forked process of its own, one after the other; a failed assertion
 * ends the test, a failed expectation only marks it.
 */
#ifndef CHEMPI_TESTS_TSAN_CRITERION_H
#define CHEMPI_TESTS_TSAN_CRITERION_H

#pragma GCC system_header

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct tsan_options {
    int unused;
    void (*init)(void);
    void (*fini)(void);
    double timeout; /* seconds */
    int signal;     /* that the test must die of */
    int exit_code;  /* that the test must end with */
    bool disabled;
    const char *description;
};

struct criterion_test_params {
    size_t size; /* of one parameter, bytes */
    void *params;
    size_t length;
};

struct tsan_test {
    const char *suite;
    const char *name;
    struct tsan_options options;
    void (*run)(void);
    void (*run_with)(void *param);
    struct criterion_test_params (*params)(void);
    struct tsan_test *next;
};

void tsan_add_test(struct tsan_test *test);
void tsan_add_suite(struct tsan_test *suite);

/* Note a failure; ends the test's process when it is fatal. */
void tsan_fail(bool is_fatal, const char *file, int line, const char *what,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Ends the test's process; it counts neither way. */
_Noreturn void tsan_skip(const char *why);

#define cr_skip_test(why) tsan_skip(why)

#define TestSuite(suite_, ...)                                                 \
    static struct tsan_test tsan_suite_##suite_ = {                            \
        .suite = #suite_, .options = {.unused = 0, ##__VA_ARGS__}};            \
    __attribute__((constructor)) static void tsan_add_suite_##suite_(void)     \
    {                                                                          \
        tsan_add_suite(&tsan_suite_##suite_);                                  \
    }                                                                          \
    struct tsan_test

#define Test(suite_, name_, ...)                                               \
    static void suite_##_##name_##_run(void);                                  \
    static struct tsan_test suite_##_##name_##_test = {                        \
        .suite = #suite_,                                                      \
        .name = #name_,                                                        \
        .run = suite_##_##name_##_run,                                         \
        .options = {.unused = 0, ##__VA_ARGS__}};                              \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)      \
    {                                                                          \
        tsan_add_test(&suite_##_##name_##_test);                               \
    }                                                                          \
    static void suite_##_##name_##_run(void)

#define ParameterizedTestParameters(suite_, name_)                             \
    static struct criterion_test_params suite_##_##name_##_params(void)

#define ParameterizedTest(param_, suite_, name_, ...)                          \
    static void suite_##_##name_##_typed(param_);                              \
    static void suite_##_##name_##_run(void *p)                                \
    {                                                                          \
        suite_##_##name_##_typed(p);                                           \
    }                                                                          \
    static struct tsan_test suite_##_##name_##_test = {                        \
        .suite = #suite_,                                                      \
        .name = #name_,                                                        \
        .run_with = suite_##_##name_##_run,                                    \
        .params = suite_##_##name_##_params,                                   \
        .options = {.unused = 0, ##__VA_ARGS__}};                              \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)      \
    {                                                                          \
        tsan_add_test(&suite_##_##name_##_test);                               \
    }                                                                          \
    static void suite_##_##name_##_typed(param_)

#define cr_make_param_array(type, array, count, ...)                           \
    (struct criterion_test_params)                                             \
    {                                                                          \
        .size = sizeof(type), .params = (void *)(array), .length = (count)     \
    }

#define TSAN_CHECK(fatal, good, what, ...)                                     \
    do {                                                                       \
        if (!(good))                                                           \
            tsan_fail(fatal, __FILE__, __LINE__, what, "" __VA_ARGS__);        \
    } while (0)

#define TSAN_COMPARE(fatal, a, op, b, ...)                                     \
    TSAN_CHECK(fatal, (a)op(b), #a " " #op " " #b, ##__VA_ARGS__)

#define cr_assert(c, ...) TSAN_CHECK(true, c, #c, ##__VA_ARGS__)
#define cr_expect(c, ...) TSAN_CHECK(false, c, #c, ##__VA_ARGS__)
#define cr_assert_not(c, ...) TSAN_CHECK(true, !(c), "!" #c, ##__VA_ARGS__)
#define cr_expect_not(c, ...) TSAN_CHECK(false, !(c), "!" #c, ##__VA_ARGS__)
#define cr_assert_fail(...) TSAN_CHECK(true, false, "fail", ##__VA_ARGS__)
#define cr_expect_fail(...) TSAN_CHECK(false, false, "fail", ##__VA_ARGS__)
#define cr_fail(...) TSAN_CHECK(false, false, "fail", ##__VA_ARGS__)

#define cr_assert_eq(a, b, ...) TSAN_COMPARE(true, a, ==, b, ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...) TSAN_COMPARE(false, a, ==, b, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...) TSAN_COMPARE(true, a, !=, b, ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...) TSAN_COMPARE(false, a, !=, b, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...) TSAN_COMPARE(true, a, <, b, ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...) TSAN_COMPARE(false, a, <, b, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...) TSAN_COMPARE(true, a, <=, b, ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...) TSAN_COMPARE(false, a, <=, b, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...) TSAN_COMPARE(true, a, >, b, ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...) TSAN_COMPARE(false, a, >, b, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...) TSAN_COMPARE(true, a, >=, b, ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...) TSAN_COMPARE(false, a, >=, b, ##__VA_ARGS__)

#define cr_assert_null(p, ...) TSAN_COMPARE(true, p, ==, NULL, ##__VA_ARGS__)
#define cr_expect_null(p, ...) TSAN_COMPARE(false, p, ==, NULL, ##__VA_ARGS__)
#define cr_assert_not_null(p, ...)                                             \
    TSAN_COMPARE(true, p, !=, NULL, ##__VA_ARGS__)
#define cr_expect_not_null(p, ...)                                             \
    TSAN_COMPARE(false, p, !=, NULL, ##__VA_ARGS__)

#define cr_assert_str_eq(a, b, ...)                                            \
    TSAN_CHECK(true, strcmp(a, b) == 0, #a " is " #b, ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)                                            \
    TSAN_CHECK(false, strcmp(a, b) == 0, #a " is " #b, ##__VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)                                           \
    TSAN_CHECK(true, strcmp(a, b) != 0, #a " is not " #b, ##__VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)                                           \
    TSAN_CHECK(false, strcmp(a, b) != 0, #a " is not " #b, ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, len, ...)                                       \
    TSAN_CHECK(true, memcmp(a, b, len) == 0, #a " is " #b, ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, len, ...)                                       \
    TSAN_CHECK(false, memcmp(a, b, len) == 0, #a " is " #b, ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                       \
    TSAN_CHECK(true, fabs((double)(a) - (double)(b)) <= (double)(e),           \
               #a " is near " #b, ##__VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...)                                       \
    TSAN_CHECK(false, fabs((double)(a) - (double)(b)) <= (double)(e),          \
               #a " is near " #b, ##__VA_ARGS__)

#endif
