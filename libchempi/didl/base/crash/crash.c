/* SPDX-License-Identifier: BSD-3-Clause */
/* Backtraces of crashes; see crash.h. */
#define _GNU_SOURCE /* sigaltstack */
#include "libchempi/didl/base/crash/crash.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "common/base/compiler.h"
#include "common/symbol/symbol.h"
#include "libchempi/didl/base/setting.h"

enum { FRAMES = 32, STACK = 128 << 10, LINE = 256 };

static const struct {
    int number;
    const char *words;
} signals[] = {
    {SIGSEGV, "SIGSEGV (a bad address)"},
    {SIGBUS, "SIGBUS (a bad address)"},
    {SIGFPE, "SIGFPE (arithmetic)"},
    {SIGILL, "SIGILL (a bad instruction)"},
    {SIGABRT, "SIGABRT (abort)"},
};

static struct {
    const char *place; /* of this process, in words */
    bool is_watched[CHEMPI_ARRAY_LEN(signals)];
    bool has_stack; /* the alternate stack is ours */
    _Alignas(16) char stack[STACK];
} crash;

/* Whoever cannot be told is not. */
static void put(const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        const ssize_t n = write(STDERR_FILENO, text, len);

        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

struct walk {
    int frames; /* that were told */
};

/* The handler's own frames come first: the first one told is that which was
 * interrupted. */
static _Unwind_Reason_Code tell_frame(struct _Unwind_Context *frame, void *arg)
{
    struct walk *walk = arg;
    int is_exact = 0; /* the address is not behind a call */
    uintptr_t address = (uintptr_t)_Unwind_GetIPInfo(frame, &is_exact);
    char words[LINE];

    if (address == 0)
        return _URC_END_OF_STACK;
    if (walk->frames == 0 && !is_exact)
        return _URC_NO_REASON;
    address -= is_exact ? 0 : 1;
    put("    ");
    put(chempi_symbol_words((const void *)address, words, sizeof(words)));
    put("\n");
    return ++walk->frames == FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static const char *name_of(int number)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(signals); i++)
        if (signals[i].number == number)
            return signals[i].words;
    return "a signal";
}

_Thread_local chempi_crash_duty_fn *volatile chempi_crash_duty;

static void tell_duty(void)
{
    chempi_crash_duty_fn *duty = chempi_crash_duty;
    char words[LINE];

    if (!duty)
        return;
    duty(words, sizeof(words));
    put(crash.place);
    put(": ");
    put(words);
    put("\n");
}

/* The default action is back in place (SA_RESETHAND). A fault happens again on
 * return; what somebody has sent is sent again. */
static void crashed(int number, siginfo_t *info, void *context)
{
    struct walk walk = {0};

    (void)context;
    put(crash.place);
    put(": ");
    put(name_of(number));
    put("; the calls that led to it, the innermost first:\n");
    (void)_Unwind_Backtrace(tell_frame, &walk);
    tell_duty();
    if (info->si_code <= 0)
        (void)raise(number);
}

void chempi_crash_let_faults(sigset_t *set)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(signals); i++)
        (void)sigdelset(set, signals[i].number);
}

static void watch_one(size_t i)
{
    struct sigaction action = {.sa_sigaction = crashed,
                               .sa_flags =
                                   SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    struct sigaction old;

    if (sigaction(signals[i].number, NULL, &old) != 0 ||
        (old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL)
        return; /* Y1 */
    (void)sigemptyset(&action.sa_mask);
    crash.is_watched[i] = sigaction(signals[i].number, &action, NULL) == 0;
}

/* A stack that has overflown has no room for the handler. */
static void give_stack(void)
{
    const stack_t own = {.ss_sp = crash.stack, .ss_size = sizeof(crash.stack)};
    stack_t old;

    if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE))
        crash.has_stack = sigaltstack(&own, NULL) == 0;
}

void chempi_crash_watch(const char *place)
{
    if (!chempi_setting(CHEMPI_SET_CRASH_BACKTRACE))
        return;
    crash.place = place;
    give_stack();
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(signals); i++)
        watch_one(i);
}

void chempi_crash_unwatch(void)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t stack;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(signals); i++) {
        struct sigaction now;

        if (!crash.is_watched[i])
            continue;
        crash.is_watched[i] = false;
        if (sigaction(signals[i].number, NULL, &now) == 0 &&
            (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == crashed)
            (void)signal(signals[i].number, SIG_DFL);
    }
    if (crash.has_stack && sigaltstack(NULL, &stack) == 0 &&
        stack.ss_sp == crash.stack && !(stack.ss_flags & SS_ONSTACK))
        (void)sigaltstack(&none, NULL);
    crash.has_stack = false;
}
