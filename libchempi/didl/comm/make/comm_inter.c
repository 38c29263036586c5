/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intercommunicators out of intracommunicators and back (MPI 5.0, section
 * 7.6).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/words/plain.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/make/comm_circle.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"

/* What leaders tell each other: a context id, then the group's processes, by
 * ranks in the world that both leaders are of, or by names where there are
 * several. */
enum { HEAD_CONTEXT, HEAD_WORDS_EACH, HEAD_WORDS };
enum { WORDS_RANK = 1, WORDS_NAME = 5 };

static size_t description_len(uint32_t members, uint32_t words_each)
{
    return (HEAD_WORDS + (size_t)members * words_each) * sizeof(uint32_t);
}

/* far: where the other leader is; NULL at one that has failed. */
static uint32_t *describe(const struct chempi_group *group,
                          const struct chempi_comm *far, uint32_t context)
{
    const uint32_t words_each = group->has_foreign || (far && far->has_foreign)
                                    ? WORDS_NAME
                                    : WORDS_RANK;
    uint32_t *words =
        chempi_sys->malloc(description_len(group->size, words_each));
    uint32_t *out = words + HEAD_WORDS;

    if (!words)
        return NULL;
    words[HEAD_CONTEXT] = context;
    words[HEAD_WORDS_EACH] = words_each;
    for (uint32_t i = 0; i < group->size; i++, out += words_each) {
        const uint32_t proc = chempi_group_proc(group, i);
        struct chempi_name name;

        out[words_each - 1] = proc;
        if (words_each == WORDS_RANK)
            continue;
        name = chempi_foreign_name(proc);
        memcpy(out, name.world, sizeof(name.world));
        out[words_each - 1] = name.rank;
    }
    return words;
}

static struct chempi_name name_of(const uint32_t *words, uint32_t words_each,
                                  const struct chempi_name *leader)
{
    struct chempi_name name = *leader;

    name.rank = words[words_each - 1];
    if (words_each == WORDS_NAME)
        memcpy(name.world, words, sizeof(name.world));
    return name;
}

/* The other side's group out of its description; leader: this side's. NULL, and
 * no error: this process does not know all of them. */
static int group_of(const uint32_t *words, size_t len,
                    const struct chempi_name *leader, struct chempi_group **out)
{
    const uint32_t each = words[HEAD_WORDS_EACH];
    const size_t count = (len / sizeof(*words) - HEAD_WORDS) / each;
    uint32_t *procs = chempi_sys->malloc((count + 1) * sizeof(*procs));
    size_t known = 0;

    chempi_lane_lock(&chempi_lane_main);
    for (; procs && known < count; known++) {
        const struct chempi_name name =
            name_of(words + HEAD_WORDS + known * each, each, leader);

        procs[known] = chempi_foreign_find(&name);
        if (procs[known] == UINT32_MAX)
            break;
    }
    chempi_lane_unlock(&chempi_lane_main);
    if (procs && known < count) {
        free(procs);
        return MPI_SUCCESS;
    }
    *out = procs ? chempi_group_make((uint32_t)count, procs) : NULL;
    return *out ? MPI_SUCCESS
                : chempi_error_set(MPI_ERR_NO_MEM, "no room for a group");
}

static bool have_common(struct chempi_group *a, struct chempi_group *b)
{
    MPI_Group both = MPI_GROUP_EMPTY;
    bool is_disjoint = chempi_group_filter(a, b, &both, true) == MPI_SUCCESS &&
                       both == MPI_GROUP_EMPTY;

    if (both != MPI_GROUP_EMPTY)
        chempi_group_release(chempi_group_lookup(both));
    return !is_disjoint;
}

/* Who is to meet whom. */
struct meeting {
    struct chempi_comm_channel local; /* this side */
    struct chempi_group *group;       /* its processes */
    int leader;                       /* its member that meets the other's */
    struct chempi_comm_far far;       /* valid at the leader: the other one */
    struct chempi_comm_strangers *strangers;
};

/* The two leaders tell each other what is in `mine`, and hand it down. */
static int swap_leaders(const struct meeting *m, int rc, const void *mine,
                        size_t len, void **theirs, size_t *their_len)
{
    const struct chempi_comm_channel rotated =
        chempi_comm_channel_from(&m->local, m->leader);

    return chempi_comm_swap(&rotated, &m->far, rc, mine, len, theirs,
                            their_len);
}

