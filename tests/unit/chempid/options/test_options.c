/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of chempirun. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/job/spec.h"
#include "chempid/options/options.h"

#define WORDS_MAX 32

static struct chempi_options opt;
static struct chempi_err err;

/* Words are separated by one blank. */
static int parse(const char *line)
{
    static char copy[512];
    char *argv[WORDS_MAX + 1] = {"chempirun"};
    int argc = 1;

    chempi_options_fini(&opt); /* of the last time */
    (void)strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return chempi_options_parse(&opt, argc, argv, &err);
}

static void tear_down(void)
{
    chempi_options_fini(&opt);
}

TestSuite(options, .fini = tear_down);

Test(options, a_program_with_its_arguments)
{
    cr_assert_eq(parse("-n 4 ./a.out -n 7 x"), 0);
    cr_assert_eq(opt.program_count, 1);
    cr_assert_eq(opt.programs[0].count, 4);
    cr_assert_str_eq(opt.programs[0].argv[0], "./a.out");
    cr_assert_str_eq(opt.programs[0].argv[1], "-n");
    cr_assert_str_eq(opt.programs[0].argv[3], "x");
    cr_assert_null(opt.programs[0].argv[4]);
}

Test(options, output_into_files)
{
    cr_assert_eq(parse("--output o.%r p"), 0);
    cr_assert_str_eq(opt.files[0], "o.%r");
    cr_assert_str_eq(opt.files[1], "o.%r");
    cr_assert_eq(parse("--error e --output o p"), 0);
    cr_assert_str_eq(opt.files[0], "o");
    cr_assert_str_eq(opt.files[1], "e");
    cr_assert_eq(parse("-outfile-pattern o p"), 0);
    cr_assert_null(opt.files[1]);
    cr_assert_eq(parse("--output o.%q p"), -EINVAL);
    cr_assert_eq(parse("--output rank-%r p"), 0);
    cr_assert_eq(parse("--output tags p"), 0);
    cr_assert_eq(parse("--output ./tag p"), 0);
    cr_assert_eq(parse("-outfile-pattern tag p"), 0);
}

Test(options, words_before_programs)
{
    cr_assert_eq(parse("--wrap 0,3-4:gdb --wrap valgrind p"), 0);
    cr_assert_eq(opt.wrap_count, 2);
    cr_assert_str_eq(opt.wraps[0].ranks, "0,3-4");
    cr_assert_str_eq(opt.wraps[0].argv[0], "gdb");
    cr_assert_null(opt.wraps[0].argv[1]);
    cr_assert_str_eq(opt.wraps[1].ranks, "all");
    cr_assert_eq(parse("--wrap 0: p"), -EINVAL);
    cr_assert_eq(parse("--wrap 4-3:gdb p"), -EINVAL);
}

Test(options, completion_needs_no_program)
{
    cr_assert_eq(parse("--completion zsh"), 0);
    cr_assert_str_eq(opt.completion, "zsh");
    cr_assert_eq(parse("--completion tcsh"), -EINVAL);
}

Test(options, statistics_of_two_kinds)
{
    cr_assert_eq(parse("--stats p"), 0);
    cr_assert(opt.has_stats && !opt.has_profile);
    tear_down();
    cr_assert_eq(parse("--stats=long --json p"), 0);
    cr_assert(opt.has_stats && opt.has_long_stats && opt.has_json);
    tear_down();
    cr_assert_eq(parse("--stats=calls p"), 0);
    cr_assert(!opt.has_stats && opt.has_profile);
    tear_down();
    cr_assert_eq(parse("--stats=all p"), 0);
    cr_assert(opt.has_stats && opt.has_profile);
}

Test(options, several_programs_with_their_own_options)
{
    cr_assert_eq(parse("-n 2 --wdir /x --env A=1 a : -np 3 -env B 2 b c"), 0);
    cr_assert_eq(opt.program_count, 2);
    cr_assert_str_eq(opt.programs[0].wdir, "/x");
    cr_assert_str_eq(opt.programs[0].env[0], "A=1");
    cr_assert_eq(opt.programs[1].count, 3);
    cr_assert_null(opt.programs[1].wdir);
    cr_assert_str_eq(opt.programs[1].env[0], "B=2");
    cr_assert_str_eq(opt.programs[1].env[1], "CHEMPI_MAXPROCS=3");
    cr_assert_null(opt.programs[1].env[2]);
}

