"""Makes a recording of samples with call chains, as 'perf record -a -g -e cpu-clock' does, and the kernel's symbols to it.

Programs are trees of calls, drawn at random from a fixed seed: each sample is a walk from a thread's first function inwards,
as far as the walk goes. Frequent ways are walked often, rare ones once, as in real profiles. perf.data as in
tools/perf/Documentation/perf.data-file-format.txt of the kernel, records as in include/uapi/linux/perf_event.h.
"""

import random
import struct

# Of perf_event_attr.sample_type.
IP, TID, TIME, CALLCHAIN, CPU, PERIOD = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 7, 1 << 8
# Types and misc of records.
MMAP, COMM, SAMPLE, FINISHED_ROUND = 1, 3, 9, 68
KERNEL, USER = 1, 2
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512

KERNEL_START, FUNCTION = 0xFFFFFFFF81000000, 0x100
USER_START = 0x400000
KERNEL_FUNCTIONS, USER_FUNCTIONS = 4_000, 4_000
PERIOD_NS = 1_010_101
CPUS, THREADS, ROUND = 8, 40, 20_000


def record(kind, misc, body):
    """A record with its header."""
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(name):
    """A name, padded to eight bytes."""
    data = name.encode() + b"\0"
    return data + b"\0" * (-len(data) % 8)


def attr():
    """The event: cpu-clock with call chains (PERF_ATTR_SIZE_VER5, 112 bytes)."""
    kinds = IP | TID | TIME | CALLCHAIN | CPU | PERIOD
    # sample_id_all stays off, so that other records end with their own fields. mmap and comm are on.
    flags = 1 << 8 | 1 << 9
    head = struct.pack("<IIQQQQQ", 1, 112, 0, PERIOD_NS, kinds, 0, flags)
    return head + b"\0" * (112 - len(head))


class Calls:
    """A tree of calls that grows where it is walked."""

    def __init__(self, draw, functions):
        self.draw, self.functions, self.children = draw, functions, {}

    def walk(self, begin, deepest):
        """Functions from the outermost on."""
        at, path = begin, [begin]
        while len(path) < deepest:
            callees = self.children.get(at)
            if callees is None:
                callees = [self.draw.randrange(self.functions) for _ in range(self.draw.randint(1, 6))]
                self.children[at] = callees
            # The first callee is called most.
            at = callees[min(int(self.draw.expovariate(1.2)), len(callees) - 1)]
            path.append(at)
            if self.draw.random() < 0.04:
                break
        return path


def chain(draw, user, kernel, thread):
    """One call chain, innermost frame first as the kernel writes it: its bytes, its address, and whether it is in the kernel."""
    outer = user.walk(thread % 64, draw.randint(4, 30))
    outer = [USER_START + FUNCTION * each + draw.randrange(4) * 0x10 for each in outer]
    frames = [CONTEXT_USER, *reversed(outer)]
    inside = draw.random() < 0.6
    if inside:
        inner = kernel.walk(draw.randrange(40), draw.randint(3, 40))
        inner = [KERNEL_START + FUNCTION * each + 0x20 for each in inner]
        frames = [CONTEXT_KERNEL, *reversed(inner), *frames]
    return struct.pack(f"<Q{len(frames)}Q", len(frames), *frames), frames[1], inside


def recording(samples, target, symbols):
    """Writes a recording of so many samples, and a copy of /proc/kallsyms for it. Returns how many different chains it has."""
    draw = random.Random(20)
    user, kernel = Calls(draw, USER_FUNCTIONS), Calls(draw, KERNEL_FUNCTIONS)
    with open(symbols, "w", encoding="ascii") as out:
        for number in range(KERNEL_FUNCTIONS):
            name = "_stext" if number == 0 else f"kernel_function_{number}"
            out.write(f"{KERNEL_START + FUNCTION * number:016x} T {name}\n")
        out.write(f"{KERNEL_START + FUNCTION * KERNEL_FUNCTIONS:016x} T _etext\n")
    begin = [record(MMAP, KERNEL, struct.pack("<iiQQQ", -1, 0, KERNEL_START, FUNCTION * KERNEL_FUNCTIONS, KERNEL_START)
                    + text("[kernel.kallsyms]_stext"))]
    for thread in range(THREADS):
        pid = 1000 + thread
        begin.append(record(COMM, 0, struct.pack("<ii", pid, pid) + text(f"worker/{thread}")))
        begin.append(record(MMAP, USER, struct.pack("<iiQQQ", pid, pid, USER_START, FUNCTION * USER_FUNCTIONS + 0x1000, 0)
                            + text(f"/opt/bench/program-{thread % 5}")))
    # Chains are drawn once and used again, the first ones most.
    pool = max(1, min(samples, 200_000))
    chains = [(thread, *chain(draw, user, kernel, thread)) for thread in (draw.randrange(THREADS) for _ in range(pool))]
    used = set()
    with open(target, "wb") as out:
        header = 104 + 128
        out.write(b"\0" * header)
        out.writelines(begin)
        done = out.tell() - header
        for first in range(0, samples, ROUND):
            part = []
            for number in range(first, min(first + ROUND, samples)):
                at = min(int(draw.paretovariate(0.2)), 4 * pool) % pool
                used.add(at)
                thread, frames, address, inside = chains[at]
                pid = 1000 + thread
                when = 10**12 + number // CPUS * PERIOD_NS + number % CPUS * 1000
                body = struct.pack("<QiiQIIQ", address, pid, pid, when, number % CPUS, 0, PERIOD_NS) + frames
                part.append((number % CPUS, record(SAMPLE, KERNEL if inside else USER, body)))
            # perf writes what each CPU has, one CPU after the other.
            part.sort(key=lambda each: each[0])
            out.writelines(each for _, each in part)
            out.write(record(FINISHED_ROUND, 0, b""))
        done = out.tell() - header
        out.seek(0)
        # Magic, sizes of header and attribute; then where attributes, data and event types are; no features.
        out.write(b"PERFILE2" + struct.pack("<QQ", 104, 128))
        out.write(struct.pack("<6Q", 104, 128, header, done, 0, 0) + b"\0" * 32)
        out.write(attr() + struct.pack("<QQ", 0, 0))
    return len({chains[at][0:2] for at in used})
