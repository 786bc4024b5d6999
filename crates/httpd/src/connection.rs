//! One connection, from its acceptance to its end. Nothing here waits.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::answer::HttpAnswer;
use crate::bound::HttpPeer;
use crate::request::{self, MOST_HEAD, RequestHead};

/// How long the head of a request may take, from the beginning of the connection.
const HEAD: Duration = Duration::from_secs(5);
/// How long the page may take that was asked for.
const PAGE: Duration = Duration::from_secs(10);
/// How long the answer may take to be taken. Prometheus gives up after ten seconds unless it is set up otherwise.
const ANSWER: Duration = Duration::from_secs(10);
/// How long, and how much, is read and thrown away of who has the answer and still sends: a socket that is closed
/// before that is reset, and the answer is lost with it.
const LINGER: Duration = Duration::from_millis(500);
const MOST_LINGERING: usize = 1 << 20;
/// Bytes that are sent at once, so that others are served in between.
const PIECE: usize = 256 << 10;

/// What a connection is waiting for.
#[derive(Debug)]
pub(crate) enum HttpPhase {
    /// For the head of the request, of which this has come.
    Head(Vec<u8>),
    /// For the page.
    Page {
        /// Whether the head of the answer is all that is asked for.
        head_alone: bool,
    },
    /// For the other side to take the answer, of which it last took something then.
    Answer {
        /// The rest of it.
        answer: HttpAnswer,
        /// When something was taken.
        took: Instant,
    },
    /// For the other side to close, of which so much more is read.
    Close(usize),
}

/// What became of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HttpStep {
    /// It goes on.
    GoesOn,
    /// The request is there.
    Requests(RequestHead),
    /// It is over.
    Over,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    pub(crate) socket: OwnedFd,
    pub(crate) peer: HttpPeer,
    /// Since when it waits for what it waits for.
    pub(crate) since: Instant,
    pub(crate) phase: HttpPhase,
}

impl HttpConnection {
    pub(crate) fn new(socket: OwnedFd, peer: HttpPeer, now: Instant) -> HttpConnection {
        HttpConnection {
            socket,
            peer,
            since: now,
            phase: HttpPhase::Head(Vec::new()),
        }
    }

    /// Returns when it has waited too long.
    pub(crate) fn until(&self) -> Instant {
        self.since
            + match self.phase {
                HttpPhase::Head(_) => HEAD,
                HttpPhase::Page { .. } => PAGE,
                HttpPhase::Answer { .. } => ANSWER,
                HttpPhase::Close(_) => LINGER,
            }
    }

    /// Returns what the kernel is to report of it. That it is gone is reported in any case.
    pub(crate) fn waits_for(&self) -> PollFlags {
        match self.phase {
            HttpPhase::Head(_) | HttpPhase::Close(_) => PollFlags::IN,
            HttpPhase::Page { .. } => PollFlags::empty(),
            HttpPhase::Answer { .. } => PollFlags::OUT,
        }
    }

    pub(crate) fn wait_for_page(&mut self, head_alone: bool, now: Instant) {
        self.since = now;
        self.phase = HttpPhase::Page { head_alone };
    }

    /// Begins to answer.
    pub(crate) fn answer(&mut self, answer: HttpAnswer, now: Instant) -> HttpStep {
        self.since = now;
        self.phase = HttpPhase::Answer { answer, took: now };
        // Most answers fit into the socket.
        self.step(now)
    }

    /// Returns whether it takes this text.
    pub(crate) fn takes(&self, text: &Arc<Vec<u8>>) -> bool {
        matches!(&self.phase, HttpPhase::Answer { answer, .. } if answer.is_of(text))
    }

    /// Does what can be done without waiting.
    pub(crate) fn step(&mut self, now: Instant) -> HttpStep {
        match &mut self.phase {
            HttpPhase::Head(came) => {
                let mut room = [0; MOST_HEAD];
                let free = MOST_HEAD.saturating_sub(came.len());
                match recv(&self.socket, &mut room[..free], RecvFlags::empty()) {
                    Ok((_, 0)) => HttpStep::Over,
                    Ok((read, _)) => {
                        // As much as is needed, and not twice that: there are many.
                        came.reserve_exact(read);
                        came.extend_from_slice(&room[..read]);
                        match request::read(came) {
                            RequestHead::Incomplete => HttpStep::GoesOn,
                            head => HttpStep::Requests(head),
                        }
                    }
                    Err(error) => later(error),
                }
            }
            // It is reported if the other side is gone, and that alone.
            HttpPhase::Page { .. } => HttpStep::Over,
            HttpPhase::Answer { answer, took } => {
                while !answer.rest().is_empty() {
                    let rest = answer.rest();
                    let piece = &rest[..rest.len().min(PIECE)];
                    match send(&self.socket, piece, SendFlags::NOSIGNAL) {
                        Ok(sent) => {
                            answer.was_sent(sent);
                            *took = now;
                            if sent == PIECE {
                                return HttpStep::GoesOn;
                            }
                        }
                        Err(error) => return later(error),
                    }
                }
                if shutdown(&self.socket, Shutdown::Write).is_err() {
                    return HttpStep::Over;
                }
                self.since = now;
                self.phase = HttpPhase::Close(MOST_LINGERING);
                HttpStep::GoesOn
            }
            HttpPhase::Close(left) => {
                let mut room = [0; 16 << 10];
                match recv(&self.socket, &mut room, RecvFlags::empty()) {
                    Ok((read, _)) => {
                        *left = left.saturating_sub(read);
                        match read == 0 || *left == 0 {
                            true => HttpStep::Over,
                            false => HttpStep::GoesOn,
                        }
                    }
                    Err(error) => later(error),
                }
            }
        }
    }
}

/// What becomes of a connection after an error.
fn later(error: Errno) -> HttpStep {
    match error {
        Errno::AGAIN | Errno::INTR => HttpStep::GoesOn,
        _ => HttpStep::Over,
    }
}
