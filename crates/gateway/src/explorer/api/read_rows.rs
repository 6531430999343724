//! Reads a piece of a file that somebody is about to upload, as `astrarium import` would read it: its columns, or its rows as documents.
//!
//! In: a line of JSON that says how to read, then the bytes of the piece. Out: how many of them are dealt with, what is known after them,
//! documents, and what is wrong with which row. Nothing is written and nothing is kept: the page sends the documents itself, as requests
//! of the protocol, and what is known comes back with the next piece.
//! Invariants
//! - Pieces, rows and failures of an answer are bounded whatever the file holds, and the memory for reading is reserved before.
//! - What comes back from a client as known may be anything; it changes what that client is answered, and nothing else.

use super::super::ExplorerCall;
use super::super::refusal::ApiRefusal;
use super::find_container;
use crate::database::partition::PartitionKeyDefinition;
use crate::service;
use astrarium_rows::csv::{CellKind, ColumnGuess, CsvShape};
use astrarium_rows::documents::DocumentMaker;
use astrarium_rows::pieces::{PieceReader, PieceState};
use astrarium_rows::template::TextTemplate;
use astrarium_rows::{COLUMNS_MAX, JsonPlace, RowsError, TextFormat};
use serde_json::{Value, json};

/// Longest body: a piece that holds the longest row, and the line before it.
pub(super) const BODY_BYTES_MAX: usize = 9 << 20;
/// How much memory reading takes at most, as a multiple of the body: a copy, its documents twice, and the answer, in which
/// quotes take two bytes.
const MEMORY_FACTOR: usize = 6;
/// Rows of a piece that are checked at once, and those that are given as documents.
const CHECKED_MAX: usize = 20_000;
const DOCUMENTS_MAX: usize = 1_000;
/// Documents that a check shows.
const SHOWN_MAX: u64 = 50;
/// Failures of a piece that are told; all are counted.
const FAILURES_MAX: usize = 100;
/// Characters of a reason.
const REASON_LENGTH_MAX: usize = 300;

const FORMATS: [(TextFormat, &str); 4] = [
    (TextFormat::JsonLines, "json-lines"),
    (TextFormat::Json, "json"),
    (TextFormat::Csv, "csv"),
    (TextFormat::Tsv, "tsv"),
];
const GUESSES: [(ColumnGuess, &str); 4] = [
    (ColumnGuess::Open, "open"),
    (ColumnGuess::Number, "number"),
    (ColumnGuess::Boolean, "boolean"),
    (ColumnGuess::Text, "string"),
];

/// What is wanted of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PiecePass {
    /// The kinds of its columns.
    Columns,
    /// Whether its rows are good, and the first documents.
    Check { shown: usize },
    /// All its documents.
    Documents,
}

/// What the first line says.
struct PieceRequest {
    reader: PieceReader,
    maker: DocumentMaker,
    state: PieceState,
    is_last: bool,
    pass: PiecePass,
}

/// Reads a piece.
pub(super) async fn read(call: &ExplorerCall<'_>, body: &[u8]) -> Result<String, ApiRefusal> {
    let malformed = || {
        ApiRefusal::bad_request(
            "The body is a line of JSON, {\"database\", \"container\", \"name\", \"format\", \"pass\", \"last\", \"state\", \"columns\", \
             \"emptyAsNull\", \"id\", \"partitionKey\", \"uploadId\"}, and the bytes of the file after it.",
        )
    };
    let shared = &call.gateway.shared;
    let _held = call.gateway.memory().reserve(body.len() * MEMORY_FACTOR).ok_or_else(service::no_memory)?;
    let end = body.iter().position(|byte| *byte == b'\n').ok_or_else(malformed)?;
    let (line, piece) = body.split_at(end);
    let piece = piece.get(1..).unwrap_or_default();
    let asked: Value = serde_json::from_slice(line).map_err(|_| malformed())?;
    let name = |member: &str| asked.get(member).and_then(Value::as_str);
    let (database, container) =
        (name("database").ok_or_else(malformed)?, name("container").ok_or_else(malformed)?);
    let container = find_container(call, database, container).await?;
    let request = wanted(&asked, piece, &container.definition.partition_key)?.ok_or_else(malformed)?;
    shared.offload.run(body.len(), || answered(request, piece)).await
}

/// What the first line says; nothing if that is malformed.
fn wanted(
    asked: &Value,
    piece: &[u8],
    key_definition: &PartitionKeyDefinition,
) -> Result<Option<PieceRequest>, ApiRefusal> {
    let text = |member: &str| asked.get(member).and_then(Value::as_str);
    let flag = |member: &str| asked.get(member).and_then(Value::as_bool).unwrap_or(false);
    let pass = match text("pass") {
        Some("columns") => PiecePass::Columns,
        Some("check") => {
            let shown = asked.get("show").and_then(Value::as_u64).unwrap_or_default().min(SHOWN_MAX);
            PiecePass::Check { shown: shown as usize }
        }
        Some("documents") => PiecePass::Documents,
        _ => return Ok(None),
    };
    let Some((state, columns)) = state_of(asked).zip(columns_of(asked)) else { return Ok(None) };
    let format = match text("format") {
        Some(told) => FORMATS.iter().find(|(_, name)| *name == told).map(|(format, _)| *format),
        None => format_of(text("name").unwrap_or_default(), piece),
    };
    let format = format.ok_or_else(|| {
        ApiRefusal::bad_request(
            "What the file holds is told neither by its name nor by its first bytes. Choose JSON, JSON lines, CSV or TSV.",
        )
    })?;
    let keys = asked.get("partitionKey").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let keys: Option<Vec<String>> = keys.iter().map(|key| key.as_str().map(str::to_owned)).collect();
    let Some(keys) = keys else { return Ok(None) };
    let id = text("id").filter(|template| !template.is_empty());
    let maker = DocumentMaker {
        id: id.map(TextTemplate::parse).transpose().map_err(|error| refused(&error))?,
        keys: DocumentMaker::key_templates(key_definition, &keys).map_err(|error| refused(&error))?,
        import_id: text("uploadId").unwrap_or_default().to_owned(),
        key_definition: key_definition.clone(),
    };
    let reader = PieceReader { format, shape: CsvShape { columns }, empty_is_null: flag("emptyAsNull") };
    Ok(Some(PieceRequest { reader, maker, state, is_last: flag("last"), pass }))
}

