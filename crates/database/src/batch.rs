//! Batches: many operations on documents, all or nothing.
//!
//! In: [`BatchOperation`]s. Out: what each of them did, or why not.
//! Invariants
//! - A transaction commits once, so its documents share an LSN and a time; an operation sees those before it.
//! - The documents to answer with are counted before the commit: what was done is never reported as failed.
//! - Memory is bounded by [`STAGED_BYTES_MAX`], however large the documents are that an operation names.
//!
//! Not here: operations that do not depend on each other (`bulk`), the form of requests and responses, statuses (`wire`, `gateway`).

use crate::attempts::Failure;
use crate::charge::{read_charge, terms_charge, write_charge};
use crate::documents::{Staged, Target, check_own_partition, checked_key, required, stage_write};
use crate::feeds::MadeRoom;
use crate::{AccountCore, Conditions, DocumentsHandle, Error, Kind, Link, Patch, WriteMode, WriteOptions};
use astrarium_catalog::container::{Container, Range};
use astrarium_env::Instant;
use astrarium_keys::body::{Body, IndexDirective};
use astrarium_partition::PartitionKey;
use astrarium_store::{DocumentMemory, Incoming, Location, TermCounts, Transaction};
use bytes::Bytes;
use hashbrown::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of documents that one transaction may read and write together.
pub(crate) const STAGED_BYTES_MAX: usize = 64 << 20;
/// Bytes of documents that are read together before the operations on them, about: as many as an answer may show.
const READ_AHEAD_BYTES: usize = 4 << 20;
/// Longest that one transaction may take.
const BATCH_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes that showing a document adds to its text, at most.
const SHOWN_BYTES: usize = 320;

/// One operation of a batch.
#[derive(Debug, Clone)]
pub struct BatchOperation<'a> {
    /// What to do, or why it cannot be read: the operation then fails in its turn.
    pub action: Result<BatchAction<'a>, Error>,
    /// The partition key that the operation names itself.
    pub partition_key: Option<PartitionKey>,
    /// What must hold of the present version.
    pub conditions: Conditions,
    /// What the client says about indexing the document.
    pub index_directive: IndexDirective,
    /// Whether the answer shall show the document; one that is read is always shown.
    pub is_shown: bool,
}

