//! Definitions of domains: XML that nests, expands, repeats itself and counts to infinity.

use super::draw::Draw;

const BEGIN: &str = "<domain type='kvm'>\n  <name>web</name>\n  <memory unit='KiB'>4194304</memory>\n  \
    <vcpu placement='static'>4</vcpu>\n  <iothreads>1</iothreads>\n  <cputune>\n\
    \x20   <vcpupin vcpu='0' cpuset='2'/>\n\
    \x20   <emulatorpin cpuset='0-1'/>\n  </cputune>\n\
    \x20 <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>\n  \
    <features><acpi/><apic/><hyperv><relaxed state='on'/><spinlocks state='on' retries='8191'/></hyperv></features>\n  \
    <cpu mode='host-passthrough'><topology sockets='1' dies='1' cores='2' threads='2'/><numa><cell id='0' cpus='0-3' \
    memory='4194304'/></numa></cpu>\n  <clock offset='utc'><timer name='hpet' present='yes'/></clock>\n  <devices>\n\
    \x20   <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none' iothread='1' queues='4'/>\
    <source file='/x'/><target dev='vda' bus='virtio'/></disk>\n    <interface type='network'><model type='virtio'/>\
    <driver name='vhost' queues='4'/></interface>\n    <serial type='pty'><target port='0'/></serial>\n  </devices>\n\
    </domain>\n";

/// Writes a definition.
pub(super) fn write(draw: &mut Draw) -> Vec<u8> {
    let mut text = BEGIN.to_owned();
    for _ in 0..1 + draw.below(4) {
        text = changed(&text, draw);
    }
    let mut out = text.into_bytes();
    match draw.below(12) {
        // UTF-16, as an editor of Windows leaves it, cut within a letter.
        0 => {
            let wide = String::from_utf8_lossy(&out).into_owned();
            out = [0xff, 0xfe]
                .into_iter()
                .chain(wide.encode_utf16().flat_map(u16::to_le_bytes))
                .collect();
            out.truncate(out.len() - draw.below(2));
        }
        1 => out.insert(draw.below(out.len()), 0),
        2 => out.truncate(draw.below(out.len())),
        _ => {}
    }
    out
}

fn changed(text: &str, draw: &mut Draw) -> String {
    let elements: Vec<usize> = text.match_indices('<').map(|(at, _)| at).collect();
    if elements.is_empty() {
        return text.to_owned();
    }
    let at = draw.of(&elements);
    let (head, tail) = text.split_at(at);
    let deep = draw.of(&[2, 50, 1000, 30_000]);
    match draw.below(9) {
        0 => format!("{head}{}{}{tail}", "<a>".repeat(deep), "</a>".repeat(deep)),
        1 => format!("{head}{}{tail}", "<devices>".repeat(deep)),
        2 => expanding(text, draw),
        3 => format!(
            "{head}{}{tail}",
            "<!--".repeat(deep.min(2000)) + &"x-- >".repeat(3)
        ),
        4 => format!(
            "{head}<x {}/>{tail}",
            (0..deep.min(3000))
                .map(|n| format!("a{n}='1' "))
                .collect::<String>()
        ),
        5 => {
            let element = tail.split_inclusive('>').next().unwrap_or_default();
            format!("{head}{}{tail}", element.repeat(deep.min(1000)))
        }
        6 => format!("{head}<![CDATA[{}]]>{tail}", "]]".repeat(deep.min(2000))),
        7 => format!("{head}<?xml-stylesheet href='file:///etc/passwd'?>{tail}"),
        _ => with_odd_numbers(text, draw),
    }
}

/// Entities that stand for ten of the one before, for themselves, for a file, or for an address.
fn expanding(text: &str, draw: &mut Draw) -> String {
    let mut kinds = String::from("<!ENTITY l0 'lol'>");
    for level in 1..draw.of(&[2, 9, 30]) {
        kinds.push_str(&format!(
            "<!ENTITY l{level} '{}'>",
            format!("&l{};", level - 1).repeat(10)
        ));
    }
    kinds.push_str("<!ENTITY self '&self;'><!ENTITY file SYSTEM 'file:///etc/passwd'>");
    kinds.push_str("<!ENTITY % remote SYSTEM 'http://127.0.0.1:1/x'>%remote;");
    let used = draw.of(&[
        "&l1;",
        "&l8;",
        "&l29;",
        "&self;",
        "&file;",
        "&#0;",
        "&#x110000;",
        "&none;",
    ]);
    format!(
        "<!DOCTYPE domain [{kinds}]>{}",
        text.replacen("web", used, 1)
    )
}

fn with_odd_numbers(text: &str, draw: &mut Draw) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (head, tail) = rest.split_at(at);
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(head);
        match draw.once_in(4) {
            true => out.push_str(&draw.odd_number()),
            false => out.push_str(&tail[..digits]),
        }
        if draw.once_in(20) {
            out.push_str("-4294967295,^0");
        }
        rest = &tail[digits..];
    }
    out + rest
}
