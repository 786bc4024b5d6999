//! Shares of samples: perf report, perf kvm report, perf top.

use std::path::Path;

use perftables::{ModeShares, PerfTable, SampledShare, SampledShares, TableNote, read};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn shares(text: &str) -> (Vec<SampledShares>, Vec<TableNote>) {
    let (tables, notes) = read(text.as_bytes());
    let tables = tables.into_iter().map(|table| match table {
        PerfTable::SampledShares(shares) => shares,
        other => panic!("{other:?}"),
    });
    (tables.collect(), notes)
}

#[track_caller]
fn one(text: &str) -> SampledShares {
    let (mut tables, notes) = shares(text);
    assert_eq!(notes, [], "{text}");
    assert_eq!(tables.len(), 1, "{text}");
    tables.remove(0)
}

/// Shares in hundredths of a percent, with tasks and functions.
fn rows(table: &SampledShares) -> Vec<(u64, &str, &str)> {
    let rows = table.rows.iter();
    rows.map(|row| {
        let own = (row.own * 10_000.0).round() as u64;
        (
            own,
            row.comm.as_deref().unwrap_or(""),
            row.symbol.as_deref().unwrap_or(""),
        )
    })
    .collect()
}

#[test]
fn a_report_has_its_event_and_rows_without_their_call_graphs() {
    let table = one(&fixture("perf-report-6.1.txt"));
    assert_eq!(table.event.as_deref(), Some("cpu-clock:ppp"));
    assert_eq!(
        (table.samples, table.event_count),
        (Some(2000), Some(23_777_777_540))
    );
    assert_eq!(
        (table.lost_samples, table.label.as_deref(), table.unread),
        (Some(0), None, 0)
    );
    // As many lines begin with a share.
    let text = fixture("perf-report-6.1.txt");
    let share = |line: &&str| {
        line.trim_start().starts_with(|c: char| c.is_ascii_digit()) && line.contains("%  ")
    };
    assert_eq!(table.rows.len(), text.lines().filter(share).count());
    let first = &table.rows[0];
    assert_eq!(
        (first.own, first.level, first.object.as_deref()),
        (0.4291, Some('k'), Some("[kernel.kallsyms]"))
    );
    assert_eq!(rows(&table)[0], (4291, "swapper", "0xffffffff81a592eb"));
}

#[test]
fn shares_with_callees_stand_apart() {
    let table = one(&fixture("perf-report-children-6.1.txt"));
    let first = &table.rows[0];
    assert_eq!((first.own, first.with_callees), (0.0, Some(0.7476)));
    assert_eq!(
        first.symbol.as_deref(),
        Some("entry_SYSCALL_64_after_hwframe")
    );
    assert!(
        table
            .rows
            .iter()
            .all(|row| row.with_callees >= Some(row.own))
    );
}

#[test]
fn columns_are_those_of_the_heading() {
    let table = one(&fixture("perf-report-columns.txt"));
    let iperf = table
        .rows
        .iter()
        .find(|row| row.comm.as_deref() == Some("iperf3"))
        .unwrap();
    assert_eq!(
        (iperf.id, iperf.samples, iperf.own),
        (Some(947), Some(57), 0.0499)
    );
    let table = one(&fixture("perf-report-newest.txt"));
    let guest = table
        .rows
        .iter()
        .find(|row| row.comm.as_deref() == Some(":2515"))
        .unwrap();
    let modes = guest.modes.unwrap();
    assert_eq!(
        (modes.guest_sys, modes.sys, guest.level),
        (guest.own, 0.0, Some('g'))
    );
}

#[test]
fn the_tables_of_the_fourth_case() {
    let vhost = one(&fixture("case4-vhost.perf-kvm-report.txt"));
    assert_eq!(vhost.rows.len(), 12);
    let modes = ModeShares {
        sys: 0.0,
        usr: 0.0,
        guest_sys: 0.4037,
        guest_usr: 0.0,
    };
    assert_eq!(
        (vhost.rows[0].comm.as_deref(), vhost.rows[0].modes),
        (Some(":1146"), Some(modes))
    );
    let idle = one(&fixture("case4-vhost.perf-kvm-report-idle.txt"));
    assert_eq!(rows(&idle)[0], (3001, ":1146", "cpu_do_idle"));
    assert_eq!(rows(&idle)[1], (1305, "swapper", "cpuidle_enter_state"));
    let virtio = one(&fixture("case4-virtio.perf-kvm-report.txt"));
    let wanted: Vec<&str> = virtio
        .rows
        .iter()
        .filter_map(|row| row.symbol.as_deref())
        .collect();
    assert_eq!(wanted.len(), 14);
    assert_eq!(
        (wanted[0], wanted[4], wanted[13]),
        ("receive_buf", "_raw_spin_unlock_irq", "schedule")
    );
    let unknown = &virtio.rows[7];
    assert_eq!(
        (unknown.level, unknown.modes.unwrap().guest_usr),
        (Some('u'), 0.02)
    );
}

#[test]
fn top_has_no_tasks() {
    for name in ["perf-top-browser.txt", "perf-top-stdio.txt"] {
        let table = one(&fixture(name));
        let spins = &table.rows[1];
        assert_eq!(
            (
                spins.own,
                spins.object.as_deref(),
                spins.symbol.as_deref(),
                spins.comm.as_deref()
            ),
            (0.0931, Some("[kvm]"), Some("kvm_vcpu_on_spin"), None),
            "{name}"
        );
        assert!(table.event.as_deref().unwrap().starts_with("cycles"));
    }
    let table = one(&fixture("perf-top-browser.txt"));
    assert_eq!(
        (table.samples, table.event_count),
        (Some(47_000), Some(21_092_508_611))
    );
}

