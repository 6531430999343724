//! Full text: words of a text, whether it holds given words or phrases, and how well it fits them (BM25).
//!
//! Text is cut into words, lower-cased, freed of the most common words and reduced to stems (`words`), by the rules of its
//! language; search terms go through the same, so that "running dogs" finds "a dog that runs" by either word.
//! Invariants
//! - A call reads the text once, whatever the number of terms, and keeps no copy of its words.
//! - A term of common words only is found nowhere.
//!
//! Not here: which language a path has (the caller puts it into `Context`), postings (the index), ranking (`sql-exec`).

mod language;
mod score;
mod stop_words;
mod term;
mod words;

use astrarium_value::Value;

use crate::arguments::{at, count, number, text};
use crate::{ANY_COUNT, Context, FunctionIndexUse, ScalarFunction};

pub use language::TextLanguage;
pub use score::{CorpusStatistics, bm25};
pub use term::{SearchTerm, occurrences};
pub use words::{for_each_word, word_count};

const FULL_TEXT: Option<FunctionIndexUse> = Some(FunctionIndexUse::FullText { text: 0, first: 1 });

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "FULLTEXTCONTAINS",
        signature: "(text: string, phrase: string) -> boolean",
        arguments: 2..=2,
        summary: "True when the text holds the word or phrase, whatever its endings and case.",
        example: Some((r#""The stars were shining","star""#, "true")),
        evaluate: |context, arguments| contains(context, arguments, false).unwrap_or_default(),
        index_use: FULL_TEXT,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "FULLTEXTCONTAINSALL",
        signature: "(text: string, ...phrases: string) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the text holds all the words or phrases.",
        example: Some((r#""The stars were shining","star","shine""#, "true")),
        evaluate: |context, arguments| contains(context, arguments, false).unwrap_or_default(),
        index_use: FULL_TEXT,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "FULLTEXTCONTAINSANY",
        signature: "(text: string, ...phrases: string) -> boolean",
        arguments: 2..=ANY_COUNT,
        summary: "True when the text holds one of the words or phrases.",
        example: Some((r#""The stars were shining","moon","star""#, "true")),
        evaluate: |context, arguments| contains(context, arguments, true).unwrap_or_default(),
        index_use: FULL_TEXT,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "_FULLTEXTWORDCOUNT",
        signature: "(text: string) -> number",
        arguments: 1..=1,
        summary: "How many words the text has, the most common ones left out; used in rewritten queries.",
        example: Some((r#""The stars were shining""#, "2")),
        evaluate: |context, arguments| {
            text(arguments, 0)
                .map(|text| count(word_count(text, context.full_text_language)))
                .unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "_FULLTEXTSCORE",
        signature: "(text: string, terms: array, documentCount: number, wordCount: number, hits: array) -> number",
        arguments: 5..=5,
        summary: "How well the text fits the terms, given statistics of all texts; used in rewritten queries.",
        evaluate: |context, arguments| score(context, arguments).unwrap_or_default(),
        index_use: FULL_TEXT,
        ..ScalarFunction::PLAIN
    },
];

fn contains(context: &Context<'_>, arguments: &[Value], any: bool) -> Option<Value> {
    let text = text(arguments, 0)?;
    let terms = SearchTerm::parse_all(arguments.get(1..)?, context.full_text_language)?;
    let (found, _) = occurrences(text, &terms, context.full_text_language);
    let result =
        if any { found.iter().any(|count| *count > 0) } else { found.iter().all(|count| *count > 0) };
    Some(Value::Bool(result))
}

/// Arguments: text, array of terms, number of documents, number of words in all of them, and for each term the number
/// of documents that hold it.
fn score(context: &Context<'_>, arguments: &[Value]) -> Option<Value> {
    let text = text(arguments, 0)?;
    let (Value::Array(terms), Value::Array(hit_counts)) = (at(arguments, 1), at(arguments, 4)) else {
        return None;
    };
    let terms = SearchTerm::parse_all(terms, context.full_text_language)?;
    let statistics =
        CorpusStatistics { document_count: number(arguments, 2)?, word_count: number(arguments, 3)? };
    if hit_counts.len() != terms.len() {
        return None;
    }
    let (found, length) = occurrences(text, &terms, context.full_text_language);
    let mut score = 0.0;
    for (place, found) in found.into_iter().enumerate() {
        score += bm25(&statistics, number(hit_counts, place)?, found, length);
    }
    Some(Value::Number(score))
}

#[cfg(test)]
mod tests;
