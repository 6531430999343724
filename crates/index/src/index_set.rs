//! All indexes of a container, in one generation.

use crate::condition::{Condition, Need, OrderPath, Path, Predicate, Type};
use crate::document::Document;
use crate::entries::Entries;
use crate::indexes::Compute;
use crate::kinds::{self, IndexKind, Ordered, Served, TermRange, Together};
use astrarium_catalog::definition::container::{ContainerDefinition, IndexingMode};
use astrarium_keys::body::IndexDirective;
use astrarium_keys::index_entry::{Family, read_entry, tag};
use astrarium_keys::index_expiry::expiry_family;
use astrarium_kv::{KeyList, SetChanges};
use astrarium_value::system_properties;

/// Describes the family of documents that are left out of the index.
const EXCLUDED: &[u8] = &[3];
/// Describes the family of logical partitions.
const PARTITIONS: &[u8] = &[4];

/// The indexes of a container.
#[derive(Debug)]
pub struct IndexSet {
    generation: u8,
    is_used: bool,
    left_out: LeftOut,
    kinds: Vec<Box<dyn IndexKind>>,
    excluded: Family,
    partitions: Family,
    expiry: Option<Family>,
    timestamps: Family,
    /// Terms that a document has beside those of its values: one for its partition key, unless that is the id.
    key_terms: u64,
    compute: Option<Compute>,
}

/// Documents that can meet a need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// All of them.
    Everything,
    /// None.
    Nothing,
    /// Those with entries.
    Entries(Served),
    /// Those in all of these.
    All(Vec<Access>),
    /// Those in at least one of these.
    Any(Vec<Access>),
    /// Those in all of these, some of which can be had at once, by one index of several paths.
    Combined {
        /// One access for each conjunct; `Everything` where no index has it alone.
        apart: Vec<Access>,
        /// Entries that stand for several of those, by their places.
        together: Vec<Together>,
    },
}

/// Which documents are left out of a container's indexes on purpose: by the policy, or by what their writer said. A query that
/// an index serves does not find them, as on the service; reads by id, feeds and queries that no index serves do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    is_automatic: bool,
}

impl LeftOut {
    /// Whether documents of such a directive are among them.
    pub fn has(self, directive: IndexDirective) -> bool {
        match directive {
            IndexDirective::Default => !self.is_automatic,
            IndexDirective::Include => false,
            IndexDirective::Exclude => true,
        }
    }
}

impl IndexSet {
    /// The indexes that a definition asks for.
    pub fn new(generation: u8, definition: &ContainerDefinition) -> IndexSet {
        let is_used = definition.indexing.mode != IndexingMode::None;
        IndexSet {
            generation,
            is_used,
            left_out: LeftOut { is_automatic: definition.indexing.automatic },
            kinds: if is_used { kinds::all(generation, definition) } else { Vec::new() },
            excluded: Family::of(generation, EXCLUDED),
            partitions: Family::of(generation, PARTITIONS),
            expiry: None,
            timestamps: kinds::property_family(generation, system_properties::TIMESTAMP),
            key_terms: u64::from(!is_keyed_by_id(definition)),
            compute: None,
        }
    }

    /// The same indexes, with the entries by which documents expire.
    #[must_use]
    pub fn expiring(self) -> IndexSet {
        IndexSet { expiry: self.is_used.then(|| expiry_family(self.generation)), ..self }
    }

    /// The same indexes, with the computed properties of documents in them.
    #[must_use]
    pub fn computing(self, compute: Compute) -> IndexSet {
        IndexSet { compute: Some(compute), ..self }
    }

    pub(crate) fn compute(&self) -> Option<&Compute> {
        self.compute.as_ref()
    }

    /// Which documents are left out of the index on purpose.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The generation.
    pub fn generation(&self) -> u8 {
        self.generation
    }

    /// Whether the policy wants an index at all.
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// The entries of a document, sorted.
    pub fn entries(&self, shard: u64, number: u64, document: &Document<'_>) -> KeyList {
        let mut list = KeyList::new();
        if !self.is_used {
            return list;
        }
        let mut out = Entries::new(&mut list, shard, number);
        out.push(self.partitions, |key| key.extend_from_slice(document.partition));
        if let (Some(family), Some(term)) = (self.expiry, document.expiry) {
            out.push(family, |key| key.extend_from_slice(&term.encode()));
        }
        if document.is_excluded {
            out.push(self.excluded, |_| ());
        } else {
            for kind in &self.kinds {
                kind.entries(document, &mut out);
            }
        }
        list.sorted()
    }

