//! The definition of a client encryption key: a data key that only clients can unwrap.
//!
//! The server keeps it and hands it out; it never holds what would open it. Checked is only what every client relies
//! on: the algorithm, that the wrapped key is base64, and the names inside the metadata.

use super::members::Members;
use super::{Invalid, excerpt, id};
use serde_json::{Map, Value};

/// The only algorithm of client-side encryption.
pub const ENCRYPTION_ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";

/// The members of the metadata: name on the wire, and whether it must be there.
const METADATA: [(&str, bool); 4] = [("type", true), ("name", true), ("value", true), ("algorithm", false)];

/// A client encryption key as its author defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEncryptionKeyDefinition {
    /// Its name.
    pub id: String,
    /// The data key, wrapped by a key the server does not know, in base64.
    pub wrapped_key: String,
    /// Who can unwrap it.
    pub wrap_metadata: KeyWrapMetadata,
}

/// Which key outside the database wraps the data key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyWrapMetadata {
    /// The kind of key store.
    pub kind: String,
    /// The name its users gave it.
    pub name: String,
    /// Where the wrapping key is, in the words of the key store.
    pub value: String,
    /// How it wraps; older clients do not say.
    pub algorithm: Option<String>,
}

impl ClientEncryptionKeyDefinition {
    /// Reads the body of a create or replace request.
    pub fn from_json(body: &Value) -> Result<ClientEncryptionKeyDefinition, Invalid> {
        let body = Members::of(body, "the client encryption key")?;
        let algorithm = body.required_text("encryptionAlgorithm")?;
        if algorithm != ENCRYPTION_ALGORITHM {
            let given = excerpt(algorithm);
            return Err(Invalid::input(format!(
                "encryptionAlgorithm is '{given}', but must be '{ENCRYPTION_ALGORITHM}'"
            )));
        }
        let wrapped_key = body.required_text("wrappedDataEncryptionKey")?;
        if !is_base64(wrapped_key) {
            return Err(body.wrong("wrappedDataEncryptionKey", "the wrapped key in base64"));
        }
        Ok(ClientEncryptionKeyDefinition {
            id: id::name_of(&body)?,
            wrapped_key: wrapped_key.to_owned(),
            wrap_metadata: metadata(&body)?,
        })
    }

    /// The body as reads show it, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        let metadata = &self.wrap_metadata;
        let texts =
            [Some(&metadata.kind), Some(&metadata.name), Some(&metadata.value), metadata.algorithm.as_ref()];
        let named = METADATA.iter().zip(texts);
        let members =
            named.filter_map(|((name, _), text)| text.map(|text| ((*name).to_owned(), text.as_str().into())));
        let mut body = Map::new();
        body.insert("id".to_owned(), self.id.as_str().into());
        body.insert("encryptionAlgorithm".to_owned(), ENCRYPTION_ALGORITHM.into());
        body.insert("wrappedDataEncryptionKey".to_owned(), self.wrapped_key.as_str().into());
        body.insert("keyWrapMetadata".to_owned(), Value::Object(members.collect()));
        body
    }
}

fn metadata(body: &Members<'_>) -> Result<KeyWrapMetadata, Invalid> {
    let metadata = body
        .object("keyWrapMetadata", "keyWrapMetadata")?
        .ok_or_else(|| body.wrong("keyWrapMetadata", "an object with type, name and value"))?;
    for (name, required) in METADATA {
        if required {
            metadata.required_text(name)?;
        }
    }
    let text = |name: &str| metadata.text(name).map(|text| text.map(str::to_owned));
    Ok(KeyWrapMetadata {
        kind: text("type")?.unwrap_or_default(),
        name: text("name")?.unwrap_or_default(),
        value: text("value")?.unwrap_or_default(),
        algorithm: text("algorithm")?,
    })
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body() -> Value {
        json!({
            "id": "key1", "encryptionAlgorithm": ENCRYPTION_ALGORITHM, "wrappedDataEncryptionKey": "AQIDBA==",
            "keyWrapMetadata": {"type": "AZURE_KEY_VAULT", "name": "n", "value": "https://k", "algorithm": "RSA"}
        })
    }

    #[test]
    fn keys_come_back_as_given() {
        let key = ClientEncryptionKeyDefinition::from_json(&body()).unwrap();
        assert_eq!(Value::Object(key.to_json()), body());
        let mut older = body();
        older["keyWrapMetadata"].as_object_mut().unwrap().remove("algorithm");
        let key = ClientEncryptionKeyDefinition::from_json(&older).unwrap();
        assert_eq!(Value::Object(key.to_json()), older);
    }

    #[test]
    fn wrong_members_are_refused() {
        for (pointer, value) in [
            ("/id", json!("a/b")),
            ("/encryptionAlgorithm", json!("ROT13")),
            ("/wrappedDataEncryptionKey", json!("not base64")),
            ("/wrappedDataEncryptionKey", json!("====")),
            ("/wrappedDataEncryptionKey", json!([1, 2])),
            ("/keyWrapMetadata", json!("x")),
            ("/keyWrapMetadata/name", json!(null)),
            ("/keyWrapMetadata/algorithm", json!(1)),
        ] {
            let mut body = body();
            *body.pointer_mut(pointer).unwrap() = value;
            assert!(ClientEncryptionKeyDefinition::from_json(&body).is_err(), "{body}");
        }
    }
}
