//! Definitions of containers: random included and excluded paths, composite indexes, and what goes with them.

use crate::words::Words;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A container, with words by number.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) hierarchical: bool,
    /// Whether it has several ranges.
    pub(crate) wide: bool,
    default_ttl: Option<i32>,
    /// The path that the computed property [`COMPUTED`] is made of, and how.
    computed: Option<(usize, &'static str)>,
    policy: Policy,
}

/// The name of the computed property.
const COMPUTED: &str = "cp";
/// Expressions of computed properties.
const EXPRESSIONS: [&str; 4] = ["LOWER({})", "{}", "({} ?? c.n)", "IS_STRING({})"];

/// An indexing policy.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    mode: Mode,
    /// Paths besides the root; the flag says whether they are included.
    paths: Vec<(Pattern, bool)>,
    composites: Vec<Vec<(usize, bool)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Everything that is not excluded.
    Included,
    /// Nothing that is not included.
    Excluded,
    /// Documents are not indexed unless they ask for it.
    NotAutomatic,
    /// Nothing.
    None,
}

#[derive(Debug, Clone)]
struct Pattern {
    /// A path of the case's, or the computed property.
    path: Option<usize>,
    /// Whether the elements of an array there are meant, and a property of them.
    elements: bool,
    below: Option<usize>,
    /// `/*` instead of `/?`.
    subtree: bool,
}

impl Definition {
    /// The body that makes the container, without its id.
    pub(crate) fn json(&self, words: &Words) -> Value {
        let key = if self.hierarchical { json!(["/pk", "/sub"]) } else { json!("/pk") };
        let mut body = json!({"partitionKey": key, "indexingPolicy": self.policy.json(words)});
        if let Some((path, expression)) = self.computed {
            let query =
                format!("SELECT VALUE {} FROM c", expression.replace("{}", &words.reference("c", path)));
            body["computedProperties"] = json!([{"name": COMPUTED, "query": query}]);
        }
        // Without an index nothing may expire, so policies that come and go turn it off and on again.
        if let Some(seconds) = self.default_ttl.filter(|_| self.policy.mode != Mode::None) {
            body["defaultTtl"] = seconds.into();
        }
        body
    }

    /// The same container with another policy.
    pub(crate) fn with(&self, policy: &Policy) -> Definition {
        Definition { policy: policy.clone(), ..self.clone() }
    }

    /// Whether items can be put in the order of a path: whether the policy includes scalars there. A second opinion; none
    /// on what the database alone knows.
    pub(crate) fn has_order(&self, words: &Words, path: &[&str]) -> Option<bool> {
        match path {
            // Indexed whatever the paths say.
            ["id" | "_ts"] => Some(self.policy.mode != Mode::None),
            ["_etag" | "_rid" | "_self" | "_attachments" | "_lsn" | "_ts", ..] => None,
            _ => Some(self.policy.mode != Mode::None && self.policy.includes(words, path)),
        }
    }

    /// The paths of a composite index.
    pub(crate) fn composite(&self, words: &Words, number: usize) -> Option<Vec<usize>> {
        let composites = self.policy.kept_composites(words);
        let parts = composites.get(number % composites.len().max(1))?;
        Some(parts.iter().map(|(path, _)| *path).collect())
    }

    /// Paths to order by that a composite index serves.
    pub(crate) fn order(&self, words: &Words, number: usize) -> Option<String> {
        let composites = self.policy.kept_composites(words);
        let parts = composites.get(number % composites.len().max(1))?;
        let part = |(path, descending): &(usize, bool)| {
            let descending = *descending != (number % 2 == 1);
            format!("{}{}", words.reference("c", *path), if descending { " DESC" } else { "" })
        };
        Some(parts.iter().map(part).collect::<Vec<_>>().join(", "))
    }
}

