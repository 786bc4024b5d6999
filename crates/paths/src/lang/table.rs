//! Path files as TOML has them, before anything in them is understood.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A text, or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(super) enum TextList {
    One(String),
    Several(Vec<String>),
}

impl Default for TextList {
    fn default() -> TextList {
        TextList::Several(Vec::new())
    }
}

impl TextList {
    pub(super) fn list(&self) -> &[String] {
        match self {
            TextList::One(one) => std::slice::from_ref(one),
            TextList::Several(several) => several,
        }
    }

    /// Appends the texts of another list.
    fn extend(&mut self, more: &TextList) {
        if !more.list().is_empty() {
            *self = TextList::Several([self.list(), more.list()].concat());
        }
    }
}

/// By the name of a word that a part leaves open, what stands for it.
pub(super) type Wording = BTreeMap<String, TextList>;

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected true, false or \"unrecorded\"")]
pub(super) enum SkipRule {
    Always(bool),
    When(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileToml {
    pub name: String,
    pub about: Option<String>,
    pub by: Option<String>,
    #[serde(default)]
    pub part: Vec<PartToml>,
    #[serde(default)]
    pub chain: Vec<ChainToml>,
    #[serde(default)]
    pub step: Vec<StepToml>,
}

/// A file of parts that paths share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartFileToml {
    pub part: Vec<PartToml>,
}

/// Steps, or alternatives of a step, that several chains have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PartToml {
    pub name: String,
    /// What stands for words that a use says nothing of.
    #[serde(default)]
    pub with: Wording,
    #[serde(default)]
    pub step: Vec<StepToml>,
    #[serde(default)]
    pub on: Vec<AltToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ChainToml {
    pub name: Option<String>,
    #[serde(default)]
    pub step: Vec<StepToml>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StepToml {
    pub name: String,
    pub part: Option<String>,
    pub with: Wording,
    pub machine: Option<String>,
    pub optional: Option<SkipRule>,
    pub optional_with: Option<String>,
    pub counts: bool,
    pub each: bool,
    pub unique: TextList,
    pub coalesces: bool,
    pub several: bool,
    pub until: TextList,
    pub over: TextList,
    pub soon: bool,
    pub ends: bool,
    pub answers: bool,
    pub polls: bool,
    pub from_exit: Option<String>,
    /// It is the exit that a step begins with, and has no table in the file.
    #[serde(skip)]
    pub is_exit: bool,
    pub unless: TextList,
    pub not_after: TextList,
    pub only_after: TextList,
    pub needs: TextList,
    pub recall: TextList,
    pub yields: Option<String>,
    pub event: TextList,
    #[serde(rename = "where")]
    pub conds: TextList,
    pub join: TextList,
    pub bind: TextList,
    pub on: Vec<AltToml>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AltToml {
    pub part: Option<String>,
    pub with: Wording,
    pub event: TextList,
    pub machine: Option<String>,
    pub unless: TextList,
    pub not_after: TextList,
    pub only_after: TextList,
    pub instead_of: TextList,
    pub soon: bool,
    pub awake: bool,
    pub only_binds: bool,
    pub within: Option<String>,
    #[serde(rename = "where")]
    pub conds: TextList,
    pub join: TextList,
    pub bind: TextList,
}

/// A table of a path file, by the kinds of what its keys hold. Its name, and what stands in tables of their own, are
/// not among these.
pub(super) trait KeyTable {
    /// Keys that hold lists.
    fn lists(&mut self) -> Vec<&mut TextList>;
    /// Keys that hold one text, `part` apart.
    fn texts(&mut self) -> Vec<&mut Option<String>>;
    /// Keys that are true or false.
    fn flags(&mut self) -> Vec<&mut bool>;

    /// Adds the keys of another table of the same kind: lists grow, single texts are replaced.
    fn add(&mut self, more: &mut Self) {
        for (list, more) in self.lists().into_iter().zip(more.lists()) {
            list.extend(more);
        }
        for (text, more) in self.texts().into_iter().zip(more.texts()) {
            if more.is_some() {
                text.clone_from(more);
            }
        }
        for (flag, more) in self.flags().into_iter().zip(more.flags()) {
            *flag |= *more;
        }
    }
}

impl KeyTable for StepToml {
    fn lists(&mut self) -> Vec<&mut TextList> {
        vec![
            &mut self.unique,
            &mut self.until,
            &mut self.over,
            &mut self.unless,
            &mut self.not_after,
            &mut self.only_after,
            &mut self.needs,
            &mut self.recall,
            &mut self.event,
            &mut self.conds,
            &mut self.join,
            &mut self.bind,
        ]
    }

    fn texts(&mut self) -> Vec<&mut Option<String>> {
        vec![
            &mut self.machine,
            &mut self.optional_with,
            &mut self.yields,
            &mut self.from_exit,
        ]
    }

    fn flags(&mut self) -> Vec<&mut bool> {
        vec![
            &mut self.counts,
            &mut self.each,
            &mut self.coalesces,
            &mut self.several,
            &mut self.soon,
            &mut self.ends,
            &mut self.answers,
            &mut self.polls,
        ]
    }
}

impl KeyTable for AltToml {
    fn lists(&mut self) -> Vec<&mut TextList> {
        vec![
            &mut self.event,
            &mut self.unless,
            &mut self.not_after,
            &mut self.only_after,
            &mut self.instead_of,
            &mut self.conds,
            &mut self.join,
            &mut self.bind,
        ]
    }

    fn texts(&mut self) -> Vec<&mut Option<String>> {
        vec![&mut self.machine, &mut self.within]
    }

    fn flags(&mut self) -> Vec<&mut bool> {
        vec![&mut self.soon, &mut self.awake, &mut self.only_binds]
    }
}
