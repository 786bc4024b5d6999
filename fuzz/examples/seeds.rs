//! Writes what the fuzzers begin with: small recordings of every kind, made of those that the repository
//! ships.

#[path = "../../crates/source/tests/support/seeds.rs"]
mod seeds;
#[path = "../../crates/source/tests/support/trim_dat.rs"]
mod trim_dat;
#[path = "../../crates/source/tests/support/trim_perf.rs"]
mod trim_perf;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use trim_dat::Dat;

/// The first record of each event.
#[derive(Default)]
struct Records(BTreeMap<u32, Vec<u8>>);

impl tracedat::TraceVisitor for Records {
    fn record(&mut self, record: &tracedat::RingRecord<'_>) -> ControlFlow<()> {
        let data = || record.data.to_vec();
        self.0.entry(record.id).or_insert_with(data);
        ControlFlow::Continue(())
    }
}

/// Texts of hosts, beside recordings.
const TEXTS: [&str; 5] = [
    "x86/format-variants/l1-ps.txt",
    "x86/format-variants/l1-ps-kthreads.txt",
    "x86/format-variants/a-info-cpus.txt",
    "x86/format-variants/a-info-mtree.txt",
    "arm64/two-guests-mmio/ps-before.txt",
];

/// Domains of libvirt.
const DOMAINS: [&str; 8] = [
    "arm64.xml",
    "comments.xml",
    "hyperv.xml",
    "minimal.xml",
    "one-line.xml",
    "qemu-commandline.xml",
    "tabs-crlf.xml",
    "windows.xml",
];

fn write(target: &str, number: usize, bytes: &[u8]) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("seed-{number:04}")), bytes)
}

fn main() -> io::Result<()> {
    let mut formats = 0;
    for (number, seed) in seeds::seeds().iter().enumerate() {
        let bytes = seed.bytes.as_slice();
        write("recording", number, bytes)?;
        if perfdata::is_perf_data(bytes) {
            write("perfdata", number, bytes)?;
        } else if tracedat::is_trace_dat(bytes) {
            write("tracedat", number, bytes)?;
            if let (Some(dat), Ok(file)) = (Dat::read(bytes), tracedat::TraceDat::parse(bytes)) {
                let mut records = Records::default();
                file.walk(&[], &mut records);
                for (id, text) in dat.formats() {
                    let record = records.0.get(&id).map_or(&[][..], Vec::as_slice);
                    let kvm: u8 = 4;
                    write("format", formats, &[&[kvm], text, &[0], record].concat())?;
                    formats += 1;
                }
            }
        } else if std::str::from_utf8(bytes).is_ok() {
            write("tracetext", number, &[b"\x08", bytes].concat())?;
        }
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for (number, name) in TEXTS.iter().enumerate() {
        write("facts", number, &fs::read(corpus.join(name))?)?;
    }
    // A small program of this machine, which few are without.
    if let Ok(program) = fs::read("/bin/true") {
        write("binaries", 0, &program)?;
    }
    for (number, name) in DOMAINS.iter().enumerate() {
        let text = fs::read(corpus.join("../crates/domain/tests/domains").join(name))?;
        // Each with each change of the target, one way and the other.
        for pick in (0..25).flat_map(|change| [change, change | 0x80]) {
            write(
                "domain",
                number * 256 + usize::from(pick),
                &[&[pick], &text[..]].concat(),
            )?;
        }
    }
    Ok(())
}
