//! Leases: work that one process at a time should do, and that nobody can finish who lost it.
//!
//! In: a name, who asks, the time. Out: a [`Lease`] with a *fencing number*, or nothing while somebody else has it.
//! A lease is a record in a shard, written by a commit that expects it as it was read. The version of that commit is the fencing
//! number: it grows with every grant, also across restarts, because versions do. A batch of the same shard that carries a lease
//! ([`Lease::guard`]) expects the record at that version, so it is refused once a newer lease was granted, whatever its holder
//! believes about the time. So leases need nothing of an engine but commits, and hold on every engine alike.
//! Invariants
//! - Of two who ask at once, one gets it.
//! - A clock that is wrong makes a lease change hands too early or too late; it never lets two holders commit.
//!
//! Not here: the key of a lease's record, which belongs to the layer above; the clock (`env`), whose time is given.

use crate::{Engine, Error, Expectation, ShardId, Space, Stamp, WriteBatch};
use bytes::{BufMut as _, Bytes};

const FORMAT: u8 = 1;

/// Where a lease stands, and who asks for it.
#[derive(Debug, Clone)]
pub struct LeaseRequest {
    /// The shard that it is of.
    pub shard: ShardId,
    /// The shard's epoch.
    pub epoch: u64,
    /// The key of its record, in space `Meta`.
    pub key: Bytes,
    /// Who asks: a number that no other process has.
    pub holder: u64,
    /// For how long.
    pub duration_micros: u64,
    /// Whether it is taken from whoever has it, by one who knows that all others are gone.
    pub takes_over: bool,
}

/// A lease that was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The version of the grant: larger than that of every grant before.
    pub fencing_number: u64,
    /// When others may have it, in microseconds since 1970.
    pub expires_micros: u64,
    key: Bytes,
    /// Of its record.
    expectation: Expectation,
}

/// A lease's record: `version (8, filled in by the engine) | format 1 | holder (8) | expires (8)`.
struct LeaseRecord {
    version: u64,
    holder: u64,
    expires_micros: u64,
}

impl LeaseRequest {
    /// Takes the lease if nobody has it, or takes it once more; nothing while somebody else has it.
    pub async fn acquire(&self, engine: &dyn Engine, now_micros: u64) -> Result<Option<Lease>, Error> {
        let found = self.found(engine).await?;
        if found.as_ref().is_some_and(|record| self.is_taken(record, now_micros)) {
            return Ok(None);
        }
        let expires_micros = now_micros.saturating_add(self.duration_micros);
        let record = LeaseRecord { version: 0, holder: self.holder, expires_micros };
        let mut batch = WriteBatch::new(self.shard, self.epoch);
        batch.expect(Space::Meta, self.key.clone(), expectation(found.as_ref()));
        batch.put(Space::Meta, self.key.clone(), record.encode(), Stamp::VALUE);
        match engine.commit(batch).await {
            Ok(version) => {
                let (key, expectation) = (self.key.clone(), Expectation::Version(version.0));
                Ok(Some(Lease { fencing_number: version.0, expires_micros, key, expectation }))
            }
            // Somebody was faster.
            Err(Error::Conflict { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Something like a lease without writing anything, for work that has to go on while storage takes only removals: it guards as
    /// long as nobody is granted the lease. Nothing while somebody else has it. Two may have one at a time.
    pub async fn stand_in(&self, engine: &dyn Engine, now_micros: u64) -> Result<Option<Lease>, Error> {
        let found = self.found(engine).await?;
        if found.as_ref().is_some_and(|record| self.is_taken(record, now_micros)) {
            return Ok(None);
        }
        let fencing_number = found.as_ref().map_or(0, |record| record.version);
        let (key, expectation) = (self.key.clone(), expectation(found.as_ref()));
        Ok(Some(Lease { fencing_number, expires_micros: now_micros, key, expectation }))
    }

    async fn found(&self, engine: &dyn Engine) -> Result<Option<LeaseRecord>, Error> {
        let view = engine.view(self.shard, self.epoch).await?;
        let found = view.get(Space::Meta, &self.key).await?;
        found.map(|value| LeaseRecord::decode(&value)).transpose()
    }

    fn is_taken(&self, record: &LeaseRecord, now_micros: u64) -> bool {
        record.holder != self.holder && record.expires_micros > now_micros && !self.takes_over
    }
}

/// What a batch expects that relies on the record as it was found.
fn expectation(found: Option<&LeaseRecord>) -> Expectation {
    found.map_or(Expectation::Absent, |record| Expectation::Version(record.version))
}

impl Lease {
    /// Has a batch of the lease's shard refused once a newer lease was granted.
    pub fn guard(&self, batch: &mut WriteBatch) {
        batch.expect(Space::Meta, self.key.clone(), self.expectation);
    }

    /// Gives the lease back, unless somebody else has it already.
    pub async fn release(self, engine: &dyn Engine, shard: ShardId, epoch: u64) -> Result<(), Error> {
        let mut batch = WriteBatch::new(shard, epoch);
        self.guard(&mut batch);
        // Without a record too the next grant has a larger number: it is the shard's version.
        batch.delete(Space::Meta, self.key);
        match engine.commit(batch).await {
            Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl LeaseRecord {
    fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(25);
        bytes.put_u64(self.version);
        bytes.put_u8(FORMAT);
        bytes.put_u64(self.holder);
        bytes.put_u64(self.expires_micros);
        bytes.into()
    }

    fn decode(bytes: &[u8]) -> Result<LeaseRecord, Error> {
        let malformed = || Error::Corruption { what: "the record of a lease cannot be read".to_owned() };
        let bytes: &[u8; 25] = bytes.try_into().map_err(|_| malformed())?;
        if bytes[8] != FORMAT {
            return Err(malformed());
        }
        let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|index| bytes[at + index]));
        Ok(LeaseRecord { version: number(0), holder: number(9), expires_micros: number(17) })
    }
}
