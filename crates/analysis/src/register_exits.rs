//! Which control, debug and model-specific registers exits were for, as the processor says it of the exit.

use event::ExitDetail;

/// Registers of a sort: x86 numbers control and debug registers from 0 to 15.
const REGISTERS: usize = 16;

/// How often registers were read and written, by exits whose detail was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegisterExits {
    control: [[u64; 2]; REGISTERS],
    debug: [[u64; 2]; REGISTERS],
    msr: [u64; 2],
}

impl RegisterExits {
    /// Counts an exit, if it is for a register.
    #[inline]
    pub fn add(&mut self, detail: ExitDetail) {
        let write = usize::from(detail.is_write());
        let count = match detail {
            ExitDetail::Control { register, .. } => self.control.get_mut(usize::from(register)),
            ExitDetail::Debug { register, .. } => self.debug.get_mut(usize::from(register)),
            ExitDetail::Msr { .. } => Some(&mut self.msr),
            ExitDetail::Port { .. } | ExitDetail::NestedFault { .. } => None,
        };
        if let Some(count) = count {
            count[write] += 1;
        }
    }

    /// Returns how often each control register (by number) was accessed, and whether it was written; most first.
    pub fn control(&self) -> Vec<(usize, bool, u64)> {
        most_first(&self.control)
    }

    /// Returns the same of debug registers.
    pub fn debug(&self) -> Vec<(usize, bool, u64)> {
        most_first(&self.debug)
    }

    /// Returns how often model-specific registers were read, and how often written: which ones is not recorded with
    /// the exit.
    pub fn msr(&self) -> (u64, u64) {
        (self.msr[0], self.msr[1])
    }
}

fn most_first(counts: &[[u64; 2]; REGISTERS]) -> Vec<(usize, bool, u64)> {
    let each = counts.iter().enumerate();
    let each = each.flat_map(|(at, [reads, writes])| [(at, false, *reads), (at, true, *writes)]);
    let mut out: Vec<(usize, bool, u64)> = each.filter(|(.., count)| *count > 0).collect();
    out.sort_by_key(|(at, write, count)| (std::cmp::Reverse(*count), *at, *write));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_counted_by_direction() {
        let mut exits = RegisterExits::default();
        for _ in 0..3 {
            exits.add(ExitDetail::Control {
                register: 3,
                write: true,
            });
        }
        exits.add(ExitDetail::Control {
            register: 8,
            write: false,
        });
        exits.add(ExitDetail::Debug {
            register: 7,
            write: true,
        });
        // No register has this number.
        exits.add(ExitDetail::Debug {
            register: 200,
            write: true,
        });
        exits.add(ExitDetail::Msr { write: false });
        assert_eq!(exits.control(), [(3, true, 3), (8, false, 1)]);
        assert_eq!(exits.debug(), [(7, true, 1)]);
        assert_eq!(exits.msr(), (1, 0));
    }
}
