//! Which places of documents are indexed: the paths of a policy as a tree, walked along with a document.
//!
//! Rules: the most specific path decides. A longer path is more specific than a shorter one, and at the same length `/?`
//! (the scalar at the place) is more specific than `/*` (the place and everything below).

use crate::condition::{Path, PathStep};
use astrarium_catalog::definition::container::{
    ContainerDefinition, IndexPath, IndexStep, IndexTarget, IndexingMode,
};
use astrarium_value::system_properties;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Properties that are indexed whatever a policy with an index says.
const ALWAYS_INDEXED: [&str; 2] = ["id", system_properties::TIMESTAMP];

/// The included and excluded paths of a container.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The first is the top of documents.
    nodes: Vec<PolicyNode>,
    /// Names of computed properties: a path above them does not include them, only one of their own.
    computed: HashSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct PolicyNode {
    names: HashMap<Arc<str>, usize>,
    elements: Option<usize>,
    /// What `/?` at this place says.
    value: Option<bool>,
    /// What `/*` at this place says.
    subtree: Option<bool>,
}

/// How far a walk has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyDescent {
    node: Option<usize>,
    /// What the nearest `/*` at or above this place says.
    inherited: bool,
}

/// What is indexed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// Nothing.
    Nothing,
    /// A scalar value.
    Scalars,
    /// Any value.
    Everything,
}

impl Policy {
    pub(crate) fn new(definition: &ContainerDefinition) -> Policy {
        let policy = &definition.indexing;
        let computed = definition.computed_properties.iter().map(|property| property.name.as_str().into());
        let mut own = Policy { nodes: vec![PolicyNode::default()], computed: computed.collect() };
        if policy.mode == IndexingMode::None {
            return own;
        }
        for (paths, included) in [(&policy.included, true), (&policy.excluded, false)] {
            for path in paths {
                own.add(path, included);
            }
        }
        for name in ALWAYS_INDEXED {
            let fresh = own.nodes.len();
            let node = *own.nodes[0].names.entry(Arc::from(name)).or_insert(fresh);
            if node == fresh {
                own.nodes.push(PolicyNode::default());
            }
            own.nodes[node].value = Some(true);
        }
        own
    }

    fn add(&mut self, path: &IndexPath, included: bool) {
        let mut at = 0;
        for step in path.steps() {
            let fresh = self.nodes.len();
            let node = &mut self.nodes[at];
            at = match step {
                IndexStep::Property(name) => *node.names.entry(Arc::from(&**name)).or_insert(fresh),
                IndexStep::Elements => *node.elements.get_or_insert(fresh),
            };
            if at == fresh {
                self.nodes.push(PolicyNode::default());
            }
        }
        match path.target() {
            IndexTarget::Value => self.nodes[at].value = Some(included),
            IndexTarget::Subtree => self.nodes[at].subtree = Some(included),
        }
    }

    /// The top of documents.
    pub(crate) fn start(&self) -> PolicyDescent {
        self.enter(Some(0), false)
    }

    fn enter(&self, node: Option<usize>, inherited: bool) -> PolicyDescent {
        let own = node.and_then(|node| self.nodes[node].subtree);
        PolicyDescent { node, inherited: own.unwrap_or(inherited) }
    }

    /// One step down, into a property.
    pub(crate) fn property(&self, walk: PolicyDescent, name: &str) -> PolicyDescent {
        let next = walk.node.and_then(|node| self.nodes[node].names.get(name).copied());
        let inherited = walk.inherited && !(walk.node == Some(0) && self.is_computed(name));
        self.enter(next, inherited)
    }

    /// Whether a property at the top of documents is a computed one.
    pub(crate) fn is_computed(&self, name: &str) -> bool {
        self.computed.contains(name)
    }

    /// One step down, into elements.
    pub(crate) fn elements(&self, walk: PolicyDescent) -> PolicyDescent {
        let next = walk.node.and_then(|node| self.nodes[node].elements);
        self.enter(next, walk.inherited)
    }

    /// What is indexed where a walk stands.
    pub(crate) fn at(&self, walk: PolicyDescent) -> Coverage {
        let value = walk.node.and_then(|node| self.nodes[node].value);
        match (walk.inherited, value) {
            (true, Some(false)) => Coverage::Nothing,
            (true, _) => Coverage::Everything,
            (false, Some(true)) => Coverage::Scalars,
            (false, _) => Coverage::Nothing,
        }
    }

    /// Whether nothing below can be indexed.
    pub(crate) fn is_over(walk: PolicyDescent) -> bool {
        walk.node.is_none() && !walk.inherited
    }

    /// What is indexed at a place.
    pub(crate) fn covers(&self, path: &Path) -> Coverage {
        if let Some(PathStep::Name(name)) = path.0.first()
            && (system_properties::NOT_INDEXED.contains(&&**name)
                || (path.0.len() > 1 && self.is_computed(name)))
        {
            // Below the name of a computed property a query may mean a stored one, which has no entries.
            return Coverage::Nothing;
        }
        let walk = path.0.iter().fold(self.start(), |walk, step| match step {
            PathStep::Name(name) => self.property(walk, name),
            PathStep::Elements => self.elements(walk),
        });
        self.at(walk)
    }
}

/// Whether what a query reads at a path is what documents have there, or what the index is given for it: not a computed
/// property, and not one that the database adds when it answers.
pub(crate) fn is_stored(definition: &ContainerDefinition, path: &Path) -> bool {
    match path.0.first() {
        Some(PathStep::Name(name)) => {
            let is_computed = definition.computed_properties.iter().any(|property| *property.name == **name);
            !is_computed && !system_properties::NOT_INDEXED.contains(&&**name)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(included: &[&str], excluded: &[&str], expected: &[(&str, Coverage)]) {
        let paths = |paths: &[&str]| paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>();
        let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"]},
            "indexingPolicy": {"includedPaths": paths(included), "excludedPaths": paths(excluded)}});
        let policy = Policy::new(&ContainerDefinition::from_json(&body).unwrap());
        for (path, coverage) in expected {
            let steps = path.split('/').skip(1).map(|step| match step {
                "[]" => PathStep::Elements,
                name => PathStep::Name(name.into()),
            });
            assert_eq!(policy.covers(&Path(steps.collect())), *coverage, "{path}");
        }
    }

    #[test]
    fn the_most_specific_path_decides() {
        use Coverage::{Everything, Nothing, Scalars};
        check(
            &["/*"],
            &[],
            &[("/a", Everything), ("/a/[]/b", Everything), ("/_etag", Nothing), ("/_ts", Everything)],
        );
        check(
            &["/*", "/a/b/?", "/a/c/d/*"],
            &["/a/*", "/x/?"],
            &[
                ("/a", Nothing),
                ("/a/b", Scalars),
                ("/a/b/c", Nothing),
                ("/a/c", Nothing),
                ("/a/c/d", Everything),
                ("/a/c/d/[]", Everything),
                ("/x", Nothing),
                ("/x/y", Everything),
                ("/_rid", Nothing),
            ],
        );
        check(
            &["/tags/[]/?", "/items/[]/name/?"],
            &["/*"],
            &[
                ("/tags", Nothing),
                ("/tags/[]", Scalars),
                ("/items/[]/name", Scalars),
                ("/items/[]/x", Nothing),
            ],
        );
    }
}
