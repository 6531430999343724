//! Rows in the form that was asked for: table, JSON, JSON lines, CSV.
//!
//! In: rows as text, page by page. Out: lines. What is held is bounded: a table is laid out for so many rows at a time, CSV knows its
//! columns from its first rows and refuses later ones with others, rather than losing them.

use crate::failure::ShellFailure;
use crate::json_text::{compact, pretty};
use crate::output::ShellOutput;
use crate::table::{self, TableCell};
use astrarium_client::harmless;
use astrarium_value::json::{Kind, Node, Text};
use bytes::Bytes;

/// Rows of one layout of a table.
const TABLE_ROWS: usize = 200;
/// Rows from which CSV takes its columns.
const CSV_ROWS: usize = 5_000;
/// Bytes of rows that are held for that at most.
const HELD_BYTES_MAX: usize = 32 << 20;
/// What the server adds to every document.
const SYSTEM_PROPERTIES: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];
/// Most characters of a cell: more does not fit any terminal.
const CELL_LENGTH_MAX: usize = 1_000;
/// The name of the column of rows that are no objects.
const VALUE_COLUMN: &str = "value";

/// How rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputMode {
    /// A table that fits the terminal.
    Table,
    /// One JSON array over several lines.
    Json,
    /// A row on a line.
    #[value(alias = "json-lines", alias = "ndjson")]
    Jsonl,
    /// Comma-separated values with a heading.
    Csv,
}

