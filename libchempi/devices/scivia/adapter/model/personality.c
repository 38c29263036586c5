/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a personality: a flat mapping, "key: value" on each line, comments
 * from # on. Every number has a unit where it has a dimension.
 */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "libchempi/devices/scivia/adapter/model/personality.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"

#define WORD_MAX 64 /* bytes of a key or a value, with the zero */
#define TIME_MAX_NS 1e9
#define RATE_MAX 1e9 /* bytes per ms */
#define COUNT_MAX 1e7
#define SIZE_MAX_BYTES 1073741824.0
#define WIDTH_MAX 64.0 /* a line: nothing is wider */
#define NEEDS_MAX 2

enum dimension { TIME, RATE, COUNT, SIZE, WIDTH };
enum half { SCI = 1, VIA = 2, MAY = 4 };

struct key {
    const char *name;
    size_t offset;
    enum dimension dimension;
    unsigned half; /* whose absence makes the key superfluous; MAY: may be left
                      out */
    double least;
    const char *needs[NEEDS_MAX]; /* keys without which it means nothing */
};

#define KEY(name, member, dimension, half, least)                              \
    KEY_WITH(name, member, dimension, half, least, NULL)
#define KEY_WITH(name, member, dimension, half, least, ...)                    \
    {                                                                          \
        name, offsetof(struct chempi_personality, member), dimension, half,    \
            least,                                                             \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define HOST (SCI | VIA | MAY)
static const struct key keys[] = {
    KEY("packet latency", latency_ns, TIME, SCI, 0),
    KEY("full latency", full_latency_ns, TIME, SCI, 0),
    KEY("full packet", full_ns, TIME, SCI, 0),
    KEY("partial packet", partial_ns, TIME, SCI, 0),
    KEY("stream buffers", stream_buffers, COUNT, SCI, 1),
    KEY("remote read", read_ns, TIME, SCI, 0),
    KEY("dma setup", dma_setup_ns, TIME, SCI, 0),
    KEY("dma bandwidth", dma_bytes_per_ms, RATE, SCI, 1),
    KEY("interrupt", interrupt_ns, TIME, SCI | VIA, 0),
    KEY("doorbell", doorbell_ns, TIME, VIA, 0),
    KEY("via latency", via_latency_ns, TIME, VIA, 0),
    KEY("via bandwidth", via_bytes_per_ms, RATE, VIA, 1),
    KEY("register", register_ns, TIME, VIA, 0),
    KEY("register page", register_page_ns, TIME, VIA, 0),
    KEY("deregister", deregister_ns, TIME, VIA, 0),
    KEY("deregister page", deregister_page_ns, TIME, VIA, 0),
    KEY("table regions", table_regions, COUNT, VIA, 1),
    KEY("table pages", table_pages, COUNT, VIA, 1),
    KEY_WITH("store width", store_bytes, WIDTH, SCI | MAY, 1, "narrow store"),
    KEY_WITH("narrow store", narrow_ns, TIME, SCI | MAY, 1, "store width"),
    KEY("host copy", host_bytes_per_ms, RATE, HOST, 1),
    KEY_WITH("host small copy", host_small_bytes_per_ms, RATE, HOST, 1,
             "host copy"),
    KEY_WITH("host cache", host_cache_bytes, SIZE, HOST, 2048,
             "host memory copy", "host copy"),
    KEY_WITH("host memory copy", host_memory_bytes_per_ms, RATE, HOST, 1,
             "host cache"),
};

static const struct unit {
    const char *name;
    enum dimension dimension;
    double factor;
} units[] = {
    {"ns", TIME, 1},        {"us", TIME, 1e3},   {"ms", TIME, 1e6},
    {"", COUNT, 1},         {"MB/s", RATE, 1e3}, {"GB/s", RATE, 1e6},
    {"", WIDTH, 1},         {"B", SIZE, 1},      {"KiB", SIZE, 1024},
    {"MiB", SIZE, 1048576},
};

struct parser {
    const char *file;
    unsigned line;
    struct chempi_personality made;
    uint32_t seen; /* bits: keys, then name and halves */
    struct chempi_err *err;
};

#define SEEN_NAME (1u << 30)
#define SEEN_HALVES (1u << 31)

static int complain(struct parser *p, const char *what, const char *which)
{
    return chempi_err_set(p->err, -EINVAL, "%s:%u: %s%s", p->file, p->line,
                          what, which);
}

/* Where a number must be one: a power of two in a width. */
static bool is_whole(enum dimension dimension, double number)
{
    uint32_t whole = (uint32_t)number;

    if (dimension == TIME || dimension == RATE)
        return true;
    return number == (double)whole &&
           (dimension != WIDTH || (whole & (whole - 1)) == 0);
}

static int take_number(struct parser *p, const struct key *key,
                       const char *value)
{
    static const char *const expected[] = {
        [TIME] = ("expected a time such as \"2.5 us\" (ns, us, ms; at most "
                  "1000 ms), not "),
        [RATE] = "expected a rate such as \"87.7 MB/s\" (MB/s, GB/s), not ",
        [COUNT] = "expected a whole number, not ",
        [SIZE] = ("expected a size such as \"32 KiB\" (B, KiB, MiB; 2 KiB to 1 "
                  "GiB), not "),
        [WIDTH] = "expected 1, 2, 4, 8, 16, 32 or 64 (bytes), not ",
    };
    static const double most[] = {[TIME] = TIME_MAX_NS,
                                  [RATE] = RATE_MAX,
                                  [COUNT] = COUNT_MAX,
                                  [SIZE] = SIZE_MAX_BYTES,
                                  [WIDTH] = WIDTH_MAX};
    double number;
    char *end;

    if (!isdigit((unsigned char)value[0]))
        return complain(p, expected[key->dimension], value);
    number = strtod(value, &end);
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(units); i++) {
        if (units[i].dimension != key->dimension ||
            strcmp(units[i].name, end) != 0)
            continue;
        number *= units[i].factor;
        if (number < key->least || number > most[key->dimension] ||
            !is_whole(key->dimension, number))
            break;
        *(uint32_t *)(void *)((char *)&p->made + key->offset) =
            (uint32_t)(number + 0.5);
        return 0;
    }
    return complain(p, expected[key->dimension], value);
}

