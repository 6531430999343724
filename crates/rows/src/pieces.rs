//! Rows of a text that arrives in pieces, each read by itself: an upload, of which the server keeps nothing between requests.
//!
//! In: a piece, where the one before it ended ([`PieceState`]). Out: the rows that end within it, and how many of its bytes they took; what
//! is left comes again at the beginning of the next piece.
//! Invariants
//! - Nothing is given that the next piece could change: what touches the end of a piece waits, unless it is the last one.
//! - A state may come from anybody: no state makes a reader panic or take more memory than the piece needs.
//!
//! CSV is read twice: once for the kinds of its columns (`read_columns`), once for rows.

use crate::csv::{ColumnGuess, CsvOptions, CsvRecord, CsvRows, CsvShape, Records};
use crate::json_lines::LineRows;
use crate::json_values::{JsonPlace, ValueRows};
use crate::{BadRow, InputRow, InputRows, RowsError, TextFormat};
use std::io::Cursor;
use std::path::Path;

/// What errors call the text.
const NAME: &str = "the file";
/// What some programs write at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Most rows and lines that a state may count: what JSON numbers hold exactly.
pub const COUNT_MAX: u64 = 1 << 53;

/// Rows that know where in the text they are.
pub(crate) trait PlacedRows: InputRows {
    /// Bytes taken of the text.
    fn offset(&self) -> u64;
    /// Where the last row began, or what is before it; `before` is the offset before it was read.
    fn started(&self, before: u64) -> u64;
    /// Whether the last row may go on beyond the text.
    fn has_touched_end(&self) -> bool;
}

/// What is known after a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceState {
    /// Bytes of the text that are dealt with.
    pub offset: u64,
    /// Rows before.
    pub rows: u64,
    /// Line breaks before.
    pub lines: u64,
    /// Where between JSON values the reading is.
    pub place: JsonPlace,
    /// The columns of CSV, as far as they are read for their kinds; empty before the first line.
    pub columns: Vec<(String, ColumnGuess)>,
}

impl Default for PieceState {
    fn default() -> PieceState {
        PieceState { offset: 0, rows: 0, lines: 0, place: JsonPlace::Start, columns: Vec::new() }
    }
}

impl PieceState {
    /// Whatever somebody made of it, counting on does not overflow.
    fn bound(&mut self) {
        self.offset = self.offset.min(COUNT_MAX);
        self.rows = self.rows.min(COUNT_MAX);
        self.lines = self.lines.min(COUNT_MAX);
    }
}

/// A row with the line that it begins in, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceRow {
    /// Its number, from 1.
    pub number: u64,
    /// Its line, from 1.
    pub line: u64,
    /// JSON text, or why there is none.
    pub text: Result<Vec<u8>, BadRow>,
}

/// How a text is read.
#[derive(Debug, Clone)]
pub struct PieceReader {
    /// What it holds.
    pub format: TextFormat,
    /// Names and kinds of the columns, where there are some.
    pub shape: CsvShape,
    /// Whether empty cells are null instead of nothing.
    pub empty_is_null: bool,
}

impl PieceReader {
    /// Reads rows of a piece, `rows_max` at most; gives how many bytes are dealt with.
    pub fn read(
        &self,
        state: &mut PieceState,
        (piece, is_last): (&[u8], bool),
        rows_max: usize,
        take: impl FnMut(PieceRow),
    ) -> Result<usize, RowsError> {
        state.bound();
        let (text, mark) = without_mark(state, piece);
        let reader = Box::new(Cursor::new(text.to_vec()));
        let path = Path::new(NAME);
        let run = PieceRun { text, is_last, rows_max };
        let taken = match self.format {
            TextFormat::JsonLines => {
                let mut rows = LineRows::continued(reader, path, state.rows);
                run.rows(&mut rows, state, take, |_, _| {})?
            }
            TextFormat::Json => {
                let mut rows = ValueRows::continued(reader, path, state.rows, state.place);
                run.rows(&mut rows, state, take, |rows, state| state.place = rows.place())?
            }
            TextFormat::Csv | TextFormat::Tsv => {
                let mut records = Records::new(reader, path, self.separator());
                if state.offset == 0 {
                    let Some(names) = header(&mut records, is_last)? else { return Ok(0) };
                    if !names.iter().eq(self.shape.columns.iter().map(|(name, _)| name)) {
                        return Err(RowsError::input(
                            "the names in the first line are not those that were read before",
                        ));
                    }
                }
                let mut rows =
                    CsvRows::continued(records, self.shape.clone(), self.empty_is_null, state.rows);
                run.rows(&mut rows, state, take, |_, _| {})?
            }
        };
        Ok(finish(state, piece, taken + mark))
    }

