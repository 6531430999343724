//! The definitions of stored procedures, triggers and user-defined functions: a name and the text of a function.
//!
//! The text is not looked at here: whether it compiles is for who stores and runs it to find out (`database`, `script`).

use super::members::Members;
use super::{AsGiven, Invalid, Named, id};
use serde_json::{Map, Value};

/// Longest text of a script, in bytes of UTF-8.
pub const SCRIPT_BODY_BYTES_MAX: usize = 2 << 20;

/// A function that clients call by name, one transaction per call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProcedure {
    /// Its name.
    pub id: String,
    /// The text of the function.
    pub body: String,
}

/// A function that runs with writes that ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub id: String,
    /// The text of the function.
    pub body: String,
    /// Whether it runs before or after the write.
    pub trigger_type: AsGiven<TriggerType>,
    /// The writes that may ask for it.
    pub operation: AsGiven<TriggerOperation>,
}

/// A function that queries call as `udf.name(...)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDefinedFunction {
    /// Its name.
    pub id: String,
    /// The text of the function.
    pub body: String,
}

/// When a trigger runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerType {
    /// Before the write; it may change the document.
    Pre,
    /// After the write, in the same transaction.
    Post,
}

impl Named for TriggerType {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Pre, "Pre"), (Self::Post, "Post")];
}

/// The kinds of write a trigger is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerOperation {
    /// Every write.
    All,
    /// Writes that make a document.
    Create,
    /// Writes that change a document, in the older word of the protocol.
    Update,
    /// Writes that remove a document.
    Delete,
    /// Writes that change a document.
    Replace,
    /// Writes that make or change a document.
    Upsert,
}

impl Named for TriggerOperation {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::All, "All"),
        (Self::Create, "Create"),
        (Self::Update, "Update"),
        (Self::Delete, "Delete"),
        (Self::Replace, "Replace"),
        (Self::Upsert, "Upsert"),
    ];
}

impl StoredProcedure {
    /// Reads the body of a create or replace request.
    pub fn from_json(body: &Value) -> Result<StoredProcedure, Invalid> {
        let body = Members::of(body, "the stored procedure")?;
        Ok(StoredProcedure { id: id::script_name_of(&body)?, body: function_text(&body)? })
    }

    /// The body as reads show it, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        function_json(&self.id, &self.body)
    }
}

impl UserDefinedFunction {
    /// Reads the body of a create or replace request.
    pub fn from_json(body: &Value) -> Result<UserDefinedFunction, Invalid> {
        let body = Members::of(body, "the user-defined function")?;
        Ok(UserDefinedFunction { id: id::script_name_of(&body)?, body: function_text(&body)? })
    }

    /// The body as reads show it, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        function_json(&self.id, &self.body)
    }
}

impl Trigger {
    /// Reads the body of a create or replace request.
    pub fn from_json(body: &Value) -> Result<Trigger, Invalid> {
        let body = Members::of(body, "the trigger")?;
        Ok(Trigger {
            id: id::script_name_of(&body)?,
            body: function_text(&body)?,
            trigger_type: choice(&body, "triggerType")?,
            operation: choice(&body, "triggerOperation")?,
        })
    }

    /// The body as reads show it, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut body = function_json(&self.id, &self.body);
        body.insert("triggerType".to_owned(), self.trigger_type.as_str().into());
        body.insert("triggerOperation".to_owned(), self.operation.as_str().into());
        body
    }
}

fn choice<T: Named>(body: &Members<'_>, name: &str) -> Result<AsGiven<T>, Invalid> {
    let text = body.required_text(name)?;
    AsGiven::parse(text).ok_or_else(|| body.no_such_choice::<T>(name, text))
}

fn function_text(body: &Members<'_>) -> Result<String, Invalid> {
    let text = body.required_text("body")?;
    if text.trim().is_empty() {
        return Err(body.wrong("body", "the text of a JavaScript function"));
    }
    if text.len() > SCRIPT_BODY_BYTES_MAX {
        let message = format!("Request size is too large: a script may have {SCRIPT_BODY_BYTES_MAX} bytes.");
        return Err(Invalid::TooLarge { message });
    }
    Ok(text.to_owned())
}

fn function_json(id: &str, body: &str) -> Map<String, Value> {
    Map::from_iter([("id".to_owned(), Value::from(id)), ("body".to_owned(), Value::from(body))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(body: &Value, expected: Result<(TriggerType, TriggerOperation), &str>) {
        match (Trigger::from_json(body), expected) {
            (Ok(actual), Ok(expected)) => {
                assert_eq!((actual.trigger_type.value, actual.operation.value), expected);
                // Clients compare what they read with what they sent.
                assert_eq!(&Value::Object(actual.to_json()), body);
            }
            (Err(actual), Err(fragment)) => assert!(actual.message().contains(fragment), "{body}: {actual}"),
            (actual, expected) => panic!("{body}: {actual:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn triggers() {
        let trigger = |kind: Value, operation: Value| {
            let body = "function() {}";
            json!({"id": "t", "body": body, "triggerType": kind, "triggerOperation": operation})
        };
        check(&trigger(json!("pre"), json!("all")), Ok((TriggerType::Pre, TriggerOperation::All)));
        check(&trigger(json!("Post"), json!("Delete")), Ok((TriggerType::Post, TriggerOperation::Delete)));
        let invalid = Err("One of the specified inputs is invalid");
        check(&trigger(json!("during"), json!("all")), invalid);
        check(&trigger(json!("pre"), json!("read")), invalid);
        check(&trigger(json!("pre"), json!(null)), invalid);
        check(&trigger(json!(0), json!("all")), invalid);
    }

    #[test]
    fn functions() {
        let body = json!({"id": "f", "body": "function() { return 1; }"});
        let procedure = StoredProcedure::from_json(&body).unwrap();
        assert_eq!(Value::Object(procedure.to_json()), body);
        let function = UserDefinedFunction::from_json(&body).unwrap();
        assert_eq!(Value::Object(function.to_json()), body);
        for bad in [
            json!({"id": "f"}),
            json!({"id": "f", "body": " "}),
            json!({"id": "f", "body": {}}),
            json!({"body": "x"}),
        ] {
            assert!(StoredProcedure::from_json(&bad).is_err(), "{bad}");
            assert!(UserDefinedFunction::from_json(&bad).is_err(), "{bad}");
        }
        let long = json!({"id": "f", "body": "x".repeat(SCRIPT_BODY_BYTES_MAX + 1)});
        assert!(matches!(StoredProcedure::from_json(&long), Err(Invalid::TooLarge { .. })));
    }
}
