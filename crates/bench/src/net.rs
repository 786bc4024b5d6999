/*!
How long a message and its answer take, over TCP and UDP, against a peer that the same command starts: on this machine
([`Server`] in threads of its own), or on another one.

The peer answers what speaks its protocol and nothing else. A datagram is answered once, by one of the same length, and
an answer is never answered, so it is no amplifier and two peers cannot be set on each other. Nobody authenticates: it
is to be bound where only those can reach it who may.
*/

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use results::BenchRow;

use crate::BenchError;
use crate::now::now;
use crate::run::BenchRun;
use crate::samples::{IterationBounds, RowSamples};
use crate::thread::{ANSWERS, RaiseAtEnd, joined, on_cpu, pinned};
use crate::why::why;

/// Bytes of a message, at least and at most.
pub const SIZES: std::ops::RangeInclusive<usize> = 32..=65_000;
/// What every message of the protocol begins with: its name and version.
const MAGIC: &[u8; 8] = b"TRAPBEN1";
/// Behind it in a datagram: a question, or the answer to one.
const QUESTION: u8 = b'q';
const ANSWER: u8 = b'a';
/// Where a datagram's number stands.
const NUMBER: std::ops::Range<usize> = 9..17;
/// Behind it in the first message of a connection: the size of messages.
const SIZE: std::ops::Range<usize> = 8..16;
/// A peer that says nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often who waits looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// A datagram is lost when no answer came for so long.
const LOST: Duration = Duration::from_millis(500);
/// Datagrams in a row without an answer after which there is nobody.
const MOST_LOST: u64 = 5;

/// The peer that answers.
#[derive(Debug)]
pub struct Server {
    tcp: TcpListener,
    udp: UdpSocket,
    address: SocketAddr,
}

impl Server {
    /// Binds an address, for TCP and UDP. A port of 0 is any that is free.
    ///
    /// # Errors
    ///
    /// The address is in use, is not this machine's, or may not be used.
    pub fn bind(address: SocketAddr) -> Result<Server, BenchError> {
        let failed = |error: io::Error| BenchError::Bind {
            address,
            why: why(&error),
        };
        let mut tries = 10;
        loop {
            let tcp = TcpListener::bind(address).map_err(failed)?;
            let bound = tcp.local_addr().map_err(failed)?;
            tries -= 1;
            match UdpSocket::bind(bound) {
                // The port that TCP got is in use by UDP: another may not be.
                Err(_) if address.port() == 0 && tries > 0 => {}
                Err(error) => return Err(failed(error)),
                Ok(udp) => {
                    tcp.set_nonblocking(true).map_err(failed)?;
                    udp.set_read_timeout(Some(LOOK)).map_err(failed)?;
                    return Ok(Server {
                        tcp,
                        udp,
                        address: bound,
                    });
                }
            }
        }
    }

    /// Returns the address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is asked to end.
    pub fn serve(&self, stop: &AtomicBool) {
        std::thread::scope(|scope| {
            scope.spawn(|| self.answer_datagrams(stop));
            self.answer_connections(stop);
        });
    }

    fn answer_datagrams(&self, stop: &AtomicBool) {
        let mut bytes = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            let Ok((length, from)) = self.udp.recv_from(&mut bytes) else {
                continue;
            };
            let message = &mut bytes[..length];
            if SIZES.contains(&length) && message.starts_with(MAGIC) && message[8] == QUESTION {
                message[8] = ANSWER;
                let _ = self.udp.send_to(message, from);
            }
        }
    }

    /// Answers one connection after another: those that wait would disturb each other.
    fn answer_connections(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            match self.tcp.accept() {
                // A peer that goes away ends its own connection alone.
                Ok((stream, _)) => drop(answer(stream, stop)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = rings::wait_for(&[self.tcp.as_fd()], LOOK);
                }
                // Too many files, for example: it may pass.
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }
}

