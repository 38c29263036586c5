/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes chempi(7): copies a template and puts the library's settings, as the
 * tool interface tells them, in place of the line SETTINGS. So the manual
 * cannot name a variable or an initial value that the library does not have.
 *
 *     settings TEMPLATE >chempi.7
 */
#define _GNU_SOURCE /* clearenv */
#include <ctype.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024
#define LINE "SETTINGS\n"

struct variable {
    int index;
    char name[TEXT_MAX];
    char text[TEXT_MAX];
    int verbosity;
    int scope;
    MPI_Datatype type;
    MPI_T_enum words;
};

static void need(bool is_good, const char *what)
{
    if (is_good)
        return;
    (void)fprintf(stderr, "settings: %s failed\n", what);
    exit(1);
}

static struct variable describe(int index)
{
    struct variable v = {.index = index};
    int name_len = TEXT_MAX;
    int text_len = TEXT_MAX;
    int bind;

    need(MPI_T_cvar_get_info(index, v.name, &name_len, &v.verbosity, &v.type,
                             &v.words, v.text, &text_len, &bind,
                             &v.scope) == MPI_SUCCESS,
         "MPI_T_cvar_get_info");
    for (char *c = v.name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return v;
}

static uint64_t initial_value(const struct variable *v)
{
    union {
        int word;
        unsigned long long number;
    } value = {.number = 0};
    MPI_T_cvar_handle handle;
    int count;

    need(MPI_T_cvar_handle_alloc(v->index, NULL, &handle, &count) ==
                 MPI_SUCCESS &&
             count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS &&
             MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS,
         "MPI_T_cvar_read");
    return v->type == MPI_INT ? (unsigned)value.word : value.number;
}

/* The words of an enumeration, and which is the initial one. */
static void print_words(const struct variable *v, uint64_t initial)
{
    char name[TEXT_MAX];
    char first[TEXT_MAX] = "";
    int len = TEXT_MAX;
    int count;

    need(MPI_T_enum_get_info(v->words, &count, name, &len) == MPI_SUCCESS,
         "MPI_T_enum_get_info");
    printf("One of");
    for (int i = 0; i < count; i++) {
        int value;

        len = TEXT_MAX;
        need(MPI_T_enum_get_item(v->words, i, &value, name, &len) ==
                 MPI_SUCCESS,
             "MPI_T_enum_get_item");
        printf("%s\n.Cm %s", i ? " ," : "", name);
        if ((uint64_t)value == initial)
            (void)snprintf(first, sizeof(first), "%s", name);
    }
    printf(" ;\ninitially\n.Cm %s .\n", first);
}

/* A manual's source has each sentence on a line of its own, and no stray
 * request at the start of one. */
static void print_text(const char *text)
{
    if (*text == '.' || *text == '\'')
        printf("\\&");
    for (const char *c = text; *c; c++) {
        if (*c == '\\')
            printf("\\e");
        else if (*c == ' ' && c > text && c[-1] == '.')
            printf("\n");
        else
            printf("%c", *c);
    }
    printf("\n");
}

static void print_variable(const struct variable *v)
{
    const uint64_t initial = initial_value(v);

    printf(".It Ev %s\n", v->name);
    print_text(v->text);
    if (v->words != MPI_T_ENUM_NULL)
        print_words(v, initial);
    else
        printf("Initially %" PRIu64 ".\n", initial);
    if (v->scope == MPI_T_SCOPE_ALL_EQ)
        printf("It must be the same in all processes of a job, which ends "
               "otherwise.\n");
}

static void print_settings(bool is_basic)
{
    int count;

    need(MPI_T_cvar_get_num(&count) == MPI_SUCCESS, "MPI_T_cvar_get_num");
    for (int i = 0; i < count; i++) {
        const struct variable v = describe(i);

        if ((v.verbosity <= MPI_T_VERBOSITY_USER_ALL) == is_basic)
            print_variable(&v);
    }
}

static void copy(FILE *template)
{
    char line[TEXT_MAX];

    while (fgets(line, sizeof(line), template)) {
        if (strcmp(line, "BASIC " LINE) == 0)
            print_settings(true);
        else if (strcmp(line, "TUNER " LINE) == 0)
            print_settings(false);
        else
            (void)fputs(line, stdout);
    }
}

int main(int argc, char **argv)
{
    FILE *template = argc == 2 ? fopen(argv[1], "r") : NULL;
    int provided;

    need(template != NULL, "opening the template");
    /* The initial values, not those of who builds this. */
    need(clearenv() == 0, "clearenv");
    need(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS,
         "MPI_T_init_thread");
    copy(template);
    (void)fclose(template); /* only read */
    (void)MPI_T_finalize();
    need(fflush(stdout) == 0 && !ferror(stdout), "writing");
    return 0;
}
