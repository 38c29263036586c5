/* SPDX-License-Identifier: BSD-3-Clause */
/* What an adapter does wrong; see faults.h. */
#include "libchempi/devices/scivia/adapter/model/faults.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/fault.h"

static_assert(CHEMPI_FAULTS_RATE_MAX == CHEMPI_FAULT_RATE_MAX, "one unit");

#define RATE(word, member)                                                     \
    {                                                                          \
        (word), offsetof(struct chempi_faults, member), CHEMPI_FAULTS_RATE_MAX \
    }

static const struct chempi_fault_word words[] = {
    {"seed", offsetof(struct chempi_faults, seed), UINT64_MAX},
    RATE("reorder", reorder),
    RATE("lost-packet", lost_packet),
    RATE("lost-response", lost_response),
    RATE("late", late),
    RATE("lost-interrupt", lost_interrupt),
    RATE("broken-vi", broken_vi),
    RATE("broken-link", broken_link),
};

int chempi_faults_parse(const char *text, struct chempi_faults *out,
                        struct chempi_err *err)
{
    struct chempi_faults faults = {.seed = 1};
    int rc =
        chempi_fault_parse(text, words, CHEMPI_ARRAY_LEN(words), &faults, err);

    if (rc == 0)
        *out = faults;
    return rc;
}

int chempi_faults_check(const struct chempi_faults *faults,
                        struct chempi_err *err)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(words); i++) {
        uint64_t value;

        memcpy(&value, (const char *)faults + words[i].offset, sizeof(value));
        if (value > words[i].max)
            return chempi_err_set(err, -EINVAL,
                                  "the rate of %s is above %u thousandths",
                                  words[i].name, CHEMPI_FAULTS_RATE_MAX);
    }
    return 0;
}
