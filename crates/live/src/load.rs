//! Loads the programs, attaches them, and reads what they counted.

use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::programs::{BtfTracePoint, ProgramError, RawTracePoint, TracePoint};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};

use crate::error::Error;
use crate::layout::{Formats, Records};
use crate::raw;
use crate::read;
use crate::snapshot::{Dropped, Snapshot};

/// The programs.
pub(crate) static OBJECT: &[u8] = include_bytes_aligned!("../bpf/live.bpf.o");

/// vCPUs that are followed at least.
const LEAST_VCPUS: u32 = 1024;
/// vCPUs that are followed at most.
const MOST_VCPUS: u32 = 16_384;
/// Rows that there is room for, for each vCPU.
const ROWS_EACH: u32 = 16;

/// A thread that is known to be a vCPU before it does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// The thread.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// The vCPU's number.
    pub number: u32,
}

/// What to count.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// vCPUs that are known already. Others are known from their first exit or entry on.
    pub vcpus: Vec<Seed>,
    /// When counting begins, in nanoseconds of the kernel's monotonic clock.
    pub now_ns: u64,
    /// Whether the caller has the capabilities that loading takes; it decides what an error says.
    pub privileged: bool,
    /// Whether the scheduler's events are read as records even where the kernel has BTF.
    pub without_btf: bool,
}

/// Programs that take what is in a tracepoint's arguments: the event of KVM that each is for, and the fields that its format has,
/// first to last, if the arguments are those that the program takes. x86 and arm64 do not have all of them.
const BY_ARGUMENT: [(&str, &[&str]); 9] = [
    ("kvm_entry", &[]),
    ("kvm_userspace_exit", &["reason", "errno"]),
    ("kvm_fpu", &["load"]),
    ("kvm_pio", &["rw", "port"]),
    ("kvm_mmio", &["type", "len", "gpa"]),
    ("kvm_msr", &["write", "ecx"]),
    ("kvm_fast_mmio", &["gpa"]),
    ("kvm_halt_poll_ns", &["grow", "vcpu_id", "new", "old"]),
    ("kvm_vcpu_wakeup", &["ns", "waited"]),
];

/// The scheduler's events, each with a program by argument and one by record.
const OF_SCHED: [&str; 4] = [
    "sched_switch",
    "sched_wakeup",
    "sched_migrate_task",
    "sched_process_exit",
];

/// Programs in the kernel that count. They end with this value.
#[derive(Debug)]
pub struct Live {
    bpf: Ebpf,
    from_ns: u64,
    missing: Vec<String>,
    by_record: bool,
}

impl Live {
    /// Loads the programs and attaches them: counting begins.
    ///
    /// # Errors
    ///
    /// See [`Error`]: each says what this machine lacks.
    pub fn start(options: &Options) -> Result<Live, Error> {
        let formats = Formats::find()?;
        let records = Records::read(&formats)?;
        let layout = records.layout()?;
        let btf = match options.without_btf {
            true => None,
            false => Btf::from_sys_fs().ok(),
        };
        let known = u32::try_from(options.vcpus.len()).unwrap_or(MOST_VCPUS);
        let vcpus = known.saturating_mul(2).clamp(LEAST_VCPUS, MOST_VCPUS);
        let cpus = aya::util::nr_cpus().map_or(1024, |cpus| u32::try_from(cpus).unwrap_or(1024));
        let bpf = EbpfLoader::new()
            .btf(btf.as_ref())
            .override_global("layout", &layout, true)
            .map_max_entries("vcpus", vcpus)
            .map_max_entries("rows", vcpus * ROWS_EACH)
            .map_max_entries("blames", vcpus * ROWS_EACH)
            .map_max_entries("cpus", cpus)
            .load(OBJECT)
            .map_err(|error| Error::of("loading the maps", &error, options.privileged))?;
        let mut live = Live {
            bpf,
            from_ns: options.now_ns,
            missing: Vec::new(),
            by_record: btf.is_none(),
        };
        live.seed(&options.vcpus, options)?;
        // A vCPU's first switch is seen before its first exit.
        for name in OF_SCHED {
            live.attach_sched(name, btf.as_ref(), options)?;
        }
        for (name, fields) in BY_ARGUMENT {
            let Some(format) = formats.read("kvm", name)? else {
                continue;
            };
            let own = format.own_fields().iter().map(|field| field.name.as_str());
            if !own.take(fields.len()).eq(fields.iter().copied()) {
                live.missing.push(name.to_owned());
                continue;
            }
            let attached = live.program::<RawTracePoint>(name).and_then(|program| {
                program.load()?;
                program.attach(name)
            });
            attached.map_err(|error| Error::of(name, &error, options.privileged))?;
        }
        let attached = live.program::<TracePoint>("kvm_exit").and_then(|program| {
            program.load()?;
            program.attach("kvm", "kvm_exit")
        });
        attached.map_err(|error| Error::of("kvm_exit", &error, options.privileged))?;
        Ok(live)
    }

