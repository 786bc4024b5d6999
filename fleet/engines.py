#!/usr/bin/env python3
"""Asks other engines the questions that trapline brings along, and what its screen is made of; compares the answers.

    fleet/engines.py --trapline PROGRAM --store DIR duckdb clickhouse spark

Engines are Python's: 'pip install duckdb', 'pip install chdb', 'pip install pyspark' (with Java 17). Rows have to be the
same in any order; numbers that are not whole may differ in their tenth digit. PROGRAM finds trapline-fleet as it does for
people.
"""

import argparse
import json
import math
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "spark"))

import screen_sql  # noqa: E402

QUESTIONS = range(1, 13)


def asked(program, store):
    """What is asked: names and SQL."""
    for number in QUESTIONS:
        show = [program, "sql", "--question", str(number), "--show", store]
        sql = subprocess.run(show, check=True, stdout=subprocess.PIPE, text=True).stdout
        yield f"question {number}", sql.rstrip().rstrip(";")
    names = (name.removeprefix("day=") for name in os.listdir(os.path.join(store, "runs")))
    for table, sql in screen_sql.statements(sorted(filter(screen_sql.is_day, names))).items():
        yield f"the screen's {table}", sql


def ours(program, store, sql):
    """Our rows."""
    done = subprocess.run([program, "sql", sql, "--json", store], check=True, stdout=subprocess.PIPE, text=True)
    answer = json.loads(done.stdout)
    names = [column["name"] for column in answer["columns"]]
    return [tuple(row[name] for name in names) for row in answer["rows"]]


def tables(store):
    return sorted(name for name in os.listdir(store) if os.path.isdir(os.path.join(store, name)))


class DuckDb:
    """DuckDB in this process."""

    def __init__(self, store):
        import duckdb
        self.connection = duckdb.connect()
        for table in tables(store):
            files = os.path.join(store, table, "*", "*.parquet").replace("'", "''")
            self.connection.execute(
                f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}', hive_partitioning = true, "
                "hive_types_autocast = false, union_by_name = true)")

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()


class ClickHouse:
    """ClickHouse in this process: chDB."""

    # Days from folders' names, and columns that some files alone have.
    OF_FILES = "use_hive_partitioning = 1, schema_inference_mode = 'union'"
    # NULL where a join finds nothing, and where a NULL is cast; numbers as numbers.
    SETTINGS = f"{OF_FILES}, join_use_nulls = 1, cast_keep_nullable = 1, output_format_json_quote_64bit_integers = 0"

    def __init__(self, store):
        from chdb.session import Session
        self.session = Session()
        self.session.query("CREATE DATABASE fleet")
        for table in tables(store):
            files = os.path.join(store, table, "*", "*.parquet").replace("'", "''")
            # ClickHouse takes days for dates, and no text but a date's may be held against those: they are texts.
            self.session.query(f"CREATE VIEW fleet.{table} AS SELECT * REPLACE (toString(day) AS day) "
                               f"FROM file('{files}', Parquet) "
                               f"SETTINGS {self.OF_FILES}")

    def rows(self, sql):
        answer = self.session.query(f"USE fleet; {sql}\nSETTINGS {self.SETTINGS} FORMAT JSONCompact")
        return [tuple(row) for row in json.loads(str(answer))["data"]]


class Spark:
    """Spark in this process, or on the cluster that MASTER names."""

    def __init__(self, store):
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.appName("trapline questions").config("spark.sql.shuffle.partitions", 4)
        # Days are texts.
        builder = builder.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        self.session = builder.master(os.environ.get("MASTER", "local[2]")).getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        for table in tables(store):
            # What writers have begun has no such name.
            read = self.session.read.option("mergeSchema", "true").option("pathGlobFilter", "*.parquet")
            read.parquet(os.path.join(store, table)).createOrReplaceTempView(table)

    def rows(self, sql):
        return [tuple(row) for row in self.session.sql(sql).collect()]


ENGINES = {"clickhouse": ClickHouse, "duckdb": DuckDb, "spark": Spark}


def plain(value):
    """A value as all engines have it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(value)


def order(row):
    """Sorts rows alike: numbers by their first digits."""
    return [("", 0.0) if value is None else (value, 0.0) if isinstance(value, str) else (" ", float(f"{value:.6g}"))
            for value in row]


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trapline", required=True, metavar="PROGRAM")
    parser.add_argument("--store", required=True, metavar="DIR")
    parser.add_argument("engines", nargs="+", choices=sorted(ENGINES))
    args = parser.parse_args()
    failed = 0
    questions = asked(args.trapline, args.store)
    questions = [(what, sql, ours(args.trapline, args.store, sql)) for what, sql in questions]
    for name in args.engines:
        engine = ENGINES[name](args.store)
        for what, sql, expected in questions:
            rows = sorted((tuple(map(plain, row)) for row in engine.rows(sql)), key=order)
            mine = sorted((tuple(map(plain, row)) for row in expected), key=order)
            alike = len(rows) == len(mine) and all(
                len(row) == len(own) and all(map(same, row, own)) for row, own in zip(rows, mine))
            if not alike:
                failed += 1
                print(f"{name}: {what}: {len(rows)} rows, ours {len(mine)}", file=sys.stderr)
                for row, own in [pair for pair in zip(rows, mine) if pair[0] != pair[1]][:3]:
                    print(f"  {row}\n  {own}", file=sys.stderr)
    total = len(questions) * len(args.engines)
    print(f"{total - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
