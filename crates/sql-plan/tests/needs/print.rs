//! Needs as short text: `~` before what is not exact, `..` where something was left out.

use astrarium_index::{Condition, Need, Path, PathStep, Predicate, Type};
use astrarium_sql_plan::needs::Needed;
use astrarium_value::Value;
use std::ops::Bound;

pub(crate) fn print(needed: &Needed) -> String {
    let more = if needed.complete { "" } else { " .." };
    format!("{}{more}", need(&needed.need))
}

fn need(one: &Need) -> String {
    let several =
        |needs: &[Need], word: &str| format!("({})", needs.iter().map(need).collect::<Vec<_>>().join(word));
    match one {
        Need::Anything => "anything".to_owned(),
        Need::Nothing => "nothing".to_owned(),
        Need::One { condition, exact } => {
            format!("{}{}", if *exact { "" } else { "~" }, self::condition(condition))
        }
        Need::All(needs) => several(needs, " and "),
        Need::Any(needs) => several(needs, " or "),
    }
}

fn condition(condition: &Condition) -> String {
    let path = path(&condition.path);
    match &condition.predicate {
        Predicate::OneOf(values) if values.len() == 1 => format!("{path} = {}", json(&values[0])),
        Predicate::OneOf(values) => format!("{path} in {}", json(&Value::Array(values.clone()))),
        Predicate::Not(value) => format!("{path} != {}", json(value)),
        Predicate::Between(low, high) => {
            let low = match low {
                Bound::Included(low) => format!("{} <= ", json(low)),
                Bound::Excluded(low) => format!("{} < ", json(low)),
                Bound::Unbounded => String::new(),
            };
            let high = match high {
                Bound::Included(high) => format!(" <= {}", json(high)),
                Bound::Excluded(high) => format!(" < {}", json(high)),
                Bound::Unbounded => String::new(),
            };
            format!("{low}{path}{high}")
        }
        Predicate::Prefix(prefix) => format!("{path} begins {prefix}"),
        Predicate::Types(types) if types[..] == Type::ALL => format!("{path} defined"),
        Predicate::Types(types) => {
            let names: Vec<_> = types.iter().map(|one| format!("{one:?}").to_lowercase()).collect();
            format!("{path} is {}", names.join("|"))
        }
    }
}

pub(crate) fn path(path: &Path) -> String {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => format!("/{name}"),
        PathStep::Elements => "/[]".to_owned(),
    };
    path.0.iter().map(step).collect()
}

fn json(value: &Value) -> String {
    let mut out = Vec::new();
    value.write_json(&mut out);
    String::from_utf8(out).expect("JSON is text")
}
