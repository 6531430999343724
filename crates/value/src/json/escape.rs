//! The escapes of JSON strings, from text that the reader has validated to characters.
//!
//! In: what stands between the quotes of an accepted string. Out: the characters it means.
//! Not here: finding faulty escapes (`reader`), writing escapes (`print`).

/// The content with its escapes resolved.
pub(super) fn unescape(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (character, length) = resolve(&rest[at..]);
        text.push_str(&rest[..at]);
        text.push(character);
        rest = &rest[at + length..];
    }
    text.push_str(rest);
    text
}

/// The characters of the content one by one, so that comparing two names costs no more than the shorter one.
pub(super) fn characters(content: &str) -> impl Iterator<Item = char> {
    let mut rest = content;
    std::iter::from_fn(move || {
        let (character, length) = match rest.chars().next()? {
            '\\' => resolve(rest),
            plain => (plain, plain.len_utf8()),
        };
        rest = &rest[length..];
        Some(character)
    })
}

/// The character an escape stands for and how many bytes it takes; `escape` starts with the backslash.
fn resolve(escape: &str) -> (char, usize) {
    match escape.as_bytes()[1] {
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'n' => ('\n', 2),
        b'r' => ('\r', 2),
        b't' => ('\t', 2),
        b'u' => {
            let first = unit(escape, 2);
            match char::from_u32(first) {
                Some(character) => (character, 6),
                None => (pair(first, unit(escape, 8)), 12),
            }
        }
        itself => (char::from(itself), 2),
    }
}

fn unit(escape: &str, at: usize) -> u32 {
    u32::from_str_radix(&escape[at..at + 4], 16).expect("the reader accepts four hexadecimal digits only")
}

fn pair(high: u32, low: u32) -> char {
    let code_point = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    char::from_u32(code_point).expect("the reader accepts whole surrogate pairs only")
}
