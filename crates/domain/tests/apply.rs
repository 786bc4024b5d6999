//! What a change makes of a text, to the byte; and what is said when it makes nothing.

use domain::{DomainChange, DomainNote, ErrorKind, NoteKind, apply, diff};

const WINDOWS: &str = include_str!("domains/windows.xml");
const HYPERV: &str = include_str!("domains/hyperv.xml");
const COMMENTS: &str = include_str!("domains/comments.xml");
const TABS: &str = include_str!("domains/tabs-crlf.xml");

fn timer(name: &str, present: bool) -> DomainChange {
    DomainChange::Timer {
        name: name.to_owned(),
        present,
    }
}

fn hyperv(name: &str) -> DomainChange {
    DomainChange::HypervFeature {
        name: name.to_owned(),
        on: true,
    }
}

fn changed(text: &str, change: DomainChange) -> (String, Vec<DomainNote>) {
    apply(text, &[change]).unwrap()
}

/// A domain with something in it.
fn with(what: &str) -> String {
    format!("<domain type='kvm'>\n  <name>x</name>\n{what}</domain>\n")
}

/// Lines of a diff that go or come.
fn lines(before: &str, after: &str) -> Vec<String> {
    let diff = diff("x", before, after);
    let body = diff
        .lines()
        .skip(2)
        .filter(|line| line.starts_with(['-', '+']));
    body.map(str::to_owned).collect()
}

#[test]
fn a_windows_guest_gets_hyper_vs_clock() {
    let changes = [
        timer("hypervclock", true),
        hyperv("vpindex"),
        hyperv("synic"),
        hyperv("stimer"),
    ];
    let (after, notes) = apply(WINDOWS, &changes).unwrap();
    assert_eq!(notes, []);
    assert_eq!(
        diff("dom.xml", WINDOWS, &after),
        "--- a/dom.xml\n+++ b/dom.xml\n@@ -24,6 +24,11 @@\n   <features>\n     <acpi/>\n     <apic/>\n+    <hyperv \
         mode='custom'>\n+      <vpindex state='on'/>\n+      <synic state='on'/>\n+      <stimer state='on'/>\n+    \
         </hyperv>\n     <vmport state='off'/>\n     <smm state='on'/>\n   </features>\n@@ -34,6 +39,7 @@\n     <timer \
         name='rtc' tickpolicy='catchup'/>\n     <timer name='pit' tickpolicy='delay'/>\n     <timer name='hpet' \
         present='no'/>\n+    <timer name='hypervclock' present='yes'/>\n   </clock>\n   \
         <on_poweroff>destroy</on_poweroff>\n   <on_reboot>restart</on_reboot>\n"
    );
    // The same, whatever the order they are asked for in.
    let mut turned = changes.clone();
    turned.reverse();
    assert_eq!(apply(WINDOWS, &turned).unwrap().0, after);
    // And nothing when it is there.
    let (again, notes) = apply(&after, &changes).unwrap();
    assert_eq!(again, after);
    let reported: Vec<_> = notes.iter().map(|note| (note.kind, note.change)).collect();
    let holds = |change| (NoteKind::Holds, Some(change));
    assert_eq!(reported, [holds(0), holds(1), holds(2), holds(3)]);
    assert_eq!(
        notes[0].what,
        "the timer hypervclock is present='yes' already"
    );
    assert_eq!(notes[0].line, 42);
}

#[test]
fn what_says_no_is_made_to_say_yes() {
    let changes = [
        timer("hypervclock", true),
        hyperv("synic"),
        timer("hpet", false),
    ];
    let (after, _) = apply(HYPERV, &changes).unwrap();
    assert_eq!(
        lines(HYPERV, &after),
        [
            "-      <synic state='off'/>",
            "+      <synic state='on'/>",
            "-    <timer name='hpet' present='yes'/>",
            "-    <timer name='hypervclock' present='no'/>",
            "+    <timer name='hpet' present='no'/>",
            "+    <timer name='hypervclock' present='yes'/>",
        ]
    );
}

