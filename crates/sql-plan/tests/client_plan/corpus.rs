//! The shared corpus of recorded plans, compared as its runner compares them.
//!
//! The corpus lies beside the repository (`../shared/corpus`), or where ASTRARIUM_CORPUS says; without it there is
//! nothing to compare with and the test says so. Texts are compared without white space, and a member that is absent
//! equals null, nothing and a zero offset.

use super::{FEATURES, ask, keyed};
use serde_json::{Map, Value};
use std::path::PathBuf;

fn cases() -> Vec<Value> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let folder = std::env::var_os("ASTRARIUM_CORPUS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(folder.join("query-plan.jsonl")) else {
        eprintln!("no corpus file query-plan.jsonl; set ASTRARIUM_CORPUS to its folder");
        return Vec::new();
    };
    text.lines().map(|line| serde_json::from_str(line).expect("a corpus line is JSON")).collect()
}

#[test]
fn recorded_plans_are_made_again() {
    let cases = cases();
    let failed: Vec<String> = cases.iter().filter_map(|case| difference(case).err()).collect();
    assert!(failed.is_empty(), "{} of {} differ\n{}", failed.len(), cases.len(), failed.join("\n"));
}

fn difference(case: &Value) -> Result<(), String> {
    let query = case["query"].as_str().expect("a case has a query");
    let features = format!("{FEATURES},{}", case["features_extra"].as_str().unwrap_or_default());
    let container = keyed(case["pk"].as_str().unwrap_or("/pk"));
    let answer = ask(query, &case["params"], &container, Some(&features));
    let differs = |what: String| Err(format!("{} {query}\n    {what}", case["id"]));
    let plan = match (answer, case.get("expect_error")) {
        (Ok(_), Some(_)) => return differs("is accepted".to_owned()),
        (Err(refused), None) => return differs(format!("is refused: {refused:?}")),
        (Err((code, _)), Some(_)) => {
            let codes = case["error_codes"].as_array().map_or(&[][..], Vec::as_slice);
            let same = codes.iter().all(|wanted| wanted == code);
            return if same { Ok(()) } else { differs(format!("is refused with {code}")) };
        }
        (Ok(plan), None) => plan,
    };
    for part in ["queryInfo", "hybridSearchQueryInfo"] {
        for (name, wanted) in case[part].as_object().into_iter().flatten() {
            let (wanted, found) = (flat(name, wanted), flat(name, &plan[part][name]));
            if wanted != found {
                return differs(format!("{part}.{name}\n    found  {found:?}\n    wanted {wanted:?}"));
            }
        }
    }
    let ranges = plan["queryRanges"].as_array().expect("ranges are a list");
    let same = match &case["ranges"] {
        Value::Number(count) => count.as_u64() == Some(ranges.len() as u64) && is_points(ranges),
        Value::String(all) if all == "all" => ranges.len() == 1 && ranges[0]["max"] == "FF",
        _ => true,
    };
    if same { Ok(()) } else { differs(format!("ranges {ranges:?}, wanted {}", case["ranges"])) }
}

fn is_points(ranges: &[Value]) -> bool {
    ranges.iter().all(|range| range["min"] == range["max"])
}

/// The form in which members are compared; none for what equals an absent one.
fn flat(name: &str, value: &Value) -> Option<Value> {
    let flattened = match value {
        Value::String(text) => Value::String(text.split_whitespace().collect()),
        Value::Array(elements) => elements.iter().filter_map(|element| flat("", element)).collect(),
        Value::Object(members) if name == "groupByAliasToAggregateType" => Value::Object(members.clone()),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Some((name.clone(), flat(name, value)?));
            Value::Object(members.iter().filter_map(member).collect::<Map<_, _>>())
        }
        other => other.clone(),
    };
    let absent = match &flattened {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_u64() == Some(0) && (name == "offset" || name == "skip"),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
    };
    (!absent).then_some(flattened)
}
