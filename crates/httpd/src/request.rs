//! What is asked for: the head of a request.

use crate::answer::HttpStatus;

/// Bytes that the head of a request has at most. Prometheus' own have some 300.
pub(crate) const MOST_HEAD: usize = 8 << 10;
/// Headers that it has at most.
const MOST_HEADERS: usize = 64;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedPage {
    /// The metrics.
    Metrics,
    /// The page that says where they are.
    Index,
}

/// What is known of a request by what has come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestHead {
    /// More has to come.
    Incomplete,
    /// It is for a page.
    Asks {
        /// Which.
        page: AskedPage,
        /// Whether the head of the answer is all that is asked for.
        head_alone: bool,
    },
    /// It is for none.
    Refused {
        /// Why.
        status: HttpStatus,
        /// Whether the head of the answer is all that is asked for.
        head_alone: bool,
    },
}

/// Reads the head of a request.
pub(crate) fn read(bytes: &[u8]) -> RequestHead {
    let refused = |status| RequestHead::Refused {
        status,
        head_alone: false,
    };
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() < MOST_HEAD => return RequestHead::Incomplete,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return refused(HttpStatus::HeadTooLarge);
        }
        Err(_) => return refused(HttpStatus::BadRequest),
    }
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return refused(HttpStatus::BadRequest);
    };
    let head_alone = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return refused(HttpStatus::MethodNotAllowed),
    };
    let page = match path(target) {
        "/metrics" => AskedPage::Metrics,
        "/" => AskedPage::Index,
        _ => {
            return RequestHead::Refused {
                status: HttpStatus::NotFound,
                head_alone,
            };
        }
    };
    RequestHead::Asks { page, head_alone }
}

/// Returns the path of what is asked for. Prometheus may be set up to ask with parameters ('params' of a job), and a
/// proxy may name the host too (RFC 9112, 3.2.2).
fn path(target: &str) -> &str {
    let target = match target.strip_prefix("http://") {
        Some(rest) => rest.find(['/', '?']).map_or("/", |at| &rest[at..]),
        None => target,
    };
    let path = target
        .split_once(['?', '#'])
        .map_or(target, |(path, _)| path);
    if path.is_empty() { "/" } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(page: AskedPage, head_alone: bool) -> RequestHead {
        RequestHead::Asks { page, head_alone }
    }

    fn status(text: &str) -> u16 {
        match read(text.as_bytes()) {
            RequestHead::Refused { status, .. } => status.code(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn pages_are_found_as_clients_ask_for_them() {
        for (target, page) in [
            ("/metrics", AskedPage::Metrics),
            ("/metrics?job=a/b", AskedPage::Metrics),
            ("http://localhost:1/metrics", AskedPage::Metrics),
            ("/", AskedPage::Index),
            ("/?x", AskedPage::Index),
            ("http://localhost", AskedPage::Index),
            ("http://localhost?x", AskedPage::Index),
        ] {
            for version in ["1.0", "1.1"] {
                let get = format!("GET {target} HTTP/{version}\r\nHost: x\r\n\r\n");
                assert_eq!(read(get.as_bytes()), asks(page, false), "{get}");
                let head = format!("HEAD {target} HTTP/{version}\r\n\r\nGET / HTTP/1.1\r\n\r\n");
                assert_eq!(read(head.as_bytes()), asks(page, true), "{head}");
            }
        }
    }

    #[test]
    fn what_is_no_request_for_a_page_is_refused() {
        for (text, code) in [
            ("GET /x HTTP/1.1\r\n\r\n", 404),
            ("GET /metrics/ HTTP/1.1\r\n\r\n", 404),
            ("GET * HTTP/1.1\r\n\r\n", 404),
            (
                "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                405,
            ),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
            ("\x16\x03\x01\x02\x00\x01", 400),
            ("GET /metrics\r\n\r\n", 400),
            ("GET /metrics HTTP/1.1\r\nno header\r\n\r\n", 400),
        ] {
            assert_eq!(status(text), code, "{text}");
        }
        let many = "a: b\r\n".repeat(MOST_HEADERS + 1);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{many}\r\n")), 431);
        let long = "a".repeat(MOST_HEAD);
        assert_eq!(status(&format!("GET /{long}")), 431);
    }

    #[test]
    fn half_of_a_head_is_waited_for() {
        let whole = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(read(&whole.as_bytes()[..end]), RequestHead::Incomplete);
        }
    }
}
