//! Rows of texts (JSON lines, JSON values, CSV) and the documents that they become, for `tools` and for the explorer's uploads.
//!
//! In: text as a stream or in pieces. Out: [`InputRow`]s with the text of a JSON object each, or why a row is none, so that the caller
//! decides whether to go on; and documents with ids and partition keys by template (`documents`).
//! Invariants
//! - Memory is bounded whatever the size of the text: one row at a time, no row longer than [`ROW_BYTES_MAX`].
//! - Numbers and spelling are never changed: no value passes through a double.
//! - A text that is read in pieces gives the rows that it gives as a whole, wherever it is cut.
//!
//! Not here: files, compression and Parquet (`tools::formats`), writing documents.

pub mod csv;
pub mod documents;
mod json_lines;
mod json_values;
pub mod pieces;
pub mod template;

pub use json_lines::LineRows;
pub use json_values::{JsonPlace, ValueRows};

use csv::CsvShape;
use std::io::BufRead;
use std::path::Path;

/// Longest row that is read: twice the longest document, for spaces.
pub const ROW_BYTES_MAX: usize = 4 << 20;
/// Most columns of a text.
pub const COLUMNS_MAX: usize = 10_000;

/// What a text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// One JSON object a line.
    JsonLines,
    /// A JSON array of objects, or objects one after another.
    Json,
    /// Values separated by commas, names in the first line.
    Csv,
    /// The same with tabs.
    Tsv,
}

impl TextFormat {
    /// What a text holds by the ending of its name, in lower case, or by its first bytes; none if neither tells.
    pub fn of(extension: &str, head: &[u8]) -> Option<TextFormat> {
        Some(match (extension, head.trim_ascii_start().first()) {
            ("jsonl" | "ndjson" | "jsonlines", _) => TextFormat::JsonLines,
            ("csv", _) => TextFormat::Csv,
            ("tsv" | "tab", _) => TextFormat::Tsv,
            ("json", _) | (_, Some(b'[')) => TextFormat::Json,
            (_, Some(b'{') | None) => TextFormat::JsonLines,
            _ => return None,
        })
    }
}

/// One row of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRow {
    /// Its number, from 1.
    pub number: u64,
    /// JSON text, or why there is none.
    pub text: Result<Vec<u8>, BadRow>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// Why, and what a command line can do about it.
    pub reason: String,
    /// What it is, or the start of one that is longer than any row may be.
    pub raw: Vec<u8>,
}

impl BadRow {
    /// A row that is bad for a reason.
    pub fn new(reason: impl Into<String>, raw: &[u8]) -> BadRow {
        let kept = raw.get(..ROW_BYTES_MAX.min(raw.len())).unwrap_or_default();
        BadRow { reason: reason.into(), raw: kept.to_vec() }
    }

    /// Why, without the flag of a command that could help: for people who have no command line.
    pub fn bare_reason(&self) -> &str {
        let with_flag = self.reason.split_once("; say --").or_else(|| self.reason.split_once("; --"));
        with_flag.map_or(&self.reason, |(reason, _)| reason)
    }
}

/// Gives rows one after another.
pub trait InputRows: Send {
    /// The next row, none at the end; an error if nothing more can be read.
    fn next_row(&mut self) -> Result<Option<InputRow>, RowsError>;

    /// The kinds of the columns, where these were looked for in the rows.
    fn kinds(&self) -> Option<ColumnKinds> {
        None
    }
}

/// What columns were taken for, and what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnKinds {
    /// What rows are made by: the kinds of the first ones.
    pub used: CsvShape,
    /// By all rows that were read.
    pub found: CsvShape,
}

/// Why reading ends before the end of the text.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// What was given is wrong: the text, a template, a type. The message says where, and what to do.
    #[error("{0}")]
    Input(String),
    /// The source cannot be read.
    #[error("{what}: {source}")]
    Files {
        /// What was being done.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
}

impl RowsError {
    /// Wrong input.
    pub fn input(message: impl Into<String>) -> RowsError {
        RowsError::Input(message.into())
    }

    /// A failure of a source while something was done.
    pub fn file(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> RowsError {
        move |source| RowsError::Files { what: format!("{what} {}", path.display()), source }
    }
}

/// Passes over white space; gives how many bytes it had.
pub(crate) fn skip_space(reader: &mut dyn BufRead) -> std::io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let space = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let is_over = space < buffer.len() || buffer.is_empty();
        reader.consume(space);
        skipped += space as u64;
        if is_over {
            return Ok(skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_endings_and_bytes() {
        let check = |extension: &str, head: &[u8], expected: Option<TextFormat>| {
            assert_eq!(TextFormat::of(extension, head), expected, "{extension}");
        };
        check("csv", b"[", Some(TextFormat::Csv));
        check("tab", b"x", Some(TextFormat::Tsv));
        check("json", b"{", Some(TextFormat::Json));
        check("", b" \n[", Some(TextFormat::Json));
        check("txt", b"{", Some(TextFormat::JsonLines));
        check("ndjson", b"", Some(TextFormat::JsonLines));
        check("dat", b"hello", None);
    }

    #[test]
    fn flags_are_left_out_for_people_without_a_command_line() {
        let check = |reason: &str, bare: &str| assert_eq!(BadRow::new(reason, b"").bare_reason(), bare);
        check("is not a number; say --type n=string to keep it as it is", "is not a number");
        check("its id is not a string; --id '{id}' makes one of it", "its id is not a string");
        check("it is not an object", "it is not an object");
    }
}
