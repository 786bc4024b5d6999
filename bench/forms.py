"""Makes the same recording in the other forms that perf writes: events of several layouts, other field offsets, a pipe, -z.

perf.data as in tools/perf/Documentation/perf.data-file-format.txt, tracing data as in tools/perf/util/trace-event-info.c, both
of Linux 6.1; little-endian 64-bit machines only. Each function writes the whole recording, with the events it was made from.
"""

import ctypes
import ctypes.util
import re
import struct
import sys

from multiply import COMPRESSED, SAMPLE, TID, TIME, USER_START, finish

IDENTIFIER, IP, ADDR, ID, STREAM_ID, CPU, PERIOD, RAW = 1 << 16, 1, 8, 64, 512, 128, 256, 1 << 10
# What stands before the tracepoint's record and has eight bytes each, in their order.
EIGHTS = (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD)
# Number of header bits, and of feature sections, that forms look at (tools/perf/util/header.h).
TRACING_DATA, BUILD_ID, COMPRESSION, LAST_FEATURE = 1, 2, 27, 32
# PERF_RECORD_HEADER_ATTR, _TRACING_DATA, _FEATURE and _COMPRESSED (tools/lib/perf/include/perf/event.h).
HEADER_ATTR, HEADER_TRACING_DATA, HEADER_FEATURE, COMPRESSED_RECORD = 64, 66, 80, 81


class Recording:
    """A perf.data in file mode, and where things stand in it."""

    def __init__(self, source):
        self.data = data = source.read_bytes()
        if data[:8] != b"PERFILE2" or struct.unpack_from("<Q", data, 8)[0] != 104:
            sys.exit(f"{source.name} is no perf.data of a little-endian machine in file mode")
        self.attr_size, attrs_at, attrs_size, self.start, self.size = struct.unpack_from("<5Q", data, 16)
        self.attrs = range(attrs_at, attrs_at + attrs_size, self.attr_size)
        # Of tracepoints alone (PERF_TYPE_TRACEPOINT): perf's event that carries its side band has no samples.
        self.kinds = {struct.unpack_from("<Q", data, at + 24)[0] for at in self.attrs
                      if struct.unpack_from("<I", data, at)[0] == 2}
        if any(not kinds & IDENTIFIER or not kinds & RAW or kinds & ADDR for kinds in self.kinds):
            sys.exit(f"{source.name} has samples without identifier or record, or with addresses")
        self.features = {}
        bits = int.from_bytes(data[72:104], "little")
        at = self.start + self.size
        for bit in range(256):
            if bits >> bit & 1:
                self.features[bit] = struct.unpack_from("<QQ", data, at)
                at += 16

    def feature(self, bit):
        """The bytes of a feature section."""
        at, length = self.features[bit]
        return self.data[at:at + length]

    def ids(self, attr):
        """The identifiers of an event's counters."""
        at, length = struct.unpack_from("<QQ", self.data, attr + self.attr_size - 16)
        return self.data[at:at + length]

    def records(self):
        """Type, place and length of each record."""
        at, end = self.start, self.start + self.size
        while at + 8 <= end:
            kind, _, length = struct.unpack_from("<IHH", self.data, at)
            if length < 8 or kind in COMPRESSED:
                sys.exit("a recording that is compressed or damaged has no other form here")
            yield kind, at, length
            at += length

    def before(self, kinds, bits):
        """Bytes between a sample's beginning and what `bits` stand for."""
        return 8 + 8 * sum(1 for bit in EIGHTS[:EIGHTS.index(bits)] if kinds & bit)


