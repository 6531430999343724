//! The state of making new key ranges of a container's, in space `Meta`.
//!
//! - `0B | container rid` -> [`ReshardingRecord`]. Written by commits of the catalog only. Without one the container's ranges are what is
//!   wanted.
//! - `06 | shard (8) | 01` -> [`CopyRecord`]: how far the copy into a new shard is. Written with every commit of the copy, which expects
//!   it as it was, so that of two who copy into one shard only one gets any further.

use crate::record::KeyRangeRow;
use crate::{Malformed, Rid, tags};
use bytes::{Buf as _, BufMut as _, Bytes};

const FORMAT: u8 = 1;
const FORMAT_WITH_PLACES: u8 = 2;
const COPY_FORMAT: u8 = 1;
/// Stands for "wherever there is room".
const ANYWHERE: u32 = u32::MAX;
/// Stands for "not known yet".
const UNKNOWN: u64 = u64::MAX;

/// What is wanted of a container's ranges, and how far that is: `version (8, filled in by the engine) | format (1) | goal (1) | its two
/// numbers (4, 4) | stage (1) | number (8) | place (4, in format 2 only) | count of sources (2) | their ids (4 each) | targets` (as
/// [`KeyRangeRow`]s). Format 2 is written where a place is named, format 1 everywhere else, which older programs read too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReshardingRecord {
    /// The commit of the catalog that wrote it.
    pub version: u64,
    /// What is wanted.
    pub goal: ReshardingGoal,
    /// What is being done for it at present.
    pub work: Option<ReshardingWork>,
}

/// What is wanted of a container's ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReshardingGoal {
    /// So many at least.
    Count(u32),
    /// That one is split.
    Split(u32),
    /// That two neighbours are one, the lower one first.
    Merge(u32, u32),
    /// That one is in another place.
    Move {
        /// The range.
        range: u32,
        /// Where to; wherever there is room if it is not said.
        place: Option<u32>,
    },
}

/// Ranges that are copied into new ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReshardingWork {
    /// A number that no other resharding has.
    pub number: u64,
    /// Whether the sources take no more writes, because the rest is copied.
    pub is_closed: bool,
    /// The ids of the ranges that are copied, in order of their keys.
    pub sources: Vec<u32>,
    /// The ranges that take their place.
    pub targets: Vec<KeyRangeRow>,
    /// Where the new shards are put, if that was said.
    pub place: Option<u32>,
}

impl ReshardingRecord {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(128);
        bytes.put_u64(self.version);
        let (goal, first, second) = match self.goal {
            ReshardingGoal::Count(count) => (1, count, 0),
            ReshardingGoal::Split(id) => (2, id, 0),
            ReshardingGoal::Merge(low, high) => (3, low, high),
            ReshardingGoal::Move { range, place } => (4, range, place.unwrap_or(ANYWHERE)),
        };
        let place = self.work.as_ref().and_then(|work| work.place);
        let format = if goal == 4 || place.is_some() { FORMAT_WITH_PLACES } else { FORMAT };
        bytes.put_u8(format);
        bytes.put_u8(goal);
        bytes.put_u32(first);
        bytes.put_u32(second);
        bytes.put_u8(match &self.work {
            None => 0,
            Some(work) if !work.is_closed => 1,
            Some(_) => 2,
        });
        if let Some(work) = &self.work {
            bytes.put_u64(work.number);
            if format == FORMAT_WITH_PLACES {
                bytes.put_u32(place.unwrap_or(ANYWHERE));
            }
            bytes.put_u16(work.sources.len() as u16);
            work.sources.iter().for_each(|id| bytes.put_u32(*id));
            bytes.put_slice(&KeyRangeRow::encode_all(&work.targets));
        }
        bytes.into()
    }

    /// Reads what the engine stores.
    pub fn decode(mut bytes: &[u8]) -> Result<ReshardingRecord, Malformed> {
        let malformed = || Malformed::new("resharding of a container");
        let version = bytes.try_get_u64().map_err(|_| malformed())?;
        let format = bytes.try_get_u8().map_err(|_| malformed())?;
        if ![FORMAT, FORMAT_WITH_PLACES].contains(&format) {
            return Err(malformed());
        }
        let named = |place: u32| Some(place).filter(|place| *place != ANYWHERE);
        let goal = bytes.try_get_u8().map_err(|_| malformed())?;
        let first = bytes.try_get_u32().map_err(|_| malformed())?;
        let second = bytes.try_get_u32().map_err(|_| malformed())?;
        let goal = match goal {
            1 => ReshardingGoal::Count(first),
            2 => ReshardingGoal::Split(first),
            3 => ReshardingGoal::Merge(first, second),
            4 if format == FORMAT_WITH_PLACES => ReshardingGoal::Move { range: first, place: named(second) },
            _ => return Err(malformed()),
        };
        let is_closed = match bytes.try_get_u8().map_err(|_| malformed())? {
            0 if bytes.is_empty() => return Ok(ReshardingRecord { version, goal, work: None }),
            1 => false,
            2 => true,
            _ => return Err(malformed()),
        };
        let number = bytes.try_get_u64().map_err(|_| malformed())?;
        let place = match format {
            FORMAT => None,
            _ => named(bytes.try_get_u32().map_err(|_| malformed())?),
        };
        let count = bytes.try_get_u16().map_err(|_| malformed())?;
        let sources =
            (0..count).map(|_| bytes.try_get_u32().map_err(|_| malformed())).collect::<Result<_, _>>()?;
        let targets = KeyRangeRow::decode_all(bytes)?;
        Ok(ReshardingRecord {
            version,
            goal,
            work: Some(ReshardingWork { number, is_closed, sources, targets, place }),
        })
    }
}

