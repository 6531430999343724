//! Who may take how much memory.
//!
//! In: settings and what the machine has. Out: what the caches of storage get, and the budget for everything that clients can
//! size.

use crate::machine;

/// Memory of the server, divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    /// For stored blocks that were read, in megabytes.
    pub(crate) cache_mb: u64,
    /// For scripts, all that run at once, in bytes.
    pub(crate) script_bytes: usize,
    /// For queries, bodies of requests and answers, in bytes.
    pub(crate) work_bytes: usize,
}

const CACHE_DEFAULT_MAX_MB: u64 = 1024;
const CACHE_MIN_MB: u64 = 16;
/// Without that much no query could be answered.
const WORK_MIN_MB: u64 = 32;

/// Divides the budget, both in megabytes if somebody gave them.
pub(crate) fn divide(budget_mb: Option<u64>, cache_mb: Option<u64>) -> anyhow::Result<Shares> {
    divide_of(machine::memory_bytes() >> 20, budget_mb, cache_mb)
}

fn divide_of(machine_mb: u64, budget_mb: Option<u64>, cache_mb: Option<u64>) -> anyhow::Result<Shares> {
    let budget = budget_mb.unwrap_or((machine_mb / 4).max(2 * WORK_MIN_MB));
    let cache = cache_mb.unwrap_or((budget / 2).clamp(CACHE_MIN_MB, CACHE_DEFAULT_MAX_MB));
    let work = match (budget_mb, budget.checked_sub(cache).filter(|work| *work >= WORK_MIN_MB)) {
        (_, Some(work)) => work,
        // A cache that somebody wants larger than what we would have taken is theirs to know.
        (None, None) => WORK_MIN_MB.max(budget / 2),
        (Some(budget), None) => anyhow::bail!(
            "--cache-mb {cache} leaves too little of --memory-budget {budget} for requests and queries: they need \
             {WORK_MIN_MB}. Give the cache less or the budget more"
        ),
    };
    let scripts = work / 4;
    let bytes = |megabytes: u64| usize::try_from(megabytes << 20).unwrap_or(usize::MAX);
    Ok(Shares { cache_mb: cache, script_bytes: bytes(scripts), work_bytes: bytes(work - scripts) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_machine_is_divided() {
        let check = |machine, budget, cache, expected: (u64, usize)| {
            let shares = divide_of(machine, budget, cache).expect("it can be divided");
            let work = (shares.work_bytes + shares.script_bytes) >> 20;
            assert_eq!((shares.cache_mb, work), expected, "{machine} {budget:?} {cache:?}");
            assert_eq!(shares.script_bytes, (work / 4) << 20);
        };
        check(24_000, None, None, (1024, 4976));
        check(2_000, None, None, (250, 250));
        check(100, None, None, (32, 32));
        check(24_000, Some(300), None, (150, 150));
        check(24_000, Some(300), Some(20), (20, 280));
        check(2_000, None, Some(1_000), (1_000, 250));
        assert!(divide_of(24_000, Some(300), Some(290)).is_err());
    }
}
