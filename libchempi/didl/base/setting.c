/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of didl's modules; see setting.h. */
#include "libchempi/didl/base/setting.h"

#include "common/base/log.h"

static const char *const level_list[] = {"error", "warning", "info", "debug"};
static const struct chempi_words levels = {
    .name = "log_level",
    .list = level_list,
    .count = CHEMPI_ARRAY_LEN(level_list),
};

static const char *const nobody_list[] = {"self", "world"};
static const struct chempi_words handlers_of_nobody = {
    .name = "errors_without_object",
    .list = nobody_list,
    .count = CHEMPI_ARRAY_LEN(nobody_list),
};

static const char *const hierarchy_list[] = {"none", "nodes", "networks"};
static const struct chempi_words levels_of_coll = {
    .name = "coll_hierarchy",
    .list = hierarchy_list,
    .count = CHEMPI_ARRAY_LEN(hierarchy_list),
};

/* id, module, name, initial, min, max, words, scope, is_fixed, is_basic,
 * text; in the order of their names. */
#define SETTINGS(X)                                                            \
    X(CHECK_ARGUMENTS, "", "check_arguments", 1, 0, 1, &chempi_words_switch,   \
      LOCAL, false, true,                                                      \
      "Whether MPI calls check their arguments: ranks, tags, counts, "         \
      "buffers, pointers. If not, a wrong one may crash the program or do "    \
      "damage. Handles that are freed, null or of another kind are named in "  \
      "any case; a value that was never a handle of this library, from "       \
      "memory nobody has set or from another library's mpi.h, may crash the "  \
      "program: what was compiled with another mpi.h must be compiled again, " \
      "with this library's mpicc.")                                            \
    X(CRASH_BACKTRACE, "", "crash_backtrace", 1, 0, 1, &chempi_words_switch,   \
      LOCAL, true, true,                                                       \
      "Whether a signal that crashes the program first prints the calls that " \
      "led to it. Signals for which the program has handlers are left alone, " \
      "and core dumps are as without it.")                                     \
    X(ERRORS_OF_NOBODY, "", "errors_without_object", 0, 0, 1,                  \
      &handlers_of_nobody, LOCAL, false, true,                                 \
      "Whose error handler is called for errors that belong to no "            \
      "communicator, window, file or session: that of MPI_COMM_SELF, as the "  \
      "standard has it since MPI 4.0, or that of MPI_COMM_WORLD, as programs " \
      "written for MPI 3 expect.")                                             \
    X(LOG, "", "log", CHEMPI_LOG_WARNING, 0, 3, &levels, LOCAL, true, true,    \
      "What is told on standard error: errors, also warnings, also "           \
      "information, or everything.")                                           \
    X(AGENT_BYTES, "agent", "bytes", 64 << 10, 0, INT64_MAX, NULL, LOCAL,      \
      false, false,                                                            \
      "From which size on, in bytes, a send or receive that was started goes " \
      "on while the program computes.")                                        \
    X(AGENT_ENABLED, "agent", "enabled", 1, 0, 1, &chempi_words_switch, LOCAL, \
      true, false,                                                             \
      "Whether a thread of the library makes progress for others while the "   \
      "program computes.")                                                     \
    X(COLL_ALLGATHER_BRUCK, "coll", "allgather_bruck_max", 32 << 10, 0,        \
      1 << 30, NULL, ALL, true, false,                                         \
      "Up to which size of the whole result an allgather takes few steps and " \
      "sends data several times, in bytes.")                                   \
    X(COLL_ALLTOALL_BRUCK, "coll", "alltoall_bruck_max", 256, 0, 1 << 30,      \
      NULL, ALL, true, false,                                                  \
      "The same for the block of an all-to-all exchange, in bytes.")           \
    X(COLL_ALLTOALL_RANKS, "coll", "alltoall_bruck_ranks", 8, 1, 1 << 30,      \
      NULL, ALL, true, false,                                                  \
      "With how many processes at least it does so, a count.")                 \
    X(COLL_BCAST_PARTS, "coll", "bcast_parts_min", 128 << 10, 0, 1 << 30,      \
      NULL, ALL, true, false,                                                  \
      "From which size on a broadcast is cut into parts, in bytes.")           \
    X(COLL_BCAST_RANKS, "coll", "bcast_parts_ranks", 4, 1, 1 << 30, NULL, ALL, \
      true, false, "With how many processes at least it is, a count.")         \
    X(COLL_GATHER_TREE, "coll", "gather_tree_max", 4 << 10, 0, 1 << 30, NULL,  \
      ALL, true, false,                                                        \
      "Up to which size of a block gather and scatter go by a tree, and "      \
      "gatherv and scatterv by a member of each node, in bytes.")              \
    X(COLL_GATHER_RANKS, "coll", "gather_tree_ranks", 6, 1, 1 << 30, NULL,     \
      ALL, true, false, "With how many processes at least they do, a count.")  \
    X(COLL_HIERARCHY, "coll", "hierarchy", 2, 0, 2, &levels_of_coll, ALL,      \
      true, true,                                                              \
      "Whether collective operations of processes on several nodes go step "   \
      "by step: not at all, first within each node, or also within each "      \
      "group of nodes that a fast network joins.")                             \
    X(COLL_HIER_SEGMENT, "coll", "hierarchy_segment", 128 << 10, 1, 1 << 30,   \
      NULL, ALL, true, false,                                                  \
      "From which size on data is handed from node to node in segments, and "  \
      "how large these are, in bytes.")                                        \
    X(COLL_REDUCE_HALVING, "coll", "reduce_halving_min", 8 << 10, 0, 1 << 30,  \
      NULL, ALL, true, false,                                                  \
      "From which size on a reduction shares the work by halves, in bytes.")   \
    X(COLL_REDUCE_SCATTER_PAIRWISE, "coll", "reduce_scatter_pairwise_min",     \
      16 << 10, 0, 1 << 30, NULL, ALL, true, false,                            \
      "From which size of the whole vector on a reduce-scatter exchanges "     \
      "blocks in pairs, in bytes.")                                            \
    X(COLL_NODE_COPY, "coll", "node_copy", 1, 0, 1, &chempi_words_switch, ALL, \
      true, false,                                                             \
      "Whether collective operations within a node copy large data straight "  \
      "from and to the memory of other processes, where the kernel lets "      \
      "them.")                                                                 \
    X(COLL_NODE_PAST, "coll", "node_past_caches_min", 32 << 20, 0,             \
      UINT64_C(1) << 40, NULL, LOCAL, false, false,                            \
      "From how much on the results of a collective operation within a node, " \
      "those of all processes together, are written past the caches, in "      \
      "bytes.")                                                                \
    X(COLL_NODE_SHARE, "coll", "node_share", 16 << 10, 64, 1 << 30, NULL, ALL, \
      true, false,                                                             \
      "For how much of the data of a reduction within a node one more "        \
      "process takes part in combining it, in bytes.")                         \
    X(COLL_NODE_SPINS, "coll", "node_spins", 200, 0, 1 << 30, NULL, LOCAL,     \
      false, false,                                                            \
      "How often a collective operation within a node looks at its word "      \
      "before progress is made, a count.")                                     \
    X(COLL_NODE_STREAM, "coll", "node_stream", 1, 0, 1, &chempi_words_switch,  \
      ALL, true, false,                                                        \
      "Whether collective operations of three and more processes within a "    \
      "node pass large data through shared memory in chunks where that is "    \
      "faster than copying from process to process.")                          \
    X(CONN_EAGER_QUOTA, "conn", "eager_quota", 4 << 20, 4096, 1 << 30, NULL,   \
      ALL, true, false,                                                        \
      "Payload that one process may send to another before it is received, "   \
      "in bytes; beyond it messages wait for their receive.")                  \
    X(DAEMON_SUSPECT, "daemon", "suspect_ms", 3000, 0, 3600000, NULL, LOCAL,   \
      false, false,                                                            \
      "How long the daemon has to explain a lost connection before the "       \
      "process ends the job itself, in milliseconds.")                         \
    X(LANES, "", "lanes", 0, 0, 8, NULL, LOCAL, true, true,                    \
      "How many lanes a process with MPI_THREAD_MULTIPLE has, a count: "       \
      "threads do not wait for each other while they send and receive over "   \
      "communicators in different lanes. Communicators that the program has "  \
      "made of processes of one node share all lanes but the first, which "    \
      "does everything else. The first process of a node decides; 0: one "     \
      "more than there are processors for each process of the host, or one "   \
      "lane where there are not two for each.")                                \
    X(MATCH_POOL, "match", "pool", 4096, 0, 1 << 30, NULL, LOCAL, false,       \
      false,                                                                   \
      "How many records of unexpected messages are kept for reuse, a count.")  \
    X(MEET_HELD, "meet", "held_max", 1 << 20, 1024, 1 << 30, NULL, LOCAL,      \
      false, false,                                                            \
      "How many messages of one process of another world may wait until they " \
      "are received, and how much of a window it may ask for at a time, a "    \
      "count; who sends more is lost.")                                        \
    X(MEET_PATIENCE, "meet", "patience_ms", 60000, 0, 3600000, NULL, LOCAL,    \
      false, false,                                                            \
      "How long another world with which this one meets may be silent before " \
      "the meeting fails, in milliseconds; 0: for ever.")                      \
    X(MEET_PROCESSES, "meet", "processes_max", 1 << 16, 1, 1 << 16, NULL,      \
      LOCAL, false, false,                                                     \
      "How many processes one meeting by a port or a socket may bring, "       \
      "besides as many as the own job has, a count; with more it fails.")      \
    X(PROGRESS_SPINS_MAX, "progress", "spins_max", 1000, 0, 1 << 30, NULL,     \
      LOCAL, false, true,                                                      \
      "How often a wait polls in vain, at most, before it gives its core "     \
      "away, a count; how often it does below that is learned.")               \
    X(PROGRESS_YIELD_WANTED, "progress", "yield_wanted_ns", 100000, 0,         \
      60000000000, NULL, LOCAL, false, false,                                  \
      "How long a wait gives its core away before it sleeps, when others "     \
      "took it, in nanoseconds.")                                              \
    X(PROGRESS_YIELD_ALONE, "progress", "yield_alone_ns", 1000000, 0,          \
      60000000000, NULL, LOCAL, false, false,                                  \
      "The same when nobody wanted the core, in nanoseconds.")                 \
    X(REQUEST_POOL, "request", "pool", 4096, 0, 1 << 30, NULL, LOCAL, false,   \
      false, "How many requests are kept for reuse, a count.")                 \
    X(SYSMSG_QUOTA, "sysmsg", "quota", 4 << 20, 256 << 10, 1 << 30, NULL, ALL, \
      true, false,                                                             \
      "What requests of one process to another inside the library may hold "   \
      "there before they are done, in bytes; beyond it they wait.")

#define ROW(id, module_, name_, initial_, min_, max_, words_, scope_, fixed_,  \
            basic_, text_)                                                     \
    [CHEMPI_SET_##id] = {.module = module_,                                    \
                         .name = name_,                                        \
                         .text = text_,                                        \
                         .initial = initial_,                                  \
                         .min = min_,                                          \
                         .max = max_,                                          \
                         .words = words_,                                      \
                         .scope = CHEMPI_SETTING_##scope_,                     \
                         .is_fixed = fixed_,                                   \
                         .is_basic = basic_},
#define VALUE(id, module_, name_, initial_, min_, max_, words_, scope_,        \
              fixed_, basic_, text_)                                           \
    [CHEMPI_SET_##id] = initial_,

static const struct chempi_setting table[CHEMPI_SET_COUNT] = {SETTINGS(ROW)};

_Atomic uint64_t chempi_setting_values[CHEMPI_SET_COUNT] = {SETTINGS(VALUE)};

struct chempi_settings chempi_setting_table(void)
{
    return (struct chempi_settings){
        .table = table,
        .values = chempi_setting_values,
        .count = CHEMPI_SET_COUNT,
    };
}
