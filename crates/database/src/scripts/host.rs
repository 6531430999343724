//! What a script may do: one transaction over one logical partition, called from the script's own thread.
//!
//! In: JSON texts from the script. Out: documents and rows as everybody else would get them, the transaction's own writes
//! included. Nothing is visible to anybody before the owner commits what [`ScriptHost::into_transaction`] gives.
//! Invariants
//! - A write that is refused leaves nothing behind, so a script may catch the error and go on.
//! - Documents that a script read, by name or as rows of a query, are expected unchanged by the commit.
//! - Memory is bounded by [`HELD_BYTES_MAX`]; before that the script is told to wrap up.

use crate::attempts::Failure;
use crate::charge::{read_charge, write_charge};
use crate::documents::{Staged, Target, checked_key, stage_write};
use crate::{AccountCore, Conditions, Error, EtagCondition, Limits, Query, Resume, WriteMode, WriteOptions};
use crate::{Link, query_parameters};
use astrarium_catalog::container::Container;
use astrarium_env::Instant;
use astrarium_keys::body::{Body, IndexDirective};
use astrarium_keys::rid::Rid;
use astrarium_partition::PartitionKey;
use astrarium_script::{
    self as script, DocumentLink, Host, HostError, IndexAction, Paging, Read, RowPage, Spatial, UnseenWrite,
    Written,
};
use astrarium_store::{FeedReader, FeedScope, Incoming, Location, Transaction, push_document};
use astrarium_value::Value;
use astrarium_value::json::{self, seek};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hashbrown::HashMap;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Most bytes of documents that one execution may hold, read and written.
const HELD_BYTES_MAX: usize = 64 << 20;
/// Bytes from which on calls are no longer accepted.
const ACCEPTED_BYTES_MAX: usize = 48 << 20;
/// Rows of a page whose size the script leaves open.
const PAGE_ROWS: usize = 1_000;
/// How a document is replaced whose key is known by then.
const REPLACE: WriteMode<'static> = WriteMode::Replace(Link::Name(""));
/// Memory of a query that a script asks.
const QUERY_BYTES_MAX: usize = 64 << 20;

/// One transaction, as a script sees it.
pub(super) struct ScriptHost {
    core: AccountCore,
    container: Arc<Container>,
    key: PartitionKey,
    transaction: Transaction,
    runtime: Handle,
    /// When the script is ended.
    end: Instant,
    charge: f64,
    held_bytes: usize,
    /// Keys of documents that this transaction has made, by number.
    made: HashMap<u64, Bytes>,
    /// Numbers of documents that queries gave.
    seen: Vec<u64>,
    /// Why the transaction cannot succeed any more.
    failure: Option<Failure>,
}

impl ScriptHost {
    pub(super) fn new(
        core: &AccountCore,
        container: &Arc<Container>,
        key: &PartitionKey,
        transaction: Transaction,
        end: Instant,
    ) -> ScriptHost {
        ScriptHost {
            core: core.clone(),
            container: Arc::clone(container),
            key: key.clone(),
            transaction,
            runtime: Handle::current(),
            end,
            charge: 0.0,
            held_bytes: 0,
            made: HashMap::new(),
            seen: Vec::new(),
            failure: None,
        }
    }

    /// What everything cost so far.
    pub(super) fn charge(&self) -> f64 {
        self.charge
    }

    /// Why the transaction could not succeed, if that is so.
    pub(super) fn into_failure(self) -> Option<Failure> {
        self.failure
    }

    /// The transaction, for writes that belong to it besides the script's.
    pub(super) fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Lets scripts that come later find a document by its number that was written besides theirs.
    pub(super) fn note_written(&mut self, number: u64, key: Bytes) {
        self.made.insert(number, key);
    }

    /// Adds to the cost.
    pub(super) fn add_charge(&mut self, charge: f64) {
        self.charge += charge;
    }

    /// The transaction with everything that was staged, and with what it relies on.
    pub(super) async fn into_transaction(mut self) -> Result<Transaction, Failure> {
        self.seen.sort_unstable();
        self.seen.dedup();
        for number in std::mem::take(&mut self.seen) {
            if let Some(key) = self.key_of_number(number).await? {
                self.transaction.read(&key).await?;
            }
        }
        Ok(self.transaction)
    }