static int take_halves(struct parser *p, const char *value)
{
    if (strcmp(value, "sci and via") == 0)
        p->made.has_sci = p->made.has_via = true;
    else if (strcmp(value, "sci") == 0)
        p->made.has_sci = true;
    else if (strcmp(value, "via") == 0)
        p->made.has_via = true;
    else
        return complain(p, "expected \"sci\", \"via\" or \"sci and via\", not ",
                        value);
    return 0;
}

static int note(struct parser *p, uint32_t bit, const char *key)
{
    if (p->seen & bit)
        return complain(p, "a second time: ", key);
    p->seen |= bit;
    return 0;
}

static int take_pair(struct parser *p, const char *key, const char *value)
{
    int rc;

    if (strcmp(key, "name") == 0) {
        rc = note(p, SEEN_NAME, key);
        if (rc == 0 && strlen(value) >= sizeof(p->made.name))
            rc = complain(p, "too long: ", value);
        if (rc == 0)
            memcpy(p->made.name, value, strlen(value) + 1);
        return rc;
    }
    if (strcmp(key, "halves") == 0) {
        rc = note(p, SEEN_HALVES, key);
        return rc ? rc : take_halves(p, value);
    }
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(keys); i++) {
        if (strcmp(key, keys[i].name) != 0)
            continue;
        rc = note(p, 1u << i, key);
        return rc ? rc : take_number(p, &keys[i], value);
    }
    return complain(p, "unknown key: ", key);
}

/* Copy [from, to) without blanks at its ends. */
static bool trim(const char *from, const char *to, char word[WORD_MAX])
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (from < to && isspace((unsigned char)to[-1]))
        to--;
    if (to - from >= WORD_MAX)
        return false;
    memcpy(word, from, (size_t)(to - from));
    word[to - from] = '\0';
    return true;
}

