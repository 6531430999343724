//! Throttling: a container, or a database whose containers share, gives no more request units a second than it has provisioned.
//!
//! In: an offer, the key ranges that a request is for, what it cost. Out: a request is let in ([`Admitted`]) or told when to come
//! again ([`Error::Throttled`]).
//! A key range has an equal share of its container's throughput. A request is let in while its ranges have units left, and pays
//! afterwards, so that a dear one leaves a debt. What is not used within a second is banked, where a range has less than
//! [`BURST_RATE`], for bursts. Containers that share a database's throughput share one budget. Requests of low priority leave
//! a part of each second to the others.
//! Invariants
//! - Off, it costs one look at a flag. It is off unless the server's setting or an offer says otherwise.
//! - Memory is bounded: beyond [`BUDGETS_MAX`] all budgets begin anew.
//!
//! Not here: charges (`charge`), the form of the refusal (`gateway`), how many ranges an offer means (`containers`).

use crate::{AccountCore, DocumentsHandle, Error};
use astrarium_catalog::container::Container;
use astrarium_catalog::definition::throughput::Offer;
use astrarium_catalog::records;
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{ShardId, View};
use astrarium_partition::PartitionKey;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Budgets kept at most.
const BUDGETS_MAX: usize = 20_000;
/// Ranges of less throughput may bank what they do not use, and spend so much a second from it.
const BURST_RATE: f64 = 3_000.0;
/// So many seconds of throughput can be banked.
const BANKED_SECONDS: f64 = 300.0;
/// The part of a second's units that requests of low priority leave to the others.
const HIGH_PRIORITY_SHARE: f64 = 0.25;
/// Request units a second for operations on definitions, of the whole account.
const METADATA_RATE: f64 = 240.0;

/// Which requests are let in.
pub(crate) struct Throttle {
    /// Whether offers that do not say otherwise are kept to.
    is_default: bool,
    /// Whether any offer is kept to.
    is_on: AtomicBool,
    /// By container; those that share have one in common.
    budgets: Mutex<HashMap<Rid, Arc<ProvisionedBudget>, RandomState>>,
    /// Changes with every offer: what was read before does not count after.
    generation: AtomicU64,
    metadata: Mutex<Option<TokenBucket>>,
}

/// What an offer gives.
struct ProvisionedBudget {
    /// Request units a second.
    rate: f64,
    is_kept: bool,
    is_shared: bool,
    /// By shard; what is shared has one for all.
    buckets: Mutex<HashMap<ShardId, TokenBucket, RandomState>>,
}

/// What a request is for, as far as throttling goes by it.
#[derive(Debug, Clone, Copy)]
pub struct ThroughputDemand<'a> {
    /// Its partition key.
    pub partition_key: Option<&'a PartitionKey>,
    /// The range that it names, if it names no key.
    pub range_id: Option<u32>,
    /// Whether others go before it.
    pub has_low_priority: bool,
}

/// A request that was let in, and has to pay.
#[must_use = "a request that was let in pays"]
pub struct Admitted {
    budget: Arc<ProvisionedBudget>,
    shards: Vec<ShardId>,
}

impl Admitted {
    /// Takes what the request cost from the ranges that it was for, each an equal part.
    pub fn pay(self, charge: f64) {
        let share = charge / self.shards.len().max(1) as f64;
        let mut buckets = self.budget.buckets.lock();
        for shard in &self.shards {
            if let Some(bucket) = buckets.get_mut(shard) {
                bucket.pay(share);
            }
        }
    }
}

impl Throttle {
    pub(crate) fn new(is_default: bool) -> Throttle {
        Throttle {
            is_default,
            is_on: AtomicBool::new(is_default),
            budgets: Mutex::default(),
            generation: AtomicU64::new(0),
            metadata: Mutex::new(None),
        }
    }

    /// Whether any request may be refused.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Takes note of an offer that is new or has changed.
    pub(crate) fn offer_changed(&self, owner: Rid, offer: &Offer) {
        if offer.is_throttled == Some(true) {
            self.is_on.store(true, Ordering::Relaxed);
        }
        self.forget(owner);
    }

    /// Forgets what an offer gave to its owner, and to the containers that share it.
    pub(crate) fn forget(&self, owner: Rid) {
        let mut budgets = self.budgets.lock();
        self.generation.fetch_add(1, Ordering::Relaxed);
        budgets.retain(|container, _| *container != owner && container.database_part() != Some(owner));
    }

