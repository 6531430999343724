//! Throttling: a container, or a database whose containers share, gives no more request units a second than it has provisioned.
//!
//! In: an offer, the key ranges that a request is for, what it cost. Out: a request is let in ([`Admitted`]) or told when to come
//! again ([`Error::Throttled`]).
//! A key range has an equal share of its container's throughput. A request is let in while its ranges have units left, and pays
//! afterwards, so that a dear one leaves a debt. What is not used within a second is banked, where a range has less than
//! [`BURST_RATE`], for bursts. Containers that share a database's throughput share one budget. Requests of low priority leave
//! a part of each second to the others.
//! Several processes give one budget together: each takes from its own what it is told that the others have spent
//! ([`MonitoringHandle::take_spent`], [`MonitoringHandle::note_spent_elsewhere`], some ten times a second). What two let in at once
//! beyond the budget is a debt of both. Offers that another process changed are noticed by a count in the catalog.
//! Invariants
//! - Off, it costs one look at a flag. It is off unless the server's setting or an offer says otherwise.
//! - Memory is bounded: beyond [`BUDGETS_MAX`] all budgets begin anew.
//!
//! Not here: charges (`charge`), the form of the refusal (`gateway`), how many ranges an offer means (`containers`), how processes
//! talk to each other (`server`).

mod bucket;
mod spending;

pub use spending::SpentUnits;

use crate::{AccountCore, DocumentsHandle, Error, MonitoringHandle};
use astrarium_catalog::container::Container;
use astrarium_catalog::definition::throughput::Offer;
use astrarium_catalog::{CATALOG_SHARD, records};
use astrarium_env::yield_if_due;
use astrarium_keys::Rid;
use astrarium_keys::record::RecordKind;
use astrarium_kv::{ShardId, View};
use astrarium_partition::PartitionKey;
use bucket::TokenBucket;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use spending::Spending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Budgets kept at most.
const BUDGETS_MAX: usize = 20_000;
/// Request units a second for operations on definitions, of the whole account.
const METADATA_RATE: f64 = 240.0;
/// Microseconds of a second.
const MICROS: u64 = 1_000_000;
/// A debt that takes so many seconds to work off is logged: whoever waits for it looks for the reason.
const LOGGED_DEBT_SECONDS: f64 = 1.0;
/// Microseconds between two such log lines of a budget.
const DEBT_LOG_INTERVAL: u64 = 60 * MICROS;
/// The shard of a budget that is not of one.
const WHOLE: ShardId = ShardId(0);

/// Which requests are let in.
pub(crate) struct Throttle {
    /// Whether offers that do not say otherwise are kept to.
    is_default: bool,
    /// Whether any offer is kept to.
    is_on: AtomicBool,
    budgets: Mutex<Budgets>,
    metadata: Mutex<Option<TokenBucket>>,
    spending: Arc<Spending>,
}

#[derive(Default)]
struct Budgets {
    /// By container; those that share have one in common.
    by_container: HashMap<Rid, Arc<ProvisionedBudget>, RandomState>,
    /// The same by whose offer it is.
    by_owner: HashMap<Rid, Arc<ProvisionedBudget>, RandomState>,
    /// Changes with every offer: what was read before does not count after.
    generation: u64,
    /// How often offers had been changed, in any process, when they were last looked at.
    changes_seen: Option<u64>,
}

/// What an offer gives.
struct ProvisionedBudget {
    /// Whose offer it is; the container where there is none.
    owner: Rid,
    spending: Arc<Spending>,
    terms: OfferTerms,
    is_shared: bool,
    /// Whose it is, as people call it.
    name: String,
    /// When a debt was logged last, in microseconds; 0 for never.
    debt_logged: AtomicU64,
    /// By shard; what is shared has one for all.
    buckets: Mutex<HashMap<ShardId, TokenBucket, RandomState>>,
}

/// What an offer means to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OfferTerms {
    /// Request units a second.
    rate: u32,
    /// Whether they are kept to.
    is_kept: bool,
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
    /// When it was, in microseconds.
    at: u64,
}

impl Admitted {
    /// Takes what the request cost from the ranges that it was for, each an equal part.
    pub fn pay(self, charge: f64) {
        let share = charge / self.shards.len().max(1) as f64;
        let mut debt_seconds = 0.0_f64;
        {
            let mut buckets = self.budget.buckets.lock();
            for shard in &self.shards {
                if let Some(bucket) = buckets.get_mut(shard) {
                    bucket.pay(share);
                    debt_seconds = debt_seconds.max(bucket.debt_seconds(share));
                    self.budget.spending.add((self.budget.owner, *shard), share, self.at);
                }
            }
        }
        if debt_seconds >= LOGGED_DEBT_SECONDS {
            self.budget.log_debt(charge, debt_seconds, self.at);
        }
    }
}

