//! trace.dat files of a story: rings whose times, lengths, CPUs and options contradict each other.

use super::draw::Draw;
use super::perf_files::{printk, saved_names, symbols};
use super::story::Story;

#[path = "../../../tracedat/tests/writer/mod.rs"]
mod writer;

use writer::{BufferSpec, FileSpec, Machine, Pack, Page};

/// Bytes of records in a page.
const ROOM: usize = 3900;

/// Writes a trace.dat of version 6 or 7.
pub(super) fn write(draw: &mut Draw) -> Vec<u8> {
    let story = Story::draw(draw);
    let machine = Machine {
        big: draw.once_in(8),
        long: draw.of(&[8, 8, 8, 4]),
        page_size: 4096,
    };
    let cpus: Vec<(u32, Vec<u8>)> = (0..5)
        .map(|cpu| {
            (
                draw.or_edge(cpu.into()) as u32,
                pages(&story, cpu, machine, draw),
            )
        })
        .collect();
    let mut buffer = BufferSpec::new("", &[]);
    buffer.clock = draw
        .of(&[
            "local", "mono", "boot", "x86-tsc", "global", "tai", "", "\u{202e}",
        ])
        .to_owned();
    buffer.cpus = cpus;
    let mut buffers = vec![buffer.clone()];
    if draw.absurd() {
        buffer.name = String::from_utf8_lossy(&draw.odd_name()).replace('\0', "");
        buffers.push(buffer);
    }
    let mut file = FileSpec::new(machine, buffers);
    file.pack = draw.of(&[Pack::None, Pack::None, Pack::Zlib, Pack::Zstd]);
    file.chunk = 1 + draw.below(4);
    file.cmdlines = String::from_utf8_lossy(&saved_names(&story, draw)).into_owned();
    file.kallsyms = String::from_utf8_lossy(&[symbols(draw), printk(draw)].concat()).into_owned();
    for kind in &story.kinds {
        let text = kind.text(draw);
        let system = if draw.absurd() { "ftrace" } else { kind.system };
        match file.systems.last_mut().filter(|last| last.0 == system) {
            Some(last) => last.1.push(text),
            None => file.systems.push((system.to_owned(), vec![text])),
        }
    }
    for _ in 0..draw.below(6) {
        let option = option(machine, draw);
        file.options.push(option);
    }
    let mut bytes = match draw.once_in(3) {
        true => file.v6(),
        false => file.v7(),
    };
    // Sections and lists that point at each other: a place in the file becomes another one's.
    while draw.absurd() {
        let (from, to) = (draw.below(bytes.len() / 8) * 8, draw.below(bytes.len()));
        bytes[from..from + 8].copy_from_slice(&machine.u64(to as u64));
    }
    bytes
}

/// An option: of times, of guests, of clocks, with any length.
fn option(machine: Machine, draw: &mut Draw) -> (u16, Vec<u8>) {
    let id = draw.of(&[1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 20, 24]);
    let number = draw.edge();
    let data: Vec<u8> = match draw.below(7) {
        0 => draw.odd_number().into_bytes(),
        1 => machine.u64(number).to_vec(),
        2 => draw.odd_name(),
        3 => b"CPU: 0\nentries: -1\noverrun: 18446744073709551615\ncommit overrun: 99999999999999999999\n".to_vec(),
        4 => {
            // Shift, multiplier, offset: what turns ticks into time.
            let mut out = machine.u32(draw.edge() as u32).to_vec();
            out.extend(machine.u32(draw.edge() as u32));
            out.extend(machine.u64(draw.edge()));
            out
        }
        5 => {
            // CPUs, a count each, and pairs of times and offsets.
            let mut out = machine.u64(number).to_vec();
            out.extend(machine.u32(draw.edge() as u32 & 7));
            for _ in 0..draw.below(30) {
                out.extend(machine.u64(draw.edge()));
            }
            out
        }
        _ => {
            let mut out = b"guest\0".to_vec();
            out.extend(machine.u64(number));
            out.extend(machine.u32(draw.edge() as u32 & 0xf));
            for _ in 0..draw.below(8) {
                out.extend(machine.u32(draw.edge() as u32));
            }
            out
        }
    };
    (id, data)
}

/// The ring of a CPU.
fn pages(story: &Story, cpu: u32, machine: Machine, draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    let mut page: Option<Page> = None;
    let mut last = 0;
    for event in story
        .events
        .iter()
        .filter(|event| event.cpu == cpu || cpu == 4 && event.cpu > 4)
    {
        let record = event.record(&story.kinds[event.kind], machine.big, draw);
        if record.is_empty() {
            continue;
        }
        let begin = |time: u64| Page::new(machine, time);
        let full = page
            .as_ref()
            .is_some_and(|page| page.len() + record.len() + 32 > ROOM);
        if full || draw.once_in(60) {
            out.extend(page.take().map(|page| page.bytes()).unwrap_or_default());
        }
        let mut current = page.take().unwrap_or_else(|| {
            last = event.time;
            begin(event.time)
        });
        if draw.absurd() {
            current = match draw.below(5) {
                0 => current.extend(draw.edge() & ((1 << 59) - 1)),
                1 => current.stamp(draw.edge()),
                2 if current.len() + 200 < ROOM => {
                    current.discarded(draw.edge() as u32 & 0xffff, 8 + 4 * draw.below(8))
                }
                3 if current.len() + 200 < ROOM => current.raw(&draw.edge().to_le_bytes()),
                _ => current.missed(Some(draw.edge())),
            };
        }
        let delta = event.time.wrapping_sub(last);
        last = event.time;
        let (small, delta) = match delta {
            0..0x800_0000 => (true, delta as u32),
            _ => (false, 0),
        };
        if !small {
            current = match draw.once_in(2) {
                true => current.extend(event.time.wrapping_sub(delta.into()) & ((1 << 59) - 1)),
                false => current.stamp(event.time),
            };
        }
        page = Some(match record.len() > 112 || draw.once_in(9) {
            true => current.long_record(delta, &record),
            false => current.record(delta, &record),
        });
    }
    out.extend(page.map(|page| page.bytes()).unwrap_or_default());
    out
}
