//! Text to words: where they begin and end, and what they are reduced to.
//!
//! A word is a run of letters, digits and combining marks. A full stop or comma between two digits and an apostrophe
//! between two letters belong to it, so that `1,977` and `don't` are one word each. Ideographs and kana are a word each.

use crate::limits::may_go_on;
use crate::string::lower;

use super::TextLanguage;

/// Words longer than this, in bytes, are compared as they are: no language has stems that long.
const STEMMED_BYTES_MAX: usize = 64;

/// Calls back with the stem of each word that is not too common, and its place among all words.
pub fn for_each_word(text: &str, language: TextLanguage, mut visit: impl FnMut(&str, usize)) {
    let stemmer = language.stemmer();
    for (place, word) in words(text).enumerate() {
        // Reducing a word to its stem takes about as long as reading a few hundred bytes.
        if !may_go_on(8 + word.len() / 4) {
            return;
        }
        let word = lower(word);
        if language.is_stop_word(&word) {
            continue;
        }
        if word.len() > STEMMED_BYTES_MAX {
            visit(&word, place);
        } else {
            visit(&stemmer.stem(&word), place);
        }
    }
}

/// How many words the text has, the most common ones left out.
pub fn word_count(text: &str, language: TextLanguage) -> usize {
    words(text).filter(|word| may_go_on(4 + word.len() / 8) && !language.is_stop_word(&lower(word))).count()
}

/// The words of a text as they stand.
fn words(text: &str) -> Words<'_> {
    Words { rest: text }
}

struct Words<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let start = self.rest.find(is_part)?;
        let word = &self.rest[start..];
        let end = word_end(word);
        let (word, rest) = word.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

/// Where the word ends that the text begins with.
fn word_end(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    let mut previous = None;
    while let Some((offset, character)) = characters.next() {
        if is_ideograph(character) {
            return if offset == 0 { character.len_utf8() } else { offset };
        }
        let next = characters.peek().map(|(_, next)| *next);
        let belongs = is_part(character)
            || match character {
                '.' | ',' => previous.is_some_and(is_digit) && next.is_some_and(is_digit),
                '\'' | '\u{2019}' => {
                    previous.is_some_and(char::is_alphabetic) && next.is_some_and(char::is_alphabetic)
                }
                _ => false,
            };
        if !belongs {
            return offset;
        }
        previous = Some(character);
    }
    text.len()
}

fn is_part(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '\u{300}'..='\u{36f}')
}

fn is_digit(character: char) -> bool {
    character.is_numeric()
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
