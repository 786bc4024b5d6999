//! What stands around the pages of the new file.

use tracefmt::{Cursor, FormatCatalog};

use super::mask::TracePrivacyMask;
use super::options::{MaskedOptions, clocks, terminated};
use crate::file::{KallsymsPlace, TraceDat};
use crate::options::id;
use crate::salvage::parts::{NewBuffer, NewPart, NewParts};
use crate::salvage::v6::{KIND, entries_of};
use crate::salvage::v7::{NewOptions, section};
use crate::sections::SectionHeader;

/// Bytes of the file's head that are the same in both versions: magic, version, byte order, word size, page size.
const HEAD: usize = 18;
/// The word before the options of version 6.
const OPTIONS: &[u8; 10] = b"options  \0";
/// Name and version of the compression of version 7.
const NO_COMPRESSION: &[u8; 6] = b"none\0\0";

/// Returns the parts of a file of version 6: all lists of where data lies stand before the first CPU's.
pub(super) fn v6(
    dat: &TraceDat<'_>,
    buffers: &mut [NewBuffer],
    options: &MaskedOptions,
    mask: &mut dyn TracePrivacyMask,
) -> Vec<NewPart> {
    let endian = dat.formats.abi.endian;
    let mut front = dat.data.get(..HEAD).unwrap_or_default().to_vec();
    let formats = dat.places.formats.clone().unwrap_or(0..0);
    front.extend_from_slice(dat.data.get(formats).unwrap_or_default());
    let symbols = match &dat.symbols {
        KallsymsPlace::Text(place) => mask.symbols(dat.data.get(place.clone()).unwrap_or_default()),
        _ => Vec::new(),
    };
    front.extend(endian.u32_bytes(u32::try_from(symbols.len()).unwrap_or(0)));
    front.extend(symbols);
    // The texts of trace_printk.
    front.extend(endian.u32_bytes(0));
    let names = dat.data.get(dat.places.names.clone()).unwrap_or_default();
    let names = mask.saved_names(names);
    front.extend(endian.u64_bytes(names.len() as u64));
    front.extend(names);
    // All buffers have as many.
    let cpus = buffers.first().map_or(0, |buffer| buffer.cpus.len());
    let count = endian.u32_bytes(u32::try_from(cpus).unwrap_or(u32::MAX));
    front.extend(count);
    let mut list = NewOptions::new(dat);
    for (number, bytes) in &options.options {
        match *number {
            id::CPUCOUNT => list.add(id::CPUCOUNT, &count),
            number => list.add(number, bytes),
        }
    }
    let clock = options
        .options
        .iter()
        .any(|(number, _)| *number == id::TRACECLOCK)
        .then(|| terminated(&clocks(dat.info.clocks.as_deref().unwrap_or_default())));
    let head = |buffers: &[NewBuffer], lists: &[u64]| {
        let mut head = front.clone();
        head.extend_from_slice(OPTIONS);
        head.extend_from_slice(&list.bytes);
        let mut instances = NewOptions::new(dat);
        for (buffer, at) in buffers.iter().zip(lists).skip(1) {
            let mut option = endian.u64_bytes(*at).to_vec();
            option.extend(terminated(&buffer.name));
            instances.add(id::BUFFER, &option);
        }
        head.extend_from_slice(&instances.bytes);
        head.extend(endian.u16_bytes(id::DONE));
        let mut places = Vec::new();
        for (index, buffer) in buffers.iter().enumerate() {
            places.push(head.len() as u64);
            head.extend_from_slice(KIND);
            head.extend(entries_of(dat, buffer));
            if let Some(clock) = clock.as_ref().filter(|_| index == 0 && cpus > 0) {
                head.extend(endian.u64_bytes(clock.len() as u64));
                head.extend_from_slice(clock);
            }
        }
        (head, places)
    };
    // How long it is does not depend on the places in it.
    let (unplaced, lists) = head(buffers, &vec![0; buffers.len()]);
    let mut new = NewParts::default();
    new.made(unplaced);
    for (index, buffer) in buffers.iter_mut().enumerate() {
        new.cpus(index, buffer);
    }
    if let Some(first) = new.parts.first_mut() {
        *first = NewPart::Made(head(buffers, &lists).0);
    }
    new.parts
}