    fn program<'b, P>(&'b mut self, name: &str) -> Result<&'b mut P, ProgramError>
    where
        &'b mut P: TryFrom<&'b mut aya::programs::Program, Error = ProgramError>,
    {
        let program = self.bpf.program_mut(name);
        program.ok_or(ProgramError::NotLoaded)?.try_into()
    }

    fn attach_sched(
        &mut self,
        name: &str,
        btf: Option<&Btf>,
        options: &Options,
    ) -> Result<(), Error> {
        let attached = match btf {
            Some(btf) => self.program::<BtfTracePoint>(name).and_then(|program| {
                program.load(name, btf)?;
                program.attach().map(drop)
            }),
            None => {
                let by_record = format!("record_{name}");
                self.program::<TracePoint>(&by_record).and_then(|program| {
                    program.load()?;
                    program.attach("sched", name).map(drop)
                })
            }
        };
        attached.map_err(|error| Error::of(name, &error, options.privileged))
    }

    fn map(&self, name: &'static str) -> Result<&aya::maps::Map, Error> {
        let map = self.bpf.map(name);
        map.ok_or_else(|| Error::Bpf(format!("the programs have no map {name}")))
    }

    fn seed(&mut self, vcpus: &[Seed], options: &Options) -> Result<(), Error> {
        let map = self.bpf.map_mut("vcpus");
        let map = map.ok_or_else(|| Error::Bpf("the programs have no map vcpus".to_owned()))?;
        let wrong = |error| Error::of("vcpus", &error, options.privileged);
        let mut map: HashMap<&mut MapData, u32, raw::Vcpu> = map.try_into().map_err(wrong)?;
        for vcpu in vcpus.iter().take(MOST_VCPUS as usize) {
            let tid = vcpu.tid.cast_unsigned();
            let number = i32::try_from(vcpu.number).unwrap_or(-1);
            let seed = raw::Vcpu::seed(tid, vcpu.pid.cast_unsigned(), number, options.now_ns);
            map.insert(tid, seed, 0).map_err(wrong)?;
        }
        Ok(())
    }

    /// Returns the events of KVM whose arguments are not those that the programs know in this kernel: nothing is known of them.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Returns whether the scheduler's events are read as records, since the kernel has no BTF.
    pub fn by_record(&self) -> bool {
        self.by_record
    }

    /// Returns what every program took so far, if the kernel counts that (`kernel.bpf_stats_enabled`): its name, how often it
    /// ran, and for how many nanoseconds.
    pub fn cost(&self) -> Vec<(String, u64, u64)> {
        let programs = self.bpf.programs();
        let cost = programs.filter_map(|(name, program)| {
            let info = program.info().ok()?;
            let ns = u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX);
            Some((name.to_owned(), info.run_count(), ns))
        });
        cost.collect()
    }

    /// Returns what was counted up to `now_ns`, a time of the kernel's monotonic clock that the caller has just read.
    ///
    /// # Errors
    ///
    /// What the kernel says if it does not hand out a map.
    pub fn snapshot(&self, now_ns: u64) -> Result<Snapshot, Error> {
        let wrong = |error| Error::of("reading the maps", &error, true);
        let vcpus: HashMap<&MapData, u32, raw::Vcpu> =
            self.map("vcpus")?.try_into().map_err(wrong)?;
        let rows: HashMap<&MapData, raw::Key, raw::Row> =
            self.map("rows")?.try_into().map_err(wrong)?;
        let blames: HashMap<&MapData, raw::BlameKey, raw::Blame> =
            self.map("blames")?.try_into().map_err(wrong)?;
        let dropped: PerCpuArray<&MapData, u64> = self.map("dropped")?.try_into().map_err(wrong)?;
        let dropped = |what: u32| -> u64 {
            let counts = dropped.get(&what, 0);
            counts.map_or(0, |counts| counts.iter().sum())
        };
        let mut snapshot = Snapshot {
            from_ns: self.from_ns,
            to_ns: now_ns,
            dropped: Dropped {
                vcpus: dropped(raw::dropped::VCPUS),
                rows: dropped(raw::dropped::ROWS),
                behind: dropped(raw::dropped::BLAMES) + dropped(raw::dropped::WAITING),
            },
            ..Snapshot::default()
        };
        for tid in vcpus.keys().flatten() {
            if let Some(vcpu) = whole(|| vcpus.get(&tid, 0).ok()) {
                snapshot.vcpus.push(read::vcpu(&vcpu, now_ns));
            }
        }
        snapshot.rows.extend(
            rows.iter()
                .flatten()
                .map(|(key, row)| read::row(&key, &row)),
        );
        let behind = blames
            .iter()
            .flatten()
            .map(|(key, blame)| read::behind(&key, &blame));
        snapshot.behind.extend(behind);
        snapshot
            .vcpus
            .sort_by_key(|vcpu| (vcpu.pid, vcpu.number, vcpu.tid));
        snapshot.rows.sort_by_key(|row| (row.tid, row.what));
        snapshot.behind.sort_by_key(|one| (one.tid, one.by_tid));
        Ok(snapshot)
    }
}

/// Reads a vCPU again if it was changing while it was copied.
fn whole(read: impl Fn() -> Option<raw::Vcpu>) -> Option<raw::Vcpu> {
    const TRIES: usize = 8;
    let mut last = None;
    for _ in 0..TRIES {
        let vcpu = read()?;
        if vcpu.finished == vcpu.changes {
            return Some(vcpu);
        }
        last = Some(vcpu);
    }
    last
}
