//! Paths to one property of a document, as partition keys, unique keys and composite indexes name them.
//!
//! In: text such as `/address/zip` or `/"first-name"/a`. Out: `PropertyPath`, the names without their quotes from the top of the
//! document down, or a `PathError` that says where the text is wrong.
//! Rules
//! - The text starts with `/`; names are separated by `/`; no name is empty unless quoted; no `/` at the end.
//! - A name may stand in `"` or `'`. Inside, a backslash before that same quote keeps it from ending the name, of which both
//!   are part; any other backslash is an ordinary character (the service and its clients read paths this way).
//! - Outside quotes `*`, `?`, `[` and `]` are refused: such a path would name many values, and these uses need one.
//! - Spaces at the end of the text are ignored.
//!
//! Not here: the patterns of indexing policies (`/a/?`, `/a/*`, `/a/[]/b`), which name sets of paths (`catalog`).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The place of one property inside a document.
///
/// Two paths are equal when they name the same property: `/a` and `/"a"` are one path with two spellings, and
/// order and hash follow the names too.
#[derive(Clone)]
pub struct PropertyPath {
    text: Box<str>,
    segments: Box<[Box<str>]>,
}

/// Why a text is no property path. Always the fault of whoever wrote the path; offsets count bytes of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is empty or does not begin with a slash.
    #[error("a property path must start with '/'")]
    NoLeadingSlash,
    /// The text ends with a slash (a lone `/` included), so the last name is missing.
    #[error("a property path must not end with '/'")]
    TrailingSlash,
    /// Two slashes follow each other: a name is missing between them.
    #[error("empty property name at byte {offset} of the path")]
    EmptyName {
        /// Where the name should be.
        offset: usize,
    },
    /// A quoted name is never closed.
    #[error("the quote opened at byte {offset} of the path is not closed")]
    UnclosedQuote {
        /// Where the quote opens.
        offset: usize,
    },
    /// Something other than a slash follows a closing quote.
    #[error("unexpected text after the closing quote at byte {offset} of the path")]
    TextAfterQuote {
        /// The first unexpected byte.
        offset: usize,
    },
    /// `*` or `?` outside quotes: the path would name several properties.
    #[error("wildcard at byte {offset}: the path must name one property")]
    Wildcard {
        /// The wildcard.
        offset: usize,
    },
    /// `[` or `]` outside quotes: elements of arrays cannot be named.
    #[error("array index at byte {offset}: the path must not lead into arrays")]
    ArrayIndex {
        /// The bracket.
        offset: usize,
    },
}

impl PropertyPath {
    /// Reads a path; see the module header for the rules.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let text = text.trim_end_matches(' ');
        if !text.starts_with('/') {
            return Err(PathError::NoLeadingSlash);
        }
        let mut segments = Vec::new();
        let mut at = 0;
        // `at` stands on a slash at the top of each turn; both readers stop on the next slash or at the end.
        while at < text.len() {
            at += 1;
            let rest = &text[at..];
            let (name, length) = match rest.chars().next() {
                None => return Err(PathError::TrailingSlash),
                Some(quote @ ('"' | '\'')) => quoted_name(rest, quote, at)?,
                Some(_) => plain_name(rest, at)?,
            };
            segments.push(name);
            at += length;
        }
        Ok(Self { text: text.into(), segments: segments.into() })
    }

    /// The names from the top of the document down, without their quotes; never empty.
    pub fn segments(&self) -> &[Box<str>] {
        &self.segments
    }

    /// The path as it was given (without spaces at the end), to be shown back to its author.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn plain_name(rest: &str, start: usize) -> Result<(Box<str>, usize), PathError> {
    let length = rest.find('/').unwrap_or(rest.len());
    let name = &rest[..length];
    if name.is_empty() {
        return Err(PathError::EmptyName { offset: start });
    }
    match name.find(['*', '?', '[', ']']) {
        None => Ok((name.into(), length)),
        Some(at) if name[at..].starts_with(['*', '?']) => Err(PathError::Wildcard { offset: start + at }),
        Some(at) => Err(PathError::ArrayIndex { offset: start + at }),
    }
}