/// The key of a container's record.
pub fn resharding_key(container: Rid) -> Bytes {
    let mut key = vec![tags::meta::RESHARDING];
    key.extend_from_slice(container.as_bytes());
    key.into()
}

/// The container's rid in the key of its record.
pub fn read_resharding_key(key: &[u8]) -> Result<Rid, Malformed> {
    let malformed = || Malformed::new("key of a resharding");
    Rid::from_bytes(key.get(1..).ok_or_else(malformed)?).ok_or_else(malformed)
}

/// How far the copy into a new shard is: `version (8, filled in by the engine) | format 1 | number of the resharding (8) | version of
/// the definition (8) | version of the generations (8) | count of sources (2)`, and for each source `number (8) | last number (8) | LSN
/// (8) | history (8, 4) | documents (8)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyRecord {
    /// The commit of the shard that wrote it.
    pub version: u64,
    /// The resharding that it is of.
    pub resharding: u64,
    /// What the copy goes by: the versions of the container's definition and of its index's generations.
    pub versions: (u64, u64),
    /// For each source.
    pub progress: Vec<CopyProgress>,
}

/// How far the copy of a source into a new shard is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Documents up to this number are copied.
    pub number: u64,
    /// The highest number that a document had when the copy began; `None` until somebody looked.
    pub last_number: Option<u64>,
    /// Changes of documents up to this LSN are copied.
    pub lsn: u64,
    /// History up to this entry is copied.
    pub history: (u64, u32),
    /// Documents copied so far.
    pub documents: u64,
}

impl CopyRecord {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(35 + 44 * self.progress.len());
        bytes.put_u64(self.version);
        bytes.put_u8(COPY_FORMAT);
        bytes.put_u64(self.resharding);
        bytes.put_u64(self.versions.0);
        bytes.put_u64(self.versions.1);
        bytes.put_u16(self.progress.len() as u16);
        for progress in &self.progress {
            bytes.put_u64(progress.number);
            bytes.put_u64(progress.last_number.unwrap_or(UNKNOWN));
            bytes.put_u64(progress.lsn);
            bytes.put_u64(progress.history.0);
            bytes.put_u32(progress.history.1);
            bytes.put_u64(progress.documents);
        }
        bytes.into()
    }

    /// Reads what the engine stores.
    pub fn decode(bytes: &[u8]) -> Result<CopyRecord, Malformed> {
        CopyRecord::read(bytes).ok_or(Malformed::new("progress of a copy"))
    }

    fn read(mut bytes: &[u8]) -> Option<CopyRecord> {
        let version = bytes.try_get_u64().ok()?;
        if bytes.try_get_u8().ok()? != COPY_FORMAT {
            return None;
        }
        let resharding = bytes.try_get_u64().ok()?;
        let versions = (bytes.try_get_u64().ok()?, bytes.try_get_u64().ok()?);
        let count = bytes.try_get_u16().ok()?;
        let mut progress = Vec::new();
        for _ in 0..count {
            progress.push(CopyProgress {
                number: bytes.try_get_u64().ok()?,
                last_number: Some(bytes.try_get_u64().ok()?).filter(|last| *last != UNKNOWN),
                lsn: bytes.try_get_u64().ok()?,
                history: (bytes.try_get_u64().ok()?, bytes.try_get_u32().ok()?),
                documents: bytes.try_get_u64().ok()?,
            });
        }
        bytes.is_empty().then_some(CopyRecord { version, resharding, versions, progress })
    }
}

