//! Finding parts of JSON text that is known to be valid and minimal, without reading the rest of it.
//!
//! In: text that [`super::Text::write_minimal`] printed (what is stored). Out: slices of it, or values. Nothing is
//! validated again: bytes that are not such text give wrong parts or none, but never a panic.
//! Not here: text from outside (`reader`).

use super::Text;
use crate::model::Value;

/// The raw value of a member of an object; of equal names the first, for stored text has each name once.
pub fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = object.strip_prefix(b"{")?;
    loop {
        let (name_end, is_escaped) = string_end(rest)?;
        let value = rest.get(name_end..)?.strip_prefix(b":")?;
        let found = if is_escaped {
            is_escaped_name(rest.get(..name_end)?, name)
        } else {
            // Quotes apart. The length tells most names from each other without a look at the text.
            name_end == name.len() + 2 && rest.get(1..name_end - 1) == Some(name.as_bytes())
        };
        let end = value_end(value)?;
        if found {
            return value.get(..end);
        }
        rest = value.get(end..)?.strip_prefix(b",")?;
    }
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
        Some(_) => {
            let number = std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok());
            number.map_or(Value::Undefined, Value::Number)
        }
        None => Value::Undefined,
    }
}

/// Whether a name with its quotes, which has escapes, is this one.
fn is_escaped_name(quoted: &[u8], name: &str) -> bool {
    Text::parse(quoted).is_ok_and(|text| text.root().as_str().is_some_and(|own| own == name))
}

/// Bytes of a string from its opening to its closing quote, and whether there is an escape in it.
fn string_end(text: &[u8]) -> Option<(usize, bool)> {
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
fn value_end(text: &[u8]) -> Option<usize> {
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
        assert_eq!(value(b"-1.5e3"), Value::Number(-1500.0));
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
