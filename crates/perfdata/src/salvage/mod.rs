//! A cut or damaged recording made whole.
//!
//! perf.data in file mode has its feature sections, and with them the formats of tracepoints, behind the records: what
//! was cut off has none. The header, attributes and ids stand before the records, and all records that are whole stay.
//! Where some are missing a `PERF_RECORD_LOST` of one event stands, as nobody knows how many they were: one is certain.
//! Compressed records are written without compression, since perf reads compressed ones only with a feature section
//! that is gone (`HEADER_COMPRESSED`).
//!
//! Of the sections that are gone only one follows from the records: the times of the first and of the last sample. The
//! formats may come from another recording.
//!
//! Sources: `tools/perf/util/header.c`, `session.c`, `perf.data-file-format.txt`.

mod lost;
pub(crate) mod pass;
mod unpacked;

use std::io;
use std::ops::Range;

use ::salvage::{
    CountingOutlet, SalvageAccount, SalvageOutlet, SalvageRefusal, SalvagedCpu, copy_range,
};

use crate::attr::AttrType;
use crate::feature::number;
use crate::file::PerfRecording;
use crate::header::{self, FEATURE_BITS, FEATURE_ENTRY, FEATURES_AT, FILE_HEADER};
use crate::pipe::PIPE_HEADER;
use crate::walk::WalkPlan;
use pass::{PassResult, pass};

/// Where the header has the place of the attributes, and that of the records.
const ATTRS_AT: usize = 24;
const DATA_AT: usize = 40;
/// Where it has their size.
const DATA_SIZE_AT: usize = 48;
/// Features that say where in the file records are, or that they are compressed (`HEADER_AUXTRACE`,
/// `HEADER_COMPRESSED` of `tools/perf/util/header.h`): they are not so any more. perf finds AUX data without a list.
const AUXTRACE: u32 = 18;
const COMPRESSED: u32 = 27;

/// A feature section of the new file.
#[derive(Debug)]
struct NewFeature {
    bit: u32,
    content: FeatureContent,
}

#[derive(Debug)]
enum FeatureContent {
    /// It stands before the records, and stays there.
    Ahead(Range<usize>),
    /// It stands behind them.
    Behind(Range<usize>),
    Made(Vec<u8>),
}

/// A recording of perf, looked through, and how it is made whole.
#[derive(Debug)]
pub struct PerfSalvage<'a> {
    recording: PerfRecording<'a>,
    features: Vec<NewFeature>,
    data_size: u64,
    account: SalvageAccount,
}

