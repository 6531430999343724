//! Functions of a whole document.

use astrarium_value::Value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ScalarFunction;
use crate::arguments::{as_text, object};

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[ScalarFunction {
    name: "DOCUMENTID",
    signature: "(document: object) -> number",
    arguments: 1..=1,
    summary: "The number of the document inside its container, which its system properties carry.",
    example: Some((r#"{"_rid":"AQAAAIAAAAEHAAAAAAAAAA=="}"#, "7")),
    evaluate: |_, arguments| document_id(arguments).unwrap_or_default(),
    ..ScalarFunction::PLAIN
}];

/// The last eight of a document's sixteen resource id bytes, lowest byte first; the text form is base64 with `-` for `/`.
fn document_id(arguments: &[Value]) -> Option<Value> {
    let rid = as_text(object(arguments, 0)?.get("_rid")?)?;
    let mut bytes = [0; 16];
    let length = STANDARD
        .decode_slice(rid.replace('-', "/"), &mut bytes)
        .ok()
        .filter(|length| *length == bytes.len())?;
    let number: [u8; 8] = bytes[length - 8..].try_into().ok()?;
    Some(Value::Number(u64::from_le_bytes(number) as f64))
}

#[cfg(test)]
mod tests {
    use crate::testing::{check_all, check_wrong_types};

    #[test]
    fn numbers_of_documents() {
        check_all(&[
            ("DOCUMENTID", "[{\"_rid\":\"AQAAAIAAAAEHAAAAAAAAAA==\"}]", "7"),
            ("DOCUMENTID", "[{\"_rid\":\"AQAAAIAAAAH-AQAAAAAAAA==\"}]", "511"),
            ("DOCUMENTID", "[{\"_rid\":\"AQAAAIAAAAE=\"}]", "undefined"),
            ("DOCUMENTID", "[{\"_rid\":\"not base64\"}]", "undefined"),
            ("DOCUMENTID", "[{\"_rid\":7}]", "undefined"),
            ("DOCUMENTID", "[{}]", "undefined"),
        ]);
        check_wrong_types("DOCUMENTID", "[?]", &["undefined", "null", "1", "\"AQAAAA==\"", "[]"]);
    }
}