fn quoted_name(rest: &str, quote: char, start: usize) -> Result<(Box<str>, usize), PathError> {
    let mut name = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            let length = at + 1;
            return match rest[length..].chars().next() {
                None | Some('/') => Ok((name.into(), length)),
                Some(_) => Err(PathError::TextAfterQuote { offset: start + length }),
            };
        }
        name.push(character);
        if let Some((_, kept)) = characters.next_if(|(_, next)| character == '\\' && *next == quote) {
            name.push(kept);
        }
    }
    Err(PathError::UnclosedQuote { offset: start })
}

impl PartialEq for PropertyPath {
    fn eq(&self, other: &Self) -> bool {
        self.segments == other.segments
    }
}

impl Eq for PropertyPath {}

impl PartialOrd for PropertyPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PropertyPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.segments.cmp(&other.segments)
    }
}

impl Hash for PropertyPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segments.hash(state);
    }
}

impl fmt::Debug for PropertyPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PropertyPath({})", self.text)
    }
}

impl fmt::Display for PropertyPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: Result<&[&str], PathError>) {
        let actual = PropertyPath::parse(text);
        let names =
            actual.as_ref().map(|path| path.segments().iter().map(AsRef::as_ref).collect::<Vec<&str>>());
        assert_eq!(names, expected.as_ref().map(|names| names.to_vec()), "{text}");
    }

    #[test]
    fn reads_names() {
        check("/pk", Ok(&["pk"]));
        check("/address/zip  ", Ok(&["address", "zip"]));
        check(r#"/"first-name"/a"#, Ok(&["first-name", "a"]));
        check(r#"/a/"b c"/d"#, Ok(&["a", "b c", "d"]));
        check("/'a/b*?[0]'", Ok(&["a/b*?[0]"]));
        check(r#"/"say \"hi\" it's \n"/x"#, Ok(&[r#"say \"hi\" it's \n"#, "x"]));
        check(r"/'it\'s'", Ok(&[r"it\'s"]));
        check(r#"/a"b/it's"#, Ok(&[r#"a"b"#, "it's"]));
        check("/\"\"/ü😀", Ok(&["", "ü😀"]));
        check("/ a /b", Ok(&[" a ", "b"]));
        check("/0", Ok(&["0"]));
    }

    #[test]
    fn refuses_what_names_no_single_property() {
        check("", Err(PathError::NoLeadingSlash));
        check("a/b", Err(PathError::NoLeadingSlash));
        check("/", Err(PathError::TrailingSlash));
        check("/a/ ", Err(PathError::TrailingSlash));
        check("/\"a\"/", Err(PathError::TrailingSlash));
        check("/a//b", Err(PathError::EmptyName { offset: 3 }));
        check("/a/\"b", Err(PathError::UnclosedQuote { offset: 3 }));
        check(r#"/"b\""#, Err(PathError::UnclosedQuote { offset: 1 }));
        check("/\"a\"b", Err(PathError::TextAfterQuote { offset: 4 }));
        check("/a/*", Err(PathError::Wildcard { offset: 3 }));
        check("/ab?", Err(PathError::Wildcard { offset: 3 }));
        check("/a/[]/b", Err(PathError::ArrayIndex { offset: 3 }));
        check("/a[0]", Err(PathError::ArrayIndex { offset: 2 }));
    }

    #[test]
    fn spelling_does_not_make_another_path() {
        let plain = PropertyPath::parse("/a/b").unwrap();
        let quoted = PropertyPath::parse("/'a'/\"b\"").unwrap();
        assert_eq!(plain, quoted);
        assert_eq!(quoted.as_str(), "/'a'/\"b\"");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[/'\"\\\\a*?\\[ \u{e9}]{0,12}") {
            if let Ok(path) = PropertyPath::parse(&text) {
                prop_assert!(!path.segments().is_empty());
                prop_assert_eq!(PropertyPath::parse(path.as_str()), Ok(path));
            }
        }

        #[test]
        fn quoted_names_come_back(name in "[^\\\\\"]{0,12}") {
            let text = format!("/\"{name}\"");
            let path = PropertyPath::parse(&text);
            prop_assert_eq!(path.as_ref().map(|path| &*path.segments()[0]), Ok(name.as_str()));
        }
    }
}
