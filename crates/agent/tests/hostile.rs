//! What happens when the other side is hostile. It knows the protocol byte by byte, but not the token.
//!
//! `TRAPLINE_HANDSHAKES` sets how many handshakes are tried with any bytes (48 by default; 100,000 before a release).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use agent::{AgentError, Connection, Link, VERSION};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::round_trip::START;
use crate::support::{Agent, Fake, TOKEN, impatient, limits, pair, token};

/// A message before both sides know each other.
fn message(kind: u8, says: &[u8]) -> Vec<u8> {
    let length = u32::try_from(says.len() + 1).expect("a length");
    [&length.to_le_bytes()[..], &[kind], says].concat()
}

/// A greeting of some version, and what stands behind the part that all versions have.
fn hello(version: u16, behind: &[u8]) -> Vec<u8> {
    let program = b"other 9.9";
    let says = [
        &b"trapline"[..],
        &version.to_le_bytes(),
        &[u8::try_from(program.len()).expect("a length")],
        program,
        behind,
    ];
    message(1, &says.concat())
}

/// Reads one message.
fn heard(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; usize::try_from(u32::from_le_bytes(length)).ok()?];
    stream.read_exact(&mut message).ok()?;
    let says = message.split_off(1);
    Some((message[0], says))
}

/// What an agent ended with that was sent these bytes and nothing more.
fn sent(bytes: &[u8]) -> AgentError {
    let (agent, mut host) = Agent::start(Fake::default(), limits());
    // It may have gone before all is sent.
    let _ = host.write_all(bytes);
    let _ = host.shutdown(Shutdown::Write);
    let mut rest = Vec::new();
    let _ = host.read_to_end(&mut rest);
    assert!(rest.len() < 300, "who is not known learns nothing");
    let (machine, ended) = agent.end();
    assert_eq!(machine.started, 0);
    ended.expect_err("nobody has shown a token").0
}

#[test]
fn another_protocol_is_known_at_once() {
    for text in [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\x0c",
    ] {
        let error = sent(text.as_bytes());
        assert!(
            matches!(error, AgentError::OtherProtocol),
            "{text}: {error}"
        );
    }
    let error = sent(&message(
        1,
        b"tripline............................................",
    ));
    assert!(matches!(error, AgentError::OtherProtocol), "{error}");
}

#[test]
fn lengths_are_not_believed() {
    for length in [u32::MAX, 1 << 31, 1 << 20, 257] {
        let error = sent(&[&length.to_le_bytes()[..], &[1; 600]].concat());
        assert!(
            matches!(error, AgentError::OtherProtocol),
            "{length}: {error}"
        );
    }
    let error = sent(&0u32.to_le_bytes());
    assert!(matches!(error, AgentError::Malformed { .. }), "{error}");
}

#[test]
fn another_version_is_named_on_both_sides() {
    let error = sent(&hello(VERSION + 1, &[]));
    let text = error.to_string();
    assert!(
        matches!(error, AgentError::Version { theirs, .. } if theirs == VERSION + 1),
        "{text}"
    );
    assert!(
        text.contains("other 9.9") && text.contains("version 3") && text.contains("version 2"),
        "{text}"
    );

    // The greeting of version 1 had a number behind the name.
    let error = sent(&hello(1, &[0; 32]));
    assert!(
        matches!(error, AgentError::Version { theirs: 1, .. }),
        "{error}"
    );

    // Whatever a later version's greeting has behind its own name.
    let (host, mut guest) = pair();
    let answers = thread::spawn(move || {
        heard(&mut guest).expect("a greeting");
        guest.write_all(&hello(7, &[])).expect("an answer");
        guest
    });
    let error = Connection::over(Link::Tcp(host), &token(TOKEN)).expect_err("another version");
    assert!(
        matches!(error, AgentError::Version { theirs: 7, .. }),
        "{error}"
    );
    answers.join().expect("it answers");
}

