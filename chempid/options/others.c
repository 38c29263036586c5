/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of hydra and of Open MPI's mpirun; see others.h. */
#include "chempid/options/others.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/base/compiler.h"

static const char both_answer[] = "--output FILE, which takes both";
static const char folder_answer[] =
    "--output DIR/%r.out (the folder must be there)";

static const struct {
    const char *name;
    const char *answer;
} others[] = {
    {"output-filename", folder_answer},
    {"gdb", "--wrap '0:gdb --args', or a debugger that attaches (MPIR)"},
    {"debug", "--wrap '0:gdb --args', or a debugger that attaches (MPIR)"},
    {"tv", "totalview --args chempirun ... (it knows MPIR)"},
    {"valgrind", "--wrap 'valgrind -q'"},
    {"usize", "--nodes A:4,B:4: the universe has as many ranks as the nodes "
              "have slots"},
    {"iface", "a network description that names the interface (--network)"},
    {"bootstrap", "--launcher"},
    {"bootstrap-exec", "--launcher-exec"},
    {"prepend-pattern", "--label, which has one form"},
    {"use-hwthread-cpus", "--bind none"},
    {"bynode", "--map cyclic"},
    {"byslot", "--map block"},
    {"mca", "variables: chempi-info has those of this library"},
    {"gmca", "variables: chempi-info has those of this library"},
    {"prtemca", "variables: chempi-info has those of this library"},
    {"pmixmca", "variables: chempi-info has those of this library"},
    {"preload-binary", "a path that all hosts see"},
    {"preload-files", "a path that all hosts see"},
    {"display", "--verbose, which says where ranks go, or --show-binding"},
    {"display-map", "--verbose, which says where ranks go"},
    {"display-devel-map", "--verbose, which says where ranks go"},
    {"display-allocation", "--verbose, which says where ranks go"},
    {"v", "--verbose"},
    {"info", "--version, or chempi-info"},
    {"nolocal", "--nodes A,B, without this host"},
    {"skip-launch-node", "--nodes A,B, without this host"},
    {"npersocket", "--bind socket (neighbours in rank share a socket)"},
    {"pernode", "--ppn 1"},
    {"cpus-per-proc", "--bind auto: ranks get equal shares of the cores"},
    {"cpus-per-rank", "--bind auto: ranks get equal shares of the cores"},
    {"rank-by", "--map block, or --map cyclic"},
    {"membind", "--bind core: memory is taken where its rank runs"},
    {"bind-to-core", "--bind core"},
    {"bind-to-socket", "--bind socket"},
    {"bycore", "--map block"},
    {"xterm", "--wrap 'RANKS:xterm -e'"},
    {"prefix", "chempirun by its whole path, which is used on all hosts"},
    {"path", "-x PATH=... (on all hosts)"},
    {"default-hostfile", "--hostfile"},
    {"app", "--configfile"},
    {"get-stack-traces", "--timeout, which says where ranks wait"},
    {"report-state-on-timeout", "--timeout, which says where ranks wait"},
    {"merge-stderr-to-stdout", both_answer},
    {"rmk", "nothing (allocations of Slurm and PBS are found)"},
    {"tune", "variables: chempi-info has those of this library"},
    {"am", "variables: chempi-info has those of this library"},
};

const char *chempi_others_answer(const char *name, size_t len)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(others); i++)
        if (strlen(others[i].name) == len &&
            strncmp(others[i].name, name, len) == 0)
            return others[i].answer;
    return NULL;
}

/* What Open MPI and hydra put behind a colon. */
static const char modifier_answer[] =
    "the word without what stands behind ':' (with --bind auto ranks get equal "
    "shares of the cores; more ranks than slots are refused only by "
    "--no-oversubscribe)";
static const char rankfile_answer[] =
    "--rankfile FILE, which gives each rank its node and its cores";
static const char socket_answer[] =
    "--bind socket (neighbours in rank share a socket), or --bind core";

static const struct {
    const char *word;
    const char *answer;
} places[] = {
    {"ppr", "--ppn N, for N ranks on each node (with --bind socket, neighbours "
            "in rank share a socket)"},
    {"socket:", socket_answer},
    {"package", socket_answer},
    {"numa", socket_answer},
    {"l1cache", socket_answer},
    {"l2cache", socket_answer},
    {"l3cache", socket_answer},
    {"hwthread", "--bind core: a rank has all threads of its core"},
    {"board", socket_answer},
    {"core:", modifier_answer},
    {"slot:", modifier_answer},
    {"node:", modifier_answer},
    {"user:", rankfile_answer},
    {"seq", rankfile_answer},
    {"cpu-list", "--cpu-set LIST"},
    {"rr", "--bind core"},
};

/* What Open MPI 5 puts behind --output. */
static const struct {
    const char *word;
    const char *answer;
} outputs[] = {
    {"tag", "--label"},
    {"tag-detailed", "--label"},
    {"tag-fullname", "--label"},
    {"rank", "--label"},
    {"timestamp", "--timestamp"},
    {"merge-stderr-to-stdout", both_answer},
    {"xml", "--label, which has one form"},
    {"dir=", folder_answer},
    {"file=", "--output FILE.%r"},
};

const char *chempi_others_output(const char *text)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(outputs); i++) {
        const size_t len = strlen(outputs[i].word);
        const bool is_begun = outputs[i].word[len - 1] == '=';

        if (strncasecmp(text, outputs[i].word, len) == 0 &&
            (is_begun || !text[len] || strchr(",:", text[len])))
            return outputs[i].answer;
    }
    return NULL;
}

const char *chempi_others_place(const char *text)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(places); i++)
        if (strncmp(text, places[i].word, strlen(places[i].word)) == 0)
            return places[i].answer;
    return NULL;
}
