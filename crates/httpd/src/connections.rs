//! All connections, and which of them makes room for another.

use std::time::{Duration, Instant};

use crate::bound::HttpPeer;
use crate::connection::{HttpConnection, HttpPhase};

/// Connections that are open at a time, at most.
pub(crate) const MOST: usize = 256;
/// Who has taken nothing for so long may have to make room.
const STALLED: Duration = Duration::from_millis(20);

/// Returns which connection makes room for another, if one does: one that has its answer, or whose request is not
/// there yet, or that takes nothing; of these one of the peer that has the most; of these the one that waits longest.
pub(crate) fn makes_room(connections: &[HttpConnection], now: Instant) -> Option<usize> {
    let mut peers: Vec<(HttpPeer, usize)> = Vec::new();
    for connection in connections {
        match peers.iter_mut().find(|(peer, _)| *peer == connection.peer) {
            Some((_, count)) => *count += 1,
            None => peers.push((connection.peer, 1)),
        }
    }
    let of_peer = |wanted| {
        let found = peers.iter().find(|(peer, _)| *peer == wanted);
        found.map_or(0, |(_, count)| *count)
    };
    let ranked = connections.iter().enumerate().filter_map(|(at, one)| {
        let (rank, since) = match &one.phase {
            HttpPhase::Close(_) => (2, one.since),
            HttpPhase::Head(_) => (1, one.since),
            HttpPhase::Answer { took, .. } if now.duration_since(*took) >= STALLED => (0, *took),
            HttpPhase::Answer { .. } | HttpPhase::Page { .. } => return None,
        };
        Some(((rank, of_peer(one.peer), now.duration_since(since)), at))
    });
    ranked.max().map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::answer::{HttpAnswer, HttpStatus};

    fn connection(peer: u8, since: Instant, phase: HttpPhase) -> HttpConnection {
        let (socket, _) = UnixStream::pair().expect("a pair");
        HttpConnection {
            phase,
            ..HttpConnection::new(socket.into(), HttpPeer::V4([10, 0, 0, peer]), since)
        }
    }

    #[test]
    fn the_oldest_of_who_has_most_makes_room() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let head = || HttpPhase::Head(Vec::new());
        let answer = |ms| HttpPhase::Answer {
            answer: HttpAnswer::refusal(HttpStatus::NotFound, false),
            took: at(ms),
        };
        let page = HttpPhase::Page { head_alone: false };
        let mut all = vec![connection(1, at(0), page), connection(2, at(0), answer(95))];
        assert_eq!(makes_room(&all, at(100)), None);
        assert_eq!(makes_room(&all, at(115)), Some(1), "it takes nothing");
        all.push(connection(3, at(1), head()));
        all.push(connection(4, at(3), head()));
        all.push(connection(4, at(2), head()));
        assert_eq!(makes_room(&all, at(115)), Some(4));
        all.push(connection(5, at(9), HttpPhase::Close(1)));
        assert_eq!(makes_room(&all, at(115)), Some(5), "it has its answer");
    }
}
