//! Definitions in other forms than libvirt's XML: QEMU's command lines and Proxmox's `.conf`.

use domain::{DefinitionForm, Domain, ErrorKind, GuestOs, definitions};

/// What libvirt 9 starts (JSON in -device, -object, -blockdev and -netdev), as its log has it.
const LIBVIRT_LOG: &str = r#"LC_ALL=C \
PATH=/usr/bin \
/usr/bin/qemu-system-x86_64 \
-name guest=web,debug-threads=on \
-S \
-machine pc-q35-7.2,usb=off,dump-guest-core=off,memory-backend=pc.ram,hpet=off \
-accel kvm \
-cpu host,migratable=on,hv-time=on,hv-relaxed=on,hv-vapic=on,hv-spinlocks=0x1fff,hv-vendor-id=x \
-m size=33554432k \
-object '{"qom-type":"memory-backend-memfd","id":"pc.ram","hugetlb":true,"hugetlbsize":1073741824,"prealloc":true}' \
-smp 8,maxcpus=16,sockets=1,dies=1,cores=8,threads=2 \
-object '{"qom-type":"iothread","id":"iothread1"}' \
-uuid 3b1f6f0e-6d0a-4f2e-9a0b-6f1f5f0f8a11 \
-rtc base=utc,driftfix=slew \
-global kvm-pit.lost_tick_policy=delay \
-device '{"driver":"virtio-scsi-pci","iothread":"iothread1","id":"scsi0","bus":"pci.3"}' \
-device '{"driver":"qemu-xhci","p2":15,"id":"usb","bus":"pci.2"}' \
-object '{"qom-type":"throttle-group","id":"limits0","limits":{"iops-total":500,"bps-read":1048576}}' \
-blockdev '{"driver":"host_device","filename":"/dev/vg/a","aio":"native","node-name":"s1","cache":{"direct":true}}' \
-blockdev '{"node-name":"t1","driver":"throttle","throttle-group":"limits0","file":"s1"}' \
-device '{"driver":"virtio-blk-pci","bus":"pci.4","drive":"t1","id":"virtio-disk0","num-queues":8}' \
-blockdev '{"driver":"file","filename":"/b.qcow2","node-name":"s2"}' \
-blockdev '{"node-name":"f2","driver":"qcow2","file":"s2"}' \
-device '{"driver":"scsi-hd","bus":"scsi0.0","drive":"f2","id":"scsi0-0-0-0"}' \
-netdev '{"type":"tap","fds":"33:34","vhost":true,"vhostfds":"35:36","id":"hostnet0"}' \
-device '{"driver":"virtio-net-pci","mq":true,"netdev":"hostnet0","id":"net0","mac":"52:54:00:4b:1a:07"}' \
-device '{"driver":"usb-tablet","id":"input0","bus":"usb.0","port":"1"}'
char device redirected to /dev/pts/0 (label charserial0)
"#;

fn one(text: &str) -> Domain {
    let mut all = definitions(text.as_bytes()).expect("a definition");
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0).domain
}

#[test]
fn what_libvirt_starts_is_read() {
    let domain = one(LIBVIRT_LOG);
    assert_eq!(
        (domain.form, domain.name.as_str(), domain.kind.as_str()),
        (DefinitionForm::Qemu, "web", "kvm")
    );
    assert_eq!(domain.machine.as_deref(), Some("pc-q35-7.2"));
    assert_eq!((domain.vcpus, domain.current_vcpus), (Some(16), Some(8)));
    assert_eq!(domain.memory_bytes, Some(32 << 30));
    assert_eq!(
        domain.memory_backing.hugepages.as_ref().map(Vec::len),
        Some(1)
    );
    assert_eq!(domain.cpu_mode.as_deref(), Some("host-passthrough"));
    assert_eq!(
        (
            domain.os,
            domain.hyperv_on("vpindex"),
            domain.hyperv_on("vapic")
        ),
        (GuestOs::Windows, None, Some(true))
    );
    let present = |name: &str| domain.timer(name).and_then(|timer| timer.present);
    assert_eq!(
        (present("hypervclock"), present("hpet")),
        (Some(true), Some(false))
    );
    assert_eq!(
        domain
            .timer("pit")
            .and_then(|timer| timer.tickpolicy.as_deref()),
        Some("delay")
    );
    assert_eq!(domain.iothreads, Some(1));
    let [block, scsi] = domain.disks.as_slice() else {
        panic!("{:?}", domain.disks);
    };
    assert_eq!(
        (
            block.bus.as_deref(),
            block.cache.as_deref(),
            block.io.as_deref()
        ),
        (Some("virtio"), Some("none"), Some("native"))
    );
    assert_eq!(
        (
            block.limits["total_iops_sec"],
            block.limits["read_bytes_sec"]
        ),
        (500, 1 << 20)
    );
    assert_eq!(
        (scsi.bus.as_deref(), scsi.source.as_deref(), scsi.controller),
        (Some("scsi"), Some("/b.qcow2"), Some(0))
    );
    let controller = domain
        .controllers
        .iter()
        .find(|one| one.kind == "scsi")
        .expect("a controller");
    assert_eq!(
        (controller.model.as_deref(), controller.iothread),
        (Some("virtio-scsi"), Some(1))
    );
    let card = &domain.interfaces[0];
    assert_eq!(
        (card.model.as_deref(), card.driver.as_deref(), card.queues),
        (Some("virtio"), Some("vhost"), Some(2))
    );
    assert_eq!(domain.inputs[0].controller, Some(1));
}

