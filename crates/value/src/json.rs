//! JSON text: read once into a tape of fixed-size entries over the text itself, and written.
//!
//! In: the bytes a client sent, or stored ones. Out: `Text`, in which any value can be found, compared and copied
//! without another allocation per value, or a `JsonError` with the offset of the fault.
//! Why written by hand: a document is read exactly once when it is written, and that one reading must validate, bound
//! depth and magnitude, keep the spelling of numbers, find duplicate names, and know which parts can be copied as
//! they stand. General readers build values and lose the spelling, or leave the checks to further passes.
//! Invariants
//! - What `parse` accepts is UTF-8 and RFC 8259, nests at most `DEPTH_MAX` containers, and every number is a finite
//!   double. Lone surrogates in escapes are refused: no text the product stores or prints could hold them.
//! - For every input, time is n log n in the length of the text and memory linear, at most some twenty times the length.
//! - Of members with one name only the last exists, for every function here.
//!
//! Not here: which values a request may hold (`catalog`, `store`), the binary header of stored documents (`keys`).

mod escape;
mod minimal;
mod print;
mod reader;
pub mod seek;

use std::borrow::Cow;
use std::sync::Arc;

pub use print::{write_number, write_string};

use crate::{Object, PropertyPath, Value};

/// How many arrays and objects may stand inside each other, the outermost one counted.
pub const DEPTH_MAX: usize = 128;

/// A validated JSON text and the tape that finds its values.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    source: &'a str,
    /// In the order of the text. A container is followed by its content; a member is its name, then its value.
    entries: Vec<TapeEntry>,
}

/// One value of a `Text`.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    text: &'a Text<'a>,
    index: u32,
}

/// The six kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number of any spelling.
    Number,
    /// Text in quotes.
    String,
    /// Values in brackets.
    Array,
    /// Members in braces.
    Object,
}

/// Why a text is not JSON that can be stored, and where. Always the fault of whoever wrote the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {offset}")]
pub struct JsonError {
    /// What is wrong.
    pub fault: JsonFault,
    /// The first byte that does not fit.
    pub offset: usize,
}

/// The faults of JSON texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The bytes are no UTF-8.
    #[error("invalid UTF-8")]
    Encoding,
    /// The text stops inside a value, or holds nothing.
    #[error("unexpected end of text")]
    UnexpectedEnd,
    /// A byte that no grammar rule allows here; also what follows the value.
    #[error("unexpected character")]
    UnexpectedByte,
    /// A control character inside a string, where only its escape may stand.
    #[error("unescaped control character in a string")]
    ControlCharacter,
    /// A backslash that starts no escape of JSON.
    #[error("invalid escape in a string")]
    Escape,
    /// Half of a surrogate pair: it stands for no character.
    #[error("surrogate escape without its other half")]
    LoneSurrogate,
    /// A number whose magnitude no double can hold.
    #[error("number out of the range of double precision")]
    NumberRange,
    /// More than `DEPTH_MAX` containers inside each other.
    #[error("nesting too deep")]
    Depth,
    /// More bytes than the tape can address (4 GiB); the limits of requests are far below.
    #[error("text too long")]
    Length,
}

/// One place of the tape, 16 bytes.
#[derive(Clone, Copy, Debug)]
struct TapeEntry {
    /// Where the value starts in the text, quotes and brackets included.
    start: u32,
    /// Where the value ends.
    end: u32,
    /// The entry after this value with all it contains; for a name, after the value of the name.
    next: u32,
    kind: Kind,
    /// For strings: holds a backslash, so the content must be unescaped.
    escaped: bool,
    /// For names: a later member has the same name, so this member does not exist.
    shadowed: bool,
    /// For containers: no space between tokens and no shadowed member inside, so the text can be copied as it is.
    minimal: bool,
}

impl<'a> Text<'a> {
    /// Reads one value and nothing after it; see the module header for what is accepted.
    pub fn parse(text: &'a [u8]) -> Result<Self, JsonError> {
        let source = std::str::from_utf8(text)
            .map_err(|error| JsonError { fault: JsonFault::Encoding, offset: error.valid_up_to() })?;
        Ok(Self { source, entries: reader::read(source)? })
    }

