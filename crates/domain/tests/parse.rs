//! What is read of a domain's XML, and what is said when it is none.

use domain::{ErrorKind, GuestOs, parse, parse_bytes};

const WINDOWS: &str = include_str!("domains/windows.xml");
const OVERRIDES: &str = include_str!("domains/qemu-commandline.xml");
const ARM: &str = include_str!("domains/arm64.xml");

#[test]
fn a_windows_guest_is_read() {
    let (domain, notes) = parse(WINDOWS).unwrap();
    assert_eq!(notes, []);
    assert_eq!(
        (domain.name.as_str(), domain.kind.as_str()),
        ("win11", "kvm")
    );
    assert_eq!(domain.os, GuestOs::Windows);
    assert_eq!(domain.machine.as_deref(), Some("pc-q35-7.2"));
    assert_eq!((domain.vcpus, domain.current_vcpus), (Some(4), None));
    assert_eq!(domain.memory_bytes, Some(8 << 30));
    assert_eq!(domain.vcpu_cpus(2).unwrap().to_string(), "4");
    assert_eq!(
        domain.vcpu_cpus(9).map(ToString::to_string).as_deref(),
        Some("0-7")
    );
    assert_eq!(domain.emulator_cpus().unwrap().to_string(), "0-1");
    assert_eq!(domain.timer("hpet").unwrap().present, Some(false));
    assert_eq!(
        domain.timer("rtc").unwrap().tickpolicy.as_deref(),
        Some("catchup")
    );
    assert!(domain.timer("hypervclock").is_none() && domain.hyperv.is_none());
    assert!(domain.features.contains("apic") && !domain.features.contains("vmport"));
    assert!(!domain.feature_states["vmport"]);
    let topology = domain.topology.unwrap();
    assert_eq!((topology.cores, topology.threads), (Some(2), Some(2)));
    let disk = &domain.disks[0];
    assert_eq!(
        (disk.bus.as_deref(), disk.format.as_deref()),
        (Some("virtio"), Some("qcow2"))
    );
    assert_eq!((disk.cache.as_deref(), disk.io.as_deref()), (None, None));
    assert_eq!(domain.interfaces[0].model.as_deref(), Some("virtio"));
    assert_eq!(domain.interfaces[0].driver, None);
    assert_eq!(domain.consoles.len(), 2);
    assert_eq!(domain.memballoon.as_deref(), Some("virtio"));
}

#[test]
fn what_libvirt_hands_on_to_qemu_is_read() {
    let (domain, notes) = parse(OVERRIDES).unwrap();
    assert_eq!(notes, []);
    assert_eq!(domain.qemu_args, ["-overcommit", "cpu-pm=on"]);
}

#[test]
fn an_arm_guest_is_read() {
    let (domain, notes) = parse(ARM).unwrap();
    assert_eq!(notes, []);
    assert_eq!(domain.arch.as_deref(), Some("aarch64"));
    assert_eq!(domain.gic_version.as_deref(), Some("3"));
    assert_eq!(
        domain.consoles[0].target_type.as_deref(),
        Some("system-serial")
    );
    assert_eq!(domain.consoles[0].model.as_deref(), Some("pl011"));
    let hugepages = domain.memory_backing.hugepages.unwrap();
    assert_eq!(hugepages[0].size_bytes, Some(1 << 30));
    assert_eq!(
        domain.numa_memory.unwrap().nodeset.unwrap().to_string(),
        "0"
    );
    assert_eq!(domain.cputune["quota"], -1);
    assert_eq!(domain.scheds[0].priority, Some(1));
}

/// Puts something into a small domain.
fn with(what: &str) -> String {
    format!("<domain type='kvm'>\n<name>x</name>\n{what}\n</domain>\n")
}

