/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice buffers that are sections with gaps; see choice.h.
 *
 * Derived datatypes of sections of predefined types are cached:
 *
 *   C1  `lock` guards the cache; an entry with uses > 0 is in some call and
 *       is neither freed nor changed; its `held` never changes
 *   C2  cached datatypes exist only between MPI_Init and MPI_Finalize, which
 *       frees them through an attribute of MPI_COMM_SELF; processes that use
 *       sessions only have no cache
 */
#include "fortran/lib/buffer/choice.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fortran/lib/buffer/keep.h"
#include "fortran/lib/buffer/within.h"

#define CACHE_SIZE 16

/* A buffer: `count` elements of type from the section's first on. */
struct shape {
    struct chempi_section section; /* its base does not matter */
    MPI_Count count;
    MPI_Datatype type;
};

struct chempi_choice_held {
    struct chempi_keep_item item;
    MPI_Datatype made; /* to be freed, or MPI_DATATYPE_NULL */
    struct entry *entry;
    char *copy; /* with section, way, span */
    struct chempi_section section;
    unsigned way;
    enum chempi_span span;
};

struct entry {
    struct shape shape;
    MPI_Datatype made; /* MPI_DATATYPE_NULL: the entry is free */
    int uses;
    unsigned long stamp;            /* of the last use */
    struct chempi_choice_held held; /* of all these uses: the entry alone */
};

static struct {
    pthread_mutex_t lock;
    int keyval; /* MPI_KEYVAL_INVALID: not made, MPI_Finalize will not tell */
    unsigned long clock;
    struct entry entry[CACHE_SIZE];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .keyval = MPI_KEYVAL_INVALID};

/* ---- the cache of datatypes ---- */

static bool is_same_shape(const struct shape *a, const struct shape *b)
{
    const struct chempi_section *s = &a->section;
    const struct chempi_section *t = &b->section;

    if (a->count != b->count || a->type != b->type ||
        s->elem_len != t->elem_len || s->rank != t->rank)
        return false;
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i].extent != t->dim[i].extent ||
            s->dim[i].stride != t->dim[i].stride)
            return false;
    return true;
}

/* MPI_Finalize deletes the attribute: the cache ends (C2). */
static int on_finalize(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)state;
    (void)pthread_mutex_lock(&cache.lock);
    for (int i = 0; i < CACHE_SIZE; i++) {
        struct entry *e = &cache.entry[i];

        if (e->made != NULL && e->made != MPI_DATATYPE_NULL)
            (void)PMPI_Type_free(&e->made);
        e->made = MPI_DATATYPE_NULL;
    }
    if (cache.keyval != MPI_KEYVAL_INVALID)
        (void)PMPI_Comm_free_keyval(&cache.keyval);
    (void)pthread_mutex_unlock(&cache.lock);
    return MPI_SUCCESS;
}

static int make(const struct shape *shape, MPI_Count per_element,
                MPI_Datatype *made)
{
    return chempi_section_type(&shape->section,
                               (size_t)(shape->count / per_element),
                               per_element, shape->type, made);
}

static bool may_cache_locked(void)
{
    int is_up = 0;
    int is_down = 0;

    if (cache.keyval != MPI_KEYVAL_INVALID)
        return true;
    if (PMPI_Initialized(&is_up) || PMPI_Finalized(&is_down) || !is_up ||
        is_down)
        return false;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize,
                                &cache.keyval, NULL))
        return false;
    return PMPI_Comm_set_attr(MPI_COMM_SELF, cache.keyval, NULL) == MPI_SUCCESS;
}

static bool is_free(const struct entry *e)
{
    return e->made == NULL || e->made == MPI_DATATYPE_NULL;
}

/* The entry of a shape, or NULL. */
static struct entry *find_locked(const struct shape *shape)
{
    for (int i = 0; i < CACHE_SIZE; i++) {
        struct entry *e = &cache.entry[i];

        if (!is_free(e) && is_same_shape(&e->shape, shape))
            return e;
    }
    return NULL;
}

/* A free entry, else the one unused for longest; NULL if all are in use. */
static struct entry *find_room_locked(void)
{
    struct entry *best = NULL;

    for (int i = 0; i < CACHE_SIZE; i++) {
        struct entry *e = &cache.entry[i];

        if (e->uses == 0 && (!best || (!is_free(best) &&
                                       (is_free(e) || e->stamp < best->stamp))))
            best = e;
    }
    return best;
}

static void use_locked(struct chempi_choice *x, struct entry *e)
{
    e->uses++;
    e->stamp = ++cache.clock;
    x->count = 1;
    x->type = e->made;
    x->held = &e->held;
}

/* Has a call had the same shape before? Then x is complete. */
static bool take_cached(struct chempi_choice *x, const struct shape *shape)
{
    struct entry *e;

    (void)pthread_mutex_lock(&cache.lock);
    e = find_locked(shape);
    if (e)
        use_locked(x, e);
    (void)pthread_mutex_unlock(&cache.lock);
    return e != NULL;
}

