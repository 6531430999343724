//! A stored script: what it is called, what it says, and by what its compiled form is found again.

use std::sync::Arc;

/// A script as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Tells it from all other scripts and from its own older versions.
    pub key: ScriptKey,
    /// Its id, which errors carry.
    pub name: Arc<str>,
    /// JavaScript.
    pub source: Arc<str>,
}

/// Which version of which script. Two scripts with one key must have one source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScriptKey {
    /// What never belongs to another script, also not after it is deleted: its resource id.
    pub id: Arc<str>,
    /// What changes with the source: its etag.
    pub version: Arc<str>,
}

/// What a trigger was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggeringOperation {
    /// A document is created.
    Create,
    /// A document is replaced.
    Replace,
    /// A document is created or replaced.
    Upsert,
    /// A document is deleted.
    Delete,
}

impl TriggeringOperation {
    /// What `getOperationType()` says.
    pub fn name(self) -> &'static str {
        match self {
            TriggeringOperation::Create => "Create",
            TriggeringOperation::Replace => "Replace",
            TriggeringOperation::Upsert => "Upsert",
            TriggeringOperation::Delete => "Delete",
        }
    }
}
