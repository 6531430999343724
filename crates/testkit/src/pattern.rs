//! Expected texts and bodies: holes that match anything, that remember what they matched, or that recall it.
//!
//! `<any>` matches, `<save:name>` matches and remembers, `<name>` stands for what was remembered, `<repeat:x:255>` for
//! 255 times `x`. In: a pattern and what a server sent. Out: the differences, and new [`Variables`].
//! Invariants
//! - A name that nothing was remembered under is an error of the case, never an empty text.
//! - The order of members does not matter; their number does, unless the pattern is open.
//!
//! Not here: the syntax of case files (`case_file`).

use crate::json::{self, Json};
use std::collections::BTreeMap;

/// What was remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    text: String,
    /// Whether it is a piece of JSON rather than the content of a text.
    is_json: bool,
}

/// What a run has remembered so far.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    remembered: BTreeMap<String, Variable>,
}

/// A piece of a text with holes.
#[derive(Debug, PartialEq, Eq)]
enum PatternPiece {
    Literal(String),
    Any,
    Save(String),
}

impl Variables {
    /// Remembers a text.
    pub fn set(&mut self, name: &str, text: &str) {
        self.remembered.insert(name.to_owned(), Variable { text: text.to_owned(), is_json: false });
    }

    /// Fills the holes of a target or header value.
    pub fn fill(&self, text: &str) -> Result<String, String> {
        self.fill_with(text, |variable| variable.text.clone())
    }

    /// Fills the holes of a JSON body: texts are escaped, remembered JSON goes in as it is.
    pub fn fill_body(&self, text: &str) -> Result<String, String> {
        self.fill_with(text, |variable| {
            if variable.is_json { variable.text.clone() } else { json::escape(&variable.text) }
        })
    }

    fn fill_with(&self, text: &str, show: impl Fn(&Variable) -> String) -> Result<String, String> {
        let mut filled = String::new();
        for piece in self.pieces(text, show)? {
            match piece {
                PatternPiece::Literal(literal) => filled.push_str(&literal),
                PatternPiece::Any | PatternPiece::Save(_) => {
                    return Err(format!("a request cannot hold <any>: {text}"));
                }
            }
        }
        Ok(filled)
    }

    fn pieces(&self, text: &str, show: impl Fn(&Variable) -> String) -> Result<Vec<PatternPiece>, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_hole(rest) {
            pieces.push(PatternPiece::Literal(before.to_owned()));
            pieces.push(match name.split_once(':') {
                None if name == "any" => PatternPiece::Any,
                None => PatternPiece::Literal(show(self.named(name)?)),
                Some(("save", name)) => PatternPiece::Save(name.to_owned()),
                Some(("repeat", what)) => PatternPiece::Literal(repeated(what)?),
                Some(_) => return Err(format!("unknown hole <{name}>")),
            });
            rest = after;
        }
        pieces.push(PatternPiece::Literal(rest.to_owned()));
        Ok(pieces)
    }

    fn named(&self, name: &str) -> Result<&Variable, String> {
        self.remembered.get(name).ok_or_else(|| format!("nothing was saved as <{name}>"))
    }

    /// Whether a text is as expected; what its holes matched is remembered.
    pub fn matches(&mut self, pattern: &str, actual: &str) -> Result<bool, String> {
        let pieces = self.pieces(pattern, |variable| variable.text.clone())?;
        let mut saved = Vec::new();
        let matched = match_pieces(&pieces, actual, &mut saved);
        if matched {
            for (name, text) in saved {
                self.set(&name, &text);
            }
        }
        Ok(matched)
    }

    /// Compares a body with what is expected and adds each difference, with its place.
    pub fn compare(&mut self, expected: &Json, actual: &Json, place: &str, differences: &mut Vec<String>) {
        match (expected, actual) {
            (Json::Hole(name), _) => self.compare_hole(name, actual, place, differences),
            (Json::Text(pattern), Json::Text(text)) => match self.matches(pattern, text) {
                Ok(true) => {}
                Ok(false) => differences.push(differs(place, expected, actual)),
                Err(error) => differences.push(format!("{place}: {error}")),
            },
            (Json::Array { items, open }, Json::Array { items: actual_items, .. }) => {
                let enough = actual_items.len() == items.len() || (*open && actual_items.len() > items.len());
                if !enough {
                    let (wanted, got) = (items.len(), actual_items.len());
                    differences.push(format!("{place}: expected {wanted} elements, got {got}"));
                }
                for (index, (expected, actual)) in items.iter().zip(actual_items).enumerate() {
                    self.compare(expected, actual, &format!("{place}[{index}]"), differences);
                }
            }
            (Json::Object { members, open }, Json::Object { members: actual_members, .. }) => {
                for (name, expected) in members {
                    let place = format!("{place}.{name}");
                    match actual.get(name) {
                        Some(value) => self.compare(expected, value, &place, differences),
                        None => differences.push(format!("{place}: expected {expected}, but it is missing")),
                    }
                }
                let further = actual_members.iter().filter(|(name, _)| expected.get(name).is_none());
                for (name, value) in further.filter(|_| !open) {
                    differences.push(format!("{place}.{name}: not expected, got {}", short(value)));
                }
            }
            _ if expected == actual => {}
            _ => differences.push(differs(place, expected, actual)),
        }
    }

    fn compare_hole(&mut self, name: &str, actual: &Json, place: &str, differences: &mut Vec<String>) {
        let (text, is_json) = match actual {
            Json::Text(text) => (text.clone(), false),
            other => (other.to_string(), true),
        };
        if name == "any" {
            return;
        }
        if let Some(name) = name.strip_prefix("save:") {
            self.remembered.insert(name.to_owned(), Variable { text, is_json });
            return;
        }
        match self.named(name) {
            Ok(variable) if variable.text == text => {}
            Ok(variable) => {
                differences.push(format!("{place}: expected {}, got {}", variable.text, short(actual)));
            }
            Err(error) => differences.push(format!("{place}: {error}")),
        }
    }
}

