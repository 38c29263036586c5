/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a daemon knows; see members.h. */
#define _GNU_SOURCE /* O_NOFOLLOW, strverscmp */
#include "chempid/tree/nodes/members.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/words/linefile.h"
#include "common/words/plain.h"

/* Node names are file names of tables and sockets, too, and words of commands,
 * none of which is an option; and they are printed. */
bool chempi_members_is_name(const char *s)
{
    const size_t len = strlen(s);
    char plain[CHEMPI_NODE_NAME_MAX];

    if (len == 0 || *s == '.' || *s == '-' || len >= sizeof(plain) ||
        strcspn(s, "/ :,#") != len)
        return false;
    memcpy(plain, s, len);
    chempi_plain(plain, len, "");
    return memcmp(plain, s, len) == 0;
}

/* From a start that nobody knows, so that nobody finds names that meet in one
 * place. Without random bytes they only cost more. */
static uint32_t hash_of(const char *name)
{
    static uint32_t start;

    if (!start && getrandom(&start, sizeof(start), GRND_NONBLOCK) < 0)
        start = 1;
    start |= 1;
    return chempi_index_hash_text(start, name);
}

static bool has_name(const void *elements, uint32_t number, const void *key)
{
    const struct chempi_member *list = elements;

    return strcmp(list[number].name, key) == 0;
}

struct chempi_member *chempi_members_find(const struct chempi_members *m,
                                          const char *name)
{
    const uint32_t at =
        chempi_index_find(&m->index, hash_of(name), has_name, m->list, name);

    return at == CHEMPI_INDEX_NONE ? NULL : &m->list[at];
}

/* Anew: they have other places. There is room, or false. */
static bool index_all(struct chempi_members *m)
{
    bool is_good = true;

    chempi_index_clear(&m->index);
    for (uint32_t i = 0; i < m->count && is_good; i++)
        is_good = chempi_index_add(&m->index, hash_of(m->list[i].name), i);
    return is_good;
}

int chempi_members_add(struct chempi_members *m, const char *name,
                       const char *address, uint32_t slots)
{
    struct chempi_member *one;

    if (!chempi_members_is_name(name) || !*address ||
        strlen(address) >= CHEMPI_ADDR_MAX || slots > CHEMPI_SLOTS_MAX)
        return -EINVAL;
    one = chempi_members_find(m, name);
    if (one && strcmp(one->address, address) == 0 && one->slots == slots)
        return 0;
    if (!one) {
        if (m->count >= CHEMPI_MEMBERS_MAX)
            return -ENOSPC;
        if (!CHEMPI_ARRAY_FIT(m->list, m->cap, m->count + 1) ||
            !chempi_index_add(&m->index, hash_of(name), m->count))
            return -ENOMEM;
        one = &m->list[m->count++];
    }
    *one = (struct chempi_member){.slots = slots};
    (void)snprintf(one->name, sizeof(one->name), "%s", name);
    (void)snprintf(one->address, sizeof(one->address), "%s", address);
    return 1;
}

void chempi_members_prune(struct chempi_members *m,
                          bool (*is_wanted)(void *arg,
                                            const struct chempi_member *one),
                          void *arg)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < m->count; i++) {
        if (!is_wanted(arg, &m->list[i]))
            continue;
        if (kept < i)
            m->list[kept] = m->list[i];
        kept++;
    }
    if (kept == m->count)
        return;
    m->count = kept;
    (void)index_all(m); /* fewer fit */
}

static int take_line(void *arg, char *line, unsigned number,
                     struct chempi_err *err)
{
    struct chempi_members *m = arg;
    char name[CHEMPI_NODE_NAME_MAX] = "";
    char address[CHEMPI_ADDR_MAX] = "";
    unsigned slots = 0;
    int end = 0;
    int rc;

