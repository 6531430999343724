//! LIKE: a pattern compiled once and matched against many texts.
//!
//! `%` stands for any run, `_` for one character, `[abc]`, `[a-f]`, `[^..]` for one character in or not in a set; anything
//! else for itself, and so does whatever follows the escape character. `[` without `]` stands for itself.
//! Between two `%` a pattern has a fixed length, so the leftmost match of each such segment is as good as any other and
//! nothing is ever tried twice: matching takes as many steps as the text has characters, times the pattern's
//! length in words of 64 for segments that are not plain text.
//! Invariants
//! - A pattern beyond [`PARTS_MAX`] does not compile, which bounds both memory and time.

mod segment;

use crate::limits::may_go_on;
use astrarium_value::Value;

use segment::{CharacterSet, Element, LikeSegment};

/// The most segments of a pattern, and the most characters and ranges in those segments that are not plain text.
const PARTS_MAX: usize = 4096;

/// A compiled LIKE pattern.
#[derive(Debug)]
pub struct LikePattern {
    /// Without `%`: the one segment that is the whole pattern. Otherwise what stands before the first `%`.
    first: LikeSegment,
    /// What stands between two `%`, empty segments left out.
    middle: Vec<LikeSegment>,
    /// What stands after the last `%`; none when the pattern has no `%`.
    last: Option<LikeSegment>,
    prefix: String,
}

impl LikePattern {
    /// Compiles a pattern; none when it is larger than any that is meant seriously (thousands of wildcards).
    pub fn compile(pattern: &str, escape: Option<char>) -> Option<LikePattern> {
        let mut segments = vec![Vec::new()];
        let mut characters = Characters { rest: pattern, escape, unclosed: false };
        while let Some(token) = characters.next_token() {
            match token {
                LikeToken::Run if segments.len() > PARTS_MAX => return None,
                LikeToken::Run => segments.push(Vec::new()),
                LikeToken::One(element) => segments.last_mut()?.push(element),
            }
        }
        let mixed = segments.iter().filter(|elements| !segment::is_plain(elements));
        let parts = mixed.map(|elements| segment::part_count(elements)).sum::<usize>();
        // Every element is compared with every class of characters.
        if parts > PARTS_MAX || !may_go_on(parts * parts / 4) {
            return None;
        }
        let prefix = segments[0].iter().map_while(Element::as_literal).collect();
        let mut segments = segments.into_iter().map(LikeSegment::new);
        let first = segments.next()?;
        let mut middle: Vec<LikeSegment> = segments.collect();
        let last = middle.pop();
        middle.retain(|segment| !segment.is_empty());
        Some(LikePattern { first, middle, last, prefix })
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let Some(last) = &self.last else { return self.first.match_start(text) == Some(text.len()) };
        let Some(start) = self.first.match_start(text) else { return false };
        let rest = &text[start..];
        let Some(end) = last.match_end(rest) else { return false };
        let mut rest = &rest[..end];
        for segment in &self.middle {
            match segment.find(rest) {
                Some(end) => rest = &rest[end..],
                None => return false,
            }
        }
        true
    }

    /// The text with which every match begins.
    pub fn literal_prefix(&self) -> &str {
        &self.prefix
    }

    /// The one text that matches, when the pattern has no wildcard.
    pub fn literal(&self) -> Option<&str> {
        (self.last.is_none() && self.first.is_plain()).then_some(&self.prefix)
    }

    /// Whether the pattern is a text followed by `%`, so that the prefix alone decides.
    pub fn is_prefix_only(&self) -> bool {
        self.middle.is_empty()
            && self.first.is_plain()
            && self.last.as_ref().is_some_and(LikeSegment::is_empty)
    }
}

/// `text LIKE pattern ESCAPE escape` for a pattern that is not known beforehand; undefined unless all are texts and the
/// escape, when given, is one character.
pub fn like(text: &Value, pattern: &Value, escape: Option<&Value>) -> Value {
    let (Value::String(text), Value::String(pattern)) = (text, pattern) else { return Value::Undefined };
    let escape = match escape {
        None => None,
        Some(Value::String(escape)) if escape.chars().count() == 1 => escape.chars().next(),
        Some(_) => return Value::Undefined,
    };
    match LikePattern::compile(pattern, escape) {
        Some(pattern) => Value::Bool(pattern.matches(text)),
        None => Value::Undefined,
    }
}

enum LikeToken {
    Run,
    One(Element),
}

/// What is left of the pattern's text.
struct Characters<'a> {
    rest: &'a str,
    escape: Option<char>,
    /// Set once a `[` without `]` was met.
    unclosed: bool,
}

impl Characters<'_> {
    fn next_token(&mut self) -> Option<LikeToken> {
        let (character, escaped) = self.next_character()?;
        Some(match character {
            _ if escaped => LikeToken::One(Element::Literal(character)),
            '%' => LikeToken::Run,
            '_' => LikeToken::One(Element::Any),
            '[' => match self.read_set() {
                Some(set) => LikeToken::One(Element::CharacterSet(set)),
                None => LikeToken::One(Element::Literal('[')),
            },
            _ => LikeToken::One(Element::Literal(character)),
        })
    }

    /// The next character and whether it was escaped; an escape at the very end stands for itself.
    fn next_character(&mut self) -> Option<(char, bool)> {
        let mut characters = self.rest.chars();
        let mut character = characters.next()?;
        let mut escaped = false;
        if Some(character) == self.escape
            && let Some(next) = characters.next()
        {
            (character, escaped) = (next, true);
        }
        self.rest = characters.as_str();
        Some((character, escaped))
    }

    /// The set whose `[` was just read; none, with nothing read, when it is not closed.
    fn read_set(&mut self) -> Option<CharacterSet> {
        if self.unclosed {
            return None;
        }
        let before = self.rest;
        let negated = self.rest.starts_with('^');
        self.rest = &self.rest[usize::from(negated)..];
        let mut members = Vec::new();
        while let Some(member) = self.next_character() {
            if member == (']', false) {
                return Some(CharacterSet::new(negated, &members));
            }
            members.push(member);
        }
        // Later brackets are not closed either; remembering it keeps the whole linear.
        self.unclosed = true;
        self.rest = before;
        None
    }
}

#[cfg(test)]
mod tests;