/* Make the datatype of a shape in the cache and complete x; x->held stays NULL
 * when the cache cannot serve. */
static int add_cached(struct chempi_choice *x, const struct shape *shape,
                      MPI_Count per_element)
{
    struct entry *e = NULL;
    int rc = MPI_SUCCESS;

    if ((uintptr_t)shape->type >= CHEMPI_PREDEFINED_END)
        return MPI_SUCCESS;
    (void)pthread_mutex_lock(&cache.lock);
    if (may_cache_locked())
        e = find_room_locked();
    if (e) {
        if (!is_free(e))
            (void)PMPI_Type_free(&e->made);
        e->shape = *shape;
        e->held.made = MPI_DATATYPE_NULL;
        e->held.entry = e;
        e->made = MPI_DATATYPE_NULL;
        rc = make(shape, per_element, &e->made);
    }
    if (e && !rc)
        use_locked(x, e);
    (void)pthread_mutex_unlock(&cache.lock);
    return rc;
}

/* ---- copies ---- */

static struct chempi_choice_held *held_of(struct chempi_keep_item *item)
{
    return CHEMPI_CONTAINER_OF(item, struct chempi_choice_held, item);
}

static void fetch(struct chempi_keep_item *item)
{
    struct chempi_choice_held *held = held_of(item);

    chempi_section_gather(&held->section, held->copy);
}

static void store(struct chempi_keep_item *item)
{
    struct chempi_choice_held *held = held_of(item);

    if (held->way & CHEMPI_WAY_OUT)
        chempi_section_scatter(&held->section, held->copy);
}

static void drop(struct chempi_keep_item *item)
{
    free(held_of(item)->copy);
    free(held_of(item));
}

static const struct chempi_keep_verbs copy_verbs = {fetch, store, drop};

/* ---- holding and letting go ---- */

chempi_watcher_fn *chempi_choice_watcher;

void chempi_choice_watch(const struct chempi_choice *x, const CFI_cdesc_t *d,
                         const struct chempi_caller *caller)
{
    (void)chempi_within_count(x, d, x->count, 1, x->type, caller);
}

int chempi_choice_fail(const struct chempi_caller *caller, int errclass,
                       const char *name, const char *sentence)
{
    char text[MPI_MAX_ERROR_STRING];

    (void)snprintf(text, sizeof(text), "%s %s", name, sentence);
    return chempi_error_raise(caller, errclass, text);
}

static const char no_memory[] =
    "is an array section with gaps, and there is no memory for its copy";

/* The shape of a descriptor; an error has been raised. */
static int read_section(struct chempi_section *section, const char *name,
                        const CFI_cdesc_t *d,
                        const struct chempi_caller *caller)
{
    if (chempi_section_read(section, d))
        return MPI_SUCCESS;
    return chempi_choice_fail(caller, MPI_ERR_BUFFER, name,
                              "is an assumed-size array with gaps; pass an "
                              "array whose shape is known");
}

static struct chempi_choice_held *new_held(const struct chempi_section *section)
{
    struct chempi_choice_held *held = calloc(1, sizeof(*held));

    if (!held)
        return NULL;
    held->section = *section;
    held->item.verbs = &copy_verbs;
    held->made = MPI_DATATYPE_NULL;
    return held;
}

int chempi_choice_hold_copy(struct chempi_choice *x, const CFI_cdesc_t *d,
                            unsigned way, enum chempi_span span,
                            const struct chempi_caller *caller)
{
    struct chempi_section section;
    struct chempi_choice_held *held;
    int rc = read_section(&section, x->name, d, caller);

    if (rc || !chempi_section_has_gaps(&section))
        return rc;
    held = new_held(&section);
    if (held)
        held->copy = malloc(chempi_section_count(&section) * section.elem_len);
    if (!held || !held->copy) {
        free(held);
        return chempi_choice_fail(caller, MPI_ERR_NO_MEM, x->name, no_memory);
    }
    held->way = way;
    held->span = span;
    fetch(&held->item);
    x->address = held->copy;
    x->held = held;
    return MPI_SUCCESS;
}

/*
 * Does a whole number of elements of the type fill one of the section, and do
 * count of them fill whole ones? Then *per_element says how
 * many fill one.
 */
static bool fits(const struct shape *shape, MPI_Count *per_element)
{
    MPI_Count size = 0;
    MPI_Count lb = 0;
    MPI_Count extent = 0;
    MPI_Count elem_len = (MPI_Count)shape->section.elem_len;

    if (PMPI_Type_size_c(shape->type, &size) ||
        PMPI_Type_get_extent_c(shape->type, &lb, &extent))
        return false;
    if (size <= 0 || lb != 0 || extent != size || elem_len % size ||
        shape->count % (elem_len / size))
        return false;
    *per_element = elem_len / size;
    return true;
}

