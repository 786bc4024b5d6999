//! Version 7: the sections stay, and one list of options leads to them and to each CPU's data.

use ::salvage::SalvageAccount;
use ::salvage::SalvageRefusal;

use super::parts::{NewBuffer, NewCpu, NewPart, NewParts};
use crate::file::TraceDat;
use crate::info::Buffer;
use crate::options::id;
use crate::sections::SECTION_HEADER;

/// Bytes of the place of the options, in front of the first section.
const OPTIONS_AT: usize = 8;
/// Flag of a section that is compressed.
const FLAG_COMPRESSED: u16 = 1;

/// Adds the CPUs that the kernel counted events of and of which nothing is left.
pub(super) fn add_lost(dat: &TraceDat<'_>, buffers: &mut [NewBuffer]) {
    for buffer in buffers
        .iter_mut()
        .filter(|b| b.recovered && dat.missing_cpus)
    {
        let described = Buffer {
            page_size: buffer.page_size,
            ..Buffer::default()
        };
        let Some(layout) = dat.page_layout(&described) else {
            continue;
        };
        let stats = dat.info.cpu_stats.iter();
        for one in stats.filter(|one| one.buffer == buffer.name && one.entries + one.read > 0) {
            if !buffer.cpus.iter().any(|cpu| cpu.cpu == one.cpu) {
                buffer
                    .cpus
                    .push(NewCpu::lost(one.cpu, layout, buffer.compressed));
            }
        }
        buffer.cpus.sort_by_key(|cpu| cpu.cpu);
    }
}

/// Returns the parts of the new file.
pub(super) fn parts(
    dat: &TraceDat<'_>,
    buffers: &mut [NewBuffer],
    account: &mut SalvageAccount,
) -> Result<Vec<NewPart>, SalvageRefusal> {
    let strange = |what: &str| SalvageRefusal::Layout(what.to_owned());
    let endian = dat.formats.abi.endian;
    let sections = dat.sections();
    let front = dat.places.front;
    let length = dat.data.len() as u64;
    let mut new = NewParts::default();
    new.copy(0..front.saturating_sub(OPTIONS_AT));
    // Where the options are stands here; it is known at the end.
    let pointer = new.parts.len();
    new.made(vec![0; OPTIONS_AT]);
    let mut options = NewOptions::new(dat);
    let mut places = dat.places.sections.clone();
    places.sort_by_key(|(_, offset)| *offset);
    let mut behind = front as u64;
    for (number, offset) in places {
        let section = sections.at(offset).filter(|section| section.id == number);
        let Some(section) = section.filter(|s| s.size > 0 && s.end() <= length) else {
            account.note(format!(
                "The section {} is cut off and left out.",
                name(number)
            ));
            continue;
        };
        if (section.offset as u64) < behind {
            return Err(strange("its sections overlap"));
        }
        behind = section.end();
        options.add(number, &endian.u64_bytes(new.length));
        let end = usize::try_from(section.end()).unwrap_or(section.body);
        new.copy(section.offset..end);
    }
    for (number, bytes) in dat.places.options.iter().flatten() {
        match *number {
            // These say where something is; all that is left of it was added.
            id::BUFFER | id::STRINGS | id::BTF_FILE | id::MODULES_FILE => {}
            id::HEADER_INFO..=id::CMDLINES => {}
            id::BUFFER_TEXT => account.note("A buffer of the kernel's own text is left out."),
            number => options.add(number, bytes),
        }
    }
    for (index, buffer) in buffers.iter_mut().enumerate() {
        let here = new.parts.len();
        let at = new.length;
        new.made(vec![0; SECTION_HEADER]);
        new.cpus(index, buffer);
        let size = new.length - at - SECTION_HEADER as u64;
        let flags = if buffer.compressed {
            FLAG_COMPRESSED
        } else {
            0
        };
        if let Some(place) = new.parts.get_mut(here) {
            *place = NewPart::Made(section(dat, (id::BUFFER, flags), size));
        }
        let bytes = options.buffer(at, buffer);
        options.add(id::BUFFER, &bytes);
    }
    options.add(id::DONE, &endian.u64_bytes(0));
    let at = new.length;
    new.made(section(dat, (id::DONE, 0), options.bytes.len() as u64));
    new.made(options.bytes);
    if let Some(place) = new.parts.get_mut(pointer) {
        *place = NewPart::Made(endian.u64_bytes(at).to_vec());
    }
    Ok(new.parts)
}

/// Returns the header of a section, which has no description.
pub(crate) fn section(dat: &TraceDat<'_>, (number, flags): (u16, u16), size: u64) -> Vec<u8> {
    let endian = dat.formats.abi.endian;
    let mut bytes = endian.u16_bytes(number).to_vec();
    bytes.extend(endian.u16_bytes(flags));
    bytes.extend(endian.u32_bytes(0));
    bytes.extend(endian.u64_bytes(size));
    bytes
}

/// A list of options.
pub(crate) struct NewOptions<'d, 'a> {
    dat: &'d TraceDat<'a>,
    pub(crate) bytes: Vec<u8>,
}

impl<'d, 'a> NewOptions<'d, 'a> {
    pub(crate) fn new(dat: &'d TraceDat<'a>) -> NewOptions<'d, 'a> {
        NewOptions {
            dat,
            bytes: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, number: u16, bytes: &[u8]) {
        let endian = self.dat.formats.abi.endian;
        self.bytes.extend(endian.u16_bytes(number));
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend(endian.u32_bytes(size));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns what the option of a buffer says: where its section is, its name and clock, and its CPUs.
    pub(crate) fn buffer(&self, at: u64, buffer: &NewBuffer) -> Vec<u8> {
        let endian = self.dat.formats.abi.endian;
        let mut bytes = endian.u64_bytes(at).to_vec();
        let clock = buffer.clock.as_ref().or(self.dat.info.clock.as_ref());
        for text in [buffer.name.as_str(), clock.map_or("", String::as_str)] {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
        let page = match buffer.page_size {
            0 => self.dat.info.page_size,
            size => size,
        };
        let cpus: Vec<&NewCpu> = buffer.cpus.iter().filter(|cpu| cpu.has_data()).collect();
        let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        bytes.extend(endian.u32_bytes(page));
        bytes.extend(endian.u32_bytes(count));
        for cpu in cpus {
            bytes.extend(endian.u32_bytes(cpu.cpu));
            bytes.extend(endian.u64_bytes(cpu.offset));
            bytes.extend(endian.u64_bytes(cpu.whole.bytes));
        }
        bytes
    }
}

/// Returns what a section holds, as its option is called in trace-cmd's documentation.
fn name(number: u16) -> &'static str {
    match number {
        id::HEADER_INFO => "header info",
        id::FTRACE_EVENTS => "ftrace events formats",
        id::EVENT_FORMATS => "event formats",
        id::KALLSYMS => "kallsyms",
        id::PRINTK => "trace_printk",
        id::CMDLINES => "process names",
        _ => "of an optional kind",
    }
}
