//! System calls of `strace` and `perf trace`, added up.

use std::path::Path;

use perftables::{CountPrinter, FileWrites, PerfTable, SyscallTotals, read};

fn fixture(name: &str) -> SyscallTotals {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    only(&std::fs::read_to_string(folder.join(name)).unwrap())
}

#[track_caller]
fn only(text: &str) -> SyscallTotals {
    let (tables, _) = read(text.as_bytes());
    match <[PerfTable; 1]>::try_from(tables) {
        Ok([PerfTable::SyscallTotals(table)]) => table,
        other => panic!("{other:?}"),
    }
}

fn calls(table: &SyscallTotals) -> Vec<(Option<i32>, &str, u64, u64)> {
    let rows = table.rows.iter();
    rows.map(|row| (row.thread.tid, row.call.as_str(), row.count, row.errors))
        .collect()
}

#[test]
fn a_vcpu_that_writes_byte_by_byte() {
    let table = fixture("strace-vcpu-tt.txt");
    assert_eq!(table.printer, CountPrinter::Strace);
    // The command line says which thread it is.
    let wanted = [
        (Some(38613), "writev", 8, 0),
        (Some(38613), "ioctl(KVM_IRQ_LINE)", 7, 0),
        (Some(38613), "ioctl(KVM_RUN)", 14, 0),
    ];
    assert_eq!(calls(&table), wanted);
    assert_eq!(table.span_ns, Some(1_791_000));
    let [writes] = &table.writes[..] else {
        panic!("{:?}", table.writes);
    };
    let FileWrites {
        fd,
        count,
        bytes,
        of_one_byte,
        runs,
        irq_lines,
        span_ns,
        ..
    } = *writes;
    assert_eq!((fd, count, bytes, of_one_byte), (12, 8, 8, 8));
    assert_eq!((runs, irq_lines, span_ns), (14, 7, Some(1_791_000)));
}

#[test]
fn threads_are_kept_apart_and_broken_calls_put_together() {
    let table = fixture("strace-f-T.txt");
    let wanted = [
        (Some(6905), "ppoll", 13, 0),
        (Some(6912), "ioctl(KVM_RUN)", 13, 0),
        (Some(6912), "writev", 13, 0),
        (Some(6912), "ioctl(KVM_IRQ_LINE)", 13, 0),
        (Some(6905), "write", 4, 0),
    ];
    assert_eq!(calls(&table), wanted);
    let [console, eventfd] = &table.writes[..] else {
        panic!("{:?}", table.writes);
    };
    assert_eq!((console.runs, console.of_one_byte), (12, 13));
    assert!(
        console
            .path
            .as_deref()
            .is_some_and(|path| path.starts_with("/dev/pts/3"))
    );
    assert_eq!((eventfd.bytes, eventfd.of_one_byte), (32, 0));
}

#[test]
fn perf_trace_has_names_of_threads() {
    let table = fixture("perf-trace.txt");
    assert_eq!(table.printer, CountPrinter::PerfTrace);
    let first = &table.rows[0];
    assert_eq!(first.thread.comm.as_deref(), Some("CPU 0/KVM"));
    assert_eq!((first.call.as_str(), first.count), ("ioctl(KVM_RUN)", 8));
    assert_eq!(table.writes[0].path.as_deref(), Some("/dev/pts/3"));
    let other = table.rows.iter().find(|row| row.thread.tid == Some(6913));
    assert_eq!(other.map(|row| row.count), Some(1));
}

#[test]
fn counts_of_a_summary() {
    let table = fixture("strace-c-4.txt");
    assert_eq!(table.printer, CountPrinter::StraceCounts);
    let wanted = [
        (None, "ioctl", 12000, 0),
        (None, "writev", 2000, 12),
        (None, "read", 511, 0),
    ];
    assert_eq!(calls(&table), wanted);
}

#[test]
fn relative_times_add_up_and_a_day_ends() {
    let table = only(
        "     0.000000 ioctl(32, KVM_RUN, 0) = 0\n     0.250000 write(12, \"a\", 1) = 1\n     \
         0.500000 ioctl(32, KVM_RUN, 0) = -1 EINTR (Interrupted system call)\n",
    );
    assert_eq!(table.span_ns, Some(750_000_000));
    assert_eq!(table.rows[0].errors, 1);
    let table = only(
        "23:59:59.900000 ioctl(32, KVM_RUN, 0) = 0\n00:00:00.100000 ioctl(32, KVM_RUN, 0) = 0\n",
    );
    assert_eq!(table.span_ns, Some(200_000_000));
}

#[test]
fn wrapped_lines_are_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    for name in ["strace-f-T.txt", "perf-trace.txt"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let wrapped: String = (text.lines())
            .map(|line| {
                let (first, rest) = line.split_at(line.len().min(72));
                match rest.trim().is_empty() {
                    true => format!("> {first}\n"),
                    false => format!("> {first}\n> {rest}\n"),
                }
            })
            .collect();
        assert_eq!(calls(&only(&wrapped)), calls(&only(&text)), "{wrapped}");
    }
}

#[test]
fn code_and_prose_are_none() {
    for text in [
        "    ret = ioctl(vcpu->fd, KVM_RUN, 0);\n    write(fd, buf, 1);\n",
        "Then KVM_RUN returns, and writev(12, ..., 1) = 1 follows.\n",
        "write(1, \"x\", 1) = 1\n",
        "we attached strace -p 12 to it and saw nothing\n",
        "sqrt(16) = 4\nsqrt(9) = 3\nsqrt(4) = 2\n",
    ] {
        let (tables, _) = read(text.as_bytes());
        assert_eq!(tables, [], "{text}");
    }
}
