//! A made-up VM, recorded as a text: two vCPUs that leave the guest for several reasons, at random, in bursts, with
//! handling times of heavy tails, that halt, are woken, and lose their CPU to another task now and then. The same seed
//! gives the same recording, another seed another recording of the same.

use std::fmt::Write as _;

/// Random numbers (splitmix64).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, up to 1.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Of an exponential distribution.
    fn wait(&mut self, mean: f64) -> f64 {
        -mean * self.share().ln()
    }

    /// Of a distribution with a heavy tail (Pareto's, exponent 2.2), from `least` up.
    fn heavy(&mut self, least: f64) -> f64 {
        (least * self.share().powf(-1.0 / 2.2)).min(1000.0 * least)
    }
}

/// What the VM does; times in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub seed: u64,
    pub seconds: f64,
    /// Multiples of what is usual: how often MSR_WRITE is.
    pub msr_rate: f64,
    /// How long it takes.
    pub msr_time: f64,
    /// How often ports are read.
    pub port_rate: f64,
    /// How often CPUID is, which is not usual.
    pub cpuid_rate: f64,
    /// How long another task has the CPU when it takes it.
    pub stolen: f64,
    /// How long a woken vCPU waits for its CPU.
    pub wake: f64,
    /// How often a task runs that has nothing to do with the VM.
    pub task_rate: f64,
    /// How fast everything goes: what differs from run to run.
    pub pace: f64,
    pub kvm: bool,
    pub sched: bool,
}

impl Process {
    pub(crate) fn new(seed: u64) -> Process {
        Process {
            seed,
            seconds: 20.0,
            msr_rate: 1.0,
            msr_time: 1.0,
            port_rate: 1.0,
            cpuid_rate: 0.0,
            stolen: 1.0,
            wake: 1.0,
            task_rate: 1.0,
            pace: 1.0,
            kvm: true,
            sched: true,
        }
    }

    /// Returns the recording, as `trace-cmd report` prints it.
    pub(crate) fn record(&self) -> String {
        let mut tape = Tape {
            lines: Vec::new(),
            random: Random(self.seed.wrapping_mul(0x1234_5678_9abc_def1)),
            process: self,
        };
        for vcpu in 0..2 {
            tape.vcpu(vcpu);
        }
        tape.task();
        tape.lines.sort_by_key(|line| line.0);
        let mut out = String::from("cpus=4\n");
        for (us, cpu, thread, event) in &tape.lines {
            let (seconds, us) = (100 + us / 1_000_000, us % 1_000_000);
            let _ = writeln!(out, "{thread:>16} [{cpu:03}] {seconds}.{us:06}: {event}");
        }
        out
    }
}

struct Tape<'a> {
    lines: Vec<(u64, u32, String, String)>,
    random: Random,
    process: &'a Process,
}

