//! Results of benchmarks side by side, and damaged ones.

use fixtures::bench_results::ipi_result;
use fixtures::json::{list, number};
use render::bench_compare;
use results::{BenchResults, read};

#[test]
fn results_stand_side_by_side() {
    // An IPI in a guest of 72 vCPUs, measured by a kernel module: to one CPU of the same node and of another.
    let sides = [
        ("default", &[("same node", 2300), ("other node", 6658)][..]),
        ("haltpoll", &[("same node", 1150), ("other node", 6658)]),
        ("idle=poll", &[("same node", 460)]),
    ];
    let files = sides.map(|(name, _)| format!("{name}.json"));
    let sides =
        sides.map(|(name, rows)| read(ipi_result(name, rows).as_bytes()).expect("a result"));
    let found = compare::results(&sides).expect("a comparison");
    let text = bench_compare::text(&found, &sides, &files, 80);
    assert!(text.contains("default"), "{text}");
    assert!(
        text.contains("! cpuidle governor: A default; B haltpoll; C idle=poll"),
        "{text}"
    );
    for part in [
        "2.300us",
        "1.150us  0.50x",
        "460ns  0.20x",
        "6.658us  1.00x",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );

    let document = bench_compare::document(&found, &sides, &files);
    let document = serde_json::to_value(document).expect("a document");
    assert_eq!(document["bench"], "ipi");
    let rows = list(&document["rows"]);
    let row = |what: &str, stat: &str| {
        let found = rows
            .iter()
            .find(|row| row["what"] == what && row["stat"] == stat);
        found.expect("a row")["sides"].clone()
    };
    let p50 = row("same node", "p50");
    assert_eq!(number(&p50[2], "value_ns"), 460);
    assert_eq!(p50[2]["ratio"], 0.2);
    assert!(row("other node", "first")[2]["value_ns"].is_null());
    let changes = list(&document["changes"]);
    let first = &changes[0];
    assert_eq!(first["what"], "same node, idle: first");
    assert_eq!(first["side"], "B");
    assert_eq!(
        (&first["a"], &first["delta"]),
        (&23_000.into(), &(-11_500).into())
    );
    for name in ["b", "ratio", "confidence", "text"] {
        assert!(first.get(name).is_some(), "{name}");
    }

    let csv = bench_compare::csv(&found);
    assert!(csv.starts_with("what,target,from,to,stat,A_ns,B_ns,B ratio,C_ns,C ratio\n"));
    assert!(
        csv.contains("same node,idle,,,p50,2300,1150,0.5,460,0.2\n"),
        "{csv}"
    );
    assert!(
        csv.contains("other node,idle,,,p50,6658,6658,1,,\n"),
        "{csv}"
    );
}

#[test]
fn damaged_results_are_errors() {
    let text = ipi_result("good", &[("same node", 2300)]);
    let good = read(text.as_bytes()).expect("a result");
    let error = |text: &[u8]| read(text).expect_err("it is damaged").to_string();
    for cut in (0..text.len() - 3).step_by(97) {
        error(&text.as_bytes()[..cut]);
    }
    assert!(
        error(&text.as_bytes()[..1000]).contains("is no whole result of 'trapline bench' (EOF")
    );
    let later = text.replace("\"result_version\": 1", "\"result_version\": 7");
    assert!(error(later.as_bytes()).contains("is a result of version 7"));
    let negative = text.replace("\"p50_ns\": 2300", "\"p50_ns\": -1");
    assert!(error(negative.as_bytes()).contains("is no whole result"));
    let deep = format!("{{\"command\": \"bench\", \"x\": {}", "[".repeat(100_000));
    assert!(error(deep.as_bytes()).contains("is no whole result"));
    // Whatever is in it, nothing panics.
    let mut read_again = 0;
    for at in (0..text.len()).step_by(53) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 0x15;
        if let Ok(odd) = read(&bytes) {
            let sides: [BenchResults; 2] = [good.clone(), odd];
            if let Ok(found) = compare::results(&sides) {
                let files = ["good.json", "odd.json"].map(str::to_owned);
                assert!(!bench_compare::text(&found, &sides, &files, 80).is_empty());
            }
            read_again += 1;
        }
    }
    assert!(read_again > 3, "{read_again}");
}
