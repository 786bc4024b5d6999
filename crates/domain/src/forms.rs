//! What the readers of definitions declare.

use forms::InputForm;

/// The forms of definitions that are read.
pub const FORMS: &[InputForm] = &[
    InputForm {
        printed_by: "virsh dumpxml",
        recognised_by: "an element `<domain>`, also with HTML's entities",
        yields: "the guest's definition: remarks, changes as a patch",
        fixtures: &["tests/domains/windows.xml", "tests/domains/arm64.xml"],
    },
    InputForm {
        printed_by: "ps, /proc/PID/cmdline",
        recognised_by: "a command line of QEMU with at least two of its options",
        yields: "the guest's definition: remarks",
        fixtures: &["tests/domains/qemu.txt"],
    },
    InputForm {
        printed_by: "Proxmox VE (qm config)",
        recognised_by: "lines of `key: value` as a VM's `.conf` has them, in a file of their own",
        yields: "the guest's definition: remarks",
        fixtures: &["tests/domains/proxmox.conf"],
    },
];
