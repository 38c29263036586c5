# SPDX-License-Identifier: BSD-3-Clause
"""Options of hydra's mpiexec and Open MPI's mpirun, and what chempirun makes
of them; doc/launchers.md has the table."""

# Options of others that chempirun has in another form: how its answer begins.
ANSWERED = {
    "-output-filename": "--output DIR/%r.out",
    "-gdb": "--wrap '0:gdb --args'",
    "-debug": "--wrap '0:gdb --args'",
    "-tv": "totalview --args",
    "-valgrind": "--wrap 'valgrind -q'",
    "-usize": "--nodes A:4,B:4",
    "-iface": "a network description",
    "-bootstrap": "--launcher",
    "-mca": "variables",
    "-map-by ppr:2:node": "--ppn N",
    "-map-by socket": "--bind socket",
    "-map-by numa": "--bind socket",
    "-bind-to numa": "--bind socket",
    "-bind-to l3cache": "--bind socket",
    "-bind-to hwthread": "--bind core",
    "-bind-to core:overload-allowed": "the word without what stands",
    "-bind-to user:0,1": "--rankfile FILE",
    "-bind-to board": "--bind socket",
    "-map-by slot:oversubscribe": "the word without what stands",
    "-map-by node:PE=2": "the word without what stands",
    "-map-by seq": "--rankfile FILE",
    "-launcher fork": "--private",
    "-bynode": "--map cyclic",
    "-byslot": "--map block",
    "-gmca": "variables",
    "-prtemca": "variables",
    "-pmixmca": "variables",
    "-display": "--verbose, which says where ranks go",
    "-output tag": "--label",
    "-output tag-detailed": "--label",
    "-output timestamp": "--timestamp",
    "-output merge-stderr-to-stdout": "--output FILE, which takes both",
    "-output dir=logs": "--output DIR/%r.out",
    "-output file=log": "--output FILE.%r",
    "-prepend-pattern": "--label",
    "-use-hwthread-cpus": "--bind none",
    "-am": "variables",
    "-app": "--configfile",
    "-bind-to-core": "--bind core",
    "-bind-to-socket": "--bind socket",
    "-bycore": "--map block",
    "-cpus-per-proc": "--bind auto",
    "-cpus-per-rank": "--bind auto",
    "-default-hostfile": "--hostfile",
    "-display-allocation": "--verbose, which says where ranks go",
    "-display-devel-map": "--verbose, which says where ranks go",
    "-display-map": "--verbose, which says where ranks go",
    "-get-stack-traces": "--timeout, which says where ranks wait",
    "-info": "--version, or chempi-info",
    "-membind": "--bind core",
    "-merge-stderr-to-stdout": "--output FILE, which takes both",
    "-nolocal": "--nodes A,B, without this host",
    "-npersocket": "--bind socket",
    "-path": "-x PATH=...",
    "-pernode": "--ppn 1",
    "-prefix": "chempirun by its whole path, which is used on all hosts",
    "-preload-binary": "a path that all hosts see",
    "-preload-files": "a path that all hosts see",
    "-rank-by": "--map block, or --map cyclic",
    "-report-state-on-timeout": "--timeout, which says where ranks wait",
    "-rmk": "nothing",
    "-skip-launch-node": "--nodes A,B, without this host",
    "-tune": "variables",
    "-v": "--verbose",
    "-xterm": "--wrap 'RANKS:xterm -e'",
}
# What means something else here.
OTHERWISE = {"-profile": "counts MPI calls",
             "-s": "says who gets standard input"}
# What their --help has and we do not know, as it is of their own parts.
UNKNOWN = """
-demux -disable-hostname-propagation -disable-x -enable-x
-gpus-per-proc -localhost -nameserver -order-nodes -pmi-port
-print-all-exitcodes -topolib
-cartofile -cf -continuous -d -debug-daemons -debug-daemons-file -debug-devel
-debugger -disable-recovery -display-devel-allocation -display-diffable-map
-display-topo -do-not-launch -do-not-resolve -dvm -enable-instant-on-support
-enable-recovery -fwd-mpirun-port -hnp -index-argv-by-rank -launch-agent
-leave-session-attached -max-restarts -max-vm-size -noprefix -novm
-ompi-server -output-proctable -personality -ppr -q -quiet
-report-child-jobs-separately -report-events -report-pid -report-uri
-set-cwd-to-session-dir -show-progress -use-regexp -xml -xml-file
""".split()


def table(works):
    """For doc/launchers.md."""
    lines = ["| option | |", "|---|---|"]
    lines += [f"| `{name}` | works |" for name in sorted(works)]
    lines += [f"| `{name}` | answered with \"chempirun says it so: "
              f"{answer} ...\" |" for name, answer in sorted(ANSWERED.items())]
    lines += [f"| `{name}` | is something else: it {what} |"
              for name, what in sorted(OTHERWISE.items())]
    lines += [f"| `{name}` | not known |" for name in sorted(UNKNOWN)]
    return "\n".join(lines) + "\n"