/// What an operation of a batch does.
#[derive(Debug, Clone)]
pub enum BatchAction<'a> {
    /// Writes a document of this text.
    Write(WriteMode<'a>, &'a [u8]),
    /// Reads the document of this id.
    Read(&'a str),
    /// Removes the document of this id.
    Delete(&'a str),
    /// Changes parts of the document of this id.
    Patch(&'a str, Box<Patch>),
}

/// What an operation has done.
#[derive(Debug, Clone)]
pub struct Done {
    /// In a word.
    pub effect: Effect,
    /// The document: as read, as written; for a delete what it was.
    pub body: Body,
    /// Whether to show the document.
    pub is_shown: bool,
    /// Request units.
    pub charge: f64,
    /// The key of a document that was written.
    key: Option<Bytes>,
}

/// What has happened to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is new.
    Created,
    /// It has a new version.
    Changed,
    /// It is gone.
    Deleted,
    /// It was read.
    Read,
    /// The reader has this version already.
    NotModified,
}

/// How a transaction ended.
#[derive(Debug, Clone)]
pub struct BatchOutcome {
    /// The container, as of the commit.
    pub container: Arc<Container>,
    /// The id of the range that served.
    pub range_id: u32,
    /// The range's LSN then.
    pub lsn: u64,
    /// What each operation did; or which one failed and why, and nothing has happened.
    pub result: Result<Vec<Done>, (usize, Error)>,
}

/// An operation with the partition key that it is meant for.
pub(crate) type Keyed<'a> = (PartitionKey, &'a BatchOperation<'a>);

impl DocumentsHandle<'_> {
    /// Does all operations in one logical partition, or none. The documents to show may have so many bytes together.
    pub async fn run_batch(
        self,
        partition_key: Option<&PartitionKey>,
        operations: &[BatchOperation<'_>],
        shown_bytes_max: usize,
    ) -> Result<BatchOutcome, Error> {
        let DocumentsHandle { core, container } = self;
        let key = checked_key(&container.definition.partition_key, required(partition_key)?)?;
        let keyed: Vec<Keyed<'_>> = operations.iter().map(|operation| (key.clone(), operation)).collect();
        core.transact(container, &keyed, shown_bytes_max).await
    }
}

impl AccountCore {
    /// Does operations in one transaction, again if somebody else was faster.
    pub(crate) async fn transact(
        &self,
        container: &Arc<Container>,
        operations: &[Keyed<'_>],
        shown_bytes_max: usize,
    ) -> Result<BatchOutcome, Error> {
        // By a clock that nobody sets.
        let deadline = Instant::now() + BATCH_TIME_MAX;
        let mut room = MadeRoom::default();
        loop {
            let outcome = self.attempt(container, |trial| async move {
                // Boxed, since the future of a batch would be a part of every request's.
                Box::pin(self.transact_once(&trial.container, operations, shown_bytes_max, deadline)).await
            });
            if let Some(outcome) = room.or_again(self, outcome.await) {
                return outcome;
            }
        }
    }

    async fn transact_once(
        &self,
        container: &Arc<Container>,
        operations: &[Keyed<'_>],
        shown_bytes_max: usize,
        deadline: Instant,
    ) -> Result<BatchOutcome, Failure> {
        let (first, _) = operations.first().ok_or_else(|| Error::invalid("There are no operations."))?;
        let range = range_of(container, first);
        let mut transaction = self.begin(container, range, self.view(range).await?).await?;
        let mut memory = DocumentMemory::new(self.memory());
        let mut written: Vec<_> = operations.iter().map(|keyed| written_document(container, keyed)).collect();
        let mut keys: Vec<Vec<Bytes>> = Vec::new();
        if operations.len() > 1 {
            let documents = operations.iter().zip(&written);
            keys.extend(documents.map(|(keyed, written)| keys_of(container, range, keyed, written.as_ref())));
        }
        let (mut all, mut shown, mut staged) = (Vec::with_capacity(operations.len()), 0, 0);
        let mut failed = None;
        for (index, keyed) in operations.iter().enumerate() {
            if Instant::now() > deadline {
                let message = "The batch takes longer than a batch may take.";
                return Err(Error::Timeout(message.to_owned()).into());
            }
            if keys.get(index).is_some_and(|own| !transaction.knows(own)) {
                let next = keys[index..].iter().flatten();
                transaction.read_ahead(next, READ_AHEAD_BYTES, &mut memory).await?;
            }
            match self.stage(&mut transaction, container, range, keyed, written[index].take()).await {
                Ok(done) => {
                    shown += shown_bytes(&done);
                    staged += done.body.text().len();
                    all.push(done);
                }
                Err(Failure::Refused(error)) if is_of_operation(&error) => failed = Some((index, error)),
                Err(failure) => return Err(failure),
            }
            if failed.is_none() && staged > STAGED_BYTES_MAX {
                failed = Some((index, Error::TooLarge));
            } else if failed.is_none() && shown > shown_bytes_max {
                // The service blames the last operation, whichever it was.
                failed = Some((operations.len() - 1, Error::ResponseTooLarge));
            }
            if failed.is_some() {
                break;
            }
        }
        let (lsn, result) = if let Some(failed) = failed {
            (transaction.stored().state().version, Err(failed))
        } else {
            let (lsn, terms) = self.commit_if_changed(transaction).await?;
            price_terms(&mut all, &terms);
            (lsn, Ok(all))
        };
        Ok(BatchOutcome { container: container.clone(), range_id: range.id, lsn, result })
    }

    /// Commits what a transaction changes; gives the range's LSN as of the commit, or as of what was read, and the index
    /// terms that came and went.
    pub(crate) async fn commit_if_changed(
        &self,
        transaction: Transaction,
    ) -> Result<(u64, TermCounts), Failure> {
        let seen = transaction.stored().state().version;
        let (batch, terms) = transaction.into_counted_batch();
        match batch {
            Some(batch) => Ok((self.engine().commit(batch).await?.0, terms)),
            None => Ok((seen, terms)),
        }
    }

    /// Adds one operation to a transaction.
    pub(crate) async fn stage(
        &self,
        transaction: &mut Transaction,
        container: &Arc<Container>,
        range: &Range,
        (key, operation): &Keyed<'_>,
        written: Option<Result<Incoming, Error>>,
    ) -> Result<Done, Failure> {
        check_own_key(container, key, operation)?;
        if range_of(container, key).id != range.id {
            return Err(Error::KeyRangeGone.into());
        }
        let place = |id: &str| Location::of(container, key, id).key;
        let options = WriteOptions {
            partition_key: Some(key),
            conditions: &operation.conditions,
            index_directive: operation.index_directive,
        };
        let (key, staged) = match operation.action.as_ref().map_err(Error::clone)? {
            BatchAction::Read(id) => {
                let body = transaction.read(&place(id)).await?.ok_or(Error::NotFound)?.clone();
                return Ok(read_done(&operation.conditions, body)?);
            }
            BatchAction::Delete(id) => {
                let key = place(id);
                let header = transaction.read(&key).await?.ok_or(Error::NotFound)?.header;
                operation.conditions.check_write(header.etag, header.timestamp)?;
                let body = transaction.remove(&key).await?.ok_or(Error::NotFound)?;
                let charge = write_charge(body.text().len());
                return Ok(Done { effect: Effect::Deleted, body, is_shown: false, charge, key: Some(key) });
            }
            BatchAction::Patch(id, patch) => {
                let key = place(id);
                let staged = self.stage_patch(transaction, container, &key, patch, options).await?;
                (key, staged)
            }
            BatchAction::Write(mode, text) => {
                let incoming = written.unwrap_or_else(|| checked_document(container, key, text))?;
                let key = place(&incoming.id);
                let replaced = match mode {
                    WriteMode::Replace(Link::Name(id)) => Some(place(id)),
                    _ => None,
                };
                let target = Target { key: &key, replaced: replaced.as_ref() };
                let staged = stage_write(transaction, target, *mode, incoming, options).await?;
                (key, staged)
            }
        };
        let effect = if staged.created { Effect::Created } else { Effect::Changed };
        let Staged { body, charge, .. } = staged;
        Ok(Done { effect, body, is_shown: operation.is_shown, charge, key: Some(key) })
    }
}

/// Adds the price of index terms to the operations that made them come and go: what several operations did to one document
/// to the last of them.
pub(crate) fn price_terms(all: &mut [Done], terms: &TermCounts) {
    let mut priced: HashSet<Bytes> = HashSet::default();
    for done in all.iter_mut().rev() {
        if let Some(key) = done.key.take().filter(|key| !priced.contains(key)) {
            done.charge += terms_charge(terms.of(&key));
            priced.insert(key);
        }
    }
}

pub(crate) fn range_of<'a>(container: &'a Container, key: &PartitionKey) -> &'a Range {
    container.range_of(&container.definition.partition_key.effective(key))
}

/// An operation's own key must be the one of the request.
fn check_own_key(
    container: &Container,
    key: &PartitionKey,
    operation: &BatchOperation<'_>,
) -> Result<(), Error> {
    let Some(own) = &operation.partition_key else { return Ok(()) };
    if checked_key(&container.definition.partition_key, own)? == *key {
        return Ok(());
    }
    let message = "One or more operations within the batch request have a different partition key value than the request.";
    Err(Error::invalid(message))
}

/// The document that an operation writes, if it does.
pub(crate) fn written_document(
    container: &Container,
    (key, operation): &Keyed<'_>,
) -> Option<Result<Incoming, Error>> {
    match &operation.action {
        Ok(BatchAction::Write(_, text)) => Some(checked_document(container, key, text)),
        _ => None,
    }
}

/// The keys of the documents that an operation will read, as far as it is one that can be done.
pub(crate) fn keys_of(
    container: &Container,
    range: &Range,
    (key, operation): &Keyed<'_>,
    written: Option<&Result<Incoming, Error>>,
) -> Vec<Bytes> {
    if range_of(container, key).id != range.id {
        return Vec::new();
    }
    let named = match &operation.action {
        Ok(BatchAction::Read(id) | BatchAction::Delete(id) | BatchAction::Patch(id, _)) => Some(&**id),
        Ok(BatchAction::Write(WriteMode::Replace(Link::Name(id)), _)) => Some(&**id),
        Ok(BatchAction::Write(..)) | Err(_) => None,
    };
    let written = written.and_then(|written| Some(&*written.as_ref().ok()?.id));
    named.into_iter().chain(written).map(|id| Location::of(container, key, id).key).collect()
}

/// A document of a batch: of the right partition.
fn checked_document(container: &Container, key: &PartitionKey, text: &[u8]) -> Result<Incoming, Error> {
    let incoming = Incoming::parse(&container.definition, text)?;
    check_own_partition(container, &incoming, key)?;
    Ok(incoming)
}

/// A read under conditions. In a batch the service takes an etag that matches for "not modified", whichever condition
/// names it.
fn read_done(conditions: &Conditions, body: Body) -> Result<Done, Error> {
    let (stamp, timestamp) = (body.header.etag, body.header.timestamp);
    let if_match = conditions.if_match.as_ref().map(|condition| condition.matches(stamp, timestamp));
    if if_match == Some(false) {
        return Err(Error::PreconditionFailed);
    }
    let is_known = if_match == Some(true) || conditions.is_not_modified(stamp, timestamp);
    let effect = if is_known { Effect::NotModified } else { Effect::Read };
    let charge = read_charge(body.text().len());
    Ok(Done { effect, body, is_shown: !is_known, charge, key: None })
}

pub(crate) fn shown_bytes(done: &Done) -> usize {
    if done.is_shown { done.body.text().len() + SHOWN_BYTES } else { 0 }
}

/// Whether an error says something about one operation, and not about the request or the server.
fn is_of_operation(error: &Error) -> bool {
    let is_of_request = matches!(
        error,
        Error::ContainerRecreated
            | Error::OwnerNotFound
            | Error::KeyRangeGone
            | Error::KeyRangeMoving
            | Error::RetryWith
    );
    matches!(error.kind(), Kind::Request | Kind::Conflict) && !is_of_request
}
