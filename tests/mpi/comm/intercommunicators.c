/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intercommunicators (MPI 5.0, section 7.6): made from communicators and from
 * groups, merged, copied, compared and split; messages and collective
 * operations over them. And inquiries about groups and types that no other
 * program makes.
 */
#include "check.h"

static int side; /* 0 or 1 */
static int local_size;
static int remote_size;

/* The world's rank of a rank of a side: side 0 has every third process. */
static int world_rank(int of, int rank)
{
    int found = -1;

    for (int r = 0; r < check_size(); r++)
        if ((r % 3 != 0) == of && ++found == rank)
            return r;
    return -1;
}

static void sizes(MPI_Comm inter)
{
    int flag = -1;
    int n = -1;
    MPI_Group group;
    MPI_Group world;

    MPI_Comm_test_inter(inter, &flag);
    CHECK(flag == 1, "not an intercommunicator");
    MPI_Comm_test_inter(MPI_COMM_WORLD, &flag);
    CHECK(flag == 0, "the world is one");
    MPI_Comm_size(inter, &n);
    CHECK(n == local_size, "local size %d", n);
    MPI_Comm_remote_size(inter, &n);
    CHECK(n == remote_size, "remote size %d", n);
    MPI_Comm_remote_group(inter, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int r = 0; r < remote_size; r++) {
        int there = -1;

        MPI_Group_translate_ranks(group, 1, &r, world, &there);
        CHECK(there == world_rank(!side, r), "remote rank %d is %d", r, there);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    CHECK(MPI_Comm_remote_size(MPI_COMM_WORLD, &n) != MPI_SUCCESS,
          "the remote size of an intracommunicator");
    CHECK(MPI_Comm_remote_group(MPI_COMM_WORLD, &group) != MPI_SUCCESS,
          "the remote group of an intracommunicator");
}

static void messages(MPI_Comm inter)
{
    int rank;
    int mine;
    int got = -1;
    MPI_Status status;

    MPI_Comm_rank(inter, &rank);
    mine = 100 * side + rank;
    /* Everybody of side 1 to rank 0 of side 0, and an answer. */
    if (side == 1) {
        MPI_Send(&mine, 1, MPI_INT, 0, 3, inter);
        MPI_Recv(&got, 1, MPI_INT, 0, 4, inter, &status);
        CHECK(got == mine + 1 && status.MPI_SOURCE == 0, "answer %d", got);
    } else if (rank == 0) {
        for (int i = 0; i < remote_size; i++) {
            MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 3, inter, &status);
            CHECK(got == 100 + status.MPI_SOURCE, "%d from %d", got,
                  status.MPI_SOURCE);
            got++;
            MPI_Send(&got, 1, MPI_INT, status.MPI_SOURCE, 4, inter);
        }
    }
}

static void collectives(MPI_Comm inter)
{
    int rank;
    int value = -1;
    int mine;
    int *all = check_alloc((size_t)remote_size * sizeof(*all));

    MPI_Comm_rank(inter, &rank);
    mine = 100 * side + rank;
    MPI_Barrier(inter);
    if (side == 0) {
        value = 77;
        MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL,
                  inter);
    } else {
        MPI_Bcast(&value, 1, MPI_INT, 0, inter);
    }
    CHECK(value == 77, "broadcast %d", value);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, inter);
    for (int i = 0; i < remote_size; i++)
        CHECK(all[i] == 100 * !side + i, "gathered %d from %d", all[i], i);
    MPI_Allreduce(&mine, &value, 1, MPI_INT, MPI_SUM, inter);
    CHECK(value ==
              100 * !side * remote_size + remote_size * (remote_size - 1) / 2,
          "sum %d", value);
    free(all);
}

static void merged(MPI_Comm inter, MPI_Comm local)
{
    int rank;
    int size;
    int result = -1;
    int own;
    MPI_Comm whole;
    MPI_Comm again;

    MPI_Comm_rank(local, &own);
    MPI_Intercomm_merge(inter, side == 0, &whole); /* side 1 comes first */
    MPI_Comm_rank(whole, &rank);
    MPI_Comm_size(whole, &size);
    CHECK(size == check_size(), "merged size %d", size);
    CHECK(rank == own + (side == 0 ? remote_size : 0), "merged rank %d", rank);
    MPI_Comm_compare(inter, whole, &result);
    CHECK(result == MPI_UNEQUAL, "inter and intra compare as %d", result);
    /* Leaders by their rank in a bridge that only leaders need to name. */
    MPI_Intercomm_create(local, 0, own == 0 ? whole : MPI_COMM_NULL,
                         side == 0 ? 0 : local_size, 9, &again);
    MPI_Comm_compare(inter, again, &result);
    CHECK(result == MPI_CONGRUENT, "the same groups compare as %d", result);
    messages(again);
    MPI_Comm_free(&again);
    MPI_Comm_free(&whole);
}

