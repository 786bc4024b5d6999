//! JSON: what QMP answers, and trapline's own documents.
//!
//! QMP: `qapi/machine.json` and `qapi/misc.json` of QEMU. `query-cpus-fast` (since 2.12) answers with
//! `cpu-index` and `thread-id`, `query-cpus` (until 6.0) with `CPU` and `thread_id`.

use serde_json::{Map, StreamDeserializer, Value, de::StrRead};

use crate::data::id;
use crate::reader::{Reader, Session};
use crate::{Thread, Vcpu, Vm};

/// JSON is not read beyond this many bytes: a large host's facts have some hundred thousand.
const MAX_JSON: usize = 8 << 20;

/// Reads values from the begin of a text. Returns how many bytes they take, none if there is no value.
pub(crate) fn read(text: &str, reader: &mut Reader) -> Option<usize> {
    let text = &text[..text.floor_char_boundary(MAX_JSON)];
    let mut values = StreamDeserializer::<_, Value>::new(StrRead::new(text));
    let value = values.next()?.ok()?;
    let used = values.byte_offset();
    // Only objects and arrays begin as this text does.
    reader.end_of_part();
    take(&value, reader);
    Some(used)
}

fn take(value: &Value, reader: &mut Reader) {
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

fn take_object(object: &Map<String, Value>, reader: &mut Reader) {
    let has = |name: &str| object.contains_key(name);
    if has("QMP") {
        reader.session = Session::default();
    } else if let Some(answer) = object.get("return") {
        take_answer(answer, reader);
    } else if let Some(error) = object.get("error") {
        let words = error.get("desc").and_then(Value::as_str);
        let words = words.unwrap_or("without a word");
        let end = words.floor_char_boundary(120);
        let note = format!("QEMU answered with an error: {}", &words[..end]);
        reader.notes.add(reader.number, note);
    } else if has("trapline") || has("vms") || has("threads") || has("mtree") {
        document(object, reader);
    } else if !has("event") && !has("execute") {
        reader.notes.unknown(reader.number);
    }
}

/// Takes an answer of QMP; those that tell of other things are passed over.
fn take_answer(answer: &Value, reader: &mut Reader) {
    match answer {
        Value::Array(_) => {
            take_cpus(answer, reader);
        }
        // The human monitor's text.
        Value::String(text) => reader.text_inside(text),
        Value::Object(object) => {
            if let (Some(Value::String(name)), 1) = (object.get("name"), object.len()) {
                reader.named(|vm| &mut vm.name, name);
            } else if let Some(Value::String(uuid)) = object.get("UUID") {
                reader.named(|vm| &mut vm.uuid, uuid);
            }
        }
        _ => {}
    }
}

/// Takes the list of a VM's vCPUs; returns whether it is one.
fn take_cpus(list: &Value, reader: &mut Reader) -> bool {
    let entries = list.as_array().map_or(&[][..], Vec::as_slice);
    let vcpus: Vec<Vcpu> = entries
        .iter()
        .filter_map(|entry| {
            let number = |names: [&str; 2]| names.iter().find_map(|n| entry.get(n)?.as_i64());
            Some(Vcpu::new(
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

/// Takes a document of trapline's. Members that are not known are later versions'.
fn document(object: &Map<String, Value>, reader: &mut Reader) {
    for (at, vm) in list(object, "vms", reader).iter().enumerate() {
        let path = format!("vms[{at}]");
        let Some(vm) = members(vm, &path, reader) else {
            continue;
        };
        let mut told = Vm {
            pid: thread_id(vm, "pid", &path, reader),
            name: text(vm, "name", &path, reader),
            uuid: text(vm, "uuid", &path, reader),
            ..Vm::default()
        };
        for vcpu in list(vm, "vcpus", reader) {
            let number = vcpu.get("id").and_then(Value::as_u64);
            let tid = vcpu.get("tid").and_then(Value::as_i64).and_then(id);
            match number.and_then(|n| u32::try_from(n).ok()).zip(tid) {
                Some((id, tid)) => told.vcpus.push(Vcpu::new(id, tid)),
                None => wrong(&format!("{path}.vcpus"), "numbers 'id' and 'tid'", reader),
            }
        }
        if told.pid.is_some() || !told.vcpus.is_empty() {
            reader.gather.vm(told);
        }
    }
    for (at, thread) in list(object, "threads", reader).iter().enumerate() {
        let path = format!("threads[{at}]");
        let Some(thread) = members(thread, &path, reader) else {
            continue;
        };
        let Some(tid) = thread_id(thread, "tid", &path, reader) else {
            continue;
        };
        let pid = thread_id(thread, "pid", &path, reader);
        let comm = text(thread, "comm", &path, reader);
        let thread = Thread {
            pid,
            comm,
            ..Thread::default()
        };
        reader.gather.thread(tid, thread);
    }
    if let Some(mtree) = text(object, "mtree", "the document", reader) {
        for line in mtree.lines() {
            reader.gather.mtree(line);
        }
    }
}

fn wrong(path: &str, expected: &str, reader: &mut Reader) {
    let note = format!("{path}: expected {expected}");
    reader.notes.add(reader.number, note);
}

fn list<'v>(object: &'v Map<String, Value>, name: &str, reader: &mut Reader) -> &'v [Value] {
    match object.get(name) {
        Some(Value::Array(list)) => list,
        None | Some(Value::Null) => &[],
        Some(_) => {
            wrong(name, "a list", reader);
            &[]
        }
    }
}

fn members<'v>(
    value: &'v Value,
    path: &str,
    reader: &mut Reader,
) -> Option<&'v Map<String, Value>> {
    let object = value.as_object();
    if object.is_none() {
        wrong(path, "an object", reader);
    }
    object
}

/// Returns a process or thread id; null is for what is not known.
fn thread_id(
    object: &Map<String, Value>,
    name: &str,
    path: &str,
    reader: &mut Reader,
) -> Option<i32> {
    let value = object.get(name).filter(|value| !value.is_null())?;
    let number = value.as_i64().and_then(id);
    if number.is_none() {
        wrong(&format!("{path}.{name}"), "a thread id", reader);
    }
    number
}

fn text(
    object: &Map<String, Value>,
    name: &str,
    path: &str,
    reader: &mut Reader,
) -> Option<String> {
    let value = object.get(name).filter(|value| !value.is_null())?;
    let text = value.as_str();
    if text.is_none() {
        wrong(&format!("{path}.{name}"), "a text", reader);
    }
    text.map(str::to_owned)
}
