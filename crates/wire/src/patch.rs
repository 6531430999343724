//! The body of a patch: `{"condition":"from c where c.a = 1","operations":[...]}`, or the bare list of operations that
//! one client sends.
//!
//! In: the body of a `PATCH`, or what a batch gives as the body of such an operation. Out: the operations and the text of
//! the condition.
//! Not here: the operations themselves and their limits (`value::patch`), the condition's meaning (a query), the limit of
//! the body's length (`gateway`).

use astrarium_value::json::{Kind, Text};
use astrarium_value::patch::{PatchError, PatchOperation, parse_operations};

/// A patch as a client asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchRequest {
    /// The filter that the document must pass, such as `from c where c.a = 1`; never blank.
    pub condition: Option<String>,
    /// What to do, in this order; one to ten.
    pub operations: Vec<PatchOperation>,
}

/// Reads a body.
pub fn parse(body: &[u8]) -> Result<PatchRequest, PatchError> {
    let syntax = |detail: String| PatchError::Syntax(detail);
    let text = Text::parse(body).map_err(|error| syntax(format!("The body is not JSON: {error}.")))?;
    let root = text.root();
    if root.kind() == Kind::Array {
        return Ok(PatchRequest { condition: None, operations: parse_operations(root)? });
    }
    let list = root
        .get("operations")
        .ok_or_else(|| syntax("The body must be an object with 'operations', or an array.".to_owned()))?;
    let condition = match root.get("condition").filter(|node| node.kind() != Kind::Null) {
        None => None,
        Some(node) => {
            let text =
                node.as_str().ok_or_else(|| syntax("'condition' must be a string.".to_owned()))?.into_owned();
            Some(text).filter(|text| !text.trim().is_empty())
        }
    };
    Ok(PatchRequest { condition, operations: parse_operations(list)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str = r#"[{"op":"incr","path":"/a","value":1},{"op":"remove","path":"/b"}]"#;

    #[track_caller]
    fn check(body: &str, expected: Result<Option<&str>, &str>) {
        let parsed = parse(body.as_bytes());
        if let Ok(request) = &parsed {
            assert_eq!(request.operations.len(), 2, "{body}");
        }
        let condition = parsed.map(|request| request.condition).map_err(|error| error.to_string());
        let prefix = "Invalid patch request: check syntax of patch specification. ";
        let expected = expected.map(|text| text.map(str::to_owned)).map_err(|text| format!("{prefix}{text}"));
        assert_eq!(condition, expected, "{body}");
    }

    #[test]
    fn bodies() {
        check(LIST, Ok(None));
        check(&format!(r#"{{"operations":{LIST}}}"#), Ok(None));
        check(&format!(r#"{{"condition":"from c","operations":{LIST}}}"#), Ok(Some("from c")));
        check(&format!(r#"{{"operations":{LIST},"condition":null,"other":1}}"#), Ok(None));
        check(&format!(r#"{{"operations":{LIST},"condition":" "}}"#), Ok(None));
        check(&format!(r#"{{"operations":{LIST},"condition":1}}"#), Err("'condition' must be a string."));
        check("{}", Err("The body must be an object with 'operations', or an array."));
        check("5", Err("The body must be an object with 'operations', or an array."));
        check(r#"{"operations":{}}"#, Err("'operations' must be an array."));
        check(r#"{"operations":[]}"#, Err("There are no operations."));
        check("", Err("The body is not JSON: unexpected end of text at byte 0."));
    }

    proptest! {
        #[test]
        fn reading_is_total(body in prop::collection::vec(any::<u8>(), 0..60), near in "[\\[\\]{}:,\"a-z/]{0,40}") {
            let _ = (parse(&body), parse(near.as_bytes()));
        }
    }
}
