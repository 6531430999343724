//! The definition of a user of a database: nothing but its name; what it may do is said by its permissions.

use super::{Invalid, Members, id};
use serde_json::{Map, Value};

/// A user as its author defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDefinition {
    /// Its name; a replace may change it.
    pub id: String,
}

impl UserDefinition {
    /// Reads the body of a create, upsert or replace request.
    pub fn from_json(body: &Value) -> Result<UserDefinition, Invalid> {
        let id = id::name_of(&Members::of(body, "the user")?)?;
        Ok(UserDefinition { id })
    }

    /// The body as reads show it, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        Map::from_iter([("id".to_owned(), Value::from(self.id.as_str()))])
    }
}
