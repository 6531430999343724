//! Runs the recorded conformance cases of the query language, if they are there.
//!
//! The cases are not part of the repository: `../shared/corpus/query.jsonl` beside it is taken, or the file that
//! `ASTRARIUM_CORPUS` names; without either nothing is run, and a note says so. One case per line: documents, query,
//! parameters, user-defined functions, and the rows or the status that are expected.

use astrarium_testkit::EngineKind;
use astrarium_testkit::json::Json;
use astrarium_testkit::sql::answer::{rows_match, shown};
use astrarium_testkit::sql::case_file::{Rows, Setting};
use astrarium_testkit::sql::stage::{Stage, read_query};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What the server adds to documents, which the cases leave out.
const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];
/// Relative difference of numbers unless a case says otherwise.
const TOLERANCE: f64 = 1e-9;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/query.jsonl");
    let file = std::env::var_os("ASTRARIUM_CORPUS").map_or(beside, PathBuf::from);
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: there is no corpus of queries; set ASTRARIUM_CORPUS to its file");
        return ExitCode::SUCCESS;
    };
    let cases: Vec<Json> = text.lines().map(|line| Json::parse(line).expect("a case is JSON")).collect();
    let trials = cases.into_iter().map(|case| {
        let name = case.get("id").and_then(Json::as_text).expect("a case has an id").to_owned();
        Trial::test(name, move || run(&case))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn run(case: &Json) -> Result<(), Failed> {
    let mut stage = Stage::new(EngineKind::Memory);
    let documents: Vec<String> = items(case.get("docs")).iter().map(Json::to_string).collect();
    let set = stage.furnish(&definition(case), &documents)?;
    stage.define_functions(&set, &functions(case))?;
    let text = case.get("query").and_then(Json::as_text).ok_or("a case has a query")?;
    let parameters = items(case.get("params")).iter().filter_map(|parameter| {
        Some((parameter.get("name")?.as_text()?.to_owned(), parameter.get("value")?.clone()))
    });
    let setting = Setting { parameters: parameters.collect(), ..Setting::default() };
    let tolerance = match case.get("tol") {
        Some(Json::Word(number)) => number.parse().map_err(|_| "tol is a number")?,
        _ => TOLERANCE,
    };
    let expected = case.get("expect").map(|expected| Rows {
        rows: items(Some(expected)).to_vec(),
        ordered: matches!(case.get("ordered"), Some(Json::Word(word)) if word == "true"),
    });
    for way in stage.ways(&set, &setting)? {
        let answer = read_query(text, &setting.parameters).and_then(|query| stage.ask(&query, &way));
        let holds = match (&answer, &expected) {
            (Ok(rows), Some(expected)) => {
                let rows: Vec<Json> = rows.iter().map(|row| rounded(&without_system(row))).collect();
                rows_match(expected, &rows, tolerance)
            }
            (Err(error), None) => error.kind() == astrarium_database::Kind::Request,
            _ => false,
        };
        if !holds {
            let expected = case.get("expect").map_or("a refusal".to_owned(), Json::to_string);
            return Err(
                format!("{text}\n  expected {expected}\n  {}: got\n{}", way.name, shown(&answer)).into()
            );
        }
    }
    Ok(())
}

fn items(array: Option<&Json>) -> &[Json] {
    match array {
        Some(Json::Array { items, .. }) => items,
        _ => &[],
    }
}

/// The user-defined functions of a case: names and sources.
fn functions(case: &Json) -> Vec<(String, String)> {
    let Some(Json::Object { members, .. }) = case.get("udfs") else { return Vec::new() };
    let own = members.iter().filter_map(|(name, source)| Some((name.clone(), source.as_text()?.to_owned())));
    own.collect()
}

/// The container's definition; its documents are partitioned by id unless the case says otherwise.
fn definition(case: &Json) -> Json {
    let own = match case.get("container") {
        Some(Json::Object { members, .. }) => members.clone(),
        _ => Vec::new(),
    };
    let path = own
        .iter()
        .find(|(name, _)| name == "pk")
        .map_or(Json::Text("/id".to_owned()), |(_, path)| path.clone());
    let mut members: Vec<_> = own.into_iter().filter(|(name, _)| name != "pk").collect();
    members.push(("partitionKey".to_owned(), path));
    Json::Object { members, open: false }
}

fn without_system(value: &Json) -> Json {
    match value {
        Json::Object { members, open } => {
            let own = members.iter().filter(|(name, _)| !SYSTEM_PROPERTIES.contains(&name.as_str()));
            let members = own.map(|(name, value)| (name.clone(), without_system(value))).collect();
            Json::Object { members, open: *open }
        }
        Json::Array { items, open } => {
            Json::Array { items: items.iter().map(without_system).collect(), open: *open }
        }
        other => other.clone(),
    }
}

/// Numbers that are zero but for noise become zero, since no relative difference would allow them.
fn rounded(value: &Json) -> Json {
    match value {
        Json::Word(word) if word.parse::<f64>().is_ok_and(|number| number.abs() < 1e-12) => {
            Json::Word("0".to_owned())
        }
        Json::Object { members, open } => {
            let members = members.iter().map(|(name, value)| (name.clone(), rounded(value))).collect();
            Json::Object { members, open: *open }
        }
        Json::Array { items, open } => {
            Json::Array { items: items.iter().map(rounded).collect(), open: *open }
        }
        other => other.clone(),
    }
}