    /// Waits on the script's thread for work that may have to wait for storage.
    fn wait<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut ScriptHost) -> Result<T, Failure>,
    ) -> Result<T, HostError> {
        let runtime = self.runtime.clone();
        runtime.block_on(work(self)).map_err(|failure| self.refuse(failure))
    }

    /// What the script is told of a failure; one that ends the transaction is kept for its owner.
    fn refuse(&mut self, failure: Failure) -> HostError {
        let error = match &failure {
            Failure::Lost | Failure::Fenced | Failure::Closed => {
                HostError::fatal(449, "The transaction lost against another one.")
            }
            Failure::Refused(error) => match number_of(error) {
                Some(number) => return HostError::new(number, error.to_string()),
                None => HostError::fatal(500, error.to_string()),
            },
        };
        self.failure = Some(failure);
        error
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        if self.held_bytes > HELD_BYTES_MAX { Err(Error::TooLarge) } else { Ok(()) }
    }

    /// The key of a document of this partition.
    async fn place(&self, link: DocumentLink<'_>) -> Result<Bytes, Failure> {
        match link {
            DocumentLink::Id(id) => Ok(Location::of(&self.container, &self.key, id).key),
            DocumentLink::Rid(rid) => {
                let rid = Rid::parse(rid).ok_or_else(|| Error::invalid("The link names no document."))?;
                // Only the number is looked up, and other containers have the same ones.
                if rid.container_part() != Some(self.container.rid()) {
                    return Err(Error::NotFound.into());
                }
                Ok(self.key_of_number(rid.number()).await?.ok_or(Error::NotFound)?)
            }
        }
    }

    async fn key_of_number(&self, number: u64) -> Result<Option<Bytes>, Failure> {
        if let Some(key) = self.made.get(&number) {
            return Ok(Some(key.clone()));
        }
        let (container, key) = (&*self.container, &self.key);
        let range = container.range_of(&container.definition.partition_key.effective(key));
        // A document of another partition is not there, as far as this script is concerned.
        let found =
            Location::by_number(self.transaction.stored(), container, range, number, Some(key)).await?;
        Ok(found.map(|location| location.key))
    }

    async fn write(
        &mut self,
        text: &str,
        replaced: Option<DocumentLink<'_>>,
        mode: WriteMode<'_>,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Staged, Failure> {
        let incoming = Incoming::parse(&self.container.definition, text.as_bytes()).map_err(Error::from)?;
        let own = checked_key(&self.container.definition.partition_key, &incoming.partition)?;
        if own != self.key {
            return Err(Error::invalid(FOREIGN_KEY).into());
        }
        self.hold(incoming.text_length())?;
        let place = Location::of(&self.container, &self.key, &incoming.id).key;
        let replaced = match replaced {
            Some(link) => Some(self.place(link).await?),
            None => None,
        };
        let conditions = conditions(etag);
        let index_directive = match index {
            IndexAction::Default => IndexDirective::Default,
            IndexAction::Include => IndexDirective::Include,
            IndexAction::Exclude => IndexDirective::Exclude,
        };
        let options =
            WriteOptions { partition_key: Some(&self.key), conditions: &conditions, index_directive };
        let target = Target { key: &place, replaced: replaced.as_ref() };
        let staged = stage_write(&mut self.transaction, target, mode, incoming, options).await?;
        self.charge += staged.charge;
        self.made.insert(staged.body.header.number, place);
        Ok(staged)
    }

    async fn remove(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), Failure> {
        let key = self.place(link).await?;
        let header = self.transaction.read(&key).await?.ok_or(Error::NotFound)?.header;
        conditions(etag).check_write(header.etag, header.timestamp)?;
        let body = self.transaction.remove(&key).await?.ok_or(Error::NotFound)?;
        self.charge += write_charge(body.text().len());
        Ok(())
    }

    fn written(&self, staged: &Staged) -> Written {
        Written { document: self.shown(&staged.body), created: staged.created }
    }

    fn shown(&self, body: &Body) -> Vec<u8> {
        let mut text = Vec::new();
        push_document(self.container.rid(), body, &mut text);
        text
    }

    async fn page(&mut self, query: &Query, paging: Paging<'_>) -> Result<RowPage, Failure> {
        let resume = paging.continuation.map(resume_of).transpose()?;
        let micros = self.end.saturating_duration_since(Instant::now()).as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        let limits = Limits {
            row_count_max: paging.row_count_max.map_or(PAGE_ROWS, |count| count as usize),
            page_micros: micros,
            query_micros_max: micros,
            memory_bytes_max: QUERY_BYTES_MAX,
            ..Limits::default()
        };
        let expiry = self.core.expiry(&self.container);
        let (views, memory) = (vec![self.transaction.view()], self.core.memory());
        let reader = FeedReader::new(views, Arc::clone(&self.container), expiry, memory);
        let scope = FeedScope::Partition(self.key.clone());
        let page = self.core.query_views(reader, query, scope, resume, limits).await?;
        self.charge += page.charge;
        self.hold(page.rows.iter().map(Vec::len).sum())?;
        self.seen.extend(page.rows.iter().filter_map(|row| number_in(row)));
        let continuation = page.resume.map(|resume| BASE64.encode(resume.encode()));
        Ok(RowPage { rows: page.rows, continuation })
    }
}