#[test]
fn what_people_start_by_hand_is_read() {
    let domain = one(
        "sudo taskset -c 4-7 qemu-system-x86_64 -enable-kvm -M pc -m 4G -smp cores=2,threads=2 -cpu \
         qemu64,+hv_relaxed,-kvmclock -no-hpet -rtc base=localtime -usb -usbdevice tablet -hda w.img -nic \
         user,model=rtl8139 -drive file=v,,w.img,if=virtio,cache=writethrough,iops=200 -device ich9-ahci,id=ahci \
         -drive file=x.img,if=none,id=d2 -device ide-hd,drive=d2,bus=ahci.0 -cdrom virtio-win.iso",
    );
    assert_eq!((domain.kind.as_str(), domain.vcpus), ("kvm", Some(4)));
    assert_eq!(
        domain
            .vcpu_cpuset
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("4-7")
    );
    assert_eq!(
        (domain.cpu_mode.as_deref(), domain.cpu_model.as_deref()),
        (Some("custom"), Some("qemu64"))
    );
    assert_eq!(
        (domain.os, domain.hyperv_on("relaxed")),
        (GuestOs::Windows, Some(true))
    );
    assert_eq!(
        domain.timer("kvmclock").and_then(|timer| timer.present),
        Some(false)
    );
    assert_eq!(domain.clock_offset.as_deref(), Some("localtime"));
    let buses: Vec<_> = domain
        .disks
        .iter()
        .map(|disk| disk.bus.as_deref().unwrap_or("?"))
        .collect();
    assert_eq!(buses, ["ide", "virtio", "sata"]);
    let disk = &domain.disks[1];
    assert_eq!(
        (disk.source.as_deref(), disk.cache.as_deref()),
        (Some("v,w.img"), Some("writethrough"))
    );
    assert_eq!(disk.limits["total_iops_sec"], 200);
    assert_eq!(domain.interfaces[0].model.as_deref(), Some("rtl8139"));
    assert_eq!(
        domain.controllers[0].model.as_deref(),
        Some("piix3-usb-uhci")
    );
}

