//! The path patterns of indexing policies, such as `/address/*`, `/"first-name"/?` and `/tags/[]/name/?`.
//!
//! In: the text of a policy. Out: [`IndexPath`], the steps from the top of a document and what is meant at the end.
//! Rules
//! - The text starts with `/` and ends with `/?` (the scalar at the path) or `/*` (everything below it); a lone `/` is
//!   the older spelling of `/*`.
//! - A step is the name of a property, or `[]` for all elements of an array. Letters, digits and underscores need no
//!   quotes; any other name stands in `"` or `'`, where a backslash before that same quote makes it part of the name.
//!
//! Not here: paths that name one property (`astrarium_value::PropertyPath`), matching documents (`index`).

use crate::definition::{Invalid, excerpt};
use std::cmp::Ordering;
use std::fmt;

/// A set of places inside documents.
///
/// Paths are equal, and ordered, by the places they mean: `/a/?` and `/"a"/?` are one path in two spellings.
#[derive(Clone)]
pub struct IndexPath {
    text: Box<str>,
    steps: Box<[IndexStep]>,
    target: IndexTarget,
}

/// One step down into a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexStep {
    /// Into the property of that name.
    Property(Box<str>),
    /// Into every element of an array (`[]`).
    Elements,
}

/// What a path means where its steps end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexTarget {
    /// The scalar at that place (`/?`).
    Value,
    /// That place and everything below it (`/*`).
    Subtree,
}

impl IndexPath {
    /// Everything in a document.
    pub fn root() -> IndexPath {
        IndexPath { text: "/*".into(), steps: Box::new([]), target: IndexTarget::Subtree }
    }

    /// The scalar value of one top-level property.
    pub(super) fn property(name: &str) -> IndexPath {
        let text = format!("/\"{name}\"/?").into();
        IndexPath { text, steps: Box::new([IndexStep::Property(name.into())]), target: IndexTarget::Value }
    }

    /// Reads a path; see the module header for the rules.
    pub fn parse(text: &str) -> Result<IndexPath, Invalid> {
        if text == "/" {
            return Ok(IndexPath::root());
        }
        let (steps, target) = parse(text).map_err(|position| refusal(text, position))?;
        Ok(IndexPath { text: text.into(), steps: steps.into(), target })
    }

    /// The steps from the top of a document; none for the whole document.
    pub fn steps(&self) -> &[IndexStep] {
        &self.steps
    }

    /// What is meant where the steps end.
    pub fn target(&self) -> IndexTarget {
        self.target
    }

    /// Whether the path means everything in a document.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// The path as it was given, to be shown back to its author.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Reads the steps and the end of a path; the error is the byte where reading failed.
fn parse(text: &str) -> Result<(Vec<IndexStep>, IndexTarget), usize> {
    let mut steps = Vec::new();
    let mut at = 0;
    // `at` stands where a slash is due at the top of each turn.
    loop {
        let rest = text[at..].strip_prefix('/').ok_or(at)?;
        at += 1;
        match rest {
            "*" => return Ok((steps, IndexTarget::Subtree)),
            "?" if !steps.is_empty() => return Ok((steps, IndexTarget::Value)),
            _ => {}
        }
        let (step, length) = match rest.chars().next() {
            Some('[') if rest.starts_with("[]") => (IndexStep::Elements, 2),
            Some(quote @ ('"' | '\'')) => quoted_name(rest, quote).ok_or(at)?,
            _ => plain_name(rest).map_err(|offset| at + offset)?,
        };
        steps.push(step);
        at += length;
    }
}

fn plain_name(rest: &str) -> Result<(IndexStep, usize), usize> {
    let length = rest.find('/').unwrap_or(rest.len());
    let name = &rest[..length];
    match name.find(|character: char| !character.is_alphanumeric() && character != '_') {
        Some(offset) => Err(offset),
        None if name.is_empty() => Err(0),
        None => Ok((IndexStep::Property(name.into()), length)),
    }
}

fn quoted_name(rest: &str, quote: char) -> Option<(IndexStep, usize)> {
    let mut name = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            return Some((IndexStep::Property(name.into()), at + 1));
        }
        match characters.next_if(|(_, next)| character == '\\' && *next == quote) {
            Some((_, escaped)) => name.push(escaped),
            None => name.push(character),
        }
    }
    None
}