def several_layouts(source, target):
    """Writes a perf.data in which the samples of every second event have an address (`perf record -d` for them alone)."""
    recording = Recording(source)
    data = recording.data
    # With the identifier first, every layout has it in one place, and so do records that are no samples.
    head, longer = bytearray(data[:recording.start]), {}
    for number, attr in enumerate(recording.attrs):
        (kinds,) = struct.unpack_from("<Q", data, attr + 24)
        if number % 2:
            struct.pack_into("<Q", head, attr + 24, kinds | ADDR)
        place = recording.before(kinds, ADDR) if number % 2 else 0
        longer.update({one[0]: place for one in struct.iter_unpack("<Q", recording.ids(attr))})
    with open(target, "wb") as out:
        out.write(head)
        for kind, at, length in recording.records():
            place = longer[struct.unpack_from("<Q", data, at + 8)[0]] if kind == SAMPLE else 0
            if place:
                out.write(struct.pack("<I", kind) + data[at + 4:at + 6] + struct.pack("<H", length + 8))
                out.write(data[at + 8:at + place] + bytes(8) + data[at + place:at + length])
            else:
                out.write(data[at:at + length])
        finish(out, data, recording.start, recording.size)
    return target


def widen_formats(tracing):
    """Puts a field of eight bytes behind the common fields of every format. Returns the tracing data, and for each
    event's number the places of its __data_loc fields, which count from the record's beginning."""
    out, moved, at = bytearray(), {}, 0

    def take(length):
        nonlocal at
        out.extend(tracing[at:at + length])
        at += length
        return tracing[at - length:at]

    def name():
        return take(tracing.index(b"\0", at) + 1 - at)

    def format_text():
        nonlocal at
        (length,) = struct.unpack_from("<Q", tracing, at)
        text = tracing[at + 8:at + 8 + length]
        at += 8 + length
        common, blank, own = text.partition(b"\n\n")
        own = re.sub(rb"offset:(\d+);", lambda m: b"offset:%d;" % (int(m[1]) + 8), own)
        (number,) = re.search(rb"\nID: (\d+)\n", text).groups()
        moved[int(number)] = [int(place) for place in re.findall(rb"field:__data_loc [^;]*;\toffset:(\d+);", own)]
        text = common + blank + b"\tfield:u64 of_another_kernel;\toffset:8;\tsize:8;\tsigned:0;\n" + own
        out.extend(struct.pack("<Q", len(text)) + text)

    def number():
        return struct.unpack("<I", take(4))[0]

    take(10)
    name()
    take(6)
    for _ in ("header_page", "header_event"):
        name()
        take(struct.unpack("<Q", take(8))[0])
    for _ in range(number()):
        format_text()
    for _ in range(number()):
        name()
        for _ in range(number()):
            format_text()
    take(len(tracing) - at)
    return bytes(out), moved


def other_offsets(source, target):
    """Writes a perf.data whose events have their fields eight bytes later, as another kernel might."""
    recording = Recording(source)
    data = recording.data
    tracing, moved = widen_formats(recording.feature(TRACING_DATA))
    (kinds,) = recording.kinds
    raw_at = 8 + 8 * sum(1 for bit in EIGHTS if kinds & bit)
    with open(target, "wb") as out:
        out.write(data[:recording.start])
        for kind, at, length in recording.records():
            if kind != SAMPLE:
                out.write(data[at:at + length])
                continue
            body = bytearray(data[at:at + length])
            struct.pack_into("<H", body, 6, length + 8)
            struct.pack_into("<I", body, raw_at, struct.unpack_from("<I", body, raw_at)[0] + 8)
            body[raw_at + 12:raw_at + 12] = bytes(8)
            for place in moved[struct.unpack_from("<H", body, raw_at + 4)[0]]:
                place += raw_at + 4
                struct.pack_into("<I", body, place, struct.unpack_from("<I", body, place)[0] + 8)
            out.write(body)
        ends(out, recording, {TRACING_DATA: tracing})
    return target


def ends(out, recording, changed):
    """Ends a perf.data with its feature sections, of which some have changed or are new."""
    sections = {bit: recording.feature(bit) for bit in recording.features} | changed
    end = out.tell()
    at = end + 16 * len(sections)
    for bit in sorted(sections):
        out.write(struct.pack("<QQ", at, len(sections[bit])))
        at += len(sections[bit])
    for bit in sorted(sections):
        out.write(sections[bit])
    out.seek(48)
    out.write(struct.pack("<Q", end - recording.start))
    out.seek(72)
    out.write(sum(1 << bit for bit in sections).to_bytes(32, "little"))


