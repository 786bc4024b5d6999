//! What is written of an incident: its line in incidents.jsonl, and incident.json in its folder.

use counts::{CONDITIONS, LimitUnit, Symptom};
use serde::Serialize;

/// Symptoms that a note lists; others are counted.
const MOST_SYMPTOMS: usize = 64;

/// An incident, as its line and its file have it. Times in `_ns` are durations.
#[derive(Debug, Clone, Serialize)]
pub(super) struct IncidentNote {
    /// Its number since this watch began, from 1.
    pub(super) incident: u64,
    /// When it was noticed, in UTC.
    pub(super) at: String,
    /// The folder of its recording; none where it was not recorded.
    pub(super) recording: Option<String>,
    /// Why not.
    pub(super) not_recorded: Option<String>,
    /// Of how much time the recording is.
    pub(super) recorded_ns: Option<u64>,
    /// The bytes of its events.
    pub(super) recorded_bytes: Option<u64>,
    /// Events that found no room in a ring since the recording before.
    pub(super) lost_events: Option<u64>,
    /// From the first symptom to the last, once it is over.
    pub(super) lasted_ns: Option<u64>,
    /// How often it came back after it was over.
    pub(super) came_back: u32,
    /// What was seen, in the order in which it was; the first began it.
    pub(super) symptoms: Vec<NotedSymptom>,
    /// Symptoms that are not listed.
    pub(super) more_symptoms: u64,
}

/// A symptom of an incident.
#[derive(Debug, Clone, Serialize)]
pub(super) struct NotedSymptom {
    /// When it was noticed, in UTC.
    pub(super) at: String,
    pub(super) condition: &'static str,
    /// The VM, or the path.
    pub(super) of: String,
    /// The vCPU or thread, or the path.
    pub(super) who: String,
    pub(super) measured: f64,
    /// What that is: cpu_share, per_second or ns.
    pub(super) unit: &'static str,
    pub(super) text: String,
}

impl IncidentNote {
    /// Begins with what was seen first.
    pub(super) fn new(incident: u64, at: String, symptom: Symptom) -> IncidentNote {
        IncidentNote {
            incident,
            symptoms: vec![NotedSymptom::new(at.clone(), symptom)],
            at,
            recording: None,
            not_recorded: None,
            recorded_ns: None,
            recorded_bytes: None,
            lost_events: None,
            lasted_ns: None,
            came_back: 0,
            more_symptoms: 0,
        }
    }

    /// Adds what was seen too.
    pub(super) fn add(&mut self, at: String, symptom: Symptom) {
        match self.symptoms.len() < MOST_SYMPTOMS {
            true => self.symptoms.push(NotedSymptom::new(at, symptom)),
            false => self.more_symptoms += 1,
        }
    }

    /// Says what was seen first.
    pub(super) fn text(&self) -> &str {
        self.symptoms.first().map_or("", |first| &first.text)
    }
}

impl NotedSymptom {
    fn new(at: String, symptom: Symptom) -> NotedSymptom {
        let mut conditions = CONDITIONS.iter();
        let condition = conditions.find(|one| one.id == symptom.condition);
        NotedSymptom {
            at,
            condition: symptom.condition,
            of: symptom.label,
            who: symptom.who,
            measured: symptom.measured,
            unit: match condition.map(|one| one.unit) {
                Some(LimitUnit::CpuShare) => "cpu_share",
                Some(LimitUnit::PerSecond) => "per_second",
                None => "ns",
            },
            text: symptom.text,
        }
    }
}

/// Letters of a VM's or a path's name that the name of a folder has.
const MOST_LETTERS: usize = 40;

/// Returns the name of an incident's folder: its time, its condition, and of what it is. It has letters that need no
/// quotes alone.
pub(super) fn folder_name(at: &str, symptom: &Symptom) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' => letter,
        _ => '-',
    };
    // A path may be a file.
    let label = symptom.label.rsplit('/').next().unwrap_or_default();
    let label: String = label.chars().take(MOST_LETTERS).map(plain).collect();
    format!("{}-{}-{label}", at.replace(':', "-"), symptom.condition)
}

/// Returns whether a folder has a name that [`folder_name`] may have given.
pub(super) fn is_folder_name(name: &str) -> bool {
    let shape = "dddd-dd-ddTdd-dd-ddZ-";
    let fits = |(letter, wanted): (u8, u8)| match wanted {
        b'd' => letter.is_ascii_digit(),
        _ => letter == wanted,
    };
    name.len() > shape.len() && name.bytes().zip(shape.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use counts::IncidentSubject;

    use super::*;

    fn symptom(label: &str) -> Symptom {
        Symptom {
            condition: "steal",
            subject: IncidentSubject::Vm(1),
            label: label.to_owned(),
            who: "vCPU 0".to_owned(),
            measured: 0.5,
            text: "vCPU 0 waited".to_owned(),
            is_lasting: true,
        }
    }

    #[test]
    fn no_name_of_a_vm_leaves_its_folder() {
        for (label, expected) in [
            ("web", "2026-11-28T12-00-03Z-steal-web"),
            ("../../etc", "2026-11-28T12-00-03Z-steal-etc"),
            (
                "a b\n\u{1b}[2J$(x)",
                "2026-11-28T12-00-03Z-steal-a-b---2J--x-",
            ),
            ("", "2026-11-28T12-00-03Z-steal-"),
        ] {
            let name = folder_name("2026-11-28T12:00:03Z", &symptom(label));
            assert_eq!(name, expected);
            assert!(is_folder_name(&name), "{name}");
        }
        let long = folder_name("2026-11-28T12:00:03Z", &symptom(&"ü".repeat(1000)));
        assert!(long.len() < 100 && long.is_ascii(), "{long}");
        for other in [
            "",
            "lost+found",
            "2026-11-28T12-00-03Z-",
            "2026-11-28",
            "x026-11-28T12-00-03Z-a",
        ] {
            assert!(!is_folder_name(other), "{other}");
        }
    }

    #[test]
    fn a_note_is_bounded() {
        let mut note = IncidentNote::new(1, "now".to_owned(), symptom("web"));
        for _ in 0..1000 {
            note.add("later".to_owned(), symptom("web"));
        }
        assert_eq!(note.symptoms.len(), MOST_SYMPTOMS);
        assert_eq!(note.more_symptoms, 1000 + 1 - MOST_SYMPTOMS as u64);
    }
}
