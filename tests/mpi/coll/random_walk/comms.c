/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of many kinds, and who is where in them by the seed. */
#include "random_walk.h"

static void members_by_color(struct slot *s, const int *color, const int *key)
{
    int me = check_rank();

    s->size = 0;
    for (int i = 0; i < check_size(); i++) {
        int at = s->size;
        if (color[i] != color[me])
            continue;
        while (at > 0 && key[s->member[at - 1]] > key[i]) {
            s->member[at] = s->member[at - 1];
            at--;
        }
        s->member[at] = i;
        s->size++;
    }
}

static void settle_members(struct slot *s)
{
    for (int i = 0; i < s->size; i++)
        if (s->member[i] == check_rank())
            s->rank = i;
    if (!s->is_inter) {
        s->peers = s->size;
        memcpy(s->peer, s->member, sizeof(s->member));
    }
}

static void make_split(struct slot *s, uint64_t step)
{
    int color[RANKS_MAX];
    int key[RANKS_MAX];
    int classes = 1 + (int)(walk_draw(step, 50, 0, 0) % 3);
    int me = check_rank();

    for (int i = 0; i < check_size(); i++) {
        color[i] = (int)(walk_draw(step, 51, i, 0) % (uint64_t)classes);
        key[i] = (int)(walk_draw(step, 52, i, 0) % 5);
        if (s->shape == REVERSED) {
            color[i] = 0;
            key[i] = -i;
        } else if (s->shape == NODE) {
            color[i] = walk.node[i];
            key[i] = i;
        } else if (s->shape == LEADERS) {
            color[i] = walk.node[i] == i ? 0 : MPI_UNDEFINED;
            key[i] = 0;
        }
    }
    members_by_color(s, color, key);
    s->is_member = color[me] != MPI_UNDEFINED;
    if (s->shape == NODE)
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                            MPI_INFO_NULL, &s->comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, color[me], key[me], &s->comm);
}

static void make_subset(struct slot *s, uint64_t step)
{
    MPI_Group world;
    MPI_Group some;

    for (int i = 0; i < check_size(); i++) {
        int r = (int)(((uint64_t)(i * (check_size() - 1)) +
                       walk_draw(step, 53, 0, 0)) %
                      (uint64_t)check_size());
        if (check_size() == 1)
            r = 0;
        if (walk_chance(step, 54, r, 60) || r == 0) {
            s->is_member = s->is_member || r == check_rank();
            s->member[s->size++] = r;
        }
    }
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, s->size, s->member, &some);
    if (s->is_member)
        MPI_Comm_create_group(MPI_COMM_WORLD, some, (int)(step % 100),
                              &s->comm);
    MPI_Group_free(&world);
    MPI_Group_free(&some);
}

static void make_inter(struct slot *s, uint64_t step)
{
    int color[RANKS_MAX];
    int key[RANKS_MAX];
    int me = check_rank();
    struct slot other = {.size = 0};
    MPI_Comm half;

    for (int i = 0; i < check_size(); i++) {
        color[i] = i == 0   ? 0
                   : i == 1 ? 1
                            : (int)(walk_draw(step, 55, i, 0) % 2);
        key[i] = (int)(walk_draw(step, 56, i, 0) % 5);
    }
    members_by_color(s, color, key);
    s->is_second = color[me] == 1;
    /* The others: as if this rank were on their side, without it. */
    for (int i = 0; i < check_size(); i++)
        color[i] = i == me ? color[i] : !color[i];
    members_by_color(&other, color, key);
    s->peers = 0;
    for (int i = 0; i < other.size; i++)
        if (other.member[i] != me)
            s->peer[s->peers++] = other.member[i];
    MPI_Comm_split(MPI_COMM_WORLD, s->is_second, key[me], &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, s->peer[0], (int)(step % 100),
                         &s->comm);
    MPI_Comm_free(&half);
    s->is_member = true;
    s->is_inter = true;
    if (s->shape == MERGED) {
        MPI_Comm both;
        int first[RANKS_MAX];
        MPI_Intercomm_merge(s->comm, s->is_second, &both);
        MPI_Comm_free(&s->comm);
        s->comm = both;
        s->is_inter = false;
        memcpy(first, s->is_second ? s->peer : s->member, sizeof(first));
        if (s->is_second) {
            memcpy(s->peer, s->member, sizeof(first));
            int n = s->peers;
            s->peers = s->size;
            s->size = n;
        }
        memcpy(s->member, first, sizeof(first));
        for (int i = 0; i < s->peers; i++)
            s->member[s->size++] = s->peer[i];
    }
}

