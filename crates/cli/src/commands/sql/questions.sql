-- The twelve questions of somebody who has many hosts ('trapline sql --question N DIR'). One text for DataFusion,
-- DuckDB, Spark and ClickHouse (with join_use_nulls = 1, cast_keep_nullable = 1, and days made texts by toString).
-- :day is the day in question, :before the one that it is held against: by default the last two days of the store;
-- '' in a store of one day. What keeps the text portable: CAST(x AS DOUBLE) before every division (DataFusion
-- divides integers as integers); sums over a fleet in DOUBLE (64 bits are not enough, and DataFusion's own sums wrap
-- around silently); every column that leaves a WITH gets its name by AS (ClickHouse); days as text; ORDER BY with
-- LIMIT over what is never null alone (engines put nulls at either end); no function that one engine alone has.

-- Q1 Which hosts have which problem, and what does it cost?
SELECT f.id, f.host, r.role, r.kernel, f.title, f.severity, f.cost_share, f.cost_ns
FROM findings f JOIN runs r ON f.run = r.run AND f.day = r.day
WHERE f.day = :day
ORDER BY f.id, f.cost_share DESC, f.host, f.cost_ns DESC, f.title;

-- Q2 Which problems does the fleet have, on how many hosts, and what does each cost in all?
SELECT f.id, count(DISTINCT f.host) AS hosts,
       CAST(count(DISTINCT f.host) AS DOUBLE) / max(n.hosts) AS share_of_hosts,
       median(f.cost_share) AS median_cost, max(f.cost_share) AS worst_cost,
       sum(CAST(f.cost_ns AS DOUBLE)) / 1e9 AS cost_s
FROM findings f JOIN (SELECT day, count(DISTINCT host) AS hosts FROM runs GROUP BY day) n ON n.day = f.day
WHERE f.day = :day
GROUP BY f.id ORDER BY cost_s DESC, f.id;

-- Q3 Which VMs lose most of their time to waiting for a CPU, and how long was the longest wait?
SELECT v.host, v.vm, count(*) AS vcpus,
       sum(CAST(v.runnable_ns AS DOUBLE)) / sum(CAST(v.observed_ns - v.halted_ns AS DOUBLE)) AS runnable_of_awake,
       max(v.wait_max_ns) AS longest_wait_ns
FROM vcpus v WHERE v.day = :day AND v.observed_ns > v.halted_ns AND v.runnable_ns IS NOT NULL
GROUP BY v.host, v.vm ORDER BY runnable_of_awake DESC, v.host LIMIT 20;

-- Q4 Which hosts are outliers among their peers (same role), by which state of their vCPUs? Robust z: median and MAD of log shares.
WITH s AS (
  SELECT v.host AS host, r.role AS role, 'runnable' AS what, ln((sum(CAST(v.runnable_ns AS DOUBLE)) + 1e6) / sum(CAST(v.observed_ns AS DOUBLE))) AS x
  FROM vcpus v JOIN runs r ON r.run = v.run AND r.day = v.day WHERE v.day = :day GROUP BY v.host, r.role
  UNION ALL
  SELECT v.host AS host, r.role AS role, 'user' AS what, ln((sum(CAST(v.user_ns AS DOUBLE)) + 1e6) / sum(CAST(v.observed_ns AS DOUBLE))) AS x
  FROM vcpus v JOIN runs r ON r.run = v.run AND r.day = v.day WHERE v.day = :day GROUP BY v.host, r.role
  UNION ALL
  SELECT v.host AS host, r.role AS role, 'kernel' AS what, ln((sum(CAST(v.kernel_ns AS DOUBLE)) + 1e6) / sum(CAST(v.observed_ns AS DOUBLE))) AS x
  FROM vcpus v JOIN runs r ON r.run = v.run AND r.day = v.day WHERE v.day = :day GROUP BY v.host, r.role),
m AS (SELECT role, what, median(x) AS mid, count(*) AS n FROM s GROUP BY role, what),
d AS (SELECT s.role AS role, s.what AS what, median(abs(s.x - m.mid)) AS mad FROM s JOIN m ON m.role = s.role AND m.what = s.what GROUP BY s.role, s.what)
SELECT s.host, s.role, s.what, exp(s.x) AS share, exp(m.mid) AS peers, m.n AS peers_n, (s.x - m.mid) / (1.4826 * d.mad + 0.05) AS z
FROM s JOIN m ON m.role = s.role AND m.what = s.what JOIN d ON d.role = s.role AND d.what = s.what
WHERE abs(s.x - m.mid) / (1.4826 * d.mad + 0.05) > 4
ORDER BY abs(s.x - m.mid) / (1.4826 * d.mad + 0.05) DESC, s.host, s.what;

