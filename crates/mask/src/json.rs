//! JSON in command lines: libvirt's `-object {"qom-type":"secret",…}` and `-blockdev {…}`, and `json:{…}` in place of a
//! file's name (`block.c` of QEMU).

use serde_json::Value;

use crate::key::WordStyle;
use crate::{MASK, Masker};

/// What stands before JSON in place of a file's name.
const PSEUDO: &str = "json:";

impl Masker {
    /// Masks a word that is JSON, or has it in place of a file's name; none if it is not. An object that cannot be read
    /// is masked as a whole.
    pub(super) fn json(&mut self, text: &str) -> Option<String> {
        let start = text.trim_start();
        if start.starts_with('{') {
            return Some(self.object(text));
        }
        let at = text.find("json:{").map(|at| at + PSEUDO.len())?;
        let (before, object) = text.split_at(at);
        // In a list of QEMU its commas are doubled, and other properties stand behind it.
        let in_list = at > PSEUDO.len();
        let (object, behind) = match object.rfind('}').filter(|_| in_list) {
            Some(end) => object.split_at(end + 1),
            None => (object, ""),
        };
        let before = self.keys(before, WordStyle::List);
        let object = if in_list {
            let single = object.replace(",,", ",");
            self.object(&single).replace(',', ",,")
        } else {
            self.object(object)
        };
        let behind = self.text(behind, WordStyle::List);
        Some(format!("{before}{object}{behind}"))
    }

    fn object(&mut self, text: &str) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            return self.value(text).to_owned();
        };
        let before = self.count;
        self.walk(&mut value);
        // As it was written, if it can stay.
        if self.count == before {
            text.to_owned()
        } else {
            value.to_string()
        }
    }

    /// Masks in a value, which the parser has made no deeper than 128.
    fn walk(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text, WordStyle::List),
            Value::Array(list) => list.iter_mut().for_each(|value| self.walk(value)),
            Value::Object(object) => {
                for (name, value) in object.iter_mut() {
                    let text = match &*value {
                        Value::String(text) => Some(text.clone()),
                        Value::Number(number) => Some(number.to_string()),
                        Value::Object(_) | Value::Array(_) => Some(String::from("{}")),
                        Value::Null | Value::Bool(_) => None,
                    };
                    match text {
                        Some(text) if crate::key::is_secret(name) => {
                            if self.value(&text) == MASK {
                                *value = Value::from(MASK);
                            }
                        }
                        _ => self.walk(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
