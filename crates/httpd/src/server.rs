//! The server: one thread, which waits for all connections at once.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thiserror::Error;

use crate::answer::{HttpAnswer, HttpStatus};
use crate::bound::{AcceptOutcome, BoundSocket};
use crate::connection::{HttpConnection, HttpPhase, HttpStep};
use crate::connections::{MOST, makes_room};
use crate::pages::PageSource;
use crate::request::{AskedPage, RequestHead};

/// How long nothing is accepted where there was no file descriptor left.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that are accepted before others are looked at again.
const AT_ONCE: usize = 64;
/// Texts that are kept for those who still read them, at most.
const MOST_TEXTS: usize = 8;
/// The longest time that nothing is looked at.
const LONGEST: Duration = Duration::from_secs(60);

/// Why a server ended.
#[derive(Debug, Error)]
pub enum ServerError {
    /// No connection comes by a socket any more.
    #[error("no connection can be accepted any more: {0}")]
    Accept(io::Error),
    /// Nothing can be waited for.
    #[error("connections cannot be waited for: {0}")]
    Wait(io::Error),
    /// Who makes the page is gone, or says what it should not.
    #[error("nothing more is counted: {0}")]
    Source(io::Error),
}

/// What a server did since its beginning.
#[derive(Debug, Clone, Default)]
pub struct ServerCounts {
    /// Requests by how they were answered, in the order of [`HttpStatus::ALL`].
    requests: [u64; HttpStatus::ALL.len()],
    /// Connections that were refused, since too many were open.
    pub refused: u64,
    /// Connections that were closed to make room for others.
    pub displaced: u64,
    /// Connections that are open.
    pub open: usize,
}

impl ServerCounts {
    /// Returns how many requests were answered so.
    pub fn requests(&self, status: HttpStatus) -> u64 {
        let all = HttpStatus::ALL.iter().zip(self.requests);
        all.filter(|(one, _)| **one == status)
            .map(|(_, count)| count)
            .sum()
    }

    fn count(&mut self, status: HttpStatus) {
        let all = HttpStatus::ALL.iter().zip(&mut self.requests);
        for (_, count) in all.filter(|(one, _)| **one == status) {
            *count += 1;
        }
    }
}

/// What a server serves.
pub struct Site<'s> {
    /// The page at `/`, HTML.
    pub index: &'s str,
    /// The type of the page at `/metrics`.
    pub kind: &'s str,
    /// Returns what stands below the text that was made: what the server says of itself.
    pub own: &'s mut dyn FnMut(&ServerCounts) -> String,
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("kind", &self.kind).finish()
    }
}

/// A server of metrics.
#[derive(Debug)]
pub struct HttpServer<'s> {
    sockets: &'s [BoundSocket],
    pages: PageSource,
    site: Site<'s>,
    index: Arc<Vec<u8>>,
    connections: Vec<HttpConnection>,
    /// Texts of which somebody may still read, the oldest first.
    texts: Vec<Weak<Vec<u8>>>,
    counts: ServerCounts,
    /// When connections are accepted again.
    accepts_at: Option<Instant>,
}

/// What the kernel reports of all files that are waited for.
struct ReportedEvents {
    stops: bool,
    has_text: bool,
    /// Whether connections wait, in the order of the sockets.
    waiting: Vec<bool>,
    /// Whether there is something to do, in the order of the connections.
    ready: Vec<bool>,
}

