/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings that must be the same in all processes of a job: each process reads
 * its own environment, and members of a collective operation that chose
 * different ways would wait for each other for ever. The ranks of a node
 * compare them in the node's region; of each node one rank compares its own
 * with those of rank 0, which the launcher's store has. Where there is no world
 * model, rank 0 perhaps never comes: there each process publishes its own, and
 * compares them with those of the first one of each other node that it reaches.
 * Values that differ end the job with their name; what others have written is
 * compared only. First comes what stands for their names, which other builds
 * have others of.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/index.h"
#include "common/wake/wake.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/transport/conn.h"

enum { VALUE_TEXT = 48 }; /* bytes of a value in words, with zero */

static const char key[] = "settings";

static struct {
    bool is_speaker; /* this process was the first of its node to compare */
    bool is_asking;  /* under the lane lock */
    bool *has_asked; /* [node_count], of a process there; NULL: of none yet */
} self;

/* The next variable of this kind from *i on; false: there is none. */
static bool find_next(uint32_t *i, struct chempi_tool_cvar *out)
{
    const uint32_t count = chempi_tool_cvar_count();

    for (; *i < count; (*i)++) {
        *out = chempi_tool_cvar_at(*i);
        if (out->setting->scope == CHEMPI_SETTING_ALL)
            return true;
    }
    return false;
}

static uint64_t value_of(const struct chempi_tool_cvar *v)
{
    return atomic_load_explicit(v->value, memory_order_relaxed);
}

/* Of all their names in turn. */
static uint64_t hash_names(void)
{
    uint32_t hash = 0;
    struct chempi_tool_cvar v;

    for (uint32_t i = 0; find_next(&i, &v); i++) {
        char name[CHEMPI_SETTING_NAME_MAX];

        chempi_setting_variable(v.setting, name);
        hash = chempi_index_hash_text(hash, name);
    }
    return hash;
}

static int differ_in_names(const char *whose, struct chempi_err *err)
{
    return chempi_err_set(err, -EINVAL,
                          "this process and %s have libraries with different "
                          "settings; all processes of a job need the same one",
                          whose);
}

static void put_value(const struct chempi_setting *setting, uint64_t value,
                      char text[VALUE_TEXT])
{
    const struct chempi_words *words = setting->words;

    if (words && value < words->count)
        (void)snprintf(text, VALUE_TEXT, "%s", words->list[value]);
    else
        (void)snprintf(text, VALUE_TEXT, "%" PRIu64, value);
}

static int differ(const struct chempi_tool_cvar *v, uint64_t other,
                  const char *whose, struct chempi_err *err)
{
    char variable[CHEMPI_SETTING_NAME_MAX];
    char mine[VALUE_TEXT];
    char theirs[VALUE_TEXT];

    chempi_setting_variable(v->setting, variable);
    put_value(v->setting, value_of(v), mine);
    put_value(v->setting, other, theirs);
    return chempi_err_set(err, -EINVAL,
                          "setting %s is %s in this process and %s in %s; it "
                          "must be the same in all processes of a job",
                          variable, mine, theirs, whose);
}

int chempi_tool_compare_here(struct chempi_err *err)
{
    struct chempi_tool_cvar v;
    const uint64_t names = hash_names();
    uint64_t others = names;
    uint32_t word = 1;

    self.is_speaker =
        chempi_region_compare(chempi_ctx.services.region, 0, &others);
    if (others != names)
        return differ_in_names("another one of this node", err);
    for (uint32_t i = 0; word < CHEMPI_REGION_WORDS && find_next(&i, &v); i++) {
        uint64_t other = value_of(&v);

        (void)chempi_region_compare(chempi_ctx.services.region, word++, &other);
        if (other != value_of(&v))
            return differ(&v, other, "another one of this node", err);
    }
    return 0;
}

/* ---- between nodes ---- */

/* Has no world model begun here? (If it has in one process, all are in it, as
 * far as there are several nodes.) */
static bool has_only_sessions(void)
{
    return chempi_ctx.world == CHEMPI_PHASE_BEFORE;
}

int chempi_tool_publish(struct chempi_err *err)
{
    uint64_t values[CHEMPI_REGION_WORDS];
    struct chempi_tool_cvar v;
    uint32_t count = 1;
    int rc;

    if (chempi_ctx.services.node_count == 1 ||
        (chempi_ctx.services.proc != 0 && !has_only_sessions()))
        return 0;
    values[0] = hash_names();
    for (uint32_t i = 0; count < CHEMPI_REGION_WORDS && find_next(&i, &v); i++)
        values[count++] = value_of(&v);
    rc = chempi_daemon_put(key, values, count * sizeof(values[0]));
    return rc < 0 ? chempi_err_set(err, rc, "cannot publish the settings") : 0;
}

void chempi_tool_ask_first(void)
{
    if (self.is_speaker && !chempi_ctx_is_here(0))
        self.is_asking = chempi_daemon_get(0, key) == 0;
}

void chempi_tool_forget_others(void)
{
    free(self.has_asked);
    self.has_asked = NULL;
}

void chempi_tool_ask_of(uint32_t proc)
{
    const struct chempi_services *s = &chempi_ctx.services;

    if (CHEMPI_LIKELY(!has_only_sessions()) || chempi_ctx_is_here(proc))
        return;
    if (!self.has_asked)
        self.has_asked =
            chempi_sys->calloc(s->node_count, sizeof(self.has_asked[0]));
    if (!self.has_asked || self.has_asked[s->node_of_proc[proc]])
        return; /* without memory it is not compared */
    self.has_asked[s->node_of_proc[proc]] = true;
    (void)chempi_daemon_get(proc, key); /* the next call says what is wrong */
}

bool chempi_tool_has_heard(void *unused)
{
    (void)unused;
    return !self.is_asking || chempi_conn_is_missing(0);
}

bool chempi_tool_hear(uint32_t proc, const char *of, const void *value,
                      size_t len)
{
    char whose[VALUE_TEXT];
    struct chempi_err err = {0};
    struct chempi_tool_cvar v;
    const char *at = value;
    uint64_t names = 0;
    uint32_t i = 0;

    if (strcmp(of, key) != 0)
        return false;
    if (proc == 0)
        self.is_asking = false;
    else if (len == 0)
        return true; /* it has published none, as rank 0 always does */
    (void)snprintf(whose, sizeof(whose), "rank %" PRIu32, proc);
    if (len >= sizeof(names))
        memcpy(&names, at, sizeof(names));
    if (len < sizeof(names) || names != hash_names()) {
        (void)differ_in_names(whose, &err);
        chempi_fatal_die("%s", err.text);
    }
    at += sizeof(names);
    len -= sizeof(names);
    for (; len >= sizeof(uint64_t) && find_next(&i, &v); i++) {
        uint64_t other;

        memcpy(&other, at, sizeof(other));
        at += sizeof(other);
        len -= sizeof(other);
        if (other != value_of(&v) && differ(&v, other, whose, &err))
            chempi_fatal_die("%s", err.text);
    }
    return true;
}
