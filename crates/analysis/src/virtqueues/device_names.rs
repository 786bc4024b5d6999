//! What names of interfaces, interrupts and events say of virtio devices.

use event::Isa;

/// What the names of a host's interfaces begin with whose other end is a VM's.
const TAPS: [&str; 4] = ["tap", "vnet", "macvtap", "fwtap"];

/// Returns the instruction set whose KVM alone has an event, of which devices are named; which of x86's it is they do
/// not depend on.
pub(super) fn isa_of(event: &str) -> Option<Isa> {
    match event {
        "kvm_pio" | "kvm_fast_mmio" | "kvm_msr" | "kvm_apic_accept_irq" => Some(Isa::Vmx),
        "kvm_wfx_arm64" | "kvm_guest_fault" | "vgic_update_irq_pending" | "kvm_sys_access" => {
            Some(Isa::Arm64)
        }
        _ => None,
    }
}

/// Returns whether an interface is a host's whose other end is a VM's, by its name.
pub(super) fn is_tap(interface: &str) -> bool {
    TAPS.iter().any(|tap| {
        let rest = interface.strip_prefix(tap);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Returns device and queue of an interrupt's handler: `virtio0-input.0`, or `virtio0` of a device with one interrupt
/// (`drivers/virtio/virtio_pci_common.c`, `virtio_mmio.c`). Interrupts for its configuration are of no queue.
pub(super) fn of_handler(name: &str) -> Option<(String, Option<String>)> {
    let rest = name.strip_prefix("virtio")?;
    let (number, queue) = rest
        .split_once('-')
        .map_or((rest, None), |(number, queue)| (number, Some(queue)));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let counts = is_number && queue != Some("config");
    counts.then(|| (format!("virtio{number}"), queue.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_named_by_device_and_queue() {
        let named = |name: &str| {
            of_handler(name).map(|(device, queue)| (device, queue.unwrap_or_default()))
        };
        let is = |device: &str, queue: &str| Some((device.to_owned(), queue.to_owned()));
        assert_eq!(named("virtio0-input.0"), is("virtio0", "input.0"));
        assert_eq!(named("virtio12"), is("virtio12", ""));
        assert_eq!(named("virtio1-virtqueues"), is("virtio1", "virtqueues"));
        for other in ["virtio0-config", "virtio", "virtio-x", "eth0", "virtio0x"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn taps_are_known_by_their_names() {
        for (name, tap) in [
            ("tap0", true),
            ("vnet12", true),
            ("macvtap3", true),
            ("tape", false),
            ("eth0", false),
            ("tap", false),
        ] {
            assert_eq!(is_tap(name), tap, "{name}");
        }
    }
}