/// Reads a whole message, and looks meanwhile whether it is to end.
fn read_whole(stream: &mut TcpStream, bytes: &mut [u8], stop: &AtomicBool) -> io::Result<()> {
    let mut got = 0;
    let mut silent = Duration::ZERO;
    while got < bytes.len() {
        match stream.read(&mut bytes[got..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                got += length;
                silent = Duration::ZERO;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => {
                silent += LOOK;
                if silent >= PATIENCE || stop.load(Ordering::Relaxed) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn ready(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(LOOK))
}

/// Answers a connection until its other end closes it.
fn answer(mut stream: TcpStream, stop: &AtomicBool) -> io::Result<()> {
    ready(&stream)?;
    let mut hello = [0; 16];
    read_whole(&mut stream, &mut hello, stop)?;
    let size = u64::from_le_bytes(hello[SIZE].try_into().unwrap_or_default());
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if !hello.starts_with(MAGIC) || !SIZES.contains(&size) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    stream.write_all(&hello)?;
    let mut message = vec![0; size];
    loop {
        read_whole(&mut stream, &mut message, stop)?;
        stream.write_all(&message)?;
    }
}

/// Measures against a peer: at an address, or of this machine.
pub(crate) fn rows(
    run: &BenchRun<'_>,
    connect: Option<SocketAddr>,
    size: usize,
) -> Result<Vec<BenchRow>, BenchError> {
    let from = run.places.from;
    match connect {
        Some(address) => Ok(against(run, address, size, &|row| row)),
        None => {
            let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
            let over = AtomicBool::new(false);
            let (server, over) = (&server, &over);
            let to = run.places.peer();
            std::thread::scope(|scope| {
                let _end = RaiseAtEnd(over);
                let udp = pinned(scope, to, ANSWERS, move || {
                    server.answer_datagrams(over);
                    Ok(())
                });
                let tcp = pinned(scope, to, ANSWERS, move || {
                    server.answer_connections(over);
                    Ok(())
                });
                let (udp, tcp) = (
                    udp.map_err(BenchError::Thread)?,
                    tcp.map_err(BenchError::Thread)?,
                );
                let loopback = |row: BenchRow| {
                    row.from(from)
                        .to(to)
                        .note("loopback: the kernel alone, no network and no device")
                };
                let rows = against(run, server.address(), size, &loopback);
                over.store(true, Ordering::Release);
                for thread in [udp, tcp] {
                    joined(thread).map_err(BenchError::Thread)?;
                }
                Ok(rows)
            })
        }
    }
}

fn against(
    run: &BenchRun<'_>,
    address: SocketAddr,
    size: usize,
    mark: &dyn Fn(BenchRow) -> BenchRow,
) -> Vec<BenchRow> {
    let bounds = run.bounds;
    let from = run.places.from;
    let of = |what: &str| mark(BenchRow::new(format!("{what}, {size} bytes")).from(from));
    let mut rows = Vec::new();
    let row = of("TCP");
    run.say(&row);
    let tcp = on_cpu(from, || over_tcp(bounds, row.clone(), address, size));
    rows.push(tcp.unwrap_or_else(|why| row.missing(why)));
    let row = of("UDP");
    run.say(&row);
    let udp = on_cpu(from, || over_udp(bounds, row.clone(), address, size));
    rows.push(udp.unwrap_or_else(|why| row.missing(why)));
    rows
}

fn over_tcp(
    bounds: IterationBounds<'_>,
    row: BenchRow,
    address: SocketAddr,
    size: usize,
) -> Result<BenchRow, String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!(
            "nobody answers at {address}: start 'trapline bench net --serve {address}' there"
        ),
        io::ErrorKind::UnexpectedEof => {
            format!(
                "{address} closed the connection: it is no 'trapline bench net --serve', or of another version"
            )
        }
        _ if is_timeout(&error) => format!("{address} does not answer"),
        _ => format!("{address}: {}", why(&error)),
    };
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    ready(&stream).map_err(failed)?;
    let mut hello = [0; 16];
    hello[..8].copy_from_slice(MAGIC);
    hello[SIZE].copy_from_slice(&(size as u64).to_le_bytes());
    stream.write_all(&hello).map_err(failed)?;
    let mut back = [0; 16];
    read_whole(&mut stream, &mut back, bounds.stop).map_err(failed)?;
    if back != hello {
        return Err(format!(
            "{address} answers, and is no 'trapline bench net --serve'"
        ));
    }
    let mut message = vec![0; size];
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        let begin = now();
        stream.write_all(&message).map_err(failed)?;
        match read_whole(&mut stream, &mut message, bounds.stop) {
            Ok(()) => {}
            Err(_) if bounds.stop.load(Ordering::Relaxed) => break,
            Err(error) => return Err(failed(error)),
        }
        samples.add(begin, now().saturating_sub(begin));
    }
    Ok(samples.row(row))
}

fn over_udp(
    bounds: IterationBounds<'_>,
    row: BenchRow,
    address: SocketAddr,
    size: usize,
) -> Result<BenchRow, String> {
    let failed = |error: io::Error| format!("{address}: {}", why(&error));
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(address).map_err(failed)?;
    socket.set_read_timeout(Some(LOST)).map_err(failed)?;
    let mut question = vec![0; size];
    question[..8].copy_from_slice(MAGIC);
    question[8] = QUESTION;
    let mut answer = vec![0; size];
    let (mut lost, mut in_a_row, mut number) = (0u64, 0u64, 0u64);
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        number += 1;
        question[NUMBER].copy_from_slice(&number.to_le_bytes());
        let begin = now();
        if ask(&socket, &question, &mut answer)? {
            in_a_row = 0;
            samples.add(begin, now().saturating_sub(begin));
            continue;
        }
        lost += 1;
        in_a_row += 1;
        if in_a_row >= MOST_LOST {
            let none = samples.made() == 0;
            let none = none.then(|| {
                format!("{address} does not answer datagrams: a firewall, or no 'trapline bench net --serve' there")
            });
            if let Some(why) = none {
                return Err(why);
            }
            break;
        }
    }
    Ok(BenchRow {
        lost,
        ..samples.row(row)
    })
}