impl Policy {
    fn json(&self, words: &Words) -> Value {
        if self.mode == Mode::None {
            return json!({"indexingMode": "none", "automatic": false});
        }
        let root = json!({"path": "/*"});
        let (mut included, mut excluded) =
            if self.mode == Mode::Excluded { (vec![], vec![root]) } else { (vec![root], vec![]) };
        let mut seen = BTreeSet::new();
        for (pattern, is_included) in &self.paths {
            let text = pattern.text(words);
            if seen.insert(text.clone()) {
                if *is_included { &mut included } else { &mut excluded }.push(json!({"path": text}));
            }
        }
        let composite = |parts: &Vec<(usize, bool)>| -> Value {
            let part = |(path, descending): &(usize, bool)| {
                let order = if *descending { "descending" } else { "ascending" };
                json!({"path": steps(&words.path(*path)), "order": order})
            };
            parts.iter().map(part).collect()
        };
        let composites: Vec<Value> = self.kept_composites(words).iter().map(composite).collect();
        let automatic = self.mode != Mode::NotAutomatic;
        json!({"indexingMode": "consistent", "automatic": automatic, "includedPaths": included,
            "excludedPaths": excluded, "compositeIndexes": composites})
    }

    /// What the most specific of the paths says that match a place.
    fn includes(&self, words: &Words, place: &[&str]) -> bool {
        let mut seen = BTreeSet::new();
        let mut best = (0, false, self.mode != Mode::Excluded);
        for (pattern, is_included) in &self.paths {
            if !seen.insert(pattern.text(words)) || pattern.elements {
                continue;
            }
            let mut names = pattern.names(words);
            names.extend(pattern.below.map(|name| words.name(name)));
            let matches = if pattern.subtree { place.starts_with(&names) } else { place == names };
            if matches && (names.len(), !pattern.subtree) > (best.0, best.1) {
                best = (names.len(), !pattern.subtree, *is_included);
            }
        }
        best.2
    }

    /// The composite indexes that may stand in one policy: of distinct paths, and none twice.
    fn kept_composites(&self, words: &Words) -> Vec<Vec<(usize, bool)>> {
        if self.mode == Mode::None {
            return Vec::new();
        }
        let mut seen = BTreeSet::new();
        let mut kept = Vec::new();
        for parts in &self.composites {
            let mut paths = BTreeSet::new();
            let own: Vec<(usize, bool)> =
                parts.iter().filter(|(path, _)| paths.insert(words.path(*path))).copied().collect();
            let named: Vec<(Vec<&str>, bool)> =
                own.iter().map(|(path, order)| (words.path(*path), *order)).collect();
            if own.len() > 1 && seen.insert(named) {
                kept.push(own);
            }
        }
        kept
    }
}

impl Pattern {
    fn names<'w>(&self, words: &'w Words) -> Vec<&'w str> {
        self.path.map_or(vec![COMPUTED], |path| words.path(path))
    }

    fn text(&self, words: &Words) -> String {
        let mut text = steps(&self.names(words));
        if self.elements {
            text += "/[]";
        }
        if let Some(name) = self.below {
            text += &steps(&[words.name(name)]);
        }
        text + if self.subtree { "/*" } else { "/?" }
    }
}

/// Names as policies write them.
fn steps(names: &[&str]) -> String {
    let quoted: Vec<String> =
        names.iter().map(|name| format!("/\"{}\"", name.replace('"', "\\\""))).collect();
    quoted.concat()
}

/// Any policy.
pub(crate) fn policy() -> BoxedStrategy<Policy> {
    let mode = prop_oneof![6 => Just(Mode::Included), 4 => Just(Mode::Excluded), 1 => Just(Mode::NotAutomatic), 1 => Just(Mode::None)];
    let pattern = (
        option::weighted(0.9, 0_usize..8),
        proptest::bool::weighted(0.3),
        option::weighted(0.3, 0_usize..8),
        any::<bool>(),
    )
        .prop_map(|(path, elements, below, subtree)| Pattern { path, elements, below, subtree });
    let composite = vec((0_usize..8, any::<bool>()), 2..4);
    (mode, vec((pattern, any::<bool>()), 0..5), vec(composite, 0..4))
        .prop_map(|(mode, paths, composites)| Policy { mode, paths, composites })
        .boxed()
}

/// Any container.
pub(crate) fn definition() -> BoxedStrategy<Definition> {
    let default_ttl = option::weighted(0.15, select(vec![-1, 10]));
    let computed = option::weighted(0.2, (0_usize..8, select(EXPRESSIONS.to_vec())));
    (proptest::bool::weighted(0.3), proptest::bool::weighted(0.3), default_ttl, computed, policy())
        .prop_map(|(hierarchical, wide, default_ttl, computed, policy)| Definition {
            hierarchical,
            wide,
            default_ttl,
            computed,
            policy,
        })
        .boxed()
}
