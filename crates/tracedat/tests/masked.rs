//! Files of both versions with what is private in them replaced: a walk gives the same numbers, options that stay have
//! no name in them, and all others are gone.

use crate::cut::{walk, with_stats};
use crate::writer::{FileSpec, Machine, Pack};
use ::salvage::SalvageOutlet;
use std::io;
use tracedat::{MaskableDat, TraceDat, TracePrivacyMask};

/// Keeps the new file.
#[derive(Default)]
struct MaskedFile(Vec<u8>);

impl SalvageOutlet for MaskedFile {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Replaces names by one letter, and keeps records.
struct LetterMask;

impl TracePrivacyMask for LetterMask {
    fn ring_record(&mut self, _: &mut [u8]) {}

    fn saved_names(&mut self, _: &[u8]) -> Vec<u8> {
        b"7 q\n".to_vec()
    }

    fn symbols(&mut self, _: &[u8]) -> Vec<u8> {
        Vec::new()
    }

    fn label(&mut self, _: &str) -> String {
        "q".to_owned()
    }

    fn version(&mut self, text: &str) -> String {
        match text.contains("secret") {
            true => "x".to_owned(),
            false => text.to_owned(),
        }
    }
}

fn masked(data: &[u8]) -> Option<(Vec<u8>, u64)> {
    let dat = MaskableDat::new(data, &mut |_| {}).ok()?.ok()?;
    let mut file = MaskedFile::default();
    let omitted = dat.write(&mut LetterMask, &mut file).expect("memory");
    Some((file.0, omitted))
}

/// Returns a file with a secret in each option that may have one.
fn with_secrets(machine: Machine) -> FileSpec {
    let mut spec = with_stats(machine)
        .option(2, "Buffer: secret-instance\n\0")
        .option(2, "CPU: 0\nentries: 7\nsecret: 1\noverrun: secret\n\0")
        .option(5, "Linux secret-host 6.1.0 x86_64\0")
        .option(6, "secret-hook\0")
        .option(9, "3.1.6 secret\0")
        .option(10, "secret /bin/secret\0")
        .option(99, "secret\0");
    spec.cmdlines = "7 secret\n".to_owned();
    spec.kallsyms = "ffffffff81000000 T secret\n".to_owned();
    spec
}

#[test]
fn records_stay_and_secrets_do_not() {
    for big in [false, true] {
        let machine = Machine {
            big,
            ..Machine::default()
        };
        let spec = with_secrets(machine);
        let mut packed = with_secrets(machine).pack(Pack::Zlib);
        packed.chunk = 2;
        for (what, data) in [
            ("v6", spec.v6()),
            ("v7", spec.v7()),
            ("packed", packed.v7()),
        ] {
            let (file, omitted) = masked(&data).expect("a file");
            let (before, ..) = walk(&data);
            let (after, end, truncated, reported) = walk(&file);
            assert!(!truncated && !end.truncated, "{what}: {reported:?}");
            assert_eq!(after, before, "{what}");
            assert!(omitted >= 4, "{what}: {omitted}");
            assert!(!file.windows(6).any(|w| w == b"secret"), "{what}");
            let new = TraceDat::parse(&file).expect("a whole file");
            let info = new.info();
            assert_eq!(info.uname.as_deref(), Some("Linux x 6.1.0 x86_64"));
            assert_eq!(info.recorder.as_deref(), Some("x"), "{what}");
            assert_eq!(new.formats().comm(7), Some("q"), "{what}");
            let counts = info.cpu_stats.last().expect("counts");
            assert_eq!((counts.entries, counts.buffer.as_str()), (7, "q"));
            let names = info.buffers.iter().map(|buffer| buffer.name.as_str());
            assert!(names.eq(["", "q"]), "{what}");
        }
    }
}

#[test]
fn a_file_that_is_cut_or_damaged_never_leads_to_a_panic() {
    for data in [
        with_secrets(Machine::default()).v6(),
        with_secrets(Machine::default()).v7(),
    ] {
        let mut written = 0;
        for cut in (0..data.len()).step_by(211) {
            written += usize::from(masked(&data[..cut]).is_some());
            let mut damaged = data.clone();
            damaged[cut..(cut + 4).min(data.len())].fill(0xff);
            masked(&damaged);
        }
        assert!(written > 10, "{written}");
    }
}