    /// Reads the columns of a piece for their kinds; gives how many bytes are dealt with. Rows with too many or too few cells have no say.
    pub fn read_columns(
        &self,
        state: &mut PieceState,
        (piece, is_last): (&[u8], bool),
    ) -> Result<usize, RowsError> {
        state.bound();
        let (text, mark) = without_mark(state, piece);
        let mut records =
            Records::new(Box::new(Cursor::new(text.to_vec())), Path::new(NAME), self.separator());
        if state.offset == 0 {
            let Some(names) = header(&mut records, is_last)? else { return Ok(0) };
            state.columns = names.into_iter().map(|name| (name, ColumnGuess::Open)).collect();
        }
        let mut taken = records.offset();
        loop {
            let record = records.next_record()?;
            if records.has_touched_end() && !is_last {
                break;
            }
            taken = records.offset();
            let Some(record) = record else { break };
            state.rows += 1;
            if let CsvRecord::Cells(cells) = record
                && cells.len() == state.columns.len()
            {
                state.columns.iter_mut().zip(&cells).for_each(|((_, guess), cell)| guess.see(cell));
            }
        }
        Ok(finish(state, piece, usize::try_from(taken).unwrap_or(usize::MAX) + mark))
    }

    fn separator(&self) -> u8 {
        if self.format == TextFormat::Tsv { b'\t' } else { b',' }
    }
}

/// The names in the first line; none if it may go on beyond the piece.
fn header(records: &mut Records, is_last: bool) -> Result<Option<Vec<String>>, RowsError> {
    let names = records.names(&CsvOptions::default());
    if records.has_touched_end() && !is_last { Ok(None) } else { names.map(Some) }
}

/// The piece without a byte order mark at the beginning of the text, and the length of that.
fn without_mark<'p>(state: &PieceState, piece: &'p [u8]) -> (&'p [u8], usize) {
    match piece.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) if state.offset == 0 => (text, BYTE_ORDER_MARK.len()),
        _ => (piece, 0),
    }
}

/// Counts what is dealt with.
fn finish(state: &mut PieceState, piece: &[u8], taken: usize) -> usize {
    let taken = taken.min(piece.len());
    state.offset += taken as u64;
    state.lines += line_breaks(piece.get(..taken).unwrap_or_default());
    taken
}

fn line_breaks(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The reading of one piece.
struct PieceRun<'p> {
    text: &'p [u8],
    is_last: bool,
    rows_max: usize,
}

