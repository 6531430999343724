//! Bulk requests: many operations on documents, one by one.
//!
//! In: [`BatchOperation`]s. Out: what each of them did, or why not.
//! Operations one after another on different documents of one range are done together: each is a transaction of its own, with an LSN of
//! its own, all are made on one view, and all are handed to the engine before the first is waited for, so they share its sync.
//! Invariants
//! - Whatever fails ends the operation and not the request, since what is done already has to be told.
//! - An operation sees those before it on its document, and is never done before them.
//! - Memory is bounded by [`STAGED_BYTES_MAX`] and by the number of operations of a request.

use crate::attempts::Failure;
use crate::batch::{
    BatchOperation, Done, Keyed, STAGED_BYTES_MAX, keys_of, price_terms, range_of, shown_bytes,
    written_document,
};
use crate::documents::{checked_key, required};
use crate::{AccountCore, DocumentsHandle, Error};
use astrarium_catalog::container::Container;
use astrarium_kv::{CommitVersion, Reply, WriteBatch};
use astrarium_partition::PartitionKey;
use astrarium_store::{DocumentMemory, Incoming};
use bytes::Bytes;
use hashbrown::HashSet;
use std::sync::Arc;

/// How operations ended that do not depend on each other.
#[derive(Debug, Clone)]
pub struct BulkOutcome {
    /// The container, as of the last commit.
    pub container: Arc<Container>,
    /// The id of the range that served last.
    pub range_id: u32,
    /// That range's LSN then.
    pub lsn: u64,
    /// What each operation did; fewer than there are operations if one failed and the rest was not to be tried.
    pub results: Vec<Result<Done, Error>>,
}

/// How far a bulk request is.
struct BulkProgress {
    container: Arc<Container>,
    /// The range that served last, and its LSN then.
    served: Option<(u32, u64)>,
    /// Bytes of documents that the answer may still show.
    room: usize,
    results: Vec<Result<Done, Error>>,
    /// The memory of the documents that were read for operations done together.
    memory: DocumentMemory,
}

/// An operation that is to be done together with others.
struct IndependentOperation<'o> {
    keyed: &'o Keyed<'o>,
    written: Option<Result<Incoming, Error>>,
    /// The documents that it reads and writes.
    keys: Vec<Bytes>,
}

/// An operation that was staged: what it does, and the commit that it needs.
struct StagedOperation {
    done: Done,
    batch: Option<WriteBatch>,
}

impl DocumentsHandle<'_> {
    /// Does operations that may each fail alone. Each needs a partition key, its own or the request's, and it must be in
    /// the range that the request names.
    pub async fn run_bulk(
        self,
        scope: (Option<&PartitionKey>, Option<u32>),
        operations: &[BatchOperation<'_>],
        continues: bool,
        shown_bytes_max: usize,
    ) -> Result<BulkOutcome, Error> {
        let DocumentsHandle { core, container } = self;
        let keyed = bulk_keys(container, scope, operations)?;
        let mut progress = BulkProgress {
            container: Arc::clone(container),
            served: None,
            room: shown_bytes_max,
            results: Vec::with_capacity(operations.len()),
            memory: DocumentMemory::new(core.memory()),
        };
        while let Some(next) = keyed.get(progress.results.len()) {
            let together = if continues {
                independent(&progress.container, &keyed[progress.results.len()..])
            } else {
                Vec::new()
            };
            if together.len() > 1 {
                core.bulk_together(&mut progress, together).await;
                continue;
            }
            let result = match next {
                Err(error) => Err(error.clone()),
                Ok(keyed) => core.bulk_one(&mut progress, keyed).await,
            };
            let failed = result.is_err();
            progress.add(result);
            if failed && !continues {
                break;
            }
        }
        let (range_id, lsn) = match progress.served {
            Some(served) => served,
            None => self.position(scope.0).await?,
        };
        Ok(BulkOutcome { container: progress.container, range_id, lsn, results: progress.results })
    }
}

impl BulkProgress {
    fn add(&mut self, result: Result<Done, Error>) {
        let shown = result.as_ref().map_or(0, shown_bytes);
        self.room = self.room.saturating_sub(shown);
        self.results.push(result);
    }
}

impl AccountCore {
    /// Does one operation of many in a transaction of its own.
    async fn bulk_one(&self, progress: &mut BulkProgress, keyed: &Keyed<'_>) -> Result<Done, Error> {
        let single = self.transact(&progress.container, std::slice::from_ref(keyed), progress.room).await?;
        progress.served = Some((single.range_id, single.lsn));
        progress.container = single.container;
        let mut all = single.result.map_err(|(_, error)| error)?;
        all.pop().ok_or_else(|| Error::Bug("an operation without a result".to_owned()))
    }

