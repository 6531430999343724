//! The definition of a database: nothing but its name.

use super::{Invalid, Members, id};
use serde_json::{Map, Value};

/// A database as its author defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseDefinition {
    /// Its name.
    pub id: String,
}

impl DatabaseDefinition {
    /// Reads the body of a create request.
    pub fn from_json(body: &Value) -> Result<DatabaseDefinition, Invalid> {
        let id = id::name_of(&Members::of(body, "the database")?)?;
        Ok(DatabaseDefinition { id })
    }

    /// The body as reads show it, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        Map::from_iter([("id".to_owned(), Value::from(self.id.as_str()))])
    }
}