/* Of the other side: a context id, and a group or nobody. */
static bool is_description(const uint32_t *words, size_t len)
{
    const size_t head_len = HEAD_WORDS * sizeof(*words);

    if (len <= head_len)
        return false;
    return (words[HEAD_WORDS_EACH] == WORDS_RANK ||
            words[HEAD_WORDS_EACH] == WORDS_NAME) &&
           chempi_context_is_others(words[HEAD_CONTEXT]) &&
           (len - head_len) % (words[HEAD_WORDS_EACH] * sizeof(*words)) == 0;
}

/* The other side's group, which must be none of ours; NULL on errors, and if
 * this process does not know all of it. */
static int read_remote(const struct meeting *m, const uint32_t *words,
                       size_t len, struct chempi_group **out)
{
    const struct chempi_comm *far =
        m->local.me == m->leader ? m->far.comm : NULL;
    const struct chempi_name leader =
        chempi_foreign_name(chempi_group_proc(m->group, (uint32_t)m->leader));
    struct chempi_group *remote = NULL;
    int rc;

    if (!is_description(words, len) ||
        (far && far->has_foreign && words[HEAD_WORDS_EACH] == WORDS_RANK))
        return chempi_error_set(MPI_ERR_INTERN,
                                "%zu bytes from the other group's leader "
                                "describe no group",
                                len);
    rc = group_of(words, len, &leader, &remote);
    if (rc != MPI_SUCCESS || !remote)
        return rc;
    if (have_common(m->group, remote)) {
        chempi_group_release(remote);
        return chempi_error_set(MPI_ERR_COMM, "the two groups have processes "
                                              "in common");
    }
    *out = remote;
    return MPI_SUCCESS;
}

/* How it went at a side, if not well: a class, and a member's words. */
struct verdict {
    int32_t class;
    char words[252]; /* with the zero */
};

/* In place of a class: no member has failed, but some do not know all of the
 * other side. */
#define STRANGERS (-1)

static bool is_failure(const struct verdict *v)
{
    return v->class != MPI_SUCCESS && v->class != STRANGERS;
}

/* An error class, and a member of this side. */
static bool is_verdict(const struct meeting *m, int64_t worst)
{
    const int64_t class = worst >> 32;

    return class > MPI_SUCCESS && class <= MPI_ERR_LASTCODE &&
           (worst & UINT32_MAX) < m->local.size;
}

/* Of an error that was noted here. */
static struct verdict verdict_of(int rc)
{
    const char *noted = chempi_error_noted(rc);
    struct verdict out = {.class = rc};

    (void)snprintf(out.words, sizeof(out.words), "%s", noted ? noted : "");
    return out;
}

/* The worst error at a member of this side, and its words; the class is
 * MPI_SUCCESS if there is none, or STRANGERS. An error that is returned is of
 * the agreement itself. */
static int sum_up(const struct meeting *m, int rc, bool has_strangers,
                  struct verdict *out)
{
    int64_t worst = rc ? (int64_t)rc << 32 | m->local.me : has_strangers;
    struct chempi_comm_channel from;

    *out = verdict_of(rc);
    out->class = MPI_SUCCESS;
    rc = chempi_comm_max(&m->local, MPI_SUCCESS, &worst, 1);
    if (rc != MPI_SUCCESS || worst == 0)
        return rc;
    if (worst == 1) {
        *out = (struct verdict){.class = STRANGERS};
        return MPI_SUCCESS;
    }
    if (!is_verdict(m, worst)) { /* a member of another world lies to all */
        *out = (struct verdict){.class = MPI_ERR_INTERN};
        return MPI_SUCCESS;
    }
    out->class = (int32_t)(worst >> 32);
    from = chempi_comm_channel_from(&m->local, (int)(worst & INT32_MAX));
    return chempi_comm_bcast(&from, MPI_SUCCESS, out->words,
                             sizeof(out->words));
}