fn refusal(text: &str, position: usize) -> Invalid {
    Invalid::new(format!(
        "The indexing path '{}' could not be accepted, failed near position '{position}'. A path starts with '/' and \
         ends with '/?' or '/*'; arrays are '/[]'; names other than letters, digits and underscores need quotes.",
        excerpt(text)
    ))
}

impl PartialEq for IndexPath {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for IndexPath {}

impl PartialOrd for IndexPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IndexPath {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.steps, self.target).cmp(&(&other.steps, other.target))
    }
}

impl fmt::Debug for IndexPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IndexPath({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&[&str], IndexTarget), usize>) {
        let shown = |step: &IndexStep| match step {
            IndexStep::Property(name) => name.to_string(),
            IndexStep::Elements => "[]".to_owned(),
        };
        match (IndexPath::parse(text), expected) {
            (Ok(path), Ok((steps, target))) => {
                assert_eq!(path.steps().iter().map(shown).collect::<Vec<_>>(), steps, "{text}");
                assert_eq!(path.target(), target, "{text}");
                assert_eq!(IndexPath::parse(path.as_str()), Ok(path));
            }
            (Err(error), Err(position)) => {
                let fragment = format!("could not be accepted, failed near position '{position}'");
                assert!(error.message().contains(&fragment), "{text}: {error}");
            }
            (actual, _) => panic!("{text}: {actual:?}"),
        }
    }

    #[test]
    fn paths_of_policies() {
        check("/*", Ok((&[], IndexTarget::Subtree)));
        check("/", Ok((&[], IndexTarget::Subtree)));
        check("/a/?", Ok((&["a"], IndexTarget::Value)));
        check("/a/b_1/*", Ok((&["a", "b_1"], IndexTarget::Subtree)));
        check("/\"_etag\"/?", Ok((&["_etag"], IndexTarget::Value)));
        check("/'it\\'s'/*", Ok((&["it's"], IndexTarget::Subtree)));
        check("/\"a/b*?[]\"/?", Ok((&["a/b*?[]"], IndexTarget::Value)));
        check("/a/[]/b/?", Ok((&["a", "[]", "b"], IndexTarget::Value)));
        check("/a/[]/[]/?", Ok((&["a", "[]", "[]"], IndexTarget::Value)));
        check("/a/[]/*", Ok((&["a", "[]"], IndexTarget::Subtree)));
        check("/größe/?", Ok((&["größe"], IndexTarget::Value)));
    }

    #[test]
    fn wrong_paths_say_where() {
        check("", Err(0));
        check("a/?", Err(0));
        check("/expiration", Err(11));
        check("/a/[]", Err(5));
        check("/?", Err(1));
        check("/a/*/b/?", Err(3));
        check("/a/?/b", Err(3));
        check("/a//?", Err(3));
        check("/a/", Err(3));
        check("/a-b/?", Err(2));
        check("/a[0]/?", Err(2));
        check("/a/[0]/?", Err(3));
        check("/[]a/?", Err(3));
        check("/\"a", Err(1));
        check("/\"a\"b/?", Err(4));
        check("/a/* ", Err(3));
    }

    #[test]
    fn spelling_does_not_make_another_path() {
        assert_eq!(IndexPath::parse("/\"a\"/?"), IndexPath::parse("/a/?"));
        assert_ne!(IndexPath::parse("/a/*"), IndexPath::parse("/a/?"));
        assert_eq!(IndexPath::parse("/\"_etag\"/?"), Ok(IndexPath::property("_etag")));
    }
}
