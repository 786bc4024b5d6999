//! A mail with everything in it: each part is found in its lines, however it was pasted.

use ticket::{PartKind, Ticket, read};

const TABLE: &str =
    include_str!("../../perftables/tests/tables/case2-hpet.perf-kvm-stat-vmexit.txt");
const LATENCY: &str =
    include_str!("../../perftables/tests/tables/case5-good-host.perf-sched-latency.txt");

/// Lines of events, from this second on.
fn trace(second: u32) -> String {
    (0..4)
        .map(|at| {
            format!(
                "     qemu-kvm-1700 [001]  {second}.00{at}100: kvm_exit: reason HLT rip 0x{at} info 0 0\n"
            )
        })
        .collect()
}

fn definition(name: &str, os: &str) -> String {
    format!(
        "<domain type='kvm'>\n  <name>{name}</name>\n  <metadata>\n    <libosinfo:libosinfo \
         xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>\n      <libosinfo:os id='http://{os}'/>\n    \
         </libosinfo:libosinfo>\n  </metadata>\n  <vcpu>2</vcpu>\n</domain>\n"
    )
}

fn mail() -> String {
    let definition = definition("web", "ubuntu.com/ubuntu/22.04");
    format!(
        "Hello,\n\nour guest is slow. This is its definition:\n\n{definition}\nand where its vCPUs are:\n\n* CPU #0: \
         thread_id=1700\n  CPU #1: thread_id=1703\n\nWhat it leaves the guest for:\n\n{TABLE}\nThe hang itself:\n\n{}\n\
         我们不知道为什么。\n",
        trace(444)
    )
}

/// Says what the parts are, each with its lines.
fn kinds(ticket: &Ticket) -> Vec<&'static str> {
    let parts = ticket.parts.iter();
    let kinds = parts.map(|part| match part.kind {
        PartKind::Trace(_) => "trace",
        PartKind::Table { .. } => "table",
        PartKind::Definition(_) => "definition",
        PartKind::Facts(_) => "facts",
        _ => "other",
    });
    kinds.collect()
}

#[test]
fn a_mail_is_its_parts() {
    let text = mail();
    let ticket = read(text.as_bytes());
    assert_eq!(kinds(&ticket), ["definition", "facts", "table", "trace"]);
    let line = |what: &str| {
        let at = text.lines().position(|line| line.contains(what)).unwrap();
        at as u64 + 1
    };
    let of = |at: usize| (ticket.parts[at].first_line, ticket.parts[at].last_line);
    assert_eq!(of(0), (line("<domain"), line("</domain>")));
    assert_eq!(of(1), (line("CPU #0"), line("CPU #1")));
    assert_eq!(of(2).1, line("Total Samples"));
    assert_eq!(of(3), (line("444.000100"), line("444.003100")));
    assert_eq!(ticket.parts[3].name.as_deref(), Some("The hang itself"));
    assert_eq!(ticket.unread.lines, 0, "{:?}", ticket.unread);
    assert_eq!(ticket.facts.vms[0].vcpus.len(), 2);
    // The only definition is that of every part.
    assert!(ticket.parts.iter().all(|part| part.definition == Some(0)));
    // A trace keeps the numbers of its lines.
    let lines = ticket.traces[0].text.split(|byte| *byte == b'\n');
    assert_eq!(
        lines.take_while(|line| line.is_empty()).count() as u64 + 1,
        of(3).0
    );
}

#[test]
fn pasted_as_people_paste_it_is_the_same() {
    let text = mail();
    let plain = read(text.as_bytes());
    let lines = |ticket: &Ticket| -> Vec<(u64, u64)> {
        let parts = ticket.parts.iter();
        parts
            .map(|part| (part.first_line, part.last_line))
            .collect()
    };
    let each = |change: &dyn Fn(&str) -> String| {
        text.lines()
            .map(|line| change(line) + "\n")
            .collect::<String>()
    };
    for (how, pasted) in [
        ("quoted", each(&|line| format!("> {line}"))),
        ("twice quoted", each(&|line| format!("> > {line}"))),
        ("CRLF", text.replace('\n', "\r\n")),
        ("no-break blanks", text.replace("  ", "\u{a0} ")),
        ("HTML", text.replace('<', "&lt;").replace('>', "&gt;")),
        (
            "quoted, in HTML",
            each(&|line| format!("&gt; {}", line.replace('<', "&lt;").replace('>', "&gt;"))),
        ),
    ] {
        let ticket = read(pasted.as_bytes());
        assert_eq!(kinds(&ticket), kinds(&plain), "{how}");
        assert_eq!(lines(&ticket), lines(&plain), "{how}");
        assert_eq!(ticket.tables.len(), 1, "{how}");
        assert_eq!(ticket.definitions[0].definition.domain.name, "web", "{how}");
    }
}

