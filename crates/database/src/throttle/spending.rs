//! What this process has spent of budgets that it shares with other processes, and what it was told they have.
//!
//! In: charges, by whose throughput and which range they are of. Out: what was spent since somebody last asked, to be told to the
//! others; and what others spent of budgets that nobody here has asked for yet.
//! Invariants
//! - Nothing is kept unless somebody asks for it again and again, and nothing for longer than [`WINDOW_MICROS`]: what was spent in
//!   seconds long gone is nobody's debt.
//! - Memory is bounded: beyond [`BUDGETS_MAX`] it begins anew.

use super::{BUDGETS_MAX, MICROS};
use astrarium_keys::Rid;
use astrarium_kv::ShardId;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long spending is kept for somebody to ask for it.
const WINDOW_MICROS: u64 = 2 * MICROS;

/// Request units that one process has spent of a budget which several share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpentUnits {
    /// Whose throughput it is: a container's, a database's whose containers share it, or the account's ([`Rid::ROOT`]) for operations
    /// on definitions.
    pub owner: Rid,
    /// The shard of the key range; 0 where all ranges have one budget.
    pub shard: u64,
    /// How many.
    pub units: f64,
}

/// A budget: whose it is, and of which shard.
pub(super) type BudgetKey = (Rid, ShardId);

#[derive(Default)]
pub(super) struct Spending {
    /// Whether somebody asks for it.
    is_asked: AtomicBool,
    notes: Mutex<SpendingNotes>,
}

#[derive(Default)]
struct SpendingNotes {
    /// When somebody last asked.
    asked: u64,
    own: HashMap<BudgetKey, f64, RandomState>,
    /// What others spent in about a second of budgets that nobody has here, and when that was told.
    elsewhere: HashMap<BudgetKey, (f64, u64), RandomState>,
}

impl Spending {
    /// Something was spent by a request that was let in at a time.
    pub(super) fn add(&self, budget: BudgetKey, units: f64, admitted: u64) {
        if !self.is_asked.load(Ordering::Relaxed) {
            return;
        }
        let mut notes = self.notes.lock();
        if admitted.saturating_sub(notes.asked) > WINDOW_MICROS || notes.own.len() >= BUDGETS_MAX {
            notes.own.clear();
        }
        *notes.own.entry(budget).or_default() += units;
    }

    /// What was spent since the last call.
    pub(super) fn take(&self, now: u64) -> Vec<SpentUnits> {
        self.is_asked.store(true, Ordering::Relaxed);
        let mut notes = self.notes.lock();
        let own = std::mem::take(&mut notes.own);
        let is_late = now.saturating_sub(notes.asked) > WINDOW_MICROS;
        notes.asked = now;
        if is_late {
            return Vec::new();
        }
        let spent = |((owner, shard), units): (BudgetKey, f64)| SpentUnits { owner, shard: shard.0, units };
        own.into_iter().map(spent).collect()
    }

    /// Others have spent something of a budget that nobody has here.
    pub(super) fn note_elsewhere(&self, budget: BudgetKey, units: f64, now: u64) {
        let mut notes = self.notes.lock();
        if notes.elsewhere.len() >= BUDGETS_MAX {
            notes.elsewhere.clear();
        }
        let (sum, told) = notes.elsewhere.entry(budget).or_insert((0.0, now));
        *sum = faded(*sum, *told, now) + units;
        *told = now;
    }

    /// What others have spent of a budget in the last second, about, for whoever begins with it.
    pub(super) fn take_elsewhere(&self, budget: BudgetKey, now: u64) -> f64 {
        let noted = self.notes.lock().elsewhere.remove(&budget);
        noted.map_or(0.0, |(sum, told)| faded(sum, told, now))
    }
}

/// What is left after some time of units that were spent: none after a second. Of a steady stream about a second's units are left.
fn faded(units: f64, then: u64, now: u64) -> f64 {
    let seconds = now.saturating_sub(then) as f64 / MICROS as f64;
    units * (1.0 - seconds).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: BudgetKey = (Rid::ROOT, ShardId(7));

    fn units(spent: &[SpentUnits]) -> f64 {
        spent.iter().map(|spent| spent.units).sum()
    }

    #[test]
    fn nothing_is_kept_for_nobody() {
        let spending = Spending::default();
        spending.add(BUDGET, 10.0, 5 * MICROS);
        assert_eq!(spending.take(5 * MICROS), []);
        spending.add(BUDGET, 1.0, 5 * MICROS);
        spending.add(BUDGET, 2.0, 5 * MICROS);
        let expected = SpentUnits { owner: Rid::ROOT, shard: 7, units: 3.0 };
        assert_eq!(spending.take(6 * MICROS), [expected]);
        assert_eq!(spending.take(6 * MICROS), []);
        // Nobody asked for minutes.
        spending.add(BUDGET, 10.0, 7 * MICROS);
        spending.add(BUDGET, 10.0, 700 * MICROS);
        assert_eq!(spending.take(701 * MICROS), []);
        spending.add(BUDGET, 4.0, 701 * MICROS);
        assert!((units(&spending.take(702 * MICROS)) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_steady_stream_elsewhere_is_a_second_s_units() {
        let spending = Spending::default();
        let mut now = 0;
        for _ in 0..100 {
            now += MICROS / 10;
            spending.note_elsewhere(BUDGET, 40.0, now);
        }
        let spent = spending.take_elsewhere(BUDGET, now);
        assert!((360.0..=400.0).contains(&spent), "{spent}");
        assert!(spending.take_elsewhere(BUDGET, now).abs() < 1e-9, "told once");
        spending.note_elsewhere(BUDGET, 40.0, now);
        assert!(spending.take_elsewhere(BUDGET, now + MICROS).abs() < 1e-9, "of a second that is over");
    }
}