#[test]
fn elements_without_content_are_opened() {
    for (before, after) in [
        (
            "  <clock offset='utc'/>\n",
            "  <clock offset='utc'>\n    <timer name='hpet' present='no'/>\n  </clock>\n",
        ),
        (
            "  <clock offset=\"utc\" />\n",
            "  <clock offset=\"utc\">\n    <timer name='hpet' present='no'/>\n  </clock>\n",
        ),
        (
            "\t<clock offset='utc'></clock>\n",
            "\t<clock offset='utc'>\n\t\t<timer name='hpet' present='no'/>\n\t</clock>\n",
        ),
        (
            "  <clock offset='utc'>\n\n  </clock>\n",
            "  <clock offset='utc'>\n    <timer name='hpet' present='no'/>\n  </clock>\n",
        ),
        (
            "  <clock offset='utc'>\n    <!-- a -->\n  </clock>\n",
            "  <clock offset='utc'>\n    <!-- a -->\n    <timer name='hpet' present='no'/>\n  </clock>\n",
        ),
        (
            "  <clock offset='utc'><!-- a --></clock>\n",
            "  <clock offset='utc'><!-- a --><timer name='hpet' present='no'/></clock>\n",
        ),
        (
            "",
            "  <clock offset='utc'>\n    <timer name='hpet' present='no'/>\n  </clock>\n",
        ),
        (
            "  <y:clock xmlns:y='u'/>\n",
            "  <clock offset='utc'>\n    <timer name='hpet' present='no'/>\n  </clock>\n  <y:clock xmlns:y='u'/>\n",
        ),
    ] {
        assert_eq!(changed(&with(before), timer("hpet", false)).0, with(after));
    }
    for (before, after) in [
        (
            "  <features/>\n",
            "  <features>\n    <hyperv mode='custom'>\n      <vpindex state='on'/>\n    </hyperv>\n  </features>\n",
        ),
        (
            "  <features>\n    <hyperv/>\n  </features>\n",
            "  <features>\n    <hyperv>\n      <vpindex state='on'/>\n    </hyperv>\n  </features>\n",
        ),
        (
            "<features><hyperv></hyperv></features>",
            "<features><hyperv><vpindex state='on'/></hyperv></features>",
        ),
    ] {
        assert_eq!(changed(&with(before), hyperv("vpindex")).0, with(after));
    }
    assert_eq!(
        changed("<domain/>", DomainChange::MemoryLocked).0,
        "<domain><memoryBacking><locked/></memoryBacking></domain>"
    );
}

#[test]
fn comments_stay_with_what_they_are_about() {
    let pin = |vcpu: u32| DomainChange::VcpuPin {
        vcpu,
        cpus: "7".parse().unwrap(),
    };
    let (after, _) = apply(
        COMMENTS,
        &[pin(0), pin(1), pin(3), DomainChange::Iothreads(8)],
    )
    .unwrap();
    assert_eq!(
        lines(COMMENTS, &after),
        [
            "-  <iothreads><!-- one a disk --><![CDATA[2]]></iothreads>",
            "+  <iothreads><!-- one a disk -->8</iothreads>",
            "+    <vcpupin vcpu='0' cpuset='7'/>",
            "-    <vcpupin vcpu='1' cpuset='3'/> <!-- beside 2 -->",
            "+    <vcpupin vcpu='1' cpuset='7'/> <!-- beside 2 -->",
            "+    <vcpupin vcpu='3' cpuset='7'/>",
        ]
    );
    let cache = DomainChange::DiskCache {
        disk: "vdb".into(),
        cache: "none".to_owned(),
    };
    assert_eq!(
        lines(COMMENTS, &changed(COMMENTS, cache).0)[1],
        "+      <driver name='qemu' type='raw' cache=\"none\"/> <!-- why? -->"
    );
}

#[test]
fn line_ends_and_tabs_are_those_of_the_document() {
    let (after, _) = apply(TABS, &[timer("hypervclock", true), hyperv("relaxed")]).unwrap();
    assert!(after.contains(
        "\t\t<timer name='hpet' present='no'/>\r\n\t\t<timer name='hypervclock' present='yes'/>\r\n"
    ));
    assert!(after.contains(
        "\r\n\t\t<hyperv mode='custom'>\r\n\t\t\t<relaxed state='on'/>\r\n\t\t</hyperv>\r\n"
    ));
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    let marked = format!("\u{feff}{}", with(""));
    let (after, _) = apply(&marked, &[DomainChange::MemoryLocked]).unwrap();
    assert!(after.starts_with("\u{feff}<domain type='kvm'>\n  <name>"));
}

