//! Values of options: `key=value` with commas between them, or JSON.

use serde_json::Value;

/// Properties beyond this many are left out.
const MAX: usize = 1024;

/// The properties of an option, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Properties(Vec<(String, String)>);

impl Properties {
    /// Reads a value; `first` is what its first part sets where it has no name (`qemu_opts_parse`: `-device e1000`).
    /// A comma that is no end stands twice. JSON is what libvirt writes since QEMU takes it; what is nested in it has
    /// its names with dots between.
    pub(super) fn read(text: &str, first: &str) -> Properties {
        let text = text.trim();
        if text.starts_with('{') {
            let mut out = Properties::default();
            if let Ok(value) = serde_json::from_str::<Value>(text) {
                out.flatten("", &value);
            }
            return out;
        }
        let mut out = Properties::default();
        for (at, part) in parts(text).into_iter().take(MAX).enumerate() {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                None if at == 0 => (first.to_owned(), part),
                None => (part, "on".to_owned()),
            };
            out.0.push((key, value));
        }
        out
    }

    fn flatten(&mut self, name: &str, value: &Value) {
        if self.0.len() >= MAX {
            return;
        }
        match value {
            Value::Object(members) => {
                for (key, inner) in members {
                    let name = match name.is_empty() {
                        true => key.clone(),
                        false => format!("{name}.{key}"),
                    };
                    self.flatten(&name, inner);
                }
            }
            Value::Bool(on) => self
                .0
                .push((name.to_owned(), if *on { "on" } else { "off" }.to_owned())),
            Value::String(text) => self.0.push((name.to_owned(), text.clone())),
            Value::Number(number) => self.0.push((name.to_owned(), number.to_string())),
            Value::Array(_) | Value::Null => {}
        }
    }

    /// Returns a property; of several the last, as QEMU does.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let named = self.0.iter().rev().find(|(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    /// Returns a property as text of one's own.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Returns a number.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.trim().parse().ok()
    }

    /// Returns whether a property is on (`qapi_bool_parse`).
    pub(super) fn on(&self, name: &str) -> Option<bool> {
        switch(self.get(name)?)
    }

    /// Adds another's, but for those that are there already, as its nodes' own.
    pub(super) fn extend(&mut self, other: &Properties) {
        for (key, value) in &other.0 {
            if self.0.len() < MAX
                && self
                    .get(key)
                    .is_none_or(|_| key == "filename" || key == "file")
            {
                self.0.push((key.clone(), value.clone()));
            }
        }
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// Returns what a word of a switch means (`qapi_bool_parse`).
pub(super) fn switch(word: &str) -> Option<bool> {
    match word {
        "on" | "yes" | "true" | "y" => Some(true),
        "off" | "no" | "false" | "n" => Some(false),
        _ => None,
    }
}

fn parts(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let end = c == ',' && chars.next_if_eq(&',').is_none();
        match out.last_mut() {
            Some(part) if !end => part.push(c),
            _ => out.push(String::new()),
        }
    }
    out.retain(|part| !part.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_json_say_the_same() {
        let list = Properties::read("e1000,id=n0,file=a,,b,mq", "driver");
        assert_eq!(list.get("driver"), Some("e1000"));
        assert_eq!((list.get("file"), list.on("mq")), (Some("a,b"), Some(true)));
        let json = Properties::read(
            r#"{"driver":"throttle","limits":{"iops-total":500},"x":true,"y":[1]}"#,
            "driver",
        );
        assert_eq!(json.number::<u64>("limits.iops-total"), Some(500));
        assert_eq!((json.on("x"), json.get("y")), (Some(true), None));
        assert_eq!(Properties::read("{\"a\":", "x"), Properties::default());
        assert_eq!(Properties::read("", "x"), Properties::default());
    }
}
