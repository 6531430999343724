//! Rows become documents: ids and keys by template, ids where there are none, and what is wrong is said.

use crate::template::TextTemplate;
use crate::{BadRow, RowsError};
use astrarium_partition::{PartitionKey, PartitionKeyDefinition};
use astrarium_value::json::{Kind, Node, Text, write_string};
use astrarium_value::raw_json;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// How rows become documents.
#[derive(Debug, Clone)]
pub struct DocumentMaker {
    /// What ids are made of, if not what the rows say.
    pub id: Option<TextTemplate>,
    /// Properties that are set by template, by name.
    pub keys: Vec<(String, TextTemplate)>,
    /// What ids are made from where rows have none: the same for every run of one import.
    pub import_id: String,
    /// The container's partition key.
    pub key_definition: PartitionKeyDefinition,
}

/// The document of a row, with its partition key.
#[derive(Debug, Clone)]
pub struct MadeDocument {
    /// Its text.
    pub text: Vec<u8>,
    /// Where it belongs.
    pub key: PartitionKey,
}

impl DocumentMaker {
    /// Templates for the levels of a partition key.
    pub fn key_templates(
        definition: &PartitionKeyDefinition,
        templates: &[String],
    ) -> Result<Vec<(String, TextTemplate)>, RowsError> {
        if templates.is_empty() {
            return Ok(Vec::new());
        }
        if templates.len() != definition.paths.len() {
            let (levels, given) = (definition.paths.len(), templates.len());
            return Err(RowsError::input(format!(
                "the container's partition key has {levels} paths, and --partition-key was given {given} times; give one template for each"
            )));
        }
        let pairs = definition.paths.iter().zip(templates);
        let made = pairs.map(|(path, template)| match path.segments() {
            [name] => Ok((name.to_string(), TextTemplate::parse(template)?)),
            _ => Err(RowsError::input(format!(
                "--partition-key can set a property at the top only, and the container's key is {}",
                path.as_str()
            ))),
        });
        made.collect()
    }

    /// The document of a row, or why it is none.
    pub fn document(&self, number: u64, text: Vec<u8>) -> Result<MadeDocument, BadRow> {
        let parsed =
            Text::parse(&text).map_err(|error| BadRow::new(format!("it is not JSON: {error}"), &text))?;
        let row = parsed.root();
        if row.kind() != Kind::Object {
            return Err(BadRow::new("it is not an object", &text));
        }
        let changes = self.changes(row, number).map_err(|reason| BadRow::new(reason, &text))?;
        let (text, key) = if changes.is_empty() {
            let key = self.key_definition.extract(row);
            (text, key)
        } else {
            let text = changed(&text, &changes);
            let parsed = Text::parse(&text);
            let key = parsed.map(|parsed| self.key_definition.extract(parsed.root()));
            let key = key.map_err(|error| BadRow::new(format!("it is not JSON: {error}"), &text))?;
            (text, key)
        };
        key.check_size().map_err(|error| BadRow::new(error.to_string(), &text))?;
        Ok(MadeDocument { text, key })
    }

    /// Properties to set.
    fn changes(&self, row: Node<'_>, number: u64) -> Result<Vec<(String, String)>, String> {
        let mut changes = Vec::new();
        match (&self.id, row.get("id")) {
            (Some(template), _) => changes.push(("id".to_owned(), template.fill(row, number)?)),
            (None, None) => changes.push(("id".to_owned(), self.made_id(number))),
            (None, Some(id)) if id.kind() == Kind::String => {}
            (None, Some(_)) => return Err("its id is not a string; --id '{id}' makes one of it".to_owned()),
        }
        for (name, template) in &self.keys {
            changes.push((name.clone(), template.fill(row, number)?));
        }
        Ok(changes)
    }

    /// An id that the same row gets again.
    fn made_id(&self, number: u64) -> String {
        let digest = Sha256::digest(format!("{}/{number}", self.import_id).as_bytes());
        let mut id = String::with_capacity(36);
        for (index, byte) in digest.iter().take(16).enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                id.push('-');
            }
            let _ = write!(id, "{byte:02x}");
        }
        id
    }
}

/// The object with some properties set to strings; others stay as they stand.
fn changed(object: &[u8], changes: &[(String, String)]) -> Vec<u8> {
    let quoted = |text: &str| {
        let mut out = Vec::new();
        write_string(text, &mut out);
        out
    };
    let mut out = Vec::with_capacity(object.len() + 64);
    out.push(b'{');
    for (name, value) in changes {
        push_member(&mut out, &quoted(name), &quoted(value));
    }
    for (name, value) in raw_json::members(object) {
        // Names are compared as they mean, since they may have escapes.
        let plain: Option<String> = serde_json::from_slice(name).ok();
        if !changes.iter().any(|(set, _)| Some(set) == plain.as_ref()) {
            push_member(&mut out, name, value);
        }
    }
    out.push(b'}');
    out
}

/// Adds a member to an object that is being written.
pub fn push_member(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if out.len() > 1 {
        out.push(b',');
    }
    out.extend_from_slice(name);
    out.push(b':');
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_set() {
        let changes = [("id".to_owned(), "a\"b".to_owned())];
        let check = |object: &str, expected: &str| {
            assert_eq!(String::from_utf8(changed(object.as_bytes(), &changes)).unwrap(), expected);
        };
        check("{}", "{\"id\":\"a\\\"b\"}");
        check("{\"id\":7,\"n\":1.10}", "{\"id\":\"a\\\"b\",\"n\":1.10}");
        check("{\"n\":{\"id\":7}, \"\\u0069d\":7}", "{\"id\":\"a\\\"b\",\"n\":{\"id\":7}}");
    }
}
