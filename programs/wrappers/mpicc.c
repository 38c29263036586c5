/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpicc, mpicxx, mpifort and their other names: run the compiler with what an
 * MPI program needs. The name that the program is called by chooses the
 * language. Where mpi.h, the modules and the libraries are follows from where
 * this program is, so that an installed tree may be moved; it also works from
 * the build tree.
 *
 * CHEMPI_CC_DEFAULT, CHEMPI_CXX_DEFAULT, CHEMPI_FC_DEFAULT and
 * CHEMPI_LIBDIR_FROM_BINDIR come from the build; CHEMPI_FC_VERSION is the
 * version of the compiler that compiled the modules, "" if there are none;
 * CHEMPI_EXTRA_FLAGS are flags that programs must share with the library (a
 * sanitizer), or "".
 */
#define _GNU_SOURCE /* readlink */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_OWN_ARGS 16 /* what this program adds to the command line */

#define MAX_DIRS 2 /* the build tree has two folders of libraries */

enum language { LANGUAGE_C, LANGUAGE_CXX, LANGUAGE_FORTRAN };

static const struct {
    const char *compiler; /* if nothing else is said */
    const char *variable; /* names another one, */
    const char *option;   /* as this does */
} languages[] = {
    [LANGUAGE_C] = {CHEMPI_CC_DEFAULT, "CHEMPI_CC", "-cc="},
    [LANGUAGE_CXX] = {CHEMPI_CXX_DEFAULT, "CHEMPI_CXX", "-cxx="},
    [LANGUAGE_FORTRAN] = {CHEMPI_FC_DEFAULT, "CHEMPI_FC", "-fc="},
};

