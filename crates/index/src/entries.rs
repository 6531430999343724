//! Entries on their way into a list of keys.

use astrarium_keys::index_entry::Family;
use astrarium_kv::KeyList;

/// Appends the entries of one document.
pub struct Entries<'a> {
    list: &'a mut KeyList,
    shard: u64,
    number: u64,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(list: &'a mut KeyList, shard: u64, number: u64) -> Entries<'a> {
        Entries { list, shard, number }
    }

    /// Appends an entry: `terms` appends the terms.
    pub fn push(&mut self, family: Family, terms: impl FnOnce(&mut Vec<u8>)) {
        let (shard, number) = (self.shard, self.number);
        self.list.push_with(|key| {
            key.extend_from_slice(&family.prefix(shard));
            terms(key);
            key.extend_from_slice(&number.to_be_bytes());
        });
    }
}
