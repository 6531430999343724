//! Looking for damage before anybody meets it: tables are read whole, one after the other, and compared with their checksums.
//!
//! In: calls of [`astrarium_kv::Engine::check_next_file`] from background work, and places where a reader met damage. Out: the
//! damaged files with the keys they cover, so that the layer above can tell whose data it is.
//! Invariants
//! - One file at a time, on the thread of the caller; nothing is held between two.
//! - A file that fjall has replaced meanwhile is passed over.

use crate::store::{Store, TableFile};
use crate::tree_files::TreeFiles;
use astrarium_kv::{Damage, Space};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Damages that are remembered at most; more need no list.
const DAMAGES_MAX: usize = 100;

#[derive(Default)]
pub(crate) struct Scrub {
    waiting: Mutex<Option<Vec<TableFile>>>,
    /// By file and first key.
    found: Mutex<BTreeMap<(String, Bytes), Damage>>,
}

impl Scrub {
    /// Reads one file; false when all were read.
    pub(crate) fn check_next(&self, store: &Store) -> bool {
        let next = {
            let mut waiting = self.waiting.lock();
            let list = waiting.get_or_insert_with(|| store.table_files());
            let next = list.pop();
            if next.is_none() {
                *waiting = None;
            }
            next
        };
        let Some(file) = next else { return false };
        // A keyspace whose list cannot be read just now is between two of fjall's steps, or will not open again: then it is told.
        let Ok(tree) = TreeFiles::read(&file.keyspace) else { return true };
        let record = tree.tables.iter().find(|table| table.number == file.number);
        if let Some(bad) = record.and_then(|record| tree.check_whole(*record).err()) {
            let path = bad.path.strip_prefix(store.folder()).unwrap_or(&bad.path);
            let file_name = format!("engine/{}", path.display());
            tracing::error!(file = file_name, damage = bad.what, "a table is damaged");
            self.note(Damage {
                file: format!("{file_name} {}", bad.what),
                space: file.space,
                first: file.first,
                last: file.last,
            });
        }
        true
    }

    /// Remembers a place where a reader met damage.
    pub(crate) fn note_read(&self, space: Space, key: &[u8]) {
        let key = Bytes::copy_from_slice(key);
        let file = "a table of the engine".to_owned();
        self.note(Damage { file, space: Some(space), first: key.clone(), last: key });
    }

    fn note(&self, damage: Damage) {
        let mut found = self.found.lock();
        if found.len() < DAMAGES_MAX {
            found.insert((damage.file.clone(), damage.first.clone()), damage);
        }
    }

    pub(crate) fn found(&self) -> Vec<Damage> {
        self.found.lock().values().cloned().collect()
    }
}