Test(options, spellings_of_other_launchers_mean_the_same)
{
    cr_assert_eq(parse("-np 2 -host a,b -ppn 1 -bind-to core -l -genv X 1 "
                       "-envnone p"),
                 0);
    cr_assert_str_eq(opt.names[1], "b");
    cr_assert_eq(opt.ppn, 1);
    cr_assert_eq(opt.bind, CHEMPI_BIND_CORE);
    cr_assert(opt.has_label);
    cr_assert_str_eq(opt.env[0], "X=1");
    cr_assert(opt.has_clean_env);
}

Test(options, virtual_nodes_by_name_or_number)
{
    cr_assert_eq(parse("--virtual a1,a2 p"), 0);
    cr_assert(opt.is_virtual);
    cr_assert_str_eq(opt.names[1], "a2");
    chempi_options_fini(&opt);
    cr_assert_eq(parse("--virtual 3 p"), 0);
    cr_assert_str_eq(opt.names[2], "node2");
    cr_assert_null(opt.names[3]);
}

Test(options, input_goes_to_a_rank_to_all_or_to_none)
{
    cr_assert_eq(parse("--stdin all p"), 0);
    cr_assert_eq(opt.stdin_rank, CHEMPI_STDIN_ALL);
    chempi_options_fini(&opt);
    cr_assert_eq(parse("-s none p"), 0);
    cr_assert_eq(opt.stdin_rank, CHEMPI_STDIN_NONE);
    chempi_options_fini(&opt);
    cr_assert_eq(parse("--stdin 3 p"), 0);
    cr_assert_eq(opt.stdin_rank, 3);
}

Test(options, values_may_stand_behind_an_equals_sign)
{
    cr_assert_eq(parse("--map=cyclic -n=3 --env=A=b p -x=y"), 0);
    cr_assert_eq(opt.map, CHEMPI_MAP_CYCLIC);
    cr_assert_eq(opt.programs[0].count, 3);
    cr_assert_str_eq(opt.programs[0].env[0], "A=b");
    cr_assert_str_eq(opt.programs[0].argv[1], "-x=y");
    chempi_options_fini(&opt);
}

Test(options, nodes_may_have_numbers_of_ranks)
{
    cr_assert_eq(parse("--hosts a,b:4 p"), 0);
    cr_assert_str_eq(opt.names[1], "b");
    cr_assert_null(opt.names[2]);
    cr_assert_eq(opt.slots[0], 0);
    cr_assert_eq(opt.slots[1], 4);
    chempi_options_fini(&opt);
}

static int read_file(const char *text)
{
    char path[] = "/tmp/chempi-hosts-XXXXXX";
    char line[64];
    const int fd = mkstemp(path);
    int rc;

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(close(fd), 0);
    (void)snprintf(line, sizeof(line), "-machinefile %s p", path);
    rc = parse(line);
    cr_assert_eq(unlink(path), 0);
    return rc;
}

Test(options, files_of_nodes_are_read)
{
    cr_assert_eq(read_file("# a cluster\n\na\nb:2  # two\n c slots=3\na\nb"),
                 0);
    cr_assert_str_eq(opt.names[0], "a");
    cr_assert_str_eq(opt.names[2], "c");
    cr_assert_null(opt.names[3]);
    cr_assert_eq(opt.slots[0], 2);
    cr_assert_eq(opt.slots[1], 3);
    cr_assert_eq(opt.slots[2], 3);
    chempi_options_fini(&opt);
    cr_assert_eq(read_file("a slots=2 max_slots=4\nb:3 max-slots=3\n"), 0);
    cr_assert_eq(opt.slots[0], 2);
    cr_assert_eq(opt.slots[1], 3);
    chempi_options_fini(&opt);
    cr_assert_eq(read_file("a slots=2 max_slots=1\n"), -EINVAL);
    cr_assert(strstr(err.text, "less than the 2 slots"), "%s", err.text);
    cr_assert_eq(read_file("a\nb what=2\n"), -EINVAL);
    cr_assert(strstr(err.text, ":2: 'what=2': expected NAME"), "%s", err.text);
    cr_assert_eq(read_file("a\n\n../b\n"), -EINVAL);
    cr_assert(strstr(err.text, ":3: '../b' is no node name"), "%s", err.text);
    cr_assert_eq(read_file("a:many\n"), -EINVAL);
    cr_assert(strstr(err.text, ":1: 'many': expected"), "%s", err.text);
}

