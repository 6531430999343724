//! `serve --seed`: an account declared by a folder.
//!
//! ```text
//! DATABASE/database.json                   optional: {"throughput": 400} or {"autoscale": 4000}
//! DATABASE/users.json                      optional: [{"id": "ada", "permissions": [{"id", "permissionMode", "resource"}]}]
//! DATABASE/CONTAINER/container.json        {"partitionKey": "/pk"} or a whole definition; "throughput" or "autoscale"
//! DATABASE/CONTAINER/items/*.json|jsonl|csv   documents with ids
//! DATABASE/CONTAINER/sprocs/ID.js          and udfs/ID.js; triggers/ID.Pre.Create.js
//! ```
//!
//! [`SeedPlan::read`] checks the folder alone, [`SeedPlan::apply`] checks it against the account and then makes it so: what is missing is made, what
//! differs is replaced, what is there and not declared stays. Applied twice, the second time changes nothing. Contradictions (two documents of one id,
//! another partition key than the container has) are refused before anything is changed.

mod apply;
mod folder;

use crate::error::ToolError;
use bytes::Bytes;
use serde_json::Value;
use std::path::Path;

/// What a folder declares, checked.
#[derive(Debug)]
pub struct SeedPlan {
    databases: Vec<SeedDatabase>,
}

#[derive(Debug)]
struct SeedDatabase {
    id: String,
    throughput: Value,
    users: Vec<Value>,
    containers: Vec<SeedContainer>,
}

#[derive(Debug)]
struct SeedContainer {
    id: String,
    definition: Value,
    throughput: Value,
    /// Kind of script, and its definition.
    scripts: Vec<(&'static str, Value)>,
    documents: Vec<Bytes>,
}

impl SeedPlan {
    /// Reads a folder; an error says which file is wrong.
    pub fn read(folder: &Path) -> Result<SeedPlan, ToolError> {
        if !folder.is_dir() {
            return Err(ToolError::input(format!(
                "--seed {} is no folder; it names the folder that has a folder of each database, see docs/tools.md",
                folder.display()
            )));
        }
        Ok(SeedPlan { databases: folder::read(folder)? })
    }
}
