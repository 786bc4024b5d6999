"""Prints the table of README.md from the CSV files that lab/jobs/cost leaves: python3 table.py FILE.csv"""

import csv
import statistics
import sys
from collections import defaultdict

runs = defaultdict(list)
with open(sys.argv[1]) as file:
    for row in csv.DictReader(file):
        runs[row["recorder"], int(row["exits"])].append(row)
few, many = sorted({exits for _, exits in runs})


def median(recorder, exits, column):
    return statistics.median(float(row[column] or 0) for row in runs[recorder, exits])


def each(recorder, column, of):
    more = median(recorder, many, column) - median(recorder, few, column)
    return more / of if of else 0


print("recorder | start ms | end ms | recorder ns/event | of that, at the end | bytes/event | events/exit | guest ns/exit | slowdown ns/exit | ns/event")
alone = None
for recorder in dict.fromkeys(name for name, _ in runs):
    exits = many - few
    events = median(recorder, many, "events") - median(recorder, few, "events")
    guest = each(recorder, "guest_cpu_us", exits) * 1000
    alone = guest if alone is None else alone
    running, end = (each(recorder, column, events) * 1000 for column in ("running_us", "end_us"))
    fixed = median(recorder, few, "end_us") / 1000 - end * median(recorder, few, "events") / 1e6
    print(
        f"{recorder} | {median(recorder, many, 'start_us') / 1000:.1f} | {fixed:.1f} | {running + end:.0f} | {end:.0f}"
        f" | {each(recorder, 'bytes', events):.1f} | {events / exits:.1f} | {guest:.0f} | {guest - alone:.0f}"
        f" | {(guest - alone) * exits / events if events else 0:.0f}"
        f" | reading {median(recorder, many, 'readings_us') / 10 / 1000:.2f} ms"
        f" | total at {many} ms {(median(recorder, many, 'start_us') + median(recorder, many, 'running_us') + median(recorder, many, 'end_us')) / 1000:.1f}"
    )