    /// How many terms come and go when the entries of a document change: each value at a path, each path that gets its first or
    /// loses its last value, and each entry of several paths; and, where the document itself comes or goes, one for its partition
    /// key. Not what the indexes keep for themselves, not `_ts`, and not the mere type of an array or object.
    pub(crate) fn term_count(&self, (before, after): (&KeyList, &KeyList), changes: &SetChanges) -> u64 {
        let several: Vec<Family> = self.named_families().into_iter().map(|(family, _)| family).collect();
        let paths = |entries: &KeyList| {
            let mut paths: Vec<Family> =
                entries.iter().filter(|key| self.is_term(key)).filter_map(Family::of_entry).collect();
            paths.sort_unstable();
            paths.dedup();
            paths.retain(|path| !several.contains(path));
            paths
        };
        let values = |entries: &KeyList| entries.iter().filter(|key| self.is_term(key)).count();
        let (old, new) = (paths(before), paths(after));
        let kept = old.iter().filter(|path| new.binary_search(path).is_ok()).count();
        let terms = values(&changes.removed) + values(&changes.added) + old.len() + new.len() - 2 * kept;
        let comes_or_goes = terms > 0 && (before.is_empty() || after.is_empty());
        terms as u64 + if comes_or_goes { self.key_terms } else { 0 }
    }

    fn is_term(&self, key: &[u8]) -> bool {
        let own = [Some(self.partitions), Some(self.excluded), self.expiry, Some(self.timestamps)];
        own.iter().flatten().all(|family| !family.has(key))
            && !read_entry(key).is_ok_and(|(terms, _)| matches!(terms, [tag::ARRAY | tag::OBJECT]))
    }

    /// The families that the policy names, each with its name for people.
    pub(crate) fn named_families(&self) -> Vec<(Family, String)> {
        self.kinds.iter().flat_map(|kind| kind.families()).collect()
    }

    /// The documents left out of the index: by their writer or the policy, which an access by index then does not find, or because
    /// their computed properties cannot be told, which belong to whatever an index finds.
    pub fn excluded(&self) -> Family {
        self.excluded
    }

    /// The family of the entries by which documents expire, those left out of the index included; none if there are no such entries.
    pub fn expiry(&self) -> Option<Family> {
        self.expiry
    }

    /// The entries of the documents whose partitions lie between two bounds. `is_one` says that it is one partition.
    pub fn partitions(&self, (start, end): (&[u8], &[u8]), is_one: bool) -> Served {
        Served {
            family: self.partitions,
            ranges: vec![TermRange { start: start.to_vec(), end: end.to_vec(), is_point: is_one }],
            exact: true,
            repeated: false,
            shown: "partition key".to_owned(),
        }
    }

    /// The family that has one entry for each document.
    pub fn documents(&self) -> Family {
        self.partitions
    }

    /// The documents that can meet a need, as far as the indexes know.
    pub fn access(&self, need: &Need) -> Access {
        match need {
            _ if !self.is_used => Access::Everything,
            Need::Anything => Access::Everything,
            Need::Nothing => Access::Nothing,
            Need::One { condition, exact } => self.one(condition, *exact),
            Need::All(needs) => self.all(needs),
            Need::Any(needs) => {
                let mut any = Vec::new();
                for need in needs {
                    match self.access(need) {
                        Access::Everything => return Access::Everything,
                        Access::Nothing => {}
                        Access::Any(inner) => any.extend(inner),
                        access => any.push(access),
                    }
                }
                one_or(any, Access::Nothing, Access::Any)
            }
        }
    }

    fn one(&self, condition: &Condition, exact: bool) -> Access {
        let alone = self.kinds.iter().find_map(|kind| kind.serve(condition));
        let served = alone.or_else(|| self.together(&[condition]).next().map(|together| together.served));
        served.map_or(Access::Everything, |mut served| {
            served.exact &= exact;
            Access::Entries(served)
        })
    }

    fn all(&self, needs: &[Need]) -> Access {
        let mut apart = Vec::new();
        // The conditions among the needs, whether they are exact, and their places.
        let (mut conditions, mut places) = (Vec::new(), Vec::new());
        for need in needs {
            if let Need::One { condition, exact } = need {
                conditions.push(condition);
                places.push((apart.len(), *exact));
            }
            match self.access(need) {
                Access::Nothing => return Access::Nothing,
                access => apart.push(access),
            }
        }
        let mut several: Vec<Together> =
            self.together(&conditions).filter(|together| together.conditions.len() > 1).collect();
        for together in &mut several {
            let own = together.conditions.iter().map(|condition| places[*condition]);
            together.served.exact &= own.clone().all(|(_, exact)| exact);
            together.conditions = own.map(|(place, _)| place).collect();
        }
        if !several.is_empty() {
            return Access::Combined { apart, together: several };
        }
        all_of(apart)
    }