/// Returns the parts of a file of version 7, which is not compressed.
pub(super) fn v7(
    dat: &TraceDat<'_>,
    buffers: &mut [NewBuffer],
    options: &MaskedOptions,
    mask: &mut dyn TracePrivacyMask,
) -> Vec<NewPart> {
    let endian = dat.formats.abi.endian;
    let mut front = dat.data.get(..HEAD).unwrap_or_default().to_vec();
    front.extend_from_slice(NO_COMPRESSION);
    let mut new = NewParts::default();
    new.made(front);
    // Where the options are stands here; it is known at the end.
    let pointer = new.parts.len();
    new.made(vec![0; 8]);
    let mut list = NewOptions::new(dat);
    for (number, offset) in &dat.places.sections {
        let found = dat.sections().at(*offset);
        let found = found.filter(|section| section.id == *number);
        let Some(body) = found.and_then(|found| body(dat, &found, mask)) else {
            continue;
        };
        list.add(*number, &endian.u64_bytes(new.length));
        new.made(section(dat, (*number, 0), body.len() as u64));
        new.made(body);
    }
    for (number, bytes) in &options.options {
        list.add(*number, bytes);
    }
    for (index, buffer) in buffers.iter_mut().enumerate() {
        let (here, at) = (new.parts.len(), new.length);
        let head = section(dat, (id::BUFFER, 0), 0);
        let behind = at + head.len() as u64;
        new.made(head);
        new.cpus(index, buffer);
        if let Some(place) = new.parts.get_mut(here) {
            *place = NewPart::Made(section(dat, (id::BUFFER, 0), new.length - behind));
        }
        let option = list.buffer(at, buffer);
        list.add(id::BUFFER, &option);
    }
    list.add(id::DONE, &endian.u64_bytes(0));
    let at = new.length;
    new.made(section(dat, (id::DONE, 0), list.bytes.len() as u64));
    new.made(list.bytes);
    if let Some(place) = new.parts.get_mut(pointer) {
        *place = NewPart::Made(endian.u64_bytes(at).to_vec());
    }
    new.parts
}

/// Returns the body of a section that stays; `None` for others.
fn body(
    dat: &TraceDat<'_>,
    found: &SectionHeader,
    mask: &mut dyn TracePrivacyMask,
) -> Option<Vec<u8>> {
    let endian = dat.formats.abi.endian;
    let is_kept = matches!(
        found.id,
        id::HEADER_INFO..=id::EVENT_FORMATS | id::KALLSYMS | id::CMDLINES
    );
    let (bytes, _) = is_kept.then(|| dat.sections().body(found))?;
    let mut cursor = Cursor::new(&bytes, endian);
    let mut formats = FormatCatalog::default();
    formats.abi = dat.formats.abi;
    match found.id {
        id::HEADER_INFO => {
            for _ in 0..2 {
                cursor.cstr()?;
                let size = cursor.u64()?;
                cursor.take(size)?;
            }
        }
        id::KALLSYMS => {
            let size = cursor.u32()?;
            let text = cursor.take(u64::from(size)).unwrap_or(cursor.rest());
            let symbols = mask.symbols(text);
            let mut made = endian
                .u32_bytes(u32::try_from(symbols.len()).unwrap_or(0))
                .to_vec();
            made.extend(symbols);
            return Some(made);
        }
        id::FTRACE_EVENTS => formats.read_ftrace_formats(&mut cursor).then_some(())?,
        id::EVENT_FORMATS => formats.read_event_formats(&mut cursor).then_some(())?,
        _ => {
            let size = cursor.u64()?;
            let names = mask.saved_names(cursor.take(size).unwrap_or(cursor.rest()));
            let mut made = endian.u64_bytes(names.len() as u64).to_vec();
            made.extend(names);
            return Some(made);
        }
    }
    // What stands behind them is left out.
    Some(bytes.get(..cursor.position())?.to_vec())
}

/// Returns how many parts of a version 6 file are left out that no option leads to: the texts of `trace_printk`,
/// buffers of text.
pub(super) fn omitted(dat: &TraceDat<'_>) -> u64 {
    if dat.info.version != 6 {
        return 0;
    }
    let printk = !dat.formats.printk.is_empty();
    dat.info.texts.len() as u64 + u64::from(printk)
}
