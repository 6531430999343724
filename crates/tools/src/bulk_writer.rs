//! Writes documents into a container, many at once, by key range.
//!
//! In: [`PreparedDocument`]s. Out: how each of them ended, or why all of it has to stop. Documents gather by key range until they fill a request;
//! so many requests run at once as there are workers.
//! Invariants
//! - Every document that was taken is told of exactly once, or the writing stops with an error.
//! - A document is not written twice: after a failure that leaves open what was done, a new document that is found there already is compared with
//!   what was to be written.
//! - Upserts of one document are done in the order in which they were taken: the second waits until the first is dealt with.
//! - What is held is bounded: a request for each worker and one for each range.

use crate::check::PreparedDocument;
use crate::documents;
use crate::error::ToolError;
use crate::rate::RateBound;
use astrarium_client::{BulkOperation, BulkVerb, ClientError, ContainerClient, ItemWrite, RangeOfKeys};
use bytes::Bytes;
use parking_lot::RwLock;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Documents above this go alone, as requests of their own.
const ALONE_BYTES: usize = BulkOperation::BYTES_MAX;
/// How often lost connections are tried again, each time after twice the wait.
const LOSSES_MAX: u32 = 8;
/// First wait after a loss.
const LOSS_WAIT: Duration = Duration::from_millis(250);
/// How often what is asked to wait is sent again, each time for the client's whole patience.
const THROTTLED_ROUNDS_MAX: u32 = 30;

/// What happens to documents that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExistingMode {
    /// They are failures; they stay as they are.
    Insert,
    /// They are replaced.
    Upsert,
    /// They stay as they are, which is no failure.
    Skip,
}

/// How a document ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DocumentEnd {
    /// It is there.
    Written,
    /// One was there before, and stays.
    Existed,
    /// It was refused: status and reason.
    Failed(u16, String),
}

/// A document that has been dealt with.
#[derive(Debug, Clone)]
pub(crate) struct SettledDocument {
    pub(crate) number: u64,
    pub(crate) end: DocumentEnd,
    /// The document, if it failed.
    pub(crate) body: Option<Bytes>,
}

/// Writes into one container.
pub(crate) struct BulkWriter {
    shared: Arc<WriterState>,
    workers: usize,
    gathered: BTreeMap<String, GatheredRequest>,
    running: JoinSet<Result<Vec<SettledDocument>, ToolError>>,
    settled: Vec<SettledDocument>,
    upserts: OpenUpserts,
}

/// Which document an upsert is of: a hash of its partition key and id.
type DocumentName = [u8; 16];

/// Upserts that were taken and are not dealt with yet.
#[derive(Default)]
struct OpenUpserts {
    names: BTreeSet<DocumentName>,
    by_number: BTreeMap<u64, DocumentName>,
}

impl OpenUpserts {
    fn add(&mut self, number: u64, name: DocumentName) {
        self.names.insert(name);
        self.by_number.insert(number, name);
    }

    fn settle(&mut self, settled: &[SettledDocument]) {
        for document in settled {
            if let Some(name) = self.by_number.remove(&document.number) {
                self.names.remove(&name);
            }
        }
    }
}

struct WriterState {
    container: ContainerClient,
    mode: ExistingMode,
    ranges: RwLock<Arc<Vec<RangeOfKeys>>>,
    rate: RateBound,
    /// Up to this row an earlier run may have written.
    suspect_until: u64,
}

/// Documents of a request until all are dealt with.
#[derive(Default)]
struct RunningWrite {
    open: VecDeque<(RangeOfKeys, Vec<PreparedDocument>)>,
    settled: Vec<SettledDocument>,
    /// Rows that may have been written although nobody said so.
    suspects: BTreeSet<u64>,
    losses: u32,
    rounds: u32,
}

#[derive(Default)]
struct GatheredRequest {
    documents: Vec<PreparedDocument>,
    bytes: usize,
}

