//! Finding parts of JSON text that is known to be valid and minimal, without reading the rest of it.
//!
//! In: text that [`super::Text::write_minimal`] printed (what is stored). Out: slices of it, or values. Nothing is
//! validated again: bytes that are not such text give wrong parts or none, but never a panic.
//! Not here: text from outside (`reader`).

use super::Text;
use crate::model::Value;

/// A member of an object, as it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// The name with its quotes, still escaped.
    pub name: &'a [u8],
    is_escaped: bool,
    /// The raw value.
    pub value: &'a [u8],
}

impl<'a> Member<'a> {
    /// The name without its quotes; none if it has escapes.
    pub fn plain_name(&self) -> Option<&'a [u8]> {
        self.name.get(1..self.name.len() - 1).filter(|_| !self.is_escaped)
    }

    fn has_name(&self, name: &str) -> bool {
        if self.is_escaped {
            return is_escaped_name(self.name, name);
        }
        // The length tells most names from each other without a look at the text.
        self.name.len() == name.len() + 2 && self.plain_name() == Some(name.as_bytes())
    }
}

/// The members of an object; none if the text is no object.
pub fn members(object: &[u8]) -> impl Iterator<Item = Member<'_>> {
    let mut rest = object.strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        let (name_end, is_escaped) = string_end(rest)?;
        let (name, after) = rest.split_at_checked(name_end)?;
        let after = after.strip_prefix(b":")?;
        let (value, after) = after.split_at_checked(value_end(after)?)?;
        rest = after.strip_prefix(b",").unwrap_or_default();
        Some(Member { name, is_escaped, value })
    })
}

/// The raw value of a member of an object; of equal names the first, for stored text has each name once.
pub fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(object).find(|member| member.has_name(name)).map(|member| member.value)
}

/// The raw value of an element of an array.
pub fn element(array: &[u8], position: usize) -> Option<&[u8]> {
    elements(array)?.nth(position)
}

/// The raw values of an array's elements; none if the text is no array.
pub fn elements(array: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let mut rest = array.strip_prefix(b"[")?;
    Some(std::iter::from_fn(move || {
        let end = value_end(rest).filter(|end| *end > 0)?;
        let (value, after) = rest.split_at_checked(end)?;
        rest = after.strip_prefix(b",").unwrap_or_default();
        Some(value)
    }))
}

/// A raw value as a value of the query language.
pub fn value(raw: &[u8]) -> Value {
    match raw.first() {
        Some(b'n') => Value::Null,
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'"') if memchr::memchr(b'\\', raw).is_none() => {
            let content = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
            Value::String(std::str::from_utf8(content).unwrap_or_default().into())
        }
        // Escapes and containers go through the reader, which takes nothing for granted.
        Some(b'"' | b'{' | b'[') => Text::parse(raw).map_or(Value::Undefined, |text| text.root().to_value()),
        Some(_) => number(raw).map_or(Value::Undefined, Value::Number),
        None => Value::Undefined,
    }
}

/// Digits of which a double holds every number.
const EXACT_DIGITS: usize = 15;

/// The number of a raw value. Most are whole and short, and need no general reading.
fn number(raw: &[u8]) -> Option<f64> {
    let digits = raw.strip_prefix(b"-").unwrap_or(raw);
    if matches!(digits.len(), 1..=EXACT_DIGITS) && digits.iter().all(u8::is_ascii_digit) {
        let whole = digits.iter().fold(0, |whole: u64, digit| whole * 10 + u64::from(digit - b'0')) as f64;
        return Some(if digits.len() == raw.len() { whole } else { -whole });
    }
    std::str::from_utf8(raw).ok()?.parse().ok()
}

/// Whether a name with its quotes is this one.
pub(crate) fn is_name(quoted: &[u8], name: &str) -> bool {
    let is_escaped = memchr::memchr(b'\\', quoted).is_some();
    Member { name: quoted, is_escaped, value: &[] }.has_name(name)
}

/// The same for a name that has escapes.
fn is_escaped_name(quoted: &[u8], name: &str) -> bool {
    Text::parse(quoted).is_ok_and(|text| text.root().as_str().is_some_and(|own| own == name))
}

/// Bytes of a string from its opening to its closing quote, and whether there is an escape in it.
pub(crate) fn string_end(text: &[u8]) -> Option<(usize, bool)> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let (mut at, mut is_escaped) = (1, false);
    loop {
        at += special(text.get(at..)?)?;
        if text[at] == b'"' {
            return Some((at + 1, is_escaped));
        }
        is_escaped = true;
        at += 2;
    }
}

/// Where the first quote or backslash is. Most strings are short: eight bytes are looked at together before a search is
/// worth its call.
fn special(text: &[u8]) -> Option<usize> {
    const WORDS: usize = 4;
    let (words, _) = text.as_chunks::<8>();
    for (index, word) in words.iter().take(WORDS).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zero_bytes(word ^ repeated(b'"')) | zero_bytes(word ^ repeated(b'\\'));
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let looked_at = words.len().min(WORDS) * 8;
    memchr::memchr2(b'"', b'\\', &text[looked_at..]).map(|at| looked_at + at)
}

const fn repeated(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The high bit of each byte that is zero; right up to and including the lowest such byte.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(repeated(0x01)) & !word & repeated(0x80)
}

/// Bytes of the value at the start of a text.
pub(crate) fn value_end(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'"' => string_end(text).map(|(end, _)| end),
        b'{' | b'[' => container_end(text),
        _ => Some(text.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(text.len())),
    }
}

fn container_end(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match text.get(at)? {
            b'"' => {
                at += string_end(&text[at..])?.0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found() {
        let text = br#"{"a":1,"b":{"a":[1,"],}\\\"",{"x":[]}],"c":null},"\u0064":"x\ny","e":[]}"#;
        let check = |path: &[&str], expected: Option<&str>| {
            let mut at = Some(&text[..]);
            for name in path {
                at = at.and_then(|raw| match name.parse() {
                    Ok(position) => element(raw, position),
                    Err(_) => member(raw, name),
                });
            }
            assert_eq!(at.map(|raw| std::str::from_utf8(raw).expect("text")), expected, "{path:?}");
        };
        check(&["a"], Some("1"));
        check(&["b", "a", "1"], Some(r#""],}\\\"""#));
        check(&["b", "a", "2", "x"], Some("[]"));
        check(&["b", "c"], Some("null"));
        check(&["d"], Some(r#""x\ny""#));
        check(&["b", "a", "3"], None);
        check(&["e", "0"], None);
        check(&["a", "x"], None);
        check(&["x"], None);
        assert_eq!(value(br#""x\ny""#), Value::from("x\ny"));
        for number in
            ["0", "7", "-12", "999999999999999", "9007199254740993", "1.5", "-1.5e3", "2E-3", "-0.25"]
        {
            assert_eq!(value(number.as_bytes()), Value::Number(number.parse().expect("a number")));
        }
        assert!(matches!(value(b"-0"), Value::Number(zero) if zero.is_sign_negative()));
        assert_eq!(elements(b"[1,[2,3],\"a\"]").map(Iterator::count), Some(3));
    }

    #[test]
    fn foreign_bytes_do_not_panic() {
        for text in [
            &b""[..],
            b"{",
            b"{\"",
            b"{\"a",
            b"{\"a\"",
            b"{\"a\":",
            b"[",
            b"[1",
            b"[\"",
            b"{\"a\":{",
            b"\"",
            b"]",
        ] {
            let _ = (member(text, "b"), element(text, 3), value(text), value_end(text));
        }
    }
}