-- Q5 Which hosts changed since last week, beyond what their role as a whole changed? Each host is its own control.
WITH s AS (
  SELECT v.day AS day, v.host AS host, r.role AS role, ln((sum(CAST(v.runnable_ns + v.user_ns + v.kernel_ns AS DOUBLE)) + 1e6) / sum(CAST(v.observed_ns AS DOUBLE))) AS x
  FROM vcpus v JOIN runs r ON r.run = v.run AND r.day = v.day
  WHERE v.day IN (:before, :day) GROUP BY v.day, v.host, r.role),
p AS (SELECT b.host AS host, b.role AS role, b.x - a.x AS d FROM s a JOIN s b ON a.host = b.host
      WHERE a.day = :before AND b.day = :day),
m AS (SELECT role, median(d) AS mid FROM p GROUP BY role),
w AS (SELECT p.role AS role, median(abs(p.d - m.mid)) AS mad FROM p JOIN m ON m.role = p.role GROUP BY p.role)
SELECT p.host, p.role, exp(p.d) AS ratio, exp(m.mid) AS role_ratio, (p.d - m.mid) / (1.4826 * w.mad + 0.02) AS z
FROM p JOIN m ON m.role = p.role JOIN w ON w.role = p.role
WHERE abs(p.d - m.mid) / (1.4826 * w.mad + 0.02) > 4
ORDER BY abs(p.d - m.mid) / (1.4826 * w.mad + 0.02) DESC, p.host;

-- Q6 Did the fleet as a whole shift, by role and kernel? Median of the hosts' own ratios, how many went up, and its standard error.
WITH s AS (
  SELECT v.day AS day, v.host AS host, r.role AS role, r.kernel AS kernel, ln((sum(CAST(v.user_ns AS DOUBLE)) + 1e6) / sum(CAST(v.observed_ns AS DOUBLE))) AS x
  FROM vcpus v JOIN runs r ON r.run = v.run AND r.day = v.day
  WHERE v.day IN (:before, :day) GROUP BY v.day, v.host, r.role, r.kernel),
p AS (SELECT b.host AS host, b.role AS role, b.kernel AS kernel, b.x - a.x AS d FROM s a JOIN s b ON a.host = b.host
      WHERE a.day = :before AND b.day = :day),
m AS (SELECT role, kernel, median(d) AS mid, count(*) AS n, sum(CASE WHEN d > 0 THEN 1 ELSE 0 END) AS up FROM p GROUP BY role, kernel)
SELECT m.role, m.kernel, m.n, m.up, exp(m.mid) AS ratio,
       m.mid / (1.858 * median(abs(p.d - m.mid)) / sqrt(CAST(m.n AS DOUBLE)) + 1e-9) AS z
FROM p JOIN m ON m.role = p.role AND m.kernel = p.kernel
GROUP BY m.role, m.kernel, m.n, m.up, m.mid ORDER BY m.role, m.kernel;

-- Q7 Which findings came and which went since last week? A host that did not record (well) says nothing.
WITH ok AS (SELECT a.host FROM runs a JOIN runs b ON a.host = b.host
            WHERE a.day = :before AND b.day = :day AND a.lost_events = 0 AND b.lost_events = 0 AND NOT a.truncated AND NOT b.truncated),
a AS (SELECT DISTINCT host, id FROM findings WHERE day = :before),
b AS (SELECT DISTINCT host, id FROM findings WHERE day = :day)
SELECT CASE WHEN a.host IS NULL THEN 'came' ELSE 'went' END AS what, coalesce(a.id, b.id) AS id,
       count(*) AS hosts, min(coalesce(a.host, b.host)) AS for_example
FROM a FULL JOIN b ON a.host = b.host AND a.id = b.id
JOIN ok ON ok.host = coalesce(a.host, b.host)
WHERE a.host IS NULL OR b.host IS NULL
GROUP BY CASE WHEN a.host IS NULL THEN 'came' ELSE 'went' END, coalesce(a.id, b.id)
ORDER BY hosts DESC, id;