impl BulkWriter {
    pub(crate) async fn new(
        container: &ContainerClient,
        mode: ExistingMode,
        workers: usize,
        rate: Option<f64>,
        suspect_until: u64,
    ) -> Result<BulkWriter, ToolError> {
        let ranges = container.ranges().await.map_err(ToolError::account("read the key ranges"))?;
        let shared = WriterState {
            container: container.clone(),
            mode,
            ranges: RwLock::new(Arc::new(ranges)),
            rate: RateBound::new(rate),
            suspect_until,
        };
        Ok(BulkWriter {
            shared: Arc::new(shared),
            workers: workers.max(1),
            gathered: BTreeMap::new(),
            running: JoinSet::new(),
            settled: Vec::new(),
            upserts: OpenUpserts::default(),
        })
    }

    /// Takes a document; waits while all workers are busy.
    pub(crate) async fn push(&mut self, document: PreparedDocument) -> Result<(), ToolError> {
        if self.shared.mode == ExistingMode::Upsert {
            let name = name_of(&document);
            if self.upserts.names.contains(&name) {
                self.finish().await?;
            }
            self.upserts.add(document.number, name);
        }
        let range = self.shared.range_of(&document)?;
        let gathered = self.gathered.entry(range.id.clone()).or_default();
        let is_full = gathered.documents.len() >= BulkOperation::COUNT_MAX
            || (!gathered.documents.is_empty()
                && gathered.bytes + document.body.len() > BulkOperation::BYTES_MAX);
        let full = is_full.then(|| std::mem::take(gathered));
        gathered.bytes += document.body.len();
        gathered.documents.push(document);
        match full {
            Some(full) => self.start(full.documents).await,
            None => Ok(()),
        }
    }

    /// Sends what has gathered, without waiting for answers.
    pub(crate) async fn flush(&mut self) -> Result<(), ToolError> {
        for (_, gathered) in std::mem::take(&mut self.gathered) {
            self.start(gathered.documents).await?;
        }
        Ok(())
    }

    /// Sends everything and waits for all answers.
    pub(crate) async fn finish(&mut self) -> Result<(), ToolError> {
        self.flush().await?;
        while let Some(joined) = self.running.join_next().await {
            self.settle(joined)?;
        }
        Ok(())
    }

    /// What has been dealt with since the last call; after an error the next call gives the rest.
    pub(crate) fn take_settled(&mut self) -> Result<Vec<SettledDocument>, ToolError> {
        while let Some(joined) = self.running.try_join_next() {
            self.settle(joined)?;
        }
        Ok(std::mem::take(&mut self.settled))
    }

    async fn start(&mut self, documents: Vec<PreparedDocument>) -> Result<(), ToolError> {
        while self.running.len() >= self.workers {
            if let Some(joined) = self.running.join_next().await {
                self.settle(joined)?;
            }
        }
        let shared = Arc::clone(&self.shared);
        self.running.spawn(async move { shared.write(documents).await });
        Ok(())
    }

    fn settle(
        &mut self,
        joined: Result<Result<Vec<SettledDocument>, ToolError>, tokio::task::JoinError>,
    ) -> Result<(), ToolError> {
        let settled = joined.map_err(|error| panicked(&error))??;
        self.upserts.settle(&settled);
        self.settled.extend(settled);
        Ok(())
    }
}

fn name_of(document: &PreparedDocument) -> DocumentName {
    let id = documents::id_of(&document.body).unwrap_or_default();
    let mut name = DocumentName::default();
    let digest = Sha256::digest([document.key.as_bytes(), b"\0", id.as_bytes()].concat());
    name.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    name
}

fn panicked(error: &tokio::task::JoinError) -> ToolError {
    ToolError::input(format!("a worker ended unexpectedly: {error}"))
}

impl WriterState {
    fn range_of(&self, document: &PreparedDocument) -> Result<RangeOfKeys, ToolError> {
        let ranges = Arc::clone(&self.ranges.read());
        let range =
            ranges.iter().find(|range| range.min <= document.effective && document.effective < range.max);
        range
            .cloned()
            .ok_or_else(|| ToolError::input("the container's key ranges do not cover all keys; try again"))
    }

