/* SPDX-License-Identifier: BSD-3-Clause */
/* What is installed together with this program; see beside.h. */
#define _GNU_SOURCE /* readlink */
#include "common/host/beside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/compiler.h"

bool chempi_beside_folder(char *folder, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", folder, size - 1);
    char *slash;

    folder[n > 0 && (size_t)n < size - 1 ? n : 0] = '\0';
    slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

void chempi_beside_execute(const char *name, char *const *argv)
{
    static const char *const places[] = {"/", CHEMPI_BESIDE_LIBEXEC};
    char folder[4096];
    char path[sizeof(folder) + 64];

    if (!chempi_beside_folder(folder, sizeof(folder)))
        return;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(places); i++) {
        (void)snprintf(path, sizeof(path), "%s%s%.40s", folder, places[i],
                       name);
        (void)execv(path, argv);
    }
}
