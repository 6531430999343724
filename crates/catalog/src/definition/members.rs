//! Reading the members of a JSON object with their types checked.
//!
//! Every wrong type becomes the same kind of refusal, naming the member and the object it belongs to. `null` counts as
//! absent, because several clients send it for what they leave out.

use super::{Invalid, Named, choices, excerpt};
use serde_json::{Map, Number, Value};

/// Doubles up to this size hold every whole number exactly.
const EXACT_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The members of one JSON object, with the words that name the object in messages.
#[derive(Clone, Copy)]
pub(super) struct Members<'a> {
    map: &'a Map<String, Value>,
    owner: &'static str,
}

impl<'a> Members<'a> {
    /// The members of a value that must be an object.
    pub(super) fn of(value: &'a Value, owner: &'static str) -> Result<Members<'a>, Invalid> {
        match value {
            Value::Object(map) => Ok(Members { map, owner }),
            _ => Err(Invalid::input(format!("{owner} must be a JSON object"))),
        }
    }

    /// A member of any type.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether a member is spelled out as `null`.
    pub(super) fn is_null(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(Value::is_null)
    }

    /// A member that must be a string.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Invalid> {
        self.typed(name, "a string", Value::as_str)
    }

    /// A string member that must be there.
    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, Invalid> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "a string"))
    }

    /// A member that must be a boolean.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Invalid> {
        self.typed(name, "a boolean", Value::as_bool)
    }

    /// A member that must be a whole number.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Invalid> {
        self.typed(name, "a whole number", whole_number)
    }

    /// A member that must be a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Invalid> {
        self.typed(name, "a number", |value| value.as_f64().filter(|number| number.is_finite()))
    }

    /// A member that must be an array; absent is the same as empty.
    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], Invalid> {
        let list = self.typed(name, "an array", Value::as_array)?;
        Ok(list.map_or(&[], Vec::as_slice))
    }

    /// A member that must be an object, which messages call `owner`.
    pub(super) fn object(&self, name: &str, owner: &'static str) -> Result<Option<Members<'a>>, Invalid> {
        self.get(name).map(|value| Members::of(value, owner)).transpose()
    }

    /// A string member out of a set of choices, in any case.
    pub(super) fn choice<T: Named>(&self, name: &str) -> Result<Option<T>, Invalid> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        T::from_name(text).map(Some).ok_or_else(|| self.no_such_choice::<T>(name, text))
    }

    /// The refusal of a text that is none of the choices.
    pub(super) fn no_such_choice<T: Named>(&self, name: &str, text: &str) -> Invalid {
        let owner = self.owner;
        Invalid::input(format!(
            "'{name}' of {owner} is '{}', but must be one of {}",
            excerpt(text),
            choices::<T>()
        ))
    }

    /// The refusal of a member that is missing or has the wrong type.
    pub(super) fn wrong(&self, name: &str, wanted: &str) -> Invalid {
        Invalid::input(format!("'{name}' of {} must be {wanted}", self.owner))
    }

    fn typed<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Invalid> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.wrong(name, wanted)),
        }
    }
}

/// The elements of an array that must all be strings.
pub(super) fn texts<'a>(list: &'a [Value], what: &str) -> Result<Vec<&'a str>, Invalid> {
    let wrong = || Invalid::input(format!("{what} must be strings"));
    list.iter().map(|value| value.as_str().ok_or_else(wrong)).collect()
}

/// A whole number however it is spelled (`10` and `10.0` are one number in JSON).
pub(super) fn whole_number(value: &Value) -> Option<i64> {
    let exact = |number: &f64| number.fract() == 0.0 && number.abs() <= EXACT_DOUBLE_MAX;
    value.as_i64().or_else(|| value.as_f64().filter(exact).map(|number| number as i64))
}

/// A number as JSON, whole numbers without a decimal point.
pub(super) fn number_json(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= EXACT_DOUBLE_MAX {
        Value::from(number as i64)
    } else {
        Number::from_f64(number).map_or(Value::Null, Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_in_any_spelling() {
        for (value, expected) in [
            (json!(10), Some(10)),
            (json!(10.0), Some(10)),
            (json!(-1), Some(-1)),
            (json!(1.5), None),
            (json!(1e300), None),
            (json!(u64::MAX), None),
            (json!("10"), None),
        ] {
            assert_eq!(whole_number(&value), expected, "{value}");
        }
        assert_eq!(number_json(100.0), json!(100));
        assert_eq!(number_json(0.5), json!(0.5));
    }

    #[test]
    fn wrong_types_name_the_member_and_its_owner() {
        let body = json!({"a": 1, "b": null});
        let members = Members::of(&body, "the database").unwrap();
        assert_eq!(members.text("b"), Ok(None));
        assert!(members.is_null("b"));
        let message = "One of the specified inputs is invalid: 'a' of the database must be a string.";
        assert_eq!(members.text("a").unwrap_err().message(), message);
        assert!(Members::of(&json!([]), "the database").is_err());
    }
}
