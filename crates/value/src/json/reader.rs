//! The reader: one walk over a text that checks the grammar and lays out the tape.
//!
//! In: UTF-8 text. Out: the entries of `Text`, or the first fault.
//! Invariants
//! - Recursion is bounded by `DEPTH_MAX`; nothing else recurses.
//! - Duplicate names cost n log n: few names are compared with each other by hash, many are sorted. Names
//!   built to share a hash change the constant only, so the hash needs no secret and runs the same everywhere.

use std::cmp::Ordering;

use super::{DEPTH_MAX, JsonError, JsonFault, Kind, TapeEntry, escape};

/// Up to this many members, comparing all pairs of hashes is faster than sorting.
const PAIRWISE_MAX: usize = 32;

pub(super) fn read(source: &str) -> Result<Vec<TapeEntry>, JsonError> {
    if u32::try_from(source.len()).is_err() {
        return Err(JsonError { fault: JsonFault::Length, offset: u32::MAX as usize });
    }
    let mut reader = TapeReader {
        source,
        bytes: source.as_bytes(),
        at: 0,
        // Documents of business data hold a value per 20 to 30 bytes; each takes an entry, its name another.
        entries: Vec::with_capacity(source.len() / 16 + 4),
        names: Vec::new(),
        blemishes: 0,
    };
    let first = reader.skip_space();
    reader.value(first, DEPTH_MAX)?;
    match reader.skip_space() {
        None => Ok(reader.entries),
        Some(_) => Err(reader.fault(JsonFault::UnexpectedByte)),
    }
}

struct TapeReader<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    entries: Vec<TapeEntry>,
    /// The names of all objects still open, the innermost last.
    names: Vec<MemberName>,
    /// Counts what keeps a container from being copied as it stands: runs of space and shadowed members.
    blemishes: usize,
}

#[derive(Clone, Copy)]
struct MemberName {
    hash: u64,
    entry: u32,
}

