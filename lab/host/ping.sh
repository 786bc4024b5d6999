# What ping printed against what the path `packet` says, request by request. For jobs, after lib.sh.
# shellcheck shell=bash

# ping_requests LOG EVENT FILE...: a line for each request: its number, when it began (the EVENT of that request in the guest that asks, host's clock,
# us), how long it was until the guest's program had the answer as its last system call tells (us, - where that is not recorded), and what
# ping printed (us). The guest's recording is the second file.
ping_requests() {
    local log=$1 event=$2
    shift 2
    trapline events "$@" | awk -v log_file="$log" -v guest="$(basename "$2"):" -v event="$event" '
        function us(text, parts) { sub(/:$/, "", text); split(text, parts, "."); return parts[1] * 1000000 + parts[2] }
        BEGIN {
            while ((getline line <log_file) > 0)
                if (match(line, /seq=[0-9]+/)) {
                    seq = substr(line, RSTART + 4, RLENGTH - 4) + 0
                    match(line, /time=[0-9.]+/)
                    printed[seq] = substr(line, RSTART + 5, RLENGTH - 5) * 1000
                    if (seq > last) last = seq
                }
        }
        $1 != guest { next }
        $6 == "syscalls:sys_exit_recvfrom:" && $2 == "ping" && n && !(n in bare) { bare[n] = us($5) - began[n] }
        index($6, event) && (event == "sys_enter_sendto" ? $2 == "ping" : $0 ~ /len=98( |$)/) { began[++n] = us($5) }
        END {
            for (i = 1; i <= n; i++)
                if (i - 1 in printed) printf "%d %.0f %s %.0f\n", i - 1, began[i], (i in bare) ? bare[i] : "-", printed[i - 1]
        }'
}

# ping_compare exact|within REQUESTS CSV: holds the instances of a path (trapline paths --each --format csv) against requests. exact: an instance
# begins with its request; within: it is the first that begins before the next one does. Prints `requests N`, `matched N`, `same N` (total
# and system calls tell the same to 2 us), `correlation R`, and the median, 90th percentile and worst of |printed - total|, in us.
ping_compare() {
    awk -v how="$1" '
        NR == FNR { began[++n] = $2; bare[n] = $3; printed[n] = $4; next }
        FNR == 1 { m = split($0, names, ","); for (i = 1; i <= m; i++) at[names[i]] = i; next }
        {
            split($0, fields, ",")
            start = int(fields[at["start_ns"]] / 1000)
            for (i = 1; i <= n; i++)
                if (!(i in total) && (how == "exact" ? start == began[i] : start >= began[i] && (i == n || start < began[i + 1]))) {
                    total[i] = fields[at["total_ns"]] / 1000
                    break
                }
        }
        END {
            for (i = 1; i <= n; i++)
                if (i in total) {
                    d = printed[i] - total[i]
                    off[++k] = d < 0 ? -d : d
                    if (bare[i] != "-" && bare[i] - total[i] <= 2 && total[i] - bare[i] <= 2) same++
                    sx += printed[i]; sy += total[i]
                    sxx += printed[i] ^ 2; syy += total[i] ^ 2; sxy += printed[i] * total[i]
                }
            for (i = 2; i <= k; i++) { # few: sorted by insertion
                v = off[i]
                for (j = i - 1; j > 0 && off[j] > v; j--) off[j + 1] = off[j]
                off[j + 1] = v
            }
            spread = (k * sxx - sx ^ 2) * (k * syy - sy ^ 2)
            printf "requests %d\nmatched %d\nsame %d\n", n, k, same
            printf "correlation %.5f\n", (spread > 0 ? (k * sxy - sx * sy) / sqrt(spread) : 0)
            printf "median %.0f\np90 %.0f\nworst %.0f\n", off[int((k + 1) / 2)], off[int(k * 0.9 + 0.5)], off[k]
        }' "$2" "$3"
}

# ping_in_order LOG CSV: holds instances against pings where nothing but the host tells when a ping was sent. Both are in order, and ping
# waits as long between two, so what is missing shows as a gap. Prints the same figures.
ping_in_order() {
    awk '
        NR == FNR {
            if (match($0, /time=[0-9.]+/)) printed[++n] = substr($0, RSTART + 5, RLENGTH - 5) * 1000
            next
        }
        FNR == 1 { m = split($0, names, ","); for (i = 1; i <= m; i++) at[names[i]] = i; next }
        { split($0, fields, ","); start[++k] = fields[at["start_ns"]] / 1000; total[k] = fields[at["total_ns"]] / 1000 }
        END {
            for (i = 2; i <= k; i++) gap[i - 1] = start[i] - start[i - 1]
            for (i = 2; i < k; i++) { # few: sorted by insertion
                v = gap[i]
                for (j = i - 1; j > 0 && gap[j] > v; j--) gap[j + 1] = gap[j]
                gap[j + 1] = v
            }
            every = gap[int(k / 2)]
            for (i = 1; i <= k; i++) { # an instance behind less than half of the time between two pings is none of a ping
                step = i == 1 ? 1 : int((start[i] - start[i - 1]) / every + 0.5)
                number += step
                if (step) of[number] = total[i]
            }
            best = -2
            for (first = -3; first <= 3; first++) { # the first ones may be missing, or be no pings
                sx = sy = sxx = syy = sxy = c = 0
                for (i in of) if (i + first in printed) {
                    x = printed[i + first]; y = of[i]; c++
                    sx += x; sy += y; sxx += x * x; syy += y * y; sxy += x * y
                }
                spread = (c * sxx - sx ^ 2) * (c * syy - sy ^ 2)
                r = spread > 0 ? (c * sxy - sx * sy) / sqrt(spread) : 0
                if (r > best) { best = r; matched = c }
            }
            printf "requests %d\nmatched %d\ncorrelation %.5f\n", n, matched, best
        }' "$1" "$2"
}