impl<'a> PerfSalvage<'a> {
    /// Looks through a recording. `lent` is the tracing data of another recording of the same kernel
    /// ([`tracing_section`]), for one that lost its own. `consumed` learns which bytes of the input were read and are
    /// not needed for now.
    ///
    /// # Errors
    ///
    /// Fails where nothing is left to keep, or what is left could not be read without what is gone.
    pub fn new(
        recording: PerfRecording<'a>,
        lent: Option<&[u8]>,
        consumed: &mut dyn FnMut(Range<usize>),
    ) -> Result<PerfSalvage<'a>, SalvageRefusal> {
        let length = recording.data.len();
        let found = {
            let reading = WalkPlan::new(&recording);
            // Nothing is written, so nothing fails.
            pass(&reading, Some(&mut CountingOutlet::new(consumed))).unwrap_or_default()
        };
        let mut salvage = PerfSalvage {
            account: account(&recording, &found),
            data_size: found.bytes,
            features: Vec::new(),
            recording,
        };
        if salvage.account.whole {
            salvage.account.output_bytes = length as u64;
            return Ok(salvage);
        }
        if found.events == 0 {
            return Err(SalvageRefusal::NoEvents(length as u64));
        }
        if !salvage.recording.is_pipe() {
            salvage.check_layout()?;
            salvage.find_features(&found, lent);
        }
        if salvage.recording.is_pipe() && found.attrs < salvage.recording.attrs.len() {
            let reason = "the records that describe its events are damaged";
            return Err(SalvageRefusal::Layout(reason.to_owned()));
        }
        let has_formats = salvage.recording.has_formats() || lent.is_some();
        let attrs = salvage.recording.attrs.iter();
        let tracepoints = attrs.filter(|attr| attr.kind == AttrType::Tracepoint);
        if tracepoints.count() > 0 && !has_formats {
            return Err(SalvageRefusal::FormatsGone);
        }
        salvage.account.output_bytes = salvage.length();
        Ok(salvage)
    }

    /// Returns what is kept, and what is lost.
    pub fn account(&self) -> &SalvageAccount {
        &self.account
    }

    /// Writes the whole recording.
    ///
    /// # Errors
    ///
    /// Those of the outlet.
    pub fn write(&self, out: &mut dyn SalvageOutlet) -> io::Result<()> {
        let recording = &self.recording;
        let data = recording.data;
        if self.account.whole {
            return copy_range(data, 0..data.len(), out);
        }
        let reading = WalkPlan::new(recording);
        if recording.is_pipe() {
            out.put(data.get(..PIPE_HEADER).unwrap_or_default())?;
            return pass(&reading, Some(out)).map(|_| ());
        }
        out.put(&self.header())?;
        copy_range(data, FILE_HEADER..recording.start, out)?;
        pass(&reading, Some(&mut *out))?;
        let mut at = self.behind_list();
        for feature in &self.features {
            let (offset, size) = match &feature.content {
                FeatureContent::Ahead(range) => (range.start as u64, range.len()),
                FeatureContent::Behind(range) => (at, range.len()),
                FeatureContent::Made(bytes) => (at, bytes.len()),
            };
            if !matches!(feature.content, FeatureContent::Ahead(_)) {
                at += size as u64;
            }
            out.put(&recording.endian.u64_bytes(offset))?;
            out.put(&recording.endian.u64_bytes(size as u64))?;
        }
        for feature in &self.features {
            match &feature.content {
                FeatureContent::Ahead(_) => {}
                FeatureContent::Behind(range) => copy_range(data, range.clone(), out)?,
                FeatureContent::Made(bytes) => out.put(bytes)?,
            }
        }
        Ok(())
    }

    /// Returns the header: the size of the data and the bitmap of features are new.
    fn header(&self) -> Vec<u8> {
        let recording = &self.recording;
        let mut head = recording
            .data
            .get(..FILE_HEADER)
            .unwrap_or_default()
            .to_vec();
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = head.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(DATA_SIZE_AT, &recording.endian.u64_bytes(self.data_size));
        put(FEATURES_AT, &[0; FEATURE_BITS as usize / 8]);
        for feature in &self.features {
            let at = header::feature_byte(feature.bit, recording.endian);
            if let Some(byte) = head.get_mut(at) {
                *byte |= 1 << (feature.bit % 8);
            }
        }
        head
    }

    /// Returns where what is behind the list of features begins.
    fn behind_list(&self) -> u64 {
        let list = FEATURE_ENTRY * self.features.len() as u64;
        self.recording.start as u64 + self.data_size + list
    }

    /// Returns the bytes of the new file.
    fn length(&self) -> u64 {
        if self.recording.is_pipe() {
            return PIPE_HEADER as u64 + self.data_size;
        }
        let sizes = self.features.iter().map(|feature| match &feature.content {
            FeatureContent::Ahead(_) => 0,
            FeatureContent::Behind(range) => range.len() as u64,
            FeatureContent::Made(bytes) => bytes.len() as u64,
        });
        self.behind_list() + sizes.sum::<u64>()
    }

    /// Checks that what describes the records stands before them, as perf writes it.
    fn check_layout(&self) -> Result<(), SalvageRefusal> {
        let (data, endian) = (self.recording.data, self.recording.endian);
        let word = |at: usize| endian.u64(data, at).unwrap_or(0);
        let ends = |at: u64, size: u64| at.saturating_add(size) <= self.recording.start as u64;
        let (attr_size, at, size) = (word(16), word(ATTRS_AT), word(ATTRS_AT + 8));
        let ids = (0..size.checked_div(attr_size).unwrap_or(0)).all(|index| {
            let tail = at.saturating_add((index + 1).saturating_mul(attr_size));
            let tail = usize::try_from(tail).unwrap_or(0).saturating_sub(16);
            ends(word(tail), word(tail + 8))
        });
        if ids && ends(at, size) && word(DATA_AT) >= FILE_HEADER as u64 {
            return Ok(());
        }
        let reason = "its attributes stand behind its records, where no recorder writes them";
        Err(SalvageRefusal::Layout(reason.to_owned()))
    }

    /// Finds out which feature sections the new file has.
    fn find_features(&mut self, found: &PassResult, lent: Option<&[u8]>) {
        let recording = &self.recording;
        let data = recording.data;
        let word = |at: usize| recording.endian.u64(data, at).unwrap_or(0);
        let end = word(DATA_AT).saturating_add(word(DATA_SIZE_AT));
        let mut gone = 0u32;
        if !recording.data_cut {
            for feature in header::listed_features(data, recording.endian, end) {
                let moved = matches!(feature.bit, AUXTRACE | COMPRESSED);
                let content = match feature.place {
                    Some(_) if moved && (feature.bit == AUXTRACE || found.compressed) => continue,
                    Some(place) if place.end <= recording.start => FeatureContent::Ahead(place),
                    Some(place) => FeatureContent::Behind(place),
                    None => {
                        gone += 1;
                        continue;
                    }
                };
                let bit = feature.bit;
                self.features.push(NewFeature { bit, content });
            }
        } else {
            let set = header::listed_features(data, recording.endian, end);
            gone = u32::try_from(set.count()).unwrap_or(FEATURE_BITS);
        }
        let has = |features: &[NewFeature], bit| features.iter().any(|one| one.bit == bit);
        if let Some(lent) = lent
            && !has(&self.features, number::TRACING_DATA)
        {
            self.made(number::TRACING_DATA, lent.to_vec());
            self.account
                .note("The formats of its events are those of --formats.");
        }
        if let Some((first, last)) = self.account.times()
            && !has(&self.features, number::SAMPLE_TIME)
        {
            let endian = self.recording.endian;
            let times = [first, last].map(|time| endian.u64_bytes(time));
            self.made(number::SAMPLE_TIME, times.concat());
        }
        self.features.sort_by_key(|feature| feature.bit);
        if gone > 0 {
            self.account.note(
                "What the recorder says of the machine and of itself stood behind the records and is gone, with the \
                 build ids of files; the times of the first and last sample were made again.",
            );
        }
    }

    fn made(&mut self, bit: u32, bytes: Vec<u8>) {
        let content = FeatureContent::Made(bytes);
        self.features.push(NewFeature { bit, content });
    }
}

