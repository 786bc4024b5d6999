//! Parts: steps and alternatives that several chains have, put where chains use them.

use std::sync::LazyLock;

use super::error::LanguageError;
use super::path::{MAX_ALTS, MAX_STEPS};
use super::table::{AltToml, KeyTable, PartFileToml, PartToml, StepToml, TextList, Wording};

/// Parts stand in parts at most so deep.
const MAX_DEPTH: usize = 4;
/// A list that words are put into has at most so many texts, a text so many bytes: words in words would make either as
/// long as memory is.
const MAX_TEXTS: usize = 64;
const MAX_TEXT_BYTES: usize = 1024;

include!(concat!(env!("OUT_DIR"), "/parts.rs"));

/// The parts of the files in `builtin/parts`, or why one of these files is none.
static SHARED: LazyLock<Result<Vec<PartToml>, String>> = LazyLock::new(|| {
    let mut parts = Vec::new();
    for (name, text) in PARTS {
        let file: PartFileToml =
            toml::from_str(text).map_err(|error| format!("{name}: {}", error.message()))?;
        parts.extend(file.part);
    }
    Ok(parts)
});

/// The parts that a file's chains can use: its own, and those that are built in.
pub(super) struct PartList<'f>(pub &'f [PartToml]);

impl PartList<'_> {
    /// Puts the steps of parts where a chain uses them.
    ///
    /// # Errors
    /// There is no such part, a word that it leaves open is not said, or there are too many steps.
    pub(super) fn steps(&self, tables: &[StepToml]) -> Result<Vec<StepToml>, LanguageError> {
        self.steps_at(tables, 0)
    }

    fn find(&self, name: &str, depth: usize) -> Result<&PartToml, LanguageError> {
        if depth > MAX_DEPTH {
            return Err(LanguageError(format!(
                "parts stand in parts more than {MAX_DEPTH} deep"
            )));
        }
        let shared = (SHARED.as_ref()).map_err(|error| LanguageError(error.clone()))?;
        let mut all = self.0.iter().chain(shared);
        all.find(|part| part.name == name).ok_or_else(|| {
            LanguageError("there is no such part; expected the name of a [[part]]".to_owned())
        })
    }

    fn steps_at(&self, tables: &[StepToml], depth: usize) -> Result<Vec<StepToml>, LanguageError> {
        let mut steps = Vec::new();
        for table in tables {
            match &table.part {
                None => steps.push(StepToml {
                    on: self.alts_at(&table.on, depth)?,
                    ..table.clone()
                }),
                Some(name) => {
                    let used = self.used_steps(name, table, depth);
                    steps.extend(used.map_err(|error| in_part(name, &error))?);
                }
            }
            if depth > 0 && steps.len() > MAX_STEPS {
                return Err(LanguageError(format!("has more than {MAX_STEPS} steps")));
            }
        }
        Ok(steps)
    }

    /// Returns the steps of a part, with what stands beside its name added to each.
    fn used_steps(
        &self,
        name: &str,
        table: &StepToml,
        depth: usize,
    ) -> Result<Vec<StepToml>, LanguageError> {
        if !table.name.is_empty() || !table.event.list().is_empty() {
            return Err(LanguageError(
                "its steps have names and events of their own; name and event do not stand beside part"
                    .to_owned(),
            ));
        }
        let part = self.find(name, depth)?;
        if part.step.is_empty() || !part.on.is_empty() {
            return Err(LanguageError(
                "has no steps, or more than steps; expected [[part.step]] tables alone".to_owned(),
            ));
        }
        let mut words = OpenWords::new(part, &table.with);
        let mut steps = part.step.clone();
        for step in &mut steps {
            step.name = words.one(&step.name)?;
            words.fill(step, |step| (&mut step.part, &mut step.with))?;
            for on in &mut step.on {
                words.fill(on, |on| (&mut on.part, &mut on.with))?;
            }
        }
        words.all_are_used()?;
        let mut steps = self.steps_at(&steps, depth + 1)?;
        let mut more = table.clone();
        let on = self.alts_at(&table.on, depth)?;
        if !on.is_empty() && steps.len() != 1 {
            return Err(LanguageError(
                "has several steps; alternatives can be added to a part of one step".to_owned(),
            ));
        }
        let asks = [&table.conds, &table.join, &table.bind];
        let asks = asks.iter().any(|list| !list.list().is_empty());
        for step in &mut steps {
            if asks && step.event.list().is_empty() {
                return Err(LanguageError(format!(
                    "step \"{}\" has alternatives; where, join and bind stand beside a part whose steps have one event \
                     each",
                    step.name
                )));
            }
            step.add(&mut more);
            if more.optional.is_some() {
                step.optional.clone_from(&more.optional);
            }
            step.on.extend_from_slice(&on);
        }
        Ok(steps)
    }

    fn alts_at(&self, tables: &[AltToml], depth: usize) -> Result<Vec<AltToml>, LanguageError> {
        let mut alts = Vec::new();
        for table in tables {
            match &table.part {
                None => alts.push(table.clone()),
                Some(name) => {
                    let used = self.used_alts(name, table, depth);
                    alts.extend(used.map_err(|error| in_part(name, &error))?);
                }
            }
            if depth > 0 && alts.len() > MAX_ALTS {
                return Err(LanguageError(format!(
                    "has more than {MAX_ALTS} alternatives"
                )));
            }
        }
        Ok(alts)
    }

    /// Returns the alternatives of a part, with what stands beside its name added to each.
    fn used_alts(
        &self,
        name: &str,
        table: &AltToml,
        depth: usize,
    ) -> Result<Vec<AltToml>, LanguageError> {
        if !table.event.list().is_empty() {
            return Err(LanguageError(
                "its alternatives have events of their own; event does not stand beside part"
                    .to_owned(),
            ));
        }
        let part = self.find(name, depth)?;
        if part.on.is_empty() || !part.step.is_empty() {
            return Err(LanguageError(
                "has no alternatives, or more than these; expected [[part.on]] tables alone"
                    .to_owned(),
            ));
        }
        let mut words = OpenWords::new(part, &table.with);
        let mut alts = part.on.clone();
        for alt in &mut alts {
            words.fill(alt, |alt| (&mut alt.part, &mut alt.with))?;
        }
        words.all_are_used()?;
        let mut alts = self.alts_at(&alts, depth + 1)?;
        let mut more = table.clone();
        for alt in &mut alts {
            alt.add(&mut more);
        }
        Ok(alts)
    }
}

