//! `astrarium import`: rows of a file become documents of a container.
//!
//! A thread reads rows and makes documents of them, tasks write them by key range (`bulk_writer`); between both is a short queue. A file is read
//! once before anything is written, so that one with bad rows changes nothing; with `--failed` bad rows go there instead, and all others are
//! written. What is no plain file (standard input, a pipe) cannot be read twice, so there the first bad row ends the import.

mod report;
mod row_queue;
mod settings;

use crate::ToolReport;
use crate::archive;
use crate::bulk_writer::{BulkWriter, SettledDocument};
use crate::check::{PreparedDocument, prepared};
use crate::definitions;
use crate::error::ToolError;
use crate::formats::{self, FileFormat};
use crate::input::{self, HEAD_BYTES, OpenInput};
use crate::progress::{ProgressLine, tell};
use crate::resume::{self, EarlierRun, ImportProgress};
use astrarium_client::{ContainerClient, CosmosClient};
use astrarium_rows::BadRow;
use astrarium_rows::csv::{CsvOptions, CsvShape};
use astrarium_rows::documents::DocumentMaker;
use astrarium_rows::template::TextTemplate;
use report::ImportCounts;
use row_queue::{RowReceiver, RowSender, TakenRows, row_queue};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use settings::ImportSettings;
pub(crate) use settings::positive as positive_number;

/// Rows that may be done before one that is not, before what has gathered is sent.
const OUT_OF_ORDER_MAX: usize = 50_000;
/// Bad rows that are told of when a file is refused.
const BAD_ROWS_SHOWN: usize = 5;
/// How often the resume file is written.
const NOTE_EVERY: Duration = Duration::from_millis(500);

/// A row that was read: a document, or why it is none.
type ReadRow = (u64, Result<PreparedDocument, BadRow>);

/// What an import reads, and how.
#[derive(Clone)]
struct ImportSource {
    settings: ImportSettings,
    format: FileFormat,
    csv: CsvOptions,
    shape: Option<CsvShape>,
    maker: DocumentMaker,
    /// Rows up to here are dealt with.
    done: u64,
}

/// Does an import.
pub async fn import(settings: &ImportSettings) -> Result<ToolReport, ToolError> {
    let path = &settings.file;
    let opened = input::open(path)?;
    let is_plain = opened.size.is_some();
    if settings.resume.is_some() && !is_plain {
        return Err(ToolError::input(
            "--resume needs a plain file: standard input and pipes cannot be read again",
        ));
    }
    let format = formats::choose(settings.format, path, &opened)?;
    let csv = settings.csv_options()?;
    let client = settings.account.connect(settings.workers + 1).await?;
    let container = target(settings, &client).await?;
    let identity = identity(settings, &opened, format, &container)?;
    let earlier = match &settings.resume {
        Some(file) => resume::earlier(file, &identity)?,
        None => None,
    };
    let import_id = earlier.as_ref().map_or_else(random_id, |run| run.import_id.clone());
    let maker = DocumentMaker {
        id: settings.id.as_deref().map(TextTemplate::parse).transpose()?,
        keys: DocumentMaker::key_templates(container.key_definition(), &settings.partition_key)?,
        import_id: import_id.clone(),
        key_definition: container.key_definition().clone(),
    };
    let done = earlier.as_ref().map_or(0, |run| run.done);
    let mut source = ImportSource { settings: settings.clone(), format, csv, shape: None, maker, done };
    if is_plain && let Some(shape) = formats::shape(format, path, &source.csv)? {
        if !settings.quiet {
            tell(&format!("columns: {} (change one with --type NAME=KIND)", shape.described()));
        }
        source.shape = Some(shape);
    }
    if settings.dry_run {
        // The stream that is open already: a pipe has its bytes once.
        let checked = blocking(move || check(&source, opened)).await?;
        return Ok(checked.dry_report(&settings.container.to_string(), container.name()));
    }
    if is_plain && settings.failed.is_none() && earlier.is_none() {
        let (source, again) = (source.clone(), input::open(path)?);
        blocking(move || check(&source, again)).await?;
    }
    let container = definitions::make_container(
        &client,
        container,
        settings.create_container.is_some(),
        settings.throughput,
    )
    .await?;
    // A container that was made just now has its resource id only now.
    let identity = with_container(identity, &container);
    source.maker.key_definition = container.key_definition().clone();
    let progress =
        ImportProgress::begin(settings.resume.as_deref(), &identity, &import_id, earlier.as_ref())?;
    write(source, opened, &client, &container, progress, earlier.as_ref()).await
}