static void everybody(struct slot *s)
{
    s->size = check_size();
    for (int i = 0; i < s->size; i++)
        s->member[i] = i;
    s->is_member = true;
}

static void make_cart(struct slot *s, uint64_t step)
{
    int dims[4];
    int periods[4];
    int n = (int)(walk_draw(step, 57, 0, 0) % 4);
    int cells = 1;

    for (int d = 0; d < n; d++) {
        int most = check_size() / cells;
        dims[d] = 1 + (int)(walk_draw(step, 58, d, 0) % (uint64_t)most);
        if (walk_chance(step, 60, 0, 50) && d == n - 1)
            dims[d] = most;
        cells *= dims[d];
        periods[d] = (int)(walk_draw(step, 59, d, 0) % 2);
    }
    s->size = cells;
    s->is_member = check_rank() < cells;
    MPI_Cart_create(MPI_COMM_WORLD, n, dims, periods, 0, &s->comm);
    CHECK((s->comm != MPI_COMM_NULL) == s->is_member, "cart of %d", cells);
    for (int d = 0, stride = cells; d < n; d++) {
        stride /= dims[d];
        for (int side = 0; side < 2; side++) {
            int x = check_rank() / stride % dims[d];
            int y = x + (side ? 1 : -1);
            int at = 2 * d + side;
            int other = check_rank() + (y - x) * stride;
            if (periods[d])
                other += y < 0          ? dims[d] * stride
                         : y == dims[d] ? -dims[d] * stride
                                        : 0;
            else if (y < 0 || y == dims[d])
                other = -1;
            s->in[at] = s->out[at] = other;
            s->out_edge[at] = at;
            s->in_edge[at] = at ^ 1;
        }
    }
    s->ins = s->outs = 2 * n;
}

static int occurrence(const int *list, int i)
{
    int n = 0;

    for (int j = 0; j < i; j++)
        n += list[j] == list[i];
    return n;
}

static void number_edges(struct slot *s)
{
    for (int i = 0; i < s->ins; i++)
        s->in_edge[i] = occurrence(s->in, i);
    for (int i = 0; i < s->outs; i++)
        s->out_edge[i] = occurrence(s->out, i);
}

static void make_graph(struct slot *s, uint64_t step)
{
    int index[RANKS_MAX];
    int edges[4 * RANKS_MAX * 8];
    int n = check_size() - (int)(walk_draw(step, 61, 0, 0) % 2);
    int at = 0;

    if (n == 0)
        n = 1;
    s->size = n;
    s->is_member = check_rank() < n;
    for (int i = 0; i < n; i++) {
        int from = at;
        for (int j = 0; j < n; j++) {
            int low = i < j ? i : j;
            int high = i < j ? j : i;
            int times = (int)(walk_draw(step, 62, low, high) % 5) - 1;
            if (n > 6 && walk_draw(step, 63, low, high) % 3)
                times = 0;
            for (int k = 0; k < times - (i == j) && k < 2; k++)
                edges[at++] = j;
        }
        index[i] = at;
        if (i == check_rank()) {
            s->ins = s->outs = at - from;
            memcpy(s->in, edges + from, sizeof(int) * (size_t)(at - from));
            memcpy(s->out, edges + from, sizeof(int) * (size_t)(at - from));
        }
    }
    MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &s->comm);
    CHECK((s->comm != MPI_COMM_NULL) == s->is_member, "graph of %d", n);
    number_edges(s);
}

