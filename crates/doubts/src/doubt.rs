//! One doubt.

use crate::concern::{Concerns, DoubtSeverity};
use crate::list::DoubtKind;
use crate::scope::DoubtScope;

/// One doubt, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// Which of the list, with its numbers.
    pub kind: DoubtKind,
    /// The part of the inputs that it is about.
    pub scope: DoubtScope,
}

impl From<DoubtKind> for Doubt {
    fn from(kind: DoubtKind) -> Doubt {
        Doubt {
            kind,
            scope: DoubtScope::default(),
        }
    }
}

impl Doubt {
    /// Names the input that it is about, where a command reads several.
    pub fn of_input(mut self, name: &str) -> Doubt {
        self.scope.input = Some(name.to_owned());
        self
    }

    /// Says that it is about the recording of a machine that is walked with its host's.
    pub fn of_machine(mut self, machine: u16) -> Doubt {
        self.scope.machine = machine;
        self
    }

    /// Says that it is about these threads alone, such as the vCPUs of one VM.
    pub fn of_threads(mut self, tids: impl IntoIterator<Item = i32>) -> Doubt {
        self.scope.threads.extend(tids);
        self
    }

    /// Says that it is about one CPU alone; may be called again for another one.
    pub fn on_cpu(mut self, cpu: u32) -> Doubt {
        self.scope.cpus.push(cpu);
        self
    }

    /// Says that it is about a span of the recording's clock alone.
    pub fn within(mut self, from: u64, to: u64) -> Doubt {
        self.scope.span = Some((from, to));
        self
    }

    /// Returns its id, stable for scripts.
    pub fn id(&self) -> &'static str {
        self.kind.entry().id
    }

    /// Returns how much it changes.
    pub fn severity(&self) -> DoubtSeverity {
        self.kind.entry().severity
    }

    /// Returns what it concerns.
    pub fn concerns(&self) -> Concerns {
        self.kind.entry().concerns
    }

    /// Returns its sentences. They name the input where a command reads several.
    pub fn text(&self) -> String {
        let text = self.kind.text();
        match &self.scope.input {
            Some(name) => format!("{name}: {text}"),
            None => text,
        }
    }
}