#[test]
fn numbers_that_cannot_be_are_noted_and_left_out() {
    for (what, said) in [
        (
            "<vcpu>4294967296</vcpu>",
            "line 3: the text of <vcpu> is '4294967296'",
        ),
        ("<vcpu>70000</vcpu>", "70000 vCPUs cannot be"),
        ("<vcpu>-1</vcpu>", "'-1'; expected the number of vCPUs"),
        (
            "<vcpu cpuset='zwei'>1</vcpu>",
            "cpuset of <vcpu> is 'zwei'; expected a list",
        ),
        ("<vcpu cpuset='0-65535:1/2'>1</vcpu>", "expected a list"),
        ("<memory unit='parsec'>1</memory>", "the unit 'parsec'"),
        (
            "<memory unit='EiB'>18446744073709551615</memory>",
            "is none",
        ),
        (
            "<cputune><vcpupin vcpu='x' cpuset='1'/></cputune>",
            "vcpu of <vcpupin> is 'x'",
        ),
        (
            "<clock><timer name='tsc' present='perhaps'/></clock>",
            "'perhaps'; expected yes or no",
        ),
        (
            "<devices><disk><driver iothread='a'/></disk></devices>",
            "iothread of <driver> is 'a'",
        ),
    ] {
        let (domain, notes) = parse(&with(what)).unwrap();
        assert_eq!(domain.name, "x");
        assert_eq!(notes.len(), 1, "{what}");
        assert!(notes[0].to_string().contains(said), "{}", notes[0]);
    }
}

#[test]
fn notes_are_bounded() {
    let many = "<timer present='x'/>".repeat(1000);
    let (_, notes) = parse(&with(&format!("<clock>{many}</clock>"))).unwrap();
    assert_eq!(notes.len(), 33);
    assert!(notes[32].what.starts_with("968 more notes"));
}

#[test]
fn text_may_stand_in_pieces() {
    let text = with("<vcpu><!-- not 8 -->1<![CDATA[6]]></vcpu><iothreads>&#50;</iothreads>");
    let (domain, notes) = parse(&text).unwrap();
    assert_eq!((domain.vcpus, domain.iothreads), (Some(16), Some(2)));
    assert_eq!(notes, []);
}

#[test]
fn what_is_in_another_namespace_is_not_libvirts() {
    let text = with(
        "<metadata><x:a xmlns:x='urn:x'><x:vcpu>3</x:vcpu></x:a></metadata>\n\
         <y:clock xmlns:y='urn:y' offset='utc'/><vcpu z:cpuset='1' xmlns:z='urn:z'>2</vcpu>",
    );
    let (domain, _) = parse(&text).unwrap();
    assert_eq!((domain.vcpus, domain.vcpu_cpuset), (Some(2), None));
    assert_eq!(domain.clock_offset, None);
}

#[test]
fn sizes_have_units() {
    for (size, bytes) in [
        ("<memory>1024</memory>", 1 << 20),
        ("<memory unit='b'>7</memory>", 7),
        ("<memory unit='KB'>7</memory>", 7000),
        ("<memory unit='G'>2</memory>", 2 << 30),
        ("<memory unit='TiB'> 1 </memory>", 1 << 40),
    ] {
        let (domain, notes) = parse(&with(size)).unwrap();
        assert_eq!(
            (domain.memory_bytes, notes.len()),
            (Some(bytes), 0),
            "{size}"
        );
    }
}

#[test]
fn a_wrapped_domain_is_found() {
    let text = format!(
        "<domstatus state='running'>\n{}</domstatus>",
        with("<vcpu>2</vcpu>")
    );
    let (domain, notes) = parse(&text).unwrap();
    assert_eq!(domain.vcpus, Some(2));
    assert!(notes[0].what.contains("<domstatus>"), "{}", notes[0]);
}

