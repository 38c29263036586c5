#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names of hosts that take long to be found.

    names.py CHEMPIRUN STUCK-CHEMPID CHEMPICTL RANK [CASE]...

Of the daemon under test, look-ups of stuck.test never end (stuck.c).
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fault"))
from jobs import (  # noqa: E402
    LIMIT_S, Cluster, Programs, await_that, check, children, comm, expect,
    main)

CASES = []


def case(fn):
    CASES.append(fn)
    return fn


def resolvers(pid):
    return [child for child in children(pid)
            if comm(child).startswith("chempi-resolve")]


@case
def a_name_that_is_not_found_stops_nothing():
    with Cluster([]) as cluster:
        with open(f"{cluster.dir}/log.nodes", "w", encoding="ascii") as file:
            file.write("a1 127.0.0.1\nb1 stuck.test:4000\nc1 localhost:1\n")
        cluster.start("a1", "--cluster", f"{cluster.dir}/log.nodes")
        os.unlink(f"{cluster.dir}/log.nodes")
        pid = cluster.pid("a1")
        asker = subprocess.Popen([Programs.chempictl, "nodes"],
                                 env=cluster.env, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        await_that(lambda: resolvers(pid), "a look-up")
        check("a1" in cluster.ctl("--via", "a1", "status"))
        expect(cluster.run("--host", "a1", "-n", "2", Programs.rank, "init",
                           "everyone", "final"), 0)
        out = asker.communicate(timeout=LIMIT_S)[0]
        check(b"the look-up of its name takes too long" in out, out)
        check(b"c1" in out and b"Connection refused" in out, out)
        await_that(lambda: not resolvers(pid), "the end of the look-up")


if __name__ == "__main__":
    sys.exit(main(CASES))
