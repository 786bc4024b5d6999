/*!
The printed tables of the standard tools, as they come in tickets, mails and reports, read back as data.

| table | from | layouts |
| --- | --- | --- |
| [`KvmStat`] | `perf kvm stat report`, `perf kvm stat live`, SystemTap's `kvm_service_time.stp` | 3.x: whole microseconds, or a mean alone; 4.x to 6.x: `us` with two decimals, keys 20 or 40 wide; 6.4 and later on the full-screen view: nanoseconds, columns `KvmStatEvent name` to `Mean Time (ns)` |
| [`SchedLatency`] | `perf sched latency`, `perf sched timehist` | with the time of the longest delay, with its begin and end, or without; `Switches` or `Count` |
| [`KvmTotals`] | `kvm_stat`, bcc's `kvmexit`, maps and `printf` of `bpftrace` | a line for each counter or key, or for each exit |
| [`SyscallTotals`] | `strace`, `perf trace` | lines of calls with or without threads and times, added up; `strace -c`, `perf trace -s` |
| [`PrintedDistribution`] | bcc's `runqlat`, `funclatency`; `hist`, `lhist` of `bpftrace` | rows of a range, a count and a bar |
| [`PerfStat`] | `perf stat` | people's layout with `#` metrics, `-r`, `-I`, `-A` and `--per-*`; separated with `-x` |
| [`SampledShares`] | `perf report --stdio`, `perf kvm report`, `perf top`, and their browser | any columns, with `Children` or the shares of the CPUs' modes, `--hierarchy`, of groups the first event; call graphs are passed over |
| [`InterruptCounts`] | `/proc/interrupts` | x86 and arm64 |
| [`VirtioTraffic`] | bcc's `virtiostat` | of Python 2 and 3 |
| [`CpuUsage`] | `mpstat` | shares of time, interrupts by second (`-I`) |

The layouts are those of `tools/perf/builtin-kvm.c` (`print_result`), `builtin-sched.c` (`output_lat_thread`,
`perf_sched__lat`) and `util/stat-display.c` of Linux 3.7 to 6.12. What trapline itself prints with `--as perf`
is the same layout.

[`read`] takes any text and returns every table in it, of all kinds, with the line where each begins. Around and
between them may stand anything: prompts, prose, other tools' output.

# What damage is undone

Quote marks before lines, code fences, tables of wikis; tabs, no-break and full-width blanks, full-width digits
and signs; line ends of any system, a byte order mark; terminal colours; HTML entities; rows broken in two or
three, in the middle of a word or between words; rows cut off on the right, as far as the rest shows; a table
without its heading or without its last line.

# What it returns

Everything that does not fit together is a [`TableNote`] with its line, never an error: rows whose sum is not the
printed sum, shares that are not those of the numbers, rows that could not be read.

```
let text = b"\
Analyze events for all VMs, VCPU 1:

             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time

                 HLT         10   100.00%   100.00%      1.00us    100.00us     50.00us ( +-   3.00% )

Total Samples:10, Total events handled time:500.00us.
";
let (tables, notes) = perftables::read(text);
let perftables::PerfTable::KvmStat(table) = &tables[0] else { panic!() };
assert_eq!((table.line, table.vcpu), (1, Some(1)));
assert_eq!(table.rows[0].key, "HLT");
assert_eq!(table.rows[0].total_ns, 500_000);
assert!(notes.is_empty());
```
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod bpftrace;
mod counted;
mod distribution;
mod kvm;
mod kvm_agreement;
mod kvm_cells;
mod kvm_check;
mod kvm_service_time;
mod kvm_stat;
mod kvmexit;
mod label;
mod lines;
mod listed;
mod mpstat;
mod number;
mod open;
mod perf_report;
mod perf_report_hierarchy;
mod perf_report_row;
mod printed;
mod printed_exits;
mod proc_interrupts;
mod reader;
mod sched;
mod stat;
mod stat_csv;
mod strace;
mod strace_counts;
mod syscall_line;
mod table_form;
mod timehist;
mod trace_summary;
mod types;
mod unrolled;
mod virtiostat;

use forms::InputForm;

pub use label::is_fence;
pub use lines::clean_line;
pub use types::{
    Count, CountPrinter, CpuUsage, CpuUsageRow, DistributionBucket, FileWrites, InterruptCounts,
    InterruptRow, KvmRow, KvmStat, KvmStatEvent, KvmStatPrinter, KvmTotal, KvmTotals, Metric,
    ModeShares, PerfStat, PerfTable, PlacedTable, PrintedDistribution, SampledShare, SampledShares,
    SchedLatency, SchedPrinter, SchedRow, StatCount, SyscallRow, SyscallThread, SyscallTotals,
    TableNote, VirtioQueue, VirtioTraffic,
};

/// Bytes of a text that [`looks_like`] reads.
const HEAD: usize = 64 << 10;

/// Returns whether there is a table to [`read`] in the first 64 KiB of a text.
///
/// Texts of traces (`perf script`, `trace-cmd report`, the kernel's `trace` file) and binary files have none.
pub fn looks_like(text: &[u8]) -> bool {
    let head = match text.get(..HEAD) {
        // The last line may be cut.
        Some(head) => &head[..memchr::memrchr(b'\n', head).unwrap_or(HEAD)],
        None => text,
    };
    memchr::memchr(0, head).is_none() && !read(head).0.is_empty()
}

/// Reads every table in a text, in the order of the text, and says what was odd.
///
/// Never fails. At most 4096 tables of 65536 rows each and 100 notes are returned; a note says so where more
/// were left out.
pub fn read(text: &[u8]) -> (Vec<PerfTable>, Vec<TableNote>) {
    let (tables, notes) = reader::read(text);
    (tables.into_iter().map(|one| one.table).collect(), notes)
}

/// As [`read`], and returns where each table ends.
pub fn read_placed(text: &[u8]) -> (Vec<PlacedTable>, Vec<TableNote>) {
    reader::read(text)
}

/// Returns the name that a line of text would be for a table below it, without quote marks and marks of a heading; none
/// if it is a command, a mark of a block of code, or too long for a name.
pub fn label_of_line(line: &str) -> Option<String> {
    let clean = lines::clean(line.as_bytes());
    let text = clean.trim();
    let names = !label::is_command(text) && !reader::is_ruler(text);
    names.then(|| label::label_of(text)).flatten()
}

/// Returns the printed forms that are read, one for each reader.
pub fn forms() -> Vec<&'static InputForm> {
    let own = [&kvm_check::FORM, &sched::FORM, &stat::FORM, &stat_csv::FORM];
    let others = printed::TABLE_FORMS.iter().map(|table| table.form);
    own.into_iter().chain(others).collect()
}
