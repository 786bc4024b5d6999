//! What a recording lacks: printed with every result.

/// How complete a recording is, and what was odd in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quality {
    /// Events the recorder says it lost. Where it only says that some were lost, at least that many are
    /// counted and a warning tells so.
    pub lost_events: u64,
    /// Whether the recording ends before its own end: cut off, or its recorder was killed.
    pub truncated: bool,
    /// From when on events of some CPUs are missing and those of others are there, because the recording holds them CPU by
    /// CPU and was cut off: a time in nanoseconds of its clock, 0 where of some CPU there is nothing.
    pub uneven_from: Option<u64>,
    /// Everything a reader of the numbers has to know, a full sentence each.
    pub warnings: Vec<String>,
}

impl Quality {
    /// Adds a warning, once.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Takes over what another part of the recording lacks.
    pub fn merge(&mut self, other: Quality) {
        self.lost_events = self.lost_events.saturating_add(other.lost_events);
        self.truncated |= other.truncated;
        self.uneven_from = [self.uneven_from, other.uneven_from]
            .into_iter()
            .flatten()
            .min();
        for warning in other.warnings {
            self.warn(warning);
        }
    }
}
