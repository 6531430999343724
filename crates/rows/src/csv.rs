//! CSV: names in the first line, cells of one kind a column.
//!
//! In: text, comma or tab between cells, quotes as RFC 4180 has them. Out: JSON objects. Kinds are found in the cells, told, and can be given: a column is
//! `number` if every cell is one as JSON writes it, `boolean` if every cell is true or false, else `string`; `json` only if told. Rows are made by the
//! kinds of the first ones; the kinds of all rows are known at the end ([`InputRows::kinds`]), and where they differ the text has to be read once more
//! with these. A number keeps its text. An empty cell gives no property.
//! A row with more or fewer cells than there are names is a bad row.

use crate::pieces::PlacedRows;
use crate::{BadRow, COLUMNS_MAX, ColumnKinds, InputRow, InputRows, ROW_BYTES_MAX, RowsError};
use astrarium_value::json::{Text, write_string};
use csv_core::ReadRecordResult;
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Rows that tell the kinds that rows are made by, if nobody does.
const SAMPLE_ROWS: usize = 1_000;

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// A text, as it stands.
    Text,
    /// A number as JSON writes it.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any JSON.
    Json,
}

/// What was told about a CSV file.
#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    /// Kinds of columns by name.
    pub kinds: Vec<(String, CellKind)>,
    /// Whether empty cells are null instead of nothing.
    pub empty_is_null: bool,
}

/// The columns of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvShape {
    /// Their names and kinds, in order.
    pub columns: Vec<(String, CellKind)>,
}

impl CellKind {
    /// By its name.
    pub fn parse(text: &str) -> Option<CellKind> {
        Some(match text {
            "string" => CellKind::Text,
            "number" => CellKind::Number,
            "boolean" => CellKind::Boolean,
            "json" => CellKind::Json,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CellKind::Text => "string",
            CellKind::Number => "number",
            CellKind::Boolean => "boolean",
            CellKind::Json => "json",
        }
    }
}

impl CsvShape {
    /// The columns in words, to be told.
    pub fn described(&self) -> String {
        let columns = self.columns.iter().map(|(name, kind)| format!("{name} {}", kind.name()));
        columns.collect::<Vec<_>>().join(", ")
    }
}

/// Records of a file, cells cut.
pub(crate) struct Records {
    reader: Box<dyn BufRead + Send>,
    parser: csv_core::Reader,
    path: PathBuf,
    cells: Vec<u8>,
    ends: Vec<usize>,
    is_ended: bool,
    /// Bytes taken of the text.
    offset: u64,
    /// Whether the last record may go on beyond the text.
    has_touched_end: bool,
}

/// The cells of one record, or that it is too long.
pub(crate) enum CsvRecord {
    Cells(Vec<Vec<u8>>),
    TooLong,
}

impl Records {
    pub(crate) fn new(reader: Box<dyn BufRead + Send>, path: &Path, separator: u8) -> Records {
        let parser = csv_core::ReaderBuilder::new().delimiter(separator).build();
        Records {
            reader,
            parser,
            path: path.to_owned(),
            cells: vec![0; 64 << 10],
            ends: vec![0; 256],
            is_ended: false,
            offset: 0,
            has_touched_end: false,
        }
    }

