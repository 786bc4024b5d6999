//! Where the exporter listens.

use std::env;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use httpd::BoundSocket;
use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// The first file descriptor that systemd hands over (`SD_LISTEN_FDS_START`, sd_listen_fds(3)).
const FIRST: i32 = 3;
/// Sockets that are taken from systemd at most.
const MOST: i32 = 16;

/// Where the exporter listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExporterAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
    /// Sockets that systemd has bound.
    Systemd,
}

impl FromStr for ExporterAddress {
    type Err = String;

    /// Reads an address; a port alone is this machine's own.
    fn from_str(text: &str) -> Result<ExporterAddress, String> {
        if text == "systemd" {
            return Ok(ExporterAddress::Systemd);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(ExporterAddress::Unix(path.into())),
                false => Err("expected the whole path, such as unix:/run/trapline.sock".to_owned()),
            };
        }
        let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
        let own = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let address = own.or_else(|_| text.parse()).map_err(|_| {
            "expected a port, an address and a port such as 127.0.0.1:9435, unix:/PATH, or systemd".to_owned()
        });
        address.map(ExporterAddress::Tcp)
    }
}

impl fmt::Display for ExporterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExporterAddress::Tcp(address) => address.fmt(f),
            ExporterAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ExporterAddress::Systemd => f.write_str("systemd"),
        }
    }
}

impl ExporterAddress {
    /// Binds it, or takes over what is bound.
    pub(super) fn bind(&self) -> Result<Vec<BoundSocket>> {
        let bound = match self {
            ExporterAddress::Tcp(address) => BoundSocket::tcp(*address),
            ExporterAddress::Unix(path) => BoundSocket::unix(path),
            ExporterAddress::Systemd => return of_systemd(),
        };
        let bound = bound.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => anyhow!("{self}: another process listens there"),
            _ => anyhow!("{self}: {}", words::io_reason(&error)),
        })?;
        Ok(vec![bound])
    }
}

/// Returns the sockets that systemd hands over, as sd_listen_fds(3) documents it.
fn of_systemd() -> Result<Vec<BoundSocket>> {
    let count = handed_over(
        env::var("LISTEN_PID").ok().as_deref(),
        env::var("LISTEN_FDS").ok().as_deref(),
        process::id(),
    )
    .map_err(|why| anyhow!("systemd: {why}"))?;
    // The number of a file is no file that may be used; asking the kernel for it is what makes one of it.
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut sockets = Vec::new();
    for number in FIRST..FIRST + count {
        let socket = pidfd_getfd(&own, number, PidfdGetfdFlags::empty());
        let socket =
            socket.map_err(|error| anyhow!("systemd: file descriptor {number}: {error}"))?;
        let listens = socket_type(&socket) == Ok(SocketType::STREAM)
            && socket_acceptconn(&socket) == Ok(true);
        if !listens {
            bail!(
                "systemd: file descriptor {number} is no socket that connections come by: expected ListenStream= and \
                 Accept=no in the .socket unit"
            );
        }
        sockets.push(BoundSocket::of(socket)?);
    }
    Ok(sockets)
}

/// Returns how many files the environment says are handed over to this process.
fn handed_over(
    listen_pid: Option<&str>,
    listen_fds: Option<&str>,
    own: u32,
) -> Result<i32, String> {
    let advice = "start this by a .socket unit (packaging/systemd/trapline-exporter.socket)";
    let (Some(pid), Some(count)) = (listen_pid, listen_fds) else {
        return Err(format!("LISTEN_PID and LISTEN_FDS are not set: {advice}"));
    };
    if pid.parse() != Ok(own) {
        return Err(format!("LISTEN_PID is another process: {advice}"));
    }
    match count.parse() {
        Ok(count @ 1..=MOST) => Ok(count),
        _ => Err(format!(
            "LISTEN_FDS is '{count}': expected 1 to {MOST} sockets"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_this_machines_own() {
        let read = |text: &str| text.parse().map(|at: ExporterAddress| at.to_string());
        for (text, address) in [
            ("9435", "127.0.0.1:9435"),
            (":9435", "127.0.0.1:9435"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:1", "[::1]:1"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("systemd", "systemd"),
        ] {
            assert_eq!(read(text), Ok(address.to_owned()));
        }
        for bad in [
            "somewhere",
            "99999",
            "unix:",
            "unix:x.sock",
            "systemd:1",
            "",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sockets_are_taken_from_systemd_alone() {
        assert_eq!(handed_over(Some("7"), Some("2"), 7), Ok(2));
        for (pid, fds) in [
            (None, None),
            (Some("7"), None),
            (None, Some("1")),
            (Some("8"), Some("1")),
            (Some("7"), Some("0")),
            (Some("7"), Some("-1")),
            (Some("7"), Some("17")),
            (Some("7"), Some("x")),
        ] {
            assert!(handed_over(pid, fds, 7).is_err(), "{pid:?} {fds:?}");
        }
    }
}
