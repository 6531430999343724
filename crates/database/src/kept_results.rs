//! Finished results of queries, kept for the next page: groups, distinct values and rows in an order that no index has are
//! computed once for all pages, not once for each.
//!
//! In: what a page computed and did not give, with what it was computed for. Out: the same for a request that goes on there.
//! What is promised
//! - A result is found only by the number that the token of its own pages has, which is random, and only for the same query with
//!   the same parameters, scope and definition of the container. So nobody gets at rows that a request did not ask for itself.
//! - Its pages show the data as the page saw it that computed it: rows neither change nor repeat while they are given, whatever
//!   is written meanwhile. A request that may not be shown older data ([`KeptUse`]) is given a result only if nothing was written
//!   since, or nothing that it has seen.
//! - A result is gone after [`KEPT_MICROS_MAX`], when newer ones need its memory, when a query finds no memory, and with the
//!   process. The page is then computed again from its position, which is a place and not a count: what was there all the time
//!   is given once, as if nothing had been kept.
//! - Memory is reserved from the account's budget, and never more than a share of it.

use astrarium_env::{Memory, Reservation};
use astrarium_sql_exec::{KeptRows, KeptUse};
use astrarium_sql_functions::limits::approximate_bytes;
use astrarium_value::Value;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// How long a result is kept after its last page.
const KEPT_MICROS_MAX: u64 = 60_000_000;
/// The share of the account's memory that results may take, one of so many, and bytes at most.
const MEMORY_SHARE: usize = 16;
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// What is kept of a query.
#[derive(Clone)]
pub(crate) enum KeptResult {
    /// The rows that were not given yet.
    Rows(Arc<KeptRows>),
    /// The rows of the subquery in FROM.
    Input(Arc<[Value]>),
}

impl KeptResult {
    fn bytes(&self) -> usize {
        match self {
            KeptResult::Rows(rows) => rows.bytes(),
            KeptResult::Input(values) => values.iter().map(approximate_bytes).sum(),
        }
    }
}

/// What a result was computed for, and from.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ResultOrigin {
    /// Query, parameters, scope and container, as bytes.
    pub(crate) query: Vec<u8>,
    /// The LSN of each range that was looked at.
    pub(crate) lsns: Vec<u64>,
}

struct Kept {
    result: KeptResult,
    origin: ResultOrigin,
    reservation: Reservation,
    last_used_micros: u64,
}

/// Results by their numbers.
#[derive(Default)]
pub(crate) struct KeptResults {
    results: Mutex<HashMap<u64, Kept, RandomState>>,
}

impl KeptResults {
    /// Keeps a result; false if there is no memory for it.
    pub(crate) fn put(
        &self,
        id: u64,
        result: KeptResult,
        origin: ResultOrigin,
        memory: &Memory,
        now_micros: u64,
    ) -> bool {
        let bytes = result.bytes() + origin.query.len();
        let bytes_max = (memory.bytes_max() / MEMORY_SHARE).min(MEMORY_BYTES_MAX);
        let mut results = self.results.lock();
        drop_expired(&mut results, now_micros);
        let mut taken: usize = results.values().map(|kept| kept.reservation.bytes()).sum();
        while taken + bytes > bytes_max {
            let oldest = results.iter().min_by_key(|(_, kept)| kept.last_used_micros);
            let Some(oldest) = oldest.map(|(id, _)| *id) else { return false };
            taken -= results.remove(&oldest).map_or(0, |kept| kept.reservation.bytes());
        }
        let Some(reservation) = memory.reserve(bytes) else { return false };
        results.insert(id, Kept { result, origin, reservation, last_used_micros: now_micros });
        true
    }

    /// The result with a number, if it was computed for this and may be shown; and the LSNs that it shows.
    pub(crate) fn get(
        &self,
        id: u64,
        asked: &ResultOrigin,
        kept_use: KeptUse,
        now_micros: u64,
    ) -> Option<(KeptResult, Vec<u64>)> {
        let mut results = self.results.lock();
        drop_expired(&mut results, now_micros);
        let kept = results.get_mut(&id).filter(|kept| kept.origin.query == asked.query)?;
        let is_fresh = match kept_use {
            KeptUse::Never | KeptUse::Unchanged => false,
            KeptUse::Since(lsn) => matches!(kept.origin.lsns[..], [own] if own >= lsn),
            KeptUse::Always => true,
        };
        let is_shown = is_fresh || kept_use != KeptUse::Never && kept.origin.lsns == asked.lsns;
        if !is_shown {
            return None;
        }
        kept.last_used_micros = now_micros;
        Some((kept.result.clone(), kept.origin.lsns.clone()))
    }

    /// Gives back the memory of all results; false if there were none.
    pub(crate) fn clear(&self) -> bool {
        let results = std::mem::take(&mut *self.results.lock());
        !results.is_empty()
    }

    /// Gives back the memory of those that nobody asked for in a while.
    pub(crate) fn drop_expired(&self, now_micros: u64) {
        drop_expired(&mut self.results.lock(), now_micros);
    }
}

fn drop_expired(results: &mut HashMap<u64, Kept, RandomState>, now_micros: u64) {
    results.retain(|_, kept| now_micros.saturating_sub(kept.last_used_micros) <= KEPT_MICROS_MAX);
}
