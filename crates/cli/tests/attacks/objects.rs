//! Object files: sections whose counts and sizes lie, and debugging information that goes round in circles.
//!
//! Layouts: the System V ABI's chapters on object files, DWARF 4 (7.5, 7.19), and the exception frames of the Linux
//! Standard Base (10.6).

use super::draw::Draw;

const HEADER: usize = 64;
const BASE: u64 = 0x1000;

/// A section to be.
struct Part {
    name: &'static str,
    kind: u32,
    link: u32,
    each: u64,
    bytes: Vec<u8>,
}

/// Writes an ELF file of x86-64 with symbols, DWARF and exception frames.
pub(super) fn write(draw: &mut Draw) -> Vec<u8> {
    let mut parts = vec![
        part("", 0, Vec::new()),
        part(".text", 1, vec![0xc3; 256]),
        part(".strtab", 3, b"\0main\0_ZN4core3fmt5WriteE\0".to_vec()),
        Part {
            link: 2,
            each: 24,
            ..part(".symtab", 2, symbols(draw))
        },
        part(".eh_frame", 1, frames(draw)),
        part(".debug_abbrev", 1, abbreviations(draw)),
        part(".debug_info", 1, information(draw)),
        part(".debug_line", 1, lines(draw)),
        part(".debug_str", 1, draw.odd_name()),
        part(
            ".debug_ranges",
            1,
            (0..draw.below(20))
                .flat_map(|_| draw.edge().to_le_bytes())
                .collect(),
        ),
        part(".note.gnu.build-id", 7, note(draw)),
        part(
            ".gnu_debugaltlink",
            1,
            [draw.odd_name(), vec![0; 21]].concat(),
        ),
        part(
            ".gnu_debuglink",
            1,
            [b"../../../../etc/passwd\0\0".to_vec(), vec![0; 4]].concat(),
        ),
    ];
    let names: Vec<u8> = parts
        .iter()
        .flat_map(|part| [part.name.as_bytes(), b"\0"].concat())
        .collect();
    parts.push(part(
        ".shstrtab",
        3,
        [names, b".shstrtab\0".to_vec()].concat(),
    ));
    file(&parts, draw)
}

fn part(name: &'static str, kind: u32, bytes: Vec<u8>) -> Part {
    Part {
        name,
        kind,
        link: 0,
        each: 0,
        bytes,
    }
}