impl PieceRun<'_> {
    fn rows<R: PlacedRows>(
        &self,
        rows: &mut R,
        state: &mut PieceState,
        mut take: impl FnMut(PieceRow),
        keep_place: impl Fn(&R, &mut PieceState),
    ) -> Result<usize, RowsError> {
        let bytes = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(self.text.len());
        let mut taken = bytes(rows.offset());
        let (mut counted, mut lines) = (0, state.lines);
        for _ in 0..self.rows_max {
            let before = rows.offset();
            let row = rows.next_row();
            if rows.has_touched_end() && !self.is_last {
                break;
            }
            let row = row?;
            taken = bytes(rows.offset());
            keep_place(rows, state);
            let Some(InputRow { number, text }) = row else { break };
            // What ends the line before is not the row's.
            let gap = self.text.get(bytes(rows.started(before))..).unwrap_or_default();
            let gap = gap.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let started = bytes(rows.started(before)) + gap;
            lines += line_breaks(self.text.get(counted..started).unwrap_or_default());
            counted = started.max(counted);
            state.rows = number;
            take(PieceRow { number, line: lines + 1, text });
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::CellKind;

    /// Everything that a text gives when it comes in pieces of a size, which grow while nothing ends within one.
    fn in_pieces(
        reader: &PieceReader,
        text: &str,
        size: usize,
        rows_max: usize,
    ) -> Result<Vec<(u64, u64, String)>, String> {
        let (mut state, mut found) = (PieceState::default(), Vec::new());
        let mut length = size;
        loop {
            let start = usize::try_from(state.offset).unwrap();
            let end = text.len().min(start + length);
            let is_last = end == text.len();
            let piece = &text.as_bytes()[start..end];
            let rows_before = state.rows;
            let taken = reader
                .read(&mut state, (piece, is_last), rows_max, |row| {
                    let shown =
                        row.text.map_or_else(|bad| bad.reason, |text| String::from_utf8(text).unwrap());
                    found.push((row.number, row.line, shown));
                })
                .map_err(|error| error.to_string())?;
            if is_last && (taken == piece.len() || state.rows == rows_before) {
                return Ok(found);
            }
            length = if taken == 0 { length + size } else { size };
        }
    }

    #[track_caller]
    fn check(reader: &PieceReader, text: &str, expected: &[(u64, u64, &str)]) {
        let expected: Vec<(u64, u64, String)> =
            expected.iter().map(|(row, line, text)| (*row, *line, (*text).to_owned())).collect();
        for size in [1, 2, 3, 7, 1 << 16] {
            for rows_max in [1, 2, 1_000] {
                assert_eq!(in_pieces(reader, text, size, rows_max).unwrap(), expected, "{size} {rows_max}");
            }
        }
    }

    fn reader(format: TextFormat, columns: &[(&str, CellKind)]) -> PieceReader {
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        PieceReader { format, shape: CsvShape { columns }, empty_is_null: false }
    }

    #[test]
    fn lines_in_pieces_of_any_size() {
        let lines = reader(TextFormat::JsonLines, &[]);
        check(&lines, "{\"a\":1}\r\n\n[2]\nno", &[(1, 1, "{\"a\":1}"), (2, 3, "[2]"), (3, 4, "no")]);
        check(&lines, "\u{FEFF}{\"a\":\"é\"}\n", &[(1, 1, "{\"a\":\"é\"}")]);
        check(&lines, "{}\n \n  {\"b\":2}", &[(1, 1, "{}"), (2, 3, "{\"b\":2}")]);
        check(&lines, "", &[]);
    }

    #[test]
    fn values_in_pieces_of_any_size() {
        let values = reader(TextFormat::Json, &[]);
        check(
            &values,
            "[{\"a\":\"]\\\"\"} ,\n {\"b\":\n[1]},\n12,true]\n ",
            &[(1, 1, "{\"a\":\"]\\\"\"}"), (2, 2, "{\"b\":\n[1]}"), (3, 4, "12"), (4, 4, "true")],
        );
        check(
            &values,
            "{\"a\":1}\n{\"b\":2}{\"c\":3}",
            &[(1, 1, "{\"a\":1}"), (2, 2, "{\"b\":2}"), (3, 2, "{\"c\":3}")],
        );
        check(&values, "[ ]", &[]);
        for (text, fragment) in [
            ("[{}", "does not end"),
            ("[{} {}]", "comma"),
            ("[{\"a\":", "within a value"),
            ("[1] x", "follows"),
        ] {
            for size in [1, 3, 1 << 16] {
                let error = in_pieces(&values, text, size, 10).unwrap_err();
                assert!(error.contains(fragment), "{text} {size}: {error}");
            }
        }
    }

    #[test]
    fn cells_in_pieces_of_any_size() {
        let cells = reader(TextFormat::Csv, &[("id", CellKind::Text), ("n", CellKind::Number)]);
        check(
            &cells,
            "\u{FEFF}id,n\r\n1,1.50\r\n\"a\r\nb\",\r\n2,x\n3\n4,5",
            &[
                (1, 2, "{\"id\":\"1\",\"n\":1.50}"),
                (2, 3, "{\"id\":\"a\\r\\nb\"}"),
                (
                    3,
                    5,
                    "column \"n\" has \"x\", which is not a number; say --type NAME=string to keep it as it is",
                ),
                (4, 6, "the row has 1 cells, the first line 2 names"),
                (5, 7, "{\"id\":\"4\",\"n\":5}"),
            ],
        );
        let error = in_pieces(&cells, "id,m\n1,2\n", 100, 10).unwrap_err();
        assert!(error.contains("not those that were read before"), "{error}");
    }

    #[test]
    fn columns_are_seen_as_a_whole() {
        let text = "id,n,b,t,e\n1,2,true,x,\n2,-1.5e3,false,3,\n3,7,true\n";
        for size in [1, 4, 1 << 16] {
            let cells = reader(TextFormat::Csv, &[]);
            let (mut state, mut length) = (PieceState::default(), size);
            loop {
                let start = usize::try_from(state.offset).unwrap();
                let end = text.len().min(start + length);
                let piece = (&text.as_bytes()[start..end], end == text.len());
                let taken = cells.read_columns(&mut state, piece).unwrap();
                if start + taken == text.len() {
                    break;
                }
                length = if taken == 0 { length + size } else { size };
            }
            let kinds: Vec<CellKind> = state.columns.iter().map(|(name, guess)| guess.kind(name)).collect();
            let expected =
                [CellKind::Text, CellKind::Number, CellKind::Boolean, CellKind::Text, CellKind::Text];
            assert_eq!((kinds.as_slice(), state.rows), (&expected[..], 3), "{size}");
        }
    }

    /// States come back from clients.
    #[test]
    fn any_state_is_harmless() {
        for format in [TextFormat::JsonLines, TextFormat::Json, TextFormat::Csv, TextFormat::Tsv] {
            for (place, _) in JsonPlace::NAMES {
                let mut state = PieceState {
                    offset: u64::MAX,
                    rows: u64::MAX,
                    lines: u64::MAX,
                    place,
                    columns: Vec::new(),
                };
                let piece = b"]}\n\"a,b\n{\"x\":1},\n[7";
                let _ = reader(format, &[("a", CellKind::Json)]).read(
                    &mut state.clone(),
                    (piece, true),
                    2,
                    |_| {},
                );
                let _ = reader(format, &[]).read_columns(&mut state, (piece, true));
            }
        }
    }
}
