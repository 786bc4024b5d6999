//! Sockets, with a time by which everything has to be done.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vsock::{VMADDR_CID_ANY, VsockListener, VsockStream};

use crate::address::{AgentAddress, Listen};
use crate::error::AgentError;

/// A connection.
#[derive(Debug)]
pub enum Link {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over vsock.
    Vsock(VsockStream),
}

/// What waits for connections.
#[derive(Debug)]
pub enum Listener {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over vsock.
    Vsock(VsockListener),
}

/// The shortest time that a socket waits: none at all would be no limit.
const SHORTEST: Duration = Duration::from_millis(1);

/// Waits until a file has something to read, at most for a time.
fn readable(file: BorrowedFd<'_>, at_most: Duration) -> io::Result<bool> {
    let time = Timespec::try_from(at_most).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut files = [PollFd::from_borrowed_fd(file, PollFlags::IN)];
    match poll(&mut files, Some(&time)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Link {
    /// Connects to an agent, within a time for each address that a name has.
    ///
    /// # Errors
    ///
    /// Those of connect(2), and where there is no host of that name.
    pub fn connect(peer: &AgentAddress, within: Duration) -> io::Result<Link> {
        match peer {
            // The kernel gives up after two seconds itself.
            AgentAddress::Vsock { cid, port } => {
                VsockStream::connect_with_cid_port(*cid, *port).map(Link::Vsock)
            }
            AgentAddress::Tcp { host, port } => {
                let mut last = io::ErrorKind::AddrNotAvailable.into();
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, within) {
                        Ok(stream) => return Link::tcp(stream),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn tcp(stream: TcpStream) -> io::Result<Link> {
        // Messages that clocks are compared by are not to wait for more.
        stream.set_nodelay(true)?;
        Ok(Link::Tcp(stream))
    }

    /// Waits until the other side has sent something, or is gone, at most for a time.
    ///
    /// # Errors
    ///
    /// Those of poll(2), but for an interrupting signal, which ends the wait.
    pub fn has_something(&self, at_most: Duration) -> io::Result<bool> {
        readable(self.as_fd(), at_most)
    }

    /// Reads as many bytes as there is room for, all of which have to be there in time.
    pub(crate) fn read(&mut self, mut room: &mut [u8], by: Instant) -> Result<(), AgentError> {
        while !room.is_empty() {
            let left = left(by)?;
            let read = match self {
                Link::Tcp(stream) => {
                    stream.set_read_timeout(Some(left))?;
                    stream.read(room)
                }
                Link::Vsock(stream) => {
                    stream.set_read_timeout(Some(left))?;
                    stream.read(room)
                }
            };
            match counted(read)? {
                Some(0) => return Err(AgentError::Closed),
                Some(read) => room = &mut room[read..],
                None => {}
            }
        }
        Ok(())
    }

    /// Writes all bytes, which the other side has to take in time.
    pub(crate) fn write(&mut self, mut bytes: &[u8], by: Instant) -> Result<(), AgentError> {
        while !bytes.is_empty() {
            let left = left(by)?;
            let written = match self {
                Link::Tcp(stream) => {
                    stream.set_write_timeout(Some(left))?;
                    stream.write(bytes)
                }
                Link::Vsock(stream) => {
                    stream.set_write_timeout(Some(left))?;
                    stream.write(bytes)
                }
            };
            match counted(written)? {
                Some(0) => return Err(AgentError::Closed),
                Some(written) => bytes = &bytes[written..],
                None => {}
            }
        }
        Ok(())
    }
}

/// Returns the time that is left.
fn left(by: Instant) -> Result<Duration, AgentError> {
    match by.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(AgentError::TimedOut),
        left => Ok(left.max(SHORTEST)),
    }
}

/// Returns how much was read or written; none where a signal came or time is over, which is looked at next.
fn counted(result: io::Result<usize>) -> Result<Option<usize>, AgentError> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Ok(None)
            }
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Err(AgentError::Closed),
            _ => Err(error.into()),
        },
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Link::Tcp(stream) => stream.as_fd(),
            Link::Vsock(stream) => stream.as_fd(),
        }
    }
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    ///
    /// Those of bind(2): the port is taken, the address is not this machine's, or there is no vsock device.
    pub fn bind(at: &Listen) -> io::Result<Listener> {
        match at {
            Listen::Vsock(port) => {
                VsockListener::bind_with_cid_port(VMADDR_CID_ANY, *port).map(Listener::Vsock)
            }
            Listen::Tcp(address) => TcpListener::bind(address).map(Listener::Tcp),
        }
    }

    /// Takes a socket that listens there already.
    ///
    /// # Errors
    ///
    /// Those of fcntl(2).
    pub fn from_open(socket: OwnedFd, at: &Listen) -> io::Result<Listener> {
        // Who has connected may be gone before it is accepted, and then nobody is to wait for the next one.
        Ok(match at {
            Listen::Vsock(_) => {
                let listener = VsockListener::from(socket);
                listener.set_nonblocking(true)?;
                Listener::Vsock(listener)
            }
            Listen::Tcp(_) => {
                let listener = TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                Listener::Tcp(listener)
            }
        })
    }

    /// Returns where it listens, with the port that it got where none was named (0).
    pub fn at(&self) -> io::Result<Listen> {
        match self {
            Listener::Vsock(listener) => Ok(Listen::Vsock(listener.local_addr()?.port())),
            Listener::Tcp(listener) => Ok(Listen::Tcp(listener.local_addr()?)),
        }
    }

    /// Waits for a connection, at most for a time. Returns it with who it is from.
    ///
    /// # Errors
    ///
    /// Those of accept(2). A connection that is gone again is none.
    pub fn accept(&self, at_most: Duration) -> io::Result<Option<(Link, String)>> {
        if !readable(self.as_fd(), at_most)? {
            return Ok(None);
        }
        let accepted = match self {
            Listener::Vsock(listener) => listener.accept().map(|(stream, peer)| {
                let from = format!("vsock:{}:{}", peer.cid(), peer.port());
                (Link::Vsock(stream), from)
            }),
            Listener::Tcp(listener) => listener
                .accept()
                .and_then(|(stream, peer)| Ok((Link::tcp(stream)?, format!("tcp:{peer}")))),
        };
        match accepted {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::WouldBlock
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Vsock(listener) => listener.as_fd(),
        }
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> OwnedFd {
        match listener {
            Listener::Tcp(listener) => listener.into(),
            Listener::Vsock(listener) => listener.into(),
        }
    }
}