    pub(crate) fn next_record(&mut self) -> Result<Option<CsvRecord>, RowsError> {
        let (mut used, mut end_count, mut is_too_long) = (0, 0, false);
        while !self.is_ended {
            let input = self.reader.fill_buf().map_err(RowsError::file("read", &self.path))?;
            self.has_touched_end |= input.is_empty();
            let (result, read, wrote, ended) = self.parser.read_record(
                input,
                self.cells.get_mut(used..).unwrap_or_default(),
                self.ends.get_mut(end_count..).unwrap_or_default(),
            );
            self.reader.consume(read);
            self.offset += read as u64;
            used += wrote;
            end_count += ended;
            match result {
                ReadRecordResult::Record if is_too_long => return Ok(Some(CsvRecord::TooLong)),
                ReadRecordResult::Record => return Ok(Some(CsvRecord::Cells(self.cut(end_count)))),
                ReadRecordResult::End => {
                    self.is_ended = true;
                    return Ok(None);
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.cells.len() < ROW_BYTES_MAX => {
                    self.cells.resize(self.cells.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() < COLUMNS_MAX => {
                    self.ends.resize((self.ends.len() * 2).min(COLUMNS_MAX), 0);
                }
                // What does not fit is read on and thrown away, up to the end of the record.
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    is_too_long = true;
                    (used, end_count) = (0, 0);
                }
            }
        }
        Ok(None)
    }

    fn cut(&self, end_count: usize) -> Vec<Vec<u8>> {
        let mut start = 0;
        let ends = self.ends.get(..end_count).unwrap_or_default();
        let cells = ends.iter().map(|end| {
            let cell = self.cells.get(start..*end).unwrap_or_default().to_vec();
            start = *end;
            cell
        });
        cells.collect()
    }

    /// The names in the first record.
    pub(crate) fn names(&mut self, options: &CsvOptions) -> Result<Vec<String>, RowsError> {
        let first = self.next_record()?;
        let bad = |what: String| RowsError::input(format!("{}: {what}", self.path.display()));
        let names = match first {
            Some(CsvRecord::Cells(cells)) => cells,
            Some(CsvRecord::TooLong) => return Err(bad("the first line is too long to be names".to_owned())),
            None => return Ok(Vec::new()),
        };
        let names = names.into_iter().map(String::from_utf8).collect::<Result<Vec<_>, _>>();
        let names = names.map_err(|_| bad("the names in the first line are not UTF-8".to_owned()))?;
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(bad(format!("column {} has no name in the first line", index + 1)));
            }
            if names.iter().take(index).any(|earlier| earlier == name) {
                return Err(bad(format!("two columns are called {name:?}")));
            }
        }
        if let Some((unknown, _)) = options.kinds.iter().find(|(told, _)| !names.contains(told)) {
            return Err(bad(format!(
                "there is no column {unknown:?} for --type; there are {}",
                names.join(", ")
            )));
        }
        Ok(names)
    }
}

/// What a column can be, after the cells seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnGuess {
    /// Nothing but empty cells so far.
    Open,
    /// All cells are numbers.
    Number,
    /// All cells are `true` or `false`.
    Boolean,
    /// Anything else.
    Text,
}

impl ColumnGuess {
    pub(crate) fn see(&mut self, cell: &[u8]) {
        if cell.is_empty() {
            return;
        }
        *self = match self {
            ColumnGuess::Open | ColumnGuess::Number if is_number(cell) => ColumnGuess::Number,
            ColumnGuess::Open | ColumnGuess::Boolean if matches!(cell, b"true" | b"false") => {
                ColumnGuess::Boolean
            }
            _ => ColumnGuess::Text,
        };
    }

    /// What the cells of a column are taken for. An id is a string whatever it looks like.
    pub fn kind(self, name: &str) -> CellKind {
        match self {
            ColumnGuess::Number if name != "id" => CellKind::Number,
            ColumnGuess::Boolean if name != "id" => CellKind::Boolean,
            _ => CellKind::Text,
        }
    }
}

/// Looks at the cells of a row; a bad row has no say.
fn see_all(guesses: &mut [ColumnGuess], cells: &[Vec<u8>]) {
    if cells.len() == guesses.len() {
        guesses.iter_mut().zip(cells).for_each(|(guess, cell)| guess.see(cell));
    }
}

fn settled(names: Vec<String>, guesses: &[ColumnGuess], options: &CsvOptions) -> CsvShape {
    let columns = names.into_iter().enumerate().map(|(index, name)| {
        let told = options.kinds.iter().find(|(told, _)| *told == name).map(|(_, kind)| *kind);
        let guessed = guesses.get(index).map_or(CellKind::Text, |guess| guess.kind(&name));
        (name, told.unwrap_or(guessed))
    });
    CsvShape { columns: columns.collect() }
}

/// Reads all of a text for the kinds of its columns; bad rows have no say.
pub fn shape(
    reader: Box<dyn BufRead + Send>,
    path: &Path,
    separator: u8,
    options: &CsvOptions,
) -> Result<CsvShape, RowsError> {
    let mut records = Records::new(reader, path, separator);
    let names = records.names(options)?;
    let mut guesses = vec![ColumnGuess::Open; names.len()];
    while let Some(record) = records.next_record()? {
        if let CsvRecord::Cells(cells) = record {
            see_all(&mut guesses, &cells);
        }
    }
    Ok(settled(names, &guesses, options))
}

/// The rows of a text as objects.
pub struct CsvRows {
    records: Records,
    shape: CsvShape,
    options: CsvOptions,
    number: u64,
    /// Records that were read for their kinds.
    ahead: VecDeque<CsvRecord>,
    /// The kinds by all rows that were read, if nobody gave them.
    guesses: Option<Vec<ColumnGuess>>,
}

