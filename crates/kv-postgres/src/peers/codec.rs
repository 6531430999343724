//! Batches and outcomes as bytes, for the way between servers.
//!
//! In: a batch, an outcome. Out: bytes, and back. Numbers are big-endian; lists and byte strings have their length before them.
//! Invariants
//! - What was encoded decodes to the same.
//! - Whatever bytes come, decoding ends, takes no more memory than they have, and does not panic. What it gives is checked by the
//!   contract like a batch of this server's own.

use astrarium_kv::{
    CommitVersion, Error, Expectation, Founding, KeyList, KeyPrefix, Mutation, ShardId, Space, Stamp,
    ValuedChanges, WriteBatch,
};
use bytes::{Buf, BufMut, Bytes};

/// What a server asks of another, or tells it.
#[derive(Debug, Clone)]
pub(crate) enum PeerRequest {
    /// Commit this, and tell the outcome.
    Commit(Box<WriteBatch>),
    /// Something for the layers above; nothing is answered but that it came.
    Notice(Bytes),
}

const COMMIT: u8 = 1;
const NOTICE: u8 = 2;

pub(crate) fn encode_request(request: &PeerRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    match request {
        PeerRequest::Commit(batch) => {
            bytes.put_u8(COMMIT);
            put_batch(&mut bytes, batch);
        }
        PeerRequest::Notice(notice) => {
            bytes.put_u8(NOTICE);
            bytes.put_slice(notice);
        }
    }
    bytes
}

pub(crate) fn decode_request(mut bytes: Bytes) -> Option<PeerRequest> {
    match bytes.try_get_u8().ok()? {
        COMMIT => {
            let batch = get_batch(&mut bytes)?;
            bytes.is_empty().then(|| PeerRequest::Commit(Box::new(batch)))
        }
        NOTICE => Some(PeerRequest::Notice(bytes)),
        _ => None,
    }
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.put_u32(bytes.len() as u32);
    to.put_slice(bytes);
}

/// A part of the bytes, not copied.
fn get_bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = from.try_get_u32().ok()? as usize;
    (length <= from.len()).then(|| from.split_to(length))
}

fn put_space(to: &mut Vec<u8>, space: Option<Space>) {
    to.put_u8(space.map_or(u8::MAX, |space| space as u8));
}

fn get_space(from: &mut Bytes) -> Option<Space> {
    Space::ALL.get(usize::from(from.try_get_u8().ok()?)).copied()
}

fn get_prefix(from: &mut Bytes) -> Option<KeyPrefix> {
    let space = if from.first() == Some(&u8::MAX) {
        from.advance(1);
        None
    } else {
        Some(get_space(from)?)
    };
    Some(KeyPrefix { space, bytes: get_bytes(from)? })
}

/// So many of something; the list grows as they are found, whatever number is claimed.
fn get_list<T>(from: &mut Bytes, mut get: impl FnMut(&mut Bytes) -> Option<T>) -> Option<Vec<T>> {
    let count = from.try_get_u32().ok()?;
    (0..count).map(|_| get(from)).collect()
}

fn put_batch(to: &mut Vec<u8>, batch: &WriteBatch) {
    to.put_u64(batch.shard.0);
    to.put_u64(batch.epoch);
    to.put_u64(batch.high_water);
    batch.tallies.iter().for_each(|tally| to.put_i64(*tally));
    to.put_u32(batch.fences.len() as u32);
    batch.fences.iter().for_each(|shard| to.put_u64(shard.0));
    to.put_u32(batch.foundings.len() as u32);
    for (shard, founding) in &batch.foundings {
        to.put_u64(shard.0);
        to.put_u64(founding.version);
        to.put_u64(founding.high_water);
        founding.tallies.iter().for_each(|tally| to.put_i64(*tally));
    }
    to.put_u32(batch.expectations.len() as u32);
    for (space, key, expectation) in &batch.expectations {
        put_space(to, Some(*space));
        put_bytes(to, key);
        match expectation {
            Expectation::Absent => to.put_u8(0),
            Expectation::Present => to.put_u8(1),
            Expectation::Version(version) => {
                to.put_u8(2);
                to.put_u64(*version);
            }
        }
    }
    to.put_u32(batch.mutations.len() as u32);
    batch.mutations.iter().for_each(|mutation| put_mutation(to, mutation));
    put_keys(to, &batch.set.added);
    put_keys(to, &batch.set.removed);
    let valued = batch.set.valued.as_deref();
    for entries in [valued.map(|valued| &valued.added), valued.map(|valued| &valued.replaced)] {
        to.put_u32(entries.map_or(0, |entries| entries.len() as u32));
        for (key, value) in entries.iter().flat_map(|entries| entries.iter()) {
            put_bytes(to, key);
            put_bytes(to, value);
        }
    }
    to.put_u32(batch.drops.shards.len() as u32);
    batch.drops.shards.iter().for_each(|shard| to.put_u64(shard.0));
    to.put_u32(batch.drops.prefixes.len() as u32);
    for prefix in &batch.drops.prefixes {
        put_space(to, prefix.space);
        put_bytes(to, &prefix.bytes);
    }
}

