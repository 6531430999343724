//! Functions of objects.

use std::sync::Arc;

use astrarium_value::{Object, Value};

use crate::ScalarFunction;
use crate::arguments::{object, text};

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[ScalarFunction {
    name: "OBJECTTOARRAY",
    signature: "(object: object, nameKey?: string, valueKey?: string) -> array",
    arguments: 1..=3,
    summary: "An object for each member, with its name and its value under `k` and `v` or under given names.",
    example: Some((r#"{"a":1,"b":2},"name","value""#, r#"[{"name":"a","value":1},{"name":"b","value":2}]"#)),
    evaluate: |_, arguments| object_to_array(arguments).unwrap_or_default(),
    ..ScalarFunction::PLAIN
}];

fn object_to_array(arguments: &[Value]) -> Option<Value> {
    let object = object(arguments, 0)?;
    let given = |place: usize, default: &'static str| {
        if arguments.len() > place { text(arguments, place) } else { Some(default) }
    };
    let key_name: Arc<str> = given(1, "k")?.into();
    let value_name: Arc<str> = given(2, "v")?.into();
    let pair = |(name, value): (&str, &Value)| {
        let mut pair = Object::new();
        pair.insert(Arc::clone(&key_name), name.into());
        pair.insert(Arc::clone(&value_name), value.clone());
        Value::Object(pair)
    };
    Some(Value::Array(object.iter().map(pair).collect()))
}

#[cfg(test)]
mod tests {
    use crate::testing::{check_all, check_wrong_types};

    #[test]
    fn pairs() {
        check_all(&[
            ("OBJECTTOARRAY", "[{}]", "[]"),
            ("OBJECTTOARRAY", r#"[{"a":"1","b":[2]}]"#, r#"[{"k":"a","v":"1"},{"k":"b","v":[2]}]"#),
            ("OBJECTTOARRAY", r#"[{"a":"1"}, "name"]"#, r#"[{"name":"a","v":"1"}]"#),
            ("OBJECTTOARRAY", r#"[{"a":"1"}, "key", "value"]"#, r#"[{"key":"a","value":"1"}]"#),
            ("OBJECTTOARRAY", r#"[{"a":null}, "x", "x"]"#, r#"[{"x":null}]"#),
        ]);
        let wrong = ["undefined", "null", "1", "\"a\"", "[]"];
        check_wrong_types("OBJECTTOARRAY", "[?]", &wrong);
        check_wrong_types("OBJECTTOARRAY", "[{}, ?]", &["undefined", "null", "1", "[]"]);
        check_wrong_types("OBJECTTOARRAY", "[{}, \"k\", ?]", &["undefined", "null", "1", "[]"]);
    }
}