impl OutputMode {
    /// The words for them.
    pub(crate) const NAMES: [(&'static str, OutputMode); 4] = [
        ("table", OutputMode::Table),
        ("json", OutputMode::Json),
        ("jsonl", OutputMode::Jsonl),
        ("csv", OutputMode::Csv),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// Writes rows as they come.
pub(crate) struct ShownRows {
    mode: OutputMode,
    with_system: bool,
    held: Vec<Bytes>,
    held_bytes: usize,
    columns: Option<Vec<String>>,
    count: u64,
}

impl ShownRows {
    pub(crate) fn new(mode: OutputMode, with_system: bool) -> ShownRows {
        ShownRows { mode, with_system, held: Vec::new(), held_bytes: 0, columns: None, count: 0 }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn add(&mut self, rows: Vec<Bytes>, output: &mut ShellOutput) -> Result<(), ShellFailure> {
        for row in rows {
            self.count += 1;
            match self.mode {
                OutputMode::Json => {
                    let text = String::from_utf8_lossy(&row);
                    let lead = if self.count == 1 { "[\n  " } else { ",\n  " };
                    output.text(&format!("{lead}{}", output.json_for_eyes(&pretty(&text, 2))))?;
                }
                OutputMode::Jsonl => {
                    let text = String::from_utf8_lossy(&row);
                    output.line(&output.json_for_eyes(&compact(&text)))?;
                }
                OutputMode::Table | OutputMode::Csv => {
                    self.held_bytes += row.len();
                    self.held.push(row);
                    self.write_if_full(output)?;
                }
            }
        }
        Ok(())
    }

    /// The last lines.
    pub(crate) fn end(&mut self, output: &mut ShellOutput) -> Result<(), ShellFailure> {
        match self.mode {
            OutputMode::Json => output.text(if self.count == 0 { "[]\n" } else { "\n]\n" }),
            OutputMode::Jsonl => Ok(()),
            OutputMode::Table => self.write_table(output),
            OutputMode::Csv => self.write_csv(output),
        }
    }

    fn write_if_full(&mut self, output: &mut ShellOutput) -> Result<(), ShellFailure> {
        let (most, is_table) = match self.mode {
            OutputMode::Table => (TABLE_ROWS, true),
            _ if self.columns.is_some() => (1, false),
            _ => (CSV_ROWS, false),
        };
        if self.held.len() < most && self.held_bytes < HELD_BYTES_MAX {
            return Ok(());
        }
        if is_table { self.write_table(output) } else { self.write_csv(output) }
    }

    fn write_table(&mut self, output: &mut ShellOutput) -> Result<(), ShellFailure> {
        let rows = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        if self.columns.is_some() {
            output.line("")?;
        }
        let mut columns = Vec::new();
        let mut read: Vec<Vec<(usize, TableCell)>> = rows
            .iter()
            .map(|row| {
                let is_hidden = !self.with_system && is_document(row);
                let is_wanted = |name: &str| !is_hidden || !SYSTEM_PROPERTIES.contains(&name);
                cells(row, &mut columns, is_wanted, shown_cell)
            })
            .collect();
        // A row that has none of the properties that were selected is no empty line.
        for row in read.iter_mut().filter(|row| row.is_empty()) {
            if columns.is_empty() {
                columns.push(VALUE_COLUMN.to_owned());
            }
            row.push((0, TableCell { text: "{}".to_owned(), is_number: false }));
        }
        let width = output.surroundings().size().map(|(columns, _)| columns);
        let names: Vec<String> = columns.iter().map(|name| harmless(name).into_owned()).collect();
        for line in table::lines(&names, &in_columns(read, columns.len()), width) {
            output.line(&line)?;
        }
        self.columns = Some(columns);
        Ok(())
    }

    fn write_csv(&mut self, output: &mut ShellOutput) -> Result<(), ShellFailure> {
        let rows = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let known = self.columns.clone();
        let mut columns = known.clone().unwrap_or_default();
        let read: Vec<Vec<(usize, TableCell)>> =
            rows.iter().map(|row| cells(row, &mut columns, |_| true, csv_cell)).collect();
        let line =
            |fields: Vec<String>, output: &mut ShellOutput| output.line(&output.for_eyes(&fields.join(",")));
        match known {
            Some(known) if known.len() < columns.len() => {
                let new = columns.last().map_or("", String::as_str);
                return Err(ShellFailure::told(format!(
                    "row {} has a column {new:?} that is not in the heading, which is written already; name the columns in SELECT, \
                     or use .mode jsonl",
                    self.count
                )));
            }
            None if !columns.is_empty() => {
                line(columns.iter().map(|name| csv_field(name)).collect(), output)?;
            }
            _ => {}
        }
        for row in in_columns(read, columns.len()) {
            line(row.into_iter().map(|cell| cell.text).collect(), output)?;
        }
        self.columns = Some(columns);
        Ok(())
    }
}

/// Whether a row is a document as it is stored, and not what a query selected of one.
fn is_document(row: &[u8]) -> bool {
    let Ok(text) = Text::parse(row) else { return false };
    ["_rid", "_self", "_etag", "_ts"].iter().all(|name| text.root().get(name).is_some())
}

/// The cells of a row by their columns, which grow as names appear.
fn cells(
    row: &[u8],
    columns: &mut Vec<String>,
    is_wanted: impl Fn(&str) -> bool,
    cell: fn(Node<'_>) -> TableCell,
) -> Vec<(usize, TableCell)> {
    let mut place = |name: &str| {
        columns.iter().position(|known| known == name).unwrap_or_else(|| {
            columns.push(name.to_owned());
            columns.len() - 1
        })
    };
    let Ok(text) = Text::parse(row) else {
        let text = harmless(&String::from_utf8_lossy(row)).chars().take(CELL_LENGTH_MAX).collect();
        return vec![(place(VALUE_COLUMN), TableCell { text, is_number: false })];
    };
    if text.root().kind() != Kind::Object {
        return vec![(place(VALUE_COLUMN), cell(text.root()))];
    }
    let members = text.root().members().filter(|(name, _)| is_wanted(name));
    members.map(|(name, value)| (place(&name), cell(value))).collect()
}

fn in_columns(rows: Vec<Vec<(usize, TableCell)>>, count: usize) -> Vec<Vec<TableCell>> {
    rows.into_iter()
        .map(|row| {
            let mut placed = vec![TableCell::default(); count];
            for (index, cell) in row {
                placed[index] = cell;
            }
            placed
        })
        .collect()
}

fn shown_cell(node: Node<'_>) -> TableCell {
    let text = match node.as_str() {
        Some(text) => text.chars().take(CELL_LENGTH_MAX).collect::<String>(),
        None => compact(&node.raw().chars().take(CELL_LENGTH_MAX).collect::<String>()).into_owned(),
    };
    TableCell { text: harmless(&text).into_owned(), is_number: node.kind() == Kind::Number }
}

fn csv_cell(node: Node<'_>) -> TableCell {
    let text = match (node.kind(), node.as_str()) {
        (Kind::Null, _) => String::new(),
        (_, Some(text)) => csv_field(&text),
        (_, None) => csv_field(&compact(node.raw())),
    };
    TableCell { text, is_number: false }
}

/// A field as RFC 4180 has it. An empty string is in quotes, so that it differs from what is missing.
fn csv_field(text: &str) -> String {
    if text.is_empty()
        || text.contains(['"', ',', '\n', '\r'])
        || text.starts_with(' ')
        || text.ends_with(' ')
    {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields() {
        assert_eq!(csv_field("a"), "a");
        assert_eq!(csv_field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(csv_field(""), "\"\"");
        let text = Text::parse(b"{\"a\":[1, 12345678901234567890],\"n\":null}").unwrap();
        assert_eq!(csv_cell(text.root().get("a").unwrap()).text, "\"[1,12345678901234567890]\"");
        assert_eq!(csv_cell(text.root().get("n").unwrap()).text, "");
    }

    #[test]
    fn cells_of_hostile_rows() {
        let mut columns = Vec::new();
        let row =
            cells(b"{\"a\":\"\\u001b[2J\",\"n\":12345678901234567890}", &mut columns, |_| true, shown_cell);
        assert_eq!(row[0].1.text, "\\u001b[2J");
        assert_eq!(row[1].1.text, "12345678901234567890");
        assert_eq!(cells(b"not json \x1b", &mut columns, |_| true, shown_cell)[0].1.text, "not json \\u001b");
    }
}
