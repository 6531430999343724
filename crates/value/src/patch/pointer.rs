//! JSON pointers, the paths of patch operations: `/address/zip`, `/tags/0`, `/tags/-`.
//!
//! In: text. Out: [`Pointer`], the unescaped parts from the top of the document down, or a [`PointerError`].
//! Rules
//! - The text starts with `/`, and each further `/` begins a part; a part may be empty, for a name may be.
//! - Inside a part `~1` stands for `/` and `~0` for `~`; no other `~` is allowed.
//! - At most [`DEPTH_MAX`] parts: no document is deeper, so longer paths lead nowhere.
//!
//! Not here: the paths of definitions, which have quotes instead of escapes (`PropertyPath`).

use super::excerpt;
use crate::json::DEPTH_MAX;

/// The place of one value in a document, or of one that could be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    parents: Box<[Box<str>]>,
    last: Box<str>,
}

/// Why a text is no pointer. Always the fault of whoever wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The text is empty or begins with something else.
    #[error("a path must start with '/'")]
    NoLeadingSlash,
    /// A `~` that is neither `~0` nor `~1`.
    #[error("'~' in a path must be written '~0', and '/' in a name '~1'")]
    Escape,
    /// More parts than a document has levels.
    #[error("a path must have at most {DEPTH_MAX} parts")]
    TooDeep,
}

impl Pointer {
    /// Reads a pointer; see the module header for the rules.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let parts = text.strip_prefix('/').ok_or(PointerError::NoLeadingSlash)?;
        let mut segments = Vec::new();
        for part in parts.split('/') {
            if segments.len() == DEPTH_MAX {
                return Err(PointerError::TooDeep);
            }
            segments.push(unescape(part)?);
        }
        let last = segments.pop().expect("splitting gives at least one part");
        Ok(Self { parents: segments.into(), last })
    }

    /// The parts from the top of the document down; never empty.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.parents().chain([&*self.last])
    }

    /// Whether this is a place below that one.
    pub fn is_inside(&self, other: &Pointer) -> bool {
        self.parents.len() > other.parents.len() && self.begins_with(other.segments())
    }

    /// Whether the first parts are these.
    pub(super) fn begins_with<'s>(&self, segments: impl IntoIterator<Item = &'s str>) -> bool {
        let mut own = self.segments();
        segments.into_iter().all(|segment| own.next() == Some(segment))
    }

    pub(super) fn parents(&self) -> impl Iterator<Item = &str> {
        self.parents.iter().map(|segment| &**segment)
    }

    pub(super) fn last(&self) -> &str {
        &self.last
    }

    /// The pointer as text, cut to a length that is fit for a message.
    pub(super) fn excerpt(&self) -> String {
        let mut text = String::new();
        for segment in self.segments() {
            text.push('/');
            text.push_str(&segment.replace('~', "~0").replace('/', "~1"));
            if text.len() > 1_000 {
                break;
            }
        }
        excerpt(&text)
    }
}

fn unescape(part: &str) -> Result<Box<str>, PointerError> {
    if !part.contains('~') {
        return Ok(part.into());
    }
    let mut name = String::with_capacity(part.len());
    let mut characters = part.chars();
    while let Some(character) = characters.next() {
        name.push(match character {
            '~' => match characters.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return Err(PointerError::Escape),
            },
            plain => plain,
        });
    }
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&[&str], PointerError>) {
        let pointer = Pointer::parse(text);
        let segments = pointer.as_ref().map(|pointer| pointer.segments().collect::<Vec<_>>());
        assert_eq!(segments.map_err(|error| *error), expected.map(<[&str]>::to_vec), "{text}");
    }

    #[test]
    fn pointers() {
        check("/a", Ok(&["a"]));
        check("/a/0/-", Ok(&["a", "0", "-"]));
        check("/", Ok(&[""]));
        check("/a/", Ok(&["a", ""]));
        check("/a~1b/~0~01/é ", Ok(&["a/b", "~~1", "é "]));
        check("", Err(PointerError::NoLeadingSlash));
        check("a", Err(PointerError::NoLeadingSlash));
        check("/a~", Err(PointerError::Escape));
        check("/~2", Err(PointerError::Escape));
        check(&"/a".repeat(DEPTH_MAX + 1), Err(PointerError::TooDeep));
        assert!(Pointer::parse(&"/a".repeat(DEPTH_MAX)).is_ok());
    }

    #[test]
    fn inside() {
        let inside =
            |one: &str, other: &str| Pointer::parse(one).unwrap().is_inside(&Pointer::parse(other).unwrap());
        assert!(inside("/a/b", "/a") && inside("/a/b/c", "/a/b"));
        assert!(
            !inside("/a", "/a") && !inside("/a", "/a/b") && !inside("/ab", "/a") && !inside("/b/a", "/a")
        );
    }

    proptest! {
        #[test]
        fn names_come_back(names in prop::collection::vec(".{0,5}", 1..5)) {
            let escaped: Vec<String> =
                names.iter().map(|name| name.replace('~', "~0").replace('/', "~1")).collect();
            let text = format!("/{}", escaped.join("/"));
            let pointer = Pointer::parse(&text).unwrap();
            prop_assert!(pointer.segments().eq(names.iter().map(String::as_str)));
            prop_assert_eq!(pointer.excerpt(), text);
        }

        #[test]
        fn reading_is_total(text in "[/~01a]{0,20}|.*") {
            let _ = Pointer::parse(&text);
        }
    }
}
