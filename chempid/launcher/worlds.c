/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks ask of the root; see worlds.h. */
#include "chempid/launcher/worlds.h"

#include <errno.h>
#include <stdio.h>

/* Who has asked what. */
struct asker {
    struct chempi_worlds *worlds;
    uint32_t node;
    uint32_t rank;
    uint32_t serial;
};

void chempi_worlds_init(struct chempi_worlds *worlds,
                        chempi_worlds_reply_fn *reply, void *arg)
{
    *worlds = (struct chempi_worlds){.reply = reply, .arg = arg};
}

void chempi_worlds_fini(struct chempi_worlds *worlds)
{
    chempi_published_fini(&worlds->names);
}

static void answer(const struct asker *asker, struct chempi_reply reply)
{
    reply.serial = asker->serial;
    asker->worlds->reply(asker->worlds->arg, asker->node, asker->rank, &reply);
}

static void refuse(const struct asker *asker, enum chempi_reply_error error,
                   const char *text)
{
    answer(asker, (struct chempi_reply){.state = CHEMPI_REPLY_FAILED,
                                        .error = error,
                                        .text = text});
}

static void grant(const struct asker *asker, const char *text)
{
    answer(asker,
           (struct chempi_reply){.state = CHEMPI_REPLY_GRANTED, .text = text});
}

/* ---- names --------------------------------------------------------------- */

static void publish(const struct asker *asker, const char *service,
                    const char *port)
{
    const int rc = chempi_published_publish(&asker->worlds->names, 0,
                                            asker->rank, service, port);
    char text[96];

    (void)snprintf(text, sizeof(text),
                   "%u names are published, which is the "
                   "limit",
                   CHEMPI_ROOT_NAMES_MAX);
    if (rc == 0)
        grant(asker, "");
    else if (rc == -EEXIST)
        refuse(asker, CHEMPI_REPLY_SERVICE, "the name is published already");
    else if (rc == -ENOBUFS)
        refuse(asker, CHEMPI_REPLY_SERVICE, text);
    else
        refuse(asker, CHEMPI_REPLY_MEMORY, "the launcher is out of memory");
}

static void unpublish(const struct asker *asker, const char *service,
                      const char *port)
{
    const int rc =
        chempi_published_unpublish(&asker->worlds->names, 0, service, port);

    if (rc == 0)
        grant(asker, "");
    else
        refuse(asker, CHEMPI_REPLY_SERVICE,
               rc == -EPERM ? "another world has published the name"
                            : "the name is not published with this port");
}

static void look_up(const struct asker *asker, const char *service)
{
    const char *port = chempi_published_find(&asker->worlds->names, service);

    if (port)
        grant(asker, port);
    else
        refuse(asker, CHEMPI_REPLY_NAME, "nobody has published the name");
}

static void take_name(const struct asker *asker, enum chempi_root_request what,
                      const uint8_t *blob, size_t len)
{
    struct chempi_reader r;
    const char *service;
    const char *port = "";

    chempi_wire_read(&r, blob, len);
    service = chempi_wire_get_str(&r, CHEMPI_SERVICE_NAME_MAX);
    if (what != CHEMPI_ROOT_LOOKUP)
        port = chempi_wire_get_str(&r, CHEMPI_PORT_NAME_MAX);
    if (!chempi_wire_is_done(&r))
        refuse(asker, CHEMPI_REPLY_ARG, "malformed");
    else if (what == CHEMPI_ROOT_PUBLISH)
        publish(asker, service, port);
    else if (what == CHEMPI_ROOT_UNPUBLISH)
        unpublish(asker, service, port);
    else
        look_up(asker, service);
}

/* ---- questions ----------------------------------------------------------- */

void chempi_worlds_take(struct chempi_worlds *worlds, uint32_t node,
                        uint32_t rank, struct chempi_reader *r)
{
    const struct asker asker = {.worlds = worlds,
                                .node = node,
                                .rank = rank,
                                .serial = chempi_wire_get_u32(r)};
    const uint8_t what = chempi_wire_get_u8(r);
    size_t len;
    const uint8_t *blob = chempi_wire_get_blob(r, CHEMPI_ROOT_BYTES_MAX, &len);

    if (!chempi_wire_is_done(r))
        return; /* no supervisor of ours says so */
    switch (what) {
    case CHEMPI_ROOT_ENDED:
        chempi_published_drop_rank(&worlds->names, 0, rank);
        break;
    case CHEMPI_ROOT_PUBLISH:
    case CHEMPI_ROOT_UNPUBLISH:
    case CHEMPI_ROOT_LOOKUP:
        take_name(&asker, (enum chempi_root_request)what, blob, len);
        break;
    default:
        refuse(&asker, CHEMPI_REPLY_LACKS, "this launcher does not know how");
        break;
    }
}
