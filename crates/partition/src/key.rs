//! Partition key values, read from the partition key header or taken out of a document.
//!
//! In: header text, or a definition and a document. Out: `PartitionKey`, one component per path that was given.
//! Invariants
//! - A component is a scalar or undefined; what is no scalar in a document counts as undefined.
//! - Numbers compare as doubles: 5 and 5.0 are one key. So are 0 and -0 here, though they hash apart; a key
//!   keeps the zero it was given, because clients hash what they wrote.
//!
//! Not here: whether a key has as many components as its container has paths, which depends on the operation (`database`).

use std::borrow::Cow;

use astrarium_value::compare_numbers;
use astrarium_value::json::{Kind, Node, Text};

use crate::PartitionKeyDefinition;

/// The largest partition key a document may have, in bytes of its values.
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;

/// The value at one level of a partition key.
#[derive(Clone, Debug)]
pub enum Component {
    /// The document has no scalar at the path; written `{}` in headers.
    Undefined,
    /// JSON null, a key of its own.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number; never NaN or infinite when it comes from JSON.
    Number(f64),
    /// Text, compared byte by byte. Boxed rather than shared: a key is read once per request and seldom copied.
    String(Box<str>),
}

/// The partition key of a document, or a prefix of one, the outermost level first.
///
/// Deliberately without `Hash`: equal keys with different zeros live under different effective keys, so
/// tables belong over `EffectiveKey`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionKey(Vec<Component>);

/// Why a header or a value is no partition key. Always the fault of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionKeyError {
    /// The header is not a JSON array.
    #[error("the partition key is not a JSON array")]
    NotAnArray,
    /// A component is an array or an object other than `{}`.
    #[error("component {index} of the partition key is neither a scalar nor {{}}")]
    NotAScalar {
        /// The place of the component, counted from 0.
        index: usize,
    },
    /// The values take more than `PARTITION_KEY_BYTES_MAX` bytes.
    #[error("the partition key takes {byte_count} bytes, more than the maximum of {PARTITION_KEY_BYTES_MAX}")]
    TooLong {
        /// What the values take.
        byte_count: usize,
    },
}

impl PartitionKey {
    /// A key of these components.
    pub fn new(components: Vec<Component>) -> Self {
        Self(components)
    }

    /// Reads the value of the partition key header: a JSON array with one component per level, `{}` for
    /// undefined, `[]` or `[[]]` for no key at all. Text that is no JSON is tried once more percent-decoded, as
    /// some clients send it.
    pub fn parse_header(text: &str) -> Result<Self, PartitionKeyError> {
        let decoded;
        let json = if let Ok(json) = Text::parse(text.as_bytes()) {
            json
        } else {
            decoded = percent_decoded(text).ok_or(PartitionKeyError::NotAnArray)?;
            Text::parse(&decoded).map_err(|_| PartitionKeyError::NotAnArray)?
        };
        let root = json.root();
        if root.kind() != Kind::Array {
            return Err(PartitionKeyError::NotAnArray);
        }
        if is_array_in_array(root) {
            return Ok(Self::default());
        }
        let components = root.elements().enumerate().map(|(index, node)| {
            let is_undefined = node.kind() == Kind::Object && node.members().next().is_none();
            match Component::of(node) {
                Component::Undefined if !is_undefined => Err(PartitionKeyError::NotAScalar { index }),
                component => Ok(component),
            }
        });
        components.collect::<Result<_, _>>().map(Self)
    }

    /// The levels of the key.
    pub fn components(&self) -> &[Component] {
        &self.0
    }

    /// Refuses keys that are too long to be stored; strings count their UTF-8 bytes, numbers eight.
    pub fn check_size(&self) -> Result<(), PartitionKeyError> {
        let byte_count = self.0.iter().map(Component::byte_count).sum();
        if byte_count > PARTITION_KEY_BYTES_MAX {
            return Err(PartitionKeyError::TooLong { byte_count });
        }
        Ok(())
    }
}

impl PartitionKeyDefinition {
    /// Takes the key out of a document. A path that leads to no scalar gives an undefined component; on a
    /// container with a system key, a document without any has the empty key.
    pub fn extract(&self, document: Node<'_>) -> PartitionKey {
        let components =
            self.paths.iter().map(|path| document.at(path).map_or(Component::Undefined, Component::of));
        self.canonical(PartitionKey(components.collect()))
    }

    /// Makes keys of headers comparable with extracted ones where "no key" has two spellings: a system key container
    /// knows it as the empty key, every other container as one undefined component per path.
    pub fn canonical(&self, key: PartitionKey) -> PartitionKey {
        let undefined = key.0.iter().all(|component| matches!(component, Component::Undefined));
        match (self.system_key, undefined) {
            (true, true) => PartitionKey::default(),
            (false, true) if key.0.is_empty() => PartitionKey(vec![Component::Undefined; self.paths.len()]),
            _ => key,
        }
    }
}

impl Component {
    fn of(node: Node<'_>) -> Self {
        let scalar = match node.kind() {
            Kind::Null => Some(Component::Null),
            Kind::Bool => node.as_bool().map(Component::Bool),
            Kind::Number => node.as_f64().map(Component::Number),
            Kind::String => node.as_str().map(Cow::into_owned).map(|text| Component::String(text.into())),
            Kind::Array | Kind::Object => None,
        };
        scalar.unwrap_or(Component::Undefined)
    }

    fn byte_count(&self) -> usize {
        match self {
            Component::Undefined | Component::Null | Component::Bool(_) => 0,
            Component::Number(_) => 8,
            Component::String(text) => text.len(),
        }
    }
}

