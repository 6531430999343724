//! The container definition as a whole: what clients send, what they read back, and what is refused.
//!
//! Each table is data: a body and the members or the message fragment that it leads to. The fragments and echoed shapes
//! are those that the official SDKs' own suites look for.

mod echo;
mod laws;
mod refusals;
mod replacement;
mod search_refusals;

use astrarium_catalog::definition::Invalid;
use astrarium_catalog::definition::container::ContainerDefinition;
use serde_json::{Value, json};

/// A minimal container with further members put over it.
fn container(members: &Value) -> Value {
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let (Some(map), Some(members)) = (body.as_object_mut(), members.as_object()) else {
        panic!("members must be an object: {members}");
    };
    map.extend(members.clone());
    body
}

fn read(members: &Value) -> Result<ContainerDefinition, Invalid> {
    ContainerDefinition::from_json(&container(members))
}

/// What a client reads back, after checking that reading it again changes nothing.
fn shown(definition: &ContainerDefinition) -> Value {
    let body = Value::Object(definition.to_json());
    let again = ContainerDefinition::from_json(&body).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(&again, definition, "{body}");
    assert_eq!(Value::Object(again.to_json()), body);
    body
}

fn refused(result: Result<ContainerDefinition, Invalid>, fragments: &[&str], input: &Value) {
    match result {
        Ok(definition) => panic!("{input} is accepted as {definition:?}"),
        Err(error) => {
            for fragment in fragments {
                assert!(error.message().contains(fragment), "{input}: {error} lacks {fragment}");
            }
            assert!(error.message().len() < 4_000, "{} bytes of message", error.message().len());
        }
    }
}
