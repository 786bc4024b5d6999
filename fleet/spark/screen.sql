-- What the screen of 'trapline fleet' is made of, a statement for each table. The program asks them of a store
-- (fleet/src/fleet/data.rs, which reads columns by their places), and screen.py asks them of one that no machine reads
-- alone, and writes the answers as a store for the program. So columns are called as the table's are, and what is asked
-- of an answer gives that answer again. :days are the days in question, as texts. The text is portable as
-- ../../crates/cli/src/commands/sql/questions.sql says.

-- Table runs: the recordings. Behind 'truncated' stands what hosts may have in common.
SELECT host, run, day, input, can_tell, lost_events, truncated, role, kernel, arch, cpu_model, cpus, recorder, clock
FROM runs
WHERE day IN (:days)
ORDER BY day, host, run;

-- Table facts: settings of hosts, which facts that were stored with the recordings say.
SELECT host, run, day, key, value
FROM facts
WHERE day IN (:days) AND value IS NOT NULL AND key LIKE 'host.%';

-- Table findings: what was found.
SELECT host, run, day, id, severity, cost_ns, cost_share
FROM findings
WHERE day IN (:days)
ORDER BY day, host, run, id, cost_ns;

-- Table vcpus: what the vCPUs of a recording did, together.
SELECT host, run, day,
       sum(CAST(v.runnable_ns AS DOUBLE)) AS runnable_ns, sum(CAST(v.user_ns AS DOUBLE)) AS user_ns,
       sum(CAST(v.kernel_ns AS DOUBLE)) AS kernel_ns, sum(CAST(v.poll_ns AS DOUBLE)) AS poll_ns,
       sum(CAST(v.exits AS DOUBLE)) AS exits, sum(CAST(v.observed_ns AS DOUBLE)) AS observed_ns
FROM vcpus AS v
WHERE day IN (:days)
GROUP BY host, run, day;

-- Table paths: latencies of paths that have enough instances for a 99th percentile.
SELECT host, run, day, path, p99_ns, count
FROM paths
WHERE day IN (:days) AND count >= 20;

-- Table tasks: where a thread of a recording waited longest for a CPU.
SELECT host, run, day, longest_wait_at_ns, longest_wait_ns
FROM (SELECT host, run, day, longest_wait_at_ns, longest_wait_ns,
             row_number() OVER (PARTITION BY day, run ORDER BY longest_wait_ns DESC, longest_wait_at_ns) AS place
      FROM tasks
      WHERE day IN (:days) AND longest_wait_ns > 0) AS waits
WHERE place = 1;
