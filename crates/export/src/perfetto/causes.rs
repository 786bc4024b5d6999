//! What exits are called, each text made once.

use std::cell::RefCell;

use model::Cause;
use rustc_hash::FxHashMap;

use super::packets::NumberedText;
use crate::known::{Devices, FirstWalk};

/// Causes whose texts are kept; those of others are made each time.
const MAX_CAUSES: usize = 1 << 16;

/// The texts of a cause.
#[derive(Debug)]
pub(super) struct CauseTexts {
    /// The title of its exits: the reason, and the device or else the access.
    pub title: NumberedText,
    pub reason: Option<NumberedText>,
    pub access: Option<NumberedText>,
    /// Device and register behind the access, if they are known.
    pub device: Option<NumberedText>,
}

/// The texts of all causes, and of the last ones, which many events have one after the other.
#[derive(Debug, Default)]
pub(super) struct CauseTable {
    numbers: FxHashMap<Cause, usize>,
    all: Vec<CauseTexts>,
    last: [Option<(Cause, usize)>; LAST],
    next: usize,
    /// One for which there was no room.
    beyond: Option<CauseTexts>,
}

/// Causes that are compared before one is looked up: those of a vCPU's states and of its exit.
const LAST: usize = 4;

impl CauseTable {
    /// Returns what a cause is called.
    #[inline]
    pub(super) fn of(
        &mut self,
        cause: Cause,
        devices: &RefCell<Devices>,
        known: &FirstWalk<'_>,
    ) -> &CauseTexts {
        let last = self.last.iter().flatten();
        let at = match { last }.find(|(last, _)| *last == cause) {
            Some((_, at)) => Some(*at),
            None => self.look_up(cause, devices, known),
        };
        let kept = at.and_then(|at| self.all.get(at));
        kept.unwrap_or_else(|| {
            self.beyond
                .get_or_insert_with(|| texts(cause, devices, known))
        })
    }

    /// Returns where the texts of a cause are, which may have to be made; `None` where there is no room for them.
    fn look_up(
        &mut self,
        cause: Cause,
        devices: &RefCell<Devices>,
        known: &FirstWalk<'_>,
    ) -> Option<usize> {
        let at = match self.numbers.get(&cause) {
            Some(at) => *at,
            None => {
                let made = texts(cause, devices, known);
                if self.all.len() >= MAX_CAUSES {
                    self.beyond = Some(made);
                    return None;
                }
                self.numbers.insert(cause, self.all.len());
                self.all.push(made);
                self.all.len() - 1
            }
        };
        if let Some(place) = self.last.get_mut(self.next % LAST) {
            *place = Some((cause, at));
        }
        self.next = (self.next + 1) % LAST;
        Some(at)
    }
}

fn texts(cause: Cause, devices: &RefCell<Devices>, known: &FirstWalk<'_>) -> CauseTexts {
    let mut devices = devices.borrow_mut();
    let access = devices.of(&cause, known);
    let key = access.map(|one| &*one.key);
    let device = access.and_then(|one| one.device.as_deref());
    let reason = cause.reason.map(|reason| reason.key());
    let mut title = reason.as_deref().unwrap_or_default().to_owned();
    if let Some(behind) = device.or(key) {
        title.push(' ');
        title.push_str(behind);
    }
    CauseTexts {
        title: NumberedText::new(title),
        reason: reason.as_deref().map(NumberedText::new),
        access: key.map(NumberedText::new),
        device: device.map(NumberedText::new),
    }
}
