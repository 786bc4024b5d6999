//! What the programs have to know of the running kernel: where the fields of records are, from its own formats, and
//! with which reasons a guest asks to wait.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use event::{ExitReason, Isa, reasons::ARM_EXCEPTION_TRAP};
use tracefmt::{Abi, EventFormat};

use crate::error::LiveError;
use crate::raw::{MAX_WAITING, RawLayout, kind};

/// Where tracefs is mounted, since 4.1 and before.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The running kernel's formats.
#[derive(Debug)]
pub(crate) struct KernelFormats {
    events: PathBuf,
}

impl KernelFormats {
    /// Finds them.
    pub(crate) fn find() -> Result<KernelFormats, LiveError> {
        KernelFormats::among(&TRACEFS.map(Path::new))
    }

    /// Finds them in the first of these folders that has events.
    fn among(places: &[&Path]) -> Result<KernelFormats, LiveError> {
        for place in places {
            let events = place.join("events");
            match fs::metadata(&events) {
                Ok(found) if found.is_dir() => return Ok(KernelFormats { events }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(LiveError::ClosedTracefs(place.to_path_buf()));
                }
                _ => {}
            }
        }
        Err(LiveError::NoTracefs)
    }

    /// Returns the format of an event; `None` where the kernel does not have the event.
    pub(crate) fn read(&self, system: &str, name: &str) -> Result<Option<EventFormat>, LiveError> {
        let path = self.events.join(system).join(name).join("format");
        match fs::read(&path) {
            Ok(text) => Ok(EventFormat::parse(system, &text, Abi::default())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LiveError::Format { path, error }),
        }
    }

    /// Returns a format that has to be there.
    pub(crate) fn need(&self, system: &str, name: &str) -> Result<EventFormat, LiveError> {
        let format = self.read(system, name)?;
        format.ok_or_else(|| LiveError::NoKvm(self.events.join(system).join(name)))
    }
}

/// Formats of the events that are read as records.
#[derive(Debug)]
pub(crate) struct RecordFormats {
    pub(crate) exit: EventFormat,
    pub(crate) switch: EventFormat,
    pub(crate) wakeup: EventFormat,
    pub(crate) migrate: Option<EventFormat>,
    pub(crate) end: Option<EventFormat>,
}

impl RecordFormats {
    /// Reads them.
    pub(crate) fn read(formats: &KernelFormats) -> Result<RecordFormats, LiveError> {
        Ok(RecordFormats {
            exit: formats.need("kvm", "kvm_exit")?,
            switch: formats.need("sched", "sched_switch")?,
            wakeup: formats.need("sched", "sched_wakeup")?,
            migrate: formats.read("sched", "sched_migrate_task")?,
            end: formats.read("sched", "sched_process_exit")?,
        })
    }

    /// Returns whether an exit's reason is in the arguments of its tracepoint, the first two, as its record has them:
    /// on arm64 (`arch/arm64/kvm/trace_arm.h`, since `ret` is there). On x86 it is made from the vCPU when the record
    /// is.
    pub(crate) fn exit_by_argument(&self) -> bool {
        let own = self.exit.own_fields().iter().take(2);
        own.map(|field| field.name.as_str()).eq(["ret", "esr_ec"])
    }

    /// Returns the layout.
    pub(crate) fn layout(&self) -> Result<RawLayout, LiveError> {
        let at = |format: &EventFormat, name: &str| {
            let field = format.field(name);
            field.map_or(-1, |field| field.offset.cast_signed())
        };
        let must = |format: &EventFormat, event, name| match at(format, name) {
            -1 => Err(LiveError::Field { event, field: name }),
            offset => Ok(offset),
        };
        let optional = |format: &Option<EventFormat>, name: &str| {
            format.as_ref().map_or(-1, |format| at(format, name))
        };
        let exit_class = at(&self.exit, "esr_ec");
        let arm = exit_class >= 0;
        let exit_reason = match arm {
            true => -1,
            false => must(&self.exit, "kvm:kvm_exit", "exit_reason")?,
        };
        let state = self.switch.field("prev_state");
        let exit_isa = at(&self.exit, "isa");
        let (waiting, count) = waiting(arm);
        Ok(RawLayout {
            exit_reason,
            exit_isa,
            exit_ret: at(&self.exit, "ret"),
            exit_class,
            exit_vcpu: at(&self.exit, "vcpu_id"),
            switch_prev_pid: must(&self.switch, "sched:sched_switch", "prev_pid")?,
            switch_prev_state: must(&self.switch, "sched:sched_switch", "prev_state")?,
            switch_prev_state_size: state.map_or(0, |field| field.size.cast_signed()),
            switch_prev_comm: must(&self.switch, "sched:sched_switch", "prev_comm")?,
            switch_next_pid: must(&self.switch, "sched:sched_switch", "next_pid")?,
            wakeup_pid: must(&self.wakeup, "sched:sched_wakeup", "pid")?,
            wakeup_target: must(&self.wakeup, "sched:sched_wakeup", "target_cpu")?,
            migrate_pid: optional(&self.migrate, "pid"),
            migrate_dest: optional(&self.migrate, "dest_cpu"),
            end_pid: optional(&self.end, "pid"),
            arm_trap: ARM_EXCEPTION_TRAP,
            waiting_count: count,
            unused: 0,
            waiting,
        })
    }
}

/// Returns the reasons with which a guest asks to wait: as the programs' keys have them, with whose table it is in the
/// top byte.
fn waiting(arm: bool) -> ([u64; MAX_WAITING], u32) {
    let mut list = [0; MAX_WAITING];
    let mut count = 0u32;
    let all = candidates(arm).into_iter();
    let all = all.filter(|(_, reason)| reason.is_waiting());
    for (slot, (code, _)) in list.iter_mut().zip(all) {
        *slot = code;
        count += 1;
    }
    (list, count)
}

/// Reasons of the tables that this architecture has, with their codes.
fn candidates(arm: bool) -> Vec<(u64, ExitReason)> {
    let of = |table: u8, code: u64| u64::from(table) << 56 | code;
    // AMD's guests ask with numbers of their own (SEV-ES); in Intel's that bit says that an entry failed.
    let x86 = |table, isa| {
        let own = if isa == Isa::Svm { 0x1000 } else { 0 };
        let codes = (0..0x1000u32).chain(0x8000_0000..0x8000_0000 + own);
        codes.map(move |code| (of(table, code.into()), ExitReason { isa, code }))
    };
    let arm64 = |class: u32| {
        let code = u64::from(class) << 32 | u64::from(ARM_EXCEPTION_TRAP);
        let reason = ExitReason::arm64(ARM_EXCEPTION_TRAP, class);
        (of(kind::ARM64, code), reason)
    };
    match arm {
        true => (0..64).map(arm64).collect(),
        false => x86(kind::VMX, Isa::Vmx)
            .chain(x86(kind::SVM, Isa::Svm))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_that_wait_have_room() {
        for arm in [false, true] {
            let all = candidates(arm).into_iter();
            let all = all.filter(|(_, reason)| reason.is_waiting());
            let (list, count) = waiting(arm);
            assert_eq!(all.count(), count as usize, "{list:?}");
            assert!(count > 0);
        }
    }
}