    fn together<'a>(&'a self, conditions: &'a [&'a Condition]) -> impl Iterator<Item = Together> + 'a {
        self.kinds.iter().filter_map(move |kind| kind.serve_together(conditions))
    }

    /// The indexes of several paths that serve several conditions of a need at once: the paths of each, and how many of
    /// them, from the first on, have a condition. Of indexes for the same conditions there is one.
    pub fn combinations(&self, need: &Need) -> Vec<(Vec<OrderPath>, usize)> {
        let mut found = Vec::new();
        self.find_combinations(need, &mut found);
        found
    }

    fn find_combinations(&self, need: &Need, found: &mut Vec<(Vec<OrderPath>, usize)>) {
        let conditions = conjuncts(need);
        let mut own: Vec<Together> =
            self.together(&conditions).filter(|together| together.conditions.len() > 1).collect();
        own.sort_by_key(|together| std::cmp::Reverse(together.conditions.len()));
        let mut best: Vec<Together> = Vec::new();
        for together in own {
            let says_no_more =
                |other: &Together| together.conditions.iter().all(|place| other.conditions.contains(place));
            if !best.iter().any(says_no_more) {
                best.push(together);
            }
        }
        for Together { paths, conditions, .. } in best {
            if !found.iter().any(|(known, _)| *known == paths) {
                found.push((paths, conditions.len()));
            }
        }
        if let Need::All(needs) | Need::Any(needs) = need {
            for need in needs {
                self.find_combinations(need, found);
            }
        }
    }

    /// Whether an access to a need leaves no part of it out.
    pub fn serves(&self, need: &Need) -> bool {
        match need {
            Need::Anything | Need::Nothing => true,
            Need::One { condition, .. } => self.one(condition, true) != Access::Everything,
            Need::All(needs) | Need::Any(needs) => needs.iter().all(|need| self.serves(need)),
        }
    }

    /// Whether some index has the values at a path.
    pub fn covers(&self, path: &Path) -> bool {
        let defined = Predicate::Types(vec![Type::Null, Type::Bool, Type::Number, Type::String]);
        let condition = Condition { path: path.clone(), predicate: defined };
        self.kinds.iter().any(|kind| kind.serve(&condition).is_some())
    }

    /// The entries that have documents in an order, if some have it for all documents. Those that a need leaves are
    /// enough: of the others, entries may be left out.
    pub fn order(&self, order: &[OrderPath], need: &Need) -> Option<Ordered> {
        let conditions = conjuncts(need);
        let own = self.kinds.iter().find_map(|kind| kind.order(order, &conditions))?;
        let within = self.kinds.iter().filter_map(|kind| kind.order_within(order, &conditions));
        // Rows with equal values come in the order of their documents, in the direction in which the entries are walked.
        // It follows from policy and query alone, so whatever a page costs, and however its rows are found in the end,
        // they come in this order.
        within.min_by_key(|within| within.backward != own.backward).or(Some(own))
    }
}

/// Whether documents need no term for their partition key: it is their id, or they have none.
fn is_keyed_by_id(definition: &ContainerDefinition) -> bool {
    let key = &definition.partition_key;
    key.system_key || matches!(&key.paths[..], [path] if path.as_str() == "/id")
}

/// The conditions that every document meets which meets a need.
fn conjuncts(need: &Need) -> Vec<&Condition> {
    let needs = if let Need::All(needs) = need { &needs[..] } else { std::slice::from_ref(need) };
    needs
        .iter()
        .filter_map(|need| if let Need::One { condition, .. } = need { Some(condition) } else { None })
        .collect()
}

/// What is in all of these.
fn all_of(parts: Vec<Access>) -> Access {
    let mut all = Vec::new();
    for part in parts {
        match part {
            Access::Everything => {}
            Access::All(inner) => all.extend(inner),
            access => all.push(access),
        }
    }
    one_or(all, Access::Everything, Access::All)
}

fn one_or(mut list: Vec<Access>, none: Access, many: impl FnOnce(Vec<Access>) -> Access) -> Access {
    match list.len() {
        0 => none,
        1 => list.remove(0),
        _ => many(list),
    }
}
