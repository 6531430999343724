//! Guesses which document a script reads first, from its earlier runs, so that it can be sent along with the order to run.
//!
//! Many procedures have the id of a document as a parameter and begin by reading it; sent along, it saves a round trip to the
//! server's process. A wrong guess costs one needless read. After some wrong guesses a script is not guessed for any more.

use crate::process::Opening;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// How many scripts are remembered; with more, all are forgotten.
const SCRIPTS_MAX: usize = 10_000;
/// How many wrong guesses end guessing.
const MISSES_MAX: u32 = 3;
/// Parameters that are looked at.
const PARAMETERS_MAX: usize = 8;

/// The guesses, by script id.
#[derive(Default)]
pub(crate) struct Speculation {
    guesses: Mutex<HashMap<Arc<str>, Guess>>,
}

struct Guess {
    /// Which parameter is the id; nothing if it was none of them.
    parameter: Option<usize>,
    misses: u32,
}

impl Speculation {
    /// The id of the document that a script will read first.
    pub(crate) fn guess(&self, script_id: &str, parameters: &[u8]) -> Option<String> {
        let parameter = self.guesses.lock().get(script_id)?.parameter?;
        plain_texts(parameters).nth(parameter)?.map(str::to_owned)
    }

    /// Notes how a run began.
    pub(crate) fn note(&self, script_id: &Arc<str>, opening: &Opening, parameters: &[u8]) {
        if let Opening::Guessed = opening {
            return;
        }
        let mut guesses = self.guesses.lock();
        if let Some(guess) = guesses.get_mut(script_id) {
            guess.misses += u32::from(guess.parameter.is_some());
            if guess.misses >= MISSES_MAX {
                guess.parameter = None;
            }
            return;
        }
        let Opening::Read(id) = opening else { return };
        let mut known = plain_texts(parameters).take(PARAMETERS_MAX);
        let parameter = known.position(|text| text == Some(id.as_str()));
        if guesses.len() >= SCRIPTS_MAX {
            guesses.clear();
        }
        guesses.insert(Arc::clone(script_id), Guess { parameter, misses: 0 });
    }
}

/// The elements of a JSON array: those that are strings without escapes, and nothing for each other one. Of what is no
/// JSON it gives something or nothing, for the engine to judge.
fn plain_texts(array: &[u8]) -> impl Iterator<Item = Option<&str>> {
    let mut rest = array.trim_ascii_start().strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let end = element_end(rest);
        let element = rest.get(..end)?.trim_ascii_end();
        rest = rest.get(end + 1..).unwrap_or_default();
        if element.is_empty() {
            return None;
        }
        let inside = element.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
        let plain = inside.filter(|text| memchr::memchr2(b'"', b'\\', text).is_none());
        Some(plain.and_then(|text| std::str::from_utf8(text).ok()))
    })
}

/// Where the comma or bracket is that ends the element which a text begins with.
fn element_end(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at),
            b'[' | b'{' => depth += 1,
            b',' | b']' if depth == 0 => return at,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Where the quote is that ends the string which begins at a place.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(special) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += special;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_of_parameters() {
        for (array, expected) in [
            (r#"["a","b"]"#, vec![Some("a"), Some("b")]),
            (
                " [ \"a\" , 1 , {\"b\": [\"x,]\", \"\\\"\"]} ,\t\"c\" ] ",
                vec![Some("a"), None, None, Some("c")],
            ),
            (r#"["a\u0062"]"#, vec![None]),
            ("[]", vec![]),
            ("", vec![]),
            (r#"{"a":"b"}"#, vec![]),
            (r#""a""#, vec![]),
            (r#"["a"#, vec![None]),
            ("[[[[", vec![None]),
        ] {
            assert_eq!(plain_texts(array.as_bytes()).collect::<Vec<_>>(), expected, "{array}");
        }
    }

    #[test]
    fn guesses_follow_what_was_read() {
        let (speculation, id): (_, Arc<str>) = (Speculation::default(), "script".into());
        let parameters = br#"[1,"x"]"#;
        assert_eq!(speculation.guess(&id, parameters), None);
        speculation.note(&id, &Opening::Read("x".to_owned()), parameters);
        assert_eq!(speculation.guess(&id, br#"[{}, "y"]"#).as_deref(), Some("y"));
        assert_eq!(speculation.guess(&id, br#"["y"]"#), None);
        speculation.note(&id, &Opening::Guessed, parameters);
        for _ in 0..MISSES_MAX {
            assert!(speculation.guess(&id, parameters).is_some());
            speculation.note(&id, &Opening::Other, parameters);
        }
        assert_eq!(speculation.guess(&id, parameters), None);
        // What is read is no parameter: that is remembered, too.
        speculation.note(&"other".into(), &Opening::Read("z".to_owned()), parameters);
        speculation.note(&"other".into(), &Opening::Read("x".to_owned()), parameters);
        assert_eq!(speculation.guess("other", parameters), None);
    }
}
