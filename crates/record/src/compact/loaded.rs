//! The programs in the kernel.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{Array, Map, MapData, PerCpuArray};
use aya::programs::{BtfTracePoint, Program, RawTracePoint, TracePoint};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use tracefmt::EventFormat;

use super::kinds::{CompactKind, KINDS};

/// The programs.
static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/compact.bpf.o");

/// What a CPU has taken: slots, then events of each kind, then those that came while programs paused (`struct taken`).
type TakenCounts = [u64; KINDS + 2];

/// What programs do with events (`enum state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramState {
    /// Nothing.
    Off = 0,
    /// They write them.
    On = 1,
    /// They count them, and write nothing.
    Paused = 2,
}

/// The programs, loaded.
#[derive(Debug)]
pub(super) struct CompactPrograms {
    bpf: Ebpf,
    btf: Btf,
}

/// Says why the kernel or the loader refuses.
fn why(error: &(dyn std::error::Error + 'static)) -> String {
    let (text, _) = words::causes(error);
    text
}

/// Where fields of kvm_exit are (`struct exit_layout`), by the running kernel's format of it; nowhere without one.
fn exit_layout(exit: Option<&EventFormat>, slots: u32) -> [u32; 12] {
    let at = |name: &str| {
        let field = exit.and_then(|format| format.field(name));
        field.map_or(u32::MAX, |field| field.offset)
    };
    [
        at("exit_reason"),
        at("guest_rip"),
        at("isa"),
        at("info1"),
        at("info2"),
        at("intr_info"),
        at("error_code"),
        at("vcpu_id"),
        at("requests"),
        slots - 1,
        u32::from(cfg!(target_arch = "x86_64")),
        0,
    ]
}

impl CompactPrograms {
    /// Loads them: so many slots, a power of two, for each of so many CPUs.
    ///
    /// # Errors
    ///
    /// What the kernel says, in a sentence.
    pub(super) fn load(
        exit: Option<&EventFormat>,
        slots: u32,
        cpus: u32,
    ) -> Result<CompactPrograms, String> {
        let btf = Btf::from_sys_fs().map_err(|error| {
            format!(
                "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF): {}",
                why(&error)
            )
        })?;
        let loaded = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("layout", &exit_layout(exit, slots), true)
            .map_max_entries("slots", slots.saturating_mul(cpus))
            .load(OBJECT);
        let bpf = loaded.map_err(|error| why(&error))?;
        Ok(CompactPrograms { bpf, btf })
    }

    /// Attaches the first of a kind's programs that this kernel takes.
    ///
    /// # Errors
    ///
    /// What the kernel says of the last of them, in a sentence.
    pub(super) fn attach(&mut self, kind: &CompactKind) -> Result<(), String> {
        let mut refused = "no such program".to_owned();
        for name in kind.programs {
            match self.attach_one(name, kind) {
                Ok(()) => return Ok(()),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn attach_one(&mut self, name: &str, kind: &CompactKind) -> Result<(), String> {
        let program = self.bpf.program_mut(name).ok_or("no such program")?;
        let done =
            match program {
                Program::BtfTracePoint(one) => BtfTracePoint::load(one, kind.name, &self.btf)
                    .and_then(|()| one.attach().map(drop)),
                Program::RawTracePoint(one) => {
                    RawTracePoint::load(one).and_then(|()| one.attach(kind.name).map(drop))
                }
                Program::TracePoint(one) => TracePoint::load(one)
                    .and_then(|()| one.attach(kind.system, kind.name).map(drop)),
                _ => return Err("a program of another type".to_owned()),
            };
        done.map_err(|error| why(&error))
    }

    /// Returns the map of slots.
    pub(super) fn slots(&self) -> Result<BorrowedFd<'_>, String> {
        match self.bpf.map("slots") {
            Some(Map::Array(map)) => Ok(map.fd().as_fd()),
            _ => Err("no map of slots".to_owned()),
        }
    }

    /// Says what programs do from now on.
    pub(super) fn record(&mut self, state: ProgramState) -> Result<(), String> {
        let map = self
            .bpf
            .map_mut("recording")
            .ok_or("no map of what is on")?;
        let mut map: Array<&mut MapData, u64> = map.try_into().map_err(|error| why(&error))?;
        map.set(0, state as u64, 0).map_err(|error| why(&error))
    }

    /// Returns what each CPU has taken so far.
    pub(super) fn taken(&self) -> Vec<TakenSlots> {
        let map = self.bpf.map("taken");
        let map = map.and_then(|map| PerCpuArray::<&MapData, TakenCounts>::try_from(map).ok());
        let counts = map.and_then(|map| map.get(&0, 0).ok());
        counts.map_or_else(Vec::new, |counts| {
            counts.iter().map(|counts| TakenSlots(*counts)).collect()
        })
    }
}

/// What a CPU has taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenSlots(TakenCounts);

impl TakenSlots {
    /// Returns how many slots.
    pub(super) fn slots(&self) -> u64 {
        self.0[0]
    }

    /// Returns how many events of a kind it wrote.
    pub(super) fn events(&self, kind: &CompactKind) -> u64 {
        self.0
            .get(usize::from(kind.number) + 1)
            .copied()
            .unwrap_or(0)
    }

    /// Returns how many events came while programs paused.
    pub(super) fn paused(&self) -> u64 {
        self.0[KINDS + 1]
    }
}