fn differs(place: &str, expected: &Json, actual: &Json) -> String {
    format!("{place}: expected {}, got {}", short(expected), short(actual))
}

/// A value that fits on a few lines.
fn short(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// The text before the next hole, the hole's name, and the text after it.
fn next_hole(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('<')?;
    let end = start + text[start..].find('>')?;
    Some((&text[..start], &text[start + 1..end], &text[end + 1..]))
}

fn repeated(what: &str) -> Result<String, String> {
    let (unit, count) = what.rsplit_once(':').ok_or_else(|| format!("<repeat:{what}> needs a count"))?;
    let count: usize = count.parse().map_err(|_| format!("<repeat:{what}> needs a count"))?;
    Ok(unit.repeat(count))
}

fn match_pieces(pieces: &[PatternPiece], text: &str, saved: &mut Vec<(String, String)>) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return text.is_empty() };
    let name = match first {
        PatternPiece::Literal(literal) => {
            return text.strip_prefix(literal.as_str()).is_some_and(|text| match_pieces(rest, text, saved));
        }
        PatternPiece::Any => None,
        PatternPiece::Save(name) => Some(name),
    };
    let ends = text.char_indices().map(|(index, _)| index).chain([text.len()]);
    for end in ends {
        let depth = saved.len();
        if let Some(name) = name {
            saved.push((name.clone(), text[..end].to_owned()));
        }
        if match_pieces(rest, &text[end..], saved) {
            return true;
        }
        saved.truncate(depth);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let mut variables = Variables::default();
        variables.set("etag", "\"1-2\"");
        let mut check = |pattern: &str, text: &str, expected: Result<bool, &str>| {
            let actual = variables.matches(pattern, text);
            assert_eq!(actual.as_ref().map_err(String::as_str).copied(), expected, "{pattern} on {text}");
        };
        check("a", "a", Ok(true));
        check("a", "b", Ok(false));
        check("<any>b<any>", "abc", Ok(true));
        check("<any>b<any>", "acc", Ok(false));
        check("W/<etag>", "W/\"1-2\"", Ok(true));
        check("<save:x>-<save:y>", "1-2-3", Ok(true));
        check("<y><x>", "2-31", Ok(true));
        check("<repeat:ab:3>", "ababab", Ok(true));
        check("<unknown>", "a", Err("nothing was saved as <unknown>"));
        check("<what:x>", "a", Err("unknown hole <what:x>"));
        assert_eq!(variables.fill_body("{\"e\":\"<etag>\"}").unwrap(), "{\"e\":\"\\\"1-2\\\"\"}");
        assert_eq!(variables.fill("<etag>").unwrap(), "\"1-2\"");
        assert!(variables.fill("<any>").is_err());
    }

    #[test]
    fn bodies() {
        let check = |pattern: &str, body: &str, expected: &[&str]| {
            let (pattern, body) = (Json::parse_pattern(pattern).unwrap(), Json::parse(body).unwrap());
            let mut differences = Vec::new();
            Variables::default().compare(&pattern, &body, "body", &mut differences);
            assert_eq!(differences, expected);
        };
        check("{\"a\":1,\"b\":\"<any>\"}", "{\"b\":\"x\",\"a\":1}", &[]);
        check("{\"a\":1}", "{\"a\":1,\"c\":2}", &["body.c: not expected, got 2"]);
        check("{\"a\":1,...}", "{\"a\":1,\"c\":2}", &[]);
        check("{\"a\":1}", "{\"a\":1.0}", &["body.a: expected 1, got 1.0"]);
        check("{\"a\":[1,...]}", "{\"a\":[1,2]}", &[]);
        check("[1,2]", "[1]", &["body: expected 2 elements, got 1"]);
        check("{\"a\":<save:x>,\"b\":<x>}", "{\"a\":{\"c\":1},\"b\":{\"c\":1}}", &[]);
        check("{\"a\":<save:x>,\"b\":<x>}", "{\"a\":1,\"b\":2}", &["body.b: expected 1, got 2"]);
        check("{\"a\":null}", "{}", &["body.a: expected null, but it is missing"]);
    }
}