#[test]
fn text_is_replaced_where_it_stands() {
    for (before, after) in [
        ("<iothreads>1</iothreads>", "<iothreads>4</iothreads>"),
        (
            "<iothreads> \n 1 </iothreads>",
            "<iothreads> \n 4 </iothreads>",
        ),
        ("<iothreads/>", "<iothreads>4</iothreads>"),
        ("<iothreads></iothreads>", "<iothreads>4</iothreads>"),
        (
            "<iothreads>&#49;<!-- 1 --><![CDATA[ ]]></iothreads>",
            "<iothreads>4<!-- 1 --></iothreads>",
        ),
        (
            "<iothreads>x<?p i?>1</iothreads>",
            "<iothreads>4<?p i?></iothreads>",
        ),
    ] {
        assert_eq!(
            changed(&with(before), DomainChange::Iothreads(4)).0,
            with(after)
        );
    }
}

#[test]
fn devices_are_found_by_place_name_and_mac() {
    let driver = |interface: domain::DeviceChoice| DomainChange::InterfaceDriver {
        interface,
        name: "vhost".to_owned(),
    };
    let (by_mac, _) = changed(WINDOWS, driver("52:54:00:4B:1A:07".into()));
    assert_eq!(lines(WINDOWS, &by_mac), ["+      <driver name='vhost'/>"]);
    assert_eq!(changed(WINDOWS, driver(0.into())).0, by_mac);
    let (_, notes) = changed(WINDOWS, driver(1.into()));
    assert_eq!(
        notes[0].what,
        "there is no interface number 1: the domain has 1: not made"
    );
    let io = DomainChange::DiskIothread {
        disk: "vda".into(),
        iothread: 1,
    };
    let (after, notes) = changed(WINDOWS, io);
    assert_eq!(
        lines(WINDOWS, &after)[1],
        "+      <driver name='qemu' type='qcow2' discard='unmap' iothread='1'/>"
    );
    assert_eq!(notes[0].kind, NoteKind::Advice);
    assert!(
        notes[0].what.contains("there is no iothread 1"),
        "{}",
        notes[0].what
    );
}

#[test]
fn a_serial_port_goes_with_its_console() {
    let (after, notes) = apply(
        WINDOWS,
        &[
            DomainChange::RemoveSerial { port: 0 },
            DomainChange::ConsoleVirtio,
        ],
    )
    .unwrap();
    assert!(notes[0].what.contains("console=hvc0"));
    let lines = lines(WINDOWS, &after);
    assert!(
        lines.contains(&"-    <serial type='pty'>".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"+      <target type='virtio' port='0'/>".to_owned()),
        "{lines:?}"
    );
    let (domain, _) = domain::parse(&after).unwrap();
    assert_eq!(domain.consoles.len(), 1);
    let two =
        with("  <devices>\n    <serial type='pty'/>\n    <serial type='pty'/>\n  </devices>\n");
    let (after, notes) = changed(&two, DomainChange::RemoveSerial { port: 0 });
    assert_eq!(after, two);
    assert_eq!((notes[0].kind, notes[0].line), (NoteKind::Refused, 4));
}

