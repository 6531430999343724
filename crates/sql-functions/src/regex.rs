//! Regular expressions: patterns in the service's dialect, matched in bounded time.
//!
//! A pattern is first made readable to the linear-time engine (`dialect`); only patterns with look-around or back
//! references, which that engine lacks, run on a backtracking one, with a limit on steps and on the length of the text.
//! Compiled patterns are kept per thread, the most recent first.
//! Invariants
//! - A bad pattern, unknown modifiers, or a match that would take too long give undefined.
//!
//! Not here: LIKE (`operators::LikePattern`).

mod dialect;
mod reduce;

use std::cell::RefCell;
use std::rc::Rc;

use astrarium_value::Value;

use crate::arguments::{string, text};
use crate::limits::may_go_on;
use crate::{FunctionIndexUse, ScalarFunction};

pub use reduce::{TextTest, TextTestKind, reduce};

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 8 << 10;
/// The largest compiled pattern, in bytes; also the engine's scratch memory per pattern.
const COMPILED_BYTES_MAX: usize = 512 << 10;
/// Steps back that a pattern with look-around may take, and the longest text it is tried on: the product of both
/// bounds its time.
/// Sizes of compiled patterns that are told apart.
const COMPILED_BYTES: [usize; 4] = [4 << 10, 16 << 10, 96 << 10, COMPILED_BYTES_MAX];
/// About what a state of a compiled pattern takes.
const STATE_BYTES: usize = 64;
/// States times bytes of text that one search may take at worst: about a second.
const SEARCH_STEPS_MAX: usize = 1 << 29;
const BACKTRACK_MAX: usize = 100_000;
const BACKTRACK_TEXT_BYTES_MAX: usize = 32 << 10;
/// Matches that such a pattern may give, each of which takes its own steps.
const BACKTRACK_MATCHES_MAX: usize = 256;
/// Compiled patterns kept per thread.
const CACHE_PATTERNS_MAX: usize = 16;

