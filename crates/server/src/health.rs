//! `astrarium health`: whether a server takes requests, for probes of containers that have no other program.

use crate::http_answer::read_answer;
use crate::settings::HealthSettings;
use anyhow::Context as _;
use std::io::Write as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

/// How long the server may take to answer.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

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
    let looked_up = || format!("look up {host}: write a host and a port, such as http://127.0.0.1:8081");
    let mut connected = None;
    // A name may have several addresses, and the server listen on one of them.
    for address in host.to_socket_addrs().with_context(looked_up)? {
        connected = Some(TcpStream::connect_timeout(&address, TIME_MAX));
        if matches!(connected, Some(Ok(_))) {
            break;
        }
    }
    let connected = connected.with_context(looked_up)?;
    let mut stream = connected.with_context(|| format!("connect to {host} (is the server running?)"))?;
    stream.set_write_timeout(Some(TIME_MAX))?;
    stream
        .write_all(format!("GET /ready HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes())?;
    let answer = read_answer(&mut stream, TIME_MAX, ANSWER_BYTES_MAX)
        .with_context(|| format!("{host} did not answer GET /ready within {TIME_MAX:?}"))?;
    let text = String::from_utf8_lossy(&answer.bytes);
    let status = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    Ok((status.with_context(|| format!("what listens on {host} does not speak HTTP"))?, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;

    /// What is told of a server that sends this, and then keeps the connection open.
    fn told_of(sent: &'static [u8]) -> anyhow::Result<(u16, String)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(sent).unwrap();
            // Until the other side is done.
            let _ = stream.read(&mut request);
        });
        let told = ask(&format!("http://{address}"));
        server.join().unwrap();
        told
    }

    #[test]
    fn answers_end_where_they_say() {
        let told = told_of(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\nready\n");
        assert_eq!(told.unwrap(), (200, "ready\n".to_owned()));
        let told = told_of(b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n3\r\nno\n\r\n0\r\n\r\n");
        assert_eq!(told.unwrap().0, 503);
        assert_eq!(told_of(b"HTTP/1.0 204 No Content\r\nContent-Length: 0\r\n\r\n").unwrap().0, 204);
    }
}
