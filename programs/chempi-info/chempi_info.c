/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chempi-info: what this build of the library is, which devices it has, what
 * can be set and what it counts; see chempi-info(1). It asks the library
 * through the tool interface, as any tool would.
 */
#include <ctype.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/chempi-info/windows.h"

enum { TEXT_MAX = 1024, LIST_MAX = 256 };

enum show {
    SHOW_VERSION = 1,
    SHOW_SETTINGS = 2,
    SHOW_COUNTERS = 4,
    SHOW_WINDOWS = 8
};

static const char usage[] =
    "Usage: chempi-info [OPTION]...\n"
    "Print what this build of CHEMPI is, can be told and counts.\n"
    "\n"
    "  --settings   settings: control variables, environment variables\n"
    "  --counters   performance variables and events\n"
    "  --text       with what each means\n"
    "  --windows    under chempirun: what one-sided operations of rank 0 use "
    "to\n"
    "               reach the other ranks\n"
    "  --version    the version alone\n"
    "  --help\n"
    "\n"
    "Without options: version, modules and devices, all names.\n";

static bool with_text;

static int fail(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;

    (void)MPI_Error_string(code, text, &len);
    (void)fprintf(stderr, "chempi-info: %s cannot be read: %s\n", what, text);
    return 1;
}

static void print_text(const char *text)
{
    if (with_text)
        printf("        %s\n", text);
}

/* ---- settings ---- */

static void print_word(MPI_T_enum words, int value)
{
    char name[TEXT_MAX];
    int count = 0;
    int len = TEXT_MAX;

    if (MPI_T_enum_get_info(words, &count, name, &len) != MPI_SUCCESS)
        return;
    for (int i = 0; i < count; i++) {
        int v = -1;

        len = TEXT_MAX;
        (void)MPI_T_enum_get_item(words, i, &v, name, &len);
        if (v == value)
            printf("%s", name);
    }
}

static void print_value(int index, MPI_Datatype type, MPI_T_enum words)
{
    MPI_T_cvar_handle handle;
    unsigned long long number = 0;
    int word = 0;
    int count = 0;

    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return;
    if (type == MPI_INT && MPI_T_cvar_read(handle, &word) == MPI_SUCCESS)
        print_word(words, word);
    else if (MPI_T_cvar_read(handle, &number) == MPI_SUCCESS)
        printf("%llu", number);
    (void)MPI_T_cvar_handle_free(&handle);
}

static void print_setting(int index)
{
    char name[TEXT_MAX];
    char text[TEXT_MAX];
    char variable[TEXT_MAX];
    int name_len = TEXT_MAX;
    int text_len = TEXT_MAX;
    int verbosity = 0;
    int bind = 0;
    int scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum words = MPI_T_ENUM_NULL;

    if (MPI_T_cvar_get_info(index, name, &name_len, &verbosity, &type, &words,
                            text, &text_len, &bind, &scope) != MPI_SUCCESS)
        return;
    for (int i = 0; i < TEXT_MAX && (i == 0 || name[i - 1]); i++)
        variable[i] = (char)toupper((unsigned char)name[i]);
    printf("    %s = ", name);
    print_value(index, type, words);
    printf("  (%s%s%s)\n", variable, getenv(variable) ? " is set" : "",
           scope == MPI_T_SCOPE_ALL_EQ ? ", the same in all processes" : "");
    print_text(text);
}

/* ---- counters and events ---- */

static const char *class_name(int var_class)
{
    switch (var_class) {
    case MPI_T_PVAR_CLASS_COUNTER:
        return "counter";
    case MPI_T_PVAR_CLASS_LEVEL:
        return "level";
    case MPI_T_PVAR_CLASS_HIGHWATERMARK:
        return "high watermark";
    default:
        return "other";
    }
}

static void print_counter(int index)
{
    char name[TEXT_MAX];
    char text[TEXT_MAX];
    int name_len = TEXT_MAX;
    int text_len = TEXT_MAX;
    int var_class = 0;
    int bind = 0;

    if (MPI_T_pvar_get_info(index, name, &name_len, NULL, &var_class, NULL,
                            NULL, text, &text_len, &bind, NULL, NULL,
                            NULL) != MPI_SUCCESS)
        return;
    printf("    %s  (%s%s)\n", name, class_name(var_class),
           bind == MPI_T_BIND_MPI_WIN ? " of a window" : "");
    print_text(text);
}