#[test]
fn another_recording_begins_where_the_time_says_so() {
    let found = |text: String| read(text.as_bytes()).traces.len();
    let prose = "Then we changed the governor.\nAnd we waited.\nThis is what came out:\n";
    // Back in time, or far ahead across other text.
    assert_eq!(found(trace(444) + prose + &trace(100)), 2);
    assert_eq!(found(trace(444) + prose + &trace(9000)), 2);
    // The remarks of an author in one trace, and buffers of several CPUs one after another.
    assert_eq!(
        found(trace(444) + "# here it goes wrong\n" + &trace(445)),
        1
    );
    assert_eq!(found(trace(444) + "Here it goes wrong:\n" + &trace(445)), 1);
    assert_eq!(found(trace(444) + &trace(100)), 1);
    // One event in a sentence is none.
    let one = trace(444).lines().next().unwrap().to_owned();
    assert_eq!(found(format!("The line\n{one}\nis odd.\n")), 0);
}

#[test]
fn a_page_that_is_copied_twice_is_one() {
    let once = format!(
        "Before:\n{TABLE}\n{}\nSee:\n{}\n",
        definition("web", "debian.org/debian/12"),
        trace(7)
    );
    let twice = read(format!("{once}{once}").as_bytes());
    assert_eq!(twice.parts.len(), 3);
    assert_eq!(
        (
            twice.tables.len(),
            twice.traces.len(),
            twice.definitions.len()
        ),
        (1, 1, 1)
    );
    assert!(twice.repeated_from.is_some());
    // The same table at two moments is two tables.
    let tables = read(format!("before:\n{TABLE}\nafter:\n{TABLE}").as_bytes());
    assert_eq!((tables.parts.len(), tables.repeated_from), (2, None));
}

#[test]
fn a_part_is_of_the_guest_that_the_nearest_line_names() {
    let two = definition("build-1", "debian.org/debian/12")
        + "\n"
        + &definition("desk", "microsoft.com/win/10");
    let text = format!(
        "{two}\n\n1. Linux guest\n\nIt leaves the guest:\n{TABLE}\n2. windows\n\nand here:\n{LATENCY}\nvirsh \
         qemu-monitor-command build-1\n\n{}\n",
        trace(7)
    );
    let ticket = read(text.as_bytes());
    let of: Vec<Option<usize>> = ticket.parts.iter().map(|part| part.definition).collect();
    assert_eq!(
        kinds(&ticket),
        ["definition", "definition", "table", "table", "trace"]
    );
    assert_eq!(of[2..], [Some(0), Some(1), Some(0)]);
}

#[test]
fn prose_is_nothing() {
    let text = "We saw 3 hangs in 10 seconds, see [1] and [2].\n\n1. First\n2. Second\n\n> as you said,\n> 12:30 is \
                late\n\n| IPI | 100000 (ns) |\n| --- | --- |\n";
    let ticket = read(text.as_bytes());
    assert_eq!(ticket.parts, []);
    assert_eq!(ticket.unread.lines, 0, "{:?}", ticket.unread);
}

#[test]
fn results_belong_to_the_table_behind_them() {
    let run = |rate: &str| format!("CPU speed:\n    events per second:   {rate}\n\n");
    let text = format!(
        "hpet:\n{}{TABLE}\ntsc:\n{}{TABLE}\nno run:\n{TABLE}",
        run("280.83"),
        run("286.59")
    );
    let ticket = read(text.as_bytes());
    let of = |at: usize| {
        let table = ticket.tables[at].table.line();
        let scores = ticket.scores_before(table);
        scores.iter().map(|score| score.value).collect::<Vec<f64>>()
    };
    assert_eq!((of(0), of(1), of(2)), (vec![280.83], vec![286.59], vec![]));
}

#[test]
fn commands_without_output_are_named() {
    let text =
        "We ran it:\n\nperf kvm stat report\n\n![picture](a.png)\n\nand trace-cmd report | less\n";
    let named = ticket::named_commands(text.as_bytes());
    let named: Vec<(&str, u64)> = named.iter().map(|one| (one.command, one.line)).collect();
    assert_eq!(
        named,
        [("perf kvm stat report", 3), ("trace-cmd report", 7)]
    );
}

#[test]
fn what_stands_there_twice_is_counted_once() {
    let once = format!("One:\n{TABLE}\n a 1 2 3 4\n\n{}\n", trace(7));
    let (single, double) = (
        read(once.as_bytes()),
        read(format!("{once}{once}").as_bytes()),
    );
    assert_eq!(single.unread.lines, 1);
    assert_eq!(double.unread, single.unread);
    assert_eq!(double.lines_read(), single.lines_read());
}