impl CsvRows {
    /// Rows of a text with its names in the first line. Without a shape the first rows tell the kinds.
    pub fn new(
        reader: Box<dyn BufRead + Send>,
        path: &Path,
        separator: u8,
        options: &CsvOptions,
        shape: Option<CsvShape>,
    ) -> Result<CsvRows, RowsError> {
        let mut records = Records::new(reader, path, separator);
        let names = records.names(options)?;
        let (mut ahead, options) = (VecDeque::new(), options.clone());
        if let Some(shape) = shape {
            return Ok(CsvRows { records, shape, options, number: 0, ahead, guesses: None });
        }
        let mut guesses = vec![ColumnGuess::Open; names.len()];
        while ahead.len() < SAMPLE_ROWS
            && let Some(record) = records.next_record()?
        {
            if let CsvRecord::Cells(cells) = &record {
                see_all(&mut guesses, cells);
            }
            ahead.push_back(record);
        }
        let shape = settled(names, &guesses, &options);
        Ok(CsvRows { records, shape, options, number: 0, ahead, guesses: Some(guesses) })
    }

    /// Rows of a text that begins after the first line, the rows before it counted.
    pub(crate) fn continued(records: Records, shape: CsvShape, empty_is_null: bool, number: u64) -> CsvRows {
        let options = CsvOptions { empty_is_null, ..CsvOptions::default() };
        CsvRows { records, shape, options, number, ahead: VecDeque::new(), guesses: None }
    }

    /// Names and kinds.
    pub fn shape(&self) -> &CsvShape {
        &self.shape
    }

    fn object(&self, cells: &[Vec<u8>]) -> Result<Vec<u8>, BadRow> {
        let raw = || {
            let mut line = Vec::new();
            for (index, cell) in cells.iter().enumerate() {
                if index > 0 {
                    line.push(b',');
                }
                write_cell(cell, b',', &mut line);
            }
            line
        };
        if cells.len() != self.shape.columns.len() {
            let reason = format!(
                "the row has {} cells, the first line {} names",
                cells.len(),
                self.shape.columns.len()
            );
            return Err(BadRow::new(reason, &raw()));
        }
        let mut object = Vec::from(*b"{");
        for ((name, kind), cell) in self.shape.columns.iter().zip(cells) {
            if cell.is_empty() && !self.options.empty_is_null {
                continue;
            }
            if object.len() > 1 {
                object.push(b',');
            }
            write_string(name, &mut object);
            object.push(b':');
            if cell.is_empty() {
                object.extend_from_slice(b"null");
            } else {
                write_value(*kind, cell, &mut object)
                    .map_err(|what| BadRow::new(format!("column {name:?} {what}"), &raw()))?;
            }
        }
        object.push(b'}');
        Ok(object)
    }
}

/// Writes a cell as JSON, or says why it is not of its kind.
pub fn write_value(kind: CellKind, cell: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let shown = || String::from_utf8_lossy(cell).chars().take(80).collect::<String>();
    let not = |what: &str| {
        format!("has {:?}, which is not {what}; say --type NAME=string to keep it as it is", shown())
    };
    match kind {
        CellKind::Number if is_number(cell) => out.extend_from_slice(cell),
        CellKind::Number => return Err(not("a number")),
        CellKind::Boolean if matches!(cell, b"true" | b"false") => out.extend_from_slice(cell),
        CellKind::Boolean => return Err(not("true or false")),
        CellKind::Json if Text::parse(cell).is_ok() => out.extend_from_slice(cell),
        CellKind::Json => return Err(not("JSON")),
        CellKind::Text => {
            let text = std::str::from_utf8(cell).map_err(|_| "is not UTF-8".to_owned())?;
            write_string(text, out);
        }
    }
    Ok(())
}

/// Whether a cell is a number as JSON writes it: `007` and `1,5` are not.
fn is_number(cell: &[u8]) -> bool {
    let is_start = cell.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
    is_start
        && cell.len() <= 400
        && cell.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte))
        && Text::parse(cell).is_ok()
}

impl InputRows for CsvRows {
    fn next_row(&mut self) -> Result<Option<InputRow>, RowsError> {
        let record = if let Some(seen) = self.ahead.pop_front() {
            seen
        } else {
            let Some(record) = self.records.next_record()? else { return Ok(None) };
            if let (Some(guesses), CsvRecord::Cells(cells)) = (&mut self.guesses, &record) {
                see_all(guesses, cells);
            }
            record
        };
        self.number += 1;
        let text = match record {
            CsvRecord::Cells(cells) => self.object(&cells),
            CsvRecord::TooLong => Err(BadRow::new(
                format!("the row is longer than {} MB (a quote may be missing)", ROW_BYTES_MAX >> 20),
                b"",
            )),
        };
        Ok(Some(InputRow { number: self.number, text }))
    }