fn in_part(name: &str, LanguageError(error): &LanguageError) -> LanguageError {
    LanguageError(format!("part \"{name}\": {error}"))
}

/// The words that a part leaves open, as one use of it says them.
struct OpenWords<'p> {
    part: &'p PartToml,
    said: &'p Wording,
    used: Vec<String>,
}

impl<'p> OpenWords<'p> {
    fn new(part: &'p PartToml, said: &'p Wording) -> OpenWords<'p> {
        OpenWords {
            part,
            said,
            used: Vec::new(),
        }
    }

    /// Returns what stands for a word.
    fn word(&mut self, name: &str) -> Result<&'p [String], LanguageError> {
        let said = self.said.get(name).or(self.part.with.get(name));
        let said = said.ok_or_else(|| {
            LanguageError(format!(
                "nothing says what {{{name}}} is; expected with = {{ {name} = ... }}"
            ))
        })?;
        self.used.push(name.to_owned());
        Ok(said.list())
    }

    /// Puts words into a text.
    fn one(&mut self, text: &str) -> Result<String, LanguageError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, behind) = behind
                .split_once('}')
                .ok_or_else(|| LanguageError(format!("'{text}' has a {{ and no }} behind it")))?;
            out.push_str(before);
            match self.word(name)? {
                [one] => out.push_str(one),
                several => {
                    return Err(LanguageError(format!(
                        "{{{name}}} is {} texts, of which '{text}' takes one",
                        several.len()
                    )));
                }
            }
            if out.len() > MAX_TEXT_BYTES {
                break;
            }
            rest = behind;
        }
        out.push_str(rest);
        match out.len() {
            ..=MAX_TEXT_BYTES => Ok(out),
            _ => Err(LanguageError(format!(
                "its words make a text of more than {MAX_TEXT_BYTES} bytes"
            ))),
        }
    }

    /// Puts words into a list: one that stands alone may be several texts, or none.
    fn list(&mut self, list: &mut TextList) -> Result<(), LanguageError> {
        let mut out = Vec::new();
        for text in list.list() {
            match alone(text) {
                Some(name) => out.extend_from_slice(self.word(name)?),
                None => out.push(self.one(text)?),
            }
            if out.len() > MAX_TEXTS {
                return Err(LanguageError(format!(
                    "its words make a list of more than {MAX_TEXTS} texts"
                )));
            }
        }
        *list = TextList::Several(out);
        Ok(())
    }

    /// Puts words into a table: its keys, which part it uses, and what it says to that.
    fn fill<T: KeyTable>(
        &mut self,
        table: &mut T,
        use_of: impl Fn(&mut T) -> (&mut Option<String>, &mut Wording),
    ) -> Result<(), LanguageError> {
        for list in table.lists() {
            self.list(list)?;
        }
        for text in table.texts() {
            self.optional(text)?;
        }
        let (part, with) = use_of(table);
        self.optional(part)?;
        for said in with.values_mut() {
            self.list(said)?;
        }
        Ok(())
    }

    /// Puts words into a text that may be none: so it is where a word that stands alone is no text.
    fn optional(&mut self, text: &mut Option<String>) -> Result<(), LanguageError> {
        if let Some(one) = text {
            let none = match alone(one) {
                Some(name) => self.word(name)?.is_empty(),
                None => false,
            };
            *text = match none {
                true => None,
                false => Some(self.one(one)?),
            };
        }
        Ok(())
    }

    /// Checks that a use says no word that the part has not.
    fn all_are_used(&self) -> Result<(), LanguageError> {
        let mut said = self.said.keys();
        match said.find(|name| !self.used.contains(name)) {
            None => Ok(()),
            Some(name) => Err(LanguageError(format!(
                "with = {{ {name} = ... }}: the part has no word {{{name}}}"
            ))),
        }
    }
}

/// Returns the name of the word that a text is.
fn alone(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    (!name.contains(['{', '}'])).then_some(name)
}
