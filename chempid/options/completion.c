/* SPDX-License-Identifier: BSD-3-Clause */
/* Shells complete chempirun's options from its table; see option_table.h. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "chempid/options/option_table.h"
#include "common/base/compiler.h"

/* ---- what may follow an option ------------------------------------------- */

static bool is_path(const struct chempi_option *o)
{
    return o->value &&
           (strcmp(o->value, "FILE") == 0 || strcmp(o->value, "DIR") == 0);
}

static bool is_dir(const struct chempi_option *o)
{
    return is_path(o) && o->value[0] == 'D';
}

/* The words to choose from, with blanks between them: those in small letters.
 * False: there are none. */
static bool put_choices(FILE *file, const struct chempi_option *o)
{
    bool has_any = false;
    size_t len;

    if (!o->value || !strchr(o->value, '|'))
        return false;
    for (const char *at = o->value; *at; at += len + (at[len] == '|')) {
        len = strcspn(at, "|");
        if (!islower((unsigned char)*at))
            continue;
        if (file)
            (void)fprintf(file, "%s%.*s", has_any ? " " : "", (int)len, at);
        has_any = true;
    }
    return has_any;
}

static bool has_choices(const struct chempi_option *o)
{
    return put_choices(NULL, o);
}

/* Text in single quotes, with a backslash before what the shell would obey; a
 * new line is a blank. */
static void put_escaped(FILE *file, const char *text, const char *what)
{
    for (; *text; text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", file);
            continue;
        }
        if (strchr(what, *text))
            (void)fputc('\\', file);
        (void)fputc(*text == '\n' ? ' ' : *text, file);
    }
}

/* ---- bash ---------------------------------------------------------------- */

/* bash takes words apart at '=' and ':', which stand in many values here: what
 * no blank divides is put together again. */
static const char bash_head[] =
    "# bash completion for chempirun, made by: chempirun --completion bash\n"
    "_chempirun()\n"
    "{\n"
    "    local line=$COMP_LINE word option= program= cur i\n"
    "    local -a words=()\n"
    "    local -i values=0\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((i > 0)) && [[ -n $word && $line != [[:space:]]* ]]; then\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        line=${line#\"${line%%[![:space:]]*}\"}\n"
    "        line=${line#\"$word\"}\n"
    "    done\n"
    "    cur=${words[${#words[@]}-1]}\n"
    "    for ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
    "        word=${words[i]}\n"
    "        if [[ $word == : ]]; then\n"
    "            program= values=0\n"
    "        elif [[ -n $program ]]; then\n"
    "            continue\n"
    "        elif ((values > 0)); then\n"
    "            values=values-1\n"
    "        elif [[ $word == -* ]]; then\n"
    "            option=${word#-} option=${option#-}\n"
    "            values=0\n"
    "            case $option in\n";

static const char bash_middle[] =
    "            esac\n"
    "        else\n"
    "            program=$word\n"
    "        fi\n"
    "    done\n"
    "    COMPREPLY=()\n"
    "    if [[ -n $program ]]; then\n"
    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    if ((values == 0)) && [[ $cur == -*=* ]]; then\n"
    "        option=${cur%%=*} option=${option#-} option=${option#-}\n"
    "        cur=${cur#*=} values=1\n"
    "    fi\n"
    "    if ((values > 0)); then\n"
    "        case $option in\n";

static const char bash_tail[] =
    "        esac\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$_chempirun_options\" -- \"$cur\"))\n"
    "    else\n"
    "        COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
    "    fi\n"
    "}\n"
    "complete -o filenames -F _chempirun chempirun mpiexec mpirun\n";

static void put_bash_values(FILE *file, const struct chempi_option *o)
{
    if (is_path(o)) {
        (void)fprintf(file,
                      "        %s) COMPREPLY=($(compgen %s -- \"$cur\"));;\n",
                      o->name, is_dir(o) ? "-d" : "-f");
    } else if (has_choices(o)) {
        (void)fprintf(file, "        %s) COMPREPLY=($(compgen -W \"", o->name);
        (void)put_choices(file, o);
        (void)fprintf(file, "\" -- \"$cur\"));;\n");
    }
}

