/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chempi-probe and chempirun --stats=long print, as mdconfig calibrate
 * reads it: figures come out finite and positive, or there are words why not.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/measure/measure.h"
#include "tests/fuzz/target.h"

static void check_figure(const struct chempi_fit_figure *f, double least)
{
    if (!isfinite(f->value) || f->value < least || !(f->spread >= 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_fit_samples samples;
    struct chempi_err err = {.code = 0};
    struct chempi_fit fit;
    char other[64];
    char *text = malloc(size + 1);
    double share;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    share = chempi_measure_share(text, "lan", "eager", other);
    if (!(share >= 0 && share <= 1) || strlen(other) >= sizeof(other))
        abort();
    if (chempi_measure_read(text, &samples, &err) == 0) {
        chempi_fit_figures(&samples, 100, &fit);
        check_figure(&fit.latency, 0);
        check_figure(&fit.bw, 0);
        check_figure(&fit.cost, 0);
    } else if (!err.text[0]) {
        abort(); /* an error without words */
    }
    free(text);
    return 0;
}

static const char *const seeds[] = {
    "echo 8 14.7 14.3 14.4\necho 64 14.1 15.2 14.4\necho 256 14.1 14.8 14.2\n"
    "echo 65536 1995.0 3398.2 4009.1\necho 1048576 5999.0 7998.1 7209.0\n"
    "rate 8 3.8 5.6 3.8\nend\n",
    "echo 0 0.1\nrate 0 9\nend\n",
    "from  to  network  device  protocol  messages  bytes\n"
    "a     g   lan      tcp     eager       47483   23521380\n"
    "g     a   lan      tcp     rendezvous  15499   23466432\n"
    "a     a   smp      self    copy          242     182627\n",
};

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    return fuzz_text(seeds, sizeof(seeds) / sizeof(seeds[0]), i, out);
}