static void copied(MPI_Comm inter)
{
    MPI_Comm copy;
    MPI_Comm part;
    MPI_Request request;
    int result = -1;
    int rank;
    int n = -1;

    MPI_Comm_dup(inter, &copy);
    MPI_Comm_compare(inter, copy, &result);
    CHECK(result == MPI_CONGRUENT, "a copy compares as %d", result);
    messages(copy);
    collectives(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_idup(inter, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    messages(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_split(inter, rank == 0 ? 4 : MPI_UNDEFINED, 0, &part);
    CHECK((part != MPI_COMM_NULL) == (rank == 0), "who is in the part");
    if (part != MPI_COMM_NULL) {
        MPI_Comm_remote_size(part, &n);
        CHECK(n == 1, "remote size of the part %d", n);
        MPI_Comm_free(&part);
    }
}

static void from_groups(MPI_Comm local)
{
    MPI_Group world;
    MPI_Group mine;
    MPI_Group theirs;
    MPI_Comm inter = MPI_COMM_NULL;
    int rank;

    MPI_Comm_rank(local, &rank);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(local, &mine);
    CHECK(!MPI_Intercomm_create_from_groups(mine, 0, MPI_GROUP_EMPTY, 0,
                                            "nobody", MPI_INFO_NULL,
                                            MPI_ERRORS_RETURN, &inter) &&
              inter == MPI_COMM_NULL,
          "with nobody");
    CHECK(!MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, mine, 0,
                                            "nobody", MPI_INFO_NULL,
                                            MPI_ERRORS_RETURN, &inter) &&
              inter == MPI_COMM_NULL,
          "of nobody");
    MPI_Group_difference(world, mine, &theirs);
    if (rank != 0) /* significant at the leader only */
        MPI_Group_free(&theirs);
    CHECK(!MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "inters",
                                            MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                            &inter),
          "from groups");
    sizes(inter);
    messages(inter);
    collectives(inter);
    MPI_Comm_free(&inter);
    MPI_Group_free(&world);
    MPI_Group_free(&mine);
    if (rank == 0)
        MPI_Group_free(&theirs);
}

/* What only the leader's arguments say, all members learn. */
static void remote_of_leader(MPI_Comm local)
{
    char garbage = 0;
    MPI_Group worthless[] = {MPI_GROUP_EMPTY, MPI_GROUP_NULL,
                             (MPI_Group)(void *)&garbage};
    MPI_Group world;
    MPI_Group mine;
    MPI_Group theirs;
    int rank;

    MPI_Comm_rank(local, &rank);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(local, &mine);
    MPI_Group_difference(world, mine, &theirs);
    for (int i = 0; i < 3; i++) {
        MPI_Comm inter = MPI_COMM_NULL;
        int rc = MPI_Intercomm_create_from_groups(
            mine, 0, rank == 0 ? theirs : worthless[i], 0, "leader",
            MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter);

        CHECK(!rc && inter != MPI_COMM_NULL, "remote group %d not ignored", i);
        sizes(inter);
        MPI_Comm_free(&inter);
        rc = MPI_Intercomm_create_from_groups(
            mine, 0, rank == 0 ? MPI_GROUP_EMPTY : worthless[i], 0, "leader",
            MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter);
        CHECK(!rc && inter == MPI_COMM_NULL, "with nobody, %d", i);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&mine);
    MPI_Group_free(&theirs);
}

/* An error that only the leader can see ends the call everywhere. */
static void wrong_at_leader(MPI_Comm local)
{
    MPI_Comm inter = local;
    MPI_Group mine;
    int class;

    MPI_Comm_group(local, &mine);
    class = check_class(MPI_Intercomm_create_from_groups(
        mine, 0, mine, 99, "wrong", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
    CHECK(class == MPI_ERR_RANK, "no such remote leader: class %d", class);
    class = check_class(MPI_Intercomm_create_from_groups(
        mine, 0, MPI_GROUP_NULL, 0, "wrong", MPI_INFO_NULL, MPI_ERRORS_RETURN,
        &inter));
    CHECK(class == MPI_ERR_GROUP, "no remote group: class %d", class);
    class = check_class(
        MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 9999, 1, &inter));
    CHECK(class == MPI_ERR_RANK, "no such peer: class %d", class);
    class = check_class(
        MPI_Intercomm_create(local, 0, MPI_COMM_NULL, 0, 1, &inter));
    CHECK(class == MPI_ERR_COMM, "no peer communicator: class %d", class);
    CHECK(inter == MPI_COMM_NULL, "a communicator in spite of an error");
    MPI_Group_free(&mine);
}

static void groups(void)
{
    int every_second[1][3] = {{0, check_size() - 1, 2}};
    MPI_Group world;
    MPI_Group odd;
    int n = -1;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_excl(world, 1, every_second, &odd);
    MPI_Group_size(odd, &n);
    CHECK(n == check_size() / 2, "%d odd ranks", n);
    for (int r = 0; r < n; r++) {
        int there = -1;

        MPI_Group_translate_ranks(odd, 1, &r, world, &there);
        CHECK(there == 2 * r + 1, "rank %d is %d", r, there);
    }
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
}

static int deleted;

static int delete_attr(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type;
    (void)keyval;
    CHECK(value == &deleted && extra == NULL, "deleted with other values");
    deleted++;
    return MPI_SUCCESS;
}

static void types(void)
{
    char name[MPI_MAX_OBJECT_NAME] = "x";
    int len = -1;
    int keyval = MPI_KEYVAL_INVALID;
    int flag = 0;
    int combiner = -1;
    int n[3] = {-1, -1, -1};
    void *value = NULL;
    MPI_Datatype type;
    MPI_Datatype copy;
    MPI_Aint here = 0;
    MPI_Aint there = 0;
    struct {
        char first;
        double second;
    } pair;

    MPI_Type_get_name(MPI_DOUBLE, name, &len);
    CHECK(strcmp(name, "MPI_DOUBLE") == 0 && len == 10, "\"%s\"", name);
    /* MPI 5.0, sections 7.8 and 7.7.3: null handles have names. */
    CHECK(!MPI_Type_get_name(MPI_DATATYPE_NULL, name, &len) &&
              strcmp(name, "MPI_DATATYPE_NULL") == 0 && len == 17,
          "\"%s\"", name);
    CHECK(!MPI_Comm_get_name(MPI_COMM_NULL, name, &len) &&
              strcmp(name, "MPI_COMM_NULL") == 0 && len == 13,
          "\"%s\"", name);
    CHECK(MPI_Comm_get_name((MPI_Comm)MPI_INT, name, &len) != MPI_SUCCESS,
          "the name of a communicator that is a type");
    CHECK(MPI_Comm_set_name(MPI_COMM_NULL, "none") != MPI_SUCCESS,
          "an own name of the null communicator");
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_get_name(type, name, &len);
    CHECK(name[0] == '\0' && len == 0, "an own type is \"%s\"", name);
    MPI_Type_set_name(type, "three");
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, delete_attr, &keyval, NULL);
    MPI_Type_set_attr(type, keyval, &deleted);
    MPI_Type_dup(type, &copy);
    MPI_Type_get_attr(copy, keyval, &value, &flag);
    CHECK(flag && value == &deleted, "the copy's attribute");
    MPI_Type_delete_attr(copy, keyval);
    CHECK(deleted == 1, "deleted %d times", deleted);
    MPI_Type_get_attr(copy, keyval, &value, &flag);
    CHECK(!flag, "it is still there");
    MPI_Type_free_keyval(&keyval);
    MPI_Type_free(&type);
    CHECK(deleted == 2, "deleted %d times", deleted);
    MPI_Type_free(&copy);

    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type);
    MPI_Type_size(type, &len);
    CHECK(type != MPI_DATATYPE_NULL && len == 8, "a real of %d bytes", len);
    MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 2, &type);
    MPI_Type_size(type, &len);
    CHECK(len == 2, "an integer of %d bytes", len);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &type) != MPI_SUCCESS,
          "an integer of 3 bytes");
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type);
    CHECK(type == MPI_DOUBLE_INT, "the pair for MPI_MAXLOC");
    MPI_Type_create_f90_integer(5, &type);
    MPI_Type_get_envelope(type, &n[0], &n[1], &n[2], &combiner);
    CHECK(combiner == MPI_COMBINER_F90_INTEGER && n[0] == 1, "combiner %d",
          combiner);
    MPI_Type_create_f90_complex(10, MPI_UNDEFINED, &copy);
    MPI_Type_size(copy, &len);
    CHECK(len == 16, "complex numbers of 10 digits have %d bytes", len);
    MPI_Get_address(&pair.first, &here);
    MPI_Get_address(&pair.second, &there);
    CHECK(MPI_Aint_diff(there, here) ==
              (MPI_Aint)((char *)&pair.second - &pair.first),
          "addresses");
}

