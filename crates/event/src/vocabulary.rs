//! The events that trapline has a typed view of: each one's line here gives it its [`Kind`], its [`Data`], and their
//! readers. What it says is declared in the file of its subsystem.

use crate::define::{ParsedText, TextForm, TypedKind};
use crate::kvm::{
    KvmApicvInhibitChanged, KvmEntry, KvmExit, KvmFpu, KvmHaltPollNs, KvmMmio, KvmMsr, KvmPio,
    KvmSysAccess, KvmUnmapHvaRange, KvmUserspaceExit, KvmVcpuWakeup,
};
use crate::sched::{
    SchedMigrateTask, SchedProcessExit, SchedProcessFork, SchedStatRuntime, SchedSwitch,
    SchedWakeup, TaskRename,
};
use crate::text::without_complaints;
use crate::text_reasons::TextReasons;
use crate::workqueue::{WorkqueueExecuteEnd, WorkqueueExecuteStart};
use tracefmt::EventFormat;

/// Makes of a list `Kind(Type) = "system" / "name"` all that depends on which events there are. `and` gives another
/// kind of event that says the same.
macro_rules! vocabulary {
    ($(
        $(#[$doc:meta])*
        $kind:ident($type:ty) = $($system:literal)|+ / $($name:literal)|+
        $(and $(#[$also_doc:meta])* $also:ident = $also_system:literal / $($also_name:literal)|+)?;
    )+) => {
        /// What an event means to trapline.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        #[non_exhaustive]
        pub enum Kind {
            $(
                $(#[$doc])* $kind,
                $($(#[$also_doc])* $also,)?
            )+
            /// Any other event.
            #[default]
            Other,
        }

        impl Kind {
            /// Returns what an event of this name means. The subsystem is compared only where it is known: texts of
            /// ftrace do not print it.
            pub fn of(system: &str, name: &str) -> Kind {
                match (system, name) {
                    $(
                        ("" $(| $system)+, $($name)|+) => Kind::$kind,
                        $(("" | $also_system, $($also_name)|+) => Kind::$also,)?
                    )+
                    _ => Kind::Other,
                }
            }

            /// Returns whether parts of a text's line say enough of it that a line which was broken can be put together
            /// by what is read.
            #[inline]
            pub fn is_read_in_parts(self) -> bool {
                match self {
                    $(Kind::$kind $(| Kind::$also)? => {
                        matches!(<$type as TypedKind>::TEXT, TextForm::Parts(_))
                    })+
                    Kind::Other => false,
                }
            }

            /// Returns the number of what the typed view calls so, for [`Data::number`].
            pub(crate) fn named(self, name: &str, in_text: bool) -> Option<usize> {
                match self {
                    $(Kind::$kind $(| Kind::$also)? => named::<$type>(name, in_text),)+
                    Kind::Other => None,
                }
            }
        }

        /// The typed view of one event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub enum Data {
            $($(#[$doc])* $kind($type),)+
            /// An event without a typed view, or one whose record has not the fields it needs.
            #[default]
            Other,
        }

        impl Data {
            /// Reads what [`Kind::named`] found.
            #[inline]
            pub(crate) fn number(&self, at: usize) -> Option<u64> {
                match self {
                    $(Data::$kind(event) => (<$type as TypedKind>::NAMED.get(at)?.get)(event),)+
                    Data::Other => None,
                }
            }
        }

        /// Where the fields of one kind of event are in its records.
        #[derive(Debug, Clone, Copy, Default)]
        enum FieldPlaces {
            $($kind(<$type as TypedKind>::Places),)+
            #[default]
            None,
        }

        impl Decoder {
            /// Prepares to read records of this format.
            ///
            /// The decoder of an event without a typed view, or of a format without the fields the view needs,
            /// returns [`Data::Other`] always.
            pub fn bind(kind: Kind, format: &EventFormat) -> Decoder {
                let places = match kind {
                    $(Kind::$kind $(| Kind::$also)? => {
                        <$type as TypedKind>::bind(format).map(FieldPlaces::$kind)
                    })+
                    Kind::Other => None,
                };
                Decoder(places.unwrap_or_default())
            }

            /// Reads the typed view of one record; [`Data::Other`] when the record is too short for it.
            ///
            /// What is returned is made once, in its place: a copy of it would have to wait for its parts.
            #[inline]
            pub fn decode(&self, record: &[u8]) -> Data {
                match &self.0 {
                    $(FieldPlaces::$kind(places) => match <$type as TypedKind>::read(places, record) {
                        Some(event) => Data::$kind(event),
                        None => Data::Other,
                    },)+
                    FieldPlaces::None => Data::Other,
                }
            }
        }

        impl TextReader {
            /// Reads the text of an event of this kind, or a part of it if it is [read in
            /// parts](Kind::is_read_in_parts).
            #[inline]
            pub fn read(&mut self, kind: Kind, text: &[u8]) -> TextReading {
                match kind {
                    $(Kind::$kind $(| Kind::$also)? => {
                        TextReading::of(parse::<$type>(text, &mut self.reasons), Data::$kind)
                    })+
                    Kind::Other => TextReading::NOTHING,
                }
            }
        }
    };
}

vocabulary! {
    /// The vCPU left the guest: `kvm:kvm_exit`, on s390 `kvm_s390_sie_exit`, on powerpc
    /// `kvm_hv:kvm_guest_exit`.
    KvmExit(KvmExit) = "kvm" | "kvm_hv" | "kvm-s390" / "kvm_exit" | "kvm_s390_sie_exit" | "kvm_guest_exit"
        and /// What the exit before it really was: of an SEV-ES or SEV-SNP guest `kvm_vmgexit_enter`,
        /// `kvm_vmgexit_msr_protocol_enter` and `kvm_rmp_fault`, of a LoongArch guest `kvm_exit_gspr` and those behind
        /// it.
        KvmInnerExit = "kvm" / "kvm_vmgexit_enter" | "kvm_vmgexit_msr_protocol_enter" | "kvm_rmp_fault"
            | "kvm_exit_gspr" | "kvm_exit_idle" | "kvm_exit_cache" | "kvm_exit_cpucfg" | "kvm_exit_csr";
    /// The vCPU is about to enter the guest: `kvm:kvm_entry`, on s390 `kvm_s390_sie_enter`, on powerpc
    /// `kvm_hv:kvm_guest_enter`, on LoongArch `kvm:kvm_enter` and `kvm:kvm_reenter`.
    KvmEntry(KvmEntry) = "kvm" | "kvm_hv" | "kvm-s390" / "kvm_entry" | "kvm_s390_sie_enter" | "kvm_guest_enter"
        | "kvm_enter" | "kvm_reenter";
    /// `kvm:kvm_fpu`: `KVM_RUN` begins or ends, where the guest's floating point state is put in place (x86).
    KvmFpu(KvmFpu) = "kvm" / "kvm_fpu";
    /// `kvm:kvm_mmio`: the guest touched memory that KVM emulates.
    KvmMmio(KvmMmio) = "kvm" / "kvm_mmio";
    /// `kvm:kvm_pio`: the guest touched an I/O port (x86).
    KvmPio(KvmPio) = "kvm" / "kvm_pio";
    /// `kvm:kvm_msr`: the guest read or wrote a model specific register (x86).
    KvmMsr(KvmMsr) = "kvm" / "kvm_msr";
    /// `kvm:kvm_sys_access`: the guest read or wrote a system register (arm64).
    KvmSysAccess(KvmSysAccess) = "kvm" / "kvm_sys_access";
    /// `kvm:kvm_userspace_exit`: `KVM_RUN` returns to the VMM.
    KvmUserspaceExit(KvmUserspaceExit) = "kvm" / "kvm_userspace_exit";
    /// `kvm:kvm_vcpu_wakeup`: a halted vCPU goes on.
    KvmVcpuWakeup(KvmVcpuWakeup) = "kvm" / "kvm_vcpu_wakeup";
    /// `kvm:kvm_halt_poll_ns`: KVM changes for how long a vCPU polls when it halts.
    KvmHaltPollNs(KvmHaltPollNs) = "kvm" / "kvm_halt_poll_ns";
    /// `kvm:kvm_apicv_inhibit_changed`: something that keeps a VM from APICv or AVIC came or went (x86).
    KvmApicvInhibitChanged(KvmApicvInhibitChanged) = "kvm" / "kvm_apicv_inhibit_changed";
    /// `kvm:kvm_unmap_hva_range`: the host takes memory away from VMs.
    KvmUnmapHvaRange(KvmUnmapHvaRange) = "kvm" / "kvm_unmap_hva_range";
    /// `sched:sched_switch`: a CPU goes from one task to the next.
    SchedSwitch(SchedSwitch) = "sched" / "sched_switch";
    /// `sched:sched_waking`: a task is being woken, recorded by the waker.
    SchedWaking(SchedWakeup) = "sched" / "sched_waking";
    /// `sched:sched_wakeup`: a task is on a run queue.
    SchedWakeup(SchedWakeup) = "sched" / "sched_wakeup"
        and /// `sched:sched_wakeup_new`: a new task is on a run queue for the first time.
        SchedWakeupNew = "sched" / "sched_wakeup_new";
    /// `sched:sched_migrate_task`: a task moves to another CPU.
    SchedMigrateTask(SchedMigrateTask) = "sched" / "sched_migrate_task";
    /// `sched:sched_stat_runtime`: a task ran for so long.
    SchedStatRuntime(SchedStatRuntime) = "sched" / "sched_stat_runtime";
    /// `sched:sched_process_fork`: a task was made.
    SchedProcessFork(SchedProcessFork) = "sched" / "sched_process_fork";
    /// `sched:sched_process_exit`: a task ends.
    SchedProcessExit(SchedProcessExit) = "sched" / "sched_process_exit";
    /// `task:task_rename`: a task has another name.
    TaskRename(TaskRename) = "task" / "task_rename";
    /// `workqueue:workqueue_execute_start`: a kworker begins a work item.
    WorkqueueExecuteStart(WorkqueueExecuteStart) = "workqueue" / "workqueue_execute_start";
    /// `workqueue:workqueue_execute_end`: it is done with it.
    WorkqueueExecuteEnd(WorkqueueExecuteEnd) = "workqueue" / "workqueue_execute_end";
}

impl Kind {
    /// Returns whether the event is about tasks in general: it happens on behalf of whatever task is running,
    /// and counts others.
    pub fn is_sched(self) -> bool {
        matches!(
            self,
            Kind::SchedSwitch
                | Kind::SchedWaking
                | Kind::SchedWakeup
                | Kind::SchedWakeupNew
                | Kind::SchedMigrateTask
                | Kind::SchedStatRuntime
                | Kind::SchedProcessFork
                | Kind::SchedProcessExit
                | Kind::TaskRename
        )
    }
}

/// Reads the typed view of one kind of event out of binary records.
///
/// Offsets come from the recording's own formats, once a format; a record is then read with a few loads. Kernels differ
/// in which fields they record, so every field but the ones without which the event means nothing is optional.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decoder(FieldPlaces);

impl Decoder {
    /// Returns whether records have a typed view at all.
    pub fn is_bound(&self) -> bool {
        !matches!(self.0, FieldPlaces::None)
    }
}

/// What was read from an event's text.
#[derive(Debug, Clone, Copy)]
pub struct TextReading {
    /// The typed view.
    pub data: Data,
    /// Whether nothing that the event always says is missing.
    pub complete: bool,
    /// How many of its numbers were found.
    pub found: u8,
}

impl TextReading {
    /// Of an event without a typed view nothing is missing.
    const NOTHING: TextReading = TextReading {
        data: Data::Other,
        complete: true,
        found: 0,
    };

    fn of<T>(parsed: Option<ParsedText<T>>, data: fn(T) -> Data) -> TextReading {
        match parsed {
            Some(parsed) => TextReading {
                data: data(parsed.event),
                complete: parsed.complete,
                found: parsed.found,
            },
            None => TextReading {
                data: Data::Other,
                complete: false,
                found: 0,
            },
        }
    }
}

/// Reads the typed view of events out of their texts, in the order in which they stand.
///
/// Three wordings are read: the kernel's print formats, old and new; those of trace-cmd's plugins; and fields as
/// `name=value`, which `trace-cmd report -R` prints and everything prints whose format libtraceevent cannot parse.
#[derive(Debug, Default)]
pub struct TextReader {
    reasons: TextReasons,
}

impl TextReader {
    /// Returns the instruction set, as far as the text said.
    pub fn isa(&self) -> Option<crate::Isa> {
        self.reasons.isa
    }

    /// Reads the whole text of an event that needs nothing of earlier lines, as those that are not
    /// [read in parts](Kind::is_read_in_parts).
    #[inline]
    pub fn read_whole(kind: Kind, text: &[u8]) -> Data {
        TextReader::default().read(kind, text).data
    }

    /// Takes the instruction set from something other than an event, such as perf's header.
    pub fn set_isa(&mut self, isa: crate::Isa) {
        self.reasons.isa = Some(isa);
    }
}

#[inline]
fn parse<T: TypedKind>(text: &[u8], reasons: &mut TextReasons) -> Option<ParsedText<T>> {
    match T::TEXT {
        TextForm::No => None,
        TextForm::Whole(read) => read(text).map(|event| ParsedText {
            event,
            complete: true,
            found: 0,
        }),
        TextForm::Parts(read) => read(without_complaints(text), reasons),
    }
}

fn named<T: TypedKind>(name: &str, in_text: bool) -> Option<usize> {
    if in_text && matches!(T::TEXT, TextForm::No) {
        return None;
    }
    T::NAMED
        .iter()
        .position(|field| field.number && field.names.contains(&name))
}
