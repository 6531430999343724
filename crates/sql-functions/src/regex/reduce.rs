//! Patterns that are plain text in disguise, which an index can serve as a prefix, suffix, substring or equality.

/// A test on a text that says the same as a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTest {
    /// Where the text must stand.
    pub kind: TextTestKind,
    /// The text.
    pub text: String,
    /// Whether case does not matter.
    pub ignore_case: bool,
}

/// Where a text must stand in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTestKind {
    /// It is the whole.
    Equals,
    /// At the beginning.
    StartsWith,
    /// At the end.
    EndsWith,
    /// Anywhere.
    Contains,
}

/// The plain test that a pattern comes to, when it is text with at most `^` before and `$` after.
pub fn reduce(pattern: &str, modifiers: &str) -> Option<TextTest> {
    // With `m` anchors stand at lines, with `x` white space is no text; `s` concerns only the dot.
    if !modifiers.bytes().all(|letter| b"is".contains(&letter)) {
        return None;
    }
    let (from_start, rest) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (to_end, rest) = match rest.strip_suffix('$') {
        Some(rest) if !ends_in_escape(rest) => (true, rest),
        _ => (false, rest),
    };
    let kind = match (from_start, to_end) {
        (true, true) => TextTestKind::Equals,
        (true, false) => TextTestKind::StartsWith,
        (false, true) => TextTestKind::EndsWith,
        (false, false) => TextTestKind::Contains,
    };
    Some(TextTest { kind, text: literal(rest)?, ignore_case: modifiers.contains('i') })
}

fn ends_in_escape(text: &str) -> bool {
    let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    backslashes % 2 == 1
}

/// The text that the pattern stands for, when it has no other meaning.
fn literal(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next().filter(char::is_ascii_punctuation)?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => return None,
            other => text.push(other),
        }
    }
    Some(text)
}