/* Members may be of another world: nothing of it is believed. */
static int take_verdict(const char *whose, struct verdict v)
{
    if (v.class <= MPI_SUCCESS || v.class > MPI_ERR_LASTCODE)
        return chempi_error_set(MPI_ERR_INTERN, "a member says that it has "
                                                "failed, and not why");
    v.words[sizeof(v.words) - 1] = '\0';
    chempi_plain(v.words, strlen(v.words), "");
    if (!v.words[0] && v.class == MPI_ERR_PROC_ABORTED)
        return v.class; /* chempi_error_explain() has words */
    return chempi_error_set(v.class, "%s%s", whose,
                            v.words[0] ? v.words : "a member has failed");
}

/* What a leader says of its side; a port if there are STRANGERS. */
struct statement {
    struct verdict verdict;
    char port[CHEMPI_PORT_NAME_MAX];
};

/* A leader of another world is believed nothing. Nothing has come: all is well
 * there. */
static struct verdict read_statement(const struct meeting *m, const void *data,
                                     size_t len)
{
    const struct statement *s = data;
    struct verdict out = {0};

    if (len == 0)
        return out;
    if (len < sizeof(out))
        return (struct verdict){.class = MPI_ERR_INTERN};
    memcpy(&out, data, sizeof(out));
    if (out.class != STRANGERS)
        return out;
    if (len != sizeof(*s) || !memchr(s->port, '\0', sizeof(s->port)))
        return (struct verdict){.class = MPI_ERR_INTERN};
    memcpy(m->strangers->theirs, s->port, sizeof(s->port));
    return out;
}

/* The leader's part: its side's verdict, which becomes another one if no port
 * can be had, for the other one's. */
static int swap_verdicts(const struct meeting *m, int rc, struct verdict *mine,
                         struct verdict *other)
{
    struct statement said = {.verdict = *mine};
    size_t said_len = mine->class == MPI_SUCCESS ? 0 : sizeof(*mine);
    uint64_t len = 0;
    void *theirs = NULL;

    if (rc == MPI_SUCCESS && mine->class == STRANGERS) {
        const int code = m->strangers->open_port(said.port);

        if (code == MPI_SUCCESS) {
            memcpy(m->strangers->mine, said.port, sizeof(said.port));
            said_len = sizeof(said);
        } else {
            *mine = verdict_of(code);
            said.verdict = *mine;
        }
    }
    rc = chempi_comm_swap_leaders(&m->far, rc, &said, said_len, &theirs, &len);
    if (rc == MPI_SUCCESS)
        *other = read_statement(m, theirs, len);
    free(theirs);
    return rc;
}

/* Whether all members of both sides know the other one: in a world of its own
 * one may not have met somebody, which strangers->are_there says of all of them
 * then; anywhere one may have no memory. All say why not, in the words of one
 * that has failed. Nothing here needs memory at a member. */
static int agree(const struct meeting *m, int rc, bool has_strangers)
{
    const struct chempi_comm_channel down =
        chempi_comm_channel_from(&m->local, m->leader);
    const bool is_leader = m->local.me == m->leader;
    struct {
        int64_t rc;
        struct verdict mine;
        struct verdict other;
    } heard = {0};
    struct verdict own = {0};
    int code;

    rc = sum_up(m, rc, has_strangers, &own);
    heard.mine = own;
    if (is_leader)
        heard.rc = swap_verdicts(m, rc, &heard.mine, &heard.other);
    code = chempi_comm_bcast(&down, MPI_SUCCESS, &heard, sizeof(heard));
    rc = rc ? rc : code;
    if (rc == MPI_SUCCESS && heard.rc != MPI_SUCCESS)
        rc = is_leader ? (int)heard.rc : chempi_comm_hear_leader(heard.rc);
    if (rc != MPI_SUCCESS)
        return rc;
    if (is_failure(&own)) /* whatever a leader of another world says */
        return take_verdict("", own);
    if (is_failure(&heard.mine))
        return take_verdict("", heard.mine);
    if (is_failure(&heard.other))
        return take_verdict("in the other group: ", heard.other);
    m->strangers->are_there =
        own.class == STRANGERS || heard.other.class == STRANGERS;
    return MPI_SUCCESS;
}

/* The ids become the new communicator's, if there is somebody on the other
 * side. */