static const char *variable(uint32_t program, const char *name)
{
    const size_t len = strlen(name);
    const char *found = NULL;

    for (char **e = opt.programs[program].env; *e; e++)
        if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
            found = *e + len + 1;
    return found;
}

Test(options, each_program_has_its_own_error_handler)
{
    cr_assert_eq(parse("-initial-errhandler MPI_ERRORS_RETURN a : "
                       "--initial-errhandler=mpi_errors_abort b : c"),
                 0);
    cr_assert_str_eq(variable(0, "CHEMPI_INITIAL_ERRHANDLER"),
                     "mpi_errors_return");
    cr_assert_str_eq(variable(1, "CHEMPI_INITIAL_ERRHANDLER"),
                     "mpi_errors_abort");
    cr_assert_null(variable(2, "CHEMPI_INITIAL_ERRHANDLER"));
}

Test(options, kinds_of_memory_need_not_be_known)
{
    cr_assert_eq(parse("-memory-alloc-kinds mpi:alloc_mem:x,cuda p : "
                       "--memory-allocation-kinds system q"),
                 0);
    cr_assert_str_eq(variable(0, "CHEMPI_MEMORY_ALLOC_KINDS"),
                     "mpi:alloc_mem:x,cuda");
    cr_assert_str_eq(variable(1, "CHEMPI_MEMORY_ALLOC_KINDS"), "system");
}

Test(options, the_empty_list_of_kinds_asks_for_none)
{
    char *argv[] = {"chempirun", "-memory-alloc-kinds", "", "p", NULL};

    cr_assert_eq(chempi_options_parse(&opt, 4, argv, &err), 0, "%s", err.text);
    cr_assert_str_eq(variable(0, "CHEMPI_MEMORY_ALLOC_KINDS"), "");
}

Test(options, lists_of_kinds_are_as_long_as_info_values)
{
    char list[1025];
    char *argv[] = {"chempirun", "-memory-alloc-kinds", list, "p", NULL};

    memset(list, 'k', sizeof(list));
    list[1024] = '\0';
    cr_assert_eq(chempi_options_parse(&opt, 4, argv, &err), -EINVAL);
    cr_assert(strstr(err.text, "-memory-alloc-kinds: the list is too long"),
              "%s", err.text);
    list[1023] = '\0';
    chempi_options_fini(&opt);
    cr_assert_eq(chempi_options_parse(&opt, 4, argv, &err), 0, "%s", err.text);
}

Test(options, numbers_of_ranks_may_be_soft)
{
    cr_assert_eq(parse("-soft 2:10:2,7 -n 8 p : --soft 0:5 q : r"), 0);
    cr_assert_str_eq(opt.programs[0].soft, "2:10:2,7");
    cr_assert_eq(opt.programs[0].count, 8);
    cr_assert_str_eq(variable(0, "CHEMPI_SOFT"), "2:10:2,7");
    cr_assert_str_eq(variable(0, "CHEMPI_MAXPROCS"), "8");
    cr_assert_str_eq(variable(1, "CHEMPI_MAXPROCS"), "1");
    cr_assert_null(opt.programs[2].soft);
    cr_assert_null(variable(2, "CHEMPI_SOFT"));
    cr_assert_str_eq(variable(2, "CHEMPI_MAXPROCS"), "1");
}