struct place {
    int n_include;
    int n_lib;
    char include_flag[MAX_DIRS][PATH_MAX + 16];
    char libdir[MAX_DIRS][PATH_MAX];
    char libdir_flag[MAX_DIRS][PATH_MAX + 16];
    char rpath_flag[MAX_DIRS][PATH_MAX + 16];
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

static const char fortran_libs[] = "mpifort_abi mpi_abi";

struct job {
    const char *name; /* as called */
    const char *compiler;
    char *compiler_text; /* the same, cut into */
    const char **words;  /* a program, perhaps its first arguments */
    int word_count;
    enum language language;
    bool asks_version;
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
    if (strcmp(arg, "--help") == 0) {
        job->action = ACTION_SHOW_HELP;
        return true;
    }
    if (is_prefixed(arg, languages[job->language].option)) {
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

static const char *choose_compiler(enum language language)
{
    const char *set = getenv(languages[language].variable);

    return set && *set ? set : languages[language].compiler;
}

static enum language find_language(const char *name)
{
    if (is_prefixed(name, "mpif"))
        return LANGUAGE_FORTRAN;
    if (strstr(name, "xx") || strstr(name, "++") || strstr(name, "CC"))
        return LANGUAGE_CXX;
    return LANGUAGE_C;
}

/* Default integers of 8 bytes: the modules and the ABI have 4. */
static bool widens_integers(const char *arg)
{
    static const char *const words[] = {"-fdefault-integer-8", "-i8",
                                        "-finteger-4-integer-8"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(arg, words[i]) == 0)
            return true;
    }
    return false;
}

/*
 * False, after saying why, where Fortran cannot be compiled. Who asks for flags
 * only gets them all the same: CMake would take those of another MPI that it
 * finds, but tries these, and then says that there is no Fortran.
 */
static bool check_fortran(const struct job *job)
{
    if (job->language != LANGUAGE_FORTRAN)
        return true;
    if (!*CHEMPI_FC_VERSION) {
        fprintf(stderr,
                "%s: this CHEMPI was built without a Fortran compiler and has "
                "no Fortran modules; install gfortran 12 or later and build "
                "CHEMPI again\n",
                job->name);
        return job->action != ACTION_RUN;
    }
    for (int i = 0; i < job->argc; i++) {
        if (!widens_integers(job->argv[i]))
            continue;
        fprintf(stderr,
                "%s: %s makes default integers 8 bytes wide, but MPI's "
                "INTEGER has 4 here; leave the option out and declare the "
                "program's own wide integers as INTEGER(8)\n",
                job->name, job->argv[i]);
        return false;
    }
    return true;
}

/* "ccache gcc" is a program and its first argument; a file's path may have
 * blanks. False: out of memory. */
static bool split_compiler(struct job *job)
{
    char *rest = strdup(job->compiler);
    char *word;

    job->compiler_text = rest;
    job->words = calloc(strlen(job->compiler) + 1, sizeof(*job->words));
    if (!rest || !job->words)
        return false;
    while (access(job->compiler, X_OK) != 0 && (word = strsep(&rest, " ")))
        if (*word)
            job->words[job->word_count++] = word;
    if (job->word_count == 0)
        job->words[job->word_count++] = job->compiler;
    return true;
}

/* Sort the command line into our options and the compiler's arguments. */
static void parse(struct job *job, int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');

    job->name = slash ? slash + 1 : argv[0];
    job->language = find_language(job->name);
    job->compiler = choose_compiler(job->language);
    job->is_linking = true;
    for (int i = 1; i < argc; i++) {
        if (take_own_option(job, argv[i]))
            continue;
        if (stops_before_linking(argv[i]))
            job->is_linking = false;
        if (argv[i][0] != '-' || argv[i][1] == '\0')
            job->has_input = true;
        if (strcmp(argv[i], "--version") == 0)
            job->asks_version = true;
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

static void add_include(struct place *p, const char *dir)
{
    (void)snprintf(p->include_flag[p->n_include++], sizeof(p->include_flag[0]),
                   "-I%s", dir);
}

static void add_libdir(struct place *p, const char *dir)
{
    int i = p->n_lib++;

    (void)snprintf(p->libdir[i], sizeof(p->libdir[0]), "%s", dir);
    (void)snprintf(p->libdir_flag[i], sizeof(p->libdir_flag[0]), "-L%s", dir);
    (void)snprintf(p->rpath_flag[i], sizeof(p->rpath_flag[0]), "-Wl,-rpath,%s",
                   dir);
}

/* Fill in the flags from where this program lies. */
static bool find_place(struct job *job)
{
    struct place *p = &job->place;
    const char *top = "..";
    char dir[PATH_MAX];
    char tail[PATH_MAX];
    char path[PATH_MAX];
    bool is_built; /* this is the build tree */

    if (!find_own_dir(dir)) {
        fprintf(stderr, "%s: cannot read /proc/self/exe: %s\n", job->name,
                strerror(errno));
        return false;
    }
    is_built = resolve(path, dir, "../../libchempi/libmpi_abi.so.1");
    if (is_built)
        top = "../..";
    (void)snprintf(tail, sizeof(tail), "%s/include/mpi.h", top);
    if (!resolve(path, dir, tail)) {
        fprintf(stderr, "%s: found no %s/%s\n", job->name, dir, tail);
        return false;
    }
    *strrchr(path, '/') = '\0';
    add_include(p, path);
    /* The build tree keeps libraries and modules where they are made. */
    if (is_built && job->language == LANGUAGE_FORTRAN &&
        resolve(path, dir, "../../fortran")) {
        add_include(p, path);
        add_libdir(p, path);
    }
    (void)snprintf(tail, sizeof(tail), "%s/libmpi_abi.so.1",
                   is_built ? "../../libchempi" : CHEMPI_LIBDIR_FROM_BINDIR);
    if (!resolve(path, dir, tail)) {
        fprintf(stderr, "%s: no %s/%s; was the tree installed completely?\n",
                job->name, dir, tail);
        return false;
    }
    *strrchr(path, '/') = '\0';
    add_libdir(p, path);
    return true;
}

static int add_compile_flags(const struct job *job, const char **out)
{
    int n = 0;

    for (int i = 0; i < job->place.n_include; i++)
        out[n++] = job->place.include_flag[i];
    if (*CHEMPI_EXTRA_FLAGS)
        out[n++] = CHEMPI_EXTRA_FLAGS;
    return n;
}

static int add_link_flags(const struct job *job, const char **out)
{
    int n = 0;

    for (int i = 0; i < job->place.n_lib; i++) {
        out[n++] = job->place.libdir_flag[i];
        out[n++] = job->place.rpath_flag[i];
    }
    if (job->language == LANGUAGE_FORTRAN)
        out[n++] = "-lmpifort_abi";
    out[n++] = "-lmpi_abi";
    if (*CHEMPI_EXTRA_FLAGS)
        out[n++] = CHEMPI_EXTRA_FLAGS;
    return n;
}

/* The whole command, NULL at its end. The user's flags come first, so that
 * their folders are searched first. */
static const char **make_command(const struct job *job)
{
    size_t room = (size_t)(job->argc + job->word_count) + MAX_OWN_ARGS;
    const char **out = calloc(room, sizeof(*out));
    int n = 0;

    if (!out)
        return NULL;
    for (int i = 0; i < job->word_count; i++)
        out[n++] = job->words[i];
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
    "  --version          versions of the compiler and of CHEMPI\n"
    "  -cc=X, -cxx=X, -fc=X   use compiler X (or set CHEMPI_CC, CHEMPI_CXX,\n"
    "                         CHEMPI_FC)\n"
    "Everything else goes to the compiler, %s.\n";

static void print_dirs(const char (*flags)[PATH_MAX + 16], int n)
{
    for (int i = 0; i < n; i++)
        printf("%s%s", i ? " " : "", flags[i] + strlen("-I"));
    printf("\n");
}

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
        print_dirs(job->place.include_flag, job->place.n_include);
        break;
    case ACTION_SHOW_LIBDIRS:
        print_dirs(job->place.libdir_flag, job->place.n_lib);
        break;
    case ACTION_SHOW_LIBS:
        printf("%s\n",
               job->language == LANGUAGE_FORTRAN ? fortran_libs : "mpi_abi");
        break;
    case ACTION_SHOW_COMMAND:
        printf("%s\n", job->compiler);
        break;
    case ACTION_SHOW_VERSION:
        printf("%s: CHEMPI %s\n", job->name, CHEMPI_VERSION);
        break;
    default:
        printf(help_text, job->name, job->compiler);
        break;
    }
}

/* Run the compiler in place of this program; returns if that fails. */
static int become(const struct job *job, char *const *command)
{
    (void)execvp(command[0], command);
    fprintf(stderr,
            "%s: cannot run %s: %s; set %s to the compiler that you want\n",
            job->name, job->compiler, strerror(errno),
            languages[job->language].variable);
    return 127;
}

/* Where something is to be said after the compiler has run. */
static bool needs_last_word(const struct job *job)
{
    return job->asks_version || job->language == LANGUAGE_FORTRAN;
}

/* The first line that "COMPILER -dumpversion" prints; "" if none. */
static void ask_version(const struct job *job, char *out, size_t size)
{
    char *line = NULL;
    size_t len;
    FILE *text = open_memstream(&line, &len);
    FILE *pipe = NULL;

    *out = '\0';
    for (int i = 0; text && i < job->word_count; i++)
        (void)fprintf(text, "'%s' ", job->words[i]);
    if (text && fputs("-dumpversion", text) >= 0 && fclose(text) == 0 &&
        !strchr(job->compiler, '\''))
        pipe = popen(line, "r");
    free(line);
    if (!pipe)
        return;
    if (!fgets(out, (int)size, pipe))
        *out = '\0';
    out[strcspn(out, "\n")] = '\0';
    (void)pclose(pipe);
}

/* A module can be read by the compiler that wrote it, and by some others. */
static void explain_failure(const struct job *job)
{
    char version[64];

    ask_version(job, version, sizeof(version));
    if (strcmp(version, CHEMPI_FC_VERSION) == 0)
        return;
    fprintf(stderr,
            "%s: the modules mpi and mpi_f08 were compiled by %s %s, and %s "
            "is version %s; if it cannot read them, build CHEMPI with "
            "FC='%s'\n",
            job->name, CHEMPI_FC_DEFAULT, CHEMPI_FC_VERSION, job->compiler,
            *version ? version : "unknown", job->compiler);
}

static int run_and_add(const struct job *job, char *const *command)
{
    pid_t child = fork();
    int status = 0;

    if (child < 0)
        return become(job, command);
    if (child == 0)
        _exit(become(job, command));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(status)) {
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
    }
    if (WEXITSTATUS(status) == 0 && job->asks_version)
        printf("%s: CHEMPI %s, an MPI 5.0 library, around %s\n", job->name,
               CHEMPI_VERSION, job->compiler);
    else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 127 &&
             job->language == LANGUAGE_FORTRAN)
        explain_failure(job);
    return WEXITSTATUS(status);
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
    n = needs_last_word(job) ? run_and_add(job, args.out)
                             : become(job, args.out);
    free(command);
    return n;
}

int main(int argc, char **argv)
{
    static struct job job;
    int rc = 1;

    (void)signal(SIGCHLD, SIG_DFL); /* ignored, no child's end would be told */
    job.argv = calloc((size_t)argc + 1, sizeof(*job.argv));
    if (job.argv)
        parse(&job, argc, argv);
    if (!job.argv || !split_compiler(&job)) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
    } else if (job.action != ACTION_BAD && check_fortran(&job) &&
               find_place(&job)) {
        if (job.action == ACTION_RUN || job.action == ACTION_SHOW) {
            rc = run(&job);
        } else {
            show(&job);
            rc = 0;
        }
    }
    free(job.words);
    free(job.compiler_text);
    free(job.argv);
    return rc;
}
