/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that read a description share; private to mdconfig. */
#ifndef CHEMPI_MDCONFIG_READER_H
#define CHEMPI_MDCONFIG_READER_H

#include "common/words/unfold.h"
#include "mdconfig/description/desc.h"
#include "mdconfig/description/yaml.h"

struct chempi_desc_reader {
    const struct chempi_yaml *yaml;
    struct chempi_desc *desc;
    struct chempi_arena scratch; /* until the description is read */
    struct chempi_err *err;
};

typedef int chempi_reader_fn(struct chempi_desc_reader *r,
                             chempi_yaml_value value, void *target);

/* A key of a mapping and who reads its value. */
struct chempi_reader_field {
    const char *name;
    chempi_reader_fn *read;
    bool required;
};

/* Read a mapping: unknown keys are errors with a suggestion; the fields are
 * read in the order of the table, whatever the order in the file. */
int chempi_reader_fields(struct chempi_desc_reader *r, chempi_yaml_value value,
                         const char *what,
                         const struct chempi_reader_field *fields, size_t count,
                         void *target);

/* A scalar's text: "expected WHAT" when it is none. */
int chempi_reader_text(struct chempi_desc_reader *r, chempi_yaml_value value,
                       const char *what, const char **out);
/* A name: letters, digits, '.', '_', '-', at most 63; `what` for messages. */
int chempi_reader_check_name(struct chempi_desc_reader *r,
                             chempi_yaml_value value, const char *what,
                             const char *name);
int chempi_reader_pattern(struct chempi_desc_reader *r, chempi_yaml_value value,
                          const char *what, struct chempi_unfold *out);
int chempi_reader_size(struct chempi_desc_reader *r, chempi_yaml_value value,
                       uint64_t *out);
/* Times from 0, or above 0 when `positive`, to 1000 s. With `spread` the
 * figure may say how far measurements of it lay apart. */
int chempi_reader_time(struct chempi_desc_reader *r, chempi_yaml_value value,
                       bool positive, double *out, double *spread);
int chempi_reader_bandwidth(struct chempi_desc_reader *r,
                            chempi_yaml_value value, double *out,
                            double *spread);
/* One word of a list; *out is its index. */
int chempi_reader_choice(struct chempi_desc_reader *r, chempi_yaml_value value,
                         const char *what, const char *const *words,
                         size_t count, size_t *out);

/* The value of the key "networks". */
chempi_reader_fn chempi_reader_networks;
/* A network "smp" of device shm, when no network joins the processes inside
 * the nodes. */
int chempi_reader_imply_smp(struct chempi_desc_reader *r);

#endif
