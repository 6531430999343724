//! String literals: from the text between quotes to the string it means, and back.
//!
//! Both forms of quote take the escapes of JSON plus `\'`. A `\u` escape of half a surrogate pair is refused: such a
//! string has no value that JSON text could carry.

use std::fmt::Write;

/// The string that the literal `token`, with its quotes, stands for; `None` when an escape names no character.
/// `token` is a string as the lexer accepts it.
pub(crate) fn read_string(token: &str, escaped: bool) -> Option<String> {
    let inner = token.get(1..token.len().saturating_sub(1))?;
    if !escaped {
        return Some(inner.to_owned());
    }
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escape)) = rest.split_once('\\') {
        value.push_str(plain);
        let mut characters = escape.chars();
        value.push(match characters.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (character, length) = read_unicode(escape)?;
                rest = escape.get(length..)?;
                value.push(character);
                continue;
            }
            itself => itself,
        });
        rest = characters.as_str();
    }
    value.push_str(rest);
    Some(value)
}

/// The character of `uXXXX` or `uXXXX\uXXXX` at the start of `escape`, and how many bytes that took.
fn read_unicode(escape: &str) -> Option<(char, usize)> {
    let unit = |start: usize| u32::from_str_radix(escape.get(start..start + 4)?, 16).ok();
    let first = unit(1)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first)?, 5));
    }
    let second = unit(7).filter(|low| escape.get(5..7) == Some("\\u") && (0xDC00..0xE000).contains(low))?;
    Some((char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))?, 11))
}

/// Appends `value` as a double-quoted literal.
pub(crate) fn write_string(output: &mut String, value: &str) {
    output.push('"');
    let mut copied = 0;
    for (place, byte) in value.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0C => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        output.push_str(value.get(copied..place).unwrap_or(""));
        copied = place + 1;
        if escape.is_empty() {
            write!(output, "\\u{byte:04x}").expect("writing to a string cannot fail");
        } else {
            output.push_str(escape);
        }
    }
    output.push_str(value.get(copied..).unwrap_or(""));
    output.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: &str, value: Option<&str>, printed: &str) {
        let read = read_string(token, token.contains('\\'));
        assert_eq!(read.as_deref(), value, "{token}");
        if let Some(value) = read {
            let mut output = String::new();
            write_string(&mut output, &value);
            assert_eq!(output, printed, "{token}");
        }
    }

    #[test]
    fn strings() {
        check("''", Some(""), r#""""#);
        check("'it''", Some("it'"), r#""it'""#);
        check(r#""a\"b""#, Some("a\"b"), r#""a\"b""#);
        check(r"'a\'b'", Some("a'b"), r#""a'b""#);
        check(r#""\\\/\b\f\n\r\t""#, Some("\\/\u{8}\u{c}\n\r\t"), r#""\\/\b\f\n\r\t""#);
        check(r#""\u00e9\u0001""#, Some("é\u{1}"), r#""é\u0001""#);
        check(r#""x\ud83d\ude00y""#, Some("x😀y"), r#""x😀y""#);
        check(r#""\ud83d""#, None, "");
        check(r#""\ud83d\u0041""#, None, "");
        check(r#""\ud83dxu0041""#, None, "");
        check(r#""\ude00""#, None, "");
        check("\"こ\\nに\"", Some("こ\nに"), "\"こ\\nに\"");
    }
}