    /// Does operations on different documents of one range. What cannot be done at the first attempt, for whatever reason, is done
    /// or refused by itself afterwards.
    async fn bulk_together(&self, progress: &mut BulkProgress, mut together: Vec<IndependentOperation<'_>>) {
        let mut staged = match self.stage_together(progress, &mut together).await {
            Ok((seen, staged)) => {
                progress.served = Some(seen);
                staged
            }
            Err(_) => Vec::new(),
        }
        .into_iter();
        let begun: Vec<Option<BegunOperation>> = together
            .iter()
            .map(|_| {
                let StagedOperation { done, batch } = staged.next().flatten()?;
                Some(BegunOperation { done, commit: batch.map(|batch| self.engine().commit(batch)) })
            })
            .collect();
        for (operation, begun) in together.iter().zip(begun) {
            let result = match begun {
                Some(begun) => self.finish(progress, operation, begun).await,
                None => self.bulk_one(progress, operation.keyed).await,
            };
            progress.add(result);
        }
    }

    /// What each operation does, as far as that is found out on one view; before that the range and the LSN of the view.
    async fn stage_together(
        &self,
        progress: &mut BulkProgress,
        together: &mut [IndependentOperation<'_>],
    ) -> Result<((u32, u64), Vec<Option<StagedOperation>>), Failure> {
        let container = &progress.container;
        let first = together.first().ok_or_else(|| Error::invalid("There are no operations."))?;
        let range = range_of(container, &first.keyed.0);
        let beginning = self.begin(container, range, self.view(range).await?).await?;
        let seen = (range.id, beginning.stored().state().version);
        let keys: Vec<Bytes> = together.iter().flat_map(|operation| operation.keys.iter().cloned()).collect();
        let bodies = beginning.stored_bodies(&keys, STAGED_BYTES_MAX, &mut progress.memory).await?;
        let mut bodies = bodies.into_iter();
        let (mut staged, mut shown, mut held) = (Vec::with_capacity(together.len()), 0, 0);
        for IndependentOperation { keyed, written, keys } in together {
            let mut transaction = beginning.clone();
            let is_read = bodies.len() >= keys.len();
            for (key, body) in keys.iter().zip(&mut bodies) {
                transaction.note_stored(key.clone(), body);
            }
            let outcome = if is_read && held <= STAGED_BYTES_MAX {
                self.stage(&mut transaction, container, range, keyed, written.take()).await.ok()
            } else {
                None
            };
            let fitting = outcome.filter(|done| shown + shown_bytes(done) <= progress.room);
            staged.push(fitting.map(|done| {
                shown += shown_bytes(&done);
                held += done.body.text().len();
                let (batch, terms) = transaction.into_counted_batch();
                let mut done = [done];
                price_terms(&mut done, &terms);
                let [done] = done;
                StagedOperation { done, batch }
            }));
        }
        Ok((seen, staged))
    }

    /// Waits for the commit of an operation; one that lost against others is tried again.
    async fn finish(
        &self,
        progress: &mut BulkProgress,
        operation: &IndependentOperation<'_>,
        begun: BegunOperation,
    ) -> Result<Done, Error> {
        let Some(commit) = begun.commit else { return Ok(begun.done) };
        match commit.await {
            Ok(CommitVersion(lsn)) => {
                progress.served = Some((range_of(&progress.container, &operation.keyed.0).id, lsn));
                Ok(begun.done)
            }
            Err(error) => match Failure::from(error) {
                Failure::Refused(error) => Err(error),
                Failure::Lost | Failure::Fenced | Failure::Closed => {
                    self.bulk_one(progress, operation.keyed).await
                }
            },
        }
    }
}

/// An operation whose commit is under way.
struct BegunOperation {
    done: Done,
    commit: Option<Reply<Result<CommitVersion, astrarium_kv::Error>>>,
}

/// The next operations that are about different documents of one range.
fn independent<'o>(
    container: &Container,
    operations: &'o [Result<Keyed<'o>, Error>],
) -> Vec<IndependentOperation<'o>> {
    let Some(Ok((first, _))) = operations.first() else { return Vec::new() };
    let range = range_of(container, first);
    let mut seen: HashSet<Bytes> = HashSet::default();
    let mut together = Vec::new();
    for keyed in operations.iter().map_while(|keyed| keyed.as_ref().ok()) {
        if range_of(container, &keyed.0).id != range.id {
            break;
        }
        let written = written_document(container, keyed);
        let mut keys = keys_of(container, range, keyed, written.as_ref());
        keys.dedup();
        if keys.iter().any(|key| seen.contains(key)) {
            break;
        }
        seen.extend(keys.iter().cloned());
        together.push(IndependentOperation { keyed, written, keys });
    }
    together
}

/// The partition key of each operation; refuses the whole if one is outside of the range that the request names.
fn bulk_keys<'a>(
    container: &Container,
    (request_key, range_id): (Option<&PartitionKey>, Option<u32>),
    operations: &'a [BatchOperation<'a>],
) -> Result<Vec<Result<Keyed<'a>, Error>>, Error> {
    if range_id.is_some_and(|id| container.ranges.iter().all(|range| range.id != id)) {
        return Err(Error::KeyRangeGone);
    }
    let definition = &container.definition.partition_key;
    let keyed = |operation: &'a BatchOperation<'a>| {
        let key = required(operation.partition_key.as_ref().or(request_key));
        let key = key.and_then(|key| checked_key(definition, key));
        match (&key, range_id) {
            (Ok(key), Some(id)) if range_of(container, key).id != id => Err(Error::KeyRangeGone),
            _ => Ok(key.map(|key| (key, operation))),
        }
    };
    operations.iter().map(keyed).collect()
}