#[test]
fn a_cpus_model_goes_with_its_mode() {
    let (after, _) = changed(
        COMMENTS,
        DomainChange::CpuMode("host-passthrough".to_owned()),
    );
    assert_eq!(
        lines(COMMENTS, &after),
        [
            "-  <cpu mode='custom' match='exact'><!-- for migration -->",
            "-    <model fallback='forbid'>Skylake-Server</model>",
            "+  <cpu mode='host-passthrough'><!-- for migration -->",
        ]
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let text = str::to_owned;
    let arm = with("  <os>\n    <type arch='aarch64'>hvm</type>\n  </os>\n");
    let all = with("  <features>\n    <hyperv mode='passthrough'/>\n  </features>\n");
    let off = |name: &str| DomainChange::HypervFeature {
        name: text(name),
        on: false,
    };
    for (document, change, said) in [
        (
            WINDOWS,
            timer("sundial", true),
            "'sundial' is no timer that is known; expected one of platform",
        ),
        (WINDOWS, hyperv("warp"), "'warp' is no enlightenment"),
        (WINDOWS, hyperv("vendor_id"), "vendor_id needs a value"),
        (
            &arm,
            hyperv("synic"),
            "architecture is aarch64, and synic is for x86",
        ),
        (&arm, timer("hpet", false), "hpet is for x86"),
        (&all, off("synic"), "takes no single one"),
        (
            WINDOWS,
            DomainChange::CpuMode(text("custom")),
            "'custom' is no mode",
        ),
        (
            &arm,
            DomainChange::CpuFeature {
                name: text("x2apic"),
                policy: text("require"),
            },
            "there is no <cpu>",
        ),
        (
            WINDOWS,
            DomainChange::VcpuPin {
                vcpu: 4,
                cpus: "1".parse().unwrap(),
            },
            "there is no vCPU 4: the domain has 4",
        ),
        (
            WINDOWS,
            DomainChange::EmulatorPin(cpuset::CpuSet::new()),
            "no CPU was given",
        ),
        (WINDOWS, DomainChange::Iothreads(0), "0 iothreads cannot be"),
        (
            WINDOWS,
            DomainChange::DiskIothread {
                disk: "sdb".into(),
                iothread: 1,
            },
            "is on the bus sata",
        ),
        (
            WINDOWS,
            DomainChange::DiskCache {
                disk: "vdz".into(),
                cache: text("none"),
            },
            "there is no disk vdz: the domain has 2",
        ),
        (
            WINDOWS,
            DomainChange::DiskIo {
                disk: 0.into(),
                io: text("fast"),
            },
            "'fast' is no mode of I/O",
        ),
        (
            HYPERV,
            DomainChange::InterfaceDriver {
                interface: 0.into(),
                name: text("vhost"),
            },
            "is of type='user'",
        ),
        (
            HYPERV,
            DomainChange::ControllerIothread {
                index: 0,
                iothread: 1,
            },
            "no virtio-scsi controller 0",
        ),
        (
            WINDOWS,
            DomainChange::HugePages { size_kib: Some(3) },
            "a power of two",
        ),
    ] {
        let (after, notes) = changed(document, change.clone());
        assert_eq!(after, document);
        assert_eq!(notes.len(), 1, "{change:?}: {notes:?}");
        assert_eq!(
            (notes[0].kind, notes[0].change),
            (NoteKind::Refused, Some(0))
        );
        assert!(notes[0].what.contains(said), "{}", notes[0].what);
    }
}

#[test]
fn what_else_a_change_needs_is_said() {
    let text = str::to_owned;
    for (changes, said) in [
        (
            vec![hyperv("stimer")],
            "stimer needs vpindex and synic and hypervclock too",
        ),
        (vec![hyperv("tlbflush")], "tlbflush needs vpindex too"),
        (
            vec![
                DomainChange::KvmFeature {
                    name: text("hint-dedicated"),
                    on: true,
                },
                DomainChange::CpuMode(text("host-model")),
            ],
            "host-passthrough",
        ),
        (
            vec![DomainChange::DiskIo {
                disk: 0.into(),
                io: text("native"),
            }],
            "works with cache='none'",
        ),
        (
            vec![
                DomainChange::IothreadPin {
                    iothread: 2,
                    cpus: "1".parse().unwrap(),
                },
                DomainChange::Iothreads(1),
            ],
            "there is no iothread 2",
        ),
        (
            vec![
                hyperv("synic"),
                hyperv("vpindex"),
                DomainChange::HypervFeature {
                    name: text("vpindex"),
                    on: false,
                },
            ],
            "synic needs vpindex",
        ),
    ] {
        let (_, notes) = apply(WINDOWS, &changes).unwrap();
        assert!(
            notes
                .iter()
                .any(|note| note.kind == NoteKind::Advice && note.what.contains(said)),
            "{notes:?}"
        );
    }
    // What is given along is not asked for.
    let native = [
        DomainChange::DiskIo {
            disk: 0.into(),
            io: text("native"),
        },
        DomainChange::DiskCache {
            disk: 0.into(),
            cache: text("none"),
        },
        DomainChange::DiskIothread {
            disk: 0.into(),
            iothread: 1,
        },
        DomainChange::Iothreads(1),
        DomainChange::IothreadPin {
            iothread: 1,
            cpus: "1".parse().unwrap(),
        },
    ];
    assert_eq!(apply(WINDOWS, &native).unwrap().1, []);
}

#[test]
fn what_libvirt_does_not_take_back_is_not_changed() {
    let status = format!("<domstatus>\n{}</domstatus>\n", with(""));
    let error = apply(&status, &[DomainChange::MemoryLocked]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotEditable);
    assert!(
        error.to_string().contains("<domstatus> cannot be changed"),
        "{error}"
    );
    assert_eq!(
        apply("<network/>", &[]).unwrap_err().kind,
        ErrorKind::NotDomain
    );
    assert_eq!(
        apply("<domain>", &[]).unwrap_err().kind,
        ErrorKind::Malformed
    );
}