impl TapeReader<'_> {
    fn fault(&self, fault: JsonFault) -> JsonError {
        JsonError { fault, offset: self.at }
    }

    /// For a place where the grammar allows no such byte.
    fn unexpected(&self) -> JsonError {
        let fault =
            if self.at < self.bytes.len() { JsonFault::UnexpectedByte } else { JsonFault::UnexpectedEnd };
        self.fault(fault)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Moves to the next token and returns its first byte.
    fn skip_space(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        if byte > b' ' {
            return Some(byte);
        }
        let start = self.at;
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        self.blemishes += usize::from(self.at > start);
        self.peek()
    }

    /// Appends an entry that reaches from `start` to here and is followed by what comes next.
    fn push(&mut self, kind: Kind, start: usize) {
        let next = self.entries.len() as u32 + 1;
        self.entries.push(TapeEntry {
            start: start as u32,
            end: self.at as u32,
            next,
            kind,
            escaped: false,
            shadowed: false,
            minimal: true,
        });
    }

    /// Reads the value whose first byte is `first`; `depth` containers may still be opened.
    fn value(&mut self, first: Option<u8>, depth: usize) -> Result<(), JsonError> {
        match first {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => self.container(Kind::Object, depth),
            Some(b'[') => self.container(Kind::Array, depth),
            Some(b't') => self.literal(b"true", Kind::Bool),
            Some(b'f') => self.literal(b"false", Kind::Bool),
            Some(b'n') => self.literal(b"null", Kind::Null),
            _ => Err(self.unexpected()),
        }
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Result<(), JsonError> {
        let start = self.at;
        for expected in word {
            if self.peek() != Some(*expected) {
                return Err(self.unexpected());
            }
            self.at += 1;
        }
        self.push(kind, start);
        Ok(())
    }

    fn container(&mut self, kind: Kind, depth: usize) -> Result<(), JsonError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.fault(JsonFault::Depth));
        };
        let start = self.at;
        let index = self.entries.len();
        let blemishes = self.blemishes;
        self.push(kind, start);
        self.at += 1;
        match kind {
            Kind::Object => self.members(depth)?,
            _ => self.elements(depth)?,
        }
        let next = self.entries.len() as u32;
        let entry = &mut self.entries[index];
        entry.end = self.at as u32;
        entry.next = next;
        entry.minimal = self.blemishes == blemishes;
        Ok(())
    }

    /// Reads up to and with the closing bracket.
    fn elements(&mut self, depth: usize) -> Result<(), JsonError> {
        let mut first = self.skip_space();
        if first == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(first, depth)?;
            match self.skip_space() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.unexpected()),
            }
            first = self.skip_space();
        }
        self.at += 1;
        Ok(())
    }

    /// Reads up to and with the closing brace.
    fn members(&mut self, depth: usize) -> Result<(), JsonError> {
        let outer_names = self.names.len();
        let mut first = self.skip_space();
        if first == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if first != Some(b'"') {
                return Err(self.unexpected());
            }
            let name = self.entries.len();
            self.string()?;
            self.remember_name(name);
            if self.skip_space() != Some(b':') {
                return Err(self.unexpected());
            }
            self.at += 1;
            let first_of_value = self.skip_space();
            self.value(first_of_value, depth)?;
            self.entries[name].next = self.entries.len() as u32;
            match self.skip_space() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.unexpected()),
            }
            first = self.skip_space();
        }
        self.at += 1;
        self.shadow_duplicates(outer_names);
        Ok(())
    }

    fn string(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain_length(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.fault(JsonFault::ControlCharacter)),
                None => return Err(self.fault(JsonFault::UnexpectedEnd)),
            }
        }
        self.at += 1;
        let index = self.entries.len();
        self.push(Kind::String, start);
        self.entries[index].escaped = escaped;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.code_unit(self.at)? {
                0xD800..=0xDBFF => {
                    let other = self.at + 6;
                    let paired = self.bytes[other..].starts_with(b"\\u")
                        && matches!(self.code_unit(other)?, 0xDC00..=0xDFFF);
                    if !paired {
                        return Err(self.fault(JsonFault::LoneSurrogate));
                    }
                    self.at += 12;
                }
                0xDC00..=0xDFFF => return Err(self.fault(JsonFault::LoneSurrogate)),
                _ => self.at += 6,
            },
            Some(_) => return Err(self.fault(JsonFault::Escape)),
            None => {
                return Err(JsonError { fault: JsonFault::UnexpectedEnd, offset: self.bytes.len() });
            }
        }
        Ok(())
    }

    /// The four hexadecimal digits of the `\u` at `start`.
    fn code_unit(&self, start: usize) -> Result<u32, JsonError> {
        let mut unit = 0;
        for at in start + 2..start + 6 {
            let Some(&byte) = self.bytes.get(at) else {
                return Err(JsonError { fault: JsonFault::UnexpectedEnd, offset: at });
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(JsonError { fault: JsonFault::Escape, offset: start });
            };
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        let integer_length = self.at - start;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let scaled = matches!(self.peek(), Some(b'e' | b'E'));
        if scaled {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        // Below 10^308 without an exponent nothing can overflow, and the value need not be computed.
        if (scaled || integer_length > 308) && !self.is_finite(start) {
            return Err(JsonError { fault: JsonFault::NumberRange, offset: start });
        }
        self.push(Kind::Number, start);
        Ok(())
    }

    fn is_finite(&self, start: usize) -> bool {
        self.source[start..self.at].parse().is_ok_and(f64::is_finite)
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), JsonError> {
        let length = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return Err(self.unexpected());
        }
        self.at += length;
        Ok(())
    }

    fn remember_name(&mut self, index: usize) {
        let entry = &self.entries[index];
        let content = &self.source[entry.start as usize + 1..entry.end as usize - 1];
        let hash =
            if entry.escaped { hash(escape::unescape(content).as_bytes()) } else { hash(content.as_bytes()) };
        self.names.push(MemberName { hash, entry: index as u32 });
    }

    /// Marks every member of the object just closed that a later one replaces, and forgets its names.
    fn shadow_duplicates(&mut self, outer_names: usize) {
        let mut names = std::mem::take(&mut self.names);
        let own = &mut names[outer_names..];
        if own.len() <= PAIRWISE_MAX {
            for (index, earlier) in own.iter().enumerate() {
                if own[index + 1..].iter().any(|later| self.compare_names(*earlier, *later).is_eq()) {
                    self.shadow(*earlier);
                }
            }
        } else {
            own.sort_unstable_by(|a, b| self.compare_names(*a, *b).then(a.entry.cmp(&b.entry)));
            for pair in own.windows(2) {
                if self.compare_names(pair[0], pair[1]).is_eq() {
                    self.shadow(pair[0]);
                }
            }
        }
        names.truncate(outer_names);
        self.names = names;
    }

    fn shadow(&mut self, name: MemberName) {
        self.entries[name.entry as usize].shadowed = true;
        self.blemishes += 1;
    }

    /// By hash, then by text; the text is read no further than the shorter of the two.
    fn compare_names(&self, a: MemberName, b: MemberName) -> Ordering {
        a.hash.cmp(&b.hash).then_with(|| self.compare_name_texts(a, b))
    }

    #[cold]
    fn compare_name_texts(&self, a: MemberName, b: MemberName) -> Ordering {
        let [(a, a_escaped), (b, b_escaped)] = [a, b].map(|name| {
            let entry = &self.entries[name.entry as usize];
            (&self.source[entry.start as usize + 1..entry.end as usize - 1], entry.escaped)
        });
        if a_escaped || b_escaped {
            // Without escapes `characters` yields the text itself, as a backslash stands in escapes only.
            escape::characters(a).cmp(escape::characters(b))
        } else {
            a.cmp(b)
        }
    }
}

/// How many bytes pass before a quote, a backslash or a control character, eight at a time.
///
/// A byte of `x` is below `n` (at most 0x80) when subtracting `n` from it borrows and its own top bit was clear; equality
/// with a byte is "below one" after an exclusive or. A borrow reaches only bytes after a true find, and the
/// first find decides, so false finds behind it do no harm.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        let found = (word.wrapping_sub(ONES * 0x20) & !word)
            | (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash);
        if found & TOPS != 0 {
            return index * 8 + (found & TOPS).trailing_zeros() as usize / 8;
        }
    }
    let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count();
    words.len() * 8 + plain
}

/// A quick hash that tells apart the names documents have; collisions cost a comparison, nothing more.
fn hash(name: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let (words, rest) = name.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).fold(name.len() as u64, |hash, word| {
        (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR).rotate_left(29)
    })
}
