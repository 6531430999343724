//! Documents of a case: a few ids and partitions, so that writes meet, and trees at the case's paths.

use crate::words::Words;
use astrarium_database::IndexDirective;
use astrarium_testkit::json::Json;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Values of the partition key; the last is none at all.
pub(crate) const KEYS: [Option<&str>; 6] =
    [Some("\"a\""), Some("\"b\""), Some("1"), Some("null"), Some("true"), None];
/// Values of the second level of hierarchical keys.
pub(crate) const SECOND_KEYS: [Option<&str>; 4] = [Some("\"x\""), Some("\"y\""), Some("0"), None];

/// Ids that documents have.
const IDS: usize = 40;

/// A document, with words by number.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) id: usize,
    /// Numbers of the partition key's values.
    pub(crate) key: (usize, usize),
    /// A small whole number, for sums.
    number: Option<i8>,
    /// Seconds to live.
    ttl: Option<i8>,
    /// What its writer says about indexing it.
    pub(crate) directive: IndexDirective,
    /// What stands at some paths.
    parts: Vec<(usize, Content)>,
}

/// What stands at a path.
#[derive(Debug, Clone)]
enum Content {
    Value(usize),
    Array(Vec<Content>),
    Object(Vec<(usize, Content)>),
}

impl Document {
    /// The same document with another id, unless it is the first of its copies.
    pub(crate) fn copied(&self, copy: usize) -> Document {
        Document { id: self.id + copy * IDS, ..self.clone() }
    }

    /// The document's text.
    pub(crate) fn text(&self, words: &Words) -> String {
        let mut root = vec![("id".to_owned(), Json::Text(self.id.to_string()))];
        let word = |text: &str| Json::parse(text).expect("JSON of ours");
        let own =
            [("pk", KEYS[self.key.0 % KEYS.len()]), ("sub", SECOND_KEYS[self.key.1 % SECOND_KEYS.len()])];
        root.extend(own.iter().filter_map(|(name, value)| Some(((*name).to_owned(), word(value.as_ref()?)))));
        root.extend(self.number.map(|number| ("n".to_owned(), Json::Word(number.to_string()))));
        root.extend(self.ttl.map(|ttl| ("ttl".to_owned(), Json::Word(ttl.to_string()))));
        for (path, content) in &self.parts {
            place(&mut root, &words.path(*path), content.json(words));
        }
        Json::Object { members: root, open: false }.to_string()
    }
}

impl Content {
    fn json(&self, words: &Words) -> Json {
        match self {
            Content::Value(number) => words.value(*number).clone(),
            Content::Array(items) => {
                Json::Array { items: items.iter().map(|item| item.json(words)).collect(), open: false }
            }
            Content::Object(members) => {
                let member =
                    |(name, content): &(usize, Content)| (words.name(*name).to_owned(), content.json(words));
                let mut own: Vec<(String, Json)> = Vec::new();
                for (name, value) in members.iter().map(member) {
                    if own.iter().all(|(other, _)| *other != name) {
                        own.push((name, value));
                    }
                }
                Json::Object { members: own, open: false }
            }
        }
    }
}

/// Puts a value at a path, unless something else is in the way.
fn place(members: &mut Vec<(String, Json)>, path: &[&str], value: Json) {
    let Some((first, rest)) = path.split_first() else { return };
    let found = members.iter().position(|(name, _)| name == first);
    let index = found.unwrap_or_else(|| {
        members.push(((*first).to_owned(), Json::Object { members: Vec::new(), open: false }));
        members.len() - 1
    });
    match (&mut members[index].1, rest.is_empty()) {
        (own, true) if found.is_none() => *own = value,
        (Json::Object { members, .. }, false) => place(members, rest, value),
        _ => {}
    }
}

fn content() -> BoxedStrategy<Content> {
    let value = (0_usize..64).prop_map(Content::Value);
    let nested = value.clone().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..5).prop_map(Content::Array),
            2 => vec((0_usize..8, inner), 0..4).prop_map(Content::Object),
        ]
    });
    prop_oneof![3 => value, 2 => nested].boxed()
}

/// Any document.
pub(crate) fn document() -> BoxedStrategy<Document> {
    let key =
        (prop_oneof![2 => Just(0_usize), 2 => 0_usize..6], prop_oneof![2 => Just(0_usize), 1 => 0_usize..4]);
    let ttl = option::weighted(0.1, prop_oneof![Just(-1_i8), 1_i8..20]);
    let directive = prop_oneof![
        20 => Just(IndexDirective::Default),
        1 => select(vec![IndexDirective::Include, IndexDirective::Exclude]),
    ];
    let parts = vec((0_usize..8, content()), 1..7);
    (0..IDS, key, option::weighted(0.9, -3_i8..9), ttl, directive, parts)
        .prop_map(|(id, key, number, ttl, directive, parts)| Document {
            id,
            key,
            number,
            ttl,
            directive,
            parts,
        })
        .boxed()
}
