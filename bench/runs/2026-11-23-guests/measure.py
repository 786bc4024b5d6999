#!/usr/bin/env python3
"""CPU time and resident memory of commands over a host's recording and its guest's, medians of nine runs (three of large files).

    measure.py TRAPLINE HOST GUEST     (HOST and GUEST unpacked; trace-cmd is measured beside, if they are trace.dat)
"""
import os
import statistics
import subprocess
import sys


def run(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


program, host, guest = sys.argv[1:]
cases = {"trace-cmd report -N -i HOST -i GUEST": ["trace-cmd", "report", "-N", "-i", host, "-i", guest]}
if not host.endswith(".dat"):
    cases.clear()
cases["events HOST GUEST"] = [program, "events", host, guest]
cases["info GUEST"] = [program, "info", guest]
for command in ["info", "vcpus", "exits"]:
    cases[f"{command} HOST"] = [program, command, host]
    cases[f"{command} HOST GUEST"] = [program, command, host, guest]
rounds = 3 if os.path.getsize(guest) > 100_000_000 else 9
found = {name: [] for name in cases}
for _ in range(rounds):
    for name, command in cases.items():
        found[name].append(run(command))
for name, runs in found.items():
    ms = statistics.median(one[0] for one in runs) * 1000
    mib = statistics.median(one[1] for one in runs)
    print(f"| `{name}` | {ms:.0f} | {mib:.1f} |")