const PATTERN: Option<FunctionIndexUse> =
    Some(FunctionIndexUse::Pattern { text: 0, pattern: 1, modifiers: 2 });

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "REGEXMATCH",
        signature: "(text: string, pattern: string, modifiers?: string) -> boolean",
        arguments: 2..=3,
        summary: "True when the pattern matches somewhere in the text; modifiers are m, s, i and x.",
        example: Some((r#""Astrarium","^astra","i""#, "true")),
        evaluate: |_, arguments| matches(arguments).unwrap_or_default(),
        index_use: PATTERN,
        ..ScalarFunction::PLAIN
    },
    // Known by name only (unsure): the whole match, undefined when there is none.
    ScalarFunction {
        name: "REGEXEXTRACT",
        signature: "(text: string, pattern: string, modifiers?: string) -> string",
        arguments: 2..=3,
        summary: "The first part of the text that the pattern matches.",
        example: Some((r#""room 101, floor 3","[0-9]+""#, r#""101""#)),
        evaluate: |_, arguments| extract(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "REGEXEXTRACTALL",
        signature: "(text: string, pattern: string, modifiers?: string) -> array",
        arguments: 2..=3,
        summary: "All parts of the text that the pattern matches.",
        example: Some((r#""room 101, floor 3","[0-9]+""#, r#"["101","3"]"#)),
        evaluate: |_, arguments| extract_all(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
];

fn matches(arguments: &[Value]) -> Option<Value> {
    let (pattern, text) = pattern_and_text(arguments)?;
    pattern.is_match(text).map(Value::Bool)
}

fn extract(arguments: &[Value]) -> Option<Value> {
    let (pattern, text) = pattern_and_text(arguments)?;
    let (start, end) = *pattern.find(text, 1)?.first()?;
    Some(string(&text[start..end]))
}

fn extract_all(arguments: &[Value]) -> Option<Value> {
    let (pattern, text) = pattern_and_text(arguments)?;
    let found = pattern.find(text, usize::MAX)?;
    Some(Value::Array(found.into_iter().map(|(start, end)| string(&text[start..end])).collect()))
}

fn pattern_and_text(arguments: &[Value]) -> Option<(Rc<Pattern>, &str)> {
    let modifiers = if arguments.len() > 2 { text(arguments, 2)? } else { "" };
    let (whole, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    Some((cached(pattern, modifiers)?, whole))
}

/// Whether a search through a text is short enough to be done in one go, which is the only way.
fn fits(compiled_bytes: usize, text: &str) -> bool {
    let states = compiled_bytes / STATE_BYTES;
    let is_short = text.len().saturating_mul(states) <= SEARCH_STEPS_MAX;
    if !is_short {
        astrarium_env::refuse(
            "A regular expression is too large for the text that it is to be found in: the search could take minutes. \
             Shorten the expression (counted repetitions are large) or the text.",
        );
    }
    is_short && may_go_on(text.len() / 4)
}

/// A compiled pattern.
enum Pattern {
    /// Linear in the text, and at worst in the size of the compiled pattern too.
    Linear(regex::Regex, usize),
    /// With look-around or back references.
    Backtracking(fancy_regex::Regex),
}

impl Pattern {
    fn compile(pattern: &str, modifiers: &str) -> Option<Pattern> {
        if pattern.len() > PATTERN_BYTES_MAX || !modifiers.bytes().all(|letter| b"msix".contains(&letter)) {
            return None;
        }
        let has = |letter| modifiers.contains(letter);
        let translated = dialect::translate(pattern);
        let linear = |bytes_max: usize| {
            let built = regex::RegexBuilder::new(&translated)
                .multi_line(has('m'))
                .dot_matches_new_line(has('s'))
                .case_insensitive(has('i'))
                .ignore_whitespace(has('x'))
                .size_limit(bytes_max)
                .dfa_size_limit(COMPILED_BYTES_MAX)
                .build();
            built.ok().map(|regex| Pattern::Linear(regex, bytes_max))
        };
        // Nobody tells how large a pattern has become, but whether it is larger than allowed.
        match COMPILED_BYTES.into_iter().find_map(linear) {
            Some(linear) => Some(linear),
            None if !dialect::needs_backtracking(&translated) => None,
            None => fancy_regex::RegexBuilder::new(&translated)
                .multi_line(has('m'))
                .dot_matches_new_line(has('s'))
                .case_insensitive(has('i'))
                .ignore_whitespace(has('x'))
                .delegate_size_limit(COMPILED_BYTES_MAX)
                .delegate_dfa_size_limit(COMPILED_BYTES_MAX)
                .backtrack_limit(BACKTRACK_MAX)
                .build()
                .ok()
                .map(Pattern::Backtracking),
        }
    }

    /// None when it would take too long to say.
    fn is_match(&self, text: &str) -> Option<bool> {
        match self {
            Pattern::Linear(regex, size) => fits(*size, text).then(|| regex.is_match(text)),
            Pattern::Backtracking(_) if text.len() > BACKTRACK_TEXT_BYTES_MAX => None,
            Pattern::Backtracking(regex) => regex.is_match(text).ok(),
        }
    }

    /// The first matches, at most so many; none when it would take too long to say.
    fn find(&self, text: &str, count_max: usize) -> Option<Vec<(usize, usize)>> {
        match self {
            Pattern::Linear(regex, size) => {
                if !fits(*size, text) {
                    return None;
                }
                // Each of them may look at all of the rest.
                let found = regex.find_iter(text).take(count_max);
                let found = found.take_while(|found| may_go_on((text.len() - found.end()) / 4));
                Some(found.map(|found| (found.start(), found.end())).collect())
            }
            Pattern::Backtracking(_) if text.len() > BACKTRACK_TEXT_BYTES_MAX => None,
            Pattern::Backtracking(regex) => {
                let found = regex.find_iter(text).take(count_max.min(BACKTRACK_MATCHES_MAX + 1));
                let found: Vec<_> = found
                    .map(|found| found.ok().map(|found| (found.start(), found.end())))
                    .collect::<Option<_>>()?;
                (found.len() <= BACKTRACK_MATCHES_MAX).then_some(found)
            }
        }
    }
}

/// A pattern with its modifiers, and what they compile to; a bad one is worth remembering too.
struct KeptPattern {
    pattern: Box<str>,
    modifiers: Box<str>,
    compiled: Option<Rc<Pattern>>,
}

thread_local! {
    static CACHE: RefCell<Vec<KeptPattern>> = const { RefCell::new(Vec::new()) };
}

fn cached(pattern: &str, modifiers: &str) -> Option<Rc<Pattern>> {
    CACHE.with_borrow_mut(|cache| {
        let known =
            cache.iter().position(|entry| *entry.pattern == *pattern && *entry.modifiers == *modifiers);
        if let Some(place) = known {
            cache[..=place].rotate_right(1);
        } else {
            let compiled = Pattern::compile(pattern, modifiers).map(Rc::new);
            if pattern.len() > PATTERN_BYTES_MAX {
                return compiled;
            }
            cache.truncate(CACHE_PATTERNS_MAX - 1);
            cache.insert(0, KeptPattern { pattern: pattern.into(), modifiers: modifiers.into(), compiled });
        }
        cache[0].compiled.clone()
    })
}

#[cfg(test)]
mod tests;
