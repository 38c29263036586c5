#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mdconfig calibrate finds what links really carry.

usage: calibrate_test.py BUILD

On links that are shaped, so that the answer is known whatever else this
machine does. Exit status 77 where namespaces cannot be had.
"""
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import netlab  # noqa: E402
from rig_test import check  # noqa: E402

SLACK = 0.35  # of a bandwidth
LIMIT_S = 500  # a busy machine makes it measure three times, for longer
RATES = {"left": "400mbit", "right": "80mbit"}
# MB/s of what a link carries, less what Ethernet, IP and TCP need of it.
WANTED = {"left": 50 * 0.94, "right": 10 * 0.94}
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}  # in us
DESCRIPTION = """\
# Three nodes in a row.
nodes: { a: , g: { gateway: true } , b: }   # g forwards

networks:
  left:      # the fast one
    type: ethernet
    protocols:
        # nobody knows
        eager: { latency: 1 s, bandwidth: 1 Gbit/s } # a guess
        rendezvous:
          max: none   # as large as you like
    attach: { a: 10.1.1.1, g: 10.1.1.11 }
  right: { type: ethernet, attach: { g: 10.1.2.11, b: 10.1.2.1 } }
"""


def figures(text, network):
    """[(protocol, MB/s, us)] that `mdconfig show` says of a network."""
    part = re.search(rf"^network {network}: .*\n((?:    .*\n)+)", text, re.M)
    check(part, text)
    return [(row[1], float(row[4]) * (1000 if row[5] == "GB" else 1),
             float(row[2]) * UNITS[row[3]])
            for row in re.finditer(r"^    (\S+) +([\d.]+) (\w+) +([\d.]+) "
                                   r"(..)/s", part[1], re.M)]


def shown(lab, path):
    done = lab.run(lab.tool("mdconfig"), "show", path)
    check(done.ok, done)
    return done.output


def refused(text):
    """{(network, protocol)} that calibrate found no steady figures of."""
    for line in text.splitlines():
        check("not measured" not in line or "machine is too busy" in line,
              line)
    return {tuple(name.split())
            for names in re.findall(r"^(.*): not measured: the machine is too "
                                    r"busy", text, re.M)
            for name in names.split(", ")}


def bandwidths_are_those_of_the_links(lab, path):
    """Whatever else runs here, a figure is right or is not written. True if
    none was."""
    done = lab.run(lab.tool("mdconfig"), "calibrate", "--seconds", "1", path,
                   limit_s=LIMIT_S)
    print(done.output, end="")
    check(re.search(r"^\d+ measurements .* of 1 s: \d+ s in all, and up to ",
                    done.output, re.M), done.output)
    left_out = refused(done.output)
    check(done.ok if not left_out else done.status == 1, done)
    text = shown(lab, path)
    check(left_out or "default" not in text, text)
    for network, wanted in WANTED.items():
        rows = figures(text, network)
        check([row[0] for row in rows] == ["eager", "rendezvous"], rows)
        for protocol, found, latency in rows:
            if (network, protocol) in left_out:
                continue
            check(abs(found - wanted) < SLACK * wanted, network, protocol,
                  found, "MB/s, not", wanted)
            check(0.1 < latency < 20000, network, protocol, latency, "us")
    return left_out >= {(network, protocol) for network in WANTED
                        for protocol in ("eager", "rendezvous")}


def what_a_person_wrote_stays(_lab, path):
    new = path.read_text(encoding="utf-8")
    found = re.sub(r" ± [\d.]+ %", "", new)
    for line in DESCRIPTION.splitlines():
        if "#" in line and "guess" not in line:
            check(line in found.splitlines(), line, "is lost in", found)
    check("} # a guess" in found, found)
    check(re.search(r"bandwidth: [\d.]+ Gbit/s, cost: ", found) or
          re.search(r"bandwidth: [\d.]+ Gbit/s", found), found)
    check(found.index("left:") < found.index("right:"), found)
    check("smp:" not in found or found.index("smp:") < found.index("left:"),
          found)
    check(sorted(entry.name for entry in path.parent.iterdir()) ==
          ["net.yaml"], list(path.parent.iterdir()))


def nodes_without_daemons_are_named(lab, path):
    before = path.read_text(encoding="utf-8")
    lab.stop("b")
    done = lab.run(lab.tool("mdconfig"), "calibrate", "--network", "right",
                   path)
    check(done.status == 1, done)
    check("right: not measured: fewer than two" in done.output, done)
    check(path.read_text(encoding="utf-8") == before)
    for node in ("a", "g"):
        lab.stop(node)
    done = lab.run(lab.tool("mdconfig"), "calibrate", path)
    check(done.status == 1 and "chempid(8)" in done.output, done)
    check(path.read_text(encoding="utf-8") == before)


def an_interrupted_calibration_changes_nothing(lab, path):
    path.write_text("nodes: [ a, b ]\nnetworks: { lan: { type: ethernet, "
                    "attach: all } }\n", encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    command = lab.at("a", lab.tool("mdconfig"), "calibrate", "--virtual",
                     "--network", "lan", "--seconds", "1000", path)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list(path.parent.glob("chempi-calibrate-*/b.chempi")):
        if process.poll() is not None:
            check(False, process.returncode, process.stderr.read())
        select.select([], [], [], 0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    check(process.returncode == 1 and "interrupted" in said,
          process.returncode, said)
    check(path.read_text(encoding="utf-8") == before)
    check(len(list(path.parent.iterdir())) == 1, list(path.parent.iterdir()))


def main():
    build = str(pathlib.Path(sys.argv[1]).resolve())

    def body():
        with netlab.Lab(build, "triple.yaml", RATES) as lab:
            folder = lab.dir / "calibrate"
            folder.mkdir()
            path = folder / "net.yaml"
            path.write_text(DESCRIPTION, encoding="utf-8")
            is_busy = False
            for case in (bandwidths_are_those_of_the_links,
                         what_a_person_wrote_stays,
                         nodes_without_daemons_are_named,
                         an_interrupted_calibration_changes_nothing):
                is_busy |= bool(case(lab, path))
                print("ok     ", case.__name__.replace("_", " "), flush=True)
            shutil.rmtree(folder)
            if is_busy:
                raise netlab.Skipped("the machine is too busy to measure "
                                     "anything; the other cases held")
    return netlab.inside(body)


if __name__ == "__main__":
    sys.exit(main())
