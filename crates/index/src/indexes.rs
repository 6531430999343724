//! What a container's documents are indexed by: the change that a write makes to the engine's set.

use crate::document::Document;
use crate::index_set::IndexSet;
use astrarium_catalog::definition::container::UniqueKey;
use astrarium_keys::body::IndexDirective;
use astrarium_keys::index_expiry::ExpiryTerm;
use astrarium_keys::index_state::NO_GENERATION;
use astrarium_keys::unique::unique_key;
use astrarium_kv::{KeyList, SetChanges};
use astrarium_value::json::{Node, Text};
use astrarium_value::{PropertyPath, Value, system_properties};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Gives the computed properties of a document. They are queries, and queries are above this crate.
#[derive(Clone)]
pub struct Compute(Arc<ComputeFunction>);

type ComputeFunction = dyn Fn(&Stored<'_>) -> Option<Vec<(Arc<str>, Value)>> + Send + Sync;

impl Compute {
    /// From a function of a document alone: the names and values of its computed properties, or `None` if they cannot
    /// be told. Such a document is left out of the index, so that every query looks at it and says why.
    pub fn new(
        function: impl Fn(&Stored<'_>) -> Option<Vec<(Arc<str>, Value)>> + Send + Sync + 'static,
    ) -> Compute {
        Compute(Arc::new(function))
    }
}

impl fmt::Debug for Compute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Compute")
    }
}

/// The indexes that writes keep.
#[derive(Debug)]
pub struct Indexes {
    /// The generation that queries use.
    pub active: IndexSet,
    /// The generation that is being built.
    pub building: Option<IndexSet>,
    /// Combinations of properties that are unique within a logical partition.
    unique: Vec<UniqueKey>,
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
    /// Its own `ttl`.
    pub ttl: Option<i32>,
    /// Its `_etag`.
    pub etag: &'a str,
    /// The part of its key that names its logical partition.
    pub partition: &'a [u8],
    /// What its writer said about indexing it.
    pub directive: IndexDirective,
    /// Whether the generation under construction has it, or shall have it.
    pub is_built: bool,
    /// Whether it is there only for storage: it has expired.
    pub is_gone: bool,
}

/// What a write does to the indexes of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexChanges {
    /// The entries that come and go.
    pub changes: SetChanges,
    /// Index terms that come and go, as writes are priced by them: values at paths that the policy includes, these paths, composite
    /// entries, and the partition key. Those of the generation in use, whether or not another one is being built.
    pub terms: u64,
}

impl Indexes {
    /// The indexes of a container.
    pub fn new(active: IndexSet, building: Option<IndexSet>, unique: Vec<UniqueKey>) -> Indexes {
        Indexes { active, building, unique }
    }

    /// How many unique keys a document holds.
    pub fn unique_key_count(&self) -> usize {
        self.unique.len()
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

    /// What changes when a document becomes another one, comes or goes.
    pub fn changes(&self, shard: u64, old: Option<Stored<'_>>, new: Option<Stored<'_>>) -> IndexChanges {
        let entries = |document: Option<Stored<'_>>, set: &IndexSet| {
            document.map(|document| self.entries(set, shard, document)).unwrap_or_default()
        };
        let (before, after) = (entries(old, &self.active), entries(new, &self.active));
        let mut changes = SetChanges::between(&before, &after);
        // What has expired costs nobody anything when it goes.
        let terms = if old.is_some_and(|old| old.is_gone) {
            let nothing = KeyList::new();
            let come = SetChanges::between(&nothing, &after);
            self.active.term_count((&nothing, &after), &come)
        } else {
            self.active.term_count((&before, &after), &changes)
        };
        if let Some(set) = &self.building {
            let (old, new) = (old.filter(|old| old.is_built), new.filter(|new| new.is_built));
            changes.extend(&SetChanges::between(&entries(old, set), &entries(new, set)));
        }
        IndexChanges { changes, terms }
    }

    /// The entries of one document in one generation, sorted.
    pub fn entries(&self, set: &IndexSet, shard: u64, document: Stored<'_>) -> KeyList {
        if !set.is_used() || set.generation() == NO_GENERATION {
            return KeyList::new();
        }
        let Ok(text) = Text::parse(document.text) else { return KeyList::new() };
        let mut added: Vec<(Arc<str>, Value)> = vec![
            (Arc::from(system_properties::TIMESTAMP), Value::Number(document.timestamp as f64)),
            (Arc::from(system_properties::ETAG), Value::from(document.etag)),
        ];
        let mut is_excluded = set.left_out().has(document.directive);
        if let Some(Compute(compute)) = set.compute() {
            match compute(&document) {
                Some(computed) => added.extend(computed),
                None => is_excluded = true,
            }
        }
        let source = Document {
            root: text.root(),
            added: &added,
            partition: document.partition,
            expiry: ExpiryTerm::of(document.timestamp, document.ttl),
            is_excluded,
        };
        set.entries(shard, document.number, &source)
    }
}
