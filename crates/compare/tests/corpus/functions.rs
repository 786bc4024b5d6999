//! Comparisons of what was sampled: a made-up host whose threads run in bursts, the same again and changed, and halves
//! of real recordings.

use fixtures::made_folder::MadeFolder;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use compare::{CompareOptions, ComparedSide, Comparison};
use serde_json::Value;
use session::{Filters, PictureOptions, Session};

use crate::{document as compared, groups, said};
use fixtures::file;
use fixtures::json::{list, text};
use fixtures::perf_data;
use fixtures::random::Random;

/// Threads, how often each begins to run (of a thousand), and the functions that it is in, innermost first.
type Work<'w> = (&'w str, u32, u64, &'w [&'w str]);

const WORKER: &[&str] = &["handle_tx", "vhost_worker", "kthread", "ret_from_fork"];
const SENDER: &[&str] = &["copy_data", "tcp_sendmsg", "do_syscall_64"];
const OTHER: &[&str] = &["memcpy_all", "do_syscall_64"];
const WRITER: &[&str] = &["tun_get_user", "tun_chr_write_iter", "do_syscall_64"];

/// Records 8 s of two CPUs with a sample every 2 ms. What runs goes on for up to 60 ms.
fn record(folder: &MadeFolder, name: &str, seed: u64, work: &[Work<'_>]) -> PathBuf {
    let mut random = Random(seed);
    let mut functions: Vec<&str> = work.iter().flat_map(|one| one.3).copied().collect();
    functions.sort_unstable();
    let mut lines = String::new();
    let mut now: [Option<(usize, u64)>; 2] = [None; 2];
    for tick in 0..4000u64 {
        for (cpu, runs) in now.iter_mut().enumerate() {
            *runs = match *runs {
                Some((one, left)) if left > 0 => Some((one, left - 1)),
                _ => {
                    let mut drawn = random.below(1000);
                    let chosen = work.iter().position(|one| {
                        let its = drawn < one.2;
                        drawn = drawn.saturating_sub(one.2);
                        its
                    });
                    chosen.map(|one| (one, random.below(30)))
                }
            };
            let us = 10_000_000 + tick * 2000 + cpu as u64;
            let stamp = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            let (comm, tid, stack) = match *runs {
                Some((one, _)) => (work[one].0, work[one].1, work[one].3),
                None => ("swapper", 0, &["default_idle"][..]),
            };
            writeln!(
                lines,
                "{comm} {tid}/{tid} [{cpu:03}] {stamp}: 2000000 cpu-clock:"
            )
            .unwrap();
            for function in stack {
                let at = functions.binary_search(function).unwrap_or(functions.len());
                let at = 0xffff_ffff_8100_0020 + 0x1000 * at as u64;
                writeln!(lines, "\t{at:x} {function}+0x20 ([kernel.kallsyms])").unwrap();
            }
        }
    }
    folder.write(name, perf_data::write(&lines, true).bytes)
}

fn usual() -> Vec<Work<'static>> {
    vec![
        ("iperf", 4001, 60, SENDER),
        ("vhost-1781", 1790, 40, WORKER),
        ("other", 4002, 30, OTHER),
    ]
}

#[test]
fn the_same_again_is_no_news() {
    let folder = MadeFolder::new();
    let mut wrong = Vec::new();
    for pair in 0..20u64 {
        let a = record(&folder, "a", 2 * pair + 1, &usual());
        let b = record(&folder, "b", 2 * pair + 2, &usual());
        wrong.extend(said(&compared(&a, &b), "changes"));
    }
    // One comparison in a hundred may have something at 0.99, of which a family is one.
    assert!(wrong.len() <= 1, "{wrong:#?}");
    let a = record(&folder, "a", 1, &usual());
    let document = compared(&a, &a);
    assert!(
        said(&document, "changes").is_empty(),
        "{:#?}",
        said(&document, "changes")
    );
}

/// A back end moves from a thread of the VMM's to a worker of the kernel's, as from virtio-net in QEMU to vhost-net.
#[test]
fn work_that_moved_is_reported_by_its_innermost_function() {
    let folder = MadeFolder::new();
    let before = vec![
        ("qemu-system-x86", 1781, 80, WRITER),
        ("iperf", 4001, 40, SENDER),
        ("other", 4002, 30, OTHER),
    ];
    let after = vec![
        ("vhost-1781", 1790, 40, WORKER),
        ("iperf", 4001, 40, SENDER),
        ("other", 4002, 30, OTHER),
    ];
    let a = record(&folder, "a", 71, &before);
    let b = record(&folder, "b", 72, &after);
    let document = compared(&a, &b);
    let changes = list(&document["changes"]);
    let whats: Vec<String> = changes.iter().map(|change| text(&change["what"])).collect();
    // Callers, the threads, and what a function took itself are not reported again; what went on is not reported at
    // all.
    assert_eq!(
        whats,
        ["cpu function tun_get_user", "cpu function handle_tx"],
        "{:#?}",
        said(&document, "changes")
    );
    let first = &changes[0];
    assert_eq!(first["unit"], "ns");
    assert_eq!(first["b"], Value::Null);
    let sentence = text(&first["text"]);
    assert!(
        sentence.starts_with("tun_get_user in qemu-system-x86 took "),
        "{sentence}"
    );
    assert!(sentence.contains("% of a CPU less: "), "{sentence}");
    // What the samples say by themselves: each is 2 ms.
    let samples: u64 = sentence
        .split_once("by ")
        .and_then(|(_, rest)| rest.split_once(" and "))
        .and_then(|(count, _)| count.parse().ok())
        .unwrap();
    let seconds = 3999.0 * 0.002 + 0.000_001;
    let expected = samples as f64 * 2e6 / seconds;
    let rate = first["a"].as_f64().unwrap();
    assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} {expected}");
}