impl Tape<'_> {
    fn end(&self) -> f64 {
        self.process.seconds * 1e6
    }

    fn add(&mut self, us: f64, cpu: u32, thread: &str, event: String) {
        let kvm = event.starts_with("kvm_");
        if us < self.end() && (kvm && self.process.kvm || !kvm && self.process.sched) {
            self.lines.push((us as u64, cpu, thread.to_owned(), event));
        }
    }

    fn switch(&mut self, us: f64, cpu: u32, from: &str, state: &str, to: &str) {
        let name = |thread: &str| {
            let (comm, tid) = thread.rsplit_once('-').expect("a thread");
            match comm {
                "<idle>" => (format!("swapper/{cpu}"), tid.to_owned()),
                _ => (comm.to_owned(), tid.to_owned()),
            }
        };
        let ((prev, prev_tid), (next, next_tid)) = (name(from), name(to));
        self.add(
            us,
            cpu,
            from,
            format!(
                "sched_switch: prev_comm={prev} prev_pid={prev_tid} prev_prio=120 prev_state={state} ==> \
                 next_comm={next} next_pid={next_tid} next_prio=120"
            ),
        );
    }

    fn wake(&mut self, us: f64, cpu: u32, by: &str, comm: &str, tid: u32) {
        for (later, event) in [(0.0, "sched_waking"), (2.0, "sched_wakeup")] {
            let text = format!("{event}: comm={comm} pid={tid} prio=120 target_cpu={cpu:03}");
            self.add(us + later, cpu, by, text);
        }
    }

    fn vcpu(&mut self, vcpu: u32) {
        let (comm, tid) = (format!("CPU {vcpu}/KVM"), 101 + vcpu);
        let thread = format!("{comm}-{tid}");
        let process = self.process.clone();
        let mut now = f64::from(vcpu) * 3.0 + 10.0;
        // It is busy and calm by turns of many exits each.
        let (mut burst, mut until) = (1.0, 0.0);
        loop {
            let entry = format!("kvm_entry: vcpu {vcpu}, rip 0xffffffff81c0a3b0");
            self.add(now, vcpu, &thread, entry);
            if now >= self.end() {
                break;
            }
            if now >= until {
                burst = if burst < 2.0 { 4.0 } else { 0.5 };
                until = now + self.random.wait(150_000.0);
            }
            let rates = [
                ("MSR_WRITE", 200.0 * process.msr_rate),
                ("EXTERNAL_INTERRUPT", 150.0),
                ("IO_INSTRUCTION", 60.0 * burst * process.port_rate),
                ("EPT_VIOLATION", 20.0 * burst),
                ("HLT", 80.0 * burst),
                ("PREEMPTION_TIMER", 5.0),
                ("CPUID", 40.0 * process.cpuid_rate),
            ];
            let all: f64 = rates.iter().map(|(_, rate)| rate).sum();
            now += self.random.wait(1e6 / (all * process.pace)) + 2.0;
            let mut at = self.random.share() * all;
            let picked = rates.iter().find(|(_, rate)| {
                at -= rate;
                at <= 0.0
            });
            let reason = picked.map_or("MSR_WRITE", |(reason, _)| reason);
            self.add(
                now,
                vcpu,
                &thread,
                format!(
                    "kvm_exit: vcpu {vcpu} reason {reason} rip 0xffffffff81c0a3ae info1 0x0 info2 0x0 \
                     intr_info 0x0 error_code 0x0"
                ),
            );
            let handled = match reason {
                "MSR_WRITE" => self.random.heavy(3.0) * process.msr_time,
                "IO_INSTRUCTION" => self.random.heavy(8.0),
                "EPT_VIOLATION" => self.random.heavy(20.0),
                _ => self.random.heavy(2.0),
            };
            match reason {
                "IO_INSTRUCTION" => {
                    let access = "kvm_pio: pio_read at 0x608 size 4 count 1 val 0x1234";
                    self.add(now + 1.0, vcpu, &thread, access.to_owned());
                }
                "HLT" => {
                    self.switch(now + 3.0, vcpu, &thread, "S", "<idle>-0");
                    now += 3.0 + self.random.wait(2000.0) + 1.0;
                    self.wake(now, vcpu, "<idle>-0", &comm, tid);
                    now += 2.0 + self.random.heavy(10.0) * process.wake;
                    self.switch(now, vcpu, "<idle>-0", "R", &thread);
                }
                "EXTERNAL_INTERRUPT" if self.random.share() < 0.1 => {
                    self.switch(now + 2.0, vcpu, &thread, "R", "stress-900");
                    now += 3.0 + self.random.heavy(200.0) * process.stolen;
                    self.switch(now, vcpu, "stress-900", "S", &thread);
                }
                _ => {}
            }
            now += handled + 1.0;
        }
    }

    /// Something else, on a CPU of its own.
    fn task(&mut self) {
        let mut now = 50.0;
        while now < self.end() {
            now += self.random.wait(10_000.0 / self.process.task_rate);
            self.wake(now, 3, "<idle>-0", "logger", 500);
            now += 3.0 + self.random.heavy(5.0);
            self.switch(now, 3, "<idle>-0", "R", "logger-500");
            now += self.random.heavy(100.0);
            self.switch(now, 3, "logger-500", "S", "<idle>-0");
        }
    }
}
