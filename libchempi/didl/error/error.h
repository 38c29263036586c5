/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From errors inside to MPI errors outside. didl functions return an MPI
 * error class (0 is MPI_SUCCESS) after chempi_error_set() has noted the words
 * for this thread; the API layer alone calls chempi_error_raise().
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ERROR_H
#define CHEMPI_LIBCHEMPI_DIDL_ERROR_H

#include <mpi.h>
#include <stdint.h>

#include "common/base/err.h"
#include "libchempi/didl/base/object.h"

struct chempi_comm;

struct chempi_errhandler {
    struct chempi_object obj;
    uint8_t kind; /* enum chempi_errhandler_kind */
    bool is_predefined;
    void (*fn)(void); /* the user's function, cast back by kind */
    MPI_Errhandler handle;
};

enum chempi_errhandler_kind {
    CHEMPI_ERRHANDLER_FATAL,
    CHEMPI_ERRHANDLER_ABORT,
    CHEMPI_ERRHANDLER_RETURN,
    CHEMPI_ERRHANDLER_COMM,
    CHEMPI_ERRHANDLER_WIN,
    CHEMPI_ERRHANDLER_FILE,
    CHEMPI_ERRHANDLER_SESSION
};

extern struct chempi_errhandler chempi_errhandler_fatal;
extern struct chempi_errhandler chempi_errhandler_abort;
extern struct chempi_errhandler chempi_errhandler_return;

/* NULL when the handle names no error handler. */
static inline struct chempi_errhandler *
chempi_errhandler_lookup(MPI_Errhandler handle)
{
    if (chempi_handle_is_address(handle)) {
        struct chempi_errhandler *eh =
            (struct chempi_errhandler *)(void *)handle;

        return eh->obj.magic == CHEMPI_MAGIC_ERRHANDLER ? eh : NULL;
    }
    if (handle == MPI_ERRORS_ARE_FATAL)
        return &chempi_errhandler_fatal;
    if (handle == MPI_ERRORS_RETURN)
        return &chempi_errhandler_return;
    return handle == MPI_ERRORS_ABORT ? &chempi_errhandler_abort : NULL;
}

void chempi_errhandler_release(struct chempi_errhandler *eh);

/* The handler that *slot names (NULL: the initial one), with a reference of
 * the caller's. Slots are read and changed by these two only, so that raising
 * and setting may meet on different threads. */
struct chempi_errhandler *
chempi_errhandler_get(struct chempi_errhandler *const *slot);
/* Takes a reference of its own and drops that of the old one. */
void chempi_errhandler_put(struct chempi_errhandler **slot,
                           struct chempi_errhandler *eh);

/*
 * The initial error handler: of MPI_COMM_WORLD and MPI_COMM_SELF at first, and
 * of errors that belong to no object while there is no MPI_COMM_SELF. The
 * launcher's --initial-errhandler says which, by the environment; else it is
 * MPI_ERRORS_ARE_FATAL. It never changes. Its name is as the value of the info
 * key. The check is for MPI's start: -EINVAL with words when the environment
 * names none (MPI_ERRORS_ARE_FATAL is taken).
 */
#define CHEMPI_ERRHANDLER_INITIAL_KEY "mpi_initial_errhandler"
const char *chempi_errhandler_initial_name(void);
int chempi_errhandler_check_initial(struct chempi_err *err);

/* May it be set on objects of this kind? Predefined ones always. */
bool chempi_errhandler_is_for(const struct chempi_errhandler *eh,
                              enum chempi_errhandler_kind kind);

/* A handle without a name, as an address or as the number that the program took
 * for one (MPI_X_fromint). Returns text. */
enum { CHEMPI_ERROR_HANDLE_TEXT = 24 };
char *chempi_error_put_handle(char text[CHEMPI_ERROR_HANDLE_TEXT],
                              const void *handle);

/* Note the words for the error that is about to be returned; returns
 * errclass. Thread-local. */
int chempi_error_set(int errclass, const char *fmt, ...) CHEMPI_PRINTF(2, 3);

/* An error class that another process says, which may be of another world and
 * say what it likes: MPI_ERR_INTERN if it is none. */
int chempi_error_class_of_others(int64_t errclass);

/* The error whose words were noted, and whose object was blamed, is not
 * raised. */
void chempi_error_forget(void);

#define CHEMPI_ERROR_LOST_MAX 8u    /* lost peers that are named */
#define CHEMPI_ERROR_RANKS_TEXT 128 /* bytes */

/* A peer is lost, which is nobody's error yet: keep the sentence (the first
 * one) and who else is for the calls that fail by it. For whoever has the
 * lane, once for each peer. */
