"""Makes a recording of many CPUs out of one of few: its beginning, many times at once.

Each copy happens a little later, on CPUs and by threads of its own, so that the records of all CPUs interleave finely; the
recording it comes from may have long stretches of one vCPU, which are the easiest to sort. perf.data as in
tools/perf/Documentation/perf.data-file-format.txt; little-endian 64-bit machines only.
"""

import struct
import sys

from multiply import (COMPRESSED, CPU, ID, IDENTIFIER, IP, SAMPLE, STREAM_ID, TID, TIME, USER_START,
                      finish)

FINISHED_ROUND = struct.pack("<IHH", 68, 0, 8)
ADDR = 8
# Threads of a copy have ids this much higher than those of the one before; times are this much later, in nanoseconds.
THREADS, LATER = 20_000, 1_237
# Records of each copy in a round.
ROUND = 2_000


def places(data, attrs):
    """Where process and thread, time and CPU stand in a sample, which must be the same for all events."""
    found = set()
    for attr in attrs:
        (kinds,) = struct.unpack_from("<Q", data, attr + 24)
        if not all(kinds & bit for bit in (TID, TIME, CPU)):
            sys.exit("a recording without threads, times or CPUs cannot be made wide")
        at, mine = 8, {}
        for bit in (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU):
            mine[bit] = at
            at += 8 if kinds & bit else 0
        found.add((mine[TID], mine[TIME], mine[CPU]))
    if len(found) != 1:
        sys.exit("a recording whose events differ in layout cannot be made wide")
    return found.pop()


def perf_data(source, copies, target):
    """Writes `copies` of the beginning of a perf.data side by side, about as long as it is. Returns the new file."""
    data = source.read_bytes()
    if data[:8] != b"PERFILE2" or struct.unpack_from("<Q", data, 8)[0] != 104:
        sys.exit(f"{source.name} is no perf.data of a little-endian machine in file mode")
    attr_size, attrs_at, attrs_size, start, size = struct.unpack_from("<5Q", data, 16)
    tid_at, time_at, cpu_at = places(data, range(attrs_at, attrs_at + attrs_size, attr_size))
    samples, others, at = [], [], start
    while at + 8 <= start + size:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        if length < 8 or kind in COMPRESSED:
            sys.exit(f"{source.name} is compressed or damaged: it cannot be made wide")
        if kind == SAMPLE:
            (when,) = struct.unpack_from("<Q", data, at + time_at)
            (cpu,) = struct.unpack_from("<I", data, at + cpu_at)
            samples.append((when, cpu, at, length))
        elif kind < USER_START:
            others.append(data[at:at + length])
        at += length
    samples.sort()
    samples = samples[:len(samples) // copies]
    cpus = max(cpu for _, cpu, _, _ in samples) + 1
    with open(target, "wb") as out:
        out.write(data[:start])
        out.write(b"".join(others))
        for first in range(0, len(samples), ROUND):
            part = samples[first:first + ROUND]
            by_cpu = [[one for one in part if one[1] == cpu] for cpu in range(cpus)]
            for number in range(copies):
                for when, cpu, place, length in (one for mine in by_cpu for one in mine):
                    record = bytearray(data[place:place + length])
                    pid, tid = struct.unpack_from("<ii", record, tid_at)
                    shift = THREADS * number
                    struct.pack_into("<ii", record, tid_at, pid + shift if pid > 0 else pid,
                                     tid + shift if tid > 0 else tid)
                    struct.pack_into("<Q", record, time_at, when + LATER * number)
                    struct.pack_into("<I", record, cpu_at, cpu + cpus * number)
                    out.write(record)
            out.write(FINISHED_ROUND)
        finish(out, data, start, size)
    return target
