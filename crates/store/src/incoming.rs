//! A document as a client sent it: checked against the service's rules and made ready to store.
//!
//! In: bytes from outside and the container's definition. Out: an [`Incoming`] with the id, the partition key in its
//! text, its `ttl`, and the minimal text without system properties; or the [`Refusal`] to answer with.
//! Invariants
//! - One pass over the bytes; time and memory linear in their number.
//! - Property order and the spelling of numbers and strings survive; of duplicate names the last counts.

use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_catalog::definition::id::check_document_id;
use astrarium_keys::body::HEADER_LENGTH;
use astrarium_partition::PartitionKey;
use astrarium_value::json::{self, Kind, Node};
use astrarium_value::system_properties;

/// Largest stored text.
pub const DOCUMENT_BYTES_MAX: usize = 2 << 20;

/// A document that may be stored.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Its id.
    pub id: String,
    /// The partition key that its text gives.
    pub partition: PartitionKey,
    /// Its own `ttl`.
    pub ttl: Option<i32>,
    /// Room for the header of the stored form, then the minimal text.
    pub(crate) bytes: Vec<u8>,
}

/// Why a document may not be stored. The client's fault, always.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not JSON, or not an object, or a property of the wrong type.
    #[error("{0}")]
    Invalid(String),
    /// More than [`DOCUMENT_BYTES_MAX`].
    #[error("Request size is too large")]
    TooLarge,
}

impl Incoming {
    /// Checks a document.
    pub fn parse(definition: &ContainerDefinition, bytes: &[u8]) -> Result<Incoming, Refusal> {
        let text = json::Text::parse(bytes).map_err(|error| invalid(explain(&error)))?;
        let root = text.root();
        if root.kind() != Kind::Object {
            return Err(invalid("The input content is invalid because the document must be a JSON object."));
        }
        let id = checked_id(root)?;
        let ttl = checked_ttl(root)?;
        let partition = definition.partition_key.extract(root);
        let mut stored = Vec::with_capacity(HEADER_LENGTH + bytes.len());
        stored.resize(HEADER_LENGTH, 0);
        text.write_minimal(&system_properties::ALL, &mut stored);
        if stored.len() - HEADER_LENGTH > DOCUMENT_BYTES_MAX {
            return Err(Refusal::TooLarge);
        }
        Ok(Incoming { id, partition, ttl, bytes: stored })
    }

    /// Bytes of the text that will be stored.
    pub fn text_length(&self) -> usize {
        self.bytes.len() - HEADER_LENGTH
    }
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::Invalid(message.into())
}

fn explain(error: &json::JsonError) -> String {
    format!("The request payload is invalid. Ensure to provide a valid request payload: {error}.")
}

fn checked_id(root: Node<'_>) -> Result<String, Refusal> {
    let missing = "The input content is invalid because the required properties - 'id; ' - are missing";
    let id = root.get("id").ok_or_else(|| invalid(missing))?;
    let not_text = "The input content is invalid because the property 'id' must be a string.";
    let id = id.as_str().ok_or_else(|| invalid(not_text))?.into_owned();
    check_document_id(&id).map_err(|error| invalid(error.to_string()))?;
    Ok(id)
}

fn checked_ttl(root: Node<'_>) -> Result<Option<i32>, Refusal> {
    let Some(ttl) = root.get("ttl") else {
        return Ok(None);
    };
    let number = ttl.as_f64().filter(|number| number.fract() == 0.0);
    let seconds =
        number.filter(|number| (-1.0..=f64::from(i32::MAX)).contains(number)).map(|number| number as i32);
    seconds.filter(|seconds| *seconds != 0).map(Some).ok_or_else(|| {
        invalid(
            "The input ttl is invalid. Ensure to provide a nonzero positive integer value that is less than or equal \
             to 2147483647, or -1 for a document that never expires.",
        )
    })
}