static int make(const struct meeting *m, struct chempi_group *remote,
                const uint32_t *words, const uint32_t ids[2],
                struct chempi_comm **out)
{
    if (remote) {
        *out = chempi_comm_make_inter(m->group, remote, words[HEAD_CONTEXT],
                                      ids[0], ids[1]);
        return *out ? MPI_SUCCESS
                    : chempi_error_set(MPI_ERR_NO_MEM, "no room for a group");
    }
    chempi_comm_return_context(ids[0], MPI_SUCCESS);
    chempi_comm_return_context(ids[1], MPI_SUCCESS);
    return MPI_SUCCESS;
}

/* Whoever has failed goes on: all others are told. Where there are strangers
 * nothing is made, which all know. */
static int meet(const struct meeting *m, struct chempi_comm **out)
{
    const bool is_leader = m->local.me == m->leader;
    uint32_t ids[2];
    int count = 0;
    uint32_t *mine = NULL;
    void *theirs = NULL;
    struct chempi_group *remote = NULL;
    size_t len = 0;
    int rc = MPI_SUCCESS;

    while (count < 2 && rc == MPI_SUCCESS) {
        rc = chempi_comm_agree_context(&m->local, rc, &ids[count]);
        count += rc == MPI_SUCCESS;
    }
    if (is_leader && rc == MPI_SUCCESS) {
        mine = describe(m->group, m->far.comm, ids[0]);
        if (mine)
            len = description_len(m->group->size, mine[HEAD_WORDS_EACH]);
        else
            rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for a group");
    }
    rc = swap_leaders(m, rc, mine, len, &theirs, &len);
    if (rc == MPI_SUCCESS && len)
        rc = read_remote(m, theirs, len, &remote);
    rc = agree(m, rc, rc == MPI_SUCCESS && len && !remote);
    if (rc == MPI_SUCCESS && !m->strangers->are_there)
        rc = make(m, remote, theirs, ids, out);
    else
        while (count > 0)
            chempi_comm_return_context(ids[--count], rc);
    chempi_group_release(remote);
    free(mine);
    free(theirs);
    return rc;
}

static int check_inter(const struct chempi_comm *local_comm, int local_leader)
{
    if (local_comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "the local communicator is an "
                                              "intercommunicator");
    if (local_leader < 0 || (uint32_t)local_leader >= local_comm->size)
        return chempi_error_set(MPI_ERR_RANK,
                                "local leader %d is not in "
                                "0..%ld of the local communicator",
                                local_leader, (long)local_comm->size - 1);
    return MPI_SUCCESS;
}

/* What the local leader alone can see; its group learns it from `far`. */
static int check_peer(const struct chempi_comm *peer_comm, int remote_leader)
{
    if (!peer_comm)
        return MPI_ERR_COMM; /* the API has set the words */
    if (remote_leader < 0 || (uint32_t)remote_leader >= peer_comm->remote_size)
        return chempi_error_set(MPI_ERR_RANK,
                                "remote leader %d is not in "
                                "0..%ld of the peer communicator",
                                remote_leader,
                                (long)peer_comm->remote_size - 1);
    return MPI_SUCCESS;
}

int chempi_comm_create_inter(struct chempi_comm *local_comm, int local_leader,
                             struct chempi_comm *peer_comm, int remote_leader,
                             int tag, MPI_Comm *newintercomm,
                             struct chempi_comm_strangers *s)
{
    struct meeting m = {.group = local_comm->local,
                        .leader = local_leader,
                        .strangers = s,
                        .far = {.comm = peer_comm,
                                .rank = remote_leader,
                                .tag = tag,
                                .kind = CHEMPI_CONTEXT_INTER}};
    struct chempi_comm *made = NULL;
    int rc = check_inter(local_comm, local_leader);

    *newintercomm = MPI_COMM_NULL;
    if (rc != MPI_SUCCESS)
        return rc;
    if (local_comm->rank == local_leader)
        m.far.error = check_peer(peer_comm, remote_leader);
    m.local = chempi_comm_channel(local_comm);
    m.local.is_open = true;
    rc = meet(&m, &made);
    if (rc != MPI_SUCCESS || s->are_there)
        return rc;
    chempi_comm_inherit(made, local_comm);
    *newintercomm = made->handle;
    return MPI_SUCCESS;
}

/* ---- without a parent ---- */