/* The datatype of a shape for this call only. */
static int make_own(struct chempi_choice *x, const struct shape *shape,
                    MPI_Count per_element, const struct chempi_caller *caller)
{
    struct chempi_choice_held *held = new_held(&shape->section);
    int rc;

    if (!held)
        return chempi_choice_fail(caller, MPI_ERR_NO_MEM, x->name, no_memory);
    rc = make(shape, per_element, &held->made);
    if (rc) {
        free(held);
        return rc;
    }
    x->count = 1;
    x->type = held->made;
    x->held = held;
    return MPI_SUCCESS;
}

static void give_back(MPI_Datatype *type)
{
    int combiner = MPI_COMBINER_NAMED;
    int n;

    (void)PMPI_Type_get_envelope(*type, &n, &n, &n, &combiner);
    if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
        combiner != MPI_COMBINER_F90_COMPLEX &&
        combiner != MPI_COMBINER_F90_INTEGER)
        (void)PMPI_Type_free(type);
}

/* Do procedures of the program convert what goes to the file? They know the
 * datatypes of its calls, not one that was made here. */
static bool is_converted(const struct chempi_caller *caller)
{
    char name[MPI_MAX_DATAREP_STRING + 1] = "";
    MPI_File file = MPI_FILE_NULL;
    MPI_Datatype etype;
    MPI_Datatype filetype;
    MPI_Offset at;

    if (caller->blame == CHEMPI_BLAME_FILE && caller->handle)
        file = chempi_in_file(*caller->handle);
    if (!chempi_is_object(file) || file == MPI_FILE_NULL ||
        PMPI_File_get_view(file, &at, &etype, &filetype, name))
        return false;
    give_back(&etype);
    give_back(&filetype);
    return strcmp(name, "native") != 0 && strcmp(name, "internal") != 0 &&
           strcmp(name, "external32") != 0;
}

int chempi_choice_hold_buf(struct chempi_choice *x, const CFI_cdesc_t *d,
                           unsigned way, enum chempi_span span,
                           const struct chempi_caller *caller)
{
    struct shape shape = {.count = x->count, .type = x->type};
    MPI_Count per_element = 0;
    bool must_copy;
    int rc;

    if (x->count <= 0 || x->type == MPI_DATATYPE_NULL ||
        !chempi_is_object(x->type))
        return MPI_SUCCESS; /* nothing, or for C to refuse */
    rc = read_section(&shape.section, x->name, d, caller);
    if (rc || !chempi_section_has_gaps(&shape.section))
        return rc;
    must_copy = span != CHEMPI_SPAN_UNKNOWN && is_converted(caller);
    if (!must_copy && take_cached(x, &shape))
        return MPI_SUCCESS;
    rc = chempi_within_count(x, d, x->count, 1, x->type, caller);
    if (rc)
        return rc;
    if (must_copy || !fits(&shape, &per_element)) {
        if (span != CHEMPI_SPAN_UNKNOWN)
            return chempi_choice_hold_copy(x, d, way, span, caller);
        return chempi_choice_fail(
            caller, MPI_ERR_TYPE, x->name,
            "is an array section with gaps, and the datatype does not fit its "
            "elements; use the type of the array's elements, or a contiguous "
            "array");
    }
    rc = add_cached(x, &shape, per_element);
    if (rc || x->held)
        return rc; /* an error was raised by the function that failed */
    return make_own(x, &shape, per_element, caller);
}

int chempi_choice_refuse(const char *name, const CFI_cdesc_t *d,
                         const struct chempi_caller *caller)
{
    struct chempi_section section;
    int rc = read_section(&section, name, d, caller);

    if (rc == MPI_SUCCESS && chempi_section_has_gaps(&section))
        return chempi_choice_fail(caller, MPI_ERR_BUFFER, name,
                                  "is an array section with gaps; here it "
                                  "must be contiguous");
    return rc;
}

void chempi_choice_let_go(struct chempi_choice_held *held, int rc, int request)
{
    bool is_kept = held->copy && held->span != CHEMPI_SPAN_CALL &&
                   rc == MPI_SUCCESS &&
                   request != chempi_out_request(MPI_REQUEST_NULL);

    if (is_kept) {
        chempi_keep_add(request, &held->item,
                        held->span == CHEMPI_SPAN_PERSISTENT);
        return;
    }
    if (held->entry) {
        (void)pthread_mutex_lock(&cache.lock);
        held->entry->uses--;
        (void)pthread_mutex_unlock(&cache.lock);
        return;
    }
    if (held->made != MPI_DATATYPE_NULL)
        (void)PMPI_Type_free(&held->made);
    if (held->copy)
        store(&held->item);
    drop(&held->item);
}
