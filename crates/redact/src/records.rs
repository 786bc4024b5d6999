//! Records of tracepoints, field by field.

use event::KERNEL_STACK;
use tracefmt::{Abi, EventFormat, FieldKind, FormatField, index_of};

/// Fields that have what a guest exchanges with its devices, byte by byte, by event: the text of its console among it.
const GUESTS_BYTES: [(&str, &str); 5] = [
    ("kvm_pio", "val"),
    ("kvm_mmio", "val"),
    ("kvm_iocsr", "val"),
    ("kvm_vmgexit_msr_protocol_enter", "ghcb_gpa"),
    // The arguments of trace_printk, texts among them.
    ("bprint", "buf"),
];

/// Returns the field of an event that has what a guest exchanges with its devices, if one has.
pub(crate) fn guests_field(event: &str) -> Option<&'static str> {
    let mut all = GUESTS_BYTES.iter();
    all.find_map(|(name, field)| (*name == event).then_some(*field))
}

/// Bytes of the fields that all records have (`struct trace_entry`), for one whose format is not known.
const COMMON: usize = 8;

/// Decides what stands in place of what a field has.
pub(crate) trait FieldMask {
    /// Returns what stands in place of an address.
    fn moved(&mut self, address: u64) -> u64;

    /// Returns the size of an address of the kernel, in bytes.
    fn long_size(&self) -> u8;

    /// Returns what stands in place of a text, by the name of its field.
    fn text(&mut self, field: &str, text: &[u8]) -> Vec<u8>;
}

/// Masks a record in place: what no field covers becomes 0.
pub(crate) fn mask(record: &mut [u8], format: Option<&EventFormat>, mask: &mut dyn FieldMask) {
    let before = record.to_vec();
    record.fill(0);
    let Some(format) = format else {
        let common = COMMON.min(record.len());
        record[..common].copy_from_slice(&before[..common]);
        return;
    };
    // Texts last: what has the same bytes as a text is none that may stay.
    for field in format.fields.iter().filter(|field| !field.is_string) {
        let secret = (format.name.as_str(), field.name.as_str());
        // Numbers in the order of a network are addresses of it.
        let of_network = field.ctype.contains("__be32");
        if !GUESTS_BYTES.contains(&secret) && !of_network {
            number(record, &before, field, format.abi, mask);
        }
    }
    // A stack has as many addresses as there were, whatever its format says.
    let stack = format
        .field("caller")
        .filter(|_| format.name == KERNEL_STACK);
    if let Some(field) = stack {
        let at = index_of(field.offset).min(before.len());
        words(record, &before, (at, before.len() - at), format.abi, mask);
    }
    for field in format.fields.iter().filter(|field| field.is_string) {
        text(record, &before, field, format.abi, mask);
    }
}

/// Copies the numbers of a field.
fn number(
    record: &mut [u8],
    before: &[u8],
    field: &FormatField,
    abi: Abi,
    mask: &mut dyn FieldMask,
) {
    let element = match field.kind {
        FieldKind::Scalar => field.size,
        FieldKind::Array { element } => element,
        FieldKind::DataLoc { element } | FieldKind::RelLoc { element } => {
            copy(record, before, index_of(field.offset), 4);
            element
        }
    };
    // Single bytes in a row may be anything: addresses of a network, code, data.
    let is_row = !matches!(field.kind, FieldKind::Scalar);
    if is_row && element < 2 {
        return;
    }
    let Some((at, len)) = place(before, field, abi) else {
        return;
    };
    copy(record, before, at, len);
    if element == u32::from(mask.long_size()) && !field.signed && may_be_address(field, element) {
        words(record, before, (at, len), abi, mask);
    }
}

/// Returns whether a field as wide as an address may be one. No number of 64 bits that is none is as large as the
/// kernel's addresses; of 32 bits there are many.
fn may_be_address(field: &FormatField, element: u32) -> bool {
    element == 8 || field.ctype.contains("long") || field.ctype.contains('*')
}

/// Copies words that may be addresses.
fn words(
    record: &mut [u8],
    before: &[u8],
    (at, len): (usize, usize),
    abi: Abi,
    mask: &mut dyn FieldMask,
) {
    let endian = abi.endian;
    let width = usize::from(mask.long_size());
    for word in (at..(at + len + 1).saturating_sub(width)).step_by(width) {
        let address = match width {
            4 => endian.u32(before, word).map(u64::from),
            _ => endian.u64(before, word),
        };
        let Some(moved) = address.map(|address| mask.moved(address)) else {
            continue;
        };
        let bytes = match width {
            4 => endian.u32_bytes(u32::try_from(moved).unwrap_or(0)).to_vec(),
            _ => endian.u64_bytes(moved).to_vec(),
        };
        if let Some(place) = record.get_mut(word..word + width) {
            place.copy_from_slice(&bytes);
        }
    }
}

/// Replaces the text of a field, which stays as long as it was.
fn text(record: &mut [u8], before: &[u8], field: &FormatField, abi: Abi, mask: &mut dyn FieldMask) {
    if matches!(
        field.kind,
        FieldKind::DataLoc { .. } | FieldKind::RelLoc { .. }
    ) {
        copy(record, before, index_of(field.offset), 4);
    }
    let Some((at, len)) = place(before, field, abi) else {
        return;
    };
    let bytes = &before[at..at + len];
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(len);
    let masked = mask.text(&field.name, &bytes[..end]);
    if let Some(place) = record.get_mut(at..at + len) {
        place.fill(0);
        // The last byte ends it.
        let room = masked.len().min(len.saturating_sub(1));
        place[..room].copy_from_slice(&masked[..room]);
    }
}

/// Returns where a field's data lies in a record, and how long it is.
fn place(record: &[u8], field: &FormatField, abi: Abi) -> Option<(usize, usize)> {
    let bytes = field.bytes(record, abi)?;
    let at = (bytes.as_ptr() as usize).checked_sub(record.as_ptr() as usize)?;
    (at + bytes.len() <= record.len()).then_some((at, bytes.len()))
}

fn copy(to: &mut [u8], from: &[u8], at: usize, len: usize) {
    if let (Some(to), Some(from)) = (to.get_mut(at..at + len), from.get(at..at + len)) {
        to.copy_from_slice(from);
    }
}
