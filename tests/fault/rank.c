/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank without MPI: speaks to its supervisor through client.h and does what
 * its arguments say, one after the other, so that tests can bring a job to any
 * stage and let it fail there.
 *
 *   world, unworld     say so (MPI_Init, MPI_Finalize with sessions open)
 *   init, final        say so             put K V      publish
 *   fence              enter and wait     get R K      ask, wait, print
 *   hang               wait for ever      exit N       exit
 *   raise N            by signal          abort N T    ask for the end
 *   print T            a line, at once    only R W...  W... on rank R only
 *   everyone           put, fence, get from all, check
 *   garbage            malformed bytes on the control socket
 *   child              leave a process behind in a session of its own
 *   report T           hand in a line of counters
 *   stop FILE          create FILE, then hang
 *   need N             from now on N bytes are needed
 *   memory W U         say: W bytes are wanted, U used (at most the share)
 *   share B            wait until the share is B bytes
 *   obey               from now on keep to the share, and print it as it comes
 *   deaf               hear no more
 *   misreport          say something malformed of memory
 *   here T             from now on, when asked, wait in T
 *   test T             from now on, when asked, be in T and not wait
 *   half T             the same as here, but say that more follows, and do not
 *                      say it
 *   say T              wait in T, which nobody has asked for
 *   mumble T           say something malformed instead of T
 *   asked              wait until asked where it waits
 *   spawn S            start a world, and print what the root answers: S is
 *                      "2|key|value|--|PROGRAM|WORD;1|--|PROGRAM"
 *   post S             the same without waiting
 *   over               wait until a world is over, and print it
 *   parent             print the world's number and the port of its parents
 *   publish N, look N  a name, and print the answer
 *   universe           print for how many ranks there is room
 */
#define _GNU_SOURCE /* setsid and friends */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/control/channel.h"
#include "common/control/client.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"
#include "common/wake/wake.h"

#define FLUSH_LIMIT_MS 60000 /* reached only when the supervisor hangs */

static struct chempi_client *client;
static struct {
    uint64_t fence;
    uint32_t rank;
    char value[CHEMPI_KVS_VALUE_MAX + 1];
    size_t len;
    int has_value;
    uint64_t share;
    uint64_t used;
    uint64_t wanted;
    uint64_t needed;
    int obeys;
    const char *here; /* NULL: no answer */
    bool is_testing;
    bool has_more;
    bool was_asked; /* where it waits */
    bool has_reply; /* of the root */
    bool is_over;
} seen;

static void got(void *arg, uint32_t rank, const char *key, const void *value,
                size_t len)
{
    (void)arg;
    (void)key;
    seen.rank = rank;
    memcpy(seen.value, value, len);
    seen.value[len] = '\0';
    seen.len = len;
    seen.has_value = 1;
}

static void fenced(void *arg, uint64_t fence)
{
    (void)arg;
    seen.fence = fence;
}

static void rank_lost(void *arg, uint32_t rank, const char *text)
{
    (void)arg;
    printf("lost %u: %s\n", rank, text);
    (void)fflush(stdout);
}

static void tell_memory(void)
{
    uint64_t held = seen.share < seen.wanted ? seen.share : seen.wanted;
    const struct chempi_client_memory memory = {
        .held = held > seen.used ? held : seen.used,
        .used = seen.used,
        .wanted = seen.wanted,
        .needed = seen.needed,
    };

    seen.share = held;
    if (chempi_client_memory(client, &memory) < 0)
        exit(9);
}

static void budget(void *arg, uint64_t bytes, uint32_t deadline_ms)
{
    (void)arg;
    seen.share = bytes;
    if (!seen.obeys)
        return;
    seen.used = bytes < seen.wanted ? bytes : seen.wanted;
    printf("share %llu%s\n", (unsigned long long)bytes,
           deadline_ms ? " soon" : "");
    (void)fflush(stdout);
    tell_memory();
}

static void drained(void *arg, uint32_t gateway, bool is_drained)
{
    (void)arg;
    (void)gateway;
    (void)is_drained;
}

static void tell(void *arg)
{
    (void)arg;
}

