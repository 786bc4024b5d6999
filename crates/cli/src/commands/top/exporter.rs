//! What is counted, for Prometheus.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use counts::Choice;
use httpd::{BoundSocket, HttpServer, PageMaker, ServerError, Site, pages};
use render::metrics::{CONTENT_TYPE, Metrics};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::watch::Watch;

/// How often it is looked which VMs there are.
const LOOK: Duration = Duration::from_secs(10);
/// How old a count may be that is served once more: however many ask, counting costs no more than this.
const YOUNG: Duration = Duration::from_millis(100);
/// The page at `/`.
const INDEX: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>trapline</title></head>\n\
                     <body><h1>trapline</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>\n";

/// Serves what is counted until the process is ended.
pub(super) fn serve(mut watch: Watch, address: SocketAddr, choice: &Choice) -> Result<()> {
    let socket = BoundSocket::tcp(address);
    let sockets = [socket.map_err(|error| anyhow!("{address}: {}", words::io_reason(&error)))?];
    let stop = stopped()?;
    let (source, mut maker) = pages()?;
    let server = thread::Builder::new().name("trapline-http".to_owned());
    let server = server.spawn(move || -> Result<(), ServerError> {
        let site = Site {
            index: INDEX,
            kind: CONTENT_TYPE,
            own: &mut |_| String::new(),
        };
        HttpServer::new(&sockets, source, site).run(stop.as_fd())
    })?;
    let counted = count(&mut watch, choice, &mut maker);
    // Without anybody who counts, the server ends.
    drop(maker);
    let served = server.join();
    counted?;
    served.map_err(|_| anyhow!("the thread that serves has ended"))??;
    Ok(())
}

/// Returns what can be read once this process is to end.
fn stopped() -> io::Result<UnixStream> {
    let (stopped, stops) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, stops.try_clone()?)?;
    }
    Ok(stopped)
}

/// Counts whenever that is asked for, until nobody can ask any more.
fn count(watch: &mut Watch, choice: &Choice, maker: &mut PageMaker) -> Result<()> {
    let mut metrics = Metrics::default();
    let mut looked = Instant::now();
    let mut last: Option<(Instant, String)> = None;
    while maker.is_asked()? {
        let text = match last.take() {
            Some((at, text)) if at.elapsed() < YOUNG => (at, text),
            _ => {
                if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    watch.look()?;
                }
                let total = watch.total()?;
                let counted = watch.named(&total, choice);
                (Instant::now(), metrics.text(&counted))
            }
        };
        maker.send(text.1.as_bytes())?;
        last = Some(text);
    }
    Ok(())
}
