/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put figures into the text of a description, as a person with an editor
 * would: values are replaced where they stand, missing ones are added beside
 * the others, and every other byte stays: comments, order, indentation.
 */
#ifndef CHEMPI_MDCONFIG_FIGURES_H
#define CHEMPI_MDCONFIG_FIGURES_H

#include "mdconfig/description/desc.h"
#include "mdconfig/measure/fit.h"

struct chempi_figures {
    uint32_t network; /* of the description: the first one of its key */
    size_t protocol;  /* of the network */
    struct chempi_fit fit;
};

/*
 * The text with the figures put in; free() releases *out. Figures that are
 * not known are written only where the description has none. The result is
 * read again, and must say what was meant and nothing else new.
 * Errors: -EINVAL with place: the text cannot be edited, for instance since
 * two networks share figures by an alias.
 */
int chempi_figures_put(const struct chempi_desc *desc, const char *text,
                       size_t len, const struct chempi_figures *figures,
                       size_t count, char **out, size_t *out_len,
                       struct chempi_err *err);

#endif
