//! A guest that spins in itself: where the host's interrupts found it.
//!
//! Each interrupt of the host, and each expiry of KVM's own timer, is a sample of what the guest ran: the exit has its
//! address. A guest whose kernel was at the same few instructions each time, and which asked for nothing meanwhile, is
//! in a loop there: a lock that nobody releases, a panic, a wait for another CPU. So is one that was booted with
//! `idle=poll` and is idle.

use event::{ExitClass, ExitReason};

/// Addresses within so many bytes are one loop: a function that takes a lock is as long.
const LOOP_BYTES: u64 = 512;
/// One sample in so many may be elsewhere: in an interrupt that the guest took.
const STRAYS: u64 = 10;

/// More exits for its timer and its interrupts for each sample are work: interrupts that it sends to other CPUs.
const BUSY: u64 = 4;

/// Samples of a guest's kernel at one place, with nothing between that the guest did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpinRun {
    /// The lowest and the highest address at which it was found.
    pub place: (u64, u64),
    /// How often.
    pub samples: u64,
    /// Samples at other places.
    pub strays: u64,
    /// Exits by which it set its timer, or took an interrupt.
    pub of_timer: u64,
    /// Of the samples, those for PAUSE.
    pub pauses: u64,
    /// From the first sample.
    pub from: u64,
    /// To the last one.
    pub to: u64,
}

impl SpinRun {
    /// Returns how long it was.
    pub fn ns(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// Looks for the longest such run of a vCPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpinWatch {
    now: SpinRun,
    longest: SpinRun,
}

impl SpinWatch {
    /// Takes an exit.
    #[inline]
    pub(crate) fn exit(&mut self, time: u64, reason: ExitReason, guest_pc: Option<u64>) {
        match (reason.class(), guest_pc) {
            (ExitClass::Interrupt | ExitClass::Timer | ExitClass::Pause, Some(pc))
                if is_kernel(pc) =>
            {
                self.sample(time, pc, reason.class() == ExitClass::Pause);
            }
            (
                ExitClass::Interrupt
                | ExitClass::Msr
                | ExitClass::Apic
                | ExitClass::InterruptWindow,
                _,
            ) => {
                self.now.of_timer += u64::from(self.now.samples > 0);
                if self.now.of_timer > BUSY * (self.now.samples + 1) {
                    self.end();
                }
            }
            // What for, an event behind it says.
            (ExitClass::Confidential, _) => {}
            // It does something.
            _ if self.now.samples > 0 => self.end(),
            _ => {}
        }
    }

    fn sample(&mut self, time: u64, pc: u64, is_pause: bool) {
        let now = &mut self.now;
        let (low, high) = now.place;
        let within = now.samples > 0 && pc.max(high) - pc.min(low) < LOOP_BYTES;
        if !within && now.samples > 0 && (now.strays + 1) * STRAYS <= now.samples {
            now.strays += 1;
            return;
        }
        if !within {
            self.end();
            self.now = SpinRun {
                place: (pc, pc),
                from: time,
                ..SpinRun::default()
            };
        }
        let now = &mut self.now;
        now.place = (now.place.0.min(pc), now.place.1.max(pc));
        now.samples += 1;
        now.pauses += u64::from(is_pause);
        now.to = time;
    }

    fn end(&mut self) {
        self.longest = self.longest();
        self.now = SpinRun::default();
    }

    /// Returns the longest run, the one under way included.
    pub(crate) fn longest(&self) -> SpinRun {
        match self.now.ns() > self.longest.ns() {
            true => self.now,
            false => self.longest,
        }
    }
}

/// Whether an address is in the kernel's half of the guest's memory, on x86 and on arm64.
fn is_kernel(pc: u64) -> bool {
    pc >> 63 == 1
}

#[cfg(test)]
mod tests {
    use event::Isa;

    use super::*;

    const TICK: (u32, u64) = (1, 0xffff_ffff_8100_0040);

    fn run(exits: &[(u32, u64)]) -> SpinRun {
        let mut watch = SpinWatch::default();
        for (at, (code, pc)) in exits.iter().enumerate() {
            let reason = ExitReason {
                isa: Isa::Vmx,
                code: *code,
            };
            watch.exit(at as u64 * 1000, reason, Some(*pc));
        }
        watch.longest()
    }

    #[test]
    fn samples_at_one_place_are_a_run() {
        let found = run(&[TICK; 100]);
        assert_eq!(
            (found.samples, found.ns(), found.of_timer),
            (100, 99_000, 0)
        );
    }

    #[test]
    fn what_the_guest_does_ends_it() {
        let mut exits = vec![TICK; 100];
        // A halt, an access of a port.
        exits[50] = (12, TICK.1);
        exits[80] = (30, TICK.1);
        assert_eq!(run(&exits).samples, 50);
        // It sets its timer: that it may do where it spins.
        let mut exits = vec![TICK; 100];
        exits[50] = (32, 0xffff_ffff_8200_0000);
        let found = run(&exits);
        assert_eq!((found.samples, found.of_timer), (99, 1));
        // It sends interrupts all the time.
        let exits: Vec<_> = (0..600)
            .map(|at| match at % 6 {
                0 => TICK,
                _ => (32, 0xffff_ffff_8200_0000),
            })
            .collect();
        assert!(run(&exits).samples < 10);
    }

    #[test]
    fn samples_elsewhere_are_few() {
        let elsewhere = |every: usize| {
            let exits = (0..100).map(|at| match at % every == every - 1 {
                true => (1, 0xffff_ffff_8200_0000 + at as u64 * 0x1000),
                false => TICK,
            });
            run(&exits.collect::<Vec<_>>())
        };
        assert_eq!(elsewhere(20).samples, 95);
        assert!(elsewhere(4).samples < 10);
        // A program of the guest may run what it likes.
        assert_eq!(run(&[(1, 0x40_1000); 100]).samples, 0);
    }
}