impl Host for ScriptHost {
    fn begin(&mut self, end: Instant) {
        self.end = end;
    }

    fn create(&mut self, document: &str, index: IndexAction) -> Result<Written, HostError> {
        let staged =
            self.wait(async |host| host.write(document, None, WriteMode::Create, None, index).await)?;
        Ok(self.written(&staged))
    }

    fn upsert(
        &mut self,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        let staged =
            self.wait(async |host| host.write(document, None, WriteMode::Upsert, etag, index).await)?;
        Ok(self.written(&staged))
    }

    fn replace(
        &mut self,
        link: DocumentLink<'_>,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        let staged = self.wait(async |host| host.write(document, Some(link), REPLACE, etag, index).await)?;
        Ok(self.written(&staged))
    }

    fn write_unseen(&mut self, write: UnseenWrite<'_>) -> Result<(), HostError> {
        self.wait(async |host| {
            match write {
                UnseenWrite::Create { document, index } => {
                    host.write(document, None, WriteMode::Create, None, index).await?
                }
                UnseenWrite::Upsert { document, etag, index } => {
                    host.write(document, None, WriteMode::Upsert, etag, index).await?
                }
                UnseenWrite::Replace { link, document, etag, index } => {
                    host.write(document, Some(link), REPLACE, etag, index).await?
                }
                UnseenWrite::Delete { link, etag } => return host.remove(link, etag).await,
            };
            Ok(())
        })
    }

    fn delete(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), HostError> {
        self.wait(async |host| host.remove(link, etag).await)
    }

    fn read(&mut self, link: DocumentLink<'_>, if_none_match: Option<&str>) -> Result<Read, HostError> {
        self.wait(async |host| {
            let key = host.place(link).await?;
            let body = host.transaction.read(&key).await?.ok_or(Error::NotFound)?.clone();
            host.charge += read_charge(body.text().len());
            host.hold(body.text().len())?;
            let header = body.header;
            let condition = if_none_match.map(etag_condition);
            Ok(match condition {
                Some(condition) if condition.matches(header.etag, header.timestamp) => Read::NotModified,
                _ => Read::Document(host.shown(&body)),
            })
        })
    }

    fn foresee(&mut self, link: DocumentLink<'_>) -> Option<Vec<u8>> {
        // What fails here fails again if the script does read it.
        let runtime = self.runtime.clone();
        runtime.block_on(async {
            let key = self.place(link).await.ok()?;
            let body = self.transaction.read(&key).await.ok()??.clone();
            Some(self.shown(&body))
        })
    }

    fn read_unseen(&mut self, link: DocumentLink<'_>) -> Result<(), HostError> {
        self.wait(async |host| {
            let key = host.place(link).await?;
            let bytes = host.transaction.read(&key).await?.ok_or(Error::NotFound)?.text().len();
            host.charge += read_charge(bytes);
            host.hold(bytes)?;
            Ok(())
        })
    }

    fn read_feed(&mut self, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.wait(async |host| {
            let query = Query::parse("SELECT * FROM c", Vec::new())?;
            host.page(&query, paging).await
        })
    }

    fn query(&mut self, query: script::ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.wait(async |host| {
            let parameters = query.parameters.map(parameters).transpose()?.unwrap_or_default();
            let query = Query::parse(query.text, parameters)?;
            host.page(&query, paging).await
        })
    }

