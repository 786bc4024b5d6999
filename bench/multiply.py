"""Makes large recordings out of small ones: the data again and again, each time later.

perf.data as in tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h, trace.dat
as in Documentation/trace-cmd/trace-cmd.dat.v6.5.txt of trace-cmd. Little-endian 64-bit machines only.
"""

import struct
import sys

IDENTIFIER, IP, TID, TIME, ID, CPU, STREAM_ID = 1 << 16, 1, 2, 4, 64, 128, 512
SAMPLE, USER_START = 9, 64
COMPRESSED = (81, 83)
# Between two copies, in nanoseconds.
GAP = 1_000_000


def perf_data(source, count, target):
    """Repeats the records of a perf.data. Returns the new file."""
    data = source.read_bytes()
    if data[:8] != b"PERFILE2" or struct.unpack_from("<Q", data, 8)[0] != 104:
        sys.exit(f"{source.name} is no perf.data of a little-endian machine in file mode")
    attr_size, attrs_at, attrs_size, start, size = struct.unpack_from("<5Q", data, 16)
    sample_at, trailer_back = time_places(data, range(attrs_at, attrs_at + attrs_size, attr_size))
    block = data[start:start + size]
    # Of what the recorder found at its start, and what carries no time, one copy is enough.
    first, again, places = [], bytearray(), []
    at = 0
    while at + 8 <= len(block):
        kind, _, length = struct.unpack_from("<IHH", block, at)
        if length < 8 or kind in COMPRESSED:
            sys.exit(f"{source.name} is compressed or damaged: it cannot be multiplied")
        if kind < USER_START:
            place = at + 8 + sample_at if kind == SAMPLE else at + length - trailer_back
            (when,) = struct.unpack_from("<Q", block, place)
            if when:
                places.append((len(again) + place - at, when))
                again += block[at:at + length]
            else:
                first.append(block[at:at + length])
        else:
            again += block[at:at + length]
        at += length
    span = max(when for _, when in places) - min(when for _, when in places) + GAP
    with open(target, "wb") as out:
        out.write(data[:start])
        out.write(b"".join(first))
        for copy in range(count):
            for place, when in places:
                struct.pack_into("<Q", again, place, when + copy * span)
            out.write(again)
        finish(out, data, start, size)
    return target


def finish(out, data, start, size):
    """Ends a perf.data with the feature sections of the one it is made of, and says in its header how long its data are."""
    features = sum(bin(byte).count("1") for byte in data[72:104])
    table = [struct.unpack_from("<QQ", data, start + size + 16 * n) for n in range(features)]
    end = out.tell()
    at = end + 16 * features
    for _, length in table:
        out.write(struct.pack("<QQ", at, length))
        at += length
    for place, length in table:
        out.write(data[place:place + length])
    out.seek(48)
    out.write(struct.pack("<Q", end - start))


def time_places(data, attrs):
    """Where the time stands in samples, from the front, and in other records, from the end."""
    places = set()
    for attr in attrs:
        (kinds,) = struct.unpack_from("<Q", data, attr + 24)
        before = sum(8 for bit in (IDENTIFIER, IP, TID) if kinds & bit)
        behind = sum(8 for bit in (TIME, ID, STREAM_ID, CPU, IDENTIFIER) if kinds & bit)
        if not kinds & TIME:
            sys.exit("a recording without times cannot be multiplied")
        places.add((before, behind))
    if len(places) != 1:
        sys.exit("a recording whose events differ in layout cannot be multiplied")
    return places.pop()


def trace_dat(source, count, target):
    """Repeats the pages of a trace.dat of version 6. Returns the new file."""
    data = bytearray(source.read_bytes())
    if not data.startswith(b"\x17\x08\x44tracing6\0\0\x08"):
        sys.exit(f"{source.name} is no trace.dat of version 6 of a little-endian 64-bit machine")
    (page_size,) = struct.unpack_from("<I", data, 14)
    table, cpus = tables_v6(data)
    pages, low, high = [], None, None
    for cpu in range(cpus):
        place, size = struct.unpack_from("<QQ", data, table + 16 * cpu)
        mine = bytearray(data[place:place + size])
        stamps = [stamp for page in range(0, len(mine), page_size) for stamp in stamps_of(mine, page)]
        for at, when in stamps:
            if at % page_size == 0:
                low = when if low is None else min(low, when)
                high = when if high is None else max(high, when)
        pages.append((mine, stamps))
    # The last page's own records reach beyond its time stamp; a second is more than a page lasts.
    span = high - low + 1_000_000_000
    with open(target, "wb") as out:
        out.write(data)
        for cpu, (mine, stamps) in enumerate(pages):
            out.write(bytes(-out.tell() % page_size))
            struct.pack_into("<QQ", data, table + 16 * cpu, out.tell(), len(mine) * count)
            for copy in range(count):
                shift = copy * span
                for at, when in stamps:
                    if at % page_size == 0:
                        struct.pack_into("<Q", mine, at, when + shift)
                    else:
                        when += shift
                        low = (when & ((1 << 27) - 1)) << 5 | 31
                        struct.pack_into("<II", mine, at, low, when >> 27 & 0xFFFFFFFF)
                out.write(mine)
        out.seek(0)
        out.write(data[:table + 16 * cpus])
    return target


def tables_v6(data):
    """Where the table of the top buffer's data is, and for how many CPUs."""
    at = 3 + 7 + 2 + 2 + 4
    for _ in ("header_page", "header_event"):
        at = data.index(b"\0", at) + 1
        at += 8 + struct.unpack_from("<Q", data, at)[0]
    at = skip_formats(data, at)
    (systems,) = struct.unpack_from("<I", data, at)
    at += 4
    for _ in range(systems):
        at = skip_formats(data, data.index(b"\0", at) + 1)
    for _ in ("kallsyms", "printk"):
        at += 4 + struct.unpack_from("<I", data, at)[0]
    at += 8 + struct.unpack_from("<Q", data, at)[0]
    (cpus,) = struct.unpack_from("<I", data, at)
    at += 4
    if data[at:at + 10] == b"options  \0":
        at += 10
        while True:
            (option,) = struct.unpack_from("<H", data, at)
            at += 2
            if option == 0:
                break
            if option == 3:
                sys.exit("a trace.dat with several buffers cannot be multiplied")
            at += 4 + struct.unpack_from("<I", data, at)[0]
    if data[at:at + 10] != b"flyrecord\0":
        sys.exit("a trace.dat without records cannot be multiplied")
    return at + 10, cpus


def skip_formats(data, at):
    """Behind a list of formats."""
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    for _ in range(count):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
    return at


def stamps_of(data, page):
    """Places and values of the absolute times in a ring buffer page: its own first."""
    when, commit = struct.unpack_from("<QQ", data, page)
    stamps = [(page, when)]
    at, end = page + 16, page + 16 + (commit & 0xFFFFF)
    while at + 4 <= min(end, len(data)):
        (word,) = struct.unpack_from("<I", data, at)
        kind, delta = word & 31, word >> 5
        if kind == 31:
            (more,) = struct.unpack_from("<I", data, at + 4)
            stamps.append((at, more << 27 | delta))
        if kind in (30, 31):
            at += 8
        elif kind == 0:
            at += 4 + struct.unpack_from("<I", data, at + 4)[0]
        elif kind == 29:
            if delta == 0:
                break
            at += 4 + struct.unpack_from("<I", data, at + 4)[0]
        else:
            at += 4 + 4 * kind
    return stamps
