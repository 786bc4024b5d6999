//! What runs in a domain: by libosinfo's id, else by what only definitions of Windows guests have. Nobody else
//! decides it.

use crate::data::{Domain, GuestOs};

/// The namespace of libosinfo's element under `<metadata>`.
pub(crate) const LIBOSINFO: &str = "http://libosinfo.org/xmlns/libvirt/domain/1.0";

/// Hosts of ids whose systems are all of the family `linux` in osinfo-db (20221130).
const LINUX: &[&str] = &[
    "almalinux.org",
    "alpinelinux.org",
    "altlinux.org",
    "android-x86.org",
    "archlinux.org",
    "asianux.com",
    "cclinux.org",
    "centos.org",
    "cirros-cloud.net",
    "clearlinux.org",
    "debian.org",
    "elementary.io",
    "endlessos.com",
    "fedoraproject.org",
    "freenix.net",
    "gentoo.org",
    "gnome.org",
    "hyperbola.info",
    "mageia.org",
    "mandriva.com",
    "manjaro.org",
    "miraclelinux.com",
    "nixos.org",
    "opensuse.org",
    "pureos.net",
    "redhat.com",
    "rockylinux.org",
    "scientificlinux.org",
    "slackware.com",
    "suse.com",
    "system76.com",
    "trisquel.info",
    "ubuntu.com",
    "univention.de",
    "voidlinux.org",
];

/// Hosts of ids whose systems are all of other families there; and FreeDOS, which stands under `linux` there.
const OTHER: &[&str] = &[
    "apple.com",
    "dragonflybsd.org",
    "freebsd.org",
    "freedos.org",
    "haiku-os.org",
    "netbsd.org",
    "novell.com",
    "openbsd.org",
    "sun.com",
];

/// Returns what an id says, as in `http://microsoft.com/win/10`.
pub(crate) fn guest_os(id: &str) -> GuestOs {
    let id = id.trim();
    let id = id
        .strip_prefix("http://")
        .or_else(|| id.strip_prefix("https://"))
        .unwrap_or(id);
    let (host, path) = id.split_once('/').unwrap_or((id, ""));
    let product = path.split('/').next().unwrap_or_default();
    match (host, product) {
        ("microsoft.com", "msdos") => GuestOs::Other,
        ("microsoft.com", _) => GuestOs::Windows,
        ("oracle.com", "solaris") => GuestOs::Other,
        ("guix.gnu.org", _) if path.contains("hurd") => GuestOs::Other,
        ("oracle.com", "ol" | "oel") | ("guix.gnu.org", _) | ("libosinfo.org", "linux") => {
            GuestOs::Linux
        }
        _ if LINUX.contains(&host) => GuestOs::Linux,
        _ if OTHER.contains(&host) => GuestOs::Other,
        _ => GuestOs::Unknown,
    }
}

/// Names of files with the drivers that Windows has to be given: Fedora's `virtio-win.iso`.
const DRIVERS: &str = "virtio-win";

/// Says what runs in a domain, and what it is known by.
///
/// libosinfo's id decides where it is one that is known. Else Windows is known by what is made for it alone: KVM's
/// Hyper-V enlightenments and their clock (QEMU, `docs/system/i386/hyperv.rst`), a disc with its virtio drivers. That
/// its clock has the local time is a habit of Windows (libvirt, `docs/formatdomain.rst`), and of a few others: it
/// counts only beside a disk and a network card that Windows has drivers of its own for.
pub(crate) fn recognize(domain: &mut Domain) {
    if let Some(id) = &domain.os_id {
        domain.os = guest_os(id);
        if domain.os != GuestOs::Unknown {
            domain.os_signs.push("libosinfo's id");
            return;
        }
    }
    let signs = windows_signs(domain);
    if !signs.is_empty() {
        domain.os = GuestOs::Windows;
        domain.os_signs = signs;
    }
}

fn windows_signs(domain: &Domain) -> Vec<&'static str> {
    let mut signs = Vec::new();
    let hyperv = domain.hyperv.as_ref();
    if hyperv.is_some_and(|one| {
        one.mode.as_deref() == Some("passthrough") || one.features.values().any(|on| *on)
    }) {
        signs.push("Hyper-V's enlightenments");
    }
    // Whoever takes it away had it in mind.
    if domain.timer("hypervclock").is_some() {
        signs.push("hypervclock");
    }
    let drivers = |source: &String| {
        let file = source.rsplit(['/', ':']).next().unwrap_or_default();
        file.to_ascii_lowercase().starts_with(DRIVERS)
    };
    if domain
        .disks
        .iter()
        .any(|disk| disk.source.as_ref().is_some_and(drivers))
    {
        signs.push("a disc with virtio's drivers for Windows");
    }
    let local = domain.clock_offset.as_deref() == Some("localtime");
    if local && (!signs.is_empty() || has_only_devices_of_windows(domain)) {
        signs.push("a clock of local time");
    }
    signs
}