    /// Lets an operation on definitions in, which costs so much.
    pub(crate) fn admit_metadata(&self, charge: f64, now: u64) -> Result<(), Error> {
        if !self.is_default {
            return Ok(());
        }
        let mut metadata = self.metadata.lock();
        let bucket = metadata.get_or_insert_with(|| TokenBucket::new(METADATA_RATE, now));
        bucket.refill(METADATA_RATE, now);
        let admitted = bucket.admit(METADATA_RATE, false);
        admitted.map_err(|retry_after_ms| Error::Throttled { retry_after_ms, range_id: None })?;
        bucket.pay(charge);
        Ok(())
    }
}

impl DocumentsHandle<'_> {
    /// Lets a request in, or tells it when to come again; nothing where the container is not kept to its throughput.
    pub async fn admit(self, demand: ThroughputDemand<'_>) -> Result<Option<Admitted>, Error> {
        let DocumentsHandle { core, container } = self;
        let budget = core.provisioned_budget(container).await?;
        if !budget.is_kept {
            return Ok(None);
        }
        let ranges = demand.ranges(container);
        let rate = if budget.is_shared { budget.rate } else { budget.rate / container.ranges.len() as f64 };
        let shards: Vec<ShardId> =
            if budget.is_shared { vec![ShardId(0)] } else { ranges.iter().map(|range| range.0).collect() };
        let now = core.env().now_micros();
        {
            let mut buckets = budget.buckets.lock();
            for (place, shard) in shards.iter().enumerate() {
                let bucket = buckets.entry(*shard).or_insert_with(|| TokenBucket::new(rate, now));
                bucket.refill(rate, now);
                let range_id = ranges.get(place).map(|range| range.1);
                bucket
                    .admit(rate, demand.has_low_priority)
                    .map_err(|retry_after_ms| Error::Throttled { retry_after_ms, range_id })?;
            }
        }
        Ok(Some(Admitted { budget, shards }))
    }
}

impl ThroughputDemand<'_> {
    /// The ranges that a request is for, by shard and id: all, if it does not say.
    fn ranges(self, container: &Container) -> Vec<(ShardId, u32)> {
        let definition = &container.definition.partition_key;
        let whole = self.partition_key.filter(|key| {
            let count = key.components().len();
            count == definition.paths.len() || (count == 0 && definition.system_key)
        });
        if let Some(key) = whole {
            let range = container.range_of(&definition.effective(&definition.canonical(key.clone())));
            return vec![(range.shard, range.id)];
        }
        let all = container.ranges.iter().map(|range| (range.shard, range.id));
        let named: Vec<(ShardId, u32)> = all.clone().filter(|(_, id)| self.range_id == Some(*id)).collect();
        if named.is_empty() { all.collect() } else { named }
    }
}

impl AccountCore {
    /// Finds out whether any offer is kept to although the setting does not say so. If that cannot be read, each container is
    /// asked when it has requests.
    pub(crate) async fn find_throttled_offers(&self) {
        if self.note_offers().await.is_err() {
            self.shared.throttle.is_on.store(true, Ordering::Relaxed);
        }
    }

    async fn note_offers(&self) -> Result<(), Error> {
        let view = self.catalog().await?;
        for offer in records::list_all(&*view, RecordKind::Offer, Rid::ROOT).await? {
            yield_if_due().await;
            let offer = crate::offers::stored_offer(&offer)?;
            self.shared.throttle.is_on.fetch_or(offer.is_throttled == Some(true), Ordering::Relaxed);
        }
        Ok(())
    }

    async fn provisioned_budget(&self, container: &Container) -> Result<Arc<ProvisionedBudget>, Error> {
        let (throttle, rid) = (&self.shared.throttle, container.rid());
        if let Some(known) = throttle.budgets.lock().get(&rid) {
            return Ok(Arc::clone(known));
        }
        let generation = throttle.generation.load(Ordering::Relaxed);
        let view = self.catalog().await?;
        let (offer, sharing) = match self.offer_of(&*view, rid).await? {
            Some(offer) => (Some(offer), None),
            None => match rid.database_part() {
                Some(database) => (self.offer_of(&*view, database).await?, Some(database)),
                None => (None, None),
            },
        };
        let mut budgets = throttle.budgets.lock();
        if budgets.len() >= BUDGETS_MAX {
            budgets.clear();
        }
        let shared = budgets.iter().find(|(other, budget)| {
            sharing.is_some() && budget.is_shared && other.database_part() == sharing
        });
        let budget = match shared {
            Some((_, budget)) => Arc::clone(budget),
            None => Arc::new(ProvisionedBudget {
                rate: offer.map_or(0.0, |offer| f64::from(offer.throughput.highest())),
                is_kept: offer.is_some_and(|offer| offer.is_throttled.unwrap_or(throttle.is_default)),
                is_shared: sharing.is_some(),
                buckets: Mutex::default(),
            }),
        };
        if throttle.generation.load(Ordering::Relaxed) == generation {
            budgets.insert(rid, Arc::clone(&budget));
        }
        Ok(budget)
    }

