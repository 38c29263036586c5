/* SPDX-License-Identifier: BSD-3-Clause */
/* Becoming a job's user; see become.h. */
#define _GNU_SOURCE /* getgrouplist, setgroups */
#include "chempid/process/become.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chempid/process/dumps.h"
#include "common/control/channel.h"
#include "common/control/msg.h"

/* By this node's own database. */
static bool is_group_of(const struct passwd *pw, gid_t gid)
{
    gid_t list[NGROUPS_MAX];
    int count = NGROUPS_MAX;

    if (gid == pw->pw_gid)
        return true;
    if (getgrouplist(pw->pw_name, pw->pw_gid, list, &count) < 0)
        count = NGROUPS_MAX;
    for (int i = 0; i < count; i++)
        if (list[i] == gid)
            return true;
    return false;
}

static void stand_in_line(void)
{
    static const char path[] = "/proc/self/oom_score_adj";
    FILE *file = fopen(path, "re");
    int score = 0;

    if (file) {
        (void)fscanf(file, "%d", &score);
        (void)fclose(file); /* read only */
    }
    file = score < 0 ? fopen(path, "we") : NULL;
    if (file) {
        (void)fputs("0", file);
        (void)fclose(file); /* refused: it stays protected */
    }
}

/* A daemon may go before others' processes, users' may not. */
static void give_way(void)
{
    static const struct sched_param none;
    const int policy = sched_getscheduler(0);
    const int kind = policy < 0 ? SCHED_OTHER : policy & ~SCHED_RESET_ON_FORK;

    if (kind == SCHED_FIFO || kind == SCHED_RR)
        (void)sched_setscheduler(0, SCHED_OTHER, &none); /* always allowed */
    if (getpriority(PRIO_PROCESS, 0) < 0)
        (void)setpriority(PRIO_PROCESS, 0, 0); /* the same */
}

int chempi_become_bare(void)
{
    stand_in_line();
    /* A new one, of root's, as users may have few. Where keyrings are missing
     * or denied (containers) nobody reads them. */
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 &&
        errno != ENOSYS && errno != EPERM)
        return -errno;
    return 0;
}

int chempi_become_user(uint32_t uid, uint32_t gid,
                       const struct chempi_shell *shell, struct chempi_err *err)
{
    const struct passwd *pw;

    if (geteuid() == 0)
        chempi_shell_confine(shell);
    if (geteuid() == uid) {
        chempi_dumps_forbid(false);
        return 0;
    }
    pw = getpwuid(uid);
    if (!pw)
        return chempi_err_set(err, -ENOENT, "this node has no user %u", uid);
    if (!is_group_of(pw, gid))
        return chempi_err_set(err, -EPERM,
                              "user %s is not in group %u on this node",
                              pw->pw_name, gid);
    give_way();
    if (chempi_become_bare() || initgroups(pw->pw_name, gid) < 0 ||
        setgid(gid) < 0 || setuid(uid) < 0)
        return chempi_err_set(err, -errno, "cannot become user %s: %s",
                              pw->pw_name, chempi_err_name(errno));
    chempi_dumps_forbid(true);
    return 0;
}

/* Whoever reads this has words for an end without any. */
static void tell_refusal(int fd, const char *text)
{
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_channel ch;
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data));
    chempi_wire_put_u32(&w, CHEMPI_MSG_PART);
    chempi_wire_put_str(&w, text);
    chempi_channel_init(&ch, fd, 0, sizeof(data) + CHEMPI_FRAME_HEADER);
    if (!chempi_channel_send(&ch, CHEMPI_MSG_REFUSED, 0, w.data, w.len))
        (void)chempi_channel_flush(&ch);
}

bool chempi_become_or_tell(uint32_t uid, uint32_t gid,
                           const struct chempi_shell *shell,
                           const struct chempi_cgroup *group, int fd)
{
    struct chempi_err err = {.text = ""};

    if (!chempi_cgroup_enter(group, &err) &&
        !chempi_become_user(uid, gid, shell, &err))
        return true;
    /* Whoever is behind that socket shall not take it for root's. */
    if (geteuid() != 0 ||
        (setgroups(0, NULL) == 0 && setgid(gid) == 0 && setuid(uid) == 0)) {
        chempi_dumps_forbid(true);
        tell_refusal(fd, err.text);
    }
    return false;
}
