//! Upper and lower case as the invariant culture has them: one character for one character.
//!
//! Characters whose other case is several characters (`ß`, `ŉ`) stay as they are, and so do the two letters i without
//! counterpart outside Turkish (`ı`, `İ`); lengths in characters never change.

/// The text in lower case.
pub(crate) fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(lower_character).collect() }
}

/// The text in upper case, which is also how texts are made alike to compare them without case.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(upper_character).collect() }
}

fn lower_character(character: char) -> char {
    only(character.to_lowercase()).unwrap_or(character)
}

fn upper_character(character: char) -> char {
    match character {
        'ı' => character,
        _ => only(character.to_uppercase()).unwrap_or(character),
    }
}

fn only(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    if characters.next().is_some() { None } else { first }
}
