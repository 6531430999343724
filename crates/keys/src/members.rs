//! Where the outermost members of a stored document are, so that a query finds one without walking over those before it.
//!
//! In: the document's text, minimal. Out: a table to store beside it, and members found with both.
//!
//! | bytes | content |
//! |---|---|
//! | count | of each member a byte that depends on its name ([`mark`]) |
//! | 2 × count | bytes of each member: name, colon, value |
//!
//! Lengths and not offsets, because those of neighbouring documents are alike and compress.
//! Invariant: a table has all members, so a name that is not in it is not in the document. Texts that are too long for
//! it, have too many members, or escapes in a name, have none: an empty one.

use astrarium_value::json::seek;

/// Bytes of the table for each member.
pub(crate) const ENTRY_BYTES: usize = 3;
/// Members that a table has at most: their count is stored in a byte.
const COUNT_MAX: usize = u8::MAX as usize;

/// The table of a text, and how many members it has.
pub(crate) fn table(text: &[u8]) -> (u8, Vec<u8>) {
    let nothing = (0, Vec::new());
    if text.len() > usize::from(u16::MAX) {
        return nothing;
    }
    let (mut marks, mut lengths) = (Vec::new(), Vec::new());
    let mut end = 1;
    for member in seek::members(text) {
        let Some(name) = member.plain_name().filter(|_| marks.len() < COUNT_MAX) else { return nothing };
        let length = member.name.len() + 1 + member.value.len();
        marks.push(mark(name));
        lengths.extend_from_slice(&(length as u16).to_be_bytes());
        end += length + 1;
    }
    // Each member is followed by a comma or the closing brace; what does not come out even is no minimal object.
    if end != text.len() {
        return nothing;
    }
    let count = marks.len() as u8;
    marks.append(&mut lengths);
    (count, marks)
}

/// The raw value of a member, by a table that is not empty.
pub(crate) fn find<'t>(table: &[u8], text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    let (marks, lengths) = table.split_at(table.len() / ENTRY_BYTES);
    let wanted = mark(name.as_bytes());
    let mut start = 1;
    for (own, length) in marks.iter().zip(lengths.as_chunks().0) {
        let end = start + usize::from(u16::from_be_bytes(*length));
        if *own == wanted
            && let Some(value) = value_of(text.get(start..end)?, name)
        {
            return Some(value);
        }
        start = end + 1;
    }
    None
}

/// The value of a member, if it has this name.
fn value_of<'t>(member: &'t [u8], name: &str) -> Option<&'t [u8]> {
    member.strip_prefix(b"\"")?.strip_prefix(name.as_bytes())?.strip_prefix(b"\":")
}

/// Tells most names apart: their length and their ends.
fn mark(name: &[u8]) -> u8 {
    let [first, .., last] = name else { return name.first().copied().unwrap_or_default() };
    (name.len() as u8).wrapping_mul(37) ^ first.rotate_left(3) ^ last
}
