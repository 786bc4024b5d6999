//! What is answered: a status, a head and a body (RFC 9110, RFC 9112).

use std::sync::Arc;

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpStatus {
    /// The page follows.
    Ok,
    /// The request is not one of HTTP/1.0 or 1.1.
    BadRequest,
    /// There is no such page.
    NotFound,
    /// Pages can be read, and nothing else.
    MethodNotAllowed,
    /// The request was not there in time.
    RequestTimeout,
    /// The request's head is too long.
    HeadTooLarge,
    /// The page was not made in time, or there are too many connections.
    Unavailable,
}

impl HttpStatus {
    /// All of them.
    pub const ALL: [HttpStatus; 7] = [
        HttpStatus::Ok,
        HttpStatus::BadRequest,
        HttpStatus::NotFound,
        HttpStatus::MethodNotAllowed,
        HttpStatus::RequestTimeout,
        HttpStatus::HeadTooLarge,
        HttpStatus::Unavailable,
    ];

    /// Returns its number.
    pub fn code(self) -> u16 {
        match self {
            HttpStatus::Ok => 200,
            HttpStatus::BadRequest => 400,
            HttpStatus::NotFound => 404,
            HttpStatus::MethodNotAllowed => 405,
            HttpStatus::RequestTimeout => 408,
            HttpStatus::HeadTooLarge => 431,
            HttpStatus::Unavailable => 503,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            HttpStatus::Ok => "OK",
            HttpStatus::BadRequest => "Bad Request",
            HttpStatus::NotFound => "Not Found",
            HttpStatus::MethodNotAllowed => "Method Not Allowed",
            HttpStatus::RequestTimeout => "Request Timeout",
            HttpStatus::HeadTooLarge => "Request Header Fields Too Large",
            HttpStatus::Unavailable => "Service Unavailable",
        }
    }

    /// What is said where there is no page.
    fn explanation(self) -> &'static str {
        match self {
            HttpStatus::Ok => "",
            HttpStatus::BadRequest => "expected a request of HTTP/1.0 or 1.1\n",
            HttpStatus::NotFound => "see /metrics\n",
            HttpStatus::MethodNotAllowed => "only GET and HEAD\n",
            HttpStatus::RequestTimeout => "the request was not complete in time\n",
            HttpStatus::HeadTooLarge => "the head of the request is too long\n",
            HttpStatus::Unavailable => "too busy: ask again later\n",
        }
    }
}

/// The type of what is said where there is no page.
const PLAIN: &str = "text/plain; charset=utf-8";

/// An answer on its way.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    head: Vec<u8>,
    body: Option<Arc<Vec<u8>>>,
    sent: usize,
}

impl HttpAnswer {
    /// Returns a page; of a request for its head, that alone.
    pub(crate) fn page(kind: &str, body: &Arc<Vec<u8>>, head_alone: bool) -> HttpAnswer {
        HttpAnswer {
            head: head(HttpStatus::Ok, kind, body.len()).into_bytes(),
            body: (!head_alone).then(|| Arc::clone(body)),
            sent: 0,
        }
    }

    /// Returns why there is no page.
    pub(crate) fn refusal(status: HttpStatus, head_alone: bool) -> HttpAnswer {
        let text = status.explanation();
        let mut head = head(status, PLAIN, text.len());
        if !head_alone {
            head.push_str(text);
        }
        HttpAnswer {
            head: head.into_bytes(),
            body: None,
            sent: 0,
        }
    }

    /// Returns whether it is this text.
    pub(crate) fn is_of(&self, text: &Arc<Vec<u8>>) -> bool {
        self.body
            .as_ref()
            .is_some_and(|body| Arc::ptr_eq(body, text))
    }

    /// Returns what is to be sent next; nothing once all is sent.
    pub(crate) fn rest(&self) -> &[u8] {
        match self.head.get(self.sent..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => {
                let body = self.body.as_ref().map_or(&[][..], |body| body.as_slice());
                body.get(self.sent - self.head.len()..).unwrap_or_default()
            }
        }
    }

    /// Notes that so many bytes of the rest were sent.
    pub(crate) fn was_sent(&mut self, bytes: usize) {
        self.sent += bytes.min(self.rest().len());
    }
}

fn head(status: HttpStatus, kind: &str, length: usize) -> String {
    let allow = match status {
        HttpStatus::MethodNotAllowed => "Allow: GET, HEAD\r\n",
        _ => "",
    };
    // Names of VMs are in the text: no browser is to take it for anything but text.
    format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}X-Content-Type-Options: \
         nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        status.code(),
        status.reason()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut answer: HttpAnswer, piece: usize) -> String {
        let mut sent = Vec::new();
        while !answer.rest().is_empty() {
            let next = answer.rest();
            let next = next[..piece.min(next.len())].to_vec();
            answer.was_sent(next.len());
            sent.extend(next);
        }
        String::from_utf8(sent).expect("text")
    }

    #[test]
    fn an_answer_is_sent_in_pieces_of_any_size() {
        let body = Arc::new(b"trapline 1\n".to_vec());
        for piece in [1, 7, 1000] {
            let text = all(HttpAnswer::page("text/plain", &body, false), piece);
            assert!(text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"));
            assert!(text.contains("\r\nContent-Length: 11\r\n"), "{text}");
            assert!(text.ends_with("\r\n\r\ntrapline 1\n"), "{text}");
            let text = all(HttpAnswer::page("text/plain", &body, true), piece);
            assert!(text.contains("\r\nContent-Length: 11\r\n") && text.ends_with("\r\n\r\n"));
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for status in HttpStatus::ALL {
            let text = all(HttpAnswer::refusal(status, false), 100);
            assert!(text.starts_with(&format!("HTTP/1.1 {} ", status.code())));
            assert!(text.ends_with(status.explanation()), "{text}");
            assert_eq!(text.contains("Allow:"), status.code() == 405);
        }
    }
}