/// Sends a question and waits for its answer; returns whether it came. What comes late is no answer to another
/// question.
fn ask(socket: &UdpSocket, question: &[u8], answer: &mut [u8]) -> Result<bool, String> {
    match socket.send(question) {
        Ok(_) => {}
        // The other end said so to a message before.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(false),
        Err(error) => return Err(format!("a datagram cannot be sent: {}", why(&error))),
    }
    // Whoever sends other datagrams all the time does not hold this up for ever.
    for _ in 0..1000 {
        match socket.recv(answer) {
            Ok(length)
                if length == question.len()
                    && answer[8] == ANSWER
                    && answer[NUMBER] == question[NUMBER] =>
            {
                return Ok(true);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(false),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_server(work: impl FnOnce(SocketAddr, &AtomicBool)) {
        let server = Server::bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = RaiseAtEnd(&stop);
            scope.spawn(|| server.serve(&stop));
            work(server.address(), &stop);
        });
    }

    fn bounds(stop: &AtomicBool) -> IterationBounds<'_> {
        IterationBounds {
            iterations: 20,
            warmup: 3,
            row_time_ns: u64::MAX,
            stop,
        }
    }

    #[test]
    fn messages_are_answered_as_often_as_they_are_sent() {
        with_server(|address, stop| {
            let tcp = over_tcp(bounds(stop), BenchRow::new("TCP"), address, 100).expect("answers");
            let udp = over_udp(bounds(stop), BenchRow::new("UDP"), address, 100).expect("answers");
            assert_eq!((tcp.count, udp.count + udp.lost), (20, 20 + udp.lost));
        });
    }

    #[test]
    fn what_does_not_speak_the_protocol_is_not_answered() {
        with_server(|address, stop| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket
                .set_read_timeout(Some(Duration::from_millis(50)))
                .expect("a timeout");
            let mut answer = [MAGIC.as_slice(), &[ANSWER; 40]].concat();
            for message in [&b"hello"[..], &answer, &[0; 64], b""] {
                socket.send_to(message, address).expect("sent");
            }
            assert!(socket.recv(&mut [0; 100]).is_err(), "nothing is answered");
            answer[8] = QUESTION;
            socket.send_to(&answer, address).expect("sent");
            assert_eq!(socket.recv(&mut [0; 100]).expect("an answer"), answer.len());
            // One that says nonsense, or a size beyond all bounds, is closed, and the next is answered.
            for hello in [[0; 16], {
                let mut hello = [0xff; 16];
                hello[..8].copy_from_slice(MAGIC);
                hello
            }] {
                let mut stream = TcpStream::connect(address).expect("connected");
                stream.write_all(&hello).expect("sent");
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest);
                assert!(rest.is_empty());
            }
            let row = over_tcp(bounds(stop), BenchRow::new("TCP"), address, 32).expect("answers");
            assert_eq!(row.count, 20);
        });
    }

    #[test]
    fn nobody_there_is_said() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let stop = AtomicBool::new(false);
        let why = over_tcp(bounds(&stop), BenchRow::new("TCP"), address, 64).unwrap_err();
        assert!(why.contains("--serve"), "{why}");
        let why = over_udp(bounds(&stop), BenchRow::new("UDP"), address, 64).unwrap_err();
        assert!(why.contains("does not answer"), "{why}");
    }
}
