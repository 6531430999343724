//! What clients may define: databases, containers, scripts, users, permissions, keys and throughput.
//!
//! In: the JSON body of a request (or the text of a header). Out: a checked, typed definition with every default
//! filled in, or [`Invalid`] with a message for the author of the request. `to_json` writes the definition back as
//! reads show it, without system properties. Pure; no I/O, no clock.
//! Invariants
//! - `from_json(to_json(definition))` gives the same definition again. The stored form of the catalog is that JSON, so
//!   a rule may be added here only if everything already stored still passes it.
//! - Unknown members and system properties of a body are ignored; `null` counts as absent.
//! - Work and memory are linear in the body, and messages quote at most a short excerpt of it.
//!
//! Not here: whether a name is taken, resource ids, timestamps and etags (`database`); running scripts (`script`);
//! the binding of computed-property queries (`sql-plan`).

pub mod client_encryption_key;
pub mod container;
pub mod database;
pub mod id;
mod members;
pub mod permission;
pub mod script;
pub mod throughput;
pub mod user;

use members::Members;
use std::borrow::Cow;

/// Longest piece of a request that a message repeats, in characters.
const EXCERPT_CHARACTERS_MAX: usize = 200;

/// Why a definition is refused. Always the fault of whoever sent it; the message says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The request contradicts the rules of its resource (400).
    #[error("{message}")]
    Request {
        /// What is wrong and what to do.
        message: String,
    },
    /// The request is larger than a resource of its kind may be (413).
    #[error("{message}")]
    TooLarge {
        /// What is too large and the limit.
        message: String,
    },
}

impl Invalid {
    /// A refusal with its message.
    pub fn new(message: impl Into<String>) -> Invalid {
        Invalid::Request { message: message.into() }
    }

    /// The refusal of a body that has not the shape of its resource: a wrong JSON type, a missing member, a value
    /// outside a fixed set of choices.
    pub fn input(reason: impl AsRef<str>) -> Invalid {
        Invalid::new(format!("One of the specified inputs is invalid: {}.", reason.as_ref()))
    }

    /// The message for the author of the request.
    pub fn message(&self) -> &str {
        match self {
            Invalid::Request { message } | Invalid::TooLarge { message } => message,
        }
    }
}

/// A fixed set of choices, each with its canonical spelling on the wire.
pub trait Named: Copy + PartialEq + Sized + 'static {
    /// Every choice with its spelling.
    const ALL: &'static [(Self, &'static str)];

    /// The canonical spelling.
    fn name(self) -> &'static str {
        let entry = Self::ALL.iter().find(|(value, _)| *value == self);
        entry.expect("the table names every choice").1
    }

    /// The choice that a text spells, in any case.
    fn from_name(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(value, _)| *value)
    }
}

/// A choice that reads show in the spelling its author used, since clients compare the two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsGiven<T> {
    /// The choice.
    pub value: T,
    text: Box<str>,
}

impl<T: Named> AsGiven<T> {
    /// Reads a choice in any case and remembers the spelling.
    pub fn parse(text: &str) -> Option<AsGiven<T>> {
        T::from_name(text).map(|value| AsGiven { value, text: text.into() })
    }
}

impl<T> AsGiven<T> {
    /// The spelling to show.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A piece of client text short enough to stand in a message.
fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(EXCERPT_CHARACTERS_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

/// The spellings of all choices, for messages.
fn choices<T: Named>() -> String {
    let names: Vec<String> = T::ALL.iter().map(|(_, name)| format!("'{name}'")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_repeat_little_of_a_long_text() {
        assert_eq!(excerpt("short"), "short");
        let long = "ä".repeat(1_000_000);
        assert_eq!(excerpt(&long).chars().count(), EXCERPT_CHARACTERS_MAX + 3);
    }
}
