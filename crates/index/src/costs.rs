//! What each path adds to a container's index, measured on some of its documents.
//!
//! In: documents as they are stored. Out: an [`IndexPathCost`] for each path that has entries, the most expensive first.
//! Invariants
//! - Entries are made as a write makes them, by the policy that writes follow; what the indexes keep for themselves belongs to no path.
//! - Bytes are those of the entries as they stand, before the set packs them.

use crate::condition::{Path, PathStep};
use crate::indexes::{Indexes, Stored};
use crate::kinds::{path_family, shown_path};
use astrarium_env::yield_if_due;
use astrarium_keys::index_entry::Family;
use astrarium_value::json::{Kind, Node, Text};
use astrarium_value::system_properties;
use std::collections::BTreeMap;

/// Paths that are told apart.
const PATHS_MAX: usize = 2_000;

/// What one path adds to an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPathCost {
    /// The path as policies write it; of a composite index all of its paths.
    pub path: String,
    /// Entries.
    pub terms: u64,
    /// Bytes of the entries.
    pub bytes: u64,
}

impl Indexes {
    /// What each path adds to the index for some documents. `computed` are the names of computed properties.
    pub async fn path_costs(&self, documents: &[Stored<'_>], computed: &[String]) -> Vec<IndexPathCost> {
        let set = self.building.as_ref().unwrap_or(&self.active);
        let mut families: BTreeMap<Family, IndexPathCost> = BTreeMap::new();
        let own = [system_properties::TIMESTAMP, system_properties::ETAG];
        let named = own.into_iter().chain(computed.iter().map(String::as_str));
        for name in named {
            let path = Path(vec![PathStep::Name(name.into())]);
            note(&mut families, path_family(set.generation(), &path), || shown_path(&path));
        }
        for (family, name) in set.named_families() {
            note(&mut families, family, || name);
        }
        for document in documents {
            yield_if_due().await;
            if let Ok(text) = Text::parse(document.text) {
                walk(text.root(), &mut Path::default(), &mut |path| {
                    note(&mut families, path_family(set.generation(), path), || shown_path(path));
                });
            }
            for key in self.entries(set, 0, *document).iter() {
                if let Some(cost) = Family::of_entry(key).and_then(|family| families.get_mut(&family)) {
                    cost.terms += 1;
                    cost.bytes += key.len() as u64;
                }
            }
        }
        let mut costs: Vec<IndexPathCost> = families.into_values().filter(|cost| cost.terms > 0).collect();
        costs.sort_by(|left, right| right.bytes.cmp(&left.bytes).then_with(|| left.path.cmp(&right.path)));
        costs
    }
}

fn note(families: &mut BTreeMap<Family, IndexPathCost>, family: Family, path: impl FnOnce() -> String) {
    if families.len() < PATHS_MAX && !families.contains_key(&family) {
        families.insert(family, IndexPathCost { path: path(), terms: 0, bytes: 0 });
    }
}

/// Visits the path of every value below one.
fn walk(node: Node<'_>, path: &mut Path, visit: &mut impl FnMut(&Path)) {
    match node.kind() {
        Kind::Object => {
            for (name, member) in node.members() {
                path.0.push(PathStep::Name((&*name).into()));
                visit(path);
                walk(member, path, visit);
                path.0.pop();
            }
        }
        Kind::Array => {
            path.0.push(PathStep::Elements);
            for (place, element) in node.elements().enumerate() {
                if place == 0 {
                    visit(path);
                }
                walk(element, path, visit);
            }
            path.0.pop();
        }
        _ => {}
    }
}
