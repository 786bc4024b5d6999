//! `trapline sql` and `trapline fleet`: the engine has the answers that commands print, changes nothing, and goes on
//! where a file is broken. The engine is a program of its own (`fleet/`), which `TRAPLINE_FLEET` names.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::stores::{asked, engine};
use crate::common::{Failures, file, json, run};

/// Fills a store: 12 hosts on three days, of which two are sick on the last.
fn fleet(store: &Path, days: &[&str]) {
    let healthy = [
        "console-healthy",
        "preempted-healthy",
        "timer-storm-healthy",
    ];
    for (number, day) in days.iter().enumerate() {
        for host in 0..12 {
            let sick = number + 1 == days.len() && host < 2;
            let name = if sick {
                "timer-storm-sick"
            } else {
                healthy[host % 3]
            };
            let recording = file(&format!("x86/{name}/perf.data.zst"));
            let host = format!("host-{host:02}");
            let done = run([
                "export",
                "--as",
                "parquet",
                "--detail",
                "--day",
                day,
                "--host",
                &host,
                "--label",
                "role=web",
                "-o",
                &store.display().to_string(),
                &recording.display().to_string(),
            ]);
            assert_eq!(done.status, 0, "{}", done.stderr);
        }
    }
}

/// Returns CSV with nine digits of numbers that are not whole: an engine adds up in an order that threads decide, and
/// the last digits with it.
fn rounded(csv: &str) -> String {
    let cell = |cell: &str| match cell.parse::<f64>() {
        Ok(number) if cell.contains('.') => format!("{number:.8e}"),
        _ => cell.to_owned(),
    };
    let line = |line: &str| line.split(',').map(cell).collect::<Vec<_>>().join(",");
    csv.lines().map(|one| line(one) + "\n").collect()
}

/// Holds what the fleet of 12 hosts and 3 days is asked against what is kept of it in `tests/sql`, but for where the
/// recordings are. `TRAPLINE_WRITE_GOLDEN=1` writes it again.
fn is_kept(name: &str, text: &str, failures: &mut Failures) {
    let corpus = fixtures::shipped();
    let corpus = corpus.canonicalize().expect("the corpus");
    let text = text.replace(&corpus.display().to_string(), "corpus");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sql")
        .join(name);
    if std::env::var_os("TRAPLINE_WRITE_GOLDEN").is_some() {
        fs::create_dir_all(kept.parent().expect("a folder")).expect("made");
        fs::write(&kept, &text).expect("written");
    }
    let before = fs::read_to_string(&kept).unwrap_or_default();
    failures.check(before == text, || {
        format!("{name} is\n{text}\nand was\n{before}\nTRAPLINE_WRITE_GOLDEN=1 writes it again")
    });
}

/// What SQL says of a recording is what the commands print of it.
#[test]
fn answers_are_those_of_the_commands() {
    let Some(engine) = engine() else { return };
    let recording = file("x86/preempted-sick/perf.data.zst");
    let path = recording.to_str().expect("a path");
    let sql = "SELECT tid, runnable_ns, exits FROM vcpus ORDER BY tid";
    let answer = asked(&engine, &["sql", "--json", sql, path])
        .json()
        .expect("an answer");
    let mut printed = json(&["vcpus"], &recording).expect("vCPUs")["rows"].clone();
    let printed = printed.as_array_mut().expect("rows");
    printed.sort_by_key(|row| row["tid"].as_i64());
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), printed.len());
    for (row, printed) in rows.iter().zip(printed) {
        for column in ["tid", "runnable_ns", "exits"] {
            assert_eq!(row[column], printed[column], "{column}");
        }
    }
    // Single things are there where the question is about them, and their sums are the same.
    let sql = "SELECT sum(duration_ns) AS ns FROM spans WHERE state = 'runnable'";
    let answer = asked(&engine, &["sql", "--json", sql, path])
        .json()
        .expect("an answer");
    let all: i64 = rows
        .iter()
        .filter_map(|row| row["runnable_ns"].as_i64())
        .sum();
    assert_eq!(answer["rows"][0]["ns"], Value::from(all));
    assert_eq!(answer["quality"]["lost_events"], Value::from(0));
}