impl ProvisionedBudget {
    /// Says why requests are about to wait; at most once a minute.
    fn log_debt(&self, charge: f64, debt_seconds: f64, now: u64) {
        let last = self.debt_logged.load(Ordering::Relaxed);
        let is_due = last == 0 || now.saturating_sub(last) >= DEBT_LOG_INTERVAL;
        let taken =
            || self.debt_logged.compare_exchange(last, now.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if is_due && taken().is_ok() {
            tracing::warn!(
                of = self.name,
                charge = charge.round(),
                request_units_per_second = self.terms.rate,
                seconds = debt_seconds.ceil(),
                "one request cost more than a second's throughput; others are refused with 429 until that has come in again"
            );
        }
    }
}

impl Budgets {
    fn clear(&mut self) {
        self.by_container.clear();
        self.by_owner.clear();
    }

    /// Forgets budgets; what is being read now does not count any more.
    fn retain(&mut self, is_kept: impl Fn(Rid, &ProvisionedBudget) -> bool) {
        self.generation += 1;
        self.by_container.retain(|container, budget| is_kept(*container, budget));
        self.by_owner.retain(|owner, budget| is_kept(*owner, budget));
    }
}

impl Throttle {
    pub(crate) fn new(is_default: bool) -> Throttle {
        Throttle {
            is_default,
            is_on: AtomicBool::new(is_default),
            budgets: Mutex::default(),
            metadata: Mutex::new(None),
            spending: Arc::default(),
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
        self.budgets.lock().retain(|rid, _| rid != owner && rid.database_part() != Some(owner));
    }

    /// Goes by these offers, each with its owner, as of so many changes of offers.
    fn follow(&self, offers: &HashMap<Rid, Offer, RandomState>, changes: u64) {
        let is_any_kept = offers.values().any(|offer| offer.is_throttled == Some(true));
        self.is_on.fetch_or(is_any_kept, Ordering::Relaxed);
        let mut budgets = self.budgets.lock();
        budgets.changes_seen = Some(changes);
        // The others stay, with what was spent of them.
        budgets.retain(|_, budget| budget.terms == self.terms(offers.get(&budget.owner)));
    }

    fn terms(&self, offer: Option<&Offer>) -> OfferTerms {
        OfferTerms {
            rate: offer.map_or(0, |offer| offer.throughput.highest()),
            is_kept: offer.is_some_and(|offer| offer.is_throttled.unwrap_or(self.is_default)),
        }
    }

    /// Others have spent something.
    fn note_elsewhere(&self, spent: &SpentUnits, now: u64) {
        let (owner, shard) = (spent.owner, ShardId(spent.shard));
        if owner == Rid::ROOT {
            let mut metadata = self.metadata.lock();
            let bucket = metadata.get_or_insert_with(|| TokenBucket::new(METADATA_RATE, 0.0, now));
            return bucket.pay_elsewhere(spent.units, now);
        }
        let budget = self.budgets.lock().by_owner.get(&owner).cloned();
        let mut buckets = budget.as_ref().map(|budget| budget.buckets.lock());
        match buckets.as_mut().and_then(|buckets| buckets.get_mut(&shard)) {
            Some(bucket) => bucket.pay_elsewhere(spent.units, now),
            None => self.spending.note_elsewhere((owner, shard), spent.units, now),
        }
    }

    /// Lets an operation on definitions in, which costs so much.
    pub(crate) fn admit_metadata(&self, charge: f64, now: u64) -> Result<(), Error> {
        if !self.is_default {
            return Ok(());
        }
        let mut metadata = self.metadata.lock();
        let bucket = metadata.get_or_insert_with(|| TokenBucket::new(METADATA_RATE, 0.0, now));
        bucket.refill(METADATA_RATE, now);
        let admitted = bucket.admit(false);
        admitted.map_err(|retry_after_ms| Error::Throttled { retry_after_ms, range_id: None })?;
        bucket.pay(charge);
        self.spending.add((Rid::ROOT, WHOLE), charge, now);
        Ok(())
    }
}

impl DocumentsHandle<'_> {
    /// Lets a request in, or tells it when to come again; nothing where the container is not kept to its throughput.
    pub async fn admit(self, demand: ThroughputDemand<'_>) -> Result<Option<Admitted>, Error> {
        let DocumentsHandle { core, container } = self;
        let budget = core.provisioned_budget(container).await?;
        if !budget.terms.is_kept {
            return Ok(None);
        }
        let ranges = demand.ranges(container);
        let parts = if budget.is_shared { 1 } else { container.ranges.len() };
        let rate = f64::from(budget.terms.rate) / parts as f64;
        let shards: Vec<ShardId> =
            if budget.is_shared { vec![WHOLE] } else { ranges.iter().map(|range| range.0).collect() };
        let now = core.env().now_micros();
        {
            let mut buckets = budget.buckets.lock();
            for (place, shard) in shards.iter().enumerate() {
                let bucket = buckets.entry(*shard).or_insert_with(|| {
                    let spent = budget.spending.take_elsewhere((budget.owner, *shard), now);
                    TokenBucket::new(rate, spent, now)
                });
                bucket.refill(rate, now);
                let range_id = ranges.get(place).map(|range| range.1);
                bucket
                    .admit(demand.has_low_priority)
                    .map_err(|retry_after_ms| Error::Throttled { retry_after_ms, range_id })?;
            }
        }
        Ok(Some(Admitted { budget, shards, at: now }))
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

impl MonitoringHandle<'_> {
    /// What this process has spent of all budgets since the last call, for the other processes over the same storage. Whoever calls it
    /// does so some ten times a second; what nobody asks for within two seconds is not told.
    pub fn take_spent(self) -> Vec<SpentUnits> {
        self.core.shared.throttle.spending.take(self.core.env().now_micros())
    }

    /// Takes what another process has spent from the budgets of this one.
    pub fn note_spent_elsewhere(self, spent: &[SpentUnits]) {
        let now = self.core.env().now_micros();
        for spent in spent.iter().filter(|spent| spent.units.is_finite() && spent.units > 0.0) {
            self.core.shared.throttle.note_elsewhere(spent, now);
        }
    }
}

impl AccountCore {
    /// Finds out whether any offer is kept to although the setting does not say so. If that cannot be read, each container is
    /// asked when it has requests.
    pub(crate) async fn find_throttled_offers(&self) {
        if self.follow_offers().await.is_err() {
            self.shared.throttle.is_on.store(true, Ordering::Relaxed);
        }
    }