    /// The outermost value.
    pub fn root(&self) -> Node<'_> {
        Node { text: self, index: 0 }
    }

    /// Appends the text without spaces between tokens, without shadowed members, and without the named members of the
    /// outermost object. What remains keeps its order and its spelling.
    pub fn write_minimal(&self, omit_top_level: &[&str], out: &mut Vec<u8>) {
        minimal::write(self, omit_top_level, out);
    }

    /// The name of a member or a string value, between the quotes and still escaped.
    fn content(&self, entry: &TapeEntry) -> &str {
        &self.source[entry.start as usize + 1..entry.end as usize - 1]
    }

    fn unescaped(&self, entry: &TapeEntry) -> Cow<'_, str> {
        if entry.escaped {
            Cow::Owned(escape::unescape(self.content(entry)))
        } else {
            Cow::Borrowed(self.content(entry))
        }
    }

    fn has_name(&self, entry: &TapeEntry, name: &str) -> bool {
        if entry.escaped {
            escape::characters(self.content(entry)).eq(name.chars())
        } else {
            // The length first: it is on the tape, and it tells most names apart without touching the text.
            (entry.end - entry.start) as usize == name.len() + 2 && self.content(entry) == name
        }
    }

    /// The name entries of the object at `index`, shadowed ones left out.
    fn member_names(&self, index: u32) -> impl Iterator<Item = u32> {
        let object = self.entries[index as usize];
        let end = if object.kind == Kind::Object { object.next } else { index };
        let mut at = index + 1;
        std::iter::from_fn(move || {
            while at < end {
                let name = at;
                let entry = self.entries[name as usize];
                at = entry.next;
                if !entry.shadowed {
                    return Some(name);
                }
            }
            None
        })
    }
}

impl<'a> Node<'a> {
    fn entry(self) -> &'a TapeEntry {
        &self.text.entries[self.index as usize]
    }

    /// What kind of value this is.
    pub fn kind(self) -> Kind {
        self.entry().kind
    }

    /// The value as it stands in the text, spaces inside it included.
    pub fn raw(self) -> &'a str {
        let entry = self.entry();
        &self.text.source[entry.start as usize..entry.end as usize]
    }

    /// The boolean; `None` for other kinds.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The nearest double, always finite; `None` for other kinds.
    pub fn as_f64(self) -> Option<f64> {
        if self.kind() != Kind::Number {
            return None;
        }
        Some(self.raw().parse().expect("the reader accepts only what is also a Rust number"))
    }

    /// The string without quotes and escapes, borrowed from the text where it has no escapes; `None` for other kinds.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| self.text.unescaped(self.entry()))
    }

    /// The member of that name; `None` also when this is no object.
    pub fn get(self, name: &str) -> Option<Node<'a>> {
        let text = self.text;
        let found =
            text.member_names(self.index).find(|&at| text.has_name(&text.entries[at as usize], name))?;
        Some(Node { text, index: found + 1 })
    }

    /// The value a path leads to, through objects only.
    pub fn at(self, path: &PropertyPath) -> Option<Node<'a>> {
        path.segments().iter().try_fold(self, |node, name| node.get(name))
    }

    /// The members in the order of the text, each name once; none when this is no object.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Node<'a>)> {
        let text = self.text;
        text.member_names(self.index)
            .map(move |at| (text.unescaped(&text.entries[at as usize]), Node { text, index: at + 1 }))
    }

    /// The elements in order; none when this is no array.
    pub fn elements(self) -> impl Iterator<Item = Node<'a>> {
        let array = self.entry();
        let end = if array.kind == Kind::Array { array.next } else { self.index };
        let text = self.text;
        let mut at = self.index + 1;
        std::iter::from_fn(move || {
            let index = at;
            (index < end).then(|| {
                at = text.entries[index as usize].next;
                Node { text, index }
            })
        })
    }

    /// The value as expressions see it; the depth of the recursion is bounded by the reader.
    pub fn to_value(self) -> Value {
        match self.kind() {
            Kind::Null => Value::Null,
            Kind::Bool => self.as_bool().map_or(Value::Undefined, Value::Bool),
            Kind::Number => self.as_f64().map_or(Value::Undefined, Value::Number),
            Kind::String => self.as_str().map_or(Value::Undefined, |text| Value::String(Arc::from(text))),
            Kind::Array => Value::Array(self.elements().map(Node::to_value).collect()),
            Kind::Object => {
                let members = self.members().map(|(name, node)| (Arc::from(name), node.to_value()));
                Value::Object(Object::from_distinct_members(members.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