    /// Writes documents, whatever it takes.
    async fn write(&self, documents: Vec<PreparedDocument>) -> Result<Vec<SettledDocument>, ToolError> {
        let mut work = RunningWrite { open: self.by_range(documents)?.into(), ..RunningWrite::default() };
        while let Some((range, group)) = work.open.pop_front() {
            self.rate.wait().await;
            if group.len() == 1 {
                self.write_alone(range, group, &mut work).await?;
            } else {
                self.write_together(range, group, &mut work).await?;
            }
        }
        Ok(work.settled)
    }

    async fn write_together(
        &self,
        range: RangeOfKeys,
        group: Vec<PreparedDocument>,
        work: &mut RunningWrite,
    ) -> Result<(), ToolError> {
        let operations: Vec<BulkOperation> = group.iter().map(|document| self.operation(document)).collect();
        let results = match self.container.bulk(&range, &operations).await {
            Ok(results) => results,
            Err(error) => return self.write_again(group, error, work).await,
        };
        self.rate.spend(results.iter().map(|result| result.charge).sum());
        let (mut later, mut unsure) = (Vec::new(), Vec::new());
        let mut failure = None;
        for (document, result) in group.into_iter().zip(results) {
            match result.status {
                200..300 => work.settled.push(written(&document)),
                429 | 449 => later.push(document),
                409 => work.settled.push(self.existed(document, &work.suspects).await?),
                _ if result.is_ambiguous() => {
                    unsure.push(document);
                    failure = Some(result.into_error());
                }
                // Batches tell no reasons, single requests do.
                _ => work.open.push_back((range.clone(), vec![document])),
            }
        }
        if !later.is_empty() {
            work.wait_again(range, later)?;
        }
        match failure {
            Some(failure) => self.write_again(unsure, failure, work).await,
            None => Ok(()),
        }
    }

    async fn write_alone(
        &self,
        range: RangeOfKeys,
        group: Vec<PreparedDocument>,
        work: &mut RunningWrite,
    ) -> Result<(), ToolError> {
        let Some(single) = group.first() else { return Ok(()) };
        match self.write_single(single).await {
            Ok(charge) => {
                self.rate.spend(charge);
                work.settled.push(written(single));
                Ok(())
            }
            Err(ClientError::Refused(refusal)) if refusal.status == 409 => {
                work.settled.push(self.existed(single.clone(), &work.suspects).await?);
                Ok(())
            }
            Err(ClientError::Refused(refusal)) if matches!(refusal.status, 400 | 403 | 413 | 412) => {
                work.settled.push(failed(single, refusal.status, refusal.message));
                Ok(())
            }
            Err(ClientError::Refused(refusal)) if matches!(refusal.status, 429 | 449) => {
                work.wait_again(range, group)
            }
            Err(error) => self.write_again(group, error, work).await,
        }
    }

    /// After a failure: documents go to the ranges that there are then, under suspicion if they may have been written.
    async fn write_again(
        &self,
        group: Vec<PreparedDocument>,
        error: ClientError,
        work: &mut RunningWrite,
    ) -> Result<(), ToolError> {
        if error.is_ambiguous() {
            work.suspects.extend(group.iter().map(|document| document.number));
        }
        self.after_failure(error, &mut work.losses).await?;
        work.open.extend(self.by_range(group)?);
        Ok(())
    }

    /// Documents in groups by the range that they belong to now; large ones alone.
    fn by_range(
        &self,
        documents: Vec<PreparedDocument>,
    ) -> Result<Vec<(RangeOfKeys, Vec<PreparedDocument>)>, ToolError> {
        let mut groups: Vec<(RangeOfKeys, Vec<PreparedDocument>)> = Vec::new();
        for document in documents {
            let range = self.range_of(&document)?;
            let is_alone = document.body.len() > ALONE_BYTES;
            match groups.iter_mut().find(|(own, group)| {
                own.id == range.id && !is_alone && group.iter().all(|other| other.body.len() <= ALONE_BYTES)
            }) {
                Some((_, group)) => group.push(document),
                None => groups.push((range, vec![document])),
            }
        }
        Ok(groups)
    }