static void print_event(int index)
{
    char name[TEXT_MAX];
    char text[TEXT_MAX];
    int name_len = TEXT_MAX;
    int text_len = TEXT_MAX;

    if (MPI_T_event_get_info(index, name, &name_len, NULL, NULL, NULL, NULL,
                             NULL, NULL, text, &text_len, NULL) != MPI_SUCCESS)
        return;
    printf("    %s  (event)\n", name);
    print_text(text);
}

/* ---- categories ---- */

typedef int list_fn(int category, int len, int indices[]);

static void print_all(int category, int count, list_fn *list,
                      void (*print)(int index))
{
    int indices[LIST_MAX];

    if (count > LIST_MAX)
        count = LIST_MAX;
    if (list(category, count, indices) != MPI_SUCCESS)
        return;
    for (int i = 0; i < count; i++)
        print(indices[i]);
}

static void print_category(int category, int show)
{
    char name[TEXT_MAX];
    char text[TEXT_MAX];
    int name_len = TEXT_MAX;
    int text_len = TEXT_MAX;
    int cvars = 0;
    int pvars = 0;
    int events = 0;
    int categories = 0;

    if (MPI_T_category_get_info(category, name, &name_len, text, &text_len,
                                &cvars, &pvars, &categories) != MPI_SUCCESS ||
        MPI_T_category_get_num_events(category, &events) != MPI_SUCCESS)
        return;
    cvars = show & SHOW_SETTINGS ? cvars : 0;
    pvars = show & SHOW_COUNTERS ? pvars : 0;
    events = show & SHOW_COUNTERS ? events : 0;
    if (cvars + pvars + events == 0)
        return;
    printf("\n%s: %s\n", name, text);
    print_all(category, cvars, MPI_T_category_get_cvars, print_setting);
    print_all(category, pvars, MPI_T_category_get_pvars, print_counter);
    print_all(category, events, MPI_T_category_get_events, print_event);
}

static int print_version(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len = 0;
    int rc = MPI_Get_library_version(version, &len);

    if (rc != MPI_SUCCESS)
        return fail("the library's version", rc);
    printf("%s\n", version);
    return 0;
}

static int print_variables(int show)
{
    int provided = 0;
    int count = 0;
    int rc = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);

    if (rc == MPI_SUCCESS)
        rc = MPI_T_category_get_num(&count);
    if (rc != MPI_SUCCESS)
        return fail("the tool interface", rc);
    for (int i = 0; i < count; i++)
        print_category(i, show);
    (void)MPI_T_finalize();
    return 0;
}

/* What to show, or -1 for words that are not known; *is_help: or asked for. */
static int read_options(int argc, char **argv, bool *is_help)
{
    static const struct {
        const char *word;
        int show;
    } options[] = {{"--settings", SHOW_SETTINGS},
                   {"--counters", SHOW_COUNTERS},
                   {"--version", SHOW_VERSION},
                   {"--windows", SHOW_WINDOWS},
                   {"--text", 0}};
    const size_t count = sizeof(options) / sizeof(options[0]);
    int show = 0;

    for (int i = 1; i < argc; i++) {
        size_t o = 0;

        while (o < count && strcmp(argv[i], options[o].word) != 0)
            o++;
        if (o == count) {
            *is_help = strcmp(argv[i], "--help") == 0;
            if (!*is_help)
                (void)fprintf(stderr, "chempi-info: unknown option %s\n",
                              argv[i]);
            return -1;
        }
        show |= options[o].show;
        with_text |= options[o].show == 0;
    }
    return show ? show : SHOW_VERSION | SHOW_SETTINGS | SHOW_COUNTERS;
}

int main(int argc, char **argv)
{
    bool is_help = false;
    int show = read_options(argc, argv, &is_help);

    if (show < 0) {
        (void)fputs(usage, is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    if (show & SHOW_VERSION && print_version() != 0)
        return 1;
    if (show & (SHOW_SETTINGS | SHOW_COUNTERS) && print_variables(show) != 0)
        return 1;
    if (show & SHOW_WINDOWS && chempi_info_windows() != 0)
        return fail("the counters of windows", MPI_ERR_OTHER);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
