//! Version 6: all that stands before the data stays, but for the lists of where each CPU's data lies.

use ::salvage::SalvageRefusal;
use cpuset::MAX_CPUS;

use super::parts::{NewBuffer, NewCpu, NewPart, NewParts};
use crate::file::{CpuList, TraceDat};
use crate::info::Buffer;

/// Bytes of a CPU's entry in a list: place and size.
const ENTRY: usize = 16;
/// The word before a list.
pub(crate) const KIND: &[u8; 10] = b"flyrecord\0";

/// Adds the CPUs and instances that are in no list that is left.
pub(super) fn add_lost(
    dat: &TraceDat<'_>,
    buffers: &mut Vec<NewBuffer>,
) -> Result<(), SalvageRefusal> {
    let buffer = Buffer {
        page_size: dat.info.page_size,
        ..Buffer::default()
    };
    let Some(layout) = dat.page_layout(&buffer) else {
        return Ok(());
    };
    for (at, list) in dat.places.lists.iter().enumerate() {
        if list.cpus as usize > MAX_CPUS {
            let reason = format!("it says that it has {} CPUs", list.cpus);
            return Err(SalvageRefusal::Layout(reason));
        }
        let place = buffers.iter().position(|buffer| buffer.name == list.name);
        let place = place.unwrap_or_else(|| {
            buffers.push(NewBuffer {
                list: Some(at),
                name: list.name.clone(),
                clock: dat.info.clock.clone(),
                page_size: dat.info.page_size,
                compressed: false,
                recovered: false,
                cpus: Vec::new(),
            });
            buffers.len() - 1
        });
        if let Some(buffer) = buffers.get_mut(place) {
            buffer.list = Some(at);
            for cpu in u32::try_from(buffer.cpus.len()).unwrap_or(u32::MAX)..list.cpus {
                buffer.cpus.push(NewCpu::lost(cpu, layout, false));
            }
        }
    }
    buffers.sort_by_key(|buffer| buffer.list);
    Ok(())
}

/// Returns the parts of the new file.
pub(super) fn parts(
    dat: &TraceDat<'_>,
    buffers: &mut [NewBuffer],
) -> Result<Vec<NewPart>, SalvageRefusal> {
    let strange = |what: &str| SalvageRefusal::Layout(what.to_owned());
    let lists = &dat.places.lists;
    let top = lists
        .first()
        .and_then(|list| Some((list.entries?, list.cpus)));
    let (entries, cpus) = top.ok_or_else(|| strange("its list of CPU data is damaged"))?;
    let places = buffers.iter().flat_map(|buffer| &buffer.cpus);
    let places = places.filter(|cpu| !cpu.region.place.is_empty());
    let begins = places.map(|cpu| cpu.region.place.start).min().unwrap_or(0);
    let ends = entries.saturating_add(ENTRY * cpus as usize);
    let names = lists.iter().map(|list| list.name.as_str());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let twice = names.windows(2).any(|pair| pair[0] == pair[1]);
    if begins < ends || twice || buffers.len() != lists.len() {
        return Err(strange(
            "its lists of CPU data are not as trace-cmd writes them",
        ));
    }
    let mut new = NewParts {
        length: begins as u64,
        ..NewParts::default()
    };
    let mut changes = Vec::new();
    for (index, (buffer, list)) in buffers.iter_mut().zip(lists).enumerate() {
        if index == 0 {
            new.cpus(index, buffer);
            changes.push((entries, entries_of(dat, buffer)));
            continue;
        }
        let at = list_option(list, begins).ok_or_else(|| strange("an instance has no option"))?;
        changes.push((at, dat.formats.abi.endian.u64_bytes(new.length).to_vec()));
        // The list is known when the places behind it are.
        let here = new.parts.len();
        new.made(vec![0; KIND.len() + ENTRY * buffer.cpus.len()]);
        new.cpus(index, buffer);
        let list = [KIND.to_vec(), entries_of(dat, buffer)].concat();
        if let Some(place) = new.parts.get_mut(here) {
            *place = NewPart::Made(list);
        }
    }
    changes.sort_unstable();
    let mut head = NewParts::default();
    let mut at = 0;
    for (place, bytes) in changes {
        if place < at {
            return Err(strange("its options overlap"));
        }
        let next = place + bytes.len();
        head.copy(at..place);
        head.made(bytes);
        at = next;
    }
    if at > begins {
        return Err(strange("its options stand behind its data"));
    }
    head.copy(at..begins);
    head.parts.append(&mut new.parts);
    Ok(head.parts)
}

/// Returns where the option of an instance has the place of its list.
fn list_option(list: &CpuList, begins: usize) -> Option<usize> {
    let at = usize::try_from(list.option?).ok()?;
    (at.checked_add(8)? <= begins).then_some(at)
}

/// Returns the list of a buffer's CPU data.
pub(crate) fn entries_of(dat: &TraceDat<'_>, buffer: &NewBuffer) -> Vec<u8> {
    let endian = dat.formats.abi.endian;
    let cpus = buffer.cpus.iter();
    cpus.flat_map(|cpu| {
        let size = if cpu.has_data() { cpu.whole.bytes } else { 0 };
        [cpu.offset, size]
            .map(|word| endian.u64_bytes(word))
            .concat()
    })
    .collect()
}