/// Returns the tracing data of a recording in file mode: the formats of its events as they stand in the file. `None`
/// where it has none.
pub fn tracing_section(data: &[u8]) -> Option<&[u8]> {
    let endian = match PerfRecording::parse(data).ok()? {
        recording if recording.is_pipe() || !recording.has_formats() => return None,
        recording => recording.endian(),
    };
    let word = |at: usize| endian.u64(data, at).unwrap_or(0);
    let end = word(DATA_AT).saturating_add(word(DATA_SIZE_AT));
    let mut features = header::listed_features(data, endian, end);
    let tracing = features.find(|feature| feature.bit == number::TRACING_DATA)?;
    data.get(tracing.place?)
}

/// Returns what is known after a pass.
fn account(recording: &PerfRecording<'_>, found: &PassResult) -> SalvageAccount {
    let length = recording.data.len() as u64;
    let whole = !recording.truncated() && found.places == 0 && found.left_out == 0;
    let mut account = SalvageAccount {
        whole,
        input_bytes: length,
        events: found.events,
        other_records: found.others,
        left_out_bytes: found.left_out,
        places: found.places,
        missing_bytes: Some(0),
        ..SalvageAccount::default()
    };
    let mut cpus: Vec<(i32, SalvagedCpu)> = found.cpus.iter().map(|(c, one)| (*c, *one)).collect();
    cpus.sort_unstable_by_key(|(cpu, _)| *cpu);
    for (cpu, one) in cpus {
        *account.cpu("", i64::from(cpu)) = SalvagedCpu {
            lost_bytes: None,
            ..one
        };
    }
    if whole {
        return account;
    }
    if found.places > 0 {
        let unknown = account.cpu("", -1);
        unknown.places += found.places;
        unknown.lost_bytes = None;
    }
    let endian = recording.endian;
    if recording.is_pipe() {
        // A pipe has no end that could be missing.
        account.missing_bytes = None;
    } else if recording.data_cut {
        let word = |at: usize| endian.u64(recording.data, at).unwrap_or(0);
        let (at, size) = (word(DATA_AT), word(DATA_SIZE_AT));
        account.missing_bytes = (size > 0).then(|| at.saturating_add(size).saturating_sub(length));
        if size == 0 {
            account.note("Its recorder did not end in order: the header has no size of the data.");
        }
    } else if recording.truncated() {
        account.missing_bytes = None;
    }
    if found.padding {
        account
            .note("Its recorder did not end in order: room that it had not filled was left out.");
    }
    if found.compressed {
        account.note("Its records were compressed, and are written without compression.");
    }
    if found.aux_missing > 0 {
        let bytes = found.aux_missing;
        account.note(format!(
            "The last {bytes} bytes of its AUX data are missing."
        ));
    }
    account
}