/// What a file holds by its name or its beginning. What is packed, or Parquet, is a file for the command line.
fn format_of(name: &str, piece: &[u8]) -> Option<TextFormat> {
    let name = name.to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    TextFormat::of(extension, piece.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(piece))
}

/// What was known after the piece before, or nothing yet.
fn state_of(asked: &Value) -> Option<PieceState> {
    let Some(state) = asked.get("state").filter(|state| !state.is_null()) else {
        return Some(PieceState::default());
    };
    let number = |member: &str| state.get(member).and_then(Value::as_u64);
    let place = state.get("place").and_then(Value::as_str)?;
    let columns = pairs(state.get("columns")?)?;
    let columns = columns.into_iter().map(|(name, guess)| {
        Some((name, GUESSES.iter().find(|(_, own)| *own == guess).map(|(guess, _)| *guess)?))
    });
    Some(PieceState {
        offset: number("offset")?,
        rows: number("rows")?,
        lines: number("lines")?,
        place: JsonPlace::NAMES.iter().find(|(_, name)| *name == place).map(|(place, _)| *place)?,
        columns: columns.collect::<Option<_>>()?,
    })
}

fn columns_of(asked: &Value) -> Option<Vec<(String, CellKind)>> {
    let Some(columns) = asked.get("columns").filter(|columns| !columns.is_null()) else {
        return Some(Vec::new());
    };
    pairs(columns)?.into_iter().map(|(name, kind)| Some((name, CellKind::parse(&kind)?))).collect()
}

/// A list of pairs of texts, as long as a file may have columns.
fn pairs(list: &Value) -> Option<Vec<(String, String)>> {
    let list = list.as_array().filter(|list| list.len() <= COLUMNS_MAX)?;
    let pair = |pair: &Value| {
        let [name, value] = pair.as_array()?.as_slice() else { return None };
        Some((name.as_str()?.to_owned(), value.as_str()?.to_owned()))
    };
    list.iter().map(pair).collect()
}

fn refused(error: &RowsError) -> ApiRefusal {
    ApiRefusal::bad_request(error.to_string())
}

/// What a piece gives, as JSON.
fn answered(request: PieceRequest, piece: &[u8]) -> Result<String, ApiRefusal> {
    let PieceRequest { reader, maker, mut state, is_last, pass } = request;
    let (mut good, mut bad) = (0_u64, 0_u64);
    let (mut failures, mut documents) = (Vec::new(), Vec::new());
    let shown = match pass {
        PiecePass::Columns | PiecePass::Documents => usize::MAX,
        PiecePass::Check { shown } => shown,
    };
    let rows_max = if pass == PiecePass::Documents { DOCUMENTS_MAX } else { CHECKED_MAX };
    let taken = if pass == PiecePass::Columns {
        reader.read_columns(&mut state, (piece, is_last))
    } else {
        reader.read(&mut state, (piece, is_last), rows_max, |row| {
            match row.text.and_then(|text| maker.document(row.number, text)) {
                Ok(document) => {
                    good += 1;
                    if documents.len() < shown {
                        let text = String::from_utf8_lossy(&document.text);
                        documents.push(json!({"row": row.number, "line": row.line, "text": text}));
                    }
                }
                Err(fault) => {
                    bad += 1;
                    if failures.len() < FAILURES_MAX {
                        let reason: String = fault.bare_reason().chars().take(REASON_LENGTH_MAX).collect();
                        failures.push(json!({"row": row.number, "line": row.line, "reason": reason}));
                    }
                }
            }
        })
    };
    let taken = taken.map_err(|error| refused(&error))?;
    let kinds = state.columns.iter().map(|(name, guess)| json!([name, guess.kind(name).name()]));
    Ok(json!({
        "format": named(&FORMATS, &reader.format),
        "taken": taken,
        "state": shown_state(&state),
        "columns": kinds.collect::<Vec<_>>(),
        "good": good,
        "bad": bad,
        "failures": failures,
        "documents": documents,
    })
    .to_string())
}

fn shown_state(state: &PieceState) -> Value {
    let columns = state.columns.iter().map(|(name, guess)| json!([name, named(&GUESSES, guess)]));
    json!({
        "offset": state.offset,
        "rows": state.rows,
        "lines": state.lines,
        "place": named(&JsonPlace::NAMES, &state.place),
        "columns": columns.collect::<Vec<_>>(),
    })
}

fn named<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(own, _)| own == value).map_or("", |(_, name)| *name)
}
