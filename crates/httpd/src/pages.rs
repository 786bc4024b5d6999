//! The way from who makes the page of metrics to who serves it: a pair of sockets, so that either may be another
//! process.
//!
//! Who serves writes one byte and gets a text: its length (8 bytes, little-endian) and its bytes. It asks once at a
//! time. Neither trusts the other: a length is checked before anything is kept, and all has its time.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::bound::BoundSocket;
use crate::handover;

/// Bytes that a text has at most. That of 1024 vCPUs with all the rows that there is room for has some 20 MB.
const MOST_TEXT: usize = 64 << 20;
/// Bytes that are read at once, so that others are served in between.
const PIECE: usize = 256 << 10;
/// The byte that asks.
const ASKS: u8 = b'?';
/// How long who serves may take to take a text.
const TAKING: Duration = Duration::from_secs(5);

/// Who serves pages asks here for the text.
#[derive(Debug)]
pub struct PageSource {
    socket: UnixStream,
    /// What has come of a text, its length in front.
    came: Vec<u8>,
    /// Whether a text was asked for and is not there yet.
    is_asked: bool,
}

/// Who makes the text is asked here for it.
#[derive(Debug)]
pub struct PageMaker {
    socket: UnixStream,
}

/// What who makes the text is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRequest {
    /// Make a text.
    Text,
    /// End: this process is to.
    Stop,
    /// Nothing any more: nobody is there who serves.
    Gone,
}

/// Returns both ends of a way for pages.
///
/// # Errors
///
/// Those of socketpair(2).
pub fn pages() -> io::Result<(PageSource, PageMaker)> {
    let (source, maker) = UnixStream::pair()?;
    Ok((PageSource::of(source.into())?, PageMaker { socket: maker }))
}

impl PageSource {
    /// Returns the serving end, which another process has made, and the sockets that it hands over first
    /// ([`PageMaker::hand_over`]).
    ///
    /// # Errors
    ///
    /// Where none is handed over.
    pub fn handed_over(socket: OwnedFd) -> io::Result<(PageSource, Vec<BoundSocket>)> {
        let sockets = handover::receive(socket.as_fd())?;
        Ok((PageSource::of(socket)?, sockets))
    }

    fn of(socket: OwnedFd) -> io::Result<PageSource> {
        let socket = UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(PageSource {
            socket,
            came: Vec::new(),
            is_asked: false,
        })
    }

    /// Returns the socket, to be the standard input of another process.
    ///
    /// # Errors
    ///
    /// Where it cannot be used with waiting again.
    pub fn into_socket(self) -> io::Result<OwnedFd> {
        self.socket.set_nonblocking(false)?;
        Ok(self.socket.into())
    }

    /// Asks for a text, unless that is done already.
    pub(crate) fn ask(&mut self) -> io::Result<()> {
        if !self.is_asked {
            self.socket.write_all(&[ASKS])?;
            self.is_asked = true;
        }
        Ok(())
    }

    /// Takes what has come. Returns a text once it is whole.
    pub(crate) fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let bad = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let mut room = [0; 8 << 10];
        for _ in 0..PIECE / room.len() {
            let read = match self.socket.read(&mut room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if !self.is_asked {
                return bad("nobody asked for a text");
            }
            self.came.extend_from_slice(&room[..read]);
            let Some((length, text)) = self.came.split_first_chunk::<8>() else {
                continue;
            };
            let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
            if length > MOST_TEXT || text.len() > length {
                return bad("a text is longer than it may be");
            }
            if text.len() == length {
                self.is_asked = false;
                let mut text = std::mem::take(&mut self.came);
                text.drain(..8);
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

impl AsFd for PageSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl PageMaker {
    /// Hands over the sockets by which connections come, before anything is asked for.
    ///
    /// # Errors
    ///
    /// Where there is none or are more than sixteen, and those of sendmsg(2).
    pub fn hand_over(&self, sockets: &[BoundSocket]) -> io::Result<()> {
        handover::send(self.socket.as_fd(), sockets)
    }

    /// Waits until a text is asked for, or there is something to read from `stop`.
    ///
    /// # Errors
    ///
    /// Those of poll(2) and recv(2), and where something else is said.
    pub fn wait(&mut self, stop: BorrowedFd<'_>) -> io::Result<PageRequest> {
        loop {
            let mut files = [
                PollFd::from_borrowed_fd(stop, PollFlags::IN),
                PollFd::new(&self.socket, PollFlags::IN),
            ];
            match poll(&mut files, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [stops, asks] = files.map(|file| !file.revents().is_empty());
            if stops {
                return Ok(PageRequest::Stop);
            }
            if asks {
                return match self.is_asked()? {
                    true => Ok(PageRequest::Text),
                    false => Ok(PageRequest::Gone),
                };
            }
        }
    }

    /// Returns whether a text is asked for, or the other end is gone.
    fn is_asked(&mut self) -> io::Result<bool> {
        let mut room = [0];
        loop {
            match self.socket.read(&mut room) {
                Ok(0) => return Ok(false),
                Ok(_) if room == [ASKS] => return Ok(true),
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands over a text.
    ///
    /// # Errors
    ///
    /// Where the text is longer than 64 MiB, or is not taken within five seconds, and those of send(2).
    pub fn send(&mut self, text: &[u8]) -> io::Result<()> {
        if text.len() > MOST_TEXT {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what is counted has no room in 64 MiB: show one VM (--vm)",
            ));
        }
        let by = Instant::now() + TAKING;
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.write(&length.to_le_bytes(), by)?;
        self.write(text, by)
    }

    fn write(&mut self, mut bytes: &[u8], by: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.set_write_timeout(Some(left))?;
            match self.socket.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes until there is a text.
    fn taken(source: &mut PageSource) -> io::Result<Vec<u8>> {
        loop {
            match source.take()? {
                Some(text) => return Ok(text),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_text_goes_over_whole() {
        let (mut source, mut maker) = pages().expect("a pair");
        let maker = std::thread::spawn(move || {
            let mut texts = 0;
            let (never, _kept) = UnixStream::pair().expect("a pair");
            while maker.wait(never.as_fd()).expect("it can be read") == PageRequest::Text {
                texts += 1;
                maker
                    .send(&vec![b'x'; texts * 1_000_000])
                    .expect("it is taken");
            }
            texts
        });
        for texts in 1..4 {
            source.ask().expect("it can be asked");
            source.ask().expect("once is enough");
            assert_eq!(taken(&mut source).expect("a text").len(), texts * 1_000_000);
        }
        drop(source);
        assert_eq!(maker.join().expect("it does not panic"), 3);
    }

    #[test]
    fn neither_end_believes_the_other() {
        let (mut source, mut maker) = pages().expect("a pair");
        maker.send(b"text").expect("there is room");
        assert!(taken(&mut source).is_err(), "nobody asked");
        let (mut source, maker) = pages().expect("a pair");
        source.ask().expect("it can be asked");
        let length = u64::MAX.to_le_bytes();
        (&maker.socket).write_all(&length).expect("there is room");
        assert!(taken(&mut source).is_err(), "too long");
        let (source, mut maker) = pages().expect("a pair");
        (&source.socket).write_all(b"x").expect("there is room");
        let (never, _kept) = UnixStream::pair().expect("a pair");
        assert!(maker.wait(never.as_fd()).is_err());
        assert!(maker.send(&vec![0; MOST_TEXT + 1]).is_err());
    }
}