def pipe(source, target):
    """Writes what `perf record -o -` would have."""
    recording = Recording(source)
    data = recording.data
    with open(target, "wb") as out:
        out.write(b"PERFILE2" + struct.pack("<Q", 16))
        for attr in recording.attrs:
            body = data[attr:attr + recording.attr_size - 16] + recording.ids(attr)
            out.write(struct.pack("<IHH", HEADER_ATTR, 0, 8 + len(body)) + body)
        for bit in sorted(recording.features):
            body = recording.feature(bit)
            # A section that is longer than a record can be is one that perf leaves out too.
            if bit not in (TRACING_DATA, BUILD_ID) and len(body) < 65_000:
                body += bytes(-len(body) % 8)
                out.write(struct.pack("<IHHQ", HEADER_FEATURE, 0, 16 + len(body), bit) + body)
        out.write(struct.pack("<IHHQ", HEADER_FEATURE, 0, 16, LAST_FEATURE))
        body = recording.feature(TRACING_DATA)
        body += bytes(-len(body) % 8)
        out.write(struct.pack("<IHHI", HEADER_TRACING_DATA, 0, 12, len(body)) + body)
        out.write(data[recording.start:recording.start + recording.size])
    return target


class Zstd:
    """One stream of zstd, as perf has one for all records (tools/perf/util/zstd.c)."""

    class Buffer(ctypes.Structure):
        """ZSTD_inBuffer and ZSTD_outBuffer (zstd.h)."""
        _fields_ = [("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t), ("place", ctypes.c_size_t)]

    # ZSTD_c_compressionLevel, ZSTD_e_flush (zstd.h), and the level of `perf record -z`.
    LEVEL, FLUSH, FASTEST = 100, 1, 1
    # Room for what one record of perf can hold.
    ROOM = 65_000

    def __init__(self):
        name = ctypes.util.find_library("zstd")
        if not name:
            sys.exit("libzstd is not installed: recordings cannot be compressed as perf does")
        self.library = ctypes.CDLL(name)
        self.library.ZSTD_createCCtx.restype = ctypes.c_void_p
        self.library.ZSTD_compressStream2.restype = ctypes.c_size_t
        self.library.ZSTD_compressStream2.argtypes = [
            ctypes.c_void_p, ctypes.POINTER(self.Buffer), ctypes.POINTER(self.Buffer), ctypes.c_int]
        self.library.ZSTD_CCtx_setParameter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self.context = self.library.ZSTD_createCCtx()
        self.library.ZSTD_CCtx_setParameter(self.context, self.LEVEL, self.FASTEST)
        self.room = ctypes.create_string_buffer(self.ROOM)

    def pieces(self, data):
        """Compresses some bytes; yields what came, in pieces."""
        held = ctypes.create_string_buffer(data, len(data))
        given = self.Buffer(ctypes.addressof(held), len(data), 0)
        left = 1
        while left:
            got = self.Buffer(ctypes.addressof(self.room), self.ROOM, 0)
            left = self.library.ZSTD_compressStream2(self.context, got, given, self.FLUSH)
            if left > 1 << 62:
                sys.exit("libzstd could not compress")
            yield self.room.raw[:got.place]


def compressed(source, target):
    """Writes what `perf record -z` would have."""
    # The size of a ring, which no reader gets more than at once: 128 pages and one, perf's default.
    ring, piece = 129 * 4096, 1 << 17
    recording = Recording(source)
    data, zstd, first = recording.data, Zstd(), recording.start

    with open(target, "wb") as out:
        out.write(data[:recording.start])

        def pack(upto):
            """Writes what has come since the last time as records of their own."""
            if upto > first:
                for packed in zstd.pieces(data[first:upto]):
                    out.write(struct.pack("<IHH", COMPRESSED_RECORD, 0, 8 + len(packed)) + packed)

        for kind, at, length in recording.records():
            # What the recorder writes itself, such as the end of a round, is not compressed.
            if kind >= USER_START or at - first > piece:
                pack(at)
                first = at
            if kind >= USER_START:
                out.write(data[at:at + length])
                first = at + length
        pack(recording.start + recording.size)
        ends(out, recording, {COMPRESSION: struct.pack("<5I", 1, 1, 1, 18, ring)})
    return target
