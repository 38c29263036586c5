/* SPDX-License-Identifier: BSD-3-Clause */
/* What the words of a link mean, and its end, to the parts of an adapter. */
#include <errno.h>

#include "libchempi/devices/scivia/adapter/internal.h"

/* Words between adapters that know each other. False: not one of them. */
static bool hear(struct chempi_adapter_link *link, const struct word *word,
                 int fd)
{
    struct chempi_via_vi *vi;

    switch (word->type) {
    case WORD_SEG_CONNECT:
        chempi_sci_asked(link, word);
        return true;
    case WORD_SEG_ANSWER:
        chempi_sci_answered(link, word, fd);
        return true;
    case WORD_SEG_LEAVE:
        chempi_sci_left(link, word);
        return true;
    case WORD_SEG_GONE:
        chempi_sci_gone(link, word);
        return true;
    case WORD_VI_REQUEST:
        if (link->role != LINK_SERVED) /* nobody knows whose it is */
            return false;
        chempi_via_requested(link, word, fd);
        return true;
    case WORD_VI_ANSWER:
        chempi_via_answered(link, word, fd);
        return true;
    case WORD_VI_BREAK:
        chempi_via_broken(link, word);
        return true;
    case WORD_BOUNCE:
        chempi_bounce_asked(
            link, chempi_via_find(link->adapter, link, word->token), word, fd);
        return true;
    case WORD_BOUNCED:
        vi = chempi_bounce_answered(link, word);
        if (vi)
            (void)chempi_queue_run(vi);
        return true;
    case WORD_BYE:
        chempi_adapter_link_fail(link, -ESHUTDOWN);
        return true;
    default:
        return false;
    }
}

static void down(struct chempi_adapter_link *link)
{
    chempi_sci_link_down(link);
    chempi_via_link_down(link);
}

const struct link_events chempi_words_events = {.hear = hear, .down = down};
