"""Which recordings to measure on."""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

LARGE_PERF = "large.perf.data.zst"
LARGE_DAT = "large.trace.dat"


def unpack(file, folder):
    """Returns the recording itself: a copy in `folder` if the file is compressed."""
    with open(file, "rb") as head:
        magic = head.read(4)
    if magic[:2] == b"\x1f\x8b":
        tool = ["gzip", "-dc"]
    elif magic == b"\x28\xb5\x2f\xfd":
        tool = ["zstd", "-dcq"]
    else:
        return file
    if not shutil.which(tool[0]):
        sys.exit(f"{tool[0]} is not installed; it unpacks {file.name}")
    name = file.name.removesuffix(".zst").removesuffix(".gz")
    with open(folder / name, "wb") as out:
        subprocess.run([*tool, str(file)], stdout=out, check=True)
    return folder / name


def choose(root, args, folder):
    """Returns a perf.data and a trace.dat, unpacked; either may be None."""
    perf, dat = args.perf, args.dat
    if not perf and not dat:
        if args.multiply:
            perf, dat = small(root)
        else:
            large = root.parent / "shared" / "corpus" / "large"
            perf = large / LARGE_PERF if (large / LARGE_PERF).exists() else None
            dat = large / LARGE_DAT if (large / LARGE_DAT).exists() else None
            if not perf and not dat:
                print("the large recordings are not there: small ones are multiplied by 100",
                      file=sys.stderr)
                args.multiply = 100
                perf, dat = small(root)
    return perf and unpack(perf, folder), dat and unpack(dat, folder)


def small(root):
    """Recordings in the repository that can be multiplied: plain ones."""
    corpus = root / "corpus" / "x86"
    perf = corpus / "format-variants" / "plain.perf.data.zst"
    dat = corpus / "format-variants" / "v6.dat.zst"
    found = [file if file.exists() else None for file in (perf, dat)]
    if not any(found):
        sys.exit("the repository has no recordings to multiply; give --perf or --dat")
    return found


def zstd_frames(file, folder):
    """Writes the zstd frames of a trace.dat's CPU data one after the other, and their sizes.

    Returns both files, or None if the recording is not compressed with zstd.

    Layout as in Documentation/trace-cmd/trace-cmd.dat.v7.5.txt of trace-cmd.
    """
    data = Path(file).read_bytes()
    magic = b"\x17\x08\x44tracing7\0"
    if not data.startswith(magic) or data[len(magic)] != 0:
        return None
    at = len(magic) + 2 + 4
    name_end = data.index(b"\0", at)
    if data[at:name_end] != b"zstd":
        return None
    at = data.index(b"\0", name_end + 1) + 1
    (section,) = struct.unpack_from("<Q", data, at)
    names = folder / "frames.zst", folder / "frames.sizes"
    with open(names[0], "wb") as frames, open(names[1], "wb") as sizes:
        while section:
            (size,) = struct.unpack_from("<Q", data, section + 8)
            at, end, section = section + 16, section + 16 + size, 0
            while at < end:
                option, length = struct.unpack_from("<HI", data, at)
                at += 6
                if option == 0:
                    (section,) = struct.unpack_from("<Q", data, at)
                    break
                if option == 3:
                    buffer_frames(data, at, frames, sizes)
                at += length
    return names if names[0].stat().st_size else None


def buffer_frames(data, at, frames, sizes):
    """Writes the frames of one buffer."""
    at = data.index(b"\0", at + 8) + 1
    at = data.index(b"\0", at) + 1
    _, cpus = struct.unpack_from("<II", data, at)
    at += 8
    for _ in range(cpus):
        _, place, size = struct.unpack_from("<IQQ", data, at)
        at += 20
        if not size:
            continue
        (chunks,) = struct.unpack_from("<I", data, place)
        place += 4
        for _ in range(chunks):
            packed, _ = struct.unpack_from("<II", data, place)
            sizes.write(data[place:place + 8])
            frames.write(data[place + 8:place + 8 + packed])
            place += 8 + packed