    /// Reads all offers if any was changed since they were read last, in whatever process; tells whether that was so.
    pub(crate) async fn follow_offers(&self) -> Result<bool, Error> {
        let throttle = &self.shared.throttle;
        let changes = records::offer_changes(self.engine().shard(CATALOG_SHARD).await?);
        if throttle.budgets.lock().changes_seen == Some(changes) {
            return Ok(false);
        }
        let view = self.catalog().await?;
        let mut offers = HashMap::default();
        for resource in records::list_all(&*view, RecordKind::Offer, Rid::ROOT).await? {
            yield_if_due().await;
            if let Some(owner) = Rid::parse(&resource.record.id) {
                offers.insert(owner, crate::offers::stored_offer(&resource)?);
            }
        }
        throttle.follow(&offers, changes);
        Ok(true)
    }

    async fn provisioned_budget(&self, container: &Container) -> Result<Arc<ProvisionedBudget>, Error> {
        let (throttle, rid) = (&self.shared.throttle, container.rid());
        let generation = {
            let budgets = throttle.budgets.lock();
            if let Some(known) = budgets.by_container.get(&rid) {
                return Ok(Arc::clone(known));
            }
            budgets.generation
        };
        let view = self.catalog().await?;
        let (offer, sharing) = match self.offer_of(&*view, rid).await? {
            Some(offer) => (Some(offer), None),
            None => match rid.database_part() {
                Some(database) => (self.offer_of(&*view, database).await?, Some(database)),
                None => (None, None),
            },
        };
        let owner = sharing.filter(|_| offer.is_some()).unwrap_or(rid);
        let mut budgets = throttle.budgets.lock();
        if budgets.by_container.len() >= BUDGETS_MAX {
            budgets.clear();
        }
        let budget = match budgets.by_owner.get(&owner) {
            Some(shared) if shared.is_shared => Arc::clone(shared),
            _ => Arc::new(ProvisionedBudget {
                owner,
                spending: Arc::clone(&throttle.spending),
                terms: throttle.terms(offer.as_ref()),
                is_shared: owner != rid,
                name: if owner == rid {
                    format!("{}/{}", container.database_id, container.definition.id)
                } else {
                    container.database_id.clone()
                },
                debt_logged: AtomicU64::new(0),
                buckets: Mutex::default(),
            }),
        };
        if budgets.generation == generation {
            budgets.by_container.insert(rid, Arc::clone(&budget));
            budgets.by_owner.insert(owner, Arc::clone(&budget));
        }
        Ok(budget)
    }

    async fn offer_of(&self, view: &dyn View, owner: Rid) -> Result<Option<Offer>, Error> {
        let found = self.find_offer(view, owner).await?;
        found.map(|offer| crate::offers::stored_offer(&offer)).transpose()
    }
}
