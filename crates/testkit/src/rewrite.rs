//! Today's answer as the lines of an expectation, for `UPDATE_CASES=1`.
//!
//! In: the old expectation and the response that did not meet it. Out: the lines that replace those after `----`.
//! Invariants
//! - What still matches keeps its pattern, so holes and saved names survive.
//! - What differs from run to run (rids, etags, times, tokens, activity ids) becomes `<any>`.
//!
//! Whoever updates reviews the difference: a new answer is not a right one.

use crate::case_file::{Expected, ExpectedBody};
use crate::http::Response;
use crate::json::Json;

/// Members that no two runs need to agree on.
const VOLATILE: [&str; 6] = ["_rid", "_self", "_etag", "_ts", "_token", "lsn"];

/// The new lines, from `----` on.
pub fn expected_lines(old: &Expected, response: &Response) -> Vec<String> {
    let mut lines = vec![format!("---- {}", response.status)];
    for (name, pattern) in &old.headers {
        let value = match response.header(name) {
            None => "<absent>",
            Some(_) if pattern.contains('<') && pattern != "<absent>" => pattern,
            Some(value) => value,
        };
        lines.push(format!("{name}: {value}"));
    }
    let text = response.text();
    let body = match (&old.body, Json::parse(&text)) {
        (ExpectedBody::Anything, _) if !text.is_empty() => "...".to_owned(),
        (ExpectedBody::Json(pattern), Ok(actual)) => merged(pattern, &actual).to_string(),
        (ExpectedBody::Text(_), _) | (_, Err(_)) if !text.is_empty() => format!("text {text}"),
        (_, Ok(actual)) => masked(None, &actual).to_string(),
        (_, Err(_)) => return lines,
    };
    lines.push(body);
    lines
}

/// The pattern where it has holes, the actual value elsewhere.
fn merged(pattern: &Json, actual: &Json) -> Json {
    match (pattern, actual) {
        (Json::Hole(_), _) => pattern.clone(),
        (Json::Text(text), Json::Text(_)) if text.contains('<') => pattern.clone(),
        (Json::Object { open, .. }, Json::Object { members, .. }) => {
            let wanted = members.iter().filter(|(name, _)| !open || pattern.get(name).is_some());
            let members = wanted.map(|(name, value)| {
                let value = match pattern.get(name) {
                    Some(pattern) => merged(pattern, value),
                    None => masked(Some(name), value),
                };
                (name.clone(), value)
            });
            Json::Object { members: members.collect(), open: *open }
        }
        (Json::Array { items: patterns, open }, Json::Array { items, .. }) => {
            let merge = |(index, item): (usize, &Json)| match patterns.get(index) {
                Some(pattern) => merged(pattern, item),
                None => masked(None, item),
            };
            Json::Array { items: items.iter().enumerate().map(merge).collect(), open: *open }
        }
        _ => masked(None, actual),
    }
}

/// A value with what changes from run to run left open.
fn masked(name: Option<&str>, value: &Json) -> Json {
    match value {
        _ if name.is_some_and(|name| VOLATILE.contains(&name)) => match value {
            Json::Text(_) => Json::Text("<any>".to_owned()),
            _ => Json::Hole("any".to_owned()),
        },
        Json::Text(text) => match text.split_once("ActivityId: ") {
            Some((before, _)) => Json::Text(format!("{before}ActivityId: <any>")),
            None => value.clone(),
        },
        Json::Array { items, open } => {
            Json::Array { items: items.iter().map(|item| masked(None, item)).collect(), open: *open }
        }
        Json::Object { members, open } => {
            let members = members.iter().map(|(name, value)| (name.clone(), masked(Some(name), value)));
            Json::Object { members: members.collect(), open: *open }
        }
        other => other.clone(),
    }
}
