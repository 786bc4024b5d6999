//! What the readers of definitions declare.

use forms::InputForm;

/// The forms of definitions that are read.
pub const FORMS: &[InputForm] = &[
    InputForm {
        printed_by: "virsh dumpxml",
        recognised_by: "an element `<domain>`, also with HTML's entities or cut off before `</domain>`",
        yields: "the guest's definition: remarks, changes as a patch; of one that is cut off remarks on what is there",
        fixtures: &[
            "tests/domains/windows.xml",
            "tests/domains/arm64.xml",
            "tests/domains/cut.xml",
        ],
    },
    InputForm {
        printed_by: "ps, /proc/PID/cmdline",
        recognised_by: "a command line of QEMU with at least two of its options",
        yields: "the guest's definition: remarks",
        fixtures: &["tests/domains/qemu.txt"],
    },
    InputForm {
        printed_by: "virsh vcpuinfo, vcpupin, emulatorpin, iothreadinfo",
        recognised_by: "blocks of `VCPU:`, `CPU:`, `CPU Affinity:`; lists below a heading that ends with `CPU \
            Affinity`",
        yields: "on which CPUs the guest's threads may run: remarks; beside the guest's definition what that does not \
            say of it",
        fixtures: &[
            "tests/domains/vcpuinfo.txt",
            "tests/domains/vcpuinfo-pretty.txt",
            "tests/domains/pins-libvirt-3.txt",
            "tests/domains/pins-libvirt-9.txt",
        ],
    },
    InputForm {
        printed_by: "Proxmox VE (qm config)",
        recognised_by: "lines of `key: value` as a VM's `.conf` has them, in a file of their own",
        yields: "the guest's definition: remarks",
        fixtures: &["tests/domains/proxmox.conf"],
    },
];