static void others(void)
{
    int index[3] = {1, 3, 4};
    int edges[4] = {1, 0, 2, 1};
    int keyval = MPI_KEYVAL_INVALID;
    int rank = -2;
    int flag = -1;
    void *value;
    MPI_Comm parent;

    MPI_Graph_map(MPI_COMM_WORLD, 3, index, edges, &rank);
    CHECK(rank == MPI_UNDEFINED || (rank >= 0 && rank < 3), "maps to %d", rank);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL, "nobody has started us by a call");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
                           &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &flag);
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag);
    CHECK(flag == 1, "the attribute");
    CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval) == MPI_SUCCESS,
          "delete");
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag);
    CHECK(flag == 0, "it is still there");
    MPI_Comm_free_keyval(&keyval);
}

int main(int argc, char **argv)
{
    MPI_Comm local;
    MPI_Comm inter;

    check_start(&argc, &argv);
    check_need(3);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    side = check_rank() % 3 != 0;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &local);
    MPI_Comm_size(local, &local_size);
    remote_size = check_size() - local_size;
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, world_rank(!side, 0), 1,
                         &inter);
    sizes(inter);
    messages(inter);
    collectives(inter);
    merged(inter, local);
    copied(inter);
    MPI_Comm_free(&inter);
    from_groups(local);
    remote_of_leader(local);
    wrong_at_leader(local);
    MPI_Comm_free(&local);
    groups();
    types();
    others();
    return check_finish();
}