/// All questions have an answer, sums of spans are those of vCPUs, the screen is one, and the sick hosts are on it.
#[test]
fn a_fleet_has_its_screen_and_its_questions() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    fleet(&store, &["2026-11-09", "2026-11-16", "2026-11-23"]);
    let path = store.to_str().expect("a path");
    let mut failures = Failures::default();
    for number in 1..=12 {
        let number = number.to_string();
        let csv = asked(&engine, &["sql", "--question", &number, "--csv", path]).text();
        let name = format!("question-{number}.csv");
        is_kept(&name, &rounded(&csv), &mut failures);
        let done = asked(&engine, &["sql", "--question", &number, "--json", path]);
        let answer = done
            .json()
            .unwrap_or_else(|error| panic!("question {number}: {error}"));
        assert_eq!(answer["recordings"], Value::from(36), "question {number}");
        for row in answer["rows"].as_array().expect("rows") {
            if row["what"] == "sum differs" {
                assert_eq!(row["n"], Value::from(0), "sums of spans differ from vcpus");
            }
        }
    }
    let screen = asked(&engine, &["fleet", path]);
    assert_eq!(screen.status, 0, "{}", screen.stderr);
    let text = screen.text();
    assert!(text.lines().count() <= 40, "{text}");
    is_kept("screen.txt", &text.replace(path, "fleet"), &mut failures);
    failures.finish(13);
    assert!(
        text.contains("timer-interrupt-storm: 2 of 12, 2 came"),
        "{text}"
    );
    assert!(text.contains("trapline report"), "{text}");
    let document = asked(&engine, &["fleet", "--json", path])
        .json()
        .expect("a document");
    assert_eq!(document["coverage"]["hosts"], Value::from(12));
    assert_eq!(document["coverage"]["missing"], Value::Array(Vec::new()));
    assert_eq!(
        document["outliers"],
        Value::Array(Vec::new()),
        "healthy hosts are alike"
    );
    let open = document["to_open"].as_array().expect("recordings");
    assert!(open.iter().any(|one| {
        one["input"]
            .as_str()
            .is_some_and(|input| input.contains("storm-sick"))
    }));

    // The page is one file, in which names are no markup.
    let page = folder.path().join("fleet.html");
    let written = asked(
        &engine,
        &["fleet", "-o", page.to_str().expect("a path"), path],
    );
    assert_eq!(written.status, 0, "{}", written.stderr);
    let page = fs::read_to_string(page).expect("a page");
    for part in [
        "<h1>Fleet, 2026-11-23",
        "timer-interrupt-storm",
        "trapline report",
        "FROM findings",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("://"), "it asks nobody for anything");

    // A file that is cut off, and a recording without its row, are named and left out; the others answer.
    let day = store.join("vcpus/day=2026-11-23");
    let cut = fs::read_dir(&day)
        .expect("files")
        .next()
        .expect("one")
        .expect("a file")
        .path();
    let bytes = fs::read(&cut).expect("it is there");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    let sql = "SELECT count(DISTINCT run) AS runs FROM vcpus WHERE day = '2026-11-23'";
    let done = asked(&engine, &["sql", "--json", sql, path]);
    let answer = done.json().expect("an answer");
    assert_eq!(answer["left_out"][0]["why"], Value::from("it is cut off"));
    assert!(done.stderr.contains("it is cut off"), "{}", done.stderr);
    assert!(
        done.stderr.contains(
            cut.file_name()
                .and_then(|name| name.to_str())
                .expect("a name")
        )
    );
}

/// Two machines of one name are two hosts, each with its own name on the screen.
#[test]
fn hosts_of_one_name_are_known_by_their_machines() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let store = store.to_str().expect("a path");
    for (name, id) in [
        ("console-healthy", "aaaaaa0102030405060708090a0b0c0d"),
        ("preempted-healthy", "bbbbbb0102030405060708090a0b0c0d"),
        ("timer-storm-healthy", "aaaaaa0102030405060708090a0b0c0d"),
    ] {
        let facts = folder.path().join(format!("{name}.json"));
        let document = format!(r#"{{"facts_version":1,"host":{{"machine_id":"{id}"}}}}"#);
        fs::write(&facts, document).expect("written");
        let recording = file(&format!("x86/{name}/perf.data.zst"));
        let done = run([
            "export",
            "--as",
            "parquet",
            "--day",
            "2026-11-23",
            "--host",
            "web",
            "--facts",
            facts.to_str().expect("a path"),
            "-o",
            store,
            recording.to_str().expect("a path"),
        ]);
        assert_eq!(done.status, 0, "{}", done.stderr);
    }
    let sql = "SELECT machine_id, count(*) AS runs FROM runs GROUP BY machine_id ORDER BY 1";
    let answer = asked(&engine, &["sql", "--json", sql, store])
        .json()
        .expect("an answer");
    assert_eq!(
        answer["rows"][0]["machine_id"],
        "aaaaaa0102030405060708090a0b0c0d"
    );
    assert_eq!(answer["rows"][0]["runs"], 2);
    let document = asked(&engine, &["fleet", "--json", store])
        .json()
        .expect("a document");
    assert_eq!(document["coverage"]["hosts"], Value::from(2));
    assert_eq!(document["coverage"]["recordings"], Value::from(3));
    let screen = asked(&engine, &["fleet", store]).text();
    assert!(screen.contains("web is the name of 2 machines"), "{screen}");
    let limits = document["limits"].to_string();
    assert!(limits.contains("web (aaaaaa), web (bbbbbb)"), "{limits}");
}

