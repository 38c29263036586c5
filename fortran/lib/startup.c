/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the library is loaded it tells MPI how this Fortran compiler was set
 * up (MPI 5.0, chapter 20), unless somebody has done so already; then it
 * notes whether that fits.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "fortran/lib/startup.h"

#include <dlfcn.h>
#include <string.h>

#include "fortran/lib/binding.h"
#include "fortran/lib/buffer/choice.h"
#include "fortran/lib/error.h"

static const char *misfit; /* a sentence, or NULL */

/* Types of gfortran on the machines that it shares with the ABI's sizes. */
static const struct {
    const char *key;
    const char *value;
} facts[] = {
    {"mpi_logical_size", "4"},
    {"mpi_integer_size", "4"},
    {"mpi_real_size", "4"},
    {"mpi_double_precision_size", "8"},
    {"mpi_logical1_supported", "true"},
    {"mpi_logical2_supported", "true"},
    {"mpi_logical4_supported", "true"},
    {"mpi_logical8_supported", "true"},
    {"mpi_logical16_supported", "true"},
    {"mpi_integer1_supported", "true"},
    {"mpi_integer2_supported", "true"},
    {"mpi_integer4_supported", "true"},
    {"mpi_integer8_supported", "true"},
    {"mpi_integer16_supported", "true"},
    {"mpi_real2_supported", "false"},
    {"mpi_real4_supported", "true"},
    {"mpi_real8_supported", "true"},
    {"mpi_real16_supported", "true"},
    {"mpi_complex4_supported", "false"},
    {"mpi_complex8_supported", "true"},
    {"mpi_complex16_supported", "true"},
    {"mpi_complex32_supported", "true"},
    {"mpi_double_complex_supported", "true"},
};
#define SIZES 4 /* the first of them */
#define FACTS (sizeof(facts) / sizeof(facts[0]))

/* A logical of `size` bytes with the value of a default one. */
static void widen(unsigned char *to, int size, int value)
{
    memset(to, value < 0 ? 0xff : 0, (size_t)size);
    memcpy(to, &value,
           (size_t)size < sizeof(value) ? (size_t)size : sizeof(value));
}

static void agree_on_booleans(int size)
{
    unsigned char yes[16];
    unsigned char no[16];
    unsigned char has_yes[16];
    unsigned char has_no[16];
    int is_set = 0;

    widen(yes, size, chempi_fortran_true);
    widen(no, size, chempi_fortran_false);
    if (PMPI_Abi_get_fortran_booleans(size, has_yes, has_no, &is_set))
        return;
    if (!is_set)
        (void)PMPI_Abi_set_fortran_booleans(size, yes, no);
    else if (memcmp(yes, has_yes, (size_t)size) ||
             memcmp(no, has_no, (size_t)size))
        misfit = "MPI was told values of .TRUE. and .FALSE. that are not those "
                 "of the compiler which built libmpifort_abi; use one Fortran "
                 "library in a program";
}

static void tell_facts(void)
{
    MPI_Info info = MPI_INFO_NULL;

    if (PMPI_Info_create(&info))
        return;
    for (size_t i = 0; i < FACTS; i++)
        (void)PMPI_Info_set(info, facts[i].key, facts[i].value);
    (void)PMPI_Abi_set_fortran_info(info);
    (void)PMPI_Info_free(&info);
}

static void check_facts(MPI_Info info)
{
    for (size_t i = 0; i < SIZES; i++) {
        char value[16] = "";
        int len = (int)sizeof(value);
        int is_set = 0;

        if (PMPI_Info_get_string(info, facts[i].key, &len, value, &is_set) ||
            !is_set || strcmp(value, facts[i].value) == 0)
            continue;
        misfit = "MPI was told sizes of Fortran's default types that are not "
                 "those of libmpifort_abi; compile without options that "
                 "change them";
    }
}

/* libchempi-check shows a function of this name. */
static void look_for_checker(void)
{
    void *found = dlsym(RTLD_DEFAULT, "chempi_checker_too_small");

    memcpy(&chempi_choice_watcher, &found, sizeof(found)); /* no cast does */
}

CHEMPI_AT_LOAD static void agree(void)
{
    MPI_Info info = MPI_INFO_NULL;

    look_for_checker();

    for (int size = 1; size <= 16; size *= 2)
        agree_on_booleans(size);
    if (PMPI_Abi_get_fortran_info(&info))
        return;
    if (info == MPI_INFO_NULL) {
        tell_facts();
        return;
    }
    check_facts(info);
    (void)PMPI_Info_free(&info);
}

int chempi_startup_report(const char *call)
{
    const struct chempi_caller caller = {call, CHEMPI_BLAME_NOBODY, NULL};

    if (!misfit)
        return MPI_SUCCESS;
    return chempi_error_raise(&caller, MPI_ERR_ABI, misfit);
}
