//! What runs in a domain, by libosinfo's id.

use crate::data::GuestOs;

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

#[cfg(test)]
mod tests {
    use super::*;

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
