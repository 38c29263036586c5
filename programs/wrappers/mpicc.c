/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpicc, mpicxx and mpicc_abi: run the compiler with what an MPI program
 * needs. The name that the program is called by chooses the language. Where
 * mpi.h and the library are follows from where this program is, so that an
 * installed tree may be moved; it also works from the build tree.
 *
 * CHEMPI_CC_DEFAULT, CHEMPI_CXX_DEFAULT and CHEMPI_LIBDIR_FROM_BINDIR come
 * from the build; CHEMPI_EXTRA_FLAGS are flags that programs must share with
 * the library (a sanitizer), or "".
 */
#define _GNU_SOURCE /* readlink */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_OWN_ARGS 16 /* what this program adds to the command line */

struct place {
    char include_flag[PATH_MAX + 16];
    char libdir[PATH_MAX];
    char libdir_flag[PATH_MAX + 16];
    char rpath_flag[PATH_MAX + 16];
};

/* What to do: compile, or print a part of the command and stop. */
enum action {
    ACTION_RUN,
    ACTION_SHOW,
    ACTION_SHOW_COMPILE,
    ACTION_SHOW_LINK,
    ACTION_SHOW_INCDIRS,
    ACTION_SHOW_LIBDIRS,
    ACTION_SHOW_LIBS,
    ACTION_SHOW_COMMAND,
    ACTION_SHOW_VERSION,
    ACTION_SHOW_HELP,
    ACTION_BAD
};

struct job {
    const char *name; /* as called */
    const char *compiler;
    bool is_cxx;
    bool has_input; /* some argument is no option */
    bool is_linking;
    enum action action;
    int argc;
    const char **argv; /* the user's arguments for the compiler */
    struct place place;
};

static const struct {
    const char *word;
    enum action action;
} action_words[] = {
    {"-show", ACTION_SHOW},
    {"-showme", ACTION_SHOW},
    {"--showme", ACTION_SHOW},
    {"-compile-info", ACTION_SHOW_COMPILE},
    {"-compile_info", ACTION_SHOW_COMPILE},
    {"-link-info", ACTION_SHOW_LINK},
    {"-link_info", ACTION_SHOW_LINK},
    {"compile", ACTION_SHOW_COMPILE},
    {"link", ACTION_SHOW_LINK},
    {"incdirs", ACTION_SHOW_INCDIRS},
    {"libdirs", ACTION_SHOW_LIBDIRS},
    {"libs", ACTION_SHOW_LIBS},
    {"command", ACTION_SHOW_COMMAND},
    {"version", ACTION_SHOW_VERSION},
    {"help", ACTION_SHOW_HELP},
};

static enum action find_action(const char *word)
{
    size_t n = sizeof(action_words) / sizeof(action_words[0]);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(action_words[i].word, word) == 0)
            return action_words[i].action;
    }
    return ACTION_BAD;
}

static bool is_prefixed(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* An option of this program: note what it asks for. */
static bool take_own_option(struct job *job, const char *arg)
{
    const char *value = strchr(arg, '=');

    if (is_prefixed(arg, "-showme:") || is_prefixed(arg, "--showme:")) {
        job->action = find_action(strchr(arg, ':') + 1);
        if (job->action == ACTION_BAD)
            fprintf(stderr, "%s: %s is not known; see %s -showme:help\n",
                    job->name, arg, job->name);
        return true;
    }
    if (arg[0] == '-' && find_action(arg) != ACTION_BAD) {
        job->action = find_action(arg);
        return true;
    }
    if (is_prefixed(arg, job->is_cxx ? "-cxx=" : "-cc=")) {
        job->compiler = value + 1;
        return true;
    }
    return false;
}

static bool stops_before_linking(const char *arg)
{
    static const char *const words[] = {"-c", "-S",  "-E",
                                        "-M", "-MM", "-fsyntax-only"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(arg, words[i]) == 0)
            return true;
    }
    return false;
}

static const char *choose_compiler(bool is_cxx)
{
    const char *set = getenv(is_cxx ? "CHEMPI_CXX" : "CHEMPI_CC");

    if (set && *set)
        return set;
    return is_cxx ? CHEMPI_CXX_DEFAULT : CHEMPI_CC_DEFAULT;
}

/* Sort the command line into our options and the compiler's arguments. */
static void parse(struct job *job, int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');

    job->name = slash ? slash + 1 : argv[0];
    job->is_cxx = strstr(job->name, "xx") || strstr(job->name, "++") ||
                  strstr(job->name, "CC");
    job->compiler = choose_compiler(job->is_cxx);
    job->is_linking = true;
    for (int i = 1; i < argc; i++) {
        if (take_own_option(job, argv[i]))
            continue;
        if (stops_before_linking(argv[i]))
            job->is_linking = false;
        if (argv[i][0] != '-' || argv[i][1] == '\0')
            job->has_input = true;
        job->argv[job->argc++] = argv[i];
    }
}

/* dir + "/" + tail, resolved. False when there is no such file. */
static bool resolve(char *out, const char *dir, const char *tail)
{
    char path[2 * PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, tail);
    return realpath(path, out) != NULL;
}