static int say_here(bool is_waiting, const char *text)
{
    const struct chempi_client_wait wait = {.is_waiting = is_waiting,
                                            .text = text,
                                            .site = "",
                                            .has_more = seen.has_more};

    return chempi_client_here(client, &wait);
}

static void where(void *arg, enum chempi_wait_depth depth)
{
    (void)arg;
    (void)depth;
    seen.was_asked = true;
    if (seen.here && say_here(!seen.is_testing, seen.here) < 0)
        exit(9);
}

static void root_replied(void *arg, const struct chempi_reply *reply)
{
    (void)arg;
    if (reply->state == CHEMPI_REPLY_OVER)
        seen.is_over = true;
    else
        seen.has_reply = true;
    if (reply->state == CHEMPI_REPLY_GRANTED)
        printf("granted %u %s\n", reply->count, reply->text);
    else
        printf("%s %u %s\n",
               reply->state == CHEMPI_REPLY_OVER ? "over" : "failed",
               reply->app, reply->text);
    (void)fflush(stdout);
}

static const struct chempi_client_events events = {.got = got,
                                                   .fenced = fenced,
                                                   .rank_lost = rank_lost,
                                                   .budget = budget,
                                                   .drained = drained,
                                                   .tell = tell,
                                                   .where = where,
                                                   .root_replied =
                                                       root_replied};

static void check(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "rank: %s: %s\n", what, chempi_err_name(rc));
    exit(9);
}

static void take_news(void)
{
    struct chempi_err err;

    check(chempi_client_progress(client, &events, NULL, &err), "progress");
}

static void wait_for_news(void)
{
    struct pollfd p = {.fd = chempi_client_fd(client), .events = POLLIN};

    (void)poll(&p, 1, -1);
    take_news();
}

static void fence(void)
{
    uint64_t number;

    check(chempi_client_fence(client, &number), "fence");
    while (seen.fence < number)
        wait_for_news();
}

static void get(uint32_t rank, const char *key)
{
    seen.has_value = 0;
    check(chempi_client_get(client, rank, key), "get");
    while (!seen.has_value)
        wait_for_news();
    if (seen.rank != rank)
        check(-EBADMSG, "answer for another rank");
}

static void everyone(void)
{
    const struct chempi_job *job = chempi_client_job(client);
    char mine[64];

    (void)snprintf(mine, sizeof(mine), "value of %u", job->rank);
    check(chempi_client_put(client, "everyone", mine, strlen(mine)), "put");
    fence();
    for (uint32_t i = 0; i < job->size; i++) {
        (void)snprintf(mine, sizeof(mine), "value of %u", i);
        get(i, "everyone");
        if (strcmp(seen.value, mine) != 0)
            check(-EBADMSG, "a wrong value");
    }
    fence();
}

static void garbage(void)
{
    static const char bytes[] = "GET / HTTP/1.0\r\nHost: somewhere\r\n\r\n";

    if (write(chempi_client_fd(client), bytes, sizeof(bytes)) < 0)
        check(-errno, "write");
}

/* A frame of this type with nothing in it. */
static void say_nothing_of(uint8_t type)
{
    uint8_t frame[16] = {0};

    frame[4] = type;
    frame[6] = CHEMPI_FRAME_MAGIC & 0xff;
    frame[7] = CHEMPI_FRAME_MAGIC >> 8;
    if (write(chempi_client_fd(client), frame, sizeof(frame)) < 0)
        check(-errno, "write");
}

/* A descendant in a session of its own, whose parent has ended. */
static void leave_child(void)
{
    const pid_t middle = fork();

    if (middle != 0) {
        check(middle < 0 ? -errno : 0, "fork");
        (void)waitpid(middle, NULL, 0); /* it ends at once */
        return;
    }
    (void)setsid();
    if (fork() != 0)
        _exit(0);
    for (;;)
        (void)pause();
}

static void create(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    check(fd < 0 ? -errno : 0, path);
    (void)close(fd);
}

static void check_region(void)
{
    const struct chempi_job *job = chempi_client_job(client);
    const struct chempi_region_header *header;
    const size_t len = (size_t)chempi_region_reserved(job->local_size);

    header =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, job->region_fd, 0);
    if (header == MAP_FAILED)
        check(-errno, "mmap");
    if (header->magic != CHEMPI_REGION_MAGIC ||
        header->local_size != job->local_size)
        check(-EBADMSG, "region header");
    if ((job->node_count > 1) != (job->table_fd >= 0))
        check(-EBADMSG, "table");
}