impl<'s> HttpServer<'s> {
    /// Returns a server that takes what it serves from there.
    pub fn new(sockets: &'s [BoundSocket], pages: PageSource, site: Site<'s>) -> HttpServer<'s> {
        let index = Arc::new(site.index.as_bytes().to_vec());
        HttpServer {
            sockets,
            pages,
            site,
            index,
            connections: Vec::new(),
            texts: Vec::new(),
            counts: ServerCounts::default(),
            accepts_at: None,
        }
    }

    /// Serves until there is something to read from `stop`.
    ///
    /// # Errors
    ///
    /// Where nothing can be served any more. What one connection does is no reason for that.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> Result<(), ServerError> {
        loop {
            let events = self.wait(stop).map_err(ServerError::Wait)?;
            if events.stops {
                return Ok(());
            }
            let now = Instant::now();
            // The last first, so that those before keep their places when one is over.
            for at in (0..events.ready.len()).rev() {
                if events.ready[at] {
                    self.step(at, now)?;
                } else if self.connections[at].until() <= now {
                    self.expire(at, now);
                }
            }
            if events.has_text
                && let Some(text) = self.pages.take().map_err(ServerError::Source)?
            {
                self.answer_with(text, now);
            }
            for (socket, waiting) in self.sockets.iter().zip(events.waiting) {
                if waiting {
                    self.accept(socket, now)?;
                }
            }
        }
    }

    /// Waits for whatever happens next.
    fn wait(&mut self, stop: BorrowedFd<'_>) -> io::Result<ReportedEvents> {
        let now = Instant::now();
        self.accepts_at = self.accepts_at.filter(|at| *at > now);
        let accepts = match self.accepts_at {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let deadlines = self.connections.iter().map(HttpConnection::until);
        let next = deadlines.chain(self.accepts_at).min();
        let time = next.map_or(LONGEST, |next| next.saturating_duration_since(now));
        // Time is cut to milliseconds by some kernels; a little later is as good.
        let time = time.min(LONGEST) + Duration::from_millis(1);
        let time = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut files = vec![
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::new(&self.pages, PollFlags::IN),
        ];
        let sockets = self.sockets.iter();
        files.extend(sockets.map(|socket| PollFd::new(socket, accepts)));
        let connections = self.connections.iter();
        files.extend(connections.map(|one| PollFd::new(&one.socket, one.waits_for())));
        match poll(&mut files, Some(&time)) {
            // A signal is found by what it writes to `stop`.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = files.iter().map(|file| !file.revents().is_empty());
        let (stops, has_text) = (ready.next(), ready.next());
        Ok(ReportedEvents {
            stops: stops == Some(true),
            has_text: has_text == Some(true),
            waiting: ready.by_ref().take(self.sockets.len()).collect(),
            ready: ready.collect(),
        })
    }

    /// Goes on with a connection.
    fn step(&mut self, at: usize, now: Instant) -> Result<(), ServerError> {
        let step = self.connections[at].step(now);
        let step = match step {
            HttpStep::Requests(RequestHead::Asks { page, head_alone }) => match page {
                AskedPage::Index => {
                    self.counts.count(HttpStatus::Ok);
                    let page =
                        HttpAnswer::page("text/html; charset=utf-8", &self.index, head_alone);
                    self.connections[at].answer(page, now)
                }
                AskedPage::Metrics => {
                    self.pages.ask().map_err(ServerError::Source)?;
                    self.connections[at].wait_for_page(head_alone, now);
                    HttpStep::GoesOn
                }
            },
            HttpStep::Requests(RequestHead::Refused { status, head_alone }) => {
                self.counts.count(status);
                self.connections[at].answer(HttpAnswer::refusal(status, head_alone), now)
            }
            other => other,
        };
        if step == HttpStep::Over {
            self.connections.swap_remove(at);
        }
        Ok(())
    }

    /// Ends what waited too long.
    fn expire(&mut self, at: usize, now: Instant) {
        let connection = &mut self.connections[at];
        let (status, head_alone) = match connection.phase {
            HttpPhase::Head(_) => (HttpStatus::RequestTimeout, false),
            HttpPhase::Page { head_alone } => (HttpStatus::Unavailable, head_alone),
            HttpPhase::Answer { .. } | HttpPhase::Close(_) => {
                self.connections.swap_remove(at);
                return;
            }
        };
        self.counts.count(status);
        if connection.answer(HttpAnswer::refusal(status, head_alone), now) == HttpStep::Over {
            self.connections.swap_remove(at);
        }
    }

    /// Answers all that wait for a text.
    fn answer_with(&mut self, mut text: Vec<u8>, now: Instant) {
        let waits = |one: &HttpConnection| matches!(one.phase, HttpPhase::Page { .. });
        for _ in self.connections.iter().filter(|one| waits(one)) {
            self.counts.count(HttpStatus::Ok);
        }
        self.counts.open = self.connections.len();
        text.extend_from_slice((self.site.own)(&self.counts).as_bytes());
        let text = Arc::new(text);
        self.make_room_for_text(&text);
        let kind = self.site.kind;
        self.connections.retain_mut(|one| match one.phase {
            HttpPhase::Page { head_alone } => {
                one.answer(HttpAnswer::page(kind, &text, head_alone), now) != HttpStep::Over
            }
            _ => true,
        });
    }

    /// Closes those who still read the oldest texts, where there are too many.
    fn make_room_for_text(&mut self, text: &Arc<Vec<u8>>) {
        self.texts.retain(|text| text.strong_count() > 0);
        while self.texts.len() >= MOST_TEXTS {
            if let Some(oldest) = self.texts.remove(0).upgrade() {
                let before = self.connections.len();
                self.connections.retain(|one| !one.takes(&oldest));
                let closed = before - self.connections.len();
                self.counts.displaced += u64::try_from(closed).unwrap_or(0);
            }
        }
        self.texts.push(Arc::downgrade(text));
    }

    /// Accepts connections.
    fn accept(&mut self, socket: &BoundSocket, now: Instant) -> Result<(), ServerError> {
        for _ in 0..AT_ONCE {
            match socket.accept().map_err(ServerError::Accept)? {
                AcceptOutcome::Connection(connection, peer) => {
                    let mut connection = HttpConnection::new(connection, peer, now);
                    if self.connections.len() >= MOST {
                        match makes_room(&self.connections, now) {
                            Some(at) => {
                                self.counts.displaced += 1;
                                self.connections.swap_remove(at);
                            }
                            None => {
                                self.counts.refused += 1;
                                self.counts.count(HttpStatus::Unavailable);
                                // As much as fits into the socket, and it is closed.
                                let refusal = HttpAnswer::refusal(HttpStatus::Unavailable, false);
                                connection.answer(refusal, now);
                                continue;
                            }
                        }
                    }
                    self.connections.push(connection);
                }
                AcceptOutcome::None => return Ok(()),
                AcceptOutcome::Exhausted => {
                    self.accepts_at = Some(now + PAUSE);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
