//! Whether a cluster takes connections: its own lock file says so, and a handshake over TCP succeeds.
//!
//! The handshake alone would not do: if the port was taken in the meantime, somebody else's PostgreSQL would answer it.

use rustix::process::Pid;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Longest message that is looked at; what comes before a client may ask something is short.
const MESSAGE_BYTES_MAX: u32 = 64 * 1024;

/// Whether this process serves the folder and takes connections.
pub(crate) fn is_ready(data: &Path, postmaster: Pid, port: u16) -> bool {
    let lock = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let lines: Vec<_> = lock.lines().map(str::trim).collect();
    let owner = lines.first().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
    owner == Some(postmaster) && lines.get(7) == Some(&"ready") && greets(port).is_some()
}

/// Connects as a client would, and leaves.
fn greets(port: u16) -> Option<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let time_max = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, time_max).ok()?;
    stream.set_read_timeout(Some(time_max)).ok()?;
    let parameters = b"user\0postgres\0database\0postgres\0\0";
    let mut hello = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
    // Version 3.0 of the protocol.
    hello.extend([0, 3, 0, 0]);
    hello.extend(parameters);
    stream.write_all(&hello).ok()?;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).ok()?;
        let [kind, length @ ..] = head;
        match kind {
            b'E' => return None,
            // Ready for a query. Leave as the protocol wants it, so that the log says nothing about it.
            b'Z' => return stream.write_all(&[b'X', 0, 0, 0, 4]).ok(),
            _ => {
                let length =
                    u32::from_be_bytes(length).checked_sub(4).filter(|it| *it <= MESSAGE_BYTES_MAX)?;
                std::io::copy(&mut (&mut stream).take(length.into()), &mut std::io::sink()).ok()?;
            }
        }
    }
}