#[test]
fn what_is_no_domain_is_said() {
    use ErrorKind::{Entity, Malformed, NotDomain};
    let two = format!("<domains>{}{}</domains>", with(""), with(""));
    for (text, kind, said) in [
        (
            "<network><name>a</name></network>",
            NotDomain,
            "<network> is no domain",
        ),
        (&two, NotDomain, "several domains"),
        ("<domain xmlns='urn:x'/>", NotDomain, "namespace 'urn:x'"),
        (
            &with("<vcpu a='1' a='2'/>"),
            Malformed,
            "line 3, column 13: the attribute a is there twice",
        ),
        (
            &with("<vcpu></cpu>"),
            Malformed,
            "line 3, column 7: </cpu> was found; expected </vcpu>",
        ),
        (
            &with("<qemu:a/>"),
            Malformed,
            "the prefix 'qemu:' is not declared",
        ),
        (
            &with("\0"),
            Malformed,
            "line 3, column 1: the character U+0000",
        ),
        (
            &with("&uuml;"),
            Entity,
            "line 3, column 1: the entity '&uuml;'",
        ),
        (&with("<a b='&x;'/>"), Entity, "the entity '&x;'"),
        (
            "\n<?xml version='1.0'?>\n<domain/>",
            Malformed,
            "line 2, column 1: the XML declaration",
        ),
        (
            "<domain><name>a & b</name></domain>",
            Malformed,
            "line 1, column 17: no well-formed XML",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn no_entity_is_ever_read() {
    for dtd in [
        "<!DOCTYPE domain [<!ENTITY x SYSTEM 'file:///etc/hostname'>]>",
        "<!DOCTYPE domain SYSTEM 'http://example.org/x.dtd'>",
        "<!DOCTYPE domain [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;'><!ENTITY x '&b;&b;&b;'>]>",
        "<!DOCTYPE domain [<!ENTITY % p SYSTEM 'p'> %p;]>",
        "<!DOCTYPE domain>",
    ] {
        let error = parse(&format!("{dtd}\n<domain><name>&x;</name></domain>")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Entity, "{error}");
        assert!(
            error
                .to_string()
                .starts_with("line 1, column 1: there is a document type")
        );
    }
}

#[test]
fn depth_is_bounded_and_takes_no_stack() {
    let deep = format!("<domain>{}", "<a>".repeat(100_000));
    assert_eq!(parse(&deep).unwrap_err().kind, ErrorKind::Limit);
    let closed = format!(
        "<domain>{}{}</domain>",
        "<a>".repeat(100_000),
        "</a>".repeat(100_000)
    );
    assert_eq!(parse(&closed).unwrap_err().kind, ErrorKind::Limit);
    let chain = "<backingStore>".repeat(200) + &"</backingStore>".repeat(200);
    assert!(parse(&with(&format!("<devices><disk>{chain}</disk></devices>"))).is_ok());
}

#[test]
fn bytes_are_utf_8_or_it_is_said() {
    let text = with("<vcpu>2</vcpu>");
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    assert_eq!(parse_bytes(&marked).unwrap().0.vcpus, Some(2));
    let declared = format!("<?xml version='1.0' encoding='UTF-8'?>\n{text}");
    assert_eq!(parse_bytes(declared.as_bytes()).unwrap().0.vcpus, Some(2));
    let utf16: Vec<u8> = "\u{feff}<domain/>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?>\n<domain><name>\xfc</name></domain>";
    let ascii = b"<?xml version=\"1.0\" encoding = \"latin1\" ?>\n<domain/>";
    for (bytes, said) in [
        (&utf16[..], "line 1, column 1: the document is in UTF-16"),
        (
            &latin[..],
            "line 2, column 15: the document is in ISO-8859-1",
        ),
        (&ascii[..], "the document is in latin1"),
        (
            b"<domain>\xff</domain>",
            "line 1, column 9: the byte 0xff is not UTF-8",
        ),
    ] {
        let error = parse_bytes(bytes).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Encoding);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_document_that_is_cut_off_anywhere_is_said_to_be() {
    for end in (0..WINDOWS.trim_end().len()).filter(|at| WINDOWS.is_char_boundary(*at)) {
        let error = parse(&WINDOWS[..end]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed, "{end}: {error}");
    }
}
