//! What recordings say of those that were made together with them: a host's and its guests', each on a clock of its
//! own.

use serde::{Serialize, Serializer};

use crate::file::Feature;

/// One comparison of a host's clock with a guest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockComparison {
    /// The host's events' clock, ns.
    pub host_ns: u64,
    /// The guest's at the same time, ns.
    pub guest_ns: u64,
    /// How long asking took, ns: half of it is what the two are apart at most.
    pub round_ns: u64,
}

/// A guest of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostGuest {
    /// The number of its recording.
    #[serde(serialize_with = "number")]
    pub id: u64,
    /// Its host name.
    pub name: String,
    /// The host's time less the guest's, ns, and by what that was found; nothing before the recording's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// See [`HostGuest::offset_ns`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockComparison>,
}

/// What a recording says of those that were made together with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JointRecording {
    /// Its own number, which no other recording has.
    #[serde(serialize_with = "number")]
    pub own: u64,
    /// Its guests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<HostGuest>,
    /// The number of its host's recording.
    #[serde(serialize_with = "maybe", skip_serializing_if = "Option::is_none")]
    pub host: Option<u64>,
    /// The host's time less this one's, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// By what that was found: before the recording, and behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockComparison>,
}

impl JointRecording {
    /// Returns it as a file says it.
    pub fn said(&self) -> Feature {
        let said = serde_json::to_vec(&serde_json::json!({ "together": self }));
        Feature::Trapline(said.unwrap_or_default())
    }
}

/// Numbers of 64 bits are texts: readers of JSON may keep 53 of them.
fn number<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{number:#x}"))
}

#[expect(clippy::ref_option, reason = "serde hands out a reference")]
fn maybe<S: Serializer>(value: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number(value, to),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_said() {
        let together = JointRecording {
            own: u64::MAX,
            ..JointRecording::default()
        };
        let Feature::Trapline(text) = together.said() else {
            panic!("it is trapline's own");
        };
        assert_eq!(text, br#"{"together":{"own":"0xffffffffffffffff"}}"#);
    }
}