static void put_bash(FILE *file)
{
    (void)fputs(bash_head, file);
    for (size_t i = 0; i < chempi_option_count; i++)
        if (chempi_option_table[i].words)
            (void)fprintf(file, "            %s) values=%d;;\n",
                          chempi_option_table[i].name,
                          chempi_option_table[i].words);
    (void)fputs(bash_middle, file);
    for (size_t i = 0; i < chempi_option_count; i++)
        put_bash_values(file, &chempi_option_table[i]);
    (void)fputs(bash_tail, file);
    (void)fputs("_chempirun_options='", file);
    for (size_t i = 0; i < chempi_option_count; i++)
        if (chempi_option_table[i].help)
            (void)fprintf(file, "%s%s%s", i ? " " : "",
                          chempi_option_table[i].name[1] ? "--" : "-",
                          chempi_option_table[i].name);
    (void)fputs("'\n", file);
}

/* ---- zsh ----------------------------------------------------------------- */

/* As _arguments wants it: '--map=[what it does]:what follows:(a b)'. */
static void put_zsh_option(FILE *file, const struct chempi_option *o)
{
    const bool is_long = o->name[1] != '\0';

    (void)fprintf(file, "    '%s%s%s[", is_long ? "--" : "-", o->name,
                  is_long && o->words == 1 ? "=" : "");
    put_escaped(file, o->help, "[]:\\");
    (void)fputc(']', file);
    for (int i = 0; i < o->words; i++) {
        (void)fputc(':', file);
        put_escaped(file, o->value, "[]:\\");
        (void)fputc(':', file);
        if (is_path(o))
            (void)fputs(is_dir(o) ? "_files -/" : "_files", file);
        else if (has_choices(o)) {
            (void)fputc('(', file);
            (void)put_choices(file, o);
            (void)fputc(')', file);
        }
    }
    (void)fputs("' \\\n", file);
}

static void put_zsh(FILE *file)
{
    (void)fputs("#compdef chempirun mpiexec mpirun\n"
                "# made by: chempirun --completion zsh\n"
                "_arguments \\\n",
                file);
    for (size_t i = 0; i < chempi_option_count; i++)
        if (chempi_option_table[i].help)
            put_zsh_option(file, &chempi_option_table[i]);
    (void)fputs("    '(-):program:_command_names -e' \\\n"
                "    '*::arguments:_normal'\n",
                file);
}

/* ---- fish ---------------------------------------------------------------- */

static void put_fish_option(FILE *file, const struct chempi_option *o)
{
    (void)fprintf(file, "complete -c chempirun -%s %s", o->name[1] ? "l" : "s",
                  o->name);
    if (is_dir(o))
        (void)fputs(" -x -a '(__fish_complete_directories)'", file);
    else if (is_path(o))
        (void)fputs(" -r -F", file);
    else if (o->words)
        (void)fputs(" -x", file);
    if (has_choices(o)) {
        (void)fputs(" -a '", file);
        (void)put_choices(file, o);
        (void)fputc('\'', file);
    }
    (void)fputs(" -d '", file);
    put_escaped(file, o->help, "\\");
    (void)fputs("'\n", file);
}

static void put_fish(FILE *file)
{
    (void)fputs("# made by: chempirun --completion fish\n"
                "complete -c chempirun -a '(__fish_complete_command)'\n"
                "complete -c mpiexec -w chempirun\n"
                "complete -c mpirun -w chempirun\n",
                file);
    for (size_t i = 0; i < chempi_option_count; i++)
        if (chempi_option_table[i].help)
            put_fish_option(file, &chempi_option_table[i]);
}

int chempi_option_completion(FILE *file, const char *shell)
{
    static const struct {
        const char *name;
        void (*put)(FILE *file);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(shells); i++)
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].put(file);
            return 0;
        }
    return -EINVAL;
}