#[test]
fn results_end_where_something_else_stands() {
    let text = "    events per second:   280.83\n\n* CPU #0: thread_id=1700\n\n    total time:    10.0037s\n    \
                total number of events:   2810\n";
    let parts = read(text.as_bytes()).parts;
    let apart = parts
        .windows(2)
        .all(|pair| pair[0].last_line < pair[1].first_line);
    assert!(apart && parts.len() > 1, "{parts:?}");
}

/// Half of a definition ends where something else begins, and nothing behind it is taken for it.
#[test]
fn a_definition_that_is_cut_off_is_one() {
    let whole = definition("web", "ubuntu.com/ubuntu/22.04");
    let cut: String = whole
        .lines()
        .take(7)
        .map(|line| line.to_owned() + "\n")
        .collect();
    for (how, cut) in [
        ("as it is", cut.clone()),
        (
            "quoted",
            cut.lines().map(|line| format!("> {line}\n")).collect(),
        ),
        ("HTML", cut.replace('<', "&lt;").replace('>', "&gt;")),
    ] {
        let text = format!("Its definition:\n\n{cut}...\n\nand another:\n{whole}\n{TABLE}");
        let ticket = read(text.as_bytes());
        assert_eq!(
            kinds(&ticket),
            ["definition", "definition", "table"],
            "{how}"
        );
        let [first, second] = &ticket.definitions[..] else {
            panic!("{how}");
        };
        assert_eq!((first.first_line, first.last_line), (3, 9), "{how}");
        assert!(first.definition.domain.is_part() && !second.definition.domain.is_part());
        assert_eq!(first.definition.domain.name, "web", "{how}");
    }
}

/// Lists of pins are of the guest that they name, or of the only one.
#[test]
fn pins_that_virsh_lists_are_of_their_guest() {
    let pins = include_str!("../../domain/tests/domains/pins-libvirt-9.txt");
    let info = include_str!("../../domain/tests/domains/vcpuinfo.txt");
    let of = |text: &str| {
        let ticket = read(text.as_bytes());
        let guests = ticket.definitions.iter().map(|one| {
            let domain = &one.definition.domain;
            let pins = domain.vcpu_pins.iter();
            let pins = pins
                .map(|(vcpu, cpus)| format!("{vcpu}:{cpus}"))
                .collect::<Vec<_>>();
            format!("{} {}", domain.name, pins.join(" "))
        });
        (
            guests.collect::<Vec<_>>(),
            ticket.parts.len(),
            ticket.unread.lines,
        )
    };
    let web = definition("web", "ubuntu.com/ubuntu/22.04");
    let wanted = vec!["web 0:2 1:3 2:0-15".to_owned()];
    let mail = |pins: &str| format!("Pins:\n\n{pins}\nand the guest:\n\n{web}\n{}", trace(3));
    assert_eq!(of(&mail(pins)), (wanted.clone(), 3, 0));
    let unnamed: String = pins
        .lines()
        .filter(|line| !line.contains("virsh "))
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(of(&mail(&unnamed)).0, wanted);
    let quoted: String = pins.lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!(of(&mail(&quoted)).0, wanted);
    assert_eq!(of(&mail(&pins.replace("  ", "&nbsp; "))).0, wanted);
    // Another guest's are its own, and two lists that do not agree are of two.
    let (guests, _, _) = of(&mail(&pins.replace(" web", " db-7")));
    assert_eq!(guests, ["db-7 0:2 1:3 2:0-15", "web "]);
    let twice = info.replace("virsh vcpuinfo web", "virsh vcpuinfo");
    let other = twice.replace("---y----", "-y------");
    assert_eq!(of(&format!("{twice}\nand\n\n{other}")).0.len(), 2);
    assert_eq!(of(&format!("{twice}\nagain\n\n{twice}")).0.len(), 1);
}

/// Lines of prose in a paragraph of facts are not counted as read.
#[test]
fn prose_beside_facts_is_not_counted() {
    let facts = "* CPU #0: thread_id=1700\n  CPU #1: thread_id=1703\n";
    let apart = read(facts.as_bytes());
    assert_eq!(apart.lines_read(), 2);
    let text = format!(
        "We looked at it here:\n{facts}which is odd,\nsince it moved.\n  CPU #2: thread_id=1704\nBye\n"
    );
    let ticket = read(text.as_bytes());
    assert_eq!((ticket.lines_read(), ticket.lines_of_no_fact), (3, 2));
    let [part] = &ticket.parts[..] else {
        panic!("{:?}", ticket.parts);
    };
    assert_eq!((part.first_line, part.last_line), (2, 6));
    assert_eq!(ticket.facts.vms[0].vcpus.len(), 3);
}
