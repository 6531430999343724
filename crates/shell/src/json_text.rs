//! JSON text for people: on one line, over several lines, and as the content of a cell.
//!
//! In: text as a server sent it. Out: the same tokens in other white space, numbers as they were spelled. Total: broken text comes out
//! broken, and nothing recurses.

use std::borrow::Cow;

/// The same tokens on one line, without white space between them.
pub(crate) fn compact(raw: &str) -> Cow<'_, str> {
    let mut kept = String::with_capacity(raw.len());
    let mut in_string = false;
    let mut is_escaped = false;
    for character in raw.chars() {
        if in_string {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            kept.push(character);
        } else if !character.is_ascii_whitespace() {
            in_string = character == '"';
            kept.push(character);
        }
    }
    if kept.len() == raw.len() { Cow::Borrowed(raw) } else { Cow::Owned(kept) }
}

/// The same tokens over several lines, each after the first indented by `indent` spaces and two more a level.
pub(crate) fn pretty(raw: &str, indent: usize) -> String {
    let raw = compact(raw);
    let mut text = String::with_capacity(raw.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    let mut characters = raw.chars().peekable();
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        // A depth that no document has makes no line of a gigabyte.
        text.extend(std::iter::repeat_n(' ', indent + 2 * depth.min(128)));
    };
    while let Some(character) = characters.next() {
        if in_string {
            text.push(character);
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match character {
            '{' | '[' => {
                text.push(character);
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(close);
                } else {
                    depth += 1;
                    line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(character);
            }
            ',' => {
                text.push(',');
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                in_string = character == '"';
                text.push(character);
            }
        }
    }
    text
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    astrarium_value::json::write_string(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// What a person typed as a value: JSON if it is, otherwise a string.
pub(crate) fn value_of_word(word: &str) -> String {
    match astrarium_value::json::Text::parse(word.as_bytes()) {
        Ok(_) => word.to_owned(),
        Err(_) => quoted(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_changes_and_nothing_else() {
        let raw = "{ \"a\" : [1.10, 12345678901234567890 ,{}],\"b \\\" c\":\"x, {y\" }";
        assert_eq!(compact(raw), "{\"a\":[1.10,12345678901234567890,{}],\"b \\\" c\":\"x, {y\"}");
        let wide = pretty(raw, 0);
        assert_eq!(
            wide,
            "{\n  \"a\": [\n    1.10,\n    12345678901234567890,\n    {}\n  ],\n  \"b \\\" c\": \"x, {y\"\n}"
        );
        assert_eq!(compact(&wide), compact(raw));
        assert_eq!(pretty("[]", 0), "[]");
        for broken in ["", "{", "]", "\"", "\"\\", "}}}}", "[[[", ",:"] {
            let _ = (pretty(broken, 2), compact(broken));
        }
        assert!(pretty(&"[".repeat(5000), 0).len() < 2_000_000);
    }

    #[test]
    fn typed_values() {
        for (word, value) in [
            ("7", "7"),
            ("Ada", "\"Ada\""),
            ("\"7\"", "\"7\""),
            ("[1,2]", "[1,2]"),
            ("null", "null"),
            ("1e", "\"1e\""),
        ] {
            assert_eq!(value_of_word(word), value);
        }
    }
}
