//! Loads the programs, attaches them, and reads what they counted.

use std::collections::{BTreeMap, HashSet};

use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::programs::{BtfTracePoint, ProgramError, RawTracePoint, TracePoint};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};

use crate::error::LiveError;
use crate::layout::{KernelFormats, RecordFormats};
use crate::places::MapPlaces;
use crate::raw;
use crate::read;
use crate::seeds::{Seed, ThreadSeed};
use counts::{DroppedCounts, LiveThread, SEVERAL, Snapshot, WaitBehind};

/// The programs.
pub(crate) static OBJECT: &[u8] = include_bytes_aligned!("../bpf/live.bpf.o");

/// vCPUs that are followed at least.
const LEAST_VCPUS: u32 = 1024;
/// vCPUs that are followed at most.
const MOST_VCPUS: u32 = 16_384;
/// Rows that there is room for, for each vCPU.
const ROWS_EACH: u32 = 16;
/// Names of tasks that have ended, for each thread that waited behind them.
const MOST_NAMES: usize = 256;
/// `BPF_NOEXIST`.
const NOEXIST: u64 = 1;

/// What to count.
#[derive(Debug, Clone, Default)]
pub struct LiveOptions {
    /// vCPUs that are known already. Others are known from their first exit or entry on.
    pub vcpus: Vec<Seed>,
    /// Other threads that are to be followed.
    pub threads: Vec<ThreadSeed>,
    /// When counting begins, in nanoseconds of the kernel's monotonic clock.
    pub now_ns: u64,
    /// Whether the caller has the capabilities that loading takes; it decides what an error says.
    pub privileged: bool,
    /// Whether the scheduler's events are read as records even where the kernel has BTF.
    pub without_btf: bool,
}

/// Programs that take what is in a tracepoint's arguments: the event of KVM that each is for, and the fields that its
/// format has, first to last, if the arguments are those that the program takes. x86 and arm64 do not have all of them.
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
pub struct LivePrograms {
    bpf: Ebpf,
    from_ns: u64,
    missing: Vec<String>,
    by_record: bool,
    /// vCPUs and threads that there is room for, and how many threads found none.
    room: u32,
    dropped_threads: u64,
    /// Behind whom threads waited, of tasks that have ended: by who waited and by name.
    folded: BTreeMap<(i32, Option<String>), (u64, u64)>,
}

