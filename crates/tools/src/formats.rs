//! Rows of files: JSON lines, JSON values, CSV.
//!
//! In: the bytes of a source. Out: [`InputRow`]s with the text of a JSON object each, or why a row is none, so that the caller decides whether to
//! go on. Each format is a file here; what all of them promise is [`InputRows`].

mod csv;
mod json_lines;
mod json_values;

use crate::error::ToolError;
use crate::input::OpenInput;
use clap::ValueEnum;
use std::path::Path;

pub(crate) use csv::{CellKind, CsvOptions, CsvShape, write_cell};

/// Longest row that is read: twice the longest document, for spaces.
pub(crate) const ROW_BYTES_MAX: usize = 4 << 20;
/// How much of a bad row is kept to be shown.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// One JSON object a line.
    JsonLines,
    /// A JSON array of objects, or objects one after another.
    Json,
    /// Values separated by commas, names in the first line.
    Csv,
    /// The same with tabs.
    Tsv,
}

/// One row of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputRow {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// JSON text, or why there is none.
    pub(crate) text: Result<Vec<u8>, BadRow>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// Why.
    pub(crate) reason: String,
    /// What it is, or the start of it.
    pub(crate) raw: Vec<u8>,
}

impl BadRow {
    pub(crate) fn new(reason: impl Into<String>, raw: &[u8]) -> BadRow {
        let kept = raw.get(..SHOWN_BYTES_MAX.min(raw.len())).unwrap_or_default();
        BadRow { reason: reason.into(), raw: kept.to_vec() }
    }
}

/// Gives rows one after another.
pub(crate) trait InputRows: Send {
    /// The next row, none at the end; an error if nothing more can be read.
    fn next_row(&mut self) -> Result<Option<InputRow>, ToolError>;
}

/// The format of a source: as told, by its name, or by its first bytes.
pub(crate) fn choose(told: Option<FileFormat>, path: &Path, head: &[u8]) -> Result<FileFormat, ToolError> {
    if head.starts_with(b"PAR1") {
        return Err(ToolError::input(format!(
            "{} is Parquet, which is not read; write it as JSON lines or CSV first",
            path.display()
        )));
    }
    if let Some(format) = told {
        return Ok(format);
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let first = head.trim_ascii_start().first();
    match (name.rsplit_once('.').map_or("", |(_, extension)| extension), first) {
        ("jsonl" | "ndjson" | "jsonlines", _) => Ok(FileFormat::JsonLines),
        ("csv", _) => Ok(FileFormat::Csv),
        ("tsv" | "tab", _) => Ok(FileFormat::Tsv),
        ("json", _) | (_, Some(b'[')) => Ok(FileFormat::Json),
        (_, Some(b'{') | None) => Ok(FileFormat::JsonLines),
        _ => Err(ToolError::input(format!(
            "what {} holds is told neither by its name nor by its first bytes; say --format json-lines, json, csv or tsv",
            path.display()
        ))),
    }
}

/// The rows of a source.
pub(crate) fn rows(
    format: FileFormat,
    input: OpenInput,
    path: &Path,
    csv: &CsvOptions,
    shape: Option<CsvShape>,
) -> Result<Box<dyn InputRows>, ToolError> {
    Ok(match format {
        FileFormat::JsonLines => Box::new(json_lines::LineRows::new(input.reader, path)),
        FileFormat::Json => Box::new(json_values::ValueRows::new(input.reader, path)),
        FileFormat::Csv => Box::new(csv::CsvRows::new(input.reader, path, b',', csv, shape)?),
        FileFormat::Tsv => Box::new(csv::CsvRows::new(input.reader, path, b'\t', csv, shape)?),
    })
}

/// Reads a whole CSV file for the kinds of its columns.
pub(crate) fn csv_shape(
    format: FileFormat,
    input: OpenInput,
    path: &Path,
    csv: &CsvOptions,
) -> Result<CsvShape, ToolError> {
    let separator = if format == FileFormat::Tsv { b'\t' } else { b',' };
    csv::shape(input.reader, path, separator, csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_names_and_bytes() {
        let check = |name: &str, head: &[u8], expected: Option<FileFormat>| {
            assert_eq!(choose(None, Path::new(name), head).ok(), expected, "{name}");
        };
        check("a.jsonl.gz", b"", Some(FileFormat::JsonLines));
        check("a.CSV", b"[", Some(FileFormat::Csv));
        check("a.json", b"{", Some(FileFormat::Json));
        check("-", b" \n[", Some(FileFormat::Json));
        check("-", b"{", Some(FileFormat::JsonLines));
        check("a.csv", b"PAR1", None);
        check("a.tsv.zst", b"x", Some(FileFormat::Tsv));
        check("a.dat", b"hello", None);
    }
}
