/*!
A small HTTP server for metrics, whose peers may all be hostile.

[`HttpServer`] answers in one thread. What it serves at `/metrics` somebody else makes, in another thread or process
([`PageMaker`]), and it asks for that by a socket ([`PageSource`]), so a slow count delays nobody who asks for
something else. Every other answer is a constant.

# Limits

| what | limit | beyond it |
| --- | --- | --- |
| a request's head | 8 KiB, 64 headers | 431 |
| time from the connection to the end of the head | 5 s | 408 |
| time from the request to a page | 10 s | 503 |
| time to take the answer | 10 s | closed |
| open connections | 256 | see below |
| texts in memory, of which somebody still reads | 8 | those who read the oldest are closed |

Times are deadlines for the whole, so nobody gains any by sending or taking a byte now and then. Where all connections
are in use, a new one takes the place of one that has its answer, of one whose request is not there yet, or of one
that takes nothing: of the peer that has the most, the oldest. Where there is none of these, the new one is answered
503.
Where the process has no file descriptors left, nothing is accepted for a tenth of a second.

GET and HEAD of HTTP/1.0 and 1.1 are answered (RFC 9112), always with `Connection: close`: Prometheus asks once in
seconds, and there is less to keep.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod answer;
mod bound;
mod connection;
mod connections;
mod handover;
mod pages;
mod request;
#[cfg(test)]
mod served;
mod server;
mod socket_file;

pub use answer::HttpStatus;
pub use bound::BoundSocket;
pub use pages::{PageMaker, PageRequest, PageSource, pages};
pub use server::{HttpServer, ServerCounts, ServerError, Site};
