/* SPDX-License-Identifier: BSD-3-Clause */
/* See caller.h. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "common/symbol/caller.h"

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unwind.h>

#include "common/symbol/symbol.h"

static const char fortran_name[] = "libmpifort_abi.so";

static struct {
    pthread_once_t once;
    uintptr_t start; /* its code; written once */
    uintptr_t len;   /* 0: it is not there */
} fortran = {.once = PTHREAD_ONCE_INIT};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (strncmp(chempi_symbol_base(info->dlpi_name), fortran_name,
                sizeof(fortran_name) - 1) != 0)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            fortran.start = info->dlpi_addr + part->p_vaddr;
            fortran.len = part->p_memsz;
        }
    }
    return 1;
}

static void find_fortran(void)
{
    (void)dl_iterate_phdr(look_at_object, NULL);
}

static bool is_fortran(const void *from)
{
    return (uintptr_t)from - fortran.start < fortran.len;
}

struct search {
    bool has_met; /* the library's frames */
    const void *found;
};

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame,
                                         void *arg)
{
    struct search *search = arg;
    const uintptr_t at = (uintptr_t)_Unwind_GetIP(frame);

    if (is_fortran((const void *)at)) {
        search->has_met = true;
        return _URC_NO_REASON;
    }
    if (!search->has_met)
        return _URC_NO_REASON; /* the tool's own */
    search->found = (const void *)at;
    return _URC_END_OF_STACK;
}

const void *chempi_caller_in_program(const void *from)
{
    struct search search = {.found = NULL};

    (void)pthread_once(&fortran.once, find_fortran);
    if (!is_fortran(from))
        return from;
    (void)_Unwind_Backtrace(look_at_frame, &search);
    return search.found ? search.found : from;
}