#[test]
fn what_proxmox_makes_of_a_conf_is_read() {
    let conf = |more: &str| {
        one(&format!(
            "cores: 2\nmemory: 4096\nname: a\nsockets: 2\n{more}"
        ))
    };
    let windows = conf("ostype: win11\nbios: ovmf\nmachine: pc-q35-8.1\ncpu: x86-64-v2-AES\n");
    assert_eq!(
        (windows.form, windows.os, windows.vcpus),
        (DefinitionForm::Proxmox, GuestOs::Windows, Some(4))
    );
    for name in [
        "vpindex",
        "synic",
        "stimer",
        "relaxed",
        "vapic",
        "spinlocks",
        "ipi",
    ] {
        assert_eq!(windows.hyperv_on(name), Some(true), "{name}");
    }
    assert_eq!(windows.hyperv_on("tlbflush"), None);
    assert_eq!(windows.clock_offset.as_deref(), Some("localtime"));
    assert_eq!(
        windows.timer("hpet").and_then(|timer| timer.present),
        Some(false)
    );
    assert_eq!(windows.cpu_model.as_deref(), Some("x86-64-v2-AES"));
    // A machine of an old version has fewer, and Windows 7 with OVMF none.
    let old = conf("ostype: win10\nmachine: pc-i440fx-2.11\n");
    assert_eq!(
        (old.hyperv_on("vpindex"), old.hyperv_on("stimer")),
        (Some(true), None)
    );
    assert!(conf("ostype: win7\nbios: ovmf\n").hyperv.is_none());
    let linux = conf(
        "ostype: l26\nscsihw: virtio-scsi-single\nscsi0: a:1,iothread=1,size=8G\nscsi1: a:2,mbps=10.5\n\
         net0: virtio=52:54:00:4b:1a:07,bridge=vmbr0,queues=4\ntablet: 0\naffinity: 0-3,8\ncpulimit: 1.5\n\
         hugepages: 2\nnuma: 1\ncpu: host,flags=+hv-tlbflush;+aes\nide2: none,media=cdrom\n[snap]\nscsi2: a:3\n",
    );
    assert_eq!(linux.os, GuestOs::Linux);
    assert_eq!(
        linux
            .vcpu_cpuset
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("0-3,8")
    );
    assert_eq!(
        (
            linux.cputune["global_quota"],
            linux.cputune["global_period"]
        ),
        (150_000, 100_000)
    );
    assert_eq!(linux.cells.len(), 2);
    assert_eq!(
        linux
            .memory_backing
            .hugepages
            .as_ref()
            .and_then(|pages| pages[0].size_bytes),
        Some(2 << 20)
    );
    assert!(linux.inputs.is_empty());
    let scsi: Vec<_> = linux
        .disks
        .iter()
        .filter(|disk| disk.device == "disk")
        .collect();
    assert_eq!(
        (scsi.len(), scsi[0].iothread, scsi[1].iothread),
        (2, Some(1), None)
    );
    assert_eq!(scsi[1].limits["total_bytes_sec"], 11_010_048);
    assert_eq!(
        (
            linux.interfaces[0].model.as_deref(),
            linux.interfaces[0].queues
        ),
        (Some("virtio"), Some(4))
    );
}

#[test]
fn other_texts_are_read_as_xml_and_refused() {
    for text in [
        "",
        "name: a\nb: c\n",
        "cores 2\nmemory 3\n",
        "qemu is slow\n",
        "{\"domain\": 1}",
        "\0\0-",
    ] {
        let error = definitions(text.as_bytes()).expect_err(text);
        assert_ne!(error.kind, ErrorKind::NotEditable, "{text:?}: {error}");
    }
    let xml = definitions(b"\n <domain type='kvm'><name>kvm -m</name></domain>").expect("XML");
    assert_eq!(xml[0].domain.form, DefinitionForm::Libvirt);
}

#[test]
fn cuts_and_odd_bytes_do_no_harm() {
    let conf = "cores: 2\nmemory: 4096\nscsi0: a:1,iothread=1,mbps=1e300\ncpulimit: nan\nsockets: 99999999\nnet0: \
                \u{e9}\n";
    let odd = "kvm - -- -m -smp 0 -smp 4294967296 -m 9999999999999999999G -device ,,= -device {\"a\":[{}]} -cpu , \
               -drive id=a,file.file= -blockdev node-name=n,file=n -device virtio-blk-pci,drive=n -name \u{e9}";
    for text in [LIBVIRT_LOG, conf, odd] {
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let cut = text.get(..at).unwrap_or_default();
            let _ = definitions(cut.as_bytes());
            let _ = definitions(cut.replace(' ', "\0").as_bytes());
        }
    }
    // A chain of nodes that goes in a circle ends.
    assert_eq!(one(odd).disks.len(), 2);
}

/// What readers declare is so: each of their texts is one definition.
#[test]
fn every_fixture_of_a_form_is_read() {
    for form in domain::FORMS {
        assert!(!form.fixtures.is_empty(), "{}", form.printed_by);
        for file in form.fixtures {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = std::fs::read(path).expect(file);
            let found = definitions(&text).expect(file);
            assert_eq!(found.len(), 1, "{file}");
            assert!(!found[0].domain.name.is_empty(), "{file}");
        }
    }
}

