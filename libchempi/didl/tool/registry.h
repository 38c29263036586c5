/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What there is to see and to set: all control variables (settings of didl
 * and of every device of this build) and all performance variables (counters
 * of didl's modules, traffic per device and protocol, gauges of devices).
 * Everything is computed from constant tables: an index means the same
 * variable in every process of one build, open or not.
 *
 *   -   a variable's module is that of exactly one category
 *   V2  what counters had reached when their owner was closed is kept, so
 *       that a counter never falls
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TOOL_REGISTRY_H
#define CHEMPI_LIBCHEMPI_DIDL_TOOL_REGISTRY_H

#include <mpi.h>

#include "libchempi/ddi.h"

#define CHEMPI_TOOL_TEXT_MAX 256 /* bytes of a sentence with zero */

/* Take all settings from the environment, once; later calls answer the same.
 * 0, or -EINVAL with words. Thread-safe. */
int chempi_tool_load(struct chempi_err *err);

/* Those that must be the same in all processes of a job: compare them with the
 * ranks of this node. 0, or -EINVAL with words that name one that differs. */
int chempi_tool_compare_here(struct chempi_err *err);

/* .. and between nodes: publish rank 0's, before MPI begins; ask for them, once
 * per node, under the lane lock. Where there are only sessions, publish those
 * of each process; ask for this one's, whom this process has just found the way
 * to, if it is the first of its node. Whoever hears in an answer that one
 * differs ends the job. */
int chempi_tool_publish(struct chempi_err *err);
void chempi_tool_ask_first(void);
void chempi_tool_ask_of(uint32_t proc);
void chempi_tool_forget_others(void);
/* Is an answer's key theirs? Then it is looked at. */
bool chempi_tool_hear(uint32_t proc, const char *key, const void *value,
                      size_t len);
/* Has it come that was asked for? (a condition to wait for) */
bool chempi_tool_has_heard(void *unused);

/* A variable of the environment. */
enum chempi_stray {
    CHEMPI_STRAY_FOREIGN, /* nothing of ours, or of another part of CHEMPI */
    CHEMPI_STRAY_KNOWN,   /* a setting */
    CHEMPI_STRAY_WRONG    /* like a setting, but none has this name */
};

/* What a name is; of a wrong one the setting that is nearest, or "". */
enum chempi_stray
chempi_tool_judge_stray(const char *name,
                        char nearest[CHEMPI_SETTING_NAME_MAX]);
/* Log a warning for each wrong one. */
void chempi_tool_warn_of_strays(void);

/* All devices: those of the registry, and the one that stands for gateways. */
size_t chempi_tool_device_count(void);
const struct chempi_dev_ops *chempi_tool_device_at(size_t i); /* i < count */

/* The values of a device's settings, in the order of its panel. */
const _Atomic uint64_t *
chempi_tool_device_settings(const struct chempi_dev_ops *ops);

/* ---- control variables ---- */

struct chempi_tool_cvar {
    const struct chempi_setting *setting;
    _Atomic uint64_t *value;
};

uint32_t chempi_tool_cvar_count(void);
/* i < count */
struct chempi_tool_cvar chempi_tool_cvar_at(uint32_t i);

/* ---- performance variables ---- */

struct chempi_tool_pvar {
    char name[CHEMPI_SETTING_NAME_MAX];
    char text[CHEMPI_TOOL_TEXT_MAX];
    const char *module;
    int var_class; /* MPI_T_PVAR_CLASS_* */
    int bind;      /* MPI_T_BIND_* */
    bool is_basic;
};

uint32_t chempi_tool_pvar_count(void);
/* i < count */
void chempi_tool_pvar_at(uint32_t i, struct chempi_tool_pvar *out);
/* What it has reached; takes the lane lock. `bound` names the object of one
 * that is bound; false: the object is gone. */
bool chempi_tool_pvar_raw(uint32_t i, uint64_t bound, uint64_t *out);
/* The number of an object that a variable of this binding (not NO_OBJECT) is
 * to tell of, whose handle is at obj_handle; 0: there is no such object. Takes
 * the lane lock. */
uint64_t chempi_tool_pvar_bind(int bind, const void *obj_handle);
/* Let a high watermark begin again at the level, which is returned. */
uint64_t chempi_tool_pvar_rearm(uint32_t i);

/* Devices and modules are up: counters may be read. */
void chempi_tool_attach(void);
bool chempi_tool_is_attached(void);
/* They are about to be closed (V2). */
void chempi_tool_detach(void);

/* ---- categories ---- */

struct chempi_tool_category {
    const char *module; /* NULL: the root, which holds the others */
    const char *text;
};

uint32_t chempi_tool_category_count(void);
struct chempi_tool_category chempi_tool_category_at(uint32_t i);

#endif
