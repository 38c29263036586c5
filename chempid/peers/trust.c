/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of nodes; see trust.h. */
#define _GNU_SOURCE /* strtok_r, fdopen */
#include "chempid/peers/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chempid/tree/nodes/members.h"
#include "common/containers/array.h"
#include "common/fd/file.h"
#include "common/words/linefile.h"

#define KEY CHEMPI_NOISE_KEY_BYTES

static struct chempi_trusted *add(struct chempi_trust *trust)
{
    if (!CHEMPI_ARRAY_FIT(trust->list, trust->room, trust->count + 1))
        return NULL;
    return &trust->list[trust->count++];
}

static int parse_words(struct chempi_trust *trust, const char *verb,
                       const char *hex, const char *node, const char *rest)
{
    const bool is_allow = verb && strcmp(verb, "allow") == 0;
    const bool is_revoke = verb && strcmp(verb, "revoke") == 0;
    struct chempi_trusted *t;
    uint8_t key[KEY];
    size_t len;

    if (!is_allow && !is_revoke)
        return -EINVAL;
    if (!hex || rest ||
        sodium_hex2bin(key, KEY, hex, strlen(hex), NULL, &len, NULL) != 0 ||
        len != KEY || strlen(hex) != 2 * KEY)
        return -EINVAL;
    if (is_allow ? !node || !chempi_members_is_name(node) : node != NULL)
        return -EINVAL;
    t = trust->count < CHEMPI_TRUST_MAX ? add(trust) : NULL;
    if (!t)
        return -ENOMEM;
    memcpy(t->key, key, KEY);
    (void)snprintf(t->node, sizeof(t->node), "%s", is_allow ? node : "");
    trust->has_allowed |= is_allow;
    return 0;
}

static int take_line(void *arg, char *line, unsigned number,
                     struct chempi_err *err)
{
    static const char blank[] = " \t";
    const char *words[4];
    char *save;
    int rc = 0;

    (void)number;
    for (int i = 0; i < 4; i++)
        words[i] = strtok_r(i ? NULL : line, blank, &save);
    if (words[0])
        rc = parse_words(arg, words[0], words[1], words[2], words[3]);
    if (rc == -EINVAL)
        return chempi_err_set(err, rc,
                              "expected 'allow KEY NODE' or 'revoke KEY', the "
                              "key as 64 hexadecimal digits");
    return rc ? chempi_err_set(err, rc, "%s", chempi_err_name(rc)) : 0;
}

int chempi_trust_read(struct chempi_trust *trust, int fd, const char *path,
                      struct chempi_err *err)
{
    struct stat st;
    FILE *file = fdopen(fd, "r");
    int rc = 0;

    *trust = (struct chempi_trust){0};
    if (!file || fstat(fileno(file), &st) < 0)
        rc = chempi_err_set(err, -errno, "cannot open %s: %s", path,
                            chempi_err_name(errno));
    else if (!S_ISREG(st.st_mode))
        rc = chempi_err_set(err, -EINVAL, "%s: not a regular file", path);
    else if (!chempi_file_is_safe(&st))
        rc = chempi_err_set(err, -EPERM,
                            "%s: others can change this file; run 'chown %ld "
                            "%s' and 'chmod go-w %s'",
                            path, (long)geteuid(), path, path);
    if (!rc)
        rc = chempi_linefile_take(file, path, "keys", take_line, trust, err);
    else if (file)
        (void)fclose(file); /* read only */
    else
        (void)close(fd); /* the same */
    if (rc)
        chempi_trust_fini(trust);
    return rc;
}

void chempi_trust_fini(struct chempi_trust *trust)
{
    free(trust->list);
    *trust = (struct chempi_trust){0};
}

int chempi_trust_check(const struct chempi_trust *trust, const uint8_t *key,
                       const char *node, struct chempi_err *err)
{
    const struct chempi_trusted *found = NULL;
    char hex[2 * KEY + 1];

    (void)sodium_bin2hex(hex, sizeof(hex), key, KEY);
    for (uint32_t i = 0; i < trust->count; i++) {
        const struct chempi_trusted *t = &trust->list[i];

        if (memcmp(t->key, key, KEY) != 0)
            continue;
        if (!t->node[0])
            return chempi_err_set(err, -EACCES, "its key %s is revoked", hex);
        if (!node || strcmp(node, t->node) == 0)
            found = t;
    }
    if (found || !trust->has_allowed)
        return 0;
    return chempi_err_set(err, -EACCES, "its key %s is not allowed%s%s", hex,
                          node ? " for node " : "", node ? node : "");
}
