/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the tests that were declared with the stand-in for Criterion. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_S 120.0
#define SLOWNESS 5.0 /* of ThreadSanitizer: limits are for builds without */
#define STATUS_SKIPPED 77

static struct tsan_test *tests;
static struct tsan_test *suites;
static bool has_failed; /* in the process of one test */
static bool *has_ended; /* shared with it: it came to its end */

void tsan_add_test(struct tsan_test *test)
{
    test->next = tests;
    tests = test;
}

void tsan_add_suite(struct tsan_test *suite)
{
    suite->next = suites;
    suites = suite;
}

void tsan_fail(bool is_fatal, const char *file, int line, const char *what,
               const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: failed: %s ", file, line, what);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    has_failed = true;
    if (is_fatal)
        exit(1);
}

void tsan_skip(const char *why)
{
    fprintf(stderr, "skipped: %s\n", why);
    exit(has_failed ? 1 : STATUS_SKIPPED);
}

/* What a test leaves open, its suite decides. */
static struct tsan_options options_of(const struct tsan_test *test)
{
    struct tsan_options o = test->options;

    for (struct tsan_test *s = suites; s; s = s->next) {
        if (strcmp(s->suite, test->suite) != 0)
            continue;
        if (!o.init)
            o.init = s->options.init;
        if (!o.fini)
            o.fini = s->options.fini;
        if (o.timeout <= 0.0)
            o.timeout = s->options.timeout;
        o.disabled = o.disabled || s->options.disabled;
    }
    if (o.timeout <= 0.0)
        o.timeout = DEFAULT_TIMEOUT_S;
    return o;
}

static void run_here(const struct tsan_test *test, const struct tsan_options *o,
                     void *param)
{
    (void)alarm((unsigned)(o->timeout * SLOWNESS));
    if (o->init)
        o->init();
    if (test->run_with)
        test->run_with(param);
    else
        test->run();
    if (o->fini)
        o->fini();
    *has_ended = true;
    exit(has_failed ? 1 : 0);
}

static bool is_good(const struct tsan_options *o, int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == o->signal;
    if (WEXITSTATUS(status) == STATUS_SKIPPED)
        return true;
    return WEXITSTATUS(status) == o->exit_code && !o->signal &&
           (*has_ended || o->exit_code);
}

static bool run_in_child(const struct tsan_test *test,
                         const struct tsan_options *o, void *param)
{
    int status = 0;
    pid_t pid;

    (void)fflush(NULL);
    *has_ended = false;
    pid = fork();
    if (pid == 0)
        run_here(test, o, param);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror(test->name);
        return false;
    }
    if (is_good(o, status))
        return true;
    fprintf(stderr, "FAIL %s::%s: %s %d%s\n", test->suite, test->name,
            WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
            *has_ended ? "" : " before its end");
    return false;
}

int main(void)
{
    int count = 0, failures = 0;

    has_ended = mmap(NULL, sizeof(*has_ended), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (has_ended == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (struct tsan_test *test = tests; test; test = test->next) {
        struct tsan_options o = options_of(test);
        struct criterion_test_params p = {.length = 1};

        if (o.disabled)
            continue;
        if (test->params)
            p = test->params();
        for (size_t i = 0; i < p.length; i++) {
            void *param = p.params ? (char *)p.params + i * p.size : NULL;

            count++;
            failures += !run_in_child(test, &o, param);
        }
    }
    printf("%d tests, %d failures\n", count, failures);
    return failures != 0 || count == 0;
}
