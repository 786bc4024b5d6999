//! Maps and distributions of `bpftrace` and bcc's tools, and SystemTap's times of exits.

use std::path::Path;

use perftables::{CountPrinter, KvmStatPrinter, PerfTable, PrintedDistribution, read};

fn tables(name: &str) -> Vec<PerfTable> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    read(&std::fs::read(folder.join(name)).unwrap()).0
}

fn distribution(name: &str) -> PrintedDistribution {
    match <[PerfTable; 1]>::try_from(tables(name)) {
        Ok([PerfTable::Distribution(table)]) => table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn percentiles_lie_between_bounds() {
    let table = distribution("runqlat.txt");
    assert_eq!((table.name.as_str(), table.count()), ("usecs", 2220));
    assert_eq!(table.printer(), CountPrinter::Bcc);
    let bounds = |share: f64| {
        let bucket = table.bucket_of(share).expect("values");
        (bucket.from, bucket.below)
    };
    assert_eq!(bounds(0.5), (4, Some(8)));
    assert_eq!(bounds(0.99), (16384, Some(32768)));
    let table = distribution("bpftrace-hist.txt");
    assert_eq!((table.name.as_str(), table.count()), ("@ns[HLT]", 628));
    assert_eq!(table.printer(), CountPrinter::Bpftrace);
    let last = table
        .bucket_of(1.0)
        .map(|bucket| (bucket.from, bucket.below));
    assert_eq!(last, Some((1 << 20, Some(2 << 20))));
}

#[test]
fn bounds_of_linear_distributions_are_open() {
    let text = "@us: \n(..., 0)   1 |@  |\n[0, 10)     5 |@@@@@@  |\n[10, 20)    2 |@@ |\n[20, ...)   1 |@ |\n";
    let (tables, _) = read(text.as_bytes());
    let [PerfTable::Distribution(table)] = &tables[..] else {
        panic!("{tables:?}");
    };
    assert_eq!(table.count(), 9);
    assert_eq!(table.bucket_of(1.0).map(|bucket| bucket.below), Some(None));
}

#[test]
fn keys_of_maps_stay_as_they_are() {
    let [PerfTable::KvmTotals(table)] = &tables("bpftrace-reasons.txt")[..] else {
        panic!("a table");
    };
    assert_eq!(table.printer, CountPrinter::Bpftrace);
    assert_eq!(
        (table.rows[1].event.as_str(), table.rows[1].total),
        ("@[CPU 1/KVM, HLT]", 1447)
    );
    // The command says what the keys are.
    let [PerfTable::KvmTotals(table)] = &tables("bpftrace-numbers.txt")[..] else {
        panic!("a table");
    };
    assert_eq!(table.rows[0].event, "@exit_reason[12]");
    for text in [
        "@alice: 3\n",
        "@bob: see [1]: 4\n@[a]: x\n",
        "mail to user@host: 3\nx@[y]: 4\n",
    ] {
        assert_eq!(read(text.as_bytes()).0, [], "{text}");
    }
}

#[test]
fn systemtap_has_times_by_number() {
    let [PerfTable::KvmStat(table)] = &tables("kvm_service_time-amd.txt")[..] else {
        panic!("a table");
    };
    assert_eq!(
        (table.printer, table.machine.as_deref()),
        (KvmStatPrinter::ServiceTime, Some("SVM"))
    );
    let row = &table.rows[2];
    assert_eq!((row.unknown_code, row.count), (Some(0x7b), 40011));
    assert_eq!(
        (row.total_ns, row.min_ns, row.max_ns),
        (280_077_000, Some(4_000), Some(331_000))
    );
}

/// Whatever is cut off or put in, nothing panics and tables stay in their text.
#[test]
fn damaged_texts_are_read_as_far_as_they_go() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for form in perftables::forms() {
        for file in form.fixtures {
            let text = std::fs::read(folder.join(file)).unwrap();
            for at in (0..text.len()).step_by(7) {
                let mut cut = text[..at].to_vec();
                assert!(
                    perftables::read_placed(&cut)
                        .0
                        .iter()
                        .all(|one| one.last_line >= 1)
                );
                cut.extend_from_slice("18446744073709551615\u{e9}[".as_bytes());
                cut.extend_from_slice(&text[at..text.len().min(at + 400)]);
                read(&cut);
            }
        }
    }
}
