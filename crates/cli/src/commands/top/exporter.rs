//! What is counted, for Prometheus.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use counts::Choice;
use render::metrics::{CONTENT_TYPE, Metrics};
use tiny_http::{Header, Method, Request, Response, Server};

use super::watch::Watch;

/// How often it is looked which VMs there are.
const LOOK: Duration = Duration::from_secs(10);

/// Serves what is counted until the process is ended.
pub(super) fn serve(mut watch: Watch, address: SocketAddr, choice: Choice) -> Result<()> {
    let server = Server::http(address).map_err(|error| anyhow!("{address}: {error}"))?;
    let mut metrics = Metrics::default();
    let mut looked = Instant::now();
    for request in server.incoming_requests() {
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            watch.look()?;
        }
        // Prometheus may be set up to ask with parameters ('params' of a job), and whoever checks that it is up asks
        // for the head alone.
        let url = request.url();
        let path = url.split_once('?').map_or(url, |(path, _)| path);
        let answered = match (request.method(), path) {
            (Method::Get | Method::Head, "/metrics") => {
                let total = watch.total()?;
                let counted = watch.named(&total, &choice);
                answer(request, 200, CONTENT_TYPE, metrics.text(&counted))
            }
            (Method::Get | Method::Head, _) => {
                answer(request, 404, "text/plain", "see /metrics\n".to_owned())
            }
            _ => answer(request, 405, "text/plain", "only GET and HEAD\n".to_owned()),
        };
        // Whoever asked may be gone before the answer is; the next one is answered all the same.
        drop(answered);
    }
    Ok(())
}

fn answer(request: Request, status: u16, kind: &str, text: String) -> std::io::Result<()> {
    let mut response = Response::from_string(text).with_status_code(status);
    if let Ok(header) = Header::from_bytes("Content-Type", kind) {
        response.add_header(header);
    }
    request.respond(response)
}