static void dist_make(struct slot *s, uint64_t step, const int *from,
                      const int *to, int n)
{
    int sources[4 * RANKS_MAX];
    int degrees[4 * RANKS_MAX];
    int dests[4 * RANKS_MAX];
    int weights[4 * RANKS_MAX];
    int mine = 0;
    int weighted = 0;
    bool no_weights = walk_chance(step, 66, 0, 50);

    for (int i = 0; i < n; i++)
        if ((int)(walk_draw(step, 65, i, 0) % (uint64_t)check_size()) ==
            check_rank()) {
            sources[mine] = from[i];
            dests[mine] = to[i];
            weights[mine] = i;
            degrees[mine++] = 1;
        }
    MPI_Dist_graph_create(MPI_COMM_WORLD, mine, sources, degrees, dests,
                          no_weights ? MPI_UNWEIGHTED
                          : mine     ? weights
                                     : MPI_WEIGHTS_EMPTY,
                          MPI_INFO_NULL, 0, &s->comm);
    MPI_Dist_graph_neighbors_count(s->comm, &s->ins, &s->outs, &weighted);
    CHECK(weighted == !no_weights, "weighted is %d", weighted);
    MPI_Dist_graph_neighbors(s->comm, s->ins, s->in, sources, s->outs, s->out,
                             weights);
}

static void make_dist(struct slot *s, uint64_t step)
{
    int from[3 * RANKS_MAX];
    int to[3 * RANKS_MAX];
    int n = (int)(walk_draw(step, 64, 0, 0) % (uint64_t)(3 * check_size()));
    int me = check_rank();

    for (int i = 0; i < n; i++) {
        from[i] = (int)(walk_draw(step, 67, i, 0) % (uint64_t)check_size());
        to[i] = (int)(walk_draw(step, 68, i, 0) % (uint64_t)check_size());
    }
    if (s->shape == DIST) {
        int ins = 0, outs = 0;
        dist_make(s, step, from, to, n);
        for (int i = 0; i < n; i++) {
            ins += to[i] == me;
            outs += from[i] == me;
        }
        CHECK(ins == s->ins && outs == s->outs, "degrees %d %d not %d %d",
              s->ins, s->outs, ins, outs);
    } else {
        for (int k = 0; k < check_size(); k++)
            for (int i = 0; i < n; i++) {
                if (from[i] == (k + me) % check_size() && to[i] == me)
                    s->in[s->ins++] = from[i];
                if (k == 0 && from[i] == me)
                    s->out[s->outs++] = to[i];
            }
        MPI_Dist_graph_create_adjacent(
            MPI_COMM_WORLD, s->ins, s->in, s->ins ? s->in : MPI_WEIGHTS_EMPTY,
            s->outs, s->out, s->outs ? s->out : MPI_WEIGHTS_EMPTY,
            MPI_INFO_NULL, 0, &s->comm);
    }
    number_edges(s);
}

void walk_slot_open(struct slot *s, uint64_t step, enum shape shape)
{
    MPI_Request request;

    *s = (struct slot){.shape = shape, .comm = MPI_COMM_NULL};
    if (check_size() == 1 && (shape == INTER || shape == MERGED))
        s->shape = shape = DUP;
    everybody(s);
    switch (shape) {
    case WORLD:
        s->comm = MPI_COMM_WORLD;
        break;
    case DUP:
        MPI_Comm_dup(MPI_COMM_WORLD, &s->comm);
        break;
    case IDUP:
        MPI_Comm_idup(MPI_COMM_WORLD, &s->comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case SPLIT:
    case REVERSED:
    case NODE:
    case LEADERS:
        make_split(s, step);
        break;
    case SUBSET:
        s->size = 0;
        s->is_member = false;
        make_subset(s, step);
        break;
    case INTER:
    case MERGED:
        make_inter(s, step);
        break;
    case CART:
        make_cart(s, step);
        break;
    case GRAPH:
        make_graph(s, step);
        break;
    case DIST:
    case ADJACENT:
        make_dist(s, step);
        break;
    default:
        s->comm = MPI_COMM_SELF;
        s->size = 1;
        s->member[0] = check_rank();
        break;
    }
    settle_members(s);
}

void walk_slot_close(struct slot *s)
{
    for (int k = 0; k < KEPT_MAX; k++)
        if (s->kept[k] != NULL) {
            walk_complete_one(s->kept[k]);
            MPI_Request_free(&s->kept[k]->request);
            walk_act_free(s->kept[k]);
            s->kept[k] = NULL;
        }
    if (s->comm != MPI_COMM_NULL && s->shape != WORLD && s->shape != SELF)
        MPI_Comm_free(&s->comm);
}
