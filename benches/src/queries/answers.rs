//! Whether two answers are the same: rows in a form in which equal means equal.
//!
//! System properties, the order of properties, the spelling of numbers and, where the query names no order, the order of
//! rows do not matter; everything else does.

use anyhow::Context as _;
use serde_json::Value;

/// Characters to show before and after the place where answers differ.
const EXCERPT_LENGTH: usize = 60;

/// The rows in the body of our server's answer: those of a feed, or the one document that was read.
pub(crate) fn rows_of(body: &[u8]) -> anyhow::Result<Vec<Value>> {
    let mut body: Value = serde_json::from_slice(body).context("read an answer")?;
    let rows = body.get_mut("Documents").and_then(Value::as_array_mut).map(std::mem::take);
    let mut rows = rows.unwrap_or_else(|| vec![body]);
    for row in &mut rows {
        if let Value::Object(properties) = row {
            properties.retain(|name, _| !name.starts_with('_'));
        }
    }
    Ok(rows)
}

/// Where two answers differ, if they do.
pub(crate) fn difference(ours: &[Value], theirs: &[Value], ordered: bool) -> Option<String> {
    let normal = |rows: &[Value]| {
        let mut rows: Vec<String> = rows.iter().map(normal_text).collect();
        if !ordered {
            rows.sort();
        }
        rows
    };
    let (ours, theirs) = (normal(ours), normal(theirs));
    if ours.len() != theirs.len() {
        return Some(format!("{} rows, PostgreSQL has {}", ours.len(), theirs.len()));
    }
    let (ours, theirs) = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs)?;
    let same = ours.chars().zip(theirs.chars()).take_while(|(ours, theirs)| ours == theirs).count();
    let excerpt = |text: &str| {
        text.chars().skip(same.saturating_sub(EXCERPT_LENGTH)).take(2 * EXCERPT_LENGTH).collect::<String>()
    };
    Some(format!("{}, PostgreSQL has {}", excerpt(ours), excerpt(theirs)))
}

fn normal_text(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN).to_string(),
        Value::Array(values) => format!("[{}]", values.iter().map(normal_text).collect::<Vec<_>>().join(",")),
        Value::Object(properties) => {
            let named = |(name, value): (&String, &Value)| format!("{name:?}:{}", normal_text(value));
            let mut properties: Vec<String> = properties.iter().map(named).collect();
            properties.sort();
            format!("{{{}}}", properties.join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(ours: Value, theirs: Value, ordered: bool, same: bool) {
        let rows = |value: Value| value.as_array().cloned().expect("rows are an array");
        let found = difference(&rows(ours), &rows(theirs), ordered);
        assert_eq!(found.is_none(), same, "{found:?}");
    }

    #[test]
    fn only_what_matters_is_compared() {
        check(json!([{"a": 1, "b": [2.0]}]), json!([{"b": [2], "a": 1.0}]), true, true);
        check(json!([1, 2]), json!([2, 1]), false, true);
        check(json!([1, 2]), json!([2, 1]), true, false);
        check(json!([1]), json!(["1"]), true, false);
        check(json!([1, 1]), json!([1]), false, false);
        check(json!([null]), json!([0]), false, false);
    }
}