/// What differs from run to run is no news, though each of the runs would be beside another.
#[test]
fn runs_that_differ_are_noise() {
    let folder = MadeFolder::new();
    let of = |name: &str, often: u64| {
        let mut work = usual();
        work[0].2 = often;
        record(&folder, name, often, &work)
    };
    let a = [("a1", 30), ("a2", 120), ("a3", 60)].map(|(name, often)| of(name, often));
    let b = [("b1", 140), ("b2", 25), ("b3", 75)].map(|(name, often)| of(name, often));
    let news = said(&compared(&a[0], &b[0]), "changes");
    assert!(
        news.iter().any(|one| one.starts_with("copy_data in iperf")),
        "{news:#?}"
    );
    let news = said(&groups(&a, &b), "changes");
    assert!(news.is_empty(), "{news:#?}");
}

#[test]
fn what_has_no_samples_or_no_names_is_not_compared() {
    let folder = MadeFolder::new();
    let a = record(&folder, "a", 1, &usual());
    let b = file("x86/format-variants/v7.dat.zst");
    let document = compared(&a, &b);
    let notes: Vec<String> = list(&document["notes"]).iter().map(text).collect();
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("Functions are not compared: B")),
        "{notes:#?}"
    );
    let l2 = file("x86/flame-iperf3/l2/perf.data.zst");
    let document = compared(&a, &l2);
    let notes: Vec<String> = list(&document["notes"]).iter().map(text).collect();
    assert!(
        notes.iter().any(|note| note.contains("(--kallsyms)")),
        "{notes:#?}"
    );
    let whats = list(&document["changes"]).iter();
    let whats: Vec<String> = whats.map(|change| text(&change["what"])).collect();
    assert!(
        whats.iter().all(|what| !what.contains("vhost_worker")),
        "{whats:#?}"
    );
}

/// Compares parts of recordings, as the program does.
fn parts(sides: [(&Path, Option<&str>); 2], symbols: Option<&Path>) -> Comparison {
    let pictures = sides.map(|(path, time)| {
        let options = session::SessionOptions {
            kallsyms: symbols.map(Path::to_owned),
            filters: Filters {
                time: time.map(|time| time.parse().unwrap()),
                ..Filters::default()
            },
            ..session::SessionOptions::default()
        };
        let session = Session::open(options).unwrap();
        let all = session.pictures(&[path.to_owned()], &PictureOptions::to_compare());
        all.unwrap()
    });
    let nothing = rules::Diagnosis::default();
    let [a, b] = [&pictures[0], &pictures[1]].map(|pictures| ComparedSide {
        pictures,
        diagnosis: &nothing,
    });
    compare::compare(a, b, None, CompareOptions::default()).unwrap()
}

/// Real recordings of the corpus beside the repository.
#[test]
fn the_corpus_has_case_4_and_no_news_of_itself() {
    let Some(corpus) = std::env::var_os("TRAPLINE_CORPUS") else {
        return;
    };
    let corpus = Path::new(&corpus);
    let of = |name: &str| corpus.join("arm64").join(name);
    let [virtio, vhost] = [
        of("virtio-mmio/boot2-vsock/perf.data.kvm.zst"),
        of("vhost-mmio/boot2-vsock/perf.data.kvm"),
    ];
    let moved = parts([(&virtio, None), (&vhost, None)], None);
    let whats: Vec<&str> = moved.changes.iter().map(|one| one.what.as_str()).collect();
    assert!(whats.contains(&"cpu thread vhost"), "{whats:?}");
    for path in [&virtio, &vhost] {
        let same = parts([(path, None), (path, None)], None);
        assert!(same.changes.is_empty() && same.likely.is_empty());
    }
    // Both halves of a load that goes on evenly.
    let whole = corpus.join("x86/flame-iperf3/l1.perf.data");
    let session = Session::open(session::SessionOptions::default()).unwrap();
    let pictures = session.pictures(std::slice::from_ref(&whole), &PictureOptions::default());
    let info = &pictures.unwrap()[0].info;
    let (start, end) = (info.start.unwrap(), info.end.unwrap());
    let stamp = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let half = start + (end - start) / 2;
    let [first, second] =
        [(start, half), (half + 1, end)].map(|(from, to)| format!("{},{}", stamp(from), stamp(to)));
    let halves = parts([(&whole, Some(&first)), (&whole, Some(&second))], None);
    let texts: Vec<&str> = halves.changes.iter().map(|one| one.text.as_str()).collect();
    assert!(texts.is_empty(), "{texts:#?}");
}
