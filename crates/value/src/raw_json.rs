//! Parts of JSON text, as they stand in it: for documents whose numbers and spelling must not change.
//!
//! In: bytes from outside. Out: slices of them. Only the frame is looked at: strings, brackets and what is between them; what is inside a
//! part is not validated. Total: no input panics, recurses, or takes more than one pass and a few words of memory.

/// Where the value that begins at the start of `text` ends; none if it does not end there.
pub fn value_end(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match *text.get(at)? {
            b'"' => {
                at = string_end(text, at)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ if depth > 0 => at = next_mark(text, at + 1),
            byte if is_scalar(byte) => {
                while text.get(at).is_some_and(|byte| is_scalar(*byte)) {
                    at += 1;
                }
                return Some(at);
            }
            _ => return None,
        }
    }
}

/// The raw elements of an array; stops at the first thing that is none.
pub fn elements(array: &[u8]) -> RawParts<'_> {
    RawParts::new(array, b'[')
}

/// The raw value of a member of an object; of equal names the last one. The name must have no escapes.
pub fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(object)
        .filter(|(own, _)| own.get(1..own.len() - 1) == Some(name.as_bytes()))
        .map(|(_, value)| value)
        .last()
}

/// The members of an object: names with their quotes, and raw values.
pub fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = inside(object, b'{');
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let name = text.get(..string_end(text, 0)?)?;
        let after = text.get(name.len()..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let value = after.get(..value_end(after)?)?;
        rest = after_comma(after, value.len());
        Some((name, value))
    })
}

/// The parts of an array; see [`elements`].
#[derive(Debug, Clone)]
pub struct RawParts<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> RawParts<'a> {
    fn new(text: &'a [u8], open: u8) -> RawParts<'a> {
        RawParts { rest: inside(text, open) }
    }
}

impl<'a> Iterator for RawParts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest.take()?;
        let value = text.get(..value_end(text)?)?;
        self.rest = after_comma(text, value.len());
        Some(value)
    }
}

fn inside(text: &[u8], open: u8) -> Option<&[u8]> {
    text.trim_ascii_start().strip_prefix(&[open]).map(<[u8]>::trim_ascii_start)
}

fn after_comma(text: &[u8], at: usize) -> Option<&[u8]> {
    text.get(at..)?.trim_ascii_start().strip_prefix(b",").map(<[u8]>::trim_ascii_start)
}

/// The end of the string that begins with the quote at `start`.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    if text.get(start) != Some(&b'"') {
        return None;
    }
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The next byte from `at` on that can begin or end something.
fn next_mark(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']'));
    found.map_or(text.len(), |offset| at + offset)
}

fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(array: &str) -> Vec<String> {
        elements(array.as_bytes()).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    #[test]
    fn parts() {
        assert_eq!(
            texts("[1, 2.50,\"a]\\\"\" ,{\"b\":[1,{}]},null]"),
            ["1", "2.50", "\"a]\\\"\"", "{\"b\":[1,{}]}", "null"]
        );
        assert_eq!(texts("[]"), [""; 0]);
        assert_eq!(texts("[1"), ["1"]);
        assert_eq!(texts("{}"), [""; 0]);
        let body = b" {\"_rid\":\"x\" , \"Documents\" : [{\"id\":\"1\"}],\"_count\":1}";
        assert_eq!(member(body, "Documents"), Some(&b"[{\"id\":\"1\"}]"[..]));
        assert_eq!(member(body, "_count"), Some(&b"1"[..]));
        assert_eq!(member(body, "id"), None);
        assert_eq!(member(b"{\"a\":1,\"a\":2}", "a"), Some(&b"2"[..]));
    }

    #[test]
    fn broken_text_ends() {
        for text in [
            "", "[", "{", "\"", "\"\\", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":}", "[,]", "]", "[[[[[", "{]}",
            "[}",
        ] {
            let _ = texts(text);
            let _ = members(text.as_bytes()).count();
            let _ = value_end(text.as_bytes());
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(value_end(deep.as_bytes()), None);
    }
}