#[test]
fn a_wrong_token_gets_nothing() {
    let (agent, host) = Agent::start(Fake::default(), limits());
    let error = Connection::over(Link::Tcp(host), &token("another token, as long"));
    let error = error.expect_err("it is wrong");
    assert!(matches!(error, AgentError::WrongToken), "{error}");
    let (machine, ended) = agent.end();
    assert!(
        matches!(ended, Err((AgentError::WrongToken, None))),
        "{ended:?}"
    );
    assert_eq!(machine.started, 0);
}

#[test]
fn an_agent_without_the_token_is_found_out() {
    // It takes any handshake, and sends the host's own back, or anything.
    for back in [true, false] {
        let (host, mut guest) = pair();
        let answers = thread::spawn(move || {
            heard(&mut guest).expect("a greeting");
            guest.write_all(&hello(VERSION, &[])).expect("an answer");
            let (_, handshake) = heard(&mut guest).expect("a handshake");
            let handshake = if back { handshake } else { vec![0; 48] };
            let _ = guest.write_all(&message(3, &handshake));
            guest
        });
        let error = Connection::over(Link::Tcp(host), &token(TOKEN)).expect_err("it has no token");
        assert!(matches!(error, AgentError::WrongToken), "{error}");
        answers.join().expect("it answers");
    }
}

/// What a host sent to an agent that has its token, and the agent's answers, are of no use for another connection.
#[test]
fn what_was_overheard_cannot_be_said_again() {
    let (agent, guest_side) = Agent::start(Fake::default(), limits());
    let (host_side, middle) = pair();
    let (to_agent, from_agent) = (guest_side.try_clone().expect("a copy"), guest_side);
    let (to_host, from_host) = (middle.try_clone().expect("a copy"), middle);
    // Whoever is between them hears all.
    let listen = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let mut all = Vec::new();
            let mut room = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut room) {
                all.extend_from_slice(&room[..count]);
                if to.write_all(&room[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
            all
        })
    };
    let of_host = listen(from_host, to_agent);
    let of_agent = listen(from_agent, to_host);
    let mut host = Connection::over(Link::Tcp(host_side), &token(TOKEN)).expect("the same token");
    host.start(&START).expect("it records");
    drop(host);
    let (machine, _) = agent.end();
    assert_eq!(machine.started, 1);
    let overheard = of_host.join().expect("all of it");
    let answers = of_agent.join().expect("all of it");
    assert!(overheard.len() > 100 && answers.len() > 100);
    // Neither the token nor what both say: the guest's name is in what was answered.
    let has = |all: &[u8], what: &[u8]| all.windows(what.len()).any(|piece| piece == what);
    assert!(!has(&overheard, TOKEN.as_bytes()) && !has(&answers, TOKEN.as_bytes()));
    assert!(!has(&answers, b"guest-a"));
    let error = sent(&overheard);
    assert!(matches!(error, AgentError::WrongToken), "{error}");
}

/// Changes one byte of what a host sends, wherever it is. Of another length an agent waits for what never comes, which
/// other tests see to.
#[test]
fn a_changed_message_ends_the_connection() {
    let name = concat!("trapline ", env!("CARGO_PKG_VERSION")).len();
    let hello = 4 + 1 + 8 + 2 + 1 + name;
    let handshake = 4 + 1 + 48;
    let ready = 4 + 1 + 16;
    let start = 4 + 1 + 1 + 3 * 8 + 16;
    let begins = [0, hello, hello + handshake, hello + handshake + ready];
    let lengths = begins.map(|at| at..at + 4);
    let all = 0..begins[3] + start;
    for at in all.filter(|at| !lengths.iter().any(|length| length.contains(at))) {
        let (agent, guest_side) = Agent::start(Fake::default(), limits());
        let (host_side, middle) = pair();
        let mut to_agent = guest_side.try_clone().expect("a copy");
        let mut from_host = middle.try_clone().expect("a copy");
        let forward = thread::spawn(move || {
            let mut seen = 0;
            let mut room = [0; 4096];
            while let Ok(count @ 1..) = from_host.read(&mut room) {
                if (seen..seen + count).contains(&at) {
                    room[at - seen] ^= 0x10;
                }
                seen += count;
                if to_agent.write_all(&room[..count]).is_err() {
                    break;
                }
            }
            let _ = to_agent.shutdown(Shutdown::Write);
        });
        let (mut from_agent, mut to_host) = (guest_side, middle);
        let back = thread::spawn(move || {
            let _ = std::io::copy(&mut from_agent, &mut to_host);
            let _ = to_host.shutdown(Shutdown::Both);
        });
        let tried = Connection::over(Link::Tcp(host_side), &token(TOKEN))
            .and_then(|mut host| host.start(&START).map(drop));
        let (machine, ended) = agent.end();
        assert_eq!(machine.started, 0, "byte {at}: {ended:?}");
        assert!(tried.is_err(), "byte {at}: {tried:?}");
        forward.join().expect("it ends");
        back.join().expect("it ends");
    }
}

