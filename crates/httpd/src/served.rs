//! The server with peers that ask as they should, and with others.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::answer::HttpStatus;
use crate::bound::BoundSocket;
use crate::connections::MOST;
use crate::pages::{PageRequest, pages};
use crate::server::{HttpServer, ServerCounts, ServerError, Site};

/// A server that runs, whose text has so many bytes.
struct Served {
    address: SocketAddr,
    stop: UnixStream,
    server: JoinHandle<Result<(), ServerError>>,
    maker: JoinHandle<u32>,
}

impl Served {
    fn start(bytes: usize) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let sockets = [BoundSocket::of(listener.into()).expect("it listens")];
        let (source, mut maker) = pages().expect("a pair");
        let (stop, stopped) = UnixStream::pair().expect("a pair");
        let server = thread::spawn(move || {
            let mut own = |counts: &ServerCounts| {
                format!(
                    "ok {} open {}\n",
                    counts.requests(HttpStatus::Ok),
                    counts.open
                )
            };
            let site = Site {
                index: "<a href=\"/metrics\">metrics</a>\n",
                kind: "text/plain; version=0.0.4",
                own: &mut own,
            };
            HttpServer::new(&sockets, source, site).run(stopped.as_fd())
        });
        let maker = thread::spawn(move || {
            let mut made = 0;
            let (never, _kept) = UnixStream::pair().expect("a pair");
            while maker.wait(never.as_fd()).expect("it can be read") == PageRequest::Text {
                made += 1;
                maker.send(&vec![b'#'; bytes]).expect("it is taken");
            }
            made
        });
        Served {
            address,
            stop,
            server,
            maker,
        }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).expect("it listens")
    }

    fn says(&self, request: &str) -> String {
        let mut stream = self.connect();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).expect("a time");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    fn metrics(&self) -> String {
        self.says("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    }

    /// Ends it. Returns how often a text was made.
    fn end(mut self) -> u32 {
        self.stop.write_all(b"x").expect("it listens");
        let ended = self.server.join().expect("it does not panic");
        ended.expect("it was to end");
        self.maker.join().expect("it does not panic")
    }
}

#[test]
fn every_request_has_its_answer() {
    let served = Served::start(10);
    let answer = served.metrics();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\nContent-Type: text/plain; version=0.0.4\r\n"));
    assert!(
        answer.ends_with("\r\n\r\n##########ok 1 open 1\n"),
        "{answer}"
    );
    let head = served.says("HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.contains("\r\nContent-Length: 22\r\n") && head.ends_with("\r\n\r\n"));
    assert!(served.says("GET / HTTP/1.1\r\n\r\n").contains("/metrics"));
    for (request, begins) in [
        ("GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
        (
            "PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 405 ",
        ),
        ("hello\r\n\r\n", "HTTP/1.1 400 "),
    ] {
        assert!(served.says(request).starts_with(begins), "{request}");
    }
    // One connection has one answer, whatever else is asked.
    let twice = served.says("GET /x HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n");
    assert_eq!(twice.matches("HTTP/1.1").count(), 1);
    assert_eq!(served.end(), 2);
}

#[test]
fn who_sends_without_end_is_answered() {
    let served = Served::start(10);
    let mut stream = served.connect();
    let mut sender = stream.try_clone().expect("a socket");
    let sent = thread::spawn(move || {
        let header = vec![b'a'; 64 << 10];
        let mut sent = sender.write(b"GET / HTTP/1.1\r\nx: ").unwrap_or(0);
        while sent < 400 << 20 {
            match sender.write(&header) {
                Ok(more) => sent += more,
                Err(_) => break,
            }
        }
        sent
    });
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).expect("it answers");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 431");
    assert!(sent.join().expect("it does not panic") < 100 << 20);
    served.end();
}

#[test]
fn who_says_too_little_is_answered_in_time() {
    let served = Served::start(10);
    let patience = Some(Duration::from_secs(60));
    let mut silent = served.connect();
    let mut half = served.connect();
    half.write_all(b"GET /metrics").expect("it reads");
    let drips = thread::spawn({
        let mut half = half.try_clone().expect("a socket");
        // A byte now and then gains no time.
        move || {
            while half.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(300));
            }
        }
    });
    for stream in [&mut silent, &mut half] {
        stream.set_read_timeout(patience).expect("a time");
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).expect("it answers");
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 408");
    }
    drop((silent, half.shutdown(Shutdown::Both)));
    drips.join().expect("it does not panic");
    served.end();
}

#[test]
fn many_that_do_nothing_make_room() {
    let served = Served::start(10);
    let idle: Vec<TcpStream> = (0..3 * MOST).map(|_| served.connect()).collect();
    for _ in 0..3 {
        assert!(served.metrics().starts_with("HTTP/1.1 200 "));
    }
    drop(idle);
    served.end();
}

#[test]
fn many_that_never_read_make_room() {
    // More than fits into the buffers of a socket.
    let served = Served::start(16 << 20);
    let mut deaf = Vec::new();
    for _ in 0..MOST + 40 {
        let mut stream = served.connect();
        // It may have been closed for the next.
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        deaf.push(stream);
    }
    let mut answered = 0;
    for _ in 0..100 {
        let mut stream = served.connect();
        let mut answer = Vec::new();
        let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        if asked.and_then(|()| stream.read_to_end(&mut answer)).is_ok() && answer.len() > 16 << 20 {
            answered += 1;
        }
        if answered == 3 {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(answered, 3);
    drop(deaf);
    served.end();
}

#[test]
fn a_server_without_a_source_ends_and_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let sockets = [BoundSocket::of(listener.into()).expect("it listens")];
    let (source, maker) = pages().expect("a pair");
    let (_stop, stopped) = UnixStream::pair().expect("a pair");
    drop(maker);
    let mut own = |_: &ServerCounts| String::new();
    let site = Site {
        index: "",
        kind: "",
        own: &mut own,
    };
    let ended = HttpServer::new(&sockets, source, site).run(stopped.as_fd());
    let error = ended.expect_err("nobody counts");
    assert!(error.to_string().contains("nothing more is counted"));
}
