//! What a container's documents are indexed by: the change that a write makes to the engine's set.

use crate::document::Document;
use crate::index_set::IndexSet;
use astrarium_catalog::definition::container::UniqueKey;
use astrarium_keys::unique::unique_key;
use astrarium_kv::{KeyList, SetChanges};
use astrarium_value::json::{Node, Text};
use astrarium_value::{PropertyPath, Value};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Gives the computed properties of a document from its text. They are queries, and queries are above this crate.
pub type Compute = Arc<dyn Fn(&[u8]) -> Vec<(Arc<str>, Value)> + Send + Sync>;

/// The indexes that writes keep.
pub struct Indexes {
    /// The generation that queries use.
    pub active: IndexSet,
    /// The generation that is being built.
    pub building: Option<IndexSet>,
    /// Combinations of properties that are unique within a logical partition.
    unique: Vec<UniqueKey>,
    compute: Option<Compute>,
}

impl fmt::Debug for Indexes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Indexes").field("active", &self.active).finish_non_exhaustive()
    }
}

/// A document as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    /// Its number.
    pub number: u64,
    /// Its text.
    pub text: &'a [u8],
    /// Its `_ts`.
    pub timestamp: u64,
    /// Its `_etag`.
    pub etag: &'a str,
    /// The part of its key that names its logical partition.
    pub partition: &'a [u8],
    /// Whether its writer left it out of the index.
    pub is_excluded: bool,
}

impl Indexes {
    /// The indexes of a container.
    pub fn new(
        active: IndexSet,
        building: Option<IndexSet>,
        unique: Vec<UniqueKey>,
        compute: Option<Compute>,
    ) -> Indexes {
        Indexes { active, building, unique, compute }
    }

    /// The unique keys that a document holds.
    pub fn unique_keys(&self, shard: u64, document: Stored<'_>) -> Vec<Bytes> {
        if self.unique.is_empty() {
            return Vec::new();
        }
        let Ok(text) = Text::parse(document.text) else { return Vec::new() };
        let key = |(place, unique): (u8, &UniqueKey)| {
            let value = |path: &PropertyPath| text.root().at(path).map(Node::to_value).unwrap_or_default();
            let values: Vec<Value> = unique.paths.iter().map(value).collect();
            unique_key(shard, place, document.partition, &values)
        };
        (0..).zip(&self.unique).map(key).collect()
    }

    /// What changes when a document becomes another one, comes or goes. `built_to` is the highest number that the
    /// generation under construction has; documents beyond it are not its business yet.
    pub fn changes(
        &self,
        shard: u64,
        old: Option<Stored<'_>>,
        new: Option<Stored<'_>>,
        built_to: u64,
    ) -> SetChanges {
        let entries = |document: Option<Stored<'_>>, set: &IndexSet| {
            document.map(|document| self.entries(set, shard, document)).unwrap_or_default()
        };
        let mut changes = SetChanges::between(&entries(old, &self.active), &entries(new, &self.active));
        if let Some(set) = &self.building {
            let built = |document: &Stored<'_>| document.number <= built_to;
            let (old, new) = (old.filter(built), new.filter(built));
            changes.extend(&SetChanges::between(&entries(old, set), &entries(new, set)));
        }
        changes
    }

    /// The entries of one document in one generation, sorted.
    pub fn entries(&self, set: &IndexSet, shard: u64, document: Stored<'_>) -> KeyList {
        if !set.is_used() {
            return KeyList::new();
        }
        let Ok(text) = Text::parse(document.text) else { return KeyList::new() };
        let mut added: Vec<(Arc<str>, Value)> = vec![
            (Arc::from("_ts"), Value::Number(document.timestamp as f64)),
            (Arc::from("_etag"), Value::from(document.etag)),
        ];
        if let Some(compute) = &self.compute {
            added.extend(compute(document.text));
        }
        let source = Document {
            root: text.root(),
            added: &added,
            partition: document.partition,
            is_excluded: document.is_excluded,
        };
        set.entries(shard, document.number, &source)
    }
}