#[test]
fn a_peer_that_stalls_is_given_up() {
    for bytes in [
        &[][..],
        &[3],
        &hello(VERSION, &[])[..20],
        &hello(VERSION, &[]),
    ] {
        let (agent, mut host) = Agent::start(Fake::default(), impatient());
        host.write_all(bytes).expect("it is sent");
        let (_, ended) = agent.end();
        let (error, _) = ended.expect_err("it says nothing");
        assert!(matches!(error, AgentError::TimedOut), "{error}");
        drop(host);
    }
    // One byte at a time does not make it longer.
    let (agent, mut host) = Agent::start(Fake::default(), impatient());
    let drip = thread::spawn(move || {
        for byte in hello(VERSION, &[]) {
            if host.write_all(&[byte]).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        host
    });
    let (_, ended) = agent.end();
    assert!(matches!(ended, Err((AgentError::TimedOut, _))), "{ended:?}");
    drip.join().expect("it ends");
}

fn handshakes() -> u32 {
    let set = std::env::var("TRAPLINE_HANDSHAKES").ok();
    set.map_or(48, |set| set.parse().expect("a number"))
}

/// One message as a peer without the token may send it: of a kind that has its turn somewhere, or of any.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![4 => 1u8..6, 1 => any::<u8>()];
    let says = prop_oneof![
        2 => vec(any::<u8>(), 48),
        1 => vec(any::<u8>(), 32),
        1 => vec(any::<u8>(), 0..300),
        1 => Just(Vec::new()),
        1 => Just(hello(VERSION, &[])[5..].to_vec()),
    ];
    (kinds, says).prop_map(|(kind, says)| message(kind, &says))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(handshakes()))]

    #[test]
    fn an_agent_stands_any_messages(greets in any::<bool>(), pieces in vec(piece(), 0..5)) {
        let greeting = if greets { hello(VERSION, &[]) } else { Vec::new() };
        sent(&[greeting, pieces.concat()].concat());
    }

    #[test]
    fn a_host_stands_any_messages(greets in any::<bool>(), pieces in vec(piece(), 0..5)) {
        let (host, mut guest) = pair();
        let greeting = if greets { hello(VERSION, &[]) } else { Vec::new() };
        guest.write_all(&[greeting, pieces.concat()].concat()).expect("room");
        guest.shutdown(Shutdown::Write).expect("a connection");
        prop_assert!(Connection::over(Link::Tcp(host), &token(TOKEN)).is_err());
    }

    #[test]
    fn an_agent_stands_any_bytes(bytes in vec(any::<u8>(), 0..600), greets in any::<bool>(), cut in 0usize..60) {
        let greeting = match greets {
            true => hello(VERSION, &[]),
            false => Vec::new(),
        };
        let end = greeting.len().saturating_sub(cut);
        sent(&[&greeting[..end], &bytes].concat());
    }

    #[test]
    fn a_host_stands_any_bytes(bytes in vec(any::<u8>(), 0..600), greets in any::<bool>()) {
        let (host, mut guest) = pair();
        if greets {
            guest.write_all(&hello(VERSION, &[])).expect("room");
        }
        guest.write_all(&bytes).expect("room");
        guest.shutdown(Shutdown::Write).expect("a connection");
        let tried = Connection::over(Link::Tcp(host), &token(TOKEN));
        prop_assert!(tried.is_err());
    }
}