    async fn offer_of(&self, view: &dyn View, owner: Rid) -> Result<Option<Offer>, Error> {
        let found = self.find_offer(view, owner).await?;
        found.map(|offer| crate::offers::stored_offer(&offer)).transpose()
    }
}

/// Request units that are left.
#[derive(Debug, Clone)]
struct TokenBucket {
    /// Of this second; less than none is a debt.
    tokens: f64,
    /// Of seconds before.
    banked: f64,
    /// What may be spent of those in this second.
    burst: f64,
    /// When it was filled last, in microseconds.
    filled: u64,
}

impl TokenBucket {
    fn new(rate: f64, now: u64) -> TokenBucket {
        TokenBucket { tokens: rate, banked: 0.0, burst: BURST_RATE, filled: now }
    }

    fn refill(&mut self, rate: f64, now: u64) {
        // A clock that was set back gives nothing.
        let seconds = now.saturating_sub(self.filled) as f64 / 1_000_000.0;
        self.filled = now;
        self.tokens += rate * seconds;
        self.burst = (self.burst + BURST_RATE * seconds).min(BURST_RATE);
        let unused = self.tokens - rate;
        if unused > 0.0 {
            self.tokens = rate;
            let banked_max = if rate < BURST_RATE { BANKED_SECONDS * rate } else { 0.0 };
            self.banked = (self.banked + unused).min(banked_max);
        }
    }

    /// Whether a request is let in; otherwise the milliseconds until one is.
    fn admit(&self, rate: f64, has_low_priority: bool) -> Result<(), u64> {
        let floor = if has_low_priority { HIGH_PRIORITY_SHARE * rate } else { 0.0 };
        let can_burst = !has_low_priority && self.banked > 0.0 && self.burst > 0.0;
        if self.tokens > floor || can_burst {
            return Ok(());
        }
        let milliseconds = (floor - self.tokens) / rate.max(1.0) * 1_000.0;
        Err((milliseconds.ceil() as u64).max(1))
    }

    fn pay(&mut self, charge: f64) {
        let own = charge.min(self.tokens.max(0.0));
        let burst = (charge - own).min(self.banked).min(self.burst.max(0.0));
        self.banked -= burst;
        self.burst -= burst;
        self.tokens -= charge - burst;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// Lets requests of a charge in, one after another, until one is refused; how many, and how long it has to wait.
    fn spend(bucket: &mut TokenBucket, rate: f64, charge: f64, now: u64, is_low: bool) -> (u32, u64) {
        bucket.refill(rate, now);
        let mut count = 0;
        loop {
            match bucket.admit(rate, is_low) {
                Ok(()) => bucket.pay(charge),
                Err(wait) => return (count, wait),
            }
            count += 1;
        }
    }

    #[test]
    fn a_second_has_its_units_and_a_dear_request_leaves_a_debt() {
        let mut bucket = TokenBucket::new(400.0, 0);
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, false), (40, 1));
        assert_eq!(spend(&mut bucket, 400.0, 10.0, SECOND / 2, false), (20, 1));
        // One request of 1,000 units is let in and has to be worked off.
        assert_eq!(spend(&mut bucket, 400.0, 1_000.0, SECOND, false), (1, 2_000));
        assert_eq!(spend(&mut bucket, 400.0, 1.0, 2 * SECOND, false), (0, 1_000));
        assert_eq!(spend(&mut bucket, 400.0, 1.0, SECOND, false).0, 0, "a clock that is set back");
    }

    #[test]
    fn what_is_not_used_is_banked_for_bursts() {
        let mut bucket = TokenBucket::new(400.0, 0);
        // 10 s unused are 4,000 units, of which a second may spend 3,000 besides its own.
        assert_eq!(spend(&mut bucket, 400.0, 100.0, 10 * SECOND, false).0, 34);
        let mut bucket = TokenBucket::new(400.0, 0);
        bucket.refill(400.0, 3_600 * SECOND);
        assert!((bucket.banked - 120_000.0).abs() < 1e-6);
        let mut large = TokenBucket::new(5_000.0, 0);
        assert_eq!(spend(&mut large, 5_000.0, 100.0, 10 * SECOND, false).0, 50);
    }

    #[test]
    fn low_priority_is_refused_first() {
        let mut bucket = TokenBucket::new(400.0, 0);
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, true), (30, 1));
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, false), (10, 1));
        assert_eq!(spend(&mut bucket, 400.0, 10.0, 0, true), (0, 250));
    }
}