    (void)number;
    if (line[strspn(line, " \t")] == '\0')
        return 0;
    (void)sscanf(line, "%63s %299s %n%5u %n", name, address, &end, &slots,
                 &end);
    if (end == 0 || line[end])
        return chempi_err_set(err, -EINVAL,
                              "expected NAME ADDRESS:PORT [SLOTS]");
    if (chempi_members_find(m, name))
        return chempi_err_set(err, -EINVAL, "node %s is named twice", name);
    if (chempi_addr_is_any(address))
        return chempi_err_set(err, -EINVAL,
                              "nobody can call node %s at %s; name the "
                              "address that others shall call",
                              name, address);
    rc = chempi_members_add(m, name, address, slots);
    if (rc < 0)
        return chempi_err_set(err, rc, "node '%s' at '%s': %s", name, address,
                              chempi_err_name(rc));
    return 0;
}

static int check_file(FILE *file, const char *path, struct chempi_err *err)
{
    struct stat st;

    if (fstat(fileno(file), &st) < 0)
        return chempi_err_set(err, -errno, "%s: %s", path,
                              chempi_err_name(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > CHEMPI_CLUSTER_FILE_MAX)
        return chempi_err_set(err, -EINVAL,
                              "%s: not a regular file of at most %u bytes",
                              path, CHEMPI_CLUSTER_FILE_MAX);
    return 0;
}

/* Does not wait for the other end of a pipe; check_file() refuses it. */
static FILE *open_file(const char *path, int flags)
{
    const int fd =
        chempi_sys->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags, 0);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    const int code = errno;

    if (fd >= 0 && !file)
        (void)close(fd); /* read only */
    errno = code;
    return file;
}

static int read_file(struct chempi_members *m, const char *path, int flags,
                     struct chempi_err *err)
{
    FILE *file = open_file(path, flags);
    int rc;

    if (!file)
        return chempi_err_set(err, -errno, "%s: %s", path,
                              chempi_err_name(errno));
    rc = check_file(file, path, err);
    if (!rc)
        return chempi_linefile_take(file, path, "nodes", take_line, m, err);
    (void)fclose(file); /* read only */
    return rc;
}

int chempi_members_read(struct chempi_members *m, const char *path,
                        struct chempi_err *err)
{
    return read_file(m, path, 0, err);
}

/* The node whose ready file this is; "": none. */
static const char *node_of(const char *file, char *name, size_t size)
{
    const size_t end = sizeof(CHEMPI_READY_SUFFIX) - 1;
    const size_t len = strlen(file);

    *name = '\0';
    if (len > end && len - end < size &&
        strcmp(file + len - end, CHEMPI_READY_SUFFIX) == 0)
        (void)snprintf(name, size, "%.*s", (int)(len - end), file);
    return name;
}

/* A daemon makes its own file there, and no link to another one. */
void chempi_members_seek(struct chempi_members *m, const char *dir,
                         const char *name)
{
    struct chempi_members one = {0};
    char path[4096];
    int n =
        snprintf(path, sizeof(path), "%s/%s" CHEMPI_READY_SUFFIX, dir, name);

    if (chempi_members_is_name(name) && n > 0 && (size_t)n < sizeof(path) &&
        read_file(&one, path, O_NOFOLLOW, NULL) == 0 && one.count == 1 &&
        strcmp(one.list[0].name, name) == 0)
        (void)chempi_members_add(m, name, one.list[0].address,
                                 one.list[0].slots);
    chempi_members_fini(&one);
}

static int compare(const void *a, const void *b)
{
    const struct chempi_member *x = a;
    const struct chempi_member *y = b;

    return strverscmp(x->name, y->name);
}

void chempi_members_scan(struct chempi_members *m, const char *path)
{
    DIR *dir = opendir(path);
    const uint32_t before = m->count;
    char name[CHEMPI_NODE_NAME_MAX];
    struct dirent *d;

    if (!dir)
        return; /* no directory, no ready files */
    while ((d = readdir(dir)))
        chempi_members_seek(m, path, node_of(d->d_name, name, sizeof(name)));
    (void)closedir(dir); /* read only */
    if (m->count == before)
        return;
    qsort(m->list + before, m->count - before, sizeof(*m->list), compare);
    (void)index_all(m); /* as many fit */
}

void chempi_members_fini(struct chempi_members *m)
{
    free(m->list);
    chempi_index_fini(&m->index);
    *m = (struct chempi_members){0};
}
