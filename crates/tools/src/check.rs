//! Rows become documents: ids and keys by template, ids where there are none, and what is wrong is said.

use crate::documents::push_member;
use crate::error::ToolError;
use crate::formats::BadRow;
use crate::template::TextTemplate;
use astrarium_client::{ContainerClient, raw_json};
use astrarium_partition::{EffectiveKey, PartitionKeyDefinition};
use astrarium_value::json::{Kind, Node, Text, write_string};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// A document on its way to a container.
#[derive(Debug, Clone)]
pub(crate) struct PreparedDocument {
    /// The number of its row.
    pub(crate) number: u64,
    /// Its text.
    pub(crate) body: Bytes,
    /// Its partition key as a JSON array.
    pub(crate) key: String,
    /// Where that is.
    pub(crate) effective: EffectiveKey,
}

/// How rows become documents.
#[derive(Debug, Clone)]
pub(crate) struct Preparation {
    pub(crate) id: Option<TextTemplate>,
    /// Properties that are set by template, by name.
    pub(crate) keys: Vec<(String, TextTemplate)>,
    /// What ids are made from where rows have none: the same for every run of one import.
    pub(crate) import_id: String,
    /// Whose partition keys.
    pub(crate) container: ContainerClient,
}

impl Preparation {
    /// Templates for the levels of a partition key.
    pub(crate) fn key_templates(
        definition: &PartitionKeyDefinition,
        templates: &[String],
    ) -> Result<Vec<(String, TextTemplate)>, ToolError> {
        if templates.is_empty() {
            return Ok(Vec::new());
        }
        if templates.len() != definition.paths.len() {
            let (levels, given) = (definition.paths.len(), templates.len());
            return Err(ToolError::input(format!(
                "the container's partition key has {levels} paths, and --partition-key was given {given} times; give one template for each"
            )));
        }
        let pairs = definition.paths.iter().zip(templates);
        let made = pairs.map(|(path, template)| match path.segments() {
            [name] => Ok((name.to_string(), TextTemplate::parse(template)?)),
            _ => Err(ToolError::input(format!(
                "--partition-key can set a property at the top only, and the container's key is {}",
                path.as_str()
            ))),
        });
        made.collect()
    }

    /// The document of a row, or why it is none.
    pub(crate) fn document(&self, number: u64, text: Vec<u8>) -> Result<PreparedDocument, BadRow> {
        let parsed =
            Text::parse(&text).map_err(|error| BadRow::new(format!("it is not JSON: {error}"), &text))?;
        let row = parsed.root();
        if row.kind() != Kind::Object {
            return Err(BadRow::new("it is not an object", &text));
        }
        let changes = self.changes(row, number).map_err(|reason| BadRow::new(reason, &text))?;
        let (body, (key, header)) = if changes.is_empty() {
            let keyed = self.container.key_in(row);
            (Bytes::from(text), keyed)
        } else {
            let body = Bytes::from(changed(&text, &changes));
            let keyed = self.container.key_of(&body);
            let keyed = keyed.map_err(|error| BadRow::new(error.to_string(), &body))?;
            (body, keyed)
        };
        key.check_size().map_err(|error| BadRow::new(error.to_string(), &body))?;
        let effective = self.container.key_definition().effective(&key);
        Ok(PreparedDocument { number, body, key: header, effective })
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