#[test]
fn each_event_is_a_table() {
    let two = "# Samples: 10  of event 'cycles'\n# Event count (approx.): 100\n#\n\
               # Overhead  Command\n# ....  ....\n#\n 90.00%  qemu\n 10.00%  CPU 0/KVM\n\n\n\
               # Samples: 3  of event 'page-faults'\n# Event count (approx.): 3\n#\n\
               # Overhead  Command\n# ........  .......\n#\n   100.00%  qemu\n";
    let (tables, notes) = shares(two);
    assert_eq!(notes, []);
    let events: Vec<Option<&str>> = tables.iter().map(|table| table.event.as_deref()).collect();
    assert_eq!(events, [Some("cycles"), Some("page-faults")]);
    assert_eq!(
        rows(&tables[0]),
        [(9000, "qemu", ""), (1000, "CPU 0/KVM", "")]
    );
}

/// What mails and tickets make of it.
#[test]
fn damaged_rows_are_read_or_counted() {
    let text = fixture("perf-report-newest.txt");
    let whole = one(&text);
    let without_heading: String = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    let same = |mangled: &str| {
        let (tables, _) = shares(mangled);
        let all: Vec<SampledShare> = tables.into_iter().flat_map(|table| table.rows).collect();
        let of = |rows: &[SampledShare]| -> Vec<SampledShare> {
            rows.iter()
                .map(|row| SampledShare {
                    line: 0,
                    ..row.clone()
                })
                .collect()
        };
        assert_eq!(of(&all), of(&whole.rows), "{mangled}");
    };
    same(&without_heading);
    let comma = |line: &str| {
        let (numbers, rest) = line.split_at(line.rfind("%  ").map_or(0, |at| at + 1));
        numbers.replace('.', ",") + rest + "\n"
    };
    same(&text.lines().map(comma).collect::<String>());
    same(&wrapped(&text, 72));
    same(&wrapped(&text, 100));
    let prose = text.replacen(
        "\n     ",
        "\nИ ещё строка, 40% времени\nand 12.34% is what we looked at\n     ",
        3,
    );
    same(&prose);
}

/// Breaks lines at the last blank before a width, as mailers do.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut rest = line;
        while rest.len() > width && !rest.starts_with('#') {
            let at = rest[..width].rfind(' ').unwrap_or(width);
            let (now, later) = rest.split_at(at);
            out.push_str(now.trim_end());
            out.push('\n');
            rest = later.trim_start();
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

#[test]
fn a_row_in_pieces_is_one_if_it_adds_up() {
    let heading = "# Overhead  sys  usr  guest sys  guest usr  Command\n";
    let pieces = "    40.37%\n       0.00%\n   0.00%\n        40.37%\n          0.00% :1146\n";
    let table = one(&format!("{heading}{pieces}"));
    assert_eq!(rows(&table), [(4037, ":1146", "")]);
    // What is read of a picture: the task stands before its shares, of which some are missing. Nothing is joined that
    // does not add up.
    let mixed = "    15.19%   15.19%   0.00%  0.00%  0.00% swapper\n     qemu-system-aar\n  13.08%\n  11.72%\n \
                 0.00%\n  0.00%\n  11.72%\n  0.00% :1147\n";
    let (tables, notes) = shares(&format!("{heading}{mixed}"));
    assert_eq!(
        rows(&tables[0]),
        [(1519, "swapper", ""), (1172, ":1147", "")]
    );
    assert_eq!(tables[0].unread, 1);
    assert!(notes[0].text.contains("could not be read"), "{notes:?}");
}

/// A heading that was read of a picture: the rows say what their columns are, if they add up.
#[test]
fn of_a_broken_heading_rows_that_add_up_are_read() {
    let text = "# Overhead\n      usr guest sys guest usr Command\n        SVS\n\
                 40.37%\n  0.00%\n 0.00%\n 40.37%\n     0.00% :1146\n\
                 6.87%\n   0.00% ssh\n  0.00%\n   6.87%\n   0.00%\n\
                 5.45%\n   0.00%\n 0.00%\n   5.45%\n    0.00% :1149\n";
    let (tables, _) = shares(text);
    assert_eq!(rows(&tables[0]), [(4037, ":1146", ""), (545, ":1149", "")]);
    assert!(tables[0].unread > 0);
}

#[test]
fn other_text_is_none() {
    for text in [
        "Overhead is 12.34% of the time.\n",
        "# Overhead\n    12.34%\n",
        "12.34% of CPU 0/KVM is spent in [k] native_halt\n",
        "     5.20%   -3.40%  [kernel.kallsyms]  [k] clear_page\n",
        "Overhead  Command\n",
        "CPU usage: 12.34%  user, 3.20% sys\n",
        "12.34%  3.00%  9.34%  0.00%  0.10%  what does not add up\n",
        "Samples: 10 of event 'cycles'\n",
        "  %Cpu(s): 12.34 us\n",
    ] {
        assert_eq!(shares(text).0, [], "{text}");
    }
}
