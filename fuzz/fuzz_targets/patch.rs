//! Patches: the first line is the body of a request, the rest a document. Any body is read or refused; what is applied
//! gives minimal JSON, twice the same, in which a document's other members are what they were.

use astrarium_value::json::{Kind, Text};
use astrarium_value::patch::{OPERATIONS_MAX, PatchError, apply};
use std::collections::BTreeSet;

pub(crate) fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (body, rest) = bytes.split_at(end);
    let Ok(request) = astrarium_wire::patch::parse(body) else { return };
    let operations = &request.operations;
    assert!((1..=OPERATIONS_MAX).contains(&operations.len()));

    // Bytes that are no document do no harm.
    let _ = apply(rest, operations);
    let Ok(text) = Text::parse(rest) else { return };
    let mut document = Vec::new();
    text.write_minimal(&[], &mut document);
    let patched = match apply(&document, operations) {
        Ok(patched) => patched,
        Err(error) => {
            assert_ne!(error, PatchError::Document, "minimal JSON is a document");
            return;
        }
    };
    assert_eq!(apply(&document, operations).as_deref(), Ok(&patched[..]));
    // Depth is the one thing that a patch leaves to whoever reads the outcome.
    let Ok(after) = Text::parse(&patched) else { return };
    let mut minimal = Vec::new();
    after.write_minimal(&[], &mut minimal);
    assert_eq!(minimal, patched, "the outcome is minimal");

    let touched: BTreeSet<&str> =
        operations.iter().flat_map(|one| one.targets().filter_map(|path| path.segments().next())).collect();
    let before = Text::parse(&document).expect("minimal JSON");
    if before.root().kind() == Kind::Object {
        for (name, value) in before.root().members().filter(|(name, _)| !touched.contains(&**name)) {
            let kept = after.root().get(&name).expect("a member that no operation names");
            assert_eq!(kept.raw(), value.raw());
        }
    }
}
