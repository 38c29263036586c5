/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Splitting by place: nodes, hardware, process sets, networks. What the
 * launcher says of nodes (CHEMPI_NODE, ...) is taken for true.
 */
#include "check.h"

static void say_node(char *node, size_t room)
{
    const char *name = getenv("CHEMPI_NODE");

    snprintf(node, room, "%s", name ? name : "alone");
}

/* All members, and nobody else, are on my node. */
static void is_my_node(MPI_Comm comm, const char *how)
{
    enum { ROOM = 64 };
    char mine[ROOM] = "";
    char *all = check_alloc((size_t)check_size() * ROOM);
    int size = 0;
    int on_node = 0;

    say_node(mine, ROOM);
    MPI_Allgather(mine, ROOM, MPI_CHAR, all, ROOM, MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < check_size(); i++)
        on_node += strcmp(all + i * ROOM, mine) == 0;
    MPI_Comm_size(comm, &size);
    CHECK(size == on_node, "%s: %d members, %d processes on node %s", how, size,
          on_node, mine);
    MPI_Allgather(mine, ROOM, MPI_CHAR, all, ROOM, MPI_CHAR, comm);
    for (int i = 0; i < size; i++)
        CHECK(strcmp(all + i * ROOM, mine) == 0, "%s: member %d is on %s", how,
              i, all + i * ROOM);
    free(all);
}

static MPI_Comm split(int type, const char *key, const char *value)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    int error;

    if (key) {
        MPI_Info_create(&info);
        MPI_Info_set(info, key, value);
    }
    error = MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, info, &comm);
    CHECK(error == MPI_SUCCESS, "split by %s fails", value ? value : "type");
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return comm;
}

static void by_node(int type, const char *key, const char *value)
{
    MPI_Comm comm = split(type, key, value);

    CHECK_OR_DIE(comm != MPI_COMM_NULL, "no communicator");
    is_my_node(comm, value ? value : "shared");
    MPI_Comm_free(&comm);
}

static void nowhere(int type, const char *key, const char *value)
{
    MPI_Comm comm = split(type, key, value);

    CHECK(comm == MPI_COMM_NULL, "there is a communicator for %s", value);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
}

/* A split by each kind of resource agrees with what the library tells. */
static void by_hardware(void)
{
    MPI_Info info = MPI_INFO_NULL;
    int count = 0;
    int kinds = 0; /* 0 where hwloc is not installed */

    MPI_Get_hw_resource_info(&info);
    MPI_Info_get_nkeys(info, &count);
    CHECK(count >= 1, "no kind of resource is known");
    for (int i = 0; i < count; i++) {
        char key[MPI_MAX_INFO_KEY] = "";
        char value[16] = "";
        int room = sizeof(value);
        int flag = 0;
        int same = 0;
        MPI_Comm comm;

        MPI_Info_get_nthkey(info, i, key);
        MPI_Info_get_string(info, key, &room, value, &flag);
        CHECK(flag && (!strcmp(value, "true") || !strcmp(value, "false")),
              "%s is \"%s\"", key, value);
        if (strncmp(key, "chempi://", 9) == 0)
            continue; /* not the same everywhere; see by_network() */
        same = strcmp(value, "true") == 0;
        comm =
            split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_hw_resource_type", key);
        CHECK((comm != MPI_COMM_NULL) == same, "%s is \"%s\", but %s", key,
              value, same ? "there is no communicator" : "there is one");
        if (comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
        kinds += strncmp(key, "hwloc://", 8) == 0;
    }
    if (check_rank() == 0)
        printf("%d kinds of hardware\n", kinds);
    MPI_Info_free(&info);
}

/* Go down until nothing can be divided; each step is a strict subset. */
static void unguided(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Comm next = MPI_COMM_NULL;
    int steps = 0;

    for (;;) {
        int size = 0;
        int smaller = 0;
        char type[64] = "";
        int room = sizeof(type);
        int flag = 0;
        MPI_Info info;

        MPI_Info_create(&info);
        MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &next);
        MPI_Info_get_string(info, "mpi_hw_resource_type", &room, type, &flag);
        MPI_Info_free(&info);
        CHECK(flag == (next != MPI_COMM_NULL), "the info object %s",
              flag ? "is set" : "says nothing");
        MPI_Comm_size(comm, &size);
        if (comm != MPI_COMM_WORLD)
            MPI_Comm_free(&comm);
        if (next == MPI_COMM_NULL)
            break;
        MPI_Comm_size(next, &smaller);
        CHECK(smaller < size, "%d of %d is no strict subset", smaller, size);
        if (steps++ == 0 && strcmp(type, "mpi_shared_memory") == 0)
            is_my_node(next, type);
        CHECK_OR_DIE(steps < 20, "no end");
        comm = next;
    }
}

