#!/usr/bin/env python3
"""Puts recordings into a store by Spark: one task for each file runs trapline.

    spark-submit fleet/spark/ingest.py --trapline /opt/trapline --store /mnt/fleet [--detail] /mnt/recordings/*.perf.data
    spark-submit fleet/spark/ingest.py --trapline /opt/trapline --store /mnt/fleet s3a://bucket/recordings/

The store, and the static program, are where every worker has them mounted. A recording that is mounted too is given by its
path; others Spark reads and hands on as bytes, which a worker has in memory as a whole: recordings above 1 GB belong on a
file system. trapline stores a recording whole or not at all and under a name that its content gives, so a task that is lost
and run again leaves nothing twice. Ends with status 1 where a recording could not be stored, and names it.
"""

import argparse
import os
import subprocess
import sys
import time

from pyspark.sql import SparkSession


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trapline", default="trapline", metavar="PROGRAM", help="the program, as workers have it")
    parser.add_argument("--store", required=True, metavar="DIR", help="the store, as workers have it")
    parser.add_argument("--detail", action="store_true", help="store single things too")
    parser.add_argument("--mask", metavar="KEYFILE", help="mask names by the secret in this file")
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="store this with each")
    parser.add_argument("recordings", nargs="+", metavar="REC", help="recordings, or where Spark finds them")
    return parser.parse_args()


def options(args):
    """The words of trapline's command line that are the same for all recordings."""
    words = ["--as", "parquet", "-o", args.store, "--threads", "1"]
    if args.detail:
        words.append("--detail")
    if args.mask:
        words += ["--mask", args.mask]
    for label in args.label:
        words += ["--label", label]
    return words


def stored(program, words, name, content):
    """Stores a recording. Returns its name, whether that went well, and what was said."""
    given = ["--", name]
    if content is not None:
        # What comes as bytes has no date of its own; one that the recording says goes before this.
        given = ["--", "-"]
        words = words + ["--day", time.strftime("%Y-%m-%d", time.gmtime())] if "--day" not in words else words
    done = subprocess.run([program, "export", *words, *given], input=content, stdin=None if content else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return name, done.returncode == 0, done.stdout.decode(errors="replace").strip()


def main():
    args = arguments()
    spark = SparkSession.builder.appName("trapline ingest").getOrCreate()
    context = spark.sparkContext
    words, program = options(args), args.trapline
    here = [name for name in args.recordings if os.path.isfile(name)]
    elsewhere = [name for name in args.recordings if not os.path.isfile(name)]
    results = []
    if here:
        files = context.parallelize([os.path.abspath(name) for name in here], len(here))
        results += files.map(lambda name: stored(program, words, name, None)).collect()
    if elsewhere:
        files = context.binaryFiles(",".join(elsewhere), minPartitions=context.defaultParallelism)
        results += files.map(lambda pair: stored(program, words, pair[0], pair[1])).collect()
    failed = [one for one in results if not one[1]]
    for name, _, said in failed:
        print(f"{name}: {said}", file=sys.stderr)
    print(f"{len(results) - len(failed)} of {len(results)} recordings are in {args.store}")
    spark.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
