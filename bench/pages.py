"""How a file lies in the page cache, which decides what mapping it costs.

A file system that keeps large folios maps a file that was written in large pieces 2 MiB at a time, if there were any to be
had; one that was written in small pieces is mapped 64 KiB at a time (the kernel's fault-around), and a page fault costs as
much as several events. On a host that has run for long pages are wherever there was room: so are those of a file that is
read back page by page in any order.
"""

import mmap
import os
import random
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


def scatter(file):
    """Puts the pages of a file anywhere in memory: takes them out of the page cache, and reads them one by one."""
    with open(file, "rb", buffering=0) as source:
        descriptor = source.fileno()
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        pages = list(range(0, file.stat().st_size, mmap.PAGESIZE))
        random.Random(1).shuffle(pages)
        for at in pages:
            os.pread(descriptor, mmap.PAGESIZE, at)
    return file


def mapping(file):
    """What mapping a file costs: KiB that one page fault maps, and nanoseconds of kernel time for each page."""
    size = file.stat().st_size
    if not size:
        return 0.0, 0.0
    with open(file, "rb") as source, mmap.mmap(source.fileno(), 0, prot=mmap.PROT_READ) as data:
        before = resource.getrusage(resource.RUSAGE_SELF)
        data[::mmap.PAGESIZE]
        after = resource.getrusage(resource.RUSAGE_SELF)
    faults = max(after.ru_minflt - before.ru_minflt, 1)
    ns = (after.ru_stime - before.ru_stime) * 1e9
    return size / 1024 / faults, ns * mmap.PAGESIZE / size