    fn kinds(&self) -> Option<ColumnKinds> {
        let guesses = self.guesses.as_ref()?;
        let names = self.shape.columns.iter().map(|(name, _)| name.clone()).collect();
        Some(ColumnKinds { used: self.shape.clone(), found: settled(names, guesses, &self.options) })
    }
}

impl PlacedRows for CsvRows {
    fn offset(&self) -> u64 {
        self.records.offset
    }

    /// What ends the line before, and empty lines, come first: they are the caller's to leave out.
    fn started(&self, before: u64) -> u64 {
        before
    }

    fn has_touched_end(&self) -> bool {
        self.records.has_touched_end
    }
}

impl Records {
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn has_touched_end(&self) -> bool {
        self.has_touched_end
    }
}

/// Writes a cell for an export, with quotes where they are needed.
pub fn write_cell(cell: &[u8], separator: u8, out: &mut Vec<u8>) {
    let needs_quotes = cell.iter().any(|byte| *byte == separator || matches!(byte, b'"' | b'\n' | b'\r'))
        || cell.first().is_some_and(|byte| *byte == b' ')
        || cell.last().is_some_and(|byte| *byte == b' ');
    if !needs_quotes {
        out.extend_from_slice(cell);
        return;
    }
    out.push(b'"');
    for byte in cell {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, options: &CsvOptions) -> Result<Vec<String>, String> {
        let reader =
            || Box::new(std::io::BufReader::with_capacity(7, std::io::Cursor::new(text.as_bytes().to_vec())));
        let shape = shape(reader(), Path::new("x"), b',', options).map_err(|error| error.to_string())?;
        let rows = CsvRows::new(reader(), Path::new("x"), b',', options, Some(shape));
        let mut rows = rows.map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        while let Some(row) = rows.next_row().map_err(|error| error.to_string())? {
            all.push(row.text.map_or_else(|bad| bad.reason, |text| String::from_utf8(text).unwrap()));
        }
        Ok(all)
    }

    #[test]
    fn kinds() {
        let text = "id,n,b,t,big\n1,1.50,true,007,12345678901234567890\n2,,false,\"a \"\"b\"\"\n,c\",-1e3\n";
        let rows = read(text, &CsvOptions::default()).unwrap();
        assert_eq!(
            rows[0],
            "{\"id\":\"1\",\"n\":1.50,\"b\":true,\"t\":\"007\",\"big\":12345678901234567890}"
        );
        assert_eq!(rows[1], "{\"id\":\"2\",\"b\":false,\"t\":\"a \\\"b\\\"\\n,c\",\"big\":-1e3}");
        let options = CsvOptions { kinds: vec![("n".to_owned(), CellKind::Text)], empty_is_null: true };
        assert_eq!(
            read("id,n\r\n1,5\r\n2,\r\n", &options).unwrap(),
            ["{\"id\":\"1\",\"n\":\"5\"}", "{\"id\":\"2\",\"n\":null}"]
        );
        let options = CsvOptions { kinds: vec![("j".to_owned(), CellKind::Json)], empty_is_null: false };
        let rows = read("j\n\"[1,{}]\"\n{\n", &options).unwrap();
        assert_eq!(rows[0], "{\"j\":[1,{}]}");
        assert!(rows[1].contains("not JSON"), "{rows:?}");
    }

    #[test]
    fn ragged_and_hostile() {
        let rows = read("a,b\n1\n1,2,3\n1,2\n", &CsvOptions::default()).unwrap();
        assert!(rows[0].contains("1 cells") && rows[1].contains("3 cells"), "{rows:?}");
        assert_eq!(rows[2], "{\"a\":1,\"b\":2}");
        assert!(read("a,a\n", &CsvOptions::default()).unwrap_err().contains("two columns"));
        assert!(read("a,\n", &CsvOptions::default()).unwrap_err().contains("no name"));
        let unknown = CsvOptions { kinds: vec![("z".to_owned(), CellKind::Text)], empty_is_null: false };
        assert!(read("a\n", &unknown).unwrap_err().contains("no column"));
        let endless = format!("a\n\"{}", "x".repeat(ROW_BYTES_MAX * 2));
        assert!(read(&endless, &CsvOptions::default()).unwrap()[0].contains("longer than"));
        assert_eq!(read("", &CsvOptions::default()).unwrap(), [""; 0]);
    }

    #[test]
    fn cells_are_quoted_where_needed() {
        let written = |cell: &str| {
            let mut out = Vec::new();
            write_cell(cell.as_bytes(), b',', &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written("a"), "a");
        assert_eq!(written("a,b"), "\"a,b\"");
        assert_eq!(written("a\"\n"), "\"a\"\"\n\"");
    }
}