    fn spatial(&mut self, function: Spatial<'_>) -> Result<String, HostError> {
        let (name, arguments) = match function {
            Spatial::Distance(left, right) => ("ST_DISTANCE", vec![left, right]),
            Spatial::Intersects(left, right) => ("ST_INTERSECTS", vec![left, right]),
            Spatial::Within(left, right) => ("ST_WITHIN", vec![left, right]),
            Spatial::IsValid(shape) => ("ST_ISVALID", vec![shape]),
            Spatial::IsValidDetailed(shape) => ("ST_ISVALIDDETAILED", vec![shape]),
        };
        self.wait(async |host| {
            let names: Vec<String> = (0..arguments.len()).map(|index| format!("@p{index}")).collect();
            let mut parameters = Vec::new();
            for (name, argument) in names.iter().zip(&arguments) {
                parameters.push((name.clone(), value_of(argument)?));
            }
            let query = Query::parse(&format!("SELECT VALUE {name}({})", names.join(", ")), parameters)?;
            let page = host.core.query_values(Vec::new(), &query, None, Limits::default()).await?;
            let row = page.rows.into_iter().next().unwrap_or_else(|| b"null".to_vec());
            Ok(String::from_utf8_lossy(&row).into_owned())
        })
    }

    fn accepts(&mut self) -> bool {
        self.held_bytes < ACCEPTED_BYTES_MAX
    }
}

const FOREIGN_KEY: &str = "Requests originating from scripts cannot reference partition keys other than the one for \
     which client request was submitted.";

/// What a script sees as the number of an error; nothing for errors that end the transaction.
fn number_of(error: &Error) -> Option<u16> {
    Some(match error {
        Error::NotFound => 404,
        Error::Exists | Error::UniqueKey => 409,
        Error::PreconditionFailed => 412,
        Error::TooLarge | Error::ResponseTooLarge => 413,
        Error::Timeout(_) => 408,
        Error::Invalid(_)
        | Error::Query(_)
        | Error::PartitionKeyMismatch
        | Error::PartitionKeyDiffers { .. }
        | Error::Script(_) => 400,
        Error::NeedsClientPlan(_)
        | Error::SessionNotAvailable
        | Error::ContainerRecreated
        | Error::OwnerNotFound
        | Error::KeyRangeGone
        | Error::KeyRangeMoving
        | Error::Resharding
        | Error::RetryWith
        | Error::Busy
        | Error::Throttled { .. }
        | Error::Overloaded(_)
        | Error::Stopped(_)
        | Error::Unavailable(_)
        | Error::Damaged(_)
        | Error::IndexLost(_)
        | Error::IndexWrong(_)
        | Error::Bug(_) => return None,
    })
}

fn etag_condition(etag: &str) -> EtagCondition {
    match etag {
        "*" => EtagCondition::Any,
        etag => EtagCondition::OneOf(vec![etag.trim_matches('"').to_owned()]),
    }
}

fn conditions(etag: Option<&str>) -> Conditions {
    Conditions { if_match: etag.map(etag_condition), if_none_match: None }
}

fn resume_of(continuation: &str) -> Result<Resume, Error> {
    let bytes = BASE64.decode(continuation).ok();
    bytes.and_then(|bytes| Resume::decode(&bytes)).ok_or_else(|| Error::invalid("Invalid Continuation Token"))
}

/// The number of the document that a row is, if it is one of a container.
fn number_in(row: &[u8]) -> Option<u64> {
    let Some(Value::String(rid)) = seek::member(row, "_rid").map(seek::value) else { return None };
    Rid::parse(&rid).map(|rid| rid.number())
}

fn value_of(argument: &str) -> Result<Value, Error> {
    let parsed = json::Text::parse(argument.as_bytes());
    parsed.map(|text| text.root().to_value()).map_err(|error| Error::invalid(error.to_string()))
}

/// The parameters of a query: a JSON array of names and values.
fn parameters(list: &str) -> Result<Vec<(String, Value)>, Error> {
    let malformed =
        || Error::invalid("The parameters of a query are an array of objects with a name and a value.");
    let list = json::Text::parse(list.as_bytes()).map_err(|_| malformed())?;
    query_parameters(list.root()).ok_or_else(malformed)
}