void chempi_error_note_loss(uint32_t rank, const char *why);
/* The same of a process of another world, which ends calls that nobody knows
 * more of: the sentence, of several the last one's. It stays where it is until
 * the next one, or NULL, is noted. */
void chempi_error_note_foreign_loss(const char *sentence);

/* "; so are ranks 3, 5 and 2 more" for all but the first of `count` ranks, of
 * which the first CHEMPI_ERROR_LOST_MAX are there. */
void chempi_error_put_ranks(const uint32_t *ranks, uint32_t count, char *buf,
                            size_t len);

/* A call is about to report this class for an operation that failed in the
 * background: note the words of a loss if it is one and there are no others. */
void chempi_error_explain(int code);
/* The same where it is known that a process of the own job was lost. */
void chempi_error_explain_own(int code);

/* Note the communicator that the error about to be returned belongs to, when
 * the call has no such argument (MPI_Wait and friends): chempi_error_raise()
 * with comm NULL then uses its handler. Thread-local; cleared by raise. */
void chempi_error_set_comm(struct chempi_comm *comm);

/*
 * The same for an object of any kind that has an error handler (communicator,
 * session), or for an error handler that was given to the call itself. Takes
 * no reference: to be followed by chempi_error_raise(NULL, ...) at once.
 */
void chempi_error_blame(struct chempi_object *object);

/* The error class of -errno from a lower layer; MPI_ERR_PROC_ABORTED where the
 * other process or the way to it is gone. */
int chempi_error_class_of_errno(int neg_errno);

/* The same, set with err's words (may be NULL). */
int chempi_error_from(int neg_errno, const struct chempi_err *err);

/*
 * Run the error handler of comm (NULL: of the object that was blamed before,
 * else of MPI_COMM_SELF, as MPI 5.0 section 9.3 asks for errors that belong to
 * no object; the initial one without a world model) for error class or code
 * `code` in MPI call `func`. A fatal handler prints one message (call, rank,
 * host, class, words) and ends the job; otherwise returns the code for the
 * caller of the MPI function. Before init / after finalize it uses the initial
 * error handler.
 */
int chempi_error_raise(struct chempi_comm *comm, int code, const char *func);

/* The same without an object, and with the call in words for a fatal handler's
 * message: "MPI_Send(buf=0x..., count=1, MPI_INT, ...)". */
#define CHEMPI_ERROR_CALL_TEXT 384 /* bytes */
int chempi_error_raise_call(int code, const char *func, const char *call);

struct chempi_attrs;

/* The attribute that the standard gives an object under this key, as
 * MPI_Comm_get_attr() returns it; *flag = 0 where it is not set. False: the key
 * is none of these. Not called by two threads at a time. */
typedef bool chempi_attr_predefined_fn(struct chempi_object *object, int keyval,
                                       void **value, int *flag);

/*
 * What raising and attributes must know of an object: where its error handler
 * and its attributes are named (NULL: it has none), the user's handle, a name
 * for the words, and what of its attributes the standard gives it (NULL: none).
 * Each kind of object says so by a function of its own, from before the library
 * is up.
 */
struct chempi_error_subject {
    struct chempi_errhandler **errhandler;
    struct chempi_attrs **attrs;
    void *handle;
    const char *name;
    chempi_attr_predefined_fn *predefined;
    /* Notes the words of a loss that has ended a call, if it knows of one;
     * NULL: it never does. */
    void (*explain)(struct chempi_object *object, int code);
};

typedef void chempi_error_subject_fn(struct chempi_object *object,
                                     struct chempi_error_subject *out);

void chempi_error_set_subject(enum chempi_magic magic,
                              chempi_error_subject_fn *describe);
struct chempi_error_subject
chempi_error_subject_of(struct chempi_object *object);

/* The object of errors that belong to none: MPI_COMM_SELF (or, as a setting
 * may say, MPI_COMM_WORLD), or NULL while the world model is not up. */
void chempi_error_set_default(struct chempi_object *object);

/* An error with this code is raised in this call: keep its words, if they were
 * noted for it, for chempi_error_detail(). */
void chempi_error_note_raised(int code, const char *func);

/* "MPI_ERR_RANK" for a predefined class, NULL for any other code. */
const char *chempi_error_name(int code);

/* The words that chempi_error_set() last noted on this thread; never NULL. */
const char *chempi_error_words(void);

/* The same if they were noted for this code and not raised since, else NULL. */
const char *chempi_error_noted(int code);

/* For MPI_Error_string: the words of the latest error that was raised on this
 * thread, and the MPI call in *func, if it had this code; otherwise NULL. */
const char *chempi_error_detail(int code, const char **func);

/* The largest error code in use: the value of MPI_LASTUSEDCODE. */
int chempi_error_last_used(void);

#endif
