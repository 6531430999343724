//! Whether the set has exactly the index entries that documents ask for, without holding either in memory.
//!
//! First everything is counted: each entry that a document asks for is added to a sum, each entry of the set is taken from
//! it. There is a sum for every remainder of document numbers, so where one does not come out even, only the documents of
//! that remainder have to be looked at entry by entry.
//! Invariant: memory is the sums and one step of a walk; time is two walks over the range, and more only for what is wrong.

use super::{Checked, Report};
use crate::Error;
use crate::sweep::Walk;
use crate::transaction::{as_indexed, etag};
use astrarium_env::yield_if_due;
use astrarium_keys::body::Body;
use astrarium_keys::index_entry::{NUMBER_BYTES, PREFIX_BYTES};
use astrarium_keys::{document, number};
use astrarium_kv::{Direction, FAMILY_BYTES, KeyList, KeyRange, ScanLimit, Space, View, just_after};
use bytes::Bytes;
use std::hash::{DefaultHasher, Hasher as _};

/// Sums, each for the documents whose number leaves one remainder.
const SUM_COUNT: u64 = 1 << 16;
/// Entries read at once.
const STEP: ScanLimit = ScanLimit { entry_count_max: 2_000, byte_count_max: 4 << 20 };

/// Entries asked for, less entries there.
pub(super) struct Balance {
    sums: Vec<Sum>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    count: i64,
    hash: u128,
}

impl Default for Balance {
    fn default() -> Balance {
        Balance { sums: vec![Sum::default(); SUM_COUNT as usize] }
    }
}

impl Balance {
    /// Adds what a document asks for.
    pub(super) fn ask(&mut self, checked: &Checked<'_>, key: &[u8], body: &Body) {
        for list in entries(checked, key, body) {
            for entry in list.iter() {
                let sum = &mut self.sums[place(body.header.number)];
                sum.count += 1;
                sum.hash = sum.hash.wrapping_add(hash(entry));
            }
        }
    }

    fn take(&mut self, number: u64, entry: &[u8]) {
        let sum = &mut self.sums[place(number)];
        sum.count -= 1;
        sum.hash = sum.hash.wrapping_sub(hash(entry));
    }

    fn is_even(&self, number: u64) -> bool {
        self.sums[place(number)] == Sum::default()
    }

    /// Walks the set and takes each entry; reports those that are none.
    pub(super) async fn of_entries(checked: &Checked<'_>, report: &mut Report) -> Result<Balance, Error> {
        let mut balance = Balance::default();
        let mut family = FamilyCount::default();
        let mut walk = KeyWalk::new(checked);
        while let Some(keys) = walk.next().await? {
            for key in keys.iter() {
                report.index_entries += 1;
                family.count(checked, key, report).await?;
                match (checked.generation_of(key), entry_number(key)) {
                    (Generation::Kept, Some(number)) => balance.take(number, key),
                    (Generation::Swept, _) => {}
                    _ => report.problem("index entry of an unknown generation or form", key),
                }
            }
        }
        family.end(checked, report).await?;
        Ok(balance)
    }

    /// Reports what does not come out even, when all documents have asked.
    pub(super) async fn judge(&self, checked: &Checked<'_>, report: &mut Report) -> Result<(), Error> {
        let is_wrong = self.sums.iter().any(|sum| *sum != Sum::default());
        if is_wrong {
            let before = report.problems.len();
            self.find_missing(checked, report).await?;
            self.find_extra(checked, report).await?;
            if report.problems.len() == before {
                report.problem(
                    "index entries and documents disagree",
                    &document::shard_prefix(checked.shard()),
                );
            }
        }
        Ok(())
    }

    async fn find_missing(&self, checked: &Checked<'_>, report: &mut Report) -> Result<(), Error> {
        let prefix = document::shard_prefix(checked.shard());
        let mut bodies = Walk::new(checked.view.clone(), Space::Body, &prefix);
        loop {
            let step = bodies.next().await?;
            if step.is_empty() || report.is_full() {
                return Ok(());
            }
            for (key, value) in step {
                yield_if_due().await;
                let Ok(body) = Body::decode(value) else { continue };
                if self.is_even(body.header.number) {
                    continue;
                }
                for list in entries(checked, &key, &body) {
                    for entry in list.iter() {
                        if !is_present(&*checked.view, entry).await? {
                            report.problem("index entry missing", entry);
                        }
                    }
                }
            }
        }
    }

