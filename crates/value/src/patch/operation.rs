//! The operations of a patch, read from their JSON form, and which properties they may not touch.
//!
//! In: a list `[{"op":"set","path":"/a","value":1},...]`. Out: [`PatchOperation`]s that own minimal texts of their values.
//! Members that an operation has no use for are ignored: some clients send `"value":null` with every `remove`.
//! Not here: what the operations do to a document (`patch`), the rest of a request's body (`wire::patch`).

use super::{OPERATIONS_MAX, PatchError, Pointer, excerpt};
use crate::PropertyPath;
use crate::json::{Kind, Node, Text};

/// One change of a document. Values are minimal JSON texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchOperation {
    /// Creates or overwrites a member; inserts into an array.
    Add {
        /// Where.
        path: Pointer,
        /// What.
        value: Box<str>,
    },
    /// Creates or overwrites a member or an element.
    Set {
        /// Where.
        path: Pointer,
        /// What.
        value: Box<str>,
    },
    /// Overwrites what exists.
    Replace {
        /// Where.
        path: Pointer,
        /// What.
        value: Box<str>,
    },
    /// Removes what exists; later elements of an array move up.
    Remove {
        /// Where.
        path: Pointer,
    },
    /// Adds to a number, or creates it.
    Increment {
        /// Where.
        path: Pointer,
        /// The number to add, spelled as it was sent.
        by: Box<str>,
    },
    /// Removes what exists and adds it elsewhere.
    Move {
        /// Where it is.
        from: Pointer,
        /// Where it shall be.
        path: Pointer,
    },
}

impl PatchOperation {
    /// The places that the operation changes: its path and, for a move, where the value comes from.
    pub fn targets(&self) -> impl Iterator<Item = &Pointer> {
        let (path, from) = match self {
            PatchOperation::Add { path, .. }
            | PatchOperation::Set { path, .. }
            | PatchOperation::Replace { path, .. }
            | PatchOperation::Remove { path }
            | PatchOperation::Increment { path, .. } => (path, None),
            PatchOperation::Move { from, path } => (path, Some(from)),
        };
        from.into_iter().chain([path])
    }

    /// Bytes of the value that the operation brings.
    pub(super) fn value_length(&self) -> usize {
        match self {
            PatchOperation::Add { value, .. }
            | PatchOperation::Set { value, .. }
            | PatchOperation::Replace { value, .. } => value.len(),
            PatchOperation::Increment { by, .. } => by.len(),
            PatchOperation::Remove { .. } | PatchOperation::Move { .. } => 0,
        }
    }

    fn parse(node: Node<'_>) -> Result<Self, String> {
        if node.kind() != Kind::Object {
            return Err("is not an object".to_owned());
        }
        let op = text(node, "op")?;
        let path = pointer(node, "path")?;
        Ok(match &*op {
            "add" => PatchOperation::Add { path, value: value(node)? },
            "set" => PatchOperation::Set { path, value: value(node)? },
            "replace" => PatchOperation::Replace { path, value: value(node)? },
            "remove" => PatchOperation::Remove { path },
            "incr" | "increment" => PatchOperation::Increment { path, by: number(node)? },
            "move" => PatchOperation::Move { from: pointer(node, "from")?, path },
            unknown => return Err(format!("has an unknown 'op': '{}'", excerpt(unknown))),
        })
    }
}

/// Reads the list of operations of a patch: one to [`OPERATIONS_MAX`].
pub fn parse_operations(list: Node<'_>) -> Result<Vec<PatchOperation>, PatchError> {
    if list.kind() != Kind::Array {
        return Err(PatchError::Syntax("'operations' must be an array.".to_owned()));
    }
    let mut operations = Vec::new();
    for node in list.elements() {
        let index = operations.len() + 1;
        if index > OPERATIONS_MAX {
            return Err(PatchError::TooMany);
        }
        let operation = PatchOperation::parse(node)
            .map_err(|fault| PatchError::Syntax(format!("Operation({index}) {fault}.")))?;
        operations.push(operation);
    }
    if operations.is_empty() {
        return Err(PatchError::Syntax("There are no operations.".to_owned()));
    }
    Ok(operations)
}

/// Refuses operations on properties of the database, on the id, and on the properties of the partition key.
///
/// A value that contains one of them may still be replaced as a whole; whether the document is then still the same one
/// shows when the outcome is read.
pub fn check_targets(
    operations: &[PatchOperation],
    system_properties: &[&str],
    partition_key: &[PropertyPath],
) -> Result<(), PatchError> {
    for target in operations.iter().flat_map(PatchOperation::targets) {
        let top = target.segments().next().unwrap_or_default();
        if top == "id" || system_properties.contains(&top) {
            return Err(PatchError::SystemProperty(top.to_owned()));
        }
        let key = partition_key
            .iter()
            .find(|path| target.begins_with(path.segments().iter().map(|segment| &**segment)));
        if let Some(path) = key {
            return Err(PatchError::PartitionKey(path.as_str().to_owned()));
        }
    }
    Ok(())
}

fn text(operation: Node<'_>, name: &str) -> Result<String, String> {
    let node = operation.get(name).ok_or_else(|| format!("has no '{name}'"))?;
    node.as_str().map(Into::into).ok_or_else(|| format!("has a '{name}' that is not a string"))
}

fn pointer(operation: Node<'_>, name: &str) -> Result<Pointer, String> {
    Pointer::parse(&text(operation, name)?).map_err(|error| format!("has an invalid '{name}': {error}"))
}

fn value(operation: Node<'_>) -> Result<Box<str>, String> {
    let node = operation.get("value").ok_or("has no 'value'")?;
    let text = Text::parse(node.raw().as_bytes()).expect("a value of a text that was read");
    let mut minimal = Vec::new();
    text.write_minimal(&[], &mut minimal);
    Ok(String::from_utf8(minimal).expect("JSON is UTF-8").into())
}

fn number(operation: Node<'_>) -> Result<Box<str>, String> {
    let node = operation.get("value").ok_or("has no 'value'")?;
    match node.kind() {
        Kind::Number => Ok(node.raw().into()),
        _ => Err("has a 'value' that is not a number".to_owned()),
    }
}
