//! What the command line of a virtual machine monitor says of its VM.
//!
//! QEMU: `-name [guest=]NAME[,debug-threads=on,…]` and `-uuid` (`qemu-options.hx`; one or two dashes, a comma
//! in a value is doubled). Firecracker: `--id`. crosvm: `run --name`. kvmtool: `lkvm run --name`, `-n`. Cloud
//! Hypervisor has no name on its command line, but `--platform uuid=`. `ps` prints arguments with blanks
//! between them and no quotes, so a name with a blank in it ends there.

use crate::ReportedVm;
use crate::keep::name;

/// Longest command line that is looked at, in words; libvirt's have some hundred.
const MAX_WORDS: usize = 4096;

/// A VMM's process, as its command line shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VmmCommand<'t> {
    /// The program, without its folder.
    pub(crate) program: &'t str,
    /// The VM; its process and vCPUs are not in here.
    pub(crate) vm: ReportedVm,
}

/// Returns the VM that a VMM's command line defines, and how many values of its command line were masked; none if it
/// is not a VMM's. The VM's process and vCPUs are not in a command line.
pub fn vm_of_args(args: &[String]) -> Option<(ReportedVm, u64)> {
    let mut vm = of_words(args.iter().map(String::as_str))?.vm;
    let kept = args.get(..MAX_WORDS).unwrap_or(args);
    let (args, masked) = mask::args(kept);
    vm.name = vm.name.and_then(|text| name(&text));
    vm.uuid = vm.uuid.and_then(|text| name(&text));
    vm.emulator = args.first().cloned();
    vm.args = args;
    Some((vm, masked))
}

/// Reads a command line as `ps` prints it; none if it is not a VMM's.
pub(crate) fn read(args: &str) -> Option<VmmCommand<'_>> {
    of_words(args.split_ascii_whitespace())
}

fn of_words<'t>(words: impl Iterator<Item = &'t str>) -> Option<VmmCommand<'t>> {
    let mut words = words.take(MAX_WORDS);
    let program = words.next()?.rsplit('/').next()?;
    let mut vm = ReportedVm::default();
    let mut set = |field: fn(&mut ReportedVm) -> &mut Option<String>, value: Option<String>| {
        let slot = field(&mut vm);
        if slot.is_none() {
            *slot = value;
        }
    };
    let qemu =
        program.starts_with("qemu-system-") || matches!(program, "qemu-kvm" | "qemu" | "kvm");
    let (name_options, comma_list): (&[&str], bool) = if qemu {
        (&["-name", "--name"], true)
    } else if program.starts_with("firecracker") {
        (&["--id"], false)
    } else if program == "crosvm" {
        (&["--name"], false)
    } else if program.starts_with("lkvm") || program == "kvmtool" {
        (&["--name", "-n"], false)
    } else if program == "cloud-hypervisor" {
        (&[], false)
    } else {
        return None;
    };
    while let Some(word) = words.next() {
        let (option, inline) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value)),
            _ => (word, None),
        };
        let wanted_name = name_options.contains(&option);
        let wanted_uuid = qemu && matches!(option, "-uuid" | "--uuid");
        let platform = program == "cloud-hypervisor" && option == "--platform";
        if !(wanted_name || wanted_uuid || platform) {
            continue;
        }
        let Some(value) = inline.or_else(|| words.next()) else {
            break;
        };
        if wanted_name && comma_list {
            set(|vm| &mut vm.name, guest_of_list(value));
        } else if wanted_name {
            set(|vm| &mut vm.name, Some(value.to_owned()));
        } else if wanted_uuid {
            set(|vm| &mut vm.uuid, Some(value.to_owned()));
        } else {
            let uuid = value.split(',').find_map(|p| p.strip_prefix("uuid="));
            set(|vm| &mut vm.uuid, uuid.map(str::to_owned));
        }
    }
    Some(VmmCommand { program, vm })
}

/// The guest's name in QEMU's list of properties: `guest=NAME`, or what stands first without a key.
fn guest_of_list(list: &str) -> Option<String> {
    // A doubled comma is one of the value's own; no value holds a control character.
    let list = list.replace(",,", "\u{1}");
    let parts = || list.split(',');
    let guest = parts().find_map(|part| part.strip_prefix("guest="));
    let first = || parts().next().filter(|part| !part.contains('='));
    let name = guest.or_else(first)?;
    Some(name.replace('\u{1}', ","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_line_may_have_blanks_in_them() {
        let words =
            |list: &[&str]| -> Vec<String> { list.iter().map(|w| (*w).to_owned()).collect() };
        let list = [
            "/usr/bin/qemu-system-x86_64",
            "-name",
            "guest=my web,debug-threads=on",
            "-vnc",
            ":0,password=x",
        ];
        let (vm, masked) = vm_of_args(&words(&list)).unwrap();
        assert_eq!((vm.name.as_deref(), masked), (Some("my web"), 1));
        assert_eq!(vm.emulator.as_deref(), Some(list[0]));
        assert_eq!((vm.args.len(), vm.args[4].as_str()), (5, ":0,password=***"));
        for list in [&[][..], &[""], &["bash", "qemu-kvm"], &["(sd-pam)"]] {
            assert_eq!(vm_of_args(&words(list)), None, "{list:?}");
        }
    }

    #[test]
    fn names_are_where_each_vmm_takes_them() {
        for (args, name, uuid) in [
            (
                "qemu-system-x86_64 -enable-kvm -name a,debug-threads=on -smp 2",
                Some("a"),
                None,
            ),
            (
                "/usr/bin/qemu-system-aarch64 -name guest=vm1,debug-threads=on",
                Some("vm1"),
                None,
            ),
            (
                "/usr/libexec/qemu-kvm -name debug-threads=on,guest=db -uuid 5f-1",
                Some("db"),
                Some("5f-1"),
            ),
            ("qemu-system-x86_64 --name=x -m 1G", Some("x"), None),
            (
                "qemu-system-x86_64 -name guest=a,,b,debug-threads=on",
                Some("a,b"),
                None,
            ),
            ("qemu-system-x86_64 -m 1G", None, None),
            ("qemu-system-x86_64 -name", None, None),
            (
                "/firecracker --id 551e7604 --api-sock /run/a",
                Some("551e7604"),
                None,
            ),
            (
                "./firecracker-v1.7.0-x86_64 --id=f1 --no-api",
                Some("f1"),
                None,
            ),
            (
                "crosvm run --cpus 2 --name arcvm vmlinux",
                Some("arcvm"),
                None,
            ),
            ("lkvm run -k bzImage --name box", Some("box"), None),
            (
                "cloud-hypervisor --platform num_pci_segments=1,uuid=12-34 --cpus boot=2",
                None,
                Some("12-34"),
            ),
        ] {
            let found = read(args).unwrap_or_else(|| panic!("{args}"));
            assert_eq!(found.vm.name.as_deref(), name, "{args}");
            assert_eq!(found.vm.uuid.as_deref(), uuid, "{args}");
        }
        for args in [
            "",
            "grep qemu-system-x86_64 -name a",
            "bash -name a",
            "vim qemu-kvm",
        ] {
            assert_eq!(read(args), None, "{args}");
        }
    }
}