/// The key of the record of a copy into a shard.
pub fn copy_key(shard: u64) -> Bytes {
    let mut key = [tags::meta::WATERMARK; 10];
    key[1..9].copy_from_slice(&shard.to_be_bytes());
    key[9] = 1;
    Bytes::copy_from_slice(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_other_bytes_are_refused() {
        let target = |id: u32| KeyRangeRow {
            id,
            shard: 70,
            min: vec![1],
            max: vec![0xFF],
            parents: vec![0, 2],
            is_merged: id > 6,
        };
        let goals = [
            ReshardingGoal::Count(4),
            ReshardingGoal::Split(3),
            ReshardingGoal::Merge(1, 2),
            ReshardingGoal::Move { range: 2, place: Some(1) },
            ReshardingGoal::Move { range: 2, place: None },
        ];
        let split = ReshardingWork {
            number: 9,
            is_closed: false,
            sources: vec![2],
            targets: vec![target(5), target(6)],
            place: None,
        };
        let merge = ReshardingWork {
            is_closed: true,
            sources: vec![2, 7],
            targets: vec![target(8)],
            ..split.clone()
        };
        let moved = ReshardingWork { targets: vec![target(5)], place: Some(0), ..split.clone() };
        for goal in goals {
            for work in [None, Some(split.clone()), Some(merge.clone()), Some(moved.clone())] {
                let record = ReshardingRecord { version: 7, goal, work };
                let bytes = record.encode();
                assert_eq!(ReshardingRecord::decode(&bytes), Ok(record));
                for length in 0..bytes.len() {
                    assert!(ReshardingRecord::decode(&bytes[..length]).is_err(), "{length} bytes");
                }
            }
        }
    }

    #[test]
    fn records_without_places_are_as_they_were() {
        let target = KeyRangeRow {
            id: 5,
            shard: 70,
            min: vec![1],
            max: vec![0xFF],
            parents: vec![0, 2],
            is_merged: false,
        };
        let rows = KeyRangeRow::encode_all(std::slice::from_ref(&target));
        let old =
            [&[0; 7][..], &[7, 1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 1], &[0; 7], &[9, 0, 1, 0, 0, 0, 2], &rows];
        let old = old.concat();
        let work = ReshardingWork {
            number: 9,
            is_closed: false,
            sources: vec![2],
            targets: vec![target],
            place: None,
        };
        let record = ReshardingRecord { version: 7, goal: ReshardingGoal::Split(3), work: Some(work) };
        assert_eq!(ReshardingRecord::decode(&old), Ok(record.clone()));
        assert_eq!(record.encode()[..], old[..], "older programs read them");
        let mut moved = old.clone();
        moved[9] = 4;
        assert!(ReshardingRecord::decode(&moved).is_err(), "the first format has no moves");
    }

    #[test]
    fn progress_comes_back_and_other_bytes_are_refused() {
        let begun = CopyProgress::default();
        let progress = CopyProgress {
            number: 4,
            last_number: Some(9),
            lsn: 70,
            history: (u64::MAX, u32::MAX),
            documents: 3,
        };
        for progress in [vec![], vec![begun], vec![progress, begun]] {
            let record = CopyRecord { version: 3, resharding: 8, versions: (5, 0), progress };
            let bytes = record.encode();
            assert_eq!(CopyRecord::decode(&bytes), Ok(record));
            for length in 0..bytes.len() {
                assert!(CopyRecord::decode(&bytes[..length]).is_err(), "{length} bytes");
            }
            assert!(CopyRecord::decode(&[&bytes[..], &[0]].concat()).is_err());
        }
        assert_eq!(copy_key(300)[..], [6, 0, 0, 0, 0, 0, 0, 1, 44, 1]);
    }
}
