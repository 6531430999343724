//! `astrarium health`: whether a server takes requests, for probes of containers that have no other program.

use crate::settings::HealthSettings;
use anyhow::Context as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

/// How long the server may take to answer.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

pub(crate) fn run(settings: &HealthSettings) -> anyhow::Result<ExitCode> {
    let endpoint = settings.endpoint.clone().unwrap_or_else(|| format!("http://127.0.0.1:{}", settings.port));
    let (status, text) = ask(&endpoint)?;
    print!("{text}");
    Ok(if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks `/ready` over a connection of its own; gives the status and the text.
fn ask(endpoint: &str) -> anyhow::Result<(u16, String)> {
    let host = endpoint
        .strip_prefix("http://")
        .context("--endpoint must begin with http://, which every port of the server takes as well as TLS")?;
    let host = host.split('/').next().unwrap_or_default();
    let address = host.to_socket_addrs().with_context(|| format!("look up {host}"))?.next();
    let address = address.with_context(|| format!("no address is known for {host}"))?;
    let mut stream = TcpStream::connect_timeout(&address, TIME_MAX)
        .with_context(|| format!("connect to {host} (is the server running?)"))?;
    stream.set_read_timeout(Some(TIME_MAX))?;
    stream.set_write_timeout(Some(TIME_MAX))?;
    stream
        .write_all(format!("GET /ready HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).context("read the answer")?;
    let text = String::from_utf8_lossy(&answer);
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    Ok((status.context("the answer is not HTTP")?, body))
}
