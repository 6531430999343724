//! The shared corpus of recorded queries and plans: all parse, and recorded rewritten texts print back unchanged.
//!
//! The corpus lies beside the repository (`../shared/corpus`), or where ASTRARIUM_CORPUS says; without it there is
//! nothing to compare with and the tests say so.

use std::path::PathBuf;

use astrarium_sql_syntax::{check, parse, print};
use serde_json::Value;

/// The lines of one corpus file; none when the corpus is not there.
fn cases(file: &str) -> Vec<Value> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let folder = std::env::var_os("ASTRARIUM_CORPUS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(folder.join(file)) else {
        eprintln!("no corpus file {file}; set ASTRARIUM_CORPUS to its folder");
        return Vec::new();
    };
    text.lines().map(|line| serde_json::from_str(line).expect("a corpus line is JSON")).collect()
}

/// Parses, checks, and returns the codes of all errors.
fn refusals(text: &str) -> Vec<&'static str> {
    match parse(text) {
        Ok(query) => {
            let printed = print(&query);
            assert_eq!(parse(&printed).as_ref(), Ok(&query), "{printed}");
            check(&query, text).into_iter().map(|error| error.code).collect()
        }
        Err(error) => vec![error.code],
    }
}

#[test]
fn recorded_queries_are_accepted_or_refused_as_recorded() {
    for case in cases("query.jsonl").into_iter().chain(cases("query-plan.jsonl")) {
        let text = case["query"].as_str().expect("a case has a query");
        let found = refusals(text);
        if case.get("expect_error").is_none() {
            assert!(found.is_empty(), "{} {text}: {found:?}", case["id"]);
            continue;
        }
        for code in case.get("error_codes").and_then(Value::as_array).into_iter().flatten() {
            let code = code.as_str().expect("a code is text");
            if !planner_code(code) {
                assert_eq!(found, [code], "{} {text}", case["id"]);
            }
        }
    }
}

/// Whether the code needs more than the text: names, functions, aggregates, grouping, sort items.
fn planner_code(code: &str) -> bool {
    matches!(code, "SC2001" | "SC2005" | "SC2050" | "SC2101" | "SC2102" | "2206")
}

#[test]
fn recorded_rewritten_texts_print_back_unchanged() {
    let mut texts = Vec::new();
    let plans = Value::Array(cases("query-plan.jsonl"));
    collect(&plans, &mut texts);
    for text in texts {
        // Clients put an expression where the placeholder stands; the filter has parentheses of its own.
        let text = text.replace("({documentdb-formattableorderbyquery-filter})", "true");
        let mut pieces = text.split("{documentdb-");
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            filled.push_str("true");
            filled.push_str(piece.split_once('}').expect("a placeholder is closed").1);
        }
        let query = parse(&filled).unwrap_or_else(|error| panic!("{}", error.render(&filled)));
        assert_eq!(print(&query), filled);
    }
}

/// The texts of queries that a plan sends back.
fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text)
                        if !text.is_empty()
                            && (name == "rewrittenQuery" || name == "globalStatisticsQuery") =>
                    {
                        texts.push(text);
                    }
                    _ => collect(value, texts),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, texts)),
        _ => {}
    }
}
