//! JSON: what QMP answers; trapline's own documents are in `document`.
//!
//! QMP: `qapi/machine.json` and `qapi/misc.json` of QEMU. `query-cpus-fast` (since 2.12) answers with
//! `cpu-index` and `thread-id`, `query-cpus` (until 6.0) with `CPU` and `thread_id`.

use forms::InputForm;

use serde_json::{Map, StreamDeserializer, Value, de::StrRead};

use crate::keep::id;
use crate::reader::{FactsReader, MonitorSession};
use crate::{ReportedVcpu, document};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "QMP: query-cpus-fast, query-cpus, query-name, query-uuid, query-version, human-monitor-command",
    recognised_by: "JSON objects with `QMP` or `return`; lists of objects with `cpu-index` and `thread-id`",
    yields: "vCPUs with their threads, the VM's name and UUID, QEMU's version; what `info mtree` says",
    fixtures: &["tests/texts/qmp.txt"],
};

/// JSON is not read beyond this many bytes: a large host's facts have some hundred thousand.
const MAX_JSON: usize = 8 << 20;

/// Members by any of which an object is a document of trapline's.
const DOCUMENT: [&str; 8] = [
    "trapline",
    "facts_version",
    "vms",
    "threads",
    "mtree",
    "host",
    "guest_log",
    "domstats",
];

/// Reads values from the begin of a text. Returns how many bytes they take, none if there is no value.
pub(crate) fn read(text: &str, reader: &mut FactsReader) -> Option<usize> {
    let part = &text[..text.floor_char_boundary(MAX_JSON)];
    let mut values = StreamDeserializer::<_, Value>::new(StrRead::new(part));
    let value = match values.next()? {
        Ok(value) => value,
        Err(error) => {
            if error.is_eof() && part.len() < text.len() {
                let note = format!("JSON is not read beyond {} MiB", MAX_JSON >> 20);
                reader.notes.add(reader.number, note);
            } else if DOCUMENT[..2].iter().any(|name| starts_with(part, name)) {
                let note = format!("JSON that cannot be read: {error}");
                reader.notes.add(reader.number, note);
            }
            return None;
        }
    };
    let used = values.byte_offset();
    // Only objects and arrays begin as this text does.
    reader.end_of_part();
    take(&value, reader);
    Some(used)
}

/// Returns whether the first member of an object has a name.
fn starts_with(text: &str, name: &str) -> bool {
    let member = text.strip_prefix('{').map(str::trim_start);
    let rest = member.and_then(|text| text.strip_prefix('"')?.strip_prefix(name));
    rest.is_some_and(|rest| rest.starts_with('"'))
}

fn take(value: &Value, reader: &mut FactsReader) {
    match value {
        Value::Array(_) => {
            if !take_cpus(value, reader) {
                reader.notes.unknown(reader.number);
            }
        }
        Value::Object(object) => take_object(object, reader),
        _ => reader.notes.unknown(reader.number),
    }
}

fn take_object(object: &Map<String, Value>, reader: &mut FactsReader) {
    let has = |name: &str| object.contains_key(name);
    if let Some(greeting) = object.get("QMP") {
        reader.session = MonitorSession::default();
        reader.session.vm.version = greeting.get("version").and_then(version);
    } else if let Some(answer) = object.get("return") {
        take_answer(answer, reader);
    } else if let Some(error) = object.get("error") {
        let words = error.get("desc").and_then(Value::as_str);
        let words = words.unwrap_or("without a word");
        let end = words.floor_char_boundary(120);
        let note = format!("QEMU answered with an error: {}", &words[..end]);
        reader.notes.add(reader.number, note);
    } else if DOCUMENT.iter().any(|name| has(name)) {
        document::take(object, reader);
    } else if !has("event") && !has("execute") {
        reader.notes.unknown(reader.number);
    }
}

/// Takes an answer of QMP; those that tell of other things are passed over.
fn take_answer(answer: &Value, reader: &mut FactsReader) {
    match answer {
        Value::Array(_) => {
            take_cpus(answer, reader);
        }
        // The human monitor's text.
        Value::String(text) => reader.text_inside(text),
        Value::Object(object) => {
            if let (Some(Value::String(name)), 1) = (object.get("name"), object.len()) {
                reader.named(|vm| &mut vm.name, name);
            } else if let Some(version) = version(answer) {
                reader.named(|vm| &mut vm.version, &version);
            } else if let Some(Value::String(uuid)) = object.get("UUID") {
                reader.named(|vm| &mut vm.uuid, uuid);
            }
        }
        _ => {}
    }
}

/// Returns QEMU's version, of a greeting or an answer to `query-version` (`VersionInfo` of `qapi/control.json`).
fn version(object: &Value) -> Option<String> {
    let part = |name: &str| object.get("qemu")?.get(name)?.as_u64();
    let (major, minor, micro) = (part("major")?, part("minor")?, part("micro")?);
    let package = object.get("package").and_then(Value::as_str);
    let package = package.map(str::trim).filter(|text| !text.is_empty());
    let behind = package.map_or_else(String::new, |text| format!(" {text}"));
    Some(format!("{major}.{minor}.{micro}{behind}"))
}

/// Takes the list of a VM's vCPUs; returns whether it is one.
fn take_cpus(list: &Value, reader: &mut FactsReader) -> bool {
    let entries = list.as_array().map_or(&[][..], Vec::as_slice);
    let vcpus: Vec<ReportedVcpu> = entries
        .iter()
        .filter_map(|entry| {
            let number = |names: [&str; 2]| names.iter().find_map(|n| entry.get(n)?.as_i64());
            Some(ReportedVcpu::new(
                u32::try_from(number(["cpu-index", "CPU"])?).ok()?,
                id(number(["thread-id", "thread_id"])?)?,
            ))
        })
        .collect();
    if vcpus.is_empty() {
        return false;
    }
    reader.vcpus(vcpus);
    true
}
