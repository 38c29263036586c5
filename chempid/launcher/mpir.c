/* SPDX-License-Identifier: BSD-3-Clause */
/* What debuggers read of a launcher; see mpir.h. The names and types that do
 * not look like ours are the interface's. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "chempid/launcher/mpir.h"

#include <stdlib.h>

#include "chempid/job/program.h"
#include "chempid/tree/pool.h"
#include "common/base/compiler.h"
#include "common/control/msg.h"

#define SPAWNED 1  /* MPIR_DEBUG_SPAWNED */
#define ABORTING 2 /* MPIR_DEBUG_ABORTING */

typedef struct {
    const char *host_name;
    const char *executable_name;
    int pid;
} MPIR_PROCDESC;

extern MPIR_PROCDESC *MPIR_proctable;
extern int MPIR_proctable_size;
extern volatile int MPIR_being_debugged;
extern volatile int MPIR_debug_state;
extern const char *MPIR_debug_abort_string;
extern int MPIR_i_am_starter;
extern int MPIR_partial_attach_ok;
void MPIR_Breakpoint(void);

MPIR_PROCDESC *MPIR_proctable;
int MPIR_proctable_size;
volatile int MPIR_being_debugged; /* debuggers write it */
volatile int MPIR_debug_state;
const char *MPIR_debug_abort_string;
int MPIR_i_am_starter;      /* it is there: this is no rank */
int MPIR_partial_attach_ok; /* it is there: ranks wait without being held */

static struct chempi_pool pool; /* has what the table points to */

/* Debuggers stop here. */
CHEMPI_NOINLINE void MPIR_Breakpoint(void)
{
    MPIR_debug_state = MPIR_debug_state; /* volatile: the call stays */
}

bool chempi_mpir_is_debugged(void)
{
    return MPIR_being_debugged != 0;
}

/* The file of each program, where it is found from here. */
static const char *find_file(const struct chempi_app *app)
{
    char file[4096];
    const char *copy = NULL;
    char *whole = NULL;

    if (chempi_program_find(app->argv[0], app->wdir, getenv("PATH"), file,
                            sizeof(file)))
        whole = realpath(file, NULL);
    if (whole)
        copy = chempi_pool_str(&pool, whole);
    free(whole);
    return copy ? copy : app->argv[0];
}

/* Filled in with the first PIDS, so that its size says how many there are. */
static bool make_table(const struct chempi_spec *spec, const char *host)
{
    MPIR_PROCDESC *table;
    const char *copy = host ? chempi_pool_str(&pool, host) : NULL;

    if (MPIR_proctable)
        return true;
    table = chempi_pool_array(&pool, spec->size, sizeof(*table));
    if (!table || (host && !copy))
        return false; /* nobody can debug this job; it runs */
    for (uint32_t a = 0; a < spec->app_count; a++) {
        const struct chempi_app *app = &spec->apps[a];
        const char *file = find_file(app);

        for (uint32_t k = 0; k < app->count; k++) {
            const uint32_t rank = app->first_rank + k;

            table[rank].executable_name = file;
            table[rank].host_name =
                copy ? copy : spec->node_names[spec->node_of_rank[rank]];
        }
    }
    MPIR_proctable = table;
    return true;
}

void chempi_mpir_take(const struct chempi_spec *spec, const char *host,
                      struct chempi_reader *r)
{
    const uint32_t node = chempi_wire_get_u32(r);
    const uint32_t n = chempi_wire_get_count(r, spec->size, 8);

    if (!make_table(spec, host))
        return;
    for (uint32_t i = 0; i < n && !r->is_bad; i++) {
        const uint32_t rank = chempi_wire_get_u32(r);
        const uint32_t pid = chempi_wire_get_u32(r);

        if (!r->is_bad && rank < spec->size && spec->node_of_rank[rank] == node)
            MPIR_proctable[rank].pid = (int)pid;
    }
}

void chempi_mpir_start(const struct chempi_spec *spec)
{
    if (!MPIR_proctable)
        return;
    MPIR_proctable_size = (int)spec->size;
    MPIR_debug_state = SPAWNED;
    MPIR_Breakpoint();
}

void chempi_mpir_abort(const char *why)
{
    if (!chempi_mpir_is_debugged())
        return;
    MPIR_debug_abort_string = why;
    MPIR_debug_state = ABORTING;
    MPIR_Breakpoint();
}

void chempi_mpir_fini(void)
{
    MPIR_proctable_size = 0;
    MPIR_proctable = NULL;
    chempi_pool_fini(&pool);
}
