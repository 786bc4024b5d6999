#!/usr/bin/env python3
"""Has Spark make what the screen of 'trapline fleet' is made of: a store may be larger than a machine reads.

    spark-submit fleet/spark/screen.py --store s3a://bucket/fleet --since 2026-11-01 --output /mnt/screen
    trapline fleet /mnt/screen

Spark asks the statements of screen.sql, which lies beside this file and which the program asks of a store itself, and
writes their answers laid out as a store: some 20 rows of each recording, whatever else the store has. The screen of
that folder is the store's. OUTPUT is where Spark writes; on an object store it is copied from there. A folder that an
earlier run wrote is replaced, any other is left alone. Ends with status 1 where a file cannot be read, and names it.
"""

import argparse
import functools
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import screen_sql  # noqa: E402
from py4j.protocol import Py4JJavaError  # noqa: E402
from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql.functions import col  # noqa: E402

# What names of files begin with that have more than one recording (crates/store/src/place.rs).
COMPACTED = "all."


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, metavar="DIR", help="the store, as workers have it")
    parser.add_argument("--output", required=True, metavar="DIR", help="where answers are written, as workers have it")
    parser.add_argument("--since", default="", metavar="DAY", help="the first day, as 2026-11-01; without it, all")
    return parser.parse_args()


class Folder:
    """A folder of any file system that Spark knows."""

    def __init__(self, spark, name):
        self.hadoop = spark._jvm.org.apache.hadoop.fs
        self.path = self.hadoop.Path(name)
        self.system = self.path.getFileSystem(spark._jsc.hadoopConfiguration())

    def below(self, *names):
        return self.hadoop.Path(self.path, "/".join(names))

    def exists(self, *names):
        return self.system.exists(self.below(*names) if names else self.path)

    def files(self, path):
        return [status.getPath() for status in self.system.listStatus(path)]

    def has_others_files(self):
        """Whether this job did not write what it has."""
        return self.exists() and not self.exists(screen_sql.MARK) and bool(self.files(self.path))

    def begin(self, mark):
        """Removes what an earlier run wrote, that of recordings first: without them it is no store."""
        self.system.delete(self.below("runs"), True)
        self.system.delete(self.path, True)
        out = self.system.create(self.below(screen_sql.MARK), True)
        out.write(bytearray(json.dumps(mark).encode()))
        out.close()

    def name_files(self, table):
        """Gives files the names that a store's have which are made of many recordings."""
        for day in self.files(self.below(table)):
            if day.getName().startswith("day="):
                parts = [path for path in self.files(day) if path.getName().endswith(".parquet")]
                for number, path in enumerate(parts):
                    self.system.rename(path, self.hadoop.Path(day, f"{COMPACTED}{number}.parquet"))


def main():
    args = arguments()
    # Days are texts.
    builder = SparkSession.builder.appName("trapline screen")
    builder = builder.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    # It would stand on the line of what is said.
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    store, output = Folder(spark, args.store), Folder(spark, args.output)
    if output.has_others_files():
        sys.exit(f"{args.output}: it is there, and is none that this job wrote: name another folder")
    if not store.exists("runs"):
        sys.exit(f"{args.store}: no store of recordings")
    if store.exists(screen_sql.MARK):
        sys.exit(f"{args.store}: it is what this job wrote; name the store that it was made of")

    def rows(table):
        # What writers have begun has no such name.
        reader = spark.read.option("mergeSchema", "true").option("pathGlobFilter", "*.parquet")
        return reader.parquet(str(store.below(table)))

    runs = rows("runs")
    days = [row[0] for row in runs.select("day").distinct().collect()]
    days = sorted(day for day in days if screen_sql.is_day(day) and day >= args.since)
    if not days:
        sys.exit(f"{args.store}: no recording since {args.since}")
    asked = screen_sql.statements(days)
    # Recordings are written last: a folder without them is no store.
    tables = sorted((name for name in asked if store.exists(name)), key=lambda name: name == "runs")
    sources = {name: rows(name).where(col("day").isin(days)) for name in tables}
    # A recording that was not written to its end has rows elsewhere, and none in the table of recordings.
    whole = sources["runs"].select("day", "run").distinct()
    others = functools.reduce(DataFrame.union, (sources[name].select("day", "run") for name in tables)).distinct()
    left = others.join(whole, ["day", "run"], "left_anti").count()
    if left:
        said = "1 recording was" if left == 1 else f"{left} recordings were"
        print(f"{said} not written to the end: left out", file=sys.stderr)
    output.begin({"store": args.store, "days": days})
    for table in tables:
        kinds = {field.name: field.dataType for field in sources[table].schema.fields}
        sources[table].join(whole, ["day", "run"], "left_semi").createOrReplaceTempView(table)
        answer = spark.sql(asked[table])
        answer = answer.select([answer[name].cast(kinds[name]).alias(name) for name in answer.columns])
        answer.repartition("day").write.partitionBy("day").parquet(str(output.below(table)))
        output.name_files(table)
    print(f"{len(days)} days of {args.store} are in {args.output}")
    spark.stop()


if __name__ == "__main__":
    try:
        main()
    except (Py4JJavaError, PySparkException) as error:
        # Which file it is stands among some hundred lines of Java's.
        broken = re.search(r"\w+/day=[^\s:]*\.parquet", str(error))
        if not broken:
            raise
        sys.exit(f"{broken[0]}: it cannot be read; remove it, or store its recording again")
