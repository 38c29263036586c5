/* SPDX-License-Identifier: BSD-3-Clause */
/* The time limit before there is a job; see early.h. */
#define _GNU_SOURCE /* sigaction */
#include "chempid/launcher/early.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "chempid/job/exit_status.h"

#define DAYS_S 1e6 /* longer than anybody waits for a daemon's answer */

static char text[160]; /* ready: nothing may be composed in a handler */
static size_t text_len;
static struct sigaction before;

static void time_is_up(int number)
{
    const ssize_t n = write(STDERR_FILENO, text, text_len);

    (void)number;
    (void)n; /* a failing standard error leaves nobody to tell */
    _exit(CHEMPI_EXIT_TIMEOUT);
}

void chempi_early_limit(double seconds, double spent)
{
    const struct sigaction action = {.sa_handler = time_is_up};
    const double left = seconds > spent ? seconds - spent : 0;
    const double whole = left < DAYS_S ? left : DAYS_S;
    struct itimerval timer = {.it_value.tv_sec = (time_t)whole};
    sigset_t set;
    int n;

    if (seconds <= 0)
        return;
    timer.it_value.tv_usec =
        (suseconds_t)((whole - (double)timer.it_value.tv_sec) * 999999) + 1;
    n = snprintf(text, sizeof(text),
                 "chempirun: the time limit of %g s has passed before the "
                 "daemon has told of its nodes; nothing was started\n",
                 seconds);
    text_len = n > 0 ? (size_t)n : 0;
    (void)sigaction(SIGALRM, &action, &before);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGALRM);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

void chempi_early_over(void)
{
    const struct itimerval none = {.it_value.tv_sec = 0};

    if (!text_len)
        return;
    (void)setitimer(ITIMER_REAL, &none, NULL);
    (void)sigaction(SIGALRM, &before, NULL);
    text_len = 0;
}
