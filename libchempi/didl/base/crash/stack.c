/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that a thread is in; see stack.h. */
#define _GNU_SOURCE /* dladdr, vfork */
#include "libchempi/didl/base/crash/stack.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "common/base/compiler.h"
#include "common/symbol/symbol.h"

enum { DEEPEST = 64, LINE = 2 * CHEMPI_SYMBOL_NAME + 80 };

/* What the child has found, the innermost first. */
struct calls {
    volatile uint32_t count;
    volatile uintptr_t at[DEEPEST]; /* inside the call, not behind it */
};

/* ---- the child ---- */

static _Unwind_Reason_Code note_call(struct _Unwind_Context *frame, void *arg)
{
    struct calls *calls = arg;
    const uintptr_t address = (uintptr_t)_Unwind_GetIP(frame);

    if (address == 0)
        return _URC_END_OF_STACK;
    calls->at[calls->count] = address - 1;
    calls->count++;
    return calls->count == DEEPEST ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* What was noted before holds. */
static void give_up(int number)
{
    (void)number;
    _exit(1);
}

/* A fault must not be the default's, which on some kernels ends whoever shares
 * the memory; nor does any other signal reach the program's handlers here. */
CHEMPI_NORETURN static void read_calls(struct calls *calls)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    struct sigaction action = {.sa_handler = give_up};
    sigset_t open;

    (void)sigemptyset(&action.sa_mask);
    (void)sigemptyset(&open);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(faults); i++) {
        (void)sigaction(faults[i], &action, NULL);
        (void)sigaddset(&open, faults[i]);
    }
    (void)sigprocmask(SIG_UNBLOCK, &open, NULL);
    (void)_Unwind_Backtrace(note_call, calls);
    _exit(0);
}

/* This process stands still meanwhile, or at least this thread of it. */
static void CHEMPI_NOINLINE find_calls(struct calls *calls)
{
    sigset_t all;
    sigset_t old;
    pid_t pid;

    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
        return;
    pid = vfork();
    if (pid == 0)
        read_calls(calls);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue; /* else another thread of the program has taken it */
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- words ---- */

static const void *file_of(uintptr_t address, const char **name)
{
    Dl_info info;

    *name = NULL;
    if (!dladdr((const void *)address, &info))
        return NULL;
    *name = info.dli_sname;
    return info.dli_fbase;
}

/* "MPI_Send_init" of "mpi_send_init_", "pmpi_send_init_f08_" and the like; cut
 * is fine. */
static void put_c_name(const char *fortran, char *out, size_t len)
{
    static const char *const endings[] = {
        "_c_f08ts_", "_c_f08_", "_f08ts_", "_fts_", "_f08_", "__", "_"};
    size_t n;

    (void)snprintf(out, len, "MPI%s", strchr(fortran, '_'));
    n = strlen(out);
    out[4] = (char)toupper((unsigned char)out[4]);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(endings); i++) {
        const size_t k = strlen(endings[i]);

        if (n > k && strcmp(out + n - k, endings[i]) == 0) {
            out[n - k] = '\0';
            return;
        }
    }
}

/* Programs have functions whose names begin with mpi_, too. */
static bool is_mpi(const char *name)
{
    char c_name[CHEMPI_SYMBOL_NAME];

    if (!name)
        return false;
    if (strncmp(name, "mpi_", 4) == 0 || strncmp(name, "pmpi_", 5) == 0) {
        put_c_name(name, c_name, sizeof(c_name));
        return dlsym(RTLD_DEFAULT, c_name) != NULL;
    }
    return strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0;
}

/* How many of the calls from `first` on lie in the same object, up to the last
 * one that is a function of MPI's. */
static uint32_t count_wrapping(const struct calls *calls, uint32_t first)
{
    const void *object = NULL;
    uint32_t count = 0;

    for (uint32_t i = first; i < calls->count; i++) {
        const char *name;
        const void *file = file_of(calls->at[i], &name);

        if (!file || (i > first && file != object))
            break;
        object = file;
        if (is_mpi(name))
            count = i - first + 1;
    }
    return count;
}

/* Where the program's own calls begin: behind this library's and those of
 * objects that wrap MPI's functions (tools, Fortran's interfaces), one around
 * the other. */
static uint32_t skip_mpi(const struct calls *calls)
{
    const char *name;
    const void *own = file_of(calls->at[0], &name);
    uint32_t first = 0;
    uint32_t more;

    while (first < calls->count && file_of(calls->at[first], &name) == own)
        first++;
    while ((more = count_wrapping(calls, first)) > 0)
        first += more;
    return first;
}

static void put_words(char *out, const struct chempi_symbol *symbol)
{
    const char *file = chempi_symbol_base(symbol->path);

    if (*symbol->name)
        (void)snprintf(out, LINE, "%s+0x%llx (%.*s+0x%llx)", symbol->name,
                       (unsigned long long)symbol->offset, CHEMPI_SYMBOL_NAME,
                       file, (unsigned long long)symbol->address);
    else
        (void)snprintf(out, LINE, "%.*s+0x%llx", CHEMPI_SYMBOL_NAME, file,
                       (unsigned long long)symbol->address);
}

static void put_calls(const struct calls *calls, char *out, size_t len,
                      unsigned most)
{
    struct chempi_symbol symbol;
    const char *name;
    /* By a function whose address programs do not take: that of one which they
     * do may be theirs. */
    const void *libc = file_of((uintptr_t)&getppid, &name);
    size_t used = 0;

    for (uint32_t i = skip_mpi(calls); i < calls->count && most--; i++) {
        const uintptr_t address = calls->at[i];
        char line[LINE];
        size_t n;

        if (file_of(address, &name) == libc ||
            !chempi_symbol_find((const void *)address, &symbol))
            return; /* whoever has called main, or a thread's function */
        put_words(line, &symbol);
        n = strlen(line);
        if (used + (used > 0) + n >= len)
            return;
        used += (size_t)snprintf(out + used, len - used, "%s%s",
                                 used ? "\n" : "", line);
        if (strcmp(symbol.name, "main") == 0)
            return;
    }
}

void chempi_stack_put(char *out, size_t len, unsigned most)
{
    const int old_errno = errno;
    struct calls *calls;

    out[0] = '\0';
    /* Shared, should the child be one that shares nothing else. */
    calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (calls != MAP_FAILED) {
        find_calls(calls);
        if (calls->count > 0)
            put_calls(calls, out, len, most);
        (void)munmap(calls, sizeof(*calls));
    }
    errno = old_errno;
}