impl PartialEq for Component {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Component::Undefined, Component::Undefined) | (Component::Null, Component::Null) => true,
            (Component::Bool(a), Component::Bool(b)) => a == b,
            (Component::Number(a), Component::Number(b)) => compare_numbers(*a, *b).is_eq(),
            (Component::String(a), Component::String(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Component {}

/// `[[]]`: how one client sends an empty list of components.
fn is_array_in_array(root: Node<'_>) -> bool {
    let mut elements = root.elements();
    match (elements.next(), elements.next()) {
        (Some(only), None) => only.kind() == Kind::Array && only.elements().next().is_none(),
        _ => false,
    }
}

/// The text with every `%XX` replaced by its byte; `None` when there is none.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let mut found = false;
    while let [first, tail @ ..] = rest {
        let escaped = match tail {
            [high, low, ..] if *first == b'%' => hexadecimal(*high).zip(hexadecimal(*low)),
            _ => None,
        };
        found |= escaped.is_some();
        bytes.push(escaped.map_or(*first, |(high, low)| high * 16 + low));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    found.then_some(bytes)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartitionKind;
    use astrarium_value::PropertyPath;
    use proptest::prelude::*;

    fn text(value: &str) -> Component {
        Component::String(value.into())
    }

    fn check_header(header: &str, expected: Result<&[Component], PartitionKeyError>) {
        let actual = PartitionKey::parse_header(header);
        assert_eq!(actual, expected.map(|components| PartitionKey(components.to_vec())), "{header}");
    }

    #[test]
    fn reads_headers() {
        use Component::{Bool, Null, Number, Undefined};
        check_header(r#"["abc"]"#, Ok(&[text("abc")]));
        check_header(r#"["\u00fc\ud83d\ude00 \"x\""]"#, Ok(&[text("ü😀 \"x\"")]));
        check_header("[5]", Ok(&[Number(5.0)]));
        check_header("[5.0]", Ok(&[Number(5.0)]));
        check_header("[-0]", Ok(&[Number(0.0)]));
        check_header(" [ true ] ", Ok(&[Bool(true)]));
        check_header("[null]", Ok(&[Null]));
        check_header("[{}]", Ok(&[Undefined]));
        check_header("[]", Ok(&[]));
        check_header("[[]]", Ok(&[]));
        check_header(r#"["t","u",3]"#, Ok(&[text("t"), text("u"), Number(3.0)]));
        check_header(r#"["x",{},5]"#, Ok(&[text("x"), Undefined, Number(5.0)]));
        check_header("%5B%22a%20b%22%5d", Ok(&[text("a b")]));
        check_header("[%22%C3%BC%22]", Ok(&[text("ü")]));
        // JSON as it stands is never decoded again: the percent sign belongs to the value.
        check_header(r#"["%41"]"#, Ok(&[text("%41")]));
    }

    #[test]
    fn refuses_what_is_no_key() {
        use PartitionKeyError::{NotAScalar, NotAnArray};
        for header in
            ["", "abc", "\"abc\"", "{}", "null", "[", "[1e400]", "%zz", "%FF", "%5B%2", r#"["\ud800"]"#]
        {
            check_header(header, Err(NotAnArray));
        }
        check_header("[[1]]", Err(NotAScalar { index: 0 }));
        check_header("[1,[]]", Err(NotAScalar { index: 1 }));
        check_header(r#"[{"type":"MinNumber"}]"#, Err(NotAScalar { index: 0 }));
    }

    #[test]
    fn bounds_the_size() {
        let key = |length: usize| PartitionKey::new(vec![text(&"x".repeat(length)), Component::Number(1.0)]);
        assert_eq!(key(2040).check_size(), Ok(()));
        assert_eq!(key(2041).check_size(), Err(PartitionKeyError::TooLong { byte_count: 2049 }));
    }

    fn definition(paths: &[&str], system_key: bool) -> PartitionKeyDefinition {
        let paths = paths.iter().map(|path| PropertyPath::parse(path).unwrap()).collect();
        PartitionKeyDefinition { paths, kind: PartitionKind::Hash, version: None, system_key }
    }

    #[test]
    fn takes_keys_out_of_documents() {
        let json = br#"{"pk":"a","n":{"x":null,"y":1.50},"o":{},"l":[1],"b":false}"#;
        let document = Text::parse(json).unwrap();
        let check = |path: &str, expected: Component| {
            assert_eq!(
                definition(&[path], false).extract(document.root()).components(),
                [expected],
                "{path}"
            );
        };
        check("/pk", text("a"));
        check("/n/x", Component::Null);
        check("/n/y", Component::Number(1.5));
        check("/b", Component::Bool(false));
        for path in ["/o", "/l", "/n", "/missing", "/missing/x", "/pk/x"] {
            check(path, Component::Undefined);
        }
        let both = definition(&["/pk", "/missing"], false).extract(document.root());
        assert_eq!(both.components(), [text("a"), Component::Undefined]);
    }

    #[test]
    fn no_key_has_one_form_per_container() {
        let document = Text::parse(b"{}").unwrap();
        for (system_key, component_count) in [(false, 2), (true, 0)] {
            let definition = definition(&["/a", "/b"], system_key);
            let extracted = definition.extract(document.root());
            assert_eq!(extracted.components().len(), component_count);
            assert_eq!(definition.canonical(PartitionKey::default()), extracted);
            assert_eq!(definition.canonical(PartitionKey::parse_header("[{},{}]").unwrap()), extracted);
        }
        let prefix = PartitionKey::parse_header("[{}]").unwrap();
        assert_eq!(definition(&["/a", "/b"], false).canonical(prefix.clone()), prefix);
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_panic(header in "[\\[\\]{}\"%5BbD2a,.1\u{e9}-]{0,12}") {
            let _ = PartitionKey::parse_header(&header);
        }
    }
}