    async fn find_extra(&self, checked: &Checked<'_>, report: &mut Report) -> Result<(), Error> {
        let mut walk = KeyWalk::new(checked);
        while let Some(keys) = walk.next().await? {
            if report.is_full() {
                break;
            }
            for key in keys.iter() {
                let Some(number) = entry_number(key).filter(|number| !self.is_even(*number)) else {
                    continue;
                };
                yield_if_due().await;
                if matches!(checked.generation_of(key), Generation::Kept)
                    && !is_asked(checked, number, key).await?
                {
                    report.problem("index entry without a document that has it", key);
                }
            }
        }
        Ok(())
    }
}

/// What a generation found in the set is.
pub(super) enum Generation {
    /// In use or under construction.
    Kept,
    /// Marked to be removed.
    Swept,
    /// Nothing that anybody knows of.
    Unknown,
}

/// The entries that a document asks for, in each generation that has it.
fn entries(checked: &Checked<'_>, key: &[u8], body: &Body) -> Vec<KeyList> {
    let etag = etag(body);
    let stored = as_indexed(body, &key[document::SHARD_PREFIX_LENGTH..], Some(&etag));
    let indexes = checked.indexes;
    let has = checked.watermark.is_some_and(|mark| mark.has(body.header.number, body.header.lsn));
    let building = indexes.building.as_ref().filter(|_| has);
    let sets = [Some(&indexes.active), building];
    sets.into_iter().flatten().map(|set| indexes.entries(set, checked.shard(), stored)).collect()
}

async fn is_asked(checked: &Checked<'_>, number: u64, entry: &[u8]) -> Result<bool, Error> {
    let view = &checked.view;
    let Some(suffix) = view.get(Space::Log, &number::number_key(checked.shard(), number)).await? else {
        return Ok(false);
    };
    let key = document::from_suffix(checked.shard(), &suffix);
    let body = view.get(Space::Body, &key).await?.map(Body::decode).transpose();
    let Ok(Some(body)) = body else { return Ok(false) };
    Ok(entries(checked, &key, &body).iter().any(|list| list.iter().any(|own| own == entry)))
}

async fn is_present(view: &dyn View, entry: &[u8]) -> Result<bool, Error> {
    let range = KeyRange { start: Bytes::copy_from_slice(entry), end: just_after(entry) };
    let limit = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
    Ok(!view.scan_keys(&range, Direction::Forward, limit).await?.keys.is_empty())
}

/// The document's number at the end of an entry; none in bytes that are no entry.
fn entry_number(entry: &[u8]) -> Option<u64> {
    let number = entry.get(PREFIX_BYTES..)?.last_chunk::<NUMBER_BYTES>()?;
    Some(u64::from_be_bytes(*number))
}

fn place(number: u64) -> usize {
    (number % SUM_COUNT) as usize
}

/// 128 bits, so that no two different lots of entries have the same sum.
fn hash(entry: &[u8]) -> u128 {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(which);
        hasher.write(entry);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// Compares the number of entries of each family with what the engine says without counting.
#[derive(Default)]
struct FamilyCount {
    family: Option<[u8; FAMILY_BYTES]>,
    count: u64,
}

impl FamilyCount {
    async fn count(&mut self, checked: &Checked<'_>, key: &[u8], report: &mut Report) -> Result<(), Error> {
        let family = key.first_chunk::<FAMILY_BYTES>().copied();
        if family != self.family {
            self.end(checked, report).await?;
            (self.family, self.count) = (family, 0);
        }
        self.count += 1;
        Ok(())
    }

    async fn end(&self, checked: &Checked<'_>, report: &mut Report) -> Result<(), Error> {
        let Some(family) = &self.family else { return Ok(()) };
        let told = checked.view.count_keys(family).await?;
        if told != self.count {
            let text = format!("storage counts {told} index entries of a family that has {}", self.count);
            report.problem(&text, family);
        }
        Ok(())
    }
}

/// Walks the index entries of a shard in bounded steps.
struct KeyWalk<'a> {
    view: &'a dyn View,
    rest: Option<KeyRange>,
}

impl<'a> KeyWalk<'a> {
    fn new(checked: &'a Checked<'_>) -> KeyWalk<'a> {
        let rest = Some(KeyRange::prefix(&checked.shard().to_be_bytes()));
        KeyWalk { view: &*checked.view, rest }
    }

    async fn next(&mut self) -> Result<Option<KeyList>, Error> {
        let Some(range) = &self.rest else { return Ok(None) };
        yield_if_due().await;
        let step = self.view.scan_keys(range, Direction::Forward, STEP).await?;
        self.rest = match step.keys.last() {
            Some(last) if step.more => Some(KeyRange { start: just_after(last), end: range.end.clone() }),
            _ => None,
        };
        Ok(Some(step.keys))
    }
}