    fn operation(&self, document: &PreparedDocument) -> BulkOperation {
        let verb = if self.mode == ExistingMode::Upsert { BulkVerb::Upsert } else { BulkVerb::Create };
        BulkOperation { verb, partition_key: document.key.clone(), body: document.body.clone() }
    }

    async fn write_single(&self, document: &PreparedDocument) -> Result<f64, ClientError> {
        let how = ItemWrite { minimal: true, ..ItemWrite::default() };
        let answer = match self.mode {
            ExistingMode::Upsert => self.container.upsert(&document.key, document.body.clone(), &how).await?,
            _ => self.container.create(&document.key, document.body.clone(), &how).await?,
        };
        Ok(answer.charge())
    }

    /// A document that exists: a failure, or no failure, or what was to be written.
    async fn existed(
        &self,
        document: PreparedDocument,
        suspects: &BTreeSet<u64>,
    ) -> Result<SettledDocument, ToolError> {
        if self.mode == ExistingMode::Skip {
            return Ok(SettledDocument { number: document.number, end: DocumentEnd::Existed, body: None });
        }
        if (suspects.contains(&document.number) || document.number <= self.suspect_until)
            && let Some(id) = documents::id_of(&document.body)
        {
            match self.container.read(&id, &document.key).await {
                Ok(found) if documents::is_same(&found.body, &document.body) => {
                    return Ok(written(&document));
                }
                Ok(_) => {}
                Err(error) if error.status() == 404 => {}
                Err(error) => return Err(ToolError::account("read what may have been written")(error)),
            }
        }
        Ok(failed(
            &document,
            409,
            "a document with this id, or with the same values of a unique key, exists".to_owned(),
        ))
    }

    /// Waits before the next try, or gives up.
    async fn after_failure(&self, error: ClientError, losses: &mut u32) -> Result<(), ToolError> {
        *losses += 1;
        let is_transient = error.is_ambiguous()
            || matches!(error, ClientError::Connect { .. } | ClientError::Lost { .. })
            || matches!(error.status(), 408 | 410 | 429 | 449 | 500 | 503);
        if !is_transient || *losses > LOSSES_MAX {
            return Err(ToolError::account("write documents")(error));
        }
        if error.status() != 410 {
            tokio::time::sleep(LOSS_WAIT * (1 << losses.saturating_sub(1).min(5))).await;
        }
        match self.container.ranges().await {
            Ok(ranges) => *self.ranges.write() = Arc::new(ranges),
            Err(unknown) if *losses >= LOSSES_MAX => {
                return Err(ToolError::account("read the key ranges")(unknown));
            }
            Err(_) => {}
        }
        Ok(())
    }
}

impl RunningWrite {
    /// Sends again what was asked to wait, but not for ever.
    fn wait_again(&mut self, range: RangeOfKeys, group: Vec<PreparedDocument>) -> Result<(), ToolError> {
        self.rounds += 1;
        if self.rounds > THROTTLED_ROUNDS_MAX {
            return Err(ToolError::input(
                "the account asks to wait and wait; give it more throughput, or write less with --rate",
            ));
        }
        self.open.push_back((range, group));
        Ok(())
    }
}

fn written(document: &PreparedDocument) -> SettledDocument {
    SettledDocument { number: document.number, end: DocumentEnd::Written, body: None }
}

fn failed(document: &PreparedDocument, status: u16, reason: String) -> SettledDocument {
    SettledDocument {
        number: document.number,
        end: DocumentEnd::Failed(status, reason),
        body: Some(document.body.clone()),
    }
}
