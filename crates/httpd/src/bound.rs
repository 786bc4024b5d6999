//! Sockets that connections come by.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with, listen};

use crate::socket_file::{self, SocketFile};

/// Connections that wait to be accepted, at most: as many as the kernel allows (net.core.somaxconn).
const WAITING: i32 = 4096;

/// A socket that is bound to an address, and that connections come by.
#[derive(Debug)]
pub struct BoundSocket {
    socket: OwnedFd,
    /// Removed with it.
    _file: Option<SocketFile>,
}

/// Whose a connection is, as far as that is known: those of one peer are not to take the places of others'. Of IPv6
/// the first 64 bits, since whoever has one address has all of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpPeer {
    /// Of IPv4.
    V4([u8; 4]),
    /// Of IPv6.
    V6([u16; 4]),
    /// A process of this machine.
    Local,
}

/// What came of waiting for a connection.
#[derive(Debug)]
pub(crate) enum AcceptOutcome {
    /// One, which never waits, and whose it is.
    Connection(OwnedFd, HttpPeer),
    /// None is there.
    None,
    /// There are too few file descriptors, or too little memory: there may be more later.
    Exhausted,
}

impl BoundSocket {
    /// Binds an address and a port.
    ///
    /// # Errors
    ///
    /// Those of bind(2) and listen(2).
    pub fn tcp(address: SocketAddr) -> io::Result<BoundSocket> {
        let bound = BoundSocket::of(TcpListener::bind(address)?.into())?;
        // Who finds the queue full tries again a second later.
        listen(&bound.socket, WAITING)?;
        Ok(bound)
    }

    /// Takes a socket over that listens already.
    ///
    /// # Errors
    ///
    /// Where it cannot be used without waiting.
    pub fn of(socket: OwnedFd) -> io::Result<BoundSocket> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(BoundSocket {
            socket,
            _file: None,
        })
    }

    /// Makes a socket in the file system that its user and its group may connect to (mode 0660). One that nobody
    /// listens at any more is replaced. It is removed with the value.
    ///
    /// # Errors
    ///
    /// Those of bind(2) and listen(2): also where somebody listens there, or the file is no socket.
    pub fn unix(path: &Path) -> io::Result<BoundSocket> {
        let (socket, file) = socket_file::bind(path)?;
        let bound = BoundSocket::of(socket)?;
        Ok(BoundSocket {
            _file: Some(file),
            ..bound
        })
    }

    /// Accepts a connection, if there is one.
    ///
    /// # Errors
    ///
    /// Where no connection will ever come by this socket.
    pub(crate) fn accept(&self) -> io::Result<AcceptOutcome> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match acceptfrom_with(&self.socket, flags) {
            Ok((connection, address)) => {
                let address = address.and_then(|address| SocketAddr::try_from(address).ok());
                Ok(AcceptOutcome::Connection(connection, peer(address)))
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                Ok(AcceptOutcome::Exhausted)
            }
            Err(error @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP)) => {
                Err(error.into())
            }
            // What went wrong with the connection is reported here as well (accept(2)).
            Err(_) => Ok(AcceptOutcome::None),
        }
    }
}

impl AsFd for BoundSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn peer(address: Option<SocketAddr>) -> HttpPeer {
    match address.map(|address| address.ip().to_canonical()) {
        Some(IpAddr::V4(address)) => HttpPeer::V4(address.octets()),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            HttpPeer::V6([a, b, c, d])
        }
        None => HttpPeer::Local,
    }
}