fn file(parts: &[Part], draw: &mut Draw) -> Vec<u8> {
    let mut out = vec![0; HEADER + 56];
    let mut places = Vec::new();
    for part in parts {
        out.resize(out.len().next_multiple_of(8), 0);
        places.push(out.len() as u64);
        out.extend(&part.bytes);
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let sections_at = out.len() as u64;
    let mut name_at = 0u32;
    for (part, place) in parts.iter().zip(places) {
        let size = draw.or_edge(part.bytes.len() as u64);
        out.extend(draw.or_edge(name_at.into()).to_le_bytes()[..4].to_vec());
        name_at += part.name.len() as u32 + 1;
        out.extend((draw.or_edge(part.kind.into()) as u32).to_le_bytes());
        for number in [2 | 4, BASE + place, place, size] {
            out.extend(draw.or_edge(number).to_le_bytes());
        }
        out.extend((draw.or_edge(part.link.into()) as u32).to_le_bytes());
        out.extend((draw.or_edge(0) as u32).to_le_bytes());
        for number in [1, part.each] {
            out.extend(draw.or_edge(number).to_le_bytes());
        }
    }
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    head.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    for number in [BASE, HEADER as u64, sections_at] {
        head.extend(draw.or_edge(number).to_le_bytes());
    }
    head.extend([0; 4]);
    for number in [64, 56, 1, 64, parts.len() as u64, parts.len() as u64 - 1] {
        head.extend(&draw.or_edge(number).to_le_bytes()[..2]);
    }
    // One segment: everything, to be run.
    head.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for number in [0, BASE, BASE, sections_at, sections_at, 0x1000] {
        head.extend(draw.or_edge(number).to_le_bytes());
    }
    out[..head.len()].copy_from_slice(&head);
    out
}

fn symbols(draw: &mut Draw) -> Vec<u8> {
    let mut out = vec![0; 24];
    for number in 0..draw.below(20) as u64 {
        out.extend((draw.or_edge(1 + number % 2 * 5) as u32).to_le_bytes());
        out.extend([draw.or_edge(0x12) as u8, 0, 1, 0]);
        out.extend(draw.or_edge(BASE + 0x78 + number * 8).to_le_bytes());
        out.extend(draw.or_edge(8).to_le_bytes());
    }
    out
}

fn note(draw: &mut Draw) -> Vec<u8> {
    let id = vec![0xab; draw.of(&[0, 1, 8, 16, 20, 64, 200])];
    let mut out = (draw.or_edge(4) as u32).to_le_bytes().to_vec();
    out.extend((draw.or_edge(id.len() as u64) as u32).to_le_bytes());
    out.extend(3u32.to_le_bytes());
    [out, b"GNU\0".to_vec(), id].concat()
}

/// A number as DWARF has it, of seven bits each; now and then one that does not end.
fn leb(number: u64, draw: &mut Draw) -> Vec<u8> {
    if draw.absurd() {
        return vec![0xff; 1 + draw.below(30)];
    }
    let (mut rest, mut out) = (number, Vec::new());
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

/// A unit, functions, functions inlined in them; names by reference.
fn abbreviations(draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    for (code, tag, children, attributes) in [
        (
            1,
            0x11,
            1,
            &[(0x11, 0x01), (0x12, 0x07), (0x10, 0x17), (0x55, 0x17)][..],
        ),
        (2, 0x2e, 1, &[(0x03, 0x08), (0x11, 0x01), (0x12, 0x07)][..]),
        // DW_AT_abstract_origin, DW_AT_specification, DW_AT_sibling: references, also to themselves.
        (3, 0x1d, 1, &[(0x31, 0x13), (0x11, 0x01), (0x12, 0x07)][..]),
        (4, 0x2e, 0, &[(0x47, 0x13), (0x31, 0x13), (0x01, 0x13)][..]),
        // DW_FORM_indirect, forms that are none, a block.
        (5, 0x34, 0, &[(0x03, 0x16), (0x02, 0x0a), (0x1c, 0x99)][..]),
    ] {
        out.extend(leb(code, draw));
        out.extend(leb(tag, draw));
        out.push(if draw.absurd() { 1 } else { children });
        for (name, form) in attributes {
            out.extend(leb(*name, draw));
            out.extend(leb(draw.or_edge(*form) & 0xffff, draw));
        }
        out.extend([0, 0]);
    }
    out.push(0);
    out
}

fn information(draw: &mut Draw) -> Vec<u8> {
    let mut body = 4u16.to_le_bytes().to_vec();
    body.extend((draw.or_edge(0) as u32).to_le_bytes());
    body.push(draw.or_edge(8) as u8);
    body.push(1);
    body.extend(BASE.to_le_bytes());
    body.extend(0x400u64.to_le_bytes());
    body.extend([0; 8]);
    let mut depth = 0;
    for _ in 0..draw.of(&[3, 40, 2000]) {
        let code = draw.of(&[2, 3, 3, 4, 5]);
        let reference = (draw.below(body.len() + 40) as u32).to_le_bytes();
        body.extend(leb(code, draw));
        match code {
            2 => {
                body.extend(b"main\0");
                body.extend(draw.or_edge(BASE + 0x78).to_le_bytes());
                body.extend(draw.or_edge(0x40).to_le_bytes());
            }
            3 => {
                body.extend(reference);
                body.extend(draw.or_edge(BASE + 0x78).to_le_bytes());
                body.extend(draw.or_edge(0x20).to_le_bytes());
            }
            4 => body.extend([reference, reference, reference].concat()),
            _ => body.extend([0x16, 0x16, 0x08, b'x', 0, 0xff]),
        }
        depth += usize::from(matches!(code, 2 | 3));
        if depth > 0 && draw.once_in(3) {
            body.push(0);
            depth -= 1;
        }
    }
    [
        (draw.or_edge(body.len() as u64) as u32)
            .to_le_bytes()
            .to_vec(),
        body,
    ]
    .concat()
}

/// A program of line numbers, whose opcodes may divide by nothing.
fn lines(draw: &mut Draw) -> Vec<u8> {
    let mut head = vec![
        draw.or_edge(1) as u8,
        1,
        1,
        0xfb,
        draw.or_edge(14) as u8,
        draw.or_edge(13) as u8,
    ];
    head.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    head.extend(b"\0main.c\0\0\0\0\0");
    let mut body = 4u16.to_le_bytes().to_vec();
    body.extend((draw.or_edge(head.len() as u64) as u32).to_le_bytes());
    body.extend(head);
    body.extend([0, 9, 2]);
    body.extend(draw.or_edge(BASE + 0x78).to_le_bytes());
    for _ in 0..draw.below(200) {
        body.push(draw.any() as u8);
    }
    [
        (draw.or_edge(body.len() as u64) as u32)
            .to_le_bytes()
            .to_vec(),
        body,
    ]
    .concat()
}

/// Common information and descriptions of frames, which may belong to themselves.
fn frames(draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    let mut common = vec![1, b'z', b'R', 0, 1, 0x78, 16, 1, draw.or_edge(0x00) as u8];
    common.extend([0x0c, 7, 8, 0x90, 1]);
    common.resize(20, 0);
    out.extend(24u32.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(common);
    for number in 0..draw.below(12) as u64 {
        let mut body = draw
            .or_edge(BASE + 0x78 + number * 16)
            .to_le_bytes()
            .to_vec();
        body.extend(draw.or_edge(16).to_le_bytes());
        body.push(0);
        for _ in 0..draw.below(40) {
            // Remember, restore, advance, expressions of any length.
            body.push(draw.of(&[
                0x0a, 0x0b, 0x02, 0x41, 0x0f, 0x16, 0x10, 0x2e, 0xff, 0x0e, 0x00,
            ]));
        }
        body.resize(body.len().next_multiple_of(4), 0);
        let back = out.len() as u64 + 4;
        out.extend((draw.or_edge(body.len() as u64 + 4) as u32).to_le_bytes());
        out.extend((draw.or_edge(back) as u32).to_le_bytes());
        out.extend(body);
    }
    out
}
