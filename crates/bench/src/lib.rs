/*!
Measures what things cost on the machine that it runs on, in a guest or on a host, from user space and without a kernel
module: IPIs, wake-ups, clocks, timers, exits, round trips over a network and to a disk. [`run()`] measures one of them
and returns a [`results::BenchResults`].

It talks to the kernel, since that is what it is for: it pins threads, keeps CPUs busy, reads clocks and files of
`/proc` and `/sys`, opens sockets and files. It prints nothing. Threads that it starts are gone when it returns, and the
calling thread's CPUs stay as they are. All `unsafe` stands in `call.rs`.

What cannot be measured here is a row that says why, and the others are measured.

# Checked against

On a 2-CPU guest of KVM (Linux 6.18, haltpoll), `bench ipi -n 10000` sends 10,101 IPIs a row: `perf stat -e
irq_vectors:call_function_single_entry` counted 40,398 in four rows (40,404 expected). With 100,000 a row
`/proc/interrupts` counted 99,887, 100,104, 100,101 and 99,821 (100,101 expected). A kernel module on another machine,
in a guest of 72 vCPUs on two sockets, took 2.3 us for a CPU of the same node and 6.7 us for one of another: the same
order.

In the laboratory (`lab/jobs/bench`: x86 under emulation, a guest of 2 vCPUs, Linux 6.1) a host recording shows the
same IPIs: the guest counted 895 function call interrupts on vCPU 1 during its rows, the host 977 IPIs of that vector
to it, before and after the rows too. `bench explain` with both recordings finds an instance of the path `ipi` in 39
of the guest's 40 slowest iterations that send one, and in one of the 20 of the rows `no IPI`. The slowest, 3.1 ms,
waited for an IPI of the scheduler's tick that was sent 1.2 ms before it began, whose vCPU waited for its CPU of the
host. Of CPUID 200 were asked for, with 308 exits, the guest's own among them. On arm64 the guest counted 866, and the
host 1,004 writes of ICC_SGI1R_EL1, for both vCPUs and other functions too.

kvm-unit-tests (commit 1da1819e: `x86/vmexit.flat`, `arm/micro-bench.flat`, two vCPUs) times the same without an
operating system in the guest, on the same emulated host, so only the order of size compares. Times in us;
kvm-unit-tests prints means, of two runs here, on x86 in cycles of 2,596 MHz:

| | kvm-unit-tests | means of 2 to 4 runs here | medians |
| --- | --- | --- | --- |
| x86 `cpuid` / `CPUID` | 40.4, 47.0 | 39.5 to 42.7 | 35.1 |
| x86 `inl_from_pmtimer` / `port 0x608` | 70.1, 68.9 | 88.7 to 104.9 | 75.3 to 76.3 |
| x86 `inl_from_kernel` / `port 0x21` | 31.8, 32.0 | 47.4 to 54.2 | 41.7 to 42.2 |
| x86 `ipi` / `same node`, `idle` | 113.6, 202.8 | 87.0 to 113.8 | 65.3 to 67.1 |
| x86 `ipi` / `same node`, `busy` | the same | 94.4 to 115.7 | 80.4 to 84.5 |
| arm64 `ipi` / `same node`, `busy` | 87.7, 92.0 | 128.0 to 151.4 | 110.1 to 122.4 |

On arm64 the call without an IPI (`no IPI, busy`) is 22.9 to 23.2 of the median, which leaves 87 to 99. Ports are read
by a system call, whose cost is not in `no exit (/dev/zero)` alone: the guest's kernel has more to fetch again after
each exit than a program without one.
*/
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod bell;
mod call;
mod clock;
mod disk;
mod error;
mod exits;
mod interrupts;
mod ipi;
mod machine;
mod measure;
mod net;
mod noise;
mod now;
mod place;
mod run;
mod samples;
mod thread;
mod timer;
mod wake;
mod why;

pub use error::BenchError;
pub use ipi::MAX_PAIRED;
pub use measure::{MeasuredThing, Setup, run};
pub use net::{SIZES, Server};
