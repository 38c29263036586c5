/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sources of mdconfig import; the first byte says which one. What can be
 * read becomes a description that can be read.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mdconfig/description/desc.h"
#include "mdconfig/import/import.h"
#include "tests/fuzz/target.h"

#define NODES_MAX 512u /* a larger description is slow, not wrong */

static int import(struct chempi_import *im, uint8_t source, const char *file,
                  struct chempi_err *err)
{
    switch (source % 3) {
    case 0:
        return chempi_import_hosts(im, file, err);
    case 1:
        return chempi_import_scontrol(im, file, err);
    default:
        return chempi_import_topology(im, file, err);
    }
}

static void read_back(struct chempi_import *im)
{
    struct chempi_err err = {.code = 0};
    struct chempi_desc desc;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return;
    chempi_import_write(im, out);
    (void)fclose(out); /* in memory */
    if (chempi_desc_parse("import.yaml", text, len, &desc, &err) != 0)
        abort();
    chempi_desc_fini(&desc);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_import im = {.node_count = 0};
    struct chempi_err err = {.code = 0};
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (size > 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1) {
        if (import(&im, data[0], path, &err) != 0) {
            if (!err.text[0])
                abort(); /* an error without words */
        } else if (im.node_count <= NODES_MAX) {
            read_back(&im);
        }
    }
    chempi_import_fini(&im);
    (void)close(fd);
    return 0;
}

static const char *const seeds[] = {
    "0" /* '0' % 3 == 0 */
    "127.0.0.1 localhost\n"
    "10.0.0.1 head.example.org head # comment\n"
    "10.0.0.2 n1\n"
    "10.1.0.2 n1-ib0\n"
    "fd00::2 n2\n",

    "1NodeName=n0 Arch=x86_64\n"
    "   CPUTot=32 NodeAddr=10.0.0.1\n"
    "NodeName=n1 CPUTot=8 NodeAddr=n1\n",

    "2SwitchName=s0 Nodes=n[0-3,7],m2\n"
    "SwitchName=s1 Nodes=k[00-11] LinkSpeed=10\n"
    "SwitchName=top Switches=s[0-1] # all\n",
};

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    return fuzz_text(seeds, sizeof(seeds) / sizeof(seeds[0]), i, out);
}