static bool says_where(const char *verb, const char *text)
{
    if (strcmp(verb, "say") == 0) {
        check(say_here(true, text), verb);
        return true;
    }
    if (strcmp(verb, "mumble") == 0) {
        say_nothing_of(CHEMPI_MSG_HERE);
        return true;
    }
    if (strcmp(verb, "here") != 0 && strcmp(verb, "test") != 0 &&
        strcmp(verb, "half") != 0)
        return false;
    seen.has_more = strcmp(verb, "half") == 0;
    seen.is_testing = strcmp(verb, "test") == 0;
    seen.here = text;
    return true;
}

/* A question may have come together with the welcome. */
static void wait_for_ever(void)
{
    take_news();
    for (;;)
        wait_for_news();
}

static void await_question(void)
{
    take_news();
    while (!seen.was_asked)
        wait_for_news();
}

static int print_universe(struct chempi_client *own)
{
    printf("room for %u\n", chempi_client_job(own)->universe_size);
    return 0;
}

/* What is said by its name alone. */
static int says_phase(const char *verb)
{
    static const struct {
        const char *verb;
        int (*say)(struct chempi_client *client);
    } phases[] = {{"init", chempi_client_set_initialized},
                  {"final", chempi_client_set_finalized},
                  {"world", chempi_client_need_world},
                  {"unworld", chempi_client_leave_world},
                  {"universe", print_universe}};

    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        if (strcmp(verb, phases[i].verb) == 0) {
            check(phases[i].say(client), verb);
            return 1;
        }
    return 0;
}

static void await_reply(void)
{
    while (!seen.has_reply)
        wait_for_news();
}

static void await_over(void)
{
    while (!seen.is_over)
        wait_for_news();
    seen.is_over = false;
}

/* Programs with ";" between them, each its words with "|": the first is how
 * many there shall be, and further ones up to "--" are keys and values. */
static void spawn(char *text)
{
    const char *words[64];
    struct chempi_spawn_app apps[8] = {{0}};
    struct chempi_spawn_key keys[8][4];
    struct chempi_spawn said = {.port = "a port", .apps = apps};
    struct chempi_writer w = {0};
    uint32_t serial;
    uint32_t n = 0;

    for (char *one; (one = strsep(&text, ";")); said.app_count++) {
        struct chempi_spawn_app *app = &apps[said.app_count];
        char *word = strsep(&one, "|");

        app->maxprocs = (uint32_t)strtoul(word, NULL, 10);
        app->keys = keys[said.app_count];
        while ((word = strsep(&one, "|")) && strcmp(word, "--") != 0) {
            keys[said.app_count][app->key_count].key = word;
            keys[said.app_count][app->key_count++].value = strsep(&one, "|");
        }
        app->argv = words + n;
        for (; (word = strsep(&one, "|")); app->argc++)
            words[n++] = word;
    }
    chempi_spawn_write(&said, &w);
    check(w.error, "spawn");
    check(chempi_client_ask_root(client, CHEMPI_ROOT_SPAWN, w.data, w.len,
                                 &serial),
          "spawn");
    chempi_wire_clear(&w);
    seen.has_reply = false;
}

/* What the root keeps: "publish" or "look" for a name. */
static void ask_name(enum chempi_root_request what, const char *name)
{
    struct chempi_writer w = {0};
    uint32_t serial;

    chempi_wire_put_str(&w, name);
    if (what != CHEMPI_ROOT_LOOKUP)
        chempi_wire_put_str(&w, "a port");
    check(chempi_client_ask_root(client, what, w.data, w.len, &serial), name);
    chempi_wire_clear(&w);
    seen.has_reply = false;
    await_reply();
}

static void print_parent(void)
{
    const struct chempi_job *job = chempi_client_job(client);

    printf("world %u of %s\n", job->world, job->parent);
    (void)fflush(stdout);
}

