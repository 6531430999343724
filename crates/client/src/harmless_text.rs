//! Text of strangers for a terminal: names in files, what servers say, entries of archives.
//!
//! In: any text. Out: the same without power over a terminal. For whoever shows something to a person; data that goes elsewhere stays as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character could move the cursor, change colours, or change the order in which text is read.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text without power over a terminal: such characters become escapes as JSON has them, line ends included.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            _ if is_harmful(character) => {
                let _ = write!(shown, "\\u{:04x}", character as u32);
            }
            _ => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// The same of a text that keeps its lines.
pub fn harmless_lines(text: &str) -> String {
    text.lines().map(harmless).collect::<Vec<Cow<'_, str>>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_escapes() {
        assert_eq!(harmless("plain é"), "plain é");
        assert_eq!(
            harmless("\u{1b}[2J\u{9b}31m\r\n\t\u{202e}\u{7f}"),
            "\\u001b[2J\\u009b31m\\r\\n\\t\\u202e\\u007f"
        );
        assert_eq!(harmless_lines("a\u{7}\nb"), "a\\u0007\nb");
    }
}
