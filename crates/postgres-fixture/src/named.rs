//! A store that whoever runs the tests names: Citus, YugabyteDB, or a PostgreSQL that is there already.

use std::sync::atomic::{AtomicU32, Ordering};

/// Its address, `postgres://user@host:port/database`. Tests make schemas of their own in it, and leave them there.
const STORE_VARIABLE: &str = "ASTRARIUM_TEST_STORE";

/// The address of a schema of its own in the store that the environment names; nothing if it names none.
pub fn named_store() -> Option<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let url = std::env::var(STORE_VARIABLE).ok().filter(|url| !url.is_empty())?;
    let separator = if url.contains('?') { '&' } else { '?' };
    // No two programs that run at the same time, or one after the other, have the same.
    let began = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis());
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Some(format!("{url}{separator}schema=test_{process}_{began}_{number}"))
}