/*
 * Processes find each other by their index, in a context of MPI_COMM_WORLD of
 * their own (which exists in every job, whoever may see it), under a tag
 * that the string tag stands for. Two calls that go on at the same time
 * between the same processes need different string tags, as the standard
 * says; tags are hashes, which may in theory coincide.
 */
static int tag_of(const char *stringtag)
{
    uint32_t hash = UINT32_C(2166136261);

    for (const char *c = stringtag; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
    return (int)((hash ^ hash >> 31) & INT32_MAX);
}

/* Those of another one find nobody by an index of this one. */
static int refuse_worlds(void)
{
    return chempi_error_set(MPI_ERR_GROUP,
                            "the group has processes of several worlds: "
                            "MPI_Comm_create_group makes a communicator of "
                            "them");
}

static int open_circle(const struct chempi_group *group, const char *stringtag,
                       struct chempi_comm_circle *out)
{
    if (strlen(stringtag) >= MPI_MAX_STRINGTAG_LEN)
        return chempi_error_set(MPI_ERR_ARG,
                                "the string tag is longer than "
                                "%d characters",
                                MPI_MAX_STRINGTAG_LEN - 1);
    if (group->rank == MPI_UNDEFINED)
        return chempi_error_set(MPI_ERR_GROUP, "this process is no member of "
                                               "the group");
    if (group->has_foreign)
        return refuse_worlds();
    chempi_comm_circle_open(out, &chempi_comm_world, NULL, group,
                            tag_of(stringtag), CHEMPI_CONTEXT_STRING);
    return MPI_SUCCESS;
}

/* Error handler and hints of a communicator that has no parent. */
static int dress_orphan(struct chempi_comm *made,
                        const struct chempi_info *info,
                        struct chempi_errhandler *errhandler, MPI_Comm *out)
{
    int rc = MPI_SUCCESS;

    chempi_errhandler_put(&made->errhandler, errhandler);
    if (info)
        rc = chempi_comm_take_hints(made, info);
    made->is_partial = rc != MPI_SUCCESS;
    if (rc == MPI_SUCCESS)
        *out = made->handle;
    else
        chempi_comm_release(made);
    return rc;
}

int chempi_comm_create_from_group(struct chempi_group *group,
                                  const char *stringtag,
                                  struct chempi_info *info,
                                  struct chempi_errhandler *errhandler,
                                  MPI_Comm *newcomm)
{
    struct chempi_comm_circle circle;
    struct chempi_comm *made;
    uint32_t context;
    int rc;

    *newcomm = MPI_COMM_NULL;
    if (group->size == 0)
        return MPI_SUCCESS;
    rc = open_circle(group, stringtag, &circle);
    if (rc != MPI_SUCCESS)
        return rc;
    rc = chempi_comm_agree_context(&circle.channel, rc, &context);
    chempi_comm_circle_close(&circle);
    if (rc != MPI_SUCCESS)
        return rc;
    made = chempi_comm_make(group, NULL, context, context);
    if (!made) {
        chempi_comm_return_context(context, MPI_ERR_NO_MEM);
        return MPI_ERR_NO_MEM;
    }
    chempi_comm_choose_lane(made);
    return dress_orphan(made, info, errhandler, newcomm);
}

/* Groups of one job, all of whose ranks are known. */
static int refuse_strangers(char *name)
{
    (void)name;
    return chempi_error_set(MPI_ERR_INTERN, "the other group has processes "
                                            "that there are none of");
}

/* At the local leader, to whom alone the remote group is known. */
static void aim_at(const struct chempi_group *remote_group, int remote_leader,
                   struct chempi_comm_far *far)
{
    if (!remote_group)
        far->error = MPI_ERR_GROUP; /* the API has set the words */
    else if (remote_group->size == 0)
        far->is_nobody = true;
    else if (remote_group->has_foreign)
        far->error = refuse_worlds();
    else if (remote_leader < 0 || (uint32_t)remote_leader >= remote_group->size)
        far->error = chempi_error_set(MPI_ERR_RANK,
                                      "remote leader %d is not in "
                                      "the remote group",
                                      remote_leader);
    else
        far->rank =
            (int)chempi_group_proc(remote_group, (uint32_t)remote_leader);
}

int chempi_comm_create_inter_from_groups(
    struct chempi_group *local_group, int local_leader,
    struct chempi_group *remote_group, int remote_leader, const char *stringtag,
    struct chempi_info *info, struct chempi_errhandler *errhandler,
    MPI_Comm *newintercomm)
{
    struct chempi_comm_strangers none = {.open_port = refuse_strangers};
    struct meeting m = {.group = local_group,
                        .leader = local_leader,
                        .strangers = &none,
                        .far = {.comm = &chempi_comm_world,
                                .tag = tag_of(stringtag),
                                .kind = CHEMPI_CONTEXT_STRING}};
    struct chempi_comm_circle circle;
    struct chempi_comm *made = NULL;
    int rc;

    *newintercomm = MPI_COMM_NULL;
    if (local_group->size == 0)
        return MPI_SUCCESS;
    if (local_leader < 0 || (uint32_t)local_leader >= local_group->size)
        return chempi_error_set(MPI_ERR_RANK,
                                "local leader %d is not in the "
                                "local group",
                                local_leader);
    rc = open_circle(local_group, stringtag, &circle);
    if (rc != MPI_SUCCESS)
        return rc;
    m.local = circle.channel;
    m.local.is_open = true;
    if (local_group->rank == local_leader)
        aim_at(remote_group, remote_leader, &m.far);
    rc = meet(&m, &made);
    chempi_comm_circle_close(&circle);
    if (rc == MPI_SUCCESS && none.are_there)
        rc = refuse_strangers(NULL);
    if (rc != MPI_SUCCESS || !made) /* no error: the other side is empty */
        return rc;
    return dress_orphan(made, info, errhandler, newintercomm);
}

/* ---- merging ---- */

/* Which side comes first: the low one; among equals, the one whose first
 * process has the smaller name. */
static bool is_local_first(const struct chempi_comm *comm, int high,
                           int remote_high)
{
    if (!high != !remote_high)
        return !high;
    return chempi_comm_is_first_side(comm);
}

static struct chempi_group *concatenate(const struct chempi_group *a,
                                        const struct chempi_group *b)
{
    size_t size = (size_t)a->size + b->size;
    uint32_t *procs = chempi_sys->malloc(size * sizeof(*procs));

    if (!procs)
        return NULL;
    for (uint32_t i = 0; i < a->size; i++)
        procs[i] = chempi_group_proc(a, i);
    for (uint32_t i = 0; i < b->size; i++)
        procs[a->size + i] = chempi_group_proc(b, i);
    return chempi_group_make((uint32_t)size, procs);
}

int chempi_comm_merge_inter(struct chempi_comm *intercomm, int high,
                            MPI_Comm *newintracomm)
{
    struct chempi_comm_channel both;
    struct chempi_comm_channel local;
    struct chempi_group *group = NULL;
    struct chempi_comm *made = NULL;
    void *remote_high = NULL;
    size_t len = 0;
    uint32_t context;
    int rc;

    *newintracomm = MPI_COMM_NULL;
    if (!intercomm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "the communicator is not an "
                                              "intercommunicator");
    both = chempi_comm_channel(intercomm);
    local = both;
    local.inter = NULL;
    rc = chempi_comm_swap_inter(&local, intercomm, MPI_SUCCESS, &high,
                                sizeof(high), &remote_high, &len);
    if (rc == MPI_SUCCESS && len != sizeof(high))
        rc = chempi_error_set(MPI_ERR_INTERN, "the other side does not say "
                                              "whether it is high");
    if (rc == MPI_SUCCESS) {
        bool is_first = is_local_first(intercomm, high, *(int *)remote_high);

        group = is_first ? concatenate(intercomm->local, intercomm->remote)
                         : concatenate(intercomm->remote, intercomm->local);
        if (!group)
            rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for a "
                                                  "communicator");
    }
    free(remote_high);
    rc = chempi_comm_agree_context(&both, rc, &context);
    if (rc == MPI_SUCCESS) {
        made = chempi_comm_make(group, NULL, context, context);
        if (!made) {
            rc = MPI_ERR_NO_MEM;
            chempi_comm_return_context(context, rc);
        }
    }
    chempi_group_release(group);
    if (rc != MPI_SUCCESS)
        return rc;
    chempi_comm_inherit(made, intercomm);
    *newintracomm = made->handle;
    return MPI_SUCCESS;
}