/// However the engine holds texts, functions take them: those of columns, and the day, which folders say.
#[test]
fn texts_and_days_are_what_functions_take() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    fleet(&store, &["2026-11-16", "2026-11-23"]);
    let path = store.to_str().expect("UTF-8");
    let mut failures = Failures::default();
    for (sql, answer) in [
        ("substr(max(day), 1, 7)", "2026-11"),
        ("max(day) || ' ' || min(host)", "2026-11-23 host-00"),
        ("max(CAST(day AS DATE))", "2026-11-23"),
        (
            "date_trunc('month', max(to_timestamp(day)))",
            "2026-11-01T00:00:00",
        ),
        ("approx_distinct(day) + approx_distinct(host)", "14"),
        ("count(DISTINCT left(host, 4)) + length(max(day))", "11"),
        (
            "sum(CASE WHEN day > '2026-11-20' AND host LIKE '%-0_' THEN 1 ELSE 0 END)",
            "10",
        ),
        (
            "count(DISTINCT CASE WHEN day IN ('2026-11-16') THEN day ELSE host END)",
            "13",
        ),
        (
            "max(upper(replace(day, '-', coalesce(role, 'x'))))",
            "2026WEB11WEB23",
        ),
    ] {
        let csv = asked(
            &engine,
            &[
                "sql",
                &format!("SELECT {sql} AS x FROM runs"),
                "--csv",
                path,
            ],
        );
        let last = csv.text().lines().nth(1).map(str::to_owned);
        failures.equal(sql, &last.as_deref(), &Some(answer));
    }
    failures.finish(9);
}

/// What is not known stands last, whichever way rows are ordered: who asks for the largest gets numbers.
#[test]
fn nulls_stand_last() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    fleet(&store, &["2026-11-23"]);
    let path = store.to_str().expect("UTF-8");
    let mut failures = Failures::default();
    for order in ["", "DESC"] {
        let sql = format!(
            "SELECT CASE WHEN host < 'host-03' THEN host END AS x FROM runs ORDER BY x {order}"
        );
        let csv = asked(&engine, &["sql", &sql, "--csv", path]).text();
        let known: Vec<bool> = csv.lines().skip(1).map(|line| !line.is_empty()).collect();
        let expected: Vec<bool> = (0..12).map(|row| row < 3).collect();
        failures.equal(&sql, &known, &expected);
    }
    failures.finish(2);
}

/// SQL changes nothing, reads nothing else, and says what it does not understand.
#[test]
fn questions_change_nothing() {
    let Some(engine) = engine() else { return };
    let recording = file("vmx/tiny-irqchip/perf.data.zst");
    let path = recording.to_str().expect("a path");
    for (sql, why) in [
        ("CREATE TABLE t AS SELECT 1", "DDL"),
        ("INSERT INTO runs SELECT * FROM runs", "DML"),
        ("COPY runs TO '/tmp/x.csv'", "DML"),
        ("SET datafusion.execution.batch_size = 1", "Statement"),
        ("SELECT * FROM '/etc/passwd'", "not found"),
        ("SELECT nothing FROM vcpus", "nothing"),
        ("SELECT", "expression"),
    ] {
        let done = asked(&engine, &["sql", sql, path]);
        assert_eq!(done.status, 1, "{sql}: {}", done.text());
        assert!(done.stderr.contains(why), "{sql}: {}", done.stderr);
    }
    for args in [
        &["sql"][..],
        &["sql", "SELECT 1"],
        &["sql", "--question", "13", path],
        &["fleet", path],
    ] {
        assert_eq!(asked(&engine, args).status, 2, "{args:?}");
    }
    let tables = run(["sql", "--tables", "--csv"]).text();
    assert!(
        tables.contains("vcpus,runnable_ns,integer,ns,false"),
        "{tables}"
    );
}