Test(options, variables_do_not_undo_options)
{
    cr_assert_eq(parse("-initial-errhandler mpi_errors_abort -n 3 "
                       "-memory-alloc-kinds system -soft 1:3 "
                       "--env CHEMPI_INITIAL_ERRHANDLER=mpi_errors_return "
                       "--env CHEMPI_MEMORY_ALLOC_KINDS=cuda "
                       "--env CHEMPI_MAXPROCS=9 --env CHEMPI_SOFT=2 p : "
                       "--env CHEMPI_INITIAL_ERRHANDLER=mpi_errors_return "
                       "--env CHEMPI_MAXPROCS=9 -n 2 q"),
                 0);
    cr_expect_str_eq(variable(0, "CHEMPI_INITIAL_ERRHANDLER"),
                     "mpi_errors_abort");
    cr_expect_str_eq(variable(0, "CHEMPI_MEMORY_ALLOC_KINDS"), "system");
    cr_expect_str_eq(variable(0, "CHEMPI_MAXPROCS"), "3");
    cr_expect_str_eq(variable(0, "CHEMPI_SOFT"), "1:3");
    cr_expect_str_eq(variable(1, "CHEMPI_INITIAL_ERRHANDLER"),
                     "mpi_errors_return");
    cr_expect_str_eq(variable(1, "CHEMPI_MAXPROCS"), "2");
}

Test(options, lists_of_soft_numbers_are_as_long_as_info_values)
{
    char list[1025];
    char *argv[] = {"chempirun", "--soft", list, "p", NULL};

    memset(list, '1', sizeof(list));
    for (size_t i = 1; i < sizeof(list); i += 2)
        list[i] = ',';
    list[1023] = '1';
    list[1024] = '\0';
    cr_assert_eq(chempi_options_parse(&opt, 4, argv, &err), -EINVAL);
    cr_assert_str_eq(err.text,
                     "--soft: the list is too long (limit: 1023 bytes)");
    list[1023] = '\0';
    cr_assert_eq(chempi_options_parse(&opt, 4, argv, &err), 0, "%s", err.text);
    cr_assert_str_eq(variable(0, "CHEMPI_SOFT"), list);
    for (size_t i = 0; i < 1023; i += 2)
        list[i] = '2';
    chempi_options_fini(&opt);
    cr_assert_eq(chempi_options_parse(&opt, 4, argv, &err), -EINVAL);
    cr_assert_lt(strlen(err.text), 300);
    cr_assert(strstr(err.text, ": permits no number of ranks"), "%s", err.text);
}

/* A file of programs, with options before and words behind it. */
static int parse_programs(const char *before, const char *text,
                          const char *after)
{
    char path[] = "/tmp/chempi-programs-XXXXXX";
    char line[256];
    const int fd = mkstemp(path);
    int rc;

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(close(fd), 0);
    (void)snprintf(line, sizeof(line), "%s -configfile %s %s", before, path,
                   after);
    rc = parse(line);
    cr_assert_eq(unlink(path), 0);
    return rc;
}

Test(options, programs_may_stand_in_a_file)
{
    cr_assert_eq(parse_programs("--ppn 3",
                                "# two\n"
                                "-n 2 --env \"A=b c\" p : -n 5\n"
                                "--label -n 3 -soft 1:3 \\\n"
                                "  -- -q\n",
                                ": -n 4 r"),
                 0, "%s", err.text);
    cr_assert_eq(opt.program_count, 3);
    cr_assert_eq(opt.ppn, 3);
    cr_assert(opt.has_label);
    cr_assert_eq(opt.programs[0].count, 2);
    cr_assert_str_eq(opt.programs[0].env[0], "A=b c");
    cr_assert_str_eq(opt.programs[0].argv[1], ":");
    cr_assert_str_eq(opt.programs[0].argv[3], "5");
    cr_assert_null(opt.programs[0].argv[4]);
    cr_assert_eq(opt.programs[1].count, 3);
    cr_assert_str_eq(opt.programs[1].argv[0], "-q");
    cr_assert_str_eq(variable(1, "CHEMPI_SOFT"), "1:3");
    cr_assert_str_eq(opt.programs[2].argv[0], "r");
}