/// Whether the devices are such as Windows has drivers for without being given any: SATA or IDE, and a network card
/// of Intel's or Realtek's.
fn has_only_devices_of_windows(domain: &Domain) -> bool {
    let mut disks = domain
        .disks
        .iter()
        .filter(|disk| disk.device == "disk")
        .peekable();
    let mut cards = domain.interfaces.iter().peekable();
    let known = |card: &str| card.starts_with("e1000") || card == "rtl8139";
    disks.peek().is_some()
        && cards.peek().is_some()
        && disks.all(|disk| matches!(disk.bus.as_deref(), Some("sata" | "ide")))
        && cards.all(|card| card.model.as_deref().is_some_and(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_is_known_by_what_is_made_for_it() {
        for (inner, os, signs) in [
            (
                "<features><hyperv><relaxed state='on'/></hyperv></features>",
                GuestOs::Windows,
                1,
            ),
            (
                "<features><hyperv mode='passthrough'/></features>",
                GuestOs::Windows,
                1,
            ),
            (
                "<features><hyperv><relaxed state='off'/></hyperv></features>",
                GuestOs::Unknown,
                0,
            ),
            (
                "<clock offset='localtime'><timer name='hypervclock' present='yes'/></clock>",
                GuestOs::Windows,
                2,
            ),
            ("<clock offset='localtime'/>", GuestOs::Unknown, 0),
            (
                "<clock offset='localtime'/><devices><disk device='disk'><target dev='sda' bus='sata'/></disk>\
                 <interface type='network'><model type='e1000e'/></interface></devices>",
                GuestOs::Windows,
                1,
            ),
            (
                "<clock offset='localtime'/><devices><disk device='disk'><target dev='vda' bus='virtio'/></disk>\
                 <interface type='network'><model type='e1000e'/></interface></devices>",
                GuestOs::Unknown,
                0,
            ),
            (
                "<devices><disk type='file' device='cdrom'><source \
                 file='/iso/virtio-win-0.1.240.iso'/></disk></devices>",
                GuestOs::Windows,
                1,
            ),
            (
                // An id that is known goes before all signs.
                "<metadata><l:libosinfo xmlns:l='http://libosinfo.org/xmlns/libvirt/domain/1.0'>\
                 <l:os id='http://ubuntu.com/ubuntu/22.04'/></l:libosinfo></metadata>\
                 <features><hyperv><relaxed state='on'/></hyperv></features>",
                GuestOs::Linux,
                1,
            ),
        ] {
            let text = format!("<domain type='kvm'><name>a</name>{inner}</domain>");
            let (domain, _) = crate::parse(&text).unwrap();
            assert_eq!((domain.os, domain.os_signs.len()), (os, signs), "{inner}");
        }
    }

    #[test]
    fn ids_say_what_runs() {
        for (id, os) in [
            ("http://microsoft.com/win/10", GuestOs::Windows),
            ("http://microsoft.com/win/2k22", GuestOs::Windows),
            ("http://microsoft.com/msdos/6.22", GuestOs::Other),
            ("http://ubuntu.com/ubuntu/22.04", GuestOs::Linux),
            ("http://libosinfo.org/linux/2022", GuestOs::Linux),
            ("http://libosinfo.org/unknown", GuestOs::Unknown),
            ("http://oracle.com/ol/9.1", GuestOs::Linux),
            ("http://oracle.com/oel/5.3", GuestOs::Linux),
            ("http://oracle.com/solaris/11", GuestOs::Other),
            ("http://guix.gnu.org/guix/1.3", GuestOs::Linux),
            ("http://guix.gnu.org/guix/hurd-latest", GuestOs::Other),
            ("http://freebsd.org/freebsd/13.1", GuestOs::Other),
            ("https://example.org/x", GuestOs::Unknown),
            ("", GuestOs::Unknown),
        ] {
            assert_eq!(guest_os(id), os, "{id}");
        }
    }
}