fn put_keys(to: &mut Vec<u8>, keys: &KeyList) {
    to.put_u32(keys.len() as u32);
    keys.iter().for_each(|key| put_bytes(to, key));
}

fn get_keys(from: &mut Bytes) -> Option<KeyList> {
    let mut keys = KeyList::new();
    for _ in 0..from.try_get_u32().ok()? {
        keys.push(&get_bytes(from)?);
    }
    Some(keys)
}

fn put_mutation(to: &mut Vec<u8>, mutation: &Mutation) {
    match mutation {
        Mutation::Put { space, key, value, stamp } => {
            to.put_u8(1 | u8::from(stamp.value) << 1 | u8::from(stamp.key_offset.is_some()) << 2);
            put_space(to, Some(*space));
            put_bytes(to, key);
            put_bytes(to, value);
            if let Some(offset) = stamp.key_offset {
                to.put_u32(offset);
            }
        }
        Mutation::Delete { space, key } => {
            to.put_u8(0);
            put_space(to, Some(*space));
            put_bytes(to, key);
        }
    }
}

fn get_mutation(from: &mut Bytes) -> Option<Mutation> {
    let flags = from.try_get_u8().ok()?;
    let space = get_space(from)?;
    let key = get_bytes(from)?;
    if flags & 1 == 0 {
        return Some(Mutation::Delete { space, key });
    }
    let value = get_bytes(from)?;
    let key_offset = if flags & 4 != 0 { Some(from.try_get_u32().ok()?) } else { None };
    Some(Mutation::Put { space, key, value, stamp: Stamp { key_offset, value: flags & 2 != 0 } })
}

fn get_shard(from: &mut Bytes) -> Option<ShardId> {
    from.try_get_u64().ok().map(ShardId)
}

fn get_tallies(from: &mut Bytes) -> Option<[i64; 2]> {
    Some([from.try_get_i64().ok()?, from.try_get_i64().ok()?])
}

fn get_founding(from: &mut Bytes) -> Option<(ShardId, Founding)> {
    let shard = get_shard(from)?;
    let (version, high_water) = (from.try_get_u64().ok()?, from.try_get_u64().ok()?);
    Some((shard, Founding { version, high_water, tallies: get_tallies(from)? }))
}

fn get_expectation(from: &mut Bytes) -> Option<(Space, Bytes, Expectation)> {
    let space = get_space(from)?;
    let key = get_bytes(from)?;
    let expectation = match from.try_get_u8().ok()? {
        0 => Expectation::Absent,
        1 => Expectation::Present,
        2 => Expectation::Version(from.try_get_u64().ok()?),
        _ => return None,
    };
    Some((space, key, expectation))
}

fn get_batch(from: &mut Bytes) -> Option<WriteBatch> {
    let shard = get_shard(from)?;
    let mut batch = WriteBatch::new(shard, from.try_get_u64().ok()?);
    batch.high_water = from.try_get_u64().ok()?;
    batch.tallies = get_tallies(from)?;
    batch.fences = get_list(from, get_shard)?;
    batch.foundings = get_list(from, get_founding)?;
    batch.expectations = get_list(from, get_expectation)?;
    batch.mutations = get_list(from, get_mutation)?;
    batch.set.added = get_keys(from)?;
    batch.set.removed = get_keys(from)?;
    let mut valued = ValuedChanges::default();
    for entries in [&mut valued.added, &mut valued.replaced] {
        for _ in 0..from.try_get_u32().ok()? {
            let (key, value) = (get_bytes(from)?, get_bytes(from)?);
            entries.push(&key, &value);
        }
    }
    if valued != ValuedChanges::default() {
        batch.set.valued = Some(Box::new(valued));
    }
    batch.drops.shards = get_list(from, get_shard)?;
    batch.drops.prefixes = get_list(from, get_prefix)?;
    Some(batch)
}

pub(crate) fn encode_outcome(outcome: &Result<CommitVersion, Error>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |kind: u8, first: u64, second: u64, text: &str| {
        bytes.put_u8(kind);
        bytes.put_u64(first);
        bytes.put_u64(second);
        bytes.put_slice(text.as_bytes());
    };
    match outcome {
        Ok(version) => put(0, version.0, 0, ""),
        Err(Error::Conflict { expectation }) => put(1, *expectation as u64, 0, ""),
        Err(Error::Fenced { shard, current }) => put(2, shard.0, *current, ""),
        Err(Error::Dropped { shard }) => put(3, shard.0, 0, ""),
        Err(Error::ShardExists { shard }) => put(4, shard.0, 0, ""),
        Err(Error::Busy) => put(5, 0, 0, ""),
        Err(Error::Unavailable { reason }) => put(6, 0, 0, reason),
        Err(Error::Corruption { what }) => put(7, 0, 0, what),
        Err(Error::SetLost { what }) => put(8, 0, 0, what),
        Err(Error::Contract { what }) => put(9, 0, 0, what),
        Err(Error::KeyTooLong { what }) => put(10, 0, 0, what),
    }
    bytes
}

