//! Sockets that listen, handed from the process that may bind them to the one that serves (`SCM_RIGHTS`, unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::bound::BoundSocket;

/// Sockets that are handed over at most.
pub(crate) const MOST_SOCKETS: usize = 16;
/// What is said with them: no message is empty.
const SAYS: u8 = b'#';

/// Sends sockets.
pub(crate) fn send(by: BorrowedFd<'_>, sockets: &[BoundSocket]) -> io::Result<()> {
    let sockets: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SOCKETS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if sockets.is_empty() || !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected one to sixteen sockets",
        ));
    }
    sendmsg(
        by,
        &[IoSlice::new(&[SAYS])],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives them.
pub(crate) fn receive(by: BorrowedFd<'_>) -> io::Result<Vec<BoundSocket>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut said = [0];
    let mut room = [IoSliceMut::new(&mut said)];
    recvmsg(by, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut sockets: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = message {
            sockets.extend(came);
        }
    }
    if sockets.is_empty() || said != [SAYS] {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "no socket was handed over",
        ));
    }
    sockets.into_iter().map(BoundSocket::of).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::bound::AcceptOutcome;

    #[test]
    fn a_socket_listens_where_it_is_handed_to() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let sockets = [BoundSocket::of(listener.into()).expect("it listens")];
        send(one.as_fd(), &sockets).expect("there is room");
        let got = receive(other.as_fd()).expect("it was sent");
        drop(sockets);
        let _connection = TcpStream::connect(address).expect("it still listens");
        let accepted = got[0].accept().expect("it listens");
        assert!(matches!(accepted, AcceptOutcome::Connection(..)));
        drop(one);
        assert!(receive(other.as_fd()).is_err(), "the other end is gone");
    }
}
