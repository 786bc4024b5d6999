#!/bin/bash
# What recorders cost on this machine: CPU seconds of `perf bench sched pipe` on CPU 1, alone and under each recorder in turn, and those of the
# recorder from its start to its end. As root, on a machine where nothing else runs:
#
#     pipe.sh TRAPLINE [ROUNDS [RUNS]]      (default 800000 rounds, 2 runs)
set -eu
trapline=$1 rounds=${2:-800000} runs=${3:-2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
events=()
for event in sched:sched_{switch,waking,wakeup,wakeup_new,migrate_task,process_fork,process_exit} workqueue:workqueue_execute_{start,end}; do
    events+=(-e "$event")
done
load() { # CPU seconds of the load
    { /usr/bin/time -f "%U %S" nice -n -19 taskset -c 1 perf bench -f simple sched pipe -l "$rounds" >/dev/null; } 2>&1 |
        awk 'END { print $1 + $2 }'
}
under() { # COMMAND...: CPU seconds of the load and of the recorder
    rm -rf out
    /usr/bin/time -f "%U %S" -o used "$@" >/dev/null 2>&1 &
    local timed=$! took
    sleep 1.5
    took=$(load)
    kill -INT "$(pgrep -P $timed)"
    wait $timed || true
    echo "$took + $(awk 'END { print $1 + $2 }' used)"
}
for ((run = 0; run < runs; run++)); do
    echo "alone $(load), record $(under "$trapline" record --for sched -o out)," \
        "compact $(under "$trapline" record --compact --for sched -o out)," \
        "perf $(under perf record -q -a "${events[@]}" -o out)"
done
