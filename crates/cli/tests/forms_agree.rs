//! Any form, one answer: a recording and its own text, wrapped or not, from a file or a pipe. That a recording and its
//! text agree is in `crates/session/tests/corpus/forms_agree.rs`.

use std::io::Write;
use std::path::Path;

use crate::common::{Failures, json, read, run_with};
use serde_json::Value;

/// All tables of exits of a file, and of bytes on standard input.
const TABLES: [&str; 2] = ["--event", "vmexit,ioport,mmio,msr"];

fn exits(path: &Path) -> Result<Value, String> {
    json(&["exits", TABLES[0], TABLES[1]], path)
}

/// Leaves out what names the input.
fn answer(mut document: Value) -> Value {
    if let Some(document) = document.as_object_mut() {
        document.remove("inputs");
    }
    document
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn wrapping_and_pipes_change_nothing() {
    let mut failures = Failures::default();
    let recordings = [
        "vmx/tiny-irqchip/perf.data.kvmstat.zst",
        "vmx/tiny-irqchip/trace.dat",
        "x86/format-variants/pipe.perf.data.zst",
        "x86/format-variants/compressed.perf.data.zst",
        "x86/format-variants/v6.dat.zst",
        "arm64/virtio-mmio/boot1/trace.dat.zst",
    ];
    let mut inputs = Vec::new();
    for name in recordings {
        let case = crate::common::case(name);
        for reference in ["script", "report"] {
            if let Some(path) = case.references.get(reference) {
                inputs.push((format!("{name} as text"), path.clone()));
            }
        }
        inputs.push((name.to_owned(), case.path));
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (what, path) in inputs {
        let bytes = read(&path);
        let expected = match exits(&path) {
            Ok(document) => answer(document),
            Err(error) => {
                failures.check(false, || format!("{what}: {error}"));
                continue;
            }
        };
        for (how, wrapped) in [
            ("plain", bytes.clone()),
            ("gzip", gzip(&bytes)),
            ("zstd", zstd(&bytes)),
            ("zstd in gzip", gzip(&zstd(&bytes))),
        ] {
            // The name says nothing: readers are chosen by content.
            let file = folder.path().join("recording.txt");
            std::fs::write(&file, &wrapped).expect("a written file");
            let from_file = exits(&file).map(answer);
            failures.equal(&format!("{what}, {how}"), &from_file, &Ok(expected.clone()));
            let args = ["exits", "-", "--format", "json", TABLES[0], TABLES[1]];
            let piped = run_with(args, &wrapped).json().map(answer);
            failures.equal(
                &format!("{what}, {how} from a pipe"),
                &piped,
                &Ok(expected.clone()),
            );
        }
    }
    failures.finish(80);
}
