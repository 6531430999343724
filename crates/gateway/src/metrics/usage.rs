//! What clients use: requests, request units and refusals of throttling, by container, key range and operation.
//!
//! Counted in shares by thread, so that threads do not wait for each other; the page adds them up.
//! Invariants
//! - The page needs no signature, so containers are told by their rids, which mean nothing to strangers.
//! - It has at most [`ROWS_MAX`] key ranges, those that used most; the others are one row, `other`.

use crate::database::Rid;
use crate::operation::Action;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Key ranges that are told apart.
const ROWS_MAX: usize = 500;
/// Shares that are counted apart.
const SHARE_COUNT: usize = 16;

static NEXT_SHARE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The share of this thread.
fn own_share() -> usize {
    SHARE.with(|share| {
        if share.get() == usize::MAX {
            share.set(NEXT_SHARE.fetch_add(1, Ordering::Relaxed) % SHARE_COUNT);
        }
        share.get()
    })
}

/// Where a request was served.
pub(crate) type UsedRange = (Rid, u32);

/// What was used.
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemUsage {
    shares: Arc<[Mutex<UsageShare>; SHARE_COUNT]>,
}

type UsageRow = [OperationUsage; Action::ALL.len()];

#[derive(Debug, Default)]
struct UsageShare {
    rows: BTreeMap<UsedRange, Box<UsageRow>>,
    other: UsageRow,
}

/// What one operation used.
#[derive(Debug, Clone, Copy, Default)]
struct OperationUsage {
    requests: u64,
    charge: f64,
    throttled: u64,
}

/// What was used of a key range since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RangeTraffic {
    pub(crate) requests: u64,
    pub(crate) charge: f64,
    pub(crate) throttled: u64,
}

impl OperationUsage {
    fn add(&mut self, other: &OperationUsage) {
        self.requests += other.requests;
        self.charge += other.charge;
        self.throttled += other.throttled;
    }
}

impl ItemUsage {
    /// Counts a request that was served by, or refused at, a range.
    pub(crate) fn count(&self, range: UsedRange, action: Action, charge: f64, is_throttled: bool) {
        let place = Action::ALL.iter().position(|one| *one == action).unwrap_or(0);
        let mut share = locked(&self.shares[own_share()]);
        let UsageShare { rows, other } = &mut *share;
        let is_told = rows.len() < ROWS_MAX || rows.contains_key(&range);
        let row = if is_told { &mut **rows.entry(range).or_default() } else { other };
        row[place].add(&OperationUsage { requests: 1, charge, throttled: u64::from(is_throttled) });
    }

    /// What was used of the key ranges of a container, by the ids of those that are told apart.
    pub(crate) fn of_container(&self, container: Rid) -> BTreeMap<u32, RangeTraffic> {
        let mut found: BTreeMap<u32, RangeTraffic> = BTreeMap::new();
        for share in self.shares.iter() {
            let share = locked(share);
            for ((_, range), row) in share.rows.range((container, 0)..=(container, u32::MAX)) {
                let sum = found.entry(*range).or_default();
                for usage in row.iter() {
                    sum.requests += usage.requests;
                    sum.charge += usage.charge;
                    sum.throttled += usage.throttled;
                }
            }
        }
        found
    }

    /// All shares together, in the order of containers and ranges, and what is not told apart.
    fn sum(&self) -> (Vec<(UsedRange, Box<UsageRow>)>, UsageRow) {
        let mut rows: BTreeMap<UsedRange, Box<UsageRow>> = BTreeMap::new();
        let mut other = UsageRow::default();
        for share in self.shares.iter() {
            let share = locked(share);
            for (range, row) in &share.rows {
                add_row(rows.entry(*range).or_default(), row);
            }
            add_row(&mut other, &share.other);
        }
        let mut rows: Vec<(UsedRange, Box<UsageRow>)> = rows.into_iter().collect();
        let charge = |row: &UsageRow| row.iter().map(|usage| usage.charge).sum::<f64>();
        rows.sort_by(|left, right| charge(&right.1).total_cmp(&charge(&left.1)).then(left.0.cmp(&right.0)));
        for (_, row) in rows.drain(ROWS_MAX.min(rows.len())..) {
            add_row(&mut other, &row);
        }
        rows.sort_by_key(|row| row.0);
        (rows, other)
    }
}

/// Counts are whole after every step, also where a thread died.
fn locked(share: &Mutex<UsageShare>) -> MutexGuard<'_, UsageShare> {
    share.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add_row(sum: &mut UsageRow, row: &UsageRow) {
    sum.iter_mut().zip(row).for_each(|(sum, row)| sum.add(row));
}

/// One of the three series.
#[derive(Debug, Clone)]
pub(super) struct UsageSeries {
    usage: ItemUsage,
    value: UsageValue,
}

#[derive(Debug, Clone, Copy)]
enum UsageValue {
    Requests,
    Charge,
    Throttled,
}

impl ItemUsage {
    /// The series that tell of it, with names and descriptions.
    pub(super) fn series(&self) -> [(&'static str, &'static str, UsageSeries); 3] {
        let series = |value| UsageSeries { usage: self.clone(), value };
        [
            (
                "item_requests",
                "Requests about items by container, key range and operation",
                series(UsageValue::Requests),
            ),
            ("item_request_units", "Request units that they were charged", series(UsageValue::Charge)),
            (
                "item_requests_throttled",
                "Those refused because throughput was used up",
                series(UsageValue::Throttled),
            ),
        ]
    }
}

impl EncodeMetric for UsageSeries {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let (rows, other) = self.usage.sum();
        let named = rows.iter().map(|((rid, range), row)| (rid.to_string(), range.to_string(), &**row));
        for (container, range, row) in named.chain([("other".to_owned(), "other".to_owned(), &other)]) {
            for (action, usage) in Action::ALL.iter().zip(row).filter(|(_, usage)| usage.requests > 0) {
                let labels = [
                    ("container", container.as_str()),
                    ("range", range.as_str()),
                    ("operation", action.name()),
                ];
                let encoder = encoder.encode_family(&labels)?;
                match self.value {
                    UsageValue::Requests => ConstCounter::new(usage.requests).encode(encoder)?,
                    UsageValue::Charge => ConstCounter::new(usage.charge).encode(encoder)?,
                    UsageValue::Throttled => ConstCounter::new(usage.throttled).encode(encoder)?,
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
