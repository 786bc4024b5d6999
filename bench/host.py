"""What the machine is, without its name."""

import os
import platform
import re
import subprocess


def cpu():
    """Model of the CPU, as the kernel tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in ("model name", "Model", "Hardware"):
                    return " ".join(value.split())
    except OSError:
        pass
    return platform.machine()


def memory():
    """Memory in GiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def first_line(*command):
    """First line a command prints, or that it is not there."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, text=True)
    except OSError:
        return "not installed"
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[0] if lines else "unknown"


def slug():
    """A short name of the kind of machine, for a folder."""
    words = re.sub(r"\((r|tm)\)|@.*|\bcpu\b|\bprocessor\b", " ", cpu().lower())
    words = "-".join(re.findall(r"[a-z0-9]+", words)[:4])
    return f"{words}-{os.cpu_count()}cpu"


def facts(root, program):
    """Name and value of what the figures depend on."""
    commit = first_line("git", "-C", str(root), "rev-parse", "--short=12", "HEAD")
    with open("/proc/loadavg", encoding="utf-8") as file:
        load = file.read().split()[1]
    virtual = first_line("systemd-detect-virt")
    return [
        ("CPU", f"{cpu()}, {os.cpu_count()} of them"
         + ("" if virtual in ("none", "not installed") else f", virtual ({virtual})")),
        ("memory", f"{memory():.0f} GiB"),
        ("kernel", platform.release()),
        ("load over the last five minutes", load),
        ("perf", first_line("perf", "--version")),
        ("trace-cmd", first_line("trace-cmd", "--version")),
        ("zstd", first_line("zstd", "--version")),
        ("rustc", first_line("rustc", "--version")),
        ("trapline", f"{first_line(str(program), '--version')}, commit {commit}"),
    ]
