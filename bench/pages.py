"""How a file lies in the page cache, which decides what mapping it costs.

A file system that keeps large folios maps a file that was written in large pieces 2 MiB at a time; one that was written in
small pieces is mapped 64 KiB at a time (the kernel's fault-around), and a page fault costs as much as several events.
"""

import mmap
import resource
import shutil

LARGE, SMALL = 4 << 20, 4 << 10


def copy(file, target, piece):
    """Copies a file by writes of so many bytes, and returns the copy."""
    with open(file, "rb") as source, open(target, "wb", buffering=0) as out:
        while True:
            data = source.read(piece)
            if not data:
                break
            out.write(data)
    shutil.copystat(file, target)
    return target


def kib_per_fault(file):
    """How much of a file in the page cache one page fault maps, in KiB."""
    size = file.stat().st_size
    if not size:
        return 0.0
    with open(file, "rb") as source, mmap.mmap(source.fileno(), 0, prot=mmap.PROT_READ) as data:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        data[::mmap.PAGESIZE]
        after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return size / 1024 / max(after - before, 1)
