//! Places in a query text: byte spans, and their translation for people and for the service's error bodies.
//!
//! In: byte offsets of tokens. Out: UTF-16 offsets (what the service reports), line and column (what people read).
//! Offsets are 32 bits wide: texts are far shorter, and every node of a tree carries a span.

use std::ops::Range;

/// Where a node or token lies in the query text, in bytes, end exclusive.
///
/// Two spans always compare equal: trees are compared by what they say, not by where they say it. To compare places,
/// compare `range()`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Span {}

impl Span {
    /// The span from `start` to `end`; offsets beyond 32 bits are cut, which no accepted text reaches.
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end) }
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The same place as a byte range, for slicing and for comparing places.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The piece of `text` that the span covers; empty when the span is not of this text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or("")
    }

    /// The place in UTF-16 units, as the `location` of the service's error bodies counts.
    pub fn utf16_range(self, text: &str) -> Range<usize> {
        let count = |end: u32| text.get(..end as usize).unwrap_or(text).encode_utf16().count();
        count(self.start)..count(self.end)
    }

    /// Line and column of the start.
    pub fn position(self, text: &str) -> TextPosition {
        let before = text.get(..self.start as usize).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or("").chars().count() + 1;
        TextPosition { line: before.bytes().filter(|&byte| byte == b'\n').count() + 1, column }
    }
}

/// A place as an editor shows it, both numbers from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// Number of the line.
    pub line: usize,
    /// Number of the character in its line.
    pub column: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_for_the_service_and_for_people() {
        let text = "SELECT 'é😀',\n  x";
        let place = text.find('x').expect("the text has an x");
        let span = Span::new(place, place + 1);
        assert_eq!(span.utf16_range(text), 16..17);
        assert_eq!(span.position(text), TextPosition { line: 2, column: 3 });
        assert_eq!(span.of(text), "x");
        assert_eq!(Span::new(900, 901).of(text), "");
        assert_eq!(Span::new(0, 1).to(span).range(), 0..place + 1);
    }
}