impl LivePrograms {
    /// Loads the programs and attaches them: counting begins.
    ///
    /// # Errors
    ///
    /// See [`LiveError`]: each says what is missing from this machine.
    pub fn start(options: &LiveOptions) -> Result<LivePrograms, LiveError> {
        let formats = KernelFormats::find()?;
        let records = RecordFormats::read(&formats)?;
        let layout = records.layout()?;
        let btf = match options.without_btf {
            true => None,
            false => Btf::from_sys_fs().ok(),
        };
        let known = options.vcpus.len() + options.threads.len();
        let known = u32::try_from(known).unwrap_or(MOST_VCPUS);
        let vcpus = known.saturating_mul(2).clamp(LEAST_VCPUS, MOST_VCPUS);
        let cpus = aya::util::nr_cpus().map_or(1024, |cpus| u32::try_from(cpus).unwrap_or(1024));
        let bpf = EbpfLoader::new()
            .btf(btf.as_ref())
            .override_global("layout", &layout, true)
            .map_max_entries("vcpus", vcpus)
            .map_max_entries("slots", vcpus)
            .map_max_entries("free_vcpus", vcpus)
            .map_max_entries("indexes", vcpus)
            .map_max_entries("rows", vcpus * ROWS_EACH)
            .map_max_entries("free_rows", vcpus * ROWS_EACH / raw::ROWS_AT_ONCE)
            .map_max_entries("blames", vcpus * ROWS_EACH)
            .map_max_entries("cpus", cpus)
            .load(OBJECT)
            .map_err(|error| LiveError::of("loading the maps", &error, options.privileged))?;
        let mut live = LivePrograms {
            bpf,
            from_ns: options.now_ns,
            missing: Vec::new(),
            by_record: btf.is_none(),
            room: vcpus,
            dropped_threads: 0,
            folded: BTreeMap::new(),
        };
        MapPlaces::of(&mut live.bpf).fill(vcpus, vcpus * ROWS_EACH)?;
        live.follow(&options.vcpus, &options.threads, options.now_ns)?;
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
            attached.map_err(|error| LiveError::of(name, &error, options.privileged))?;
        }
        let attached = match records.exit_by_argument() {
            true => live
                .program::<RawTracePoint>("kvm_exit_by_argument")
                .and_then(|program| {
                    program.load()?;
                    program.attach("kvm_exit").map(drop)
                }),
            false => live.program::<TracePoint>("kvm_exit").and_then(|program| {
                program.load()?;
                program.attach("kvm", "kvm_exit").map(drop)
            }),
        };
        attached.map_err(|error| LiveError::of("kvm_exit", &error, options.privileged))?;
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
        options: &LiveOptions,
    ) -> Result<(), LiveError> {
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
        attached.map_err(|error| LiveError::of(name, &error, options.privileged))
    }

    fn map(&self, name: &'static str) -> Result<&aya::maps::Map, LiveError> {
        let map = self.bpf.map(name);
        map.ok_or_else(|| LiveError::Bpf(format!("the programs have no map {name}")))
    }

    /// Follows threads that are not followed yet, from `now_ns` on. Other threads than vCPUs take half of the room at
    /// most.
    ///
    /// # Errors
    ///
    /// What the kernel says if it does not hand out a map.
    pub fn follow(
        &mut self,
        vcpus: &[Seed],
        threads: &[ThreadSeed],
        now_ns: u64,
    ) -> Result<(), LiveError> {
        let room = self.room as usize;
        let (mut known, mut others) = (HashSet::new(), HashSet::new());
        let places = MapPlaces::of(&mut self.bpf);
        for (tid, vcpu) in places.threads()? {
            match vcpu.other {
                0 => known.insert(tid),
                _ => others.insert(tid),
            };
        }
        for vcpu in vcpus {
            let number = i32::try_from(vcpu.number).unwrap_or(-1);
            let (tid, pid) = (vcpu.tid.cast_unsigned(), vcpu.pid.cast_unsigned());
            if !known.contains(&vcpu.tid) && known.len() + others.len() < room {
                MapPlaces::of(&mut self.bpf).put(raw::RawVcpu::seed(tid, pid, number, now_ns))?;
                known.insert(vcpu.tid);
                others.remove(&vcpu.tid);
            }
        }
        let new = |tid: &i32| !known.contains(tid) && !others.contains(tid);
        let new: Vec<&ThreadSeed> = threads.iter().filter(|one| new(&one.tid)).collect();
        let most = (room / 2).saturating_sub(others.len());
        let mut dropped = new.len().saturating_sub(most) as u64;
        for thread in new.iter().take(most) {
            let (tid, vm) = (thread.tid.cast_unsigned(), thread.vm_pid.cast_unsigned());
            let thread = raw::RawVcpu::other(tid, vm, thread.asleep, thread.cpu, now_ns);
            dropped += u64::from(!MapPlaces::of(&mut self.bpf).put(thread)?);
        }
        self.dropped_threads = dropped;
        let all = vcpus.iter().map(|one| one.tid);
        let all: Vec<i32> = all.chain(threads.iter().map(|one| one.tid)).collect();
        // Those who wait behind too many tasks have a row that sums up what finds no room.
        let mut blames = self.hash_mut::<raw::BlameKey, raw::Blame>("blames")?;
        for tid in all {
            let (tid, by) = (tid.cast_unsigned(), raw::MANY);
            // It may be there already.
            let _ = blames.insert(raw::BlameKey { tid, by }, raw::Blame::NONE, NOEXIST);
        }
        Ok(())
    }

    fn hash_mut<K: aya::Pod, V: aya::Pod>(
        &mut self,
        name: &'static str,
    ) -> Result<HashMap<&mut MapData, K, V>, LiveError> {
        let map = self.bpf.map_mut(name);
        let map = map.ok_or_else(|| LiveError::Bpf(format!("the programs have no map {name}")))?;
        map.try_into()
            .map_err(|error: aya::maps::MapError| LiveError::of(name, &error, true))
    }

    /// Forgets threads that have ended: their room is free for others.
    ///
    /// # Errors
    ///
    /// What the kernel says if it does not hand out a map.
    pub fn forget(&mut self, tids: &HashSet<i32>) -> Result<(), LiveError> {
        if tids.is_empty() {
            return Ok(());
        }
        let is_gone = |tid: u32| tids.contains(&tid.cast_signed());
        for tid in tids {
            MapPlaces::of(&mut self.bpf).free(*tid)?;
        }
        let mut blames = self.hash_mut::<raw::BlameKey, raw::Blame>("blames")?;
        let keys: Vec<raw::BlameKey> = blames.keys().flatten().collect();
        for key in keys.into_iter().filter(|key| is_gone(key.tid)) {
            let _ = blames.remove(&key);
        }
        self.folded.retain(|(tid, _), _| !tids.contains(tid));
        Ok(())
    }

    /// Sums up by name behind whom threads waited, of tasks that are not there any more, if half of the room is taken.
    ///
    /// # Errors
    ///
    /// What the kernel says if it does not hand out a map.
    pub fn fold(&mut self, is_there: impl Fn(i32) -> bool) -> Result<(), LiveError> {
        let most = self.room as usize * ROWS_EACH as usize / 2;
        let mut blames = self.hash_mut::<raw::BlameKey, raw::Blame>("blames")?;
        let keys: Vec<raw::BlameKey> = blames.keys().flatten().collect();
        if keys.len() <= most {
            return Ok(());
        }
        let mut gone = Vec::new();
        for key in keys {
            if key.by != raw::MANY && !is_there(key.by.cast_signed()) {
                if let Ok(blame) = blames.get(&key, 0) {
                    gone.push(read::behind(&key, &blame));
                }
                let _ = blames.remove(&key);
            }
        }
        for one in gone {
            let names = self.folded.range((one.tid, None)..(one.tid + 1, None));
            let full = names.count() >= MOST_NAMES;
            let known = self.folded.contains_key(&(one.tid, one.comm.clone()));
            let name = one.comm.filter(|_| known || !full);
            let sum = self.folded.entry((one.tid, name)).or_default();
            sum.0 += one.count;
            sum.1 += one.ns;
        }
        Ok(())
    }

    /// Returns the events of KVM whose arguments are not those that the programs know in this kernel: nothing is known
    /// of them.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Returns whether the scheduler's events are read as records, since the kernel has no BTF.
    pub fn by_record(&self) -> bool {
        self.by_record
    }

    /// Returns what every program took so far, if the kernel counts that (`kernel.bpf_stats_enabled`): its name, how
    /// often it ran, and for how many nanoseconds.
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
    pub fn snapshot(&self, now_ns: u64) -> Result<Snapshot, LiveError> {
        let wrong = |error| LiveError::of("reading the maps", &error, true);
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
            dropped: DroppedCounts {
                vcpus: dropped(raw::dropped::VCPUS),
                rows: dropped(raw::dropped::ROWS),
                behind: dropped(raw::dropped::BLAMES) + dropped(raw::dropped::WAITING),
                threads: self.dropped_threads,
                events: 0,
                withheld: 0,
            },
            ..Snapshot::default()
        };
        let places = MapPlaces::of(&self.bpf);
        for (_, vcpu) in places.threads()? {
            let read = read::vcpu(&vcpu, now_ns);
            match vcpu.other {
                0 => {
                    snapshot.vcpus.push(read);
                    snapshot.rows.extend(places.rows(&vcpu)?);
                }
                _ => snapshot.threads.push(LiveThread::of(read)),
            }
        }
        let mut behind: BTreeMap<(i32, i32, Option<String>), WaitBehind> = BTreeMap::new();
        let folded = self
            .folded
            .iter()
            .map(|((tid, comm), (count, ns))| WaitBehind {
                tid: *tid,
                by_tid: SEVERAL,
                comm: comm.clone(),
                count: *count,
                ns: *ns,
            });
        let kept = blames.iter().flatten();
        let kept = kept.map(|(key, blame)| read::behind(&key, &blame));
        for one in kept.chain(folded).filter(|one| one.count > 0) {
            let key = (one.tid, one.by_tid, one.comm.clone());
            match behind.get_mut(&key) {
                Some(sum) => {
                    sum.count += one.count;
                    sum.ns += one.ns;
                }
                None => drop(behind.insert(key, one)),
            }
        }
        snapshot.behind = behind.into_values().collect();
        snapshot.sort();
        Ok(snapshot)
    }
}