/// The container that is there, or the one that is to be made.
async fn target(settings: &ImportSettings, client: &CosmosClient) -> Result<ContainerClient, ToolError> {
    let path = &settings.container;
    let what = format!("open {path}");
    match client.container(&path.database, &path.container).await {
        Ok(container) => {
            if let Some(paths) = &settings.create_container {
                let own: Vec<&str> = container
                    .key_definition()
                    .paths
                    .iter()
                    .map(astrarium_value::PropertyPath::as_str)
                    .collect();
                if own != paths.split(',').collect::<Vec<_>>() {
                    let own = own.join(",");
                    return Err(ToolError::input(format!(
                        "{path} exists, and its partition key is {own}, not {paths}"
                    )));
                }
            }
            Ok(container)
        }
        Err(error) if error.status() == 404 => match &settings.create_container {
            Some(paths) => definitions::planned_container(client, path, paths),
            None => Err(ToolError::input(format!(
                "there is no container {path}; --create-container PATH makes it, with the partition key at PATH, such as /id"
            ))),
        },
        Err(error) => Err(ToolError::account(what)(error)),
    }
}

/// What makes an import the same as an earlier one.
fn identity(
    settings: &ImportSettings,
    opened: &OpenInput,
    format: FileFormat,
    container: &ContainerClient,
) -> Result<Value, ToolError> {
    let head = opened.head.get(..HEAD_BYTES.min(opened.head.len())).unwrap_or_default();
    let tail = match opened.size {
        Some(_) => input::tail(&settings.file)?,
        None => Vec::new(),
    };
    let identity = json!({
        "version": 2,
        "endpoint": container.client().endpoint().to_string(),
        "container": settings.container.to_string(),
        "format": format!("{format:?}").to_lowercase(),
        "emptyAsNull": settings.empty_as_null,
        "fileBytes": opened.size,
        "fileStart": archive::digest(head),
        "fileEnd": archive::digest(&tail),
        "mode": format!("{:?}", settings.mode).to_lowercase(),
        "id": settings.id,
        "partitionKey": settings.partition_key,
        "types": settings.types,
    });
    Ok(with_container(identity, container))
}

/// The identity with the resource id of the container, which one that is made anew under its name does not have.
fn with_container(mut identity: Value, container: &ContainerClient) -> Value {
    identity["containerRid"] = container.definition().get("_rid").cloned().unwrap_or_default();
    identity
}

fn random_id() -> String {
    let random = astrarium_env::Random::from_system();
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
}

/// Runs what waits for files on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ToolError::input(format!("the reader ended unexpectedly: {error}")))?
}

/// Reads all rows, and refuses the file if some are bad; a dry run only tells of them.
fn check(source: &ImportSource, opened: OpenInput) -> Result<ImportCounts, ToolError> {
    let path = &source.settings.file;
    let mut rows = formats::rows(source.format, opened, path, &source.csv, source.shape.clone())?;
    let mut counts = ImportCounts::default();
    while let Some(row) = rows.next_row()? {
        counts.rows += 1;
        match row.text.and_then(|text| prepared(&source.maker, row.number, text)) {
            Ok(document) => counts.bytes += document.body.len() as u64,
            Err(bad) => counts.fail(row.number, &bad.reason, BAD_ROWS_SHOWN),
        }
    }
    if counts.failed > 0 && !source.settings.dry_run {
        return Err(ToolError::input(format!(
            "{} has {} bad rows of {}, so nothing was imported.\n{}\nMend them, or give --failed FILE: then they go there, and all others are imported",
            path.display(),
            counts.failed,
            counts.rows,
            counts.reasons.values().cloned().collect::<Vec<_>>().join("\n")
        )));
    }
    Ok(counts)
}

/// Reads rows on a thread of its own and sends them; ends when nobody takes them any more.
fn read(source: &ImportSource, opened: OpenInput, queue: &RowSender) -> Result<(), ToolError> {
    let path = &source.settings.file;
    let mut rows = formats::rows(source.format, opened, path, &source.csv, source.shape.clone())?;
    while let Some(row) = rows.next_row()? {
        if row.number <= source.done {
            continue;
        }
        let document = row.text.and_then(|text| prepared(&source.maker, row.number, text));
        if !queue.send((row.number, document)) {
            break;
        }
    }
    Ok(())
}

