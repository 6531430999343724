//! Reads the answer to a request that a command of this program has sent over a connection of its own.
//!
//! In: a connection. Out: the bytes of one answer. Some servers and proxies keep the connection open after it, so its end is found by what
//! the answer says of its length, and nothing is waited for longer than the caller wants.

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What came of an answer, its head at least.
pub(crate) struct ReadAnswer {
    pub(crate) bytes: Vec<u8>,
    /// Whether its body did not come whole.
    pub(crate) is_cut: bool,
}

/// Reads an answer as far as it goes: some servers keep the connection open after it, whatever was asked for.
pub(crate) fn read_answer(
    stream: &mut TcpStream,
    time_max: Duration,
    bytes_max: usize,
) -> anyhow::Result<ReadAnswer> {
    let began = Instant::now();
    let mut answer = Vec::new();
    let mut is_cut = false;
    let mut piece = [0; 4096];
    while !is_whole(&answer) && answer.len() < bytes_max {
        let left = time_max.saturating_sub(began.elapsed());
        // No time left is an error for the system, and the next read's one for us.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) if body_start(&answer).is_some() => {
                is_cut = true;
                break;
            }
            Err(error) => return Err(error.into()),
        }
        if began.elapsed() >= time_max && body_start(&answer).is_none() {
            anyhow::bail!("it sends its answer too slowly");
        }
    }
    Ok(ReadAnswer { bytes: answer, is_cut })
}

/// Where the body of an answer begins, once its head is there.
fn body_start(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4)
}

/// Whether an answer is there with as many bytes as its head says, or with the end of its pieces.
fn is_whole(answer: &[u8]) -> bool {
    let Some(start) = body_start(answer) else { return false };
    let head = String::from_utf8_lossy(&answer[..start]).to_ascii_lowercase();
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    if value("transfer-encoding").is_some() {
        return answer.ends_with(b"\r\n0\r\n\r\n") || answer[start..].starts_with(b"0\r\n");
    }
    let length = value("content-length").and_then(|text| text.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() - start >= length)
}
