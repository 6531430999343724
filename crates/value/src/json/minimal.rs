//! Printing a text without what carries no meaning: space between tokens and members that later ones replace.
//!
//! In: a `Text`, names to leave out at the top. Out: bytes appended to the caller's buffer.
//! Invariants
//! - Every byte written is a byte of the source or one of `{}[]:,`; spelling and order never change.
//! - Bytes that follow each other in source and output are copied together; a text that is minimal already, with
//!   nothing to leave out, is one copy.

use super::{Kind, Text};

pub(super) fn write(text: &Text<'_>, omit_top_level: &[&str], out: &mut Vec<u8>) {
    let source = text.source.as_bytes();
    out.reserve(source.len());
    let mut writer = Writer { text, source, run_start: 0, run_end: 0, out };
    let omitted = |name: u32| {
        let entry = &text.entries[name as usize];
        omit_top_level.iter().any(|omit| text.has_name(entry, omit))
    };
    if !omit_top_level.is_empty() && text.member_names(0).any(omitted) {
        writer.members(0, |name| !omitted(name));
    } else {
        writer.value(0);
    }
    writer.flush();
}

struct Writer<'a> {
    text: &'a Text<'a>,
    source: &'a [u8],
    /// The part of the source that is already decided to follow in the output, but not yet copied.
    run_start: usize,
    run_end: usize,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, index: u32) {
        let text = self.text;
        let entry = text.entries[index as usize];
        match entry.kind {
            _ if entry.minimal => self.copy(entry.start, entry.end),
            Kind::Object => self.members(index, |_| true),
            _ => self.elements(index),
        }
    }

    fn members(&mut self, index: u32, keep: impl Fn(u32) -> bool) {
        let text = self.text;
        self.byte(b'{');
        for (count, name) in text.member_names(index).filter(|name| keep(*name)).enumerate() {
            if count > 0 {
                self.byte(b',');
            }
            let entry = text.entries[name as usize];
            self.copy(entry.start, entry.end);
            self.byte(b':');
            self.value(name + 1);
        }
        self.byte(b'}');
    }

    fn elements(&mut self, index: u32) {
        let text = self.text;
        let end = text.entries[index as usize].next;
        let mut at = index + 1;
        self.byte(b'[');
        while at < end {
            if at > index + 1 {
                self.byte(b',');
            }
            self.value(at);
            at = text.entries[at as usize].next;
        }
        self.byte(b']');
    }

    /// Appends a part of the source, joined to the pending run where it continues it.
    fn copy(&mut self, start: u32, end: u32) {
        if self.run_end != start as usize {
            self.flush();
            self.run_start = start as usize;
        }
        self.run_end = end as usize;
    }

    /// Appends a bracket or separator, out of the source where the source has it at this very place.
    fn byte(&mut self, byte: u8) {
        if self.source.get(self.run_end) == Some(&byte) {
            self.run_end += 1;
        } else {
            self.flush();
            self.out.push(byte);
        }
    }

    /// Copies the pending run; an empty one begins where it ended.
    fn flush(&mut self) {
        self.out.extend_from_slice(&self.source[self.run_start..self.run_end]);
        self.run_start = self.run_end;
    }
}
