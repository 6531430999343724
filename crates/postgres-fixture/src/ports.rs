//! Free ports that stay free: a server that is started again must find its port as it left it.
//!
//! Ports that the system gives to outgoing connections are avoided: while a server is down, a client of anything could get its
//! port as a sender, and a client that tries to reach it could even get connected to itself.

use crate::{Error, While as _};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports to choose from, if the system leaves them alone.
const CHOICE: Range<u16> = 20_000..32_000;
const ATTEMPTS_MAX: u16 = 500;

/// A loopback port on which nobody listens, and a listener that holds it.
pub(crate) fn listener() -> Result<TcpListener, Error> {
    // Each call goes on where the last one ended, so that a port just given back does not change hands at once.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let choice = choice();
    let count = choice.end - choice.start;
    // Programs that run at the same time begin at different places.
    let first = RandomState::new().hash_one(std::process::id()) as u16 % count;
    NEXT.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed).ok();
    for _ in 0..ATTEMPTS_MAX {
        let port = choice.start + NEXT.fetch_add(1, Ordering::Relaxed) % count;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener);
        }
    }
    Err(Error::new(format!("none of {ATTEMPTS_MAX} ports in {choice:?} is free")))
}

/// Such a port, given back for somebody to take.
pub(crate) fn free_port() -> Result<u16, Error> {
    Ok(listener()?.local_addr().while_doing("look at a listener's address")?.port())
}

fn choice() -> Range<u16> {
    let outgoing = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let lowest = outgoing.split_whitespace().next().and_then(|number| number.parse::<u16>().ok());
    let highest = outgoing.split_whitespace().nth(1).and_then(|number| number.parse::<u16>().ok());
    match (lowest, highest) {
        (Some(lowest), _) if lowest >= CHOICE.end => CHOICE,
        (Some(lowest), _) if lowest > 5_000 => 2_000..lowest,
        (Some(_), Some(highest)) if highest < 60_000 => highest + 1..65_535,
        _ => CHOICE,
    }
}
