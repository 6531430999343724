//! JSON text: no input panics; what is accepted is UTF-8 and what another reader accepts too; printing it without
//! spaces and reading that again gives the same value; a printed value reads back equal.

use astrarium_value::json::{Kind, Node, Text};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = Text::parse(bytes) else { return };
    let root = text.root();
    walk(root);
    assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok(), "only we accept {bytes:?}");

    let mut minimal = Vec::new();
    text.write_minimal(&[], &mut minimal);
    assert!(minimal.len() <= bytes.len());
    let again = Text::parse(&minimal).expect("the minimal text is JSON");
    assert_eq!(again.root().to_value(), root.to_value());
    let mut twice = Vec::new();
    again.write_minimal(&[], &mut twice);
    assert_eq!(minimal, twice, "minimal text has nothing to leave out");

    let mut printed = Vec::new();
    root.to_value().write_json(&mut printed);
    let read = Text::parse(&printed).expect("a printed value is JSON");
    assert_eq!(read.root().to_value(), root.to_value());

    let mut without = Vec::new();
    text.write_minimal(&["id", "_etag"], &mut without);
    let without = Text::parse(&without).expect("what is left is JSON");
    assert!(without.root().get("id").is_none() && without.root().get("_etag").is_none());
}

/// Touches every value by every accessor; each member is the one its name finds.
fn walk(node: Node<'_>) {
    match node.kind() {
        Kind::Object => {
            for (name, value) in node.members() {
                let found = node.get(&name).expect("a member is found by its name");
                assert_eq!(found.raw(), value.raw());
                walk(value);
            }
        }
        Kind::Array => node.elements().for_each(walk),
        Kind::Number => assert!(node.as_f64().is_some_and(f64::is_finite)),
        Kind::String => assert!(node.as_str().is_some()),
        Kind::Bool => assert!(node.as_bool().is_some()),
        Kind::Null => {}
    }
}
