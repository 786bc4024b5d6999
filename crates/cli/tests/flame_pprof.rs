//! Stacks as a profile of pprof's, read back by pprof itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{all_cases, note, run, tools_are_required};

/// pprof's program, of google/pprof.
const PPROF: &str = "TRAPLINE_PPROF";

/// Weights by stack, outermost frame first.
type WeightedStacks = BTreeMap<String, u64>;

/// Returns what pprof prints of a file with its parameters.
fn pprof(program: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program)
        .args(arguments)
        .arg(file)
        .env("PPROF_TMPDIR", file.parent().expect("a folder"))
        .output()
        .expect("pprof");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Reads the samples and locations that `pprof -raw` prints.
fn of_raw(raw: &str) -> WeightedStacks {
    let (before, locations) = raw.split_once("\nLocations\n").expect("locations");
    let (locations, _) = locations.split_once("\nMappings").expect("mappings");
    let names: BTreeMap<&str, String> = locations
        .lines()
        .filter_map(|line| {
            // `     2: 0x0 M=1 vmx_vcpu_run :0:0 s=0`.
            let (id, rest) = line.trim_start().split_once(": 0x0 ")?;
            let rest = match rest.strip_prefix("M=") {
                Some(rest) => rest.split_once(' ')?.1,
                None => rest,
            };
            let (name, _) = rest.rsplit_once(" :0")?;
            Some((id, name.to_owned()))
        })
        .collect();
    let (_, samples) = before.split_once("Samples:\n").expect("samples");
    let mut all = WeightedStacks::new();
    for line in samples.lines().skip(1) {
        let (values, frames) = line.split_once(": ").expect("values and frames");
        let amount = values.split_whitespace().nth(1).expect("two values");
        let mut frames: Vec<&str> = frames
            .split_whitespace()
            .map(|id| names[id].as_str())
            .collect();
        frames.reverse();
        *all.entry(frames.join(";")).or_default() += amount.parse::<u64>().expect("a number");
    }
    all
}

fn of_folded(text: &str) -> WeightedStacks {
    let mut all = WeightedStacks::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        *all.entry(stack.to_owned()).or_default() += weight.parse::<u64>().expect("a number");
    }
    all
}

#[test]
fn pprof_reads_the_stacks_that_folded_text_has() {
    let Ok(program) = std::env::var(PPROF) else {
        assert!(!tools_are_required(), "{PPROF} is not set");
        return note("SKIPPED: pprof is not here");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mut read = 0;
    for case in all_cases() {
        let path = case.path.to_str().expect("a plain name");
        let written = run(["flame", path, "-o", &at("x.pb.gz")]);
        if written.status != 0 {
            continue;
        }
        assert_eq!(run(["flame", path, "-o", &at("x.folded")]).status, 0);
        let raw = pprof(&program, &["-raw"], Path::new(&at("x.pb.gz")));
        let folded = fs::read_to_string(at("x.folded")).expect("it is written");
        assert_eq!(of_raw(&raw), of_folded(&folded), "{}", case.name);
        read += 1;
        if read == 12 {
            break;
        }
    }
    assert!(read > 0, "no recording has samples");
}

#[test]
fn folded_text_becomes_a_profile_and_a_difference_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("a.folded");
    fs::write(&text, "a;b 3\n").expect("a file");
    let out = folder.path().join("x.pprof");
    let [text, out] = [&text, &out].map(|path| path.to_str().expect("a plain name"));
    assert_eq!(run(["flame", text, "-o", out]).status, 0);
    // It is packed by gzip.
    assert!(
        fs::read(out)
            .expect("it is written")
            .starts_with(b"\x1f\x8b")
    );
    let cases = all_cases();
    let mut paths = cases
        .iter()
        .map(|case| case.path.to_str().expect("a plain name"));
    let sampled = paths.find(|path| run(["flame", path, "-o", out]).status == 0);
    let sampled = sampled.expect("a recording with samples");
    let refused = run(["flame", sampled, "--diff", sampled, "-o", out]);
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("diff_base"), "{}", refused.stderr);
}
