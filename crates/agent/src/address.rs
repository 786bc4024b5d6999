//! Where an agent listens, and where a host finds it.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Where an agent listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// A port of the guest's vsock device, which its host can reach.
    Vsock(u32),
    /// An address and a port.
    Tcp(SocketAddr),
}

/// Where a host finds an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAddress {
    /// A guest's CID, and a port of it.
    Vsock {
        /// The number by which the host calls the guest (`guest-cid` of QEMU's vhost-vsock device).
        cid: u32,
        /// The port.
        port: u32,
    },
    /// A name or an address, and a port.
    Tcp {
        /// The name or the address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        let bad = "expected vsock:PORT, such as vsock:9999, or tcp:ADDRESS:PORT, such as tcp:192.0.2.7:9999";
        match text.split_once(':') {
            Some(("vsock", port)) => {
                let port = port.parse().map_err(|_| bad.to_owned())?;
                Ok(Listen::Vsock(port))
            }
            Some(("tcp", rest)) => match rest.parse() {
                Ok(address) => Ok(Listen::Tcp(address)),
                Err(_) if rest.starts_with(':') || rest.parse::<u16>().is_ok() => Err(
                    "TCP takes the address to listen on: expected tcp:ADDRESS:PORT, such as tcp:192.0.2.7:9999"
                        .to_owned(),
                ),
                Err(_) => Err(bad.to_owned()),
            },
            _ => Err(bad.to_owned()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Vsock(port) => write!(f, "vsock:{port}"),
            Listen::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl FromStr for AgentAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<AgentAddress, String> {
        let bad = || {
            "expected vsock:CID:PORT, such as vsock:3:9999, or tcp:HOST:PORT, such as tcp:192.0.2.7:9999".to_owned()
        };
        let (kind, rest) = text.split_once(':').ok_or_else(bad)?;
        let (host, port) = rest.rsplit_once(':').ok_or_else(bad)?;
        match kind {
            "vsock" => Ok(AgentAddress::Vsock {
                cid: host.parse().map_err(|_| bad())?,
                port: port.parse().map_err(|_| bad())?,
            }),
            "tcp" => {
                // An address of IPv6 stands in brackets, as in URLs.
                let bare = host
                    .strip_prefix('[')
                    .and_then(|host| host.strip_suffix(']'));
                let host = bare.unwrap_or(host);
                if host.is_empty() || (bare.is_none() && host.contains(':')) {
                    return Err(bad());
                }
                Ok(AgentAddress::Tcp {
                    host: host.to_owned(),
                    port: port.parse().map_err(|_| bad())?,
                })
            }
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentAddress::Vsock { cid, port } => write!(f, "vsock:{cid}:{port}"),
            AgentAddress::Tcp { host, port } if host.contains(':') => {
                write!(f, "tcp:[{host}]:{port}")
            }
            AgentAddress::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_an_agent_listens_is_named_in_full() {
        assert_eq!("vsock:9999".parse(), Ok(Listen::Vsock(9999)));
        for good in ["vsock:9999", "tcp:127.0.0.1:80", "tcp:[::1]:80"] {
            let read: Listen = good.parse().expect(good);
            assert_eq!(read.to_string(), good);
        }
        for bad in [
            "",
            "vsock",
            "vsock:",
            "vsock:x",
            "vsock:-1",
            "tcp:example.org:9999",
            "udp:1:1",
        ] {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
        for no_address in ["tcp:9999", "tcp::9999"] {
            let error = no_address.parse::<Listen>().unwrap_err();
            assert!(error.contains("the address to listen on"), "{error}");
        }
    }

    #[test]
    fn an_agent_is_found_by_cid_address_or_name() {
        for good in [
            "vsock:3:9999",
            "tcp:guest-a:80",
            "tcp:10.0.0.2:80",
            "tcp:[fe80::1]:80",
        ] {
            let read: AgentAddress = good.parse().expect(good);
            assert_eq!(read.to_string(), good);
        }
        for bad in [
            "vsock:9999",
            "vsock:x:1",
            "tcp:9999",
            "tcp::1",
            "tcp:fe80::1:80",
            "tcp:a:99999",
            "",
        ] {
            assert!(bad.parse::<AgentAddress>().is_err(), "{bad}");
        }
    }
}