static bool asks_root(const char *verb, char *text)
{
    if (strcmp(verb, "spawn") == 0 || strcmp(verb, "post") == 0)
        spawn(text);
    else if (strcmp(verb, "publish") == 0)
        ask_name(CHEMPI_ROOT_PUBLISH, text);
    else if (strcmp(verb, "look") == 0)
        ask_name(CHEMPI_ROOT_LOOKUP, text);
    else
        return false;
    if (strcmp(verb, "spawn") == 0)
        await_reply();
    return true;
}

static void end_by(int number)
{
    (void)signal(number, SIG_DFL); /* a sanitizer has its own */
    (void)raise(number);
}

/* Returns the arguments that are left. */
static char **act(char **a)
{
    const char *verb = *a++;

    if (says_phase(verb))
        return a;
    if (*a && asks_root(verb, *a))
        return a + 1;
    if (strcmp(verb, "fence") == 0) {
        fence();
    } else if (strcmp(verb, "everyone") == 0) {
        everyone();
    } else if (strcmp(verb, "garbage") == 0) {
        garbage();
    } else if (strcmp(verb, "child") == 0) {
        leave_child();
    } else if (strcmp(verb, "region") == 0) {
        check_region();
    } else if (strcmp(verb, "over") == 0) {
        await_over();
    } else if (strcmp(verb, "parent") == 0) {
        print_parent();
    } else if (strcmp(verb, "hang") == 0) {
        wait_for_ever();
    } else if (strcmp(verb, "put") == 0) {
        check(chempi_client_put(client, a[0], a[1], strlen(a[1])), verb);
        a += 2;
    } else if (strcmp(verb, "get") == 0) {
        get((uint32_t)strtoul(a[0], NULL, 10), a[1]);
        printf("%s\n", seen.value);
        a += 2;
    } else if (strcmp(verb, "abort") == 0) {
        check(chempi_client_abort(client, atoi(a[0]), a[1]), verb);
        a += 2;
    } else if (strcmp(verb, "exit") == 0) {
        exit(atoi(*a));
    } else if (strcmp(verb, "raise") == 0) {
        end_by(atoi(*a++));
    } else if (strcmp(verb, "print") == 0) {
        printf("%s\n", *a++);
        (void)fflush(stdout);
    } else if (strcmp(verb, "report") == 0) {
        check(chempi_client_report(client, a[0], strlen(a[0])), verb);
        a++;
    } else if (strcmp(verb, "memory") == 0) {
        seen.wanted = strtoull(a[0], NULL, 10);
        seen.used = strtoull(a[1], NULL, 10);
        if (seen.used > seen.share)
            seen.used = seen.share;
        tell_memory();
        a += 2;
    } else if (strcmp(verb, "need") == 0) {
        seen.needed = strtoull(*a++, NULL, 10);
    } else if (strcmp(verb, "share") == 0) {
        while (seen.share != strtoull(*a, NULL, 10))
            wait_for_news();
        a++;
    } else if (strcmp(verb, "obey") == 0) {
        seen.obeys = 1;
    } else if (strcmp(verb, "misreport") == 0) {
        say_nothing_of(CHEMPI_MSG_MEMORY);
    } else if (strcmp(verb, "deaf") == 0) {
        for (;;)
            (void)pause();
    } else if (strcmp(verb, "asked") == 0) {
        await_question();
    } else if (strcmp(verb, "stop") == 0) {
        create(*a++);
        wait_for_ever();
    } else if (strcmp(verb, "only") == 0) {
        if ((uint32_t)strtoul(*a++, NULL, 10) !=
            chempi_client_job(client)->rank)
            while (*a && strcmp(*a, "end") != 0)
                a++;
    } else if (says_where(verb, *a)) {
        a++;
    } else if (strcmp(verb, "end") != 0) {
        fprintf(stderr, "rank: what is %s?\n", verb);
        exit(9);
    }
    return a;
}

int main(int argc, char **argv)
{
    struct chempi_err err = {0};
    int rc = chempi_client_open(&client, &err);

    (void)argc;
    if (rc) {
        fprintf(stderr, "rank: %s\n", err.text);
        return 9;
    }
    seen.share = chempi_client_job(client)->memory_share;
    for (char **a = argv + 1; *a;)
        a = act(a);
    check(chempi_client_flush(client, FLUSH_LIMIT_MS), "flush");
    chempi_client_close(client);
    return 0;
}
