//! Databases, containers, scripts, users, permissions and offers: definitions, as JSON.
//!
//! Definitions are small and hold no numbers that a double could not, so they are `serde_json` values; documents are in
//! `container_client`.

use crate::container_client::ContainerClient;
use crate::cosmos_client::{CosmosClient, WireAnswer, WireRequest};
use crate::error::ClientError;
use crate::target::RequestTarget;
use astrarium_wire::headers;
use serde_json::Value;

/// Most pages of a feed of definitions: far more than any account has.
const PAGES_MAX: usize = 10_000;

/// The kinds of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptKind {
    /// Stored procedures.
    Procedure,
    /// Triggers.
    Trigger,
    /// User-defined functions.
    Function,
}

impl ScriptKind {
    /// All of them.
    pub const ALL: [ScriptKind; 3] = [ScriptKind::Procedure, ScriptKind::Trigger, ScriptKind::Function];

    /// The word in paths.
    pub const fn segment(self) -> &'static str {
        match self {
            ScriptKind::Procedure => "sprocs",
            ScriptKind::Trigger => "triggers",
            ScriptKind::Function => "udfs",
        }
    }
}

impl CosmosClient {
    /// All databases.
    pub async fn databases(&self) -> Result<Vec<Value>, ClientError> {
        self.list(RequestTarget::feed(&[], "dbs"), "Databases").await
    }

    /// All containers of a database.
    pub async fn containers(&self, database: &str) -> Result<Vec<Value>, ClientError> {
        self.list(RequestTarget::feed(&["dbs", database], "colls"), "DocumentCollections").await
    }

    /// All offers of the account: the throughput of databases and containers, told by `offerResourceId`.
    pub async fn offers(&self) -> Result<Vec<Value>, ClientError> {
        self.list(RequestTarget::feed(&[], "offers"), "Offers").await
    }

    /// All users of a database.
    pub async fn users(&self, database: &str) -> Result<Vec<Value>, ClientError> {
        self.list(RequestTarget::feed(&["dbs", database], "users"), "Users").await
    }

    /// All permissions of a user.
    pub async fn permissions(&self, database: &str, user: &str) -> Result<Vec<Value>, ClientError> {
        self.list(RequestTarget::feed(&["dbs", database, "users", user], "permissions"), "Permissions").await
    }

    /// One definition by keywords and ids, `["dbs", "d", "colls", "c"]`.
    pub async fn read_definition(&self, segments: &[&str]) -> Result<Value, ClientError> {
        self.send(WireRequest::new("GET", RequestTarget::resource(segments))).await?.json()
    }

    /// Makes a database, container, user, permission or script below its owner: `(["dbs", "d"], "colls", …)`. Headers are for
    /// throughput.
    pub async fn create_definition(
        &self,
        owner: &[&str],
        kind: &str,
        body: &Value,
        headers: Vec<(&'static str, String)>,
    ) -> Result<Value, ClientError> {
        let mut request = WireRequest::new("POST", RequestTarget::feed(owner, kind)).json(body.to_string());
        request.headers.extend(headers);
        self.send(request).await?.json()
    }

    /// Replaces a definition; with an etag only if nobody has changed it since.
    pub async fn replace_definition(
        &self,
        segments: &[&str],
        body: &Value,
        if_match: Option<&str>,
    ) -> Result<Value, ClientError> {
        let mut request = WireRequest::new("PUT", RequestTarget::resource(segments)).json(body.to_string());
        if let Some(etag) = if_match {
            request = request.header(headers::IF_MATCH, etag);
        }
        self.send(request).await?.json()
    }

    /// Removes a database, container, user, permission or script.
    pub async fn delete_definition(&self, segments: &[&str]) -> Result<WireAnswer, ClientError> {
        self.send(WireRequest::new("DELETE", RequestTarget::resource(segments))).await
    }

    /// Replaces an offer, known by its resource id, with a changed one.
    pub async fn replace_offer(&self, rid: &str, body: &Value) -> Result<Value, ClientError> {
        self.send(WireRequest::new("PUT", RequestTarget::offer(rid)).json(body.to_string())).await?.json()
    }

    /// A container, which must exist.
    pub async fn container(&self, database: &str, container: &str) -> Result<ContainerClient, ClientError> {
        let definition = self.read_definition(&["dbs", database, "colls", container]).await?;
        ContainerClient::new(self.clone(), database, container, definition)
    }

    /// Every element of a feed of definitions.
    pub(crate) async fn list(&self, target: RequestTarget, key: &str) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        let mut continuation: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut request = WireRequest::new("GET", target.clone()).header(headers::MAX_ITEM_COUNT, "1000");
            if let Some(continuation) = &continuation {
                request = request.header(headers::CONTINUATION, continuation);
            }
            let answer = self.send(request).await?;
            let mut page = answer.json()?;
            match page.get_mut(key).map(Value::take) {
                Some(Value::Array(elements)) => all.extend(elements),
                _ => return Err(ClientError::Protocol(format!("a feed has no {key}"))),
            }
            continuation = answer.continuation().map(str::to_owned);
            if continuation.is_none() {
                return Ok(all);
            }
        }
        Err(ClientError::Protocol(format!("the feed of {key} does not end")))
    }
}

impl ContainerClient {
    /// All scripts of a kind.
    pub async fn scripts(&self, kind: ScriptKind) -> Result<Vec<Value>, ClientError> {
        let key = match kind {
            ScriptKind::Procedure => "StoredProcedures",
            ScriptKind::Trigger => "Triggers",
            ScriptKind::Function => "UserDefinedFunctions",
        };
        let target = RequestTarget::feed(&["dbs", self.database(), "colls", self.name()], kind.segment());
        self.client().list(target, key).await
    }

    /// Runs a stored procedure: `arguments` is a JSON array, `partition_key` too.
    pub async fn execute(
        &self,
        procedure: &str,
        partition_key: &str,
        arguments: &str,
        with_log: bool,
    ) -> Result<WireAnswer, ClientError> {
        let segments = ["dbs", self.database(), "colls", self.name(), "sprocs", procedure];
        let mut request = self
            .with_session(WireRequest::new("POST", RequestTarget::resource(&segments)))
            .header(headers::PARTITION_KEY, crate::container_client::ascii_json(partition_key))
            .json(arguments.to_owned());
        if with_log {
            request = request.header(headers::SCRIPT_ENABLE_LOGGING, "true");
        }
        self.client().send(request).await
    }
}