/// Half of a definition, as pages and mails have it: what is whole is read, and it is known to be cut off.
#[test]
fn a_definition_that_is_cut_off_is_what_is_whole_of_it() {
    let text = include_str!("domains/cut.xml");
    let found = definitions(text.as_bytes()).expect("a definition");
    let (domain, notes) = (&found[0].domain, &found[0].notes);
    assert_eq!(domain.form, DefinitionForm::CutLibvirt);
    assert!(domain.is_part());
    assert_eq!((domain.os, domain.vcpus), (GuestOs::Windows, Some(8)));
    assert_eq!(domain.disks.len(), 1);
    let models: Vec<_> = domain.interfaces.iter().map(|one| &one.model).collect();
    assert_eq!(
        models,
        [&Some("e1000e".to_owned())],
        "the second is cut off"
    );
    let last = notes.last().expect("a note");
    assert_eq!(last.line, text.lines().count() - 2, "{last}");
    assert!(last.what.contains("before </domain>"), "{last}");
    // An element of one value is whole or not there.
    let inner = |text: &str| definitions(format!("<domain type='kvm'>{text}").as_bytes());
    let cut = one("<domain type='kvm'><name>a</name><memory unit='KiB'>16777");
    assert_eq!((cut.name.as_str(), cut.memory_bytes), ("a", None));
    let cut = one("<domain><name>a</name><features><acpi/><hyperv><relaxed state='on'/>");
    assert!(cut.hyperv.is_none() && cut.features.contains("acpi"));
    // A comment, and a tag, may be what is cut off.
    assert!(inner("<name>a</name><!-- <vcpu>2</vcpu>").is_ok());
    for broken in [
        "",
        "<name>a",
        "<vcpu>2",
        "<name>a</name><vcpu <memory/>",
        "<name>a</vcpu><memory>",
    ] {
        assert!(inner(broken).is_err(), "{broken}");
    }
    assert!(definitions(b"<network><name>a</name>").is_err());
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        let cut = text.get(..at).unwrap_or_default();
        if let Ok(found) = definitions(cut.as_bytes()) {
            assert!(found[0].domain.is_part() && found[0].domain.disks.len() < 2);
        }
    }
}

/// Where threads may run, as virsh lists it in its forms.
#[test]
fn lists_of_pins_are_parts_of_definitions() {
    let pins = |domain: &Domain| -> Vec<String> {
        let vcpus = domain.vcpu_pins.iter();
        vcpus
            .map(|(vcpu, cpus)| format!("{vcpu}: {cpus}"))
            .collect()
    };
    let domain = one(include_str!("domains/vcpuinfo.txt"));
    assert_eq!(
        (domain.form, domain.name.as_str()),
        (DefinitionForm::Virsh, "web")
    );
    assert_eq!(pins(&domain), ["0: 3", "1: 3", "2: 0-7"]);
    assert_eq!((domain.vcpus, domain.is_part()), (Some(3), true));
    let domain = one(include_str!("domains/vcpuinfo-pretty.txt"));
    assert_eq!(domain.name, "db-1");
    assert_eq!(pins(&domain), ["0: 0-3,8", "1: 4"]);
    let old = one(include_str!("domains/pins-libvirt-3.txt"));
    assert_eq!(pins(&old), ["0: 2", "1: 3", "2: 4-5"]);
    let domain = one(include_str!("domains/pins-libvirt-9.txt"));
    assert_eq!(pins(&domain), ["0: 2", "1: 3", "2: 0-15"]);
    for domain in [&old, &domain] {
        let emulator = domain.emulator_pin.as_ref().map(ToString::to_string);
        assert_eq!(emulator.as_deref(), Some("0-1"));
        assert_eq!(domain.iothread_pins[&2].to_string(), "0,7");
    }
    // Of one vCPU nobody knows how many there are.
    assert_eq!(one("VCPU: 3\nCPU: 1\nCPU Affinity: -y\n").vcpus, None);
    for other in [
        "VCPU: 0\nCPU: 3\n",
        "VCPU: 0\nCPU Affinity: yx\n",
        "VCPU: 0\nCPU Affinity: 0-3:2\n",
        "VCPU: 0\nCPU Affinity: y\nVCPU: 0\nCPU Affinity: -y\n",
        "VCPU: 0\nCPU Affinity: y\nname: a\n",
        " VCPU   CPU Affinity\n----\n 0  any\n",
        " VCPU   CPU Affinity\n VCPU   CPU Affinity\n 0 1\n",
        "$ virsh vcpuinfo a\n$ virsh vcpuinfo a\n",
    ] {
        let pins = definitions(other.as_bytes()).is_ok_and(|found| found[0].domain.is_part());
        assert!(!pins, "{other}");
    }
}