static int take_line(struct parser *p, const char *line, const char *end)
{
    const char *hash = memchr(line, '#', (size_t)(end - line));
    const char *colon;
    char key[WORD_MAX];
    char value[WORD_MAX];

    end = hash ? hash : end;
    if (memchr(line, '\0', (size_t)(end - line)))
        return complain(p, "a zero byte", "");
    if (!trim(line, end, key))
        key[0] = '?';
    if (key[0] == '\0')
        return 0;
    colon = memchr(line, ':', (size_t)(end - line));
    if (!colon)
        return complain(p, "expected \"key: value\"", "");
    if (!trim(line, colon, key) || !trim(colon + 1, end, value))
        return complain(p, "a word is too long", "");
    if (value[0] == '\0')
        return complain(p, "no value for ", key);
    return take_pair(p, key, value);
}

static bool has_key(const struct parser *p, const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(keys); i++)
        if (strcmp(name, keys[i].name) == 0)
            return (p->seen & 1u << i) != 0;
    return false;
}

/* Of a key that was seen: what it means nothing without. */
static int check_needs(struct parser *p, const struct key *key)
{
    for (size_t i = 0; i < NEEDS_MAX && key->needs[i]; i++)
        if (!has_key(p, key->needs[i]))
            return complain(p, "the file ends without ", key->needs[i]);
    return 0;
}

/* Everything that the halves need has been said, and nothing else. */
static int check_complete(struct parser *p)
{
    unsigned halves =
        (p->made.has_sci ? SCI : 0u) | (p->made.has_via ? VIA : 0u);

    if (!(p->seen & SEEN_NAME))
        return complain(p, "the file ends without ", "name");
    if (!(p->seen & SEEN_HALVES))
        return complain(p, "the file ends without ", "halves");
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(keys); i++) {
        bool is_seen = (p->seen & 1u << i) != 0;

        if ((keys[i].half & halves) && !is_seen && !(keys[i].half & MAY))
            return complain(p, "the file ends without ", keys[i].name);
        if (!(keys[i].half & halves) && is_seen)
            return complain(p, "not a figure of these halves: ", keys[i].name);
        if (is_seen && check_needs(p, &keys[i]) < 0)
            return -EINVAL;
    }
    return 0;
}

int chempi_personality_parse(const char *file, const char *text, size_t len,
                             struct chempi_personality *out,
                             struct chempi_err *err)
{
    struct parser p = {.file = file, .err = err};
    const char *end = text + len;
    int rc;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));

        stop = stop ? stop : end;
        p.line++;
        rc = take_line(&p, text, stop);
        if (rc < 0)
            return rc;
        text = stop + 1;
    }
    rc = check_complete(&p);
    if (rc < 0)
        return rc;
    *out = p.made;
    return 0;
}

int chempi_personality_load(const char *file, struct chempi_personality *out,
                            struct chempi_err *err)
{
    char *text = chempi_sys->malloc(CHEMPI_PERSONALITY_FILE_MAX);
    size_t len = 0;
    ssize_t n = 1;
    int rc = 0;
    int fd;

    if (!text)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    fd = chempi_sys->open(file, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        rc = -errno;
    while (rc == 0 && n > 0 && len < CHEMPI_PERSONALITY_FILE_MAX) {
        n = chempi_sys->read(fd, text + len, CHEMPI_PERSONALITY_FILE_MAX - len);
        if (n < 0)
            rc = -errno;
        else
            len += (size_t)n;
    }
    if (fd >= 0)
        (void)close(fd); /* only read from */
    if (rc == 0 && len == CHEMPI_PERSONALITY_FILE_MAX)
        rc = -EFBIG;
    if (rc < 0)
        (void)chempi_err_set(err, rc, "personality %s: %s", file,
                             chempi_err_name(rc));
    else
        rc = chempi_personality_parse(file, text, len, out, err);
    free(text);
    return rc;
}