Test(options, mistakes_in_files_of_programs_are_named_with_their_line)
{
    static const struct {
        const char *before, *text, *after, *words;
    } bad[] = {
        {"", "a\n\n-n many b\n", "", ":3: -n many: expected a number"},
        {"", "a\n-n 3\n", "", ":2: no program to run"},
        {"", "a\n--lable \\\nb\n", "", ":2: unknown option --lable; did you"},
        {"", "a 'b\n", "", ":1: a quote (') is not closed"},
        {"", "-configfile f\n", "", ":1: -configfile f: a file of programs"},
        {"", "-n 2 -soft 3:4 a\n", "", ":1: --soft 3:4: permits no number"},
        {"-n 2", "a\n", "", "what belongs to one program stands in the file"},
        {"", "a\n", "-n 2", "programs, not beside --configfile: "},
        {"--env A=b", "a\n", "", "what belongs to one program"},
        {"-soft 1:2", "a\n", "", "what belongs to one program"},
        {"", "a\n", "b", "'b' is one too many"},
        {"-configfile x", "a\n", "", "there is another file"},
        {"", "a\n", ":", "no program to run"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(parse_programs(bad[i].before, bad[i].text, bad[i].after),
                     -EINVAL, "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].words), "%s: %s", bad[i].text,
                  err.text);
    }
}

Test(options, help_and_version_need_no_program)
{
    cr_assert_eq(parse("--help"), 0);
    cr_assert(opt.wants_help);
    chempi_options_fini(&opt);
    cr_assert_eq(parse("-n 3 --version"), 0);
    cr_assert(opt.wants_version);
    chempi_options_fini(&opt);
    cr_assert_eq(parse("--virtual 2 --dir /x --help"), 0);
    cr_assert(opt.wants_help); /* though these two do not go together */
}

Test(options, mistakes_are_named)
{
    static const struct {
        const char *line, *words;
    } bad[] = {
        {"", "no program"},
        {"-n 4", "no program"},
        {"-n", "a value is missing"},
        {"-n 0 p", "expected a number"},
        {"-n -3 p", "expected a number"},
        {"-n 4x p", "expected a number"},
        {"-n 2 -n 3 p", "two numbers of ranks, -n 2 and -n 3"},
        {"-n 2 p : -n 3 -np 4 q", "two numbers of ranks, -n 3 and -n 4"},
        {"-n 99999999999 p", "expected a number"},
        {"--frob p", "unknown option --frob"},
        {"--lable p", "did you mean --label?"},
        {"--n4 p", "did you mean -n 4?"},
        {"--timeot 3 p", "did you mean --timeout?"},
        {"--map= p", "a value is missing"},
        {"--label=1 p", "takes no value"},
        {"--nodes a:0 p", "number of ranks"},
        {"--nodes a:x,b p", "number of ranks"},
        {"-f /nonexistent p", "/nonexistent: No such file"},
        {"-f /dev/null p", "names no node"},
        {"--map zigzag p", "block, cyclic, load"},
        {"--bind thread p", "none, core, socket"},
        {"--stdin some p", "all, none or a rank"},
        {"--timeout -1 p", "positive number"},
        {"--timeout soon p", "positive number"},
        {"--timeout 0x10 p", "positive number"},
        {"--timeout 1e9 p", "positive number"},
        {"--nodes a,,b p", "no node name"},
        {"--nodes a,a p", "node a is named twice; a:2 is for two ranks there"},
        {"--output tag p", "--output: chempirun says it so: --label"},
        {"--output tag-detailed,timestamp p", "chempirun says it so: --label"},
        {"--output TAG:file=log p", "chempirun says it so: --label"},
        {"--output dir=logs p", "chempirun says it so: --output DIR/%r.out"},
        {"--output file=log p", "chempirun says it so: --output FILE.%r"},
        {"--prtemca a b p", "chempirun says it so: variables"},
        {"--nodes ../x p", "no node name"},
        {"--env =x p", "needs a name"},
        {"--virtual 2 --dir /x p", "neither --dir"},
        {"--virtual 2 --nodes c p", "leave out --nodes"},
        {"--stats=some p", "expected traffic, long, calls or all"},
        {"p :", "no program"},
        {"-initial-errhandler ignore p",
         "-initial-errhandler ignore: expected one of mpi_errors_are_fatal, "
         "mpi_errors_abort, mpi_errors_return"},
        {"--initial-errhandler= p", "a value is missing"},
        {"--memory-alloc-kinds system,,mpi p",
         "--memory-alloc-kinds system,,mpi: expected kinds of memory"},
        {"--memory-alloc-kinds mpi: p", "expected kinds of memory"},
        {"--memory-alloc-kinds ,mpi p", "expected kinds of memory"},
        {"--memory-alloc-kinds mpi, p", "expected kinds of memory"},
        {"-n 4 --soft 1:x p", "--soft 1:x: expected triplets"},
        {"-n 4 --soft 5:1 p", "--soft 5:1: the step of a triplet"},
        {"-n 4 --soft 5:8,0 p",
         "--soft 5:8,0: permits no number of ranks from 1 to 4"},
        {"--soft 2:8 p", "permits no number of ranks from 1 to 1"},
        {"--configfile /nonexistent", "/nonexistent: No such file"},
        {"--configfile", "a value is missing"},
        {"--virtual 99999 p", "expected a number"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert_eq(parse(bad[i].line), -EINVAL, "%s", bad[i].line);
        cr_assert(strstr(err.text, bad[i].words), "%s: %s", bad[i].line,
                  err.text);
    }
}

static int set_environment(const char *line, const char *limit)
{
    int rc;

    cr_assert_eq(setenv("MPIEXEC_TIMEOUT", limit, 1), 0);
    cr_assert_eq(parse(line), 0);
    rc = chempi_options_environment(&opt, &err);
    cr_assert_eq(unsetenv("MPIEXEC_TIMEOUT"), 0);
    return rc;
}

Test(options, the_environment_may_limit_the_time)
{
    cr_assert_eq(set_environment("p", "3.5"), 0);
    cr_assert_float_eq(opt.timeout_s, 3.5, 1e-9);
    chempi_options_fini(&opt);
    cr_assert_eq(set_environment("--timeout 2 p", "soon"), 0);
    cr_assert_float_eq(opt.timeout_s, 2, 1e-9);
    chempi_options_fini(&opt);
    cr_assert_eq(set_environment("p", "0"), 0);
    cr_assert_float_eq(opt.timeout_s, 0, 1e-9);
    chempi_options_fini(&opt);
    cr_assert_eq(set_environment("p", "soon"), -EINVAL);
    cr_assert(strstr(err.text, "MPIEXEC_TIMEOUT=soon"));
    chempi_options_fini(&opt);
}

static int set_where_limit(const char *limit)
{
    int rc;

    cr_assert_eq(setenv("CHEMPI_WHERE_LIMIT", limit, 1), 0);
    cr_assert_eq(parse("p"), 0);
    rc = chempi_options_environment(&opt, &err);
    cr_assert_eq(unsetenv("CHEMPI_WHERE_LIMIT"), 0);
    return rc;
}

Test(options, the_environment_may_say_how_long_ranks_are_asked)
{
    cr_assert_eq(set_where_limit(""), 0);
    cr_assert_float_eq(opt.where_s, 2, 1e-9);
    chempi_options_fini(&opt);
    cr_assert_eq(set_where_limit("0.5"), 0);
    cr_assert_float_eq(opt.where_s, 0.5, 1e-9);
    chempi_options_fini(&opt);
    cr_assert_eq(set_where_limit("0"), 0);
    cr_assert_float_eq(opt.where_s, 0, 1e-9);
    chempi_options_fini(&opt);
    cr_assert_eq(set_where_limit("3601"), -EINVAL);
    cr_assert(strstr(err.text, "CHEMPI_WHERE_LIMIT=3601"));
    chempi_options_fini(&opt);
}

Test(options, places_are_counted_on_request)
{
    cr_assert_eq(parse("--profile p"), 0);
    cr_assert(opt.has_profile && !opt.has_sites);
    cr_assert_eq(parse("--profile=sites p"), 0);
    cr_assert(opt.has_profile && opt.has_sites);
    cr_assert_eq(parse("--profile=lines p"), -EINVAL);
    cr_assert_str_eq(err.text, "--profile lines: expected sites, or nothing");
}
