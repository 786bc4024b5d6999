//! Analyses that sit a walk out, so that what they cost is the difference to a walk with them.

use std::any;

use super::Study;
use crate::round::{KindReaders, Set};

/// Who of a study's analyses sits its walk out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StudySilence {
    /// Nobody.
    #[default]
    Nobody,
    /// The analysis with this number, in the order in which they are added, from 0 on. It asks for nothing, so what it
    /// alone needs is not done either.
    Single(usize),
    /// All of them. What they ask for is read, brought into order and followed, and nobody gets it.
    Everybody,
}

/// That, and the types of the analyses that were added.
#[derive(Debug, Default)]
pub(super) struct SilenceState {
    silence: StudySilence,
    added: Vec<&'static str>,
}

impl SilenceState {
    /// Notes an analysis, and returns whether it asks for anything.
    pub(super) fn joins<A>(&mut self) -> bool {
        let number = self.added.len();
        self.added.push(any::type_name::<A>());
        self.silence != StudySilence::Single(number)
    }

    /// Returns those of a set that get what they ask for.
    pub(super) fn heard(&self, set: Set) -> Set {
        match self.silence {
            StudySilence::Everybody => 0,
            StudySilence::Nobody | StudySilence::Single(_) => set,
        }
    }

    /// Takes events of a kind from those that get none.
    pub(super) fn hush(&self, kind: &mut KindReaders) {
        for set in [
            &mut kind.before,
            &mut kind.after,
            &mut kind.last,
            &mut kind.heads,
            &mut kind.of_guest,
        ] {
            *set = self.heard(*set);
        }
    }
}

impl Study {
    /// Has analyses sit the walk out, of those that are added from now on.
    pub fn silence(self, silence: StudySilence) -> Study {
        let silenced = SilenceState {
            silence,
            ..self.silenced
        };
        Study { silenced, ..self }
    }

    /// Returns the names of all analyses in the order in which they were added: those of their types, as words.
    pub fn names(&self) -> Vec<String> {
        self.silenced.added.iter().copied().map(words).collect()
    }

    /// Notes an analysis of several that are added at once, and returns whether it asks for anything.
    pub(crate) fn joins<A>(&mut self) -> bool {
        self.silenced.joins::<A>()
    }
}

/// Returns the name of a type as words: of `analysis::nested::NestedExits` it is `nested exits`, of a shared one the
/// name of what is shared.
fn words(path: &str) -> String {
    let path = path.trim_end_matches('>');
    let name = path.rsplit("::").next().unwrap_or(path);
    let mut words = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExitOptions, Exits, Signs, Stalls, States, Vcpus, Window};

    #[test]
    fn names_are_those_of_types() {
        let mut study = Study::default();
        study.add_together((Signs::new(), Stalls::new()));
        study.add(crate::NestedExits::new());
        study.share(Exits::new(ExitOptions::default()));
        assert_eq!(study.names(), ["signs", "stalls", "nested exits", "exits"]);
    }

    #[test]
    fn who_is_silent_asks_for_nothing() {
        let states = |silence| {
            let mut study = Study::default().silence(silence);
            study.add(Vcpus::new(Window::default()));
            (study.machines[0].states, study.machines[0].spans)
        };
        assert_eq!(states(StudySilence::Nobody), (States::All, 1));
        assert_eq!(states(StudySilence::Single(0)), (States::Nothing, 0));
        assert_eq!(states(StudySilence::Single(1)), (States::All, 1));
        // All is followed, and nobody is called.
        assert_eq!(states(StudySilence::Everybody), (States::All, 0));
    }
}