async fn write(
    source: ImportSource,
    opened: OpenInput,
    client: &CosmosClient,
    container: &ContainerClient,
    progress: ImportProgress,
    earlier: Option<&EarlierRun>,
) -> Result<ToolReport, ToolError> {
    let settings = source.settings.clone();
    let (size, bytes_read) = (opened.size, Arc::clone(&opened.read));
    let suspect_until = earlier.map_or(0, |run| run.sent);
    let writer =
        BulkWriter::new(container, settings.mode, settings.workers, settings.rate, suspect_until).await?;
    let (sender, queue) = row_queue();
    let reader = tokio::task::spawn_blocking(move || read(&source, opened, &sender));
    let mut running = RunningImport {
        writer,
        progress,
        counts: ImportCounts { before: earlier.map_or(0, |run| run.done), ..ImportCounts::default() },
        failures: report::FailedRows::open(settings.failed.as_deref(), earlier.is_some())?,
        line: ProgressLine::new(settings.quiet),
        noted: astrarium_env::Instant::now(),
        bytes: size.map(|size| (bytes_read, size)),
    };
    let outcome = running.take_all(queue, &settings, client).await;
    running.line.end();
    let outcome = match outcome {
        Ok(()) => {
            let read = reader.await;
            let read =
                read.map_err(|error| ToolError::input(format!("the reader ended unexpectedly: {error}")));
            read.and_then(|read| read).and_then(|()| running.counts.check_sum())
        }
        // The reader may wait for a pipe that nobody closes, so nobody waits for it.
        Err(error) => running.settle().and(Err(error)),
    };
    running.note()?;
    match outcome {
        Ok(()) => Ok(running.counts.report(
            &settings.container.to_string(),
            running.line.seconds(),
            client.traffic(),
        )),
        Err(error) => Err(running.counts.interrupted(&error, settings.resume.as_deref())),
    }
}

/// An import that is under way.
struct RunningImport {
    writer: BulkWriter,
    progress: ImportProgress,
    counts: ImportCounts,
    failures: report::FailedRows,
    line: ProgressLine,
    noted: astrarium_env::Instant,
    bytes: Option<(Arc<AtomicU64>, u64)>,
}

impl RunningImport {
    async fn take_all(
        &mut self,
        queue: RowReceiver,
        settings: &ImportSettings,
        client: &CosmosClient,
    ) -> Result<(), ToolError> {
        while let Some(TakenRows { rows, is_slow }) = queue.take().await {
            for (number, row) in rows {
                self.counts.rows += 1;
                match row {
                    Ok(document) => {
                        self.progress.sending(number)?;
                        self.writer.push(document).await?;
                    }
                    Err(bad) => self.refuse(number, &bad, settings.failed.as_deref())?,
                }
            }
            self.settle()?;
            if is_slow || self.progress.waiting() > OUT_OF_ORDER_MAX {
                self.writer.flush().await?;
            }
            let bytes = self.bytes.as_ref().map(|(read, size)| (read.load(Ordering::Relaxed), *size));
            self.line.show(self.counts.settled(), bytes, &self.counts.remark(client.traffic()));
        }
        let finished = self.writer.finish().await;
        self.settle()?;
        finished
    }

    /// A row that is no document: into the file for failures, or the end.
    fn refuse(&mut self, number: u64, bad: &BadRow, file: Option<&Path>) -> Result<(), ToolError> {
        if file.is_none() {
            return Err(ToolError::input(format!(
                "row {number}: {}. With --failed FILE such rows go there, and the others are imported",
                bad.reason
            )));
        }
        self.counts.fail(number, &bad.reason, BAD_ROWS_SHOWN);
        self.failures.write(number, 0, &bad.reason, &bad.raw)?;
        self.progress.settle(number);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ToolError> {
        for settled in self.writer.take_settled()? {
            let SettledDocument { number, end, body } = settled;
            self.counts.count(number, &end, BAD_ROWS_SHOWN);
            if let (crate::bulk_writer::DocumentEnd::Failed(status, reason), Some(body)) = (&end, body) {
                self.failures.write(number, *status, reason, &body)?;
            }
            self.progress.settle(number);
        }
        if self.noted.elapsed() >= NOTE_EVERY {
            self.note()?;
        }
        Ok(())
    }

    /// Failures first: what the resume file calls done must have been told of.
    fn note(&mut self) -> Result<(), ToolError> {
        self.noted = astrarium_env::Instant::now();
        self.failures.flush()?;
        self.progress.note_done()
    }
}
