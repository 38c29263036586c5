/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into a daemon with "-Wl,--wrap=getaddrinfo": the host stuck.test is
 * being looked up for ever.
 */
#define _GNU_SOURCE /* getaddrinfo */
#include <netdb.h>
#include <string.h>
#include <unistd.h>

int __real_getaddrinfo(const char *host, const char *port,
                       const struct addrinfo *hints, struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *port,
                       const struct addrinfo *hints, struct addrinfo **out);

int __wrap_getaddrinfo(const char *host, const char *port,
                       const struct addrinfo *hints, struct addrinfo **out)
{
    if (strcmp(host, "stuck.test") == 0 && !(hints->ai_flags & AI_NUMERICHOST))
        for (;;)
            (void)pause();
    return __real_getaddrinfo(host, port, hints, out);
}