static bool find_own_dir(char *dir)
{
    ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
    char *slash;

    if (n <= 0)
        return false;
    dir[n] = '\0';
    slash = strrchr(dir, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

/* Fill in the flags from where this program lies. */
static bool find_place(struct job *job)
{
    const char *include = "../include/mpi.h";
    struct place *p = &job->place;
    char dir[PATH_MAX];
    char header[PATH_MAX];
    char library[PATH_MAX];

    if (!find_own_dir(dir)) {
        fprintf(stderr, "%s: cannot read /proc/self/exe: %s\n", job->name,
                strerror(errno));
        return false;
    }
    /* The build tree keeps the library in libchempi/. */
    if (resolve(library, dir, "../../libchempi/libmpi_abi.so.1")) {
        (void)resolve(p->libdir, dir, "../../libchempi");
        include = "../../include/mpi.h";
    } else if (resolve(library, dir,
                       CHEMPI_LIBDIR_FROM_BINDIR "/libmpi_abi.so.1")) {
        (void)resolve(p->libdir, dir, CHEMPI_LIBDIR_FROM_BINDIR);
    } else {
        fprintf(stderr,
                "%s: no libmpi_abi.so.1 in %s/%s; was the tree installed "
                "completely?\n",
                job->name, dir, CHEMPI_LIBDIR_FROM_BINDIR);
        return false;
    }
    if (!resolve(header, dir, include)) {
        fprintf(stderr, "%s: found no %s/%s\n", job->name, dir, include);
        return false;
    }
    *strrchr(header, '/') = '\0';
    (void)snprintf(p->include_flag, sizeof(p->include_flag), "-I%s", header);
    (void)snprintf(p->libdir_flag, sizeof(p->libdir_flag), "-L%s", p->libdir);
    (void)snprintf(p->rpath_flag, sizeof(p->rpath_flag), "-Wl,-rpath,%s",
                   p->libdir);
    return true;
}

static int add_compile_flags(const struct job *job, const char **out)
{
    int n = 0;

    out[n++] = job->place.include_flag;
    if (*CHEMPI_EXTRA_FLAGS)
        out[n++] = CHEMPI_EXTRA_FLAGS;
    return n;
}

static int add_link_flags(const struct job *job, const char **out)
{
    int n = 0;

    out[n++] = job->place.libdir_flag;
    out[n++] = job->place.rpath_flag;
    out[n++] = "-lmpi_abi";
    if (*CHEMPI_EXTRA_FLAGS)
        out[n++] = CHEMPI_EXTRA_FLAGS;
    return n;
}

/* The whole command, NULL at its end. The user's flags come first, so that
 * their folders are searched first. */
static const char **make_command(const struct job *job)
{
    size_t room = (size_t)job->argc + MAX_OWN_ARGS;
    const char **out = calloc(room, sizeof(*out));
    int n = 0;

    if (!out)
        return NULL;
    out[n++] = job->compiler;
    for (int i = 0; i < job->argc; i++)
        out[n++] = job->argv[i];
    n += add_compile_flags(job, out + n);
    if (job->is_linking && (job->has_input || job->action == ACTION_SHOW))
        n += add_link_flags(job, out + n);
    return out;
}

static void print_words(const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        printf("%s%s", i ? " " : "", words[i]);
    printf("\n");
}

static const char help_text[] =
    "usage: %s [compiler arguments]\n"
    "  -show, -showme     print the command instead of running it\n"
    "  -showme:compile    flags to compile with\n"
    "  -showme:link       flags to link with\n"
    "  -showme:incdirs    folders of headers\n"
    "  -showme:libdirs    folders of libraries\n"
    "  -showme:libs       names of libraries\n"
    "  -showme:command    the compiler\n"
    "  -showme:version    version of CHEMPI\n"
    "  -cc=X, -cxx=X      use compiler X (or set CHEMPI_CC, CHEMPI_CXX)\n";

static void show(const struct job *job)
{
    const char *flags[MAX_OWN_ARGS];

    switch (job->action) {
    case ACTION_SHOW_COMPILE:
        print_words(flags, add_compile_flags(job, flags));
        break;
    case ACTION_SHOW_LINK:
        print_words(flags, add_link_flags(job, flags));
        break;
    case ACTION_SHOW_INCDIRS:
        printf("%s\n", job->place.include_flag + strlen("-I"));
        break;
    case ACTION_SHOW_LIBDIRS:
        printf("%s\n", job->place.libdir);
        break;
    case ACTION_SHOW_LIBS:
        printf("mpi_abi\n");
        break;
    case ACTION_SHOW_COMMAND:
        printf("%s\n", job->compiler);
        break;
    case ACTION_SHOW_VERSION:
        printf("%s: CHEMPI %s\n", job->name, CHEMPI_VERSION);
        break;
    default:
        printf(help_text, job->name);
        break;
    }
}

static int run(const struct job *job)
{
    const char **command = make_command(job);
    union {
        const char **in;
        char *const *out; /* execvp's type; it changes nothing */
    } args = {.in = command};
    int n = 0;

    if (!command) {
        fprintf(stderr, "%s: out of memory\n", job->name);
        return 1;
    }
    if (job->action == ACTION_SHOW) {
        while (command[n])
            n++;
        print_words(command, n);
        free(command);
        return 0;
    }
    (void)execvp(job->compiler, args.out);
    fprintf(stderr,
            "%s: cannot run %s: %s; set %s to the compiler that you want\n",
            job->name, job->compiler, strerror(errno),
            job->is_cxx ? "CHEMPI_CXX" : "CHEMPI_CC");
    free(command);
    return 127;
}

int main(int argc, char **argv)
{
    static struct job job;
    int rc = 1;

    job.argv = calloc((size_t)argc + 1, sizeof(*job.argv));
    if (!job.argv) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
        return 1;
    }
    parse(&job, argc, argv);
    if (job.action != ACTION_BAD && find_place(&job)) {
        if (job.action == ACTION_RUN || job.action == ACTION_SHOW) {
            rc = run(&job);
        } else {
            show(&job);
            rc = 0;
        }
    }
    free(job.argv);
    return rc;
}
