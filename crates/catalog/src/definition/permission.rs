//! The definition of a permission: what its user may do with one resource, perhaps within one partition key.
//!
//! The link of the resource is kept exactly as given, because clients look tokens up by its text. Whether it leads
//! anywhere is not asked: a permission may be made before its resource.

use super::members::Members;
use super::{AsGiven, Invalid, Named, id};
use serde_json::{Map, Value};

/// Most components of a partition key that a permission can be bound to.
const PARTITION_KEY_COMPONENTS_MAX: usize = 3;

/// What the holder of a permission may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionMode {
    /// Read and query.
    Read,
    /// Everything.
    All,
}

impl Named for PermissionMode {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Read, "Read"), (Self::All, "All")];
}

/// A permission as its author defines it.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionDefinition {
    /// Its name; a replace may change it.
    pub id: String,
    /// What it allows.
    pub mode: AsGiven<PermissionMode>,
    /// The link of the resource, by names or by rids.
    pub resource: String,
    /// The partition key it is bound to: an array of scalars (`{}` for undefined), or one scalar.
    pub resource_partition_key: Option<Value>,
}

impl PermissionDefinition {
    /// Reads the body of a create, upsert or replace request.
    pub fn from_json(body: &Value) -> Result<PermissionDefinition, Invalid> {
        let body = Members::of(body, "the permission")?;
        let mode = body.required_text("permissionMode")?;
        let resource = body.required_text("resource")?;
        if resource.trim_matches('/').is_empty() {
            return Err(body.wrong("resource", "the link of a resource, such as dbs/d/colls/c"));
        }
        Ok(PermissionDefinition {
            id: id::name_of(&body)?,
            mode: AsGiven::parse(mode)
                .ok_or_else(|| body.no_such_choice::<PermissionMode>("permissionMode", mode))?,
            resource: resource.to_owned(),
            resource_partition_key: partition_key(&body)?,
        })
    }

    /// The body as reads show it, without system properties and token.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("id".to_owned(), self.id.as_str().into());
        body.insert("permissionMode".to_owned(), self.mode.as_str().into());
        body.insert("resource".to_owned(), self.resource.as_str().into());
        if let Some(key) = &self.resource_partition_key {
            body.insert("resourcePartitionKey".to_owned(), key.clone());
        }
        body
    }
}

fn partition_key(body: &Members<'_>) -> Result<Option<Value>, Invalid> {
    let Some(key) = body.get("resourcePartitionKey") else {
        return Ok(None);
    };
    let is_component = |value: &Value| match value {
        Value::Array(_) => false,
        Value::Object(members) => members.is_empty(),
        _ => true,
    };
    let is_key = match key {
        Value::Array(components) => {
            components.len() <= PARTITION_KEY_COMPONENTS_MAX && components.iter().all(is_component)
        }
        scalar => !scalar.is_object(),
    };
    let wanted = "an array of up to 3 strings, numbers, booleans or nulls";
    if is_key { Ok(Some(key.clone())) } else { Err(body.wrong("resourcePartitionKey", wanted)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(body: &Value, expected: Result<&Value, &str>) {
        match (PermissionDefinition::from_json(body), expected) {
            (Ok(actual), Ok(expected)) => {
                let echo = Value::Object(actual.to_json());
                assert_eq!(&echo, expected);
                assert_eq!(PermissionDefinition::from_json(&echo), Ok(actual));
            }
            (Err(actual), Err(fragment)) => assert!(actual.message().contains(fragment), "{body}: {actual}"),
            (actual, expected) => panic!("{body}: {actual:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn permissions() {
        let invalid = "One of the specified inputs is invalid";
        let plain =
            json!({"id": "p", "permissionMode": "read", "resource": "dbs/AQAAAA==/colls/AQAAAJ0fgTc="});
        check(&plain, Ok(&plain));
        let key = json!([1, {}, null]);
        let keyed =
            json!({"id": "p", "permissionMode": "All", "resource": "dbs/d/", "resourcePartitionKey": key});
        check(&keyed, Ok(&keyed));
        let scalar =
            json!({"id": "p", "permissionMode": "ALL", "resource": "dbs/d", "resourcePartitionKey": "a"});
        check(&scalar, Ok(&scalar));
        for bad in [
            json!({"id": "p", "permissionMode": "none", "resource": "dbs/d"}),
            json!({"id": "p", "permissionMode": 1, "resource": "dbs/d"}),
            json!({"id": "p", "permissionMode": "Read"}),
            json!({"id": "p", "permissionMode": "Read", "resource": "/"}),
            json!({"permissionMode": "Read", "resource": "dbs/d"}),
            json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d", "resourcePartitionKey": [[1]]}),
            json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d", "resourcePartitionKey": {"a": 1}}),
            json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d", "resourcePartitionKey": [1, 2, 3, 4]}),
            json!("permission"),
        ] {
            check(&bad, Err(invalid));
        }
    }
}