/* Who passes MPI_UNDEFINED stays outside, whatever the others split by. */
static void unguided_without_some(void)
{
    bool is_out = check_rank() == check_size() - 1;
    MPI_Comm comm = MPI_COMM_WORLD;
    int sum = 0;

    for (int i = 0; i < 3; i++) {
        MPI_Comm_split_type(MPI_COMM_WORLD,
                            is_out ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_UNGUIDED,
                            0, MPI_INFO_NULL, &comm);
        CHECK(!is_out || comm == MPI_COMM_NULL, "a part without being asked");
        if (comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
        MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == check_size(), "%d ranks are here", sum);
    }
}

/* All split by a network that one of them told; `set` is its name. */
static void by_this_network(MPI_Session session, const char *set)
{
    int result = -1;
    int me = MPI_UNDEFINED;
    MPI_Group of_set;
    MPI_Comm by_key = split(MPI_COMM_TYPE_RESOURCE_GUIDED, "chempi_network",
                            strrchr(set, '/') + 1);
    MPI_Comm by_set =
        split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", set);

    MPI_Group_from_session_pset(session, set, &of_set);
    MPI_Group_rank(of_set, &me);
    CHECK((by_key != MPI_COMM_NULL) == (me != MPI_UNDEFINED) &&
              (by_set != MPI_COMM_NULL) == (me != MPI_UNDEFINED),
          "%s: rank %d in the set, but %s communicator", set, me,
          by_key == MPI_COMM_NULL ? "no" : "a");
    if (by_key != MPI_COMM_NULL && by_set != MPI_COMM_NULL) {
        MPI_Group of_comm;

        MPI_Comm_group(by_key, &of_comm);
        MPI_Group_compare(of_comm, of_set, &result);
        CHECK(result == MPI_IDENT, "%s is not the network's group", set);
        MPI_Group_free(&of_comm);
        MPI_Comm_compare(by_key, by_set, &result);
        CHECK(result == MPI_CONGRUENT, "%s: two different communicators", set);
        MPI_Comm_free(&by_key);
        MPI_Comm_free(&by_set);
    }
    MPI_Group_free(&of_set);
}

/* Every process in turn tells its networks; `want` of them, if not -1, at the
 * last one. */
static void by_network(int want)
{
    MPI_Session session;
    MPI_Comm fastest =
        split(MPI_COMM_TYPE_RESOURCE_GUIDED, "chempi_network", "fastest");
    int count = 0;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    for (int root = 0; root < check_size(); root++) {
        MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
        MPI_Bcast(&count, 1, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 3; i < count; i++) {
            char set[MPI_MAX_PSET_NAME_LEN] = "";
            int room = sizeof(set);

            if (check_rank() == root)
                MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, set);
            MPI_Bcast(set, sizeof(set), MPI_CHAR, root, MPI_COMM_WORLD);
            by_this_network(session, set);
        }
    }
    CHECK(want < 0 || count - 3 == want, "%d networks at the last process",
          count - 3);
    CHECK(want < 0 || fastest != MPI_COMM_NULL, "no fastest network");
    if (fastest != MPI_COMM_NULL)
        MPI_Comm_free(&fastest);
    MPI_Session_finalize(&session);
}

static void memory(void)
{
    static const char *const wishes[] = {"1", "256", "8192", "no number"};
    static const size_t aligns[] = {64, 256, 8192, 64};
    MPI_Info info;

    MPI_Info_create(&info);
    for (int i = 0; i < 4; i++) {
        char *data = NULL;

        MPI_Info_set(info, "mpi_minimum_memory_alignment", wishes[i]);
        MPI_Alloc_mem(1000, info, &data);
        CHECK(data && (uintptr_t)data % aligns[i] == 0, "%p for a wish of %s",
              (void *)data, wishes[i]);
        if (data)
            memset(data, 1, 1000);
        MPI_Free_mem(data);
    }
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    by_node(MPI_COMM_TYPE_SHARED, NULL, NULL);
    by_node(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type",
            "mpi_shared_memory");
    by_node(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_hw_resource_type",
            "mpi_shared_memory");
    nowhere(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "hwloc://Spoon");
    nowhere(MPI_COMM_TYPE_RESOURCE_GUIDED, "chempi_network", "no such network");
    nowhere(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "no such set");
    nowhere(MPI_COMM_TYPE_HW_GUIDED, NULL, NULL);
    by_hardware();
    unguided();
    unguided_without_some();
    by_network((int)check_arg(argc, argv, 1, -1));
    memory();
    return check_finish();
}