-- Q8 Which exits cost most across the fleet, and on how many hosts is their rate more than three times their peers' median?
WITH o AS (SELECT day, run, sum(observed_ns) AS observed FROM vcpus WHERE day = :day GROUP BY day, run),
e AS (SELECT x.host AS host, r.role AS role, x.event AS event, x.key AS key, x.name AS name, CAST(x.count AS DOUBLE) / o.observed * 1e9 AS rate,
             CAST(coalesce(x.kernel_ns + x.user_ns, CASE WHEN x.waiting THEN 0 ELSE x.total_ns END) AS DOUBLE) / o.observed AS handling
      FROM exit_rows x JOIN o ON o.run = x.run AND o.day = x.day JOIN runs r ON r.run = x.run AND r.day = x.day
      WHERE x.day = :day),
m AS (SELECT role, event, key, median(rate) AS mid FROM e GROUP BY role, event, key)
SELECT e.event, e.key, min(e.name) AS name, count(DISTINCT e.host) AS hosts, sum(e.handling) / count(DISTINCT e.host) AS mean_share,
       max(e.rate) AS max_rate, sum(CASE WHEN e.rate > 3 * m.mid THEN 1 ELSE 0 END) AS above_3x
FROM e JOIN m ON m.role = e.role AND m.event = e.event AND m.key = e.key
GROUP BY e.event, e.key ORDER BY mean_share DESC, e.event, e.key LIMIT 20;

-- Q9 The fleet's p50 and p99 of each latency path by role, out of mergeable histograms (exact to a sixteenth of an octave).
WITH h AS (SELECT r.role AS role, h.metric AS metric, h.low_ns AS low_ns, max(h.high_ns) AS high_ns, sum(h.count) AS n
           FROM hists h JOIN runs r ON r.run = h.run AND r.day = h.day
           WHERE h.day = :day GROUP BY r.role, h.metric, h.low_ns),
c AS (SELECT role, metric, low_ns, high_ns, n, sum(n) OVER (PARTITION BY role, metric ORDER BY low_ns) AS up_to,
             sum(n) OVER (PARTITION BY role, metric) AS total FROM h)
SELECT role, metric, max(total) AS instances,
       min(CASE WHEN up_to >= 0.50 * total THEN high_ns END) AS p50_ns,
       min(CASE WHEN up_to >= 0.99 * total THEN high_ns END) AS p99_ns, max(high_ns) AS max_ns
FROM c GROUP BY role, metric ORDER BY role, metric;

-- Q10 Noisy neighbours: behind whom did vCPUs of the whole fleet wait (every single wait), and on how many hosts?
SELECT s.behind, count(DISTINCT s.host) AS hosts, count(*) AS waits, sum(CAST(s.duration_ns AS DOUBLE)) / 1e6 AS waited_ms, max(s.duration_ns) AS longest_ns
FROM spans s WHERE s.state = 'runnable' AND s.behind IS NOT NULL
GROUP BY s.behind ORDER BY waited_ms DESC, s.behind LIMIT 20;

-- Q11 Where are the slowest instances of the fleet (so that the recording is opened at the right second)?
SELECT i.host, i.day, r.input, i.path, i.chain, i.total_ns, CAST(i.start_ns AS DOUBLE) / 1e9 AS from_s,
       CAST(i.start_ns + i.total_ns AS DOUBLE) / 1e9 AS to_s
FROM instances i JOIN runs r ON r.run = i.run AND r.day = i.day
WHERE i.path IN ('irqfd', 'device-irq', 'timer', 'kick')
ORDER BY i.total_ns DESC, i.host, i.day, i.instance LIMIT 20;

-- Q12 What can be trusted: sums of spans equal the vcpus rows of every run (0 rows differ); which recordings lost events; who is missing.
SELECT 'sum differs' AS what, count(*) AS n, min(host) AS for_example FROM (
  SELECT v.host, v.run, v.vcpu, v.tid, max(v.observed_ns) - sum(s.duration_ns) AS d
  FROM vcpus v JOIN spans s ON s.run = v.run AND s.tid = v.tid AND s.day = v.day GROUP BY v.host, v.run, v.vcpu, v.tid) x WHERE d <> 0
UNION ALL
SELECT 'lost events' AS what, count(*) AS n, min(host) AS for_example FROM runs WHERE day = :day AND (lost_events > 0 OR truncated)
UNION ALL
SELECT 'missing' AS what, count(*) AS n, min(a.host) AS for_example FROM
  (SELECT DISTINCT host FROM runs WHERE day = :before) a LEFT JOIN (SELECT DISTINCT host FROM runs WHERE day = :day) b ON a.host = b.host
WHERE b.host IS NULL
ORDER BY what;