pub(crate) fn decode_outcome(mut bytes: &[u8]) -> Option<Result<CommitVersion, Error>> {
    let (kind, first, second) =
        (bytes.try_get_u8().ok()?, bytes.try_get_u64().ok()?, bytes.try_get_u64().ok()?);
    let text = || String::from_utf8_lossy(bytes).into_owned();
    Some(match kind {
        0 => Ok(CommitVersion(first)),
        1 => Err(Error::Conflict { expectation: usize::try_from(first).ok()? }),
        2 => Err(Error::Fenced { shard: ShardId(first), current: second }),
        3 => Err(Error::Dropped { shard: ShardId(first) }),
        4 => Err(Error::ShardExists { shard: ShardId(first) }),
        5 => Err(Error::Busy),
        6 => Err(Error::Unavailable { reason: text() }),
        7 => Err(Error::Corruption { what: text() }),
        8 => Err(Error::SetLost { what: text() }),
        9 => Err(Error::Contract { what: text() }),
        10 => Err(Error::KeyTooLong { what: text() }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_kv::contract::shard_key;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A batch with something of everything.
    fn batch(seed: &[u8]) -> WriteBatch {
        let mut batch = WriteBatch::new(ShardId(seed.len() as u64), 3);
        batch.high_water = 77;
        batch.tallies = [-5, 6];
        let key = |byte: u8| shard_key(ShardId(9), &[byte; 40][..usize::from(byte % 40)]);
        for byte in seed {
            match byte % 8 {
                0 => batch.expect(Space::Body, key(*byte), Expectation::Version(u64::from(*byte))),
                1 => batch.expect(Space::Meta, key(*byte), Expectation::Absent),
                2 => batch.put(Space::Log, key(*byte), vec![*byte; 300].into(), Stamp::key_at(9)),
                3 => batch.put(Space::Body, key(*byte), vec![*byte; 9].into(), Stamp::VALUE),
                4 => batch.delete(Space::Body, key(*byte)),
                5 => batch.set.added.push(&[*byte; 20]),
                6 => {
                    batch.set.removed.push(&[*byte; 30]);
                    batch.set.add_entry(&[*byte; 18], &[1, 2]);
                }
                _ => {
                    batch.fence(ShardId(u64::from(*byte)));
                    batch.found(
                        ShardId(u64::from(*byte)),
                        Founding { version: 1, high_water: 2, tallies: [3, -4] },
                    );
                    batch.drop_shard(ShardId(u64::from(*byte)));
                    batch.drop_prefix(None, vec![*byte; 8].into());
                    batch.drop_prefix(Some(Space::Meta), key(*byte));
                }
            }
        }
        batch
    }

    proptest! {
        #[test]
        fn batches_round_trip(seed in vec(any::<u8>(), 0..40)) {
            let batch = batch(&seed);
            let bytes = Bytes::from(encode_request(&PeerRequest::Commit(Box::new(batch.clone()))));
            let Some(PeerRequest::Commit(again)) = decode_request(bytes.clone()) else { panic!("a batch") };
            prop_assert_eq!(format!("{again:?}"), format!("{batch:?}"));
            for length in 0..bytes.len() {
                prop_assert!(decode_request(bytes.slice(..length)).is_none());
            }
        }

        #[test]
        fn no_bytes_harm(bytes in vec(any::<u8>(), 0..200)) {
            let _ = decode_outcome(&bytes);
            let _ = decode_request(Bytes::from(bytes));
        }
    }

    #[test]
    fn outcomes_round_trip() {
        let text = || "what happened".to_owned();
        let outcomes = [
            Ok(CommitVersion(u64::MAX)),
            Err(Error::Conflict { expectation: 3 }),
            Err(Error::Fenced { shard: ShardId(4), current: 5 }),
            Err(Error::Dropped { shard: ShardId(4) }),
            Err(Error::ShardExists { shard: ShardId(4) }),
            Err(Error::Busy),
            Err(Error::Unavailable { reason: text() }),
            Err(Error::Corruption { what: text() }),
            Err(Error::SetLost { what: text() }),
            Err(Error::Contract { what: text() }),
            Err(Error::KeyTooLong { what: text() }),
        ];
        for outcome in outcomes {
            let again = decode_outcome(&encode_outcome(&outcome)).unwrap();
            assert_eq!(format!("{again:?}"), format!("{outcome:?}"));
        }
        assert!(decode_outcome(&[200; 30]).is_none());
    }
}
