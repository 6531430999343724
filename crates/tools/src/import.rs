//! `astrarium import`: rows of a file become documents of a container.
//!
//! A thread reads rows and makes documents of them, tasks write them by key range (`bulk_writer`); between both is a short queue. A file is read
//! to its end before anything is written, so that one with bad rows changes nothing, and so that the kinds of CSV columns are those of all rows.
//! Its documents are kept meanwhile (`checked_documents`); only of a file that has more than memory for them is the rest read and made again. With
//! `--failed` bad rows go there instead, all others are written, and what has no columns is written while it is read.
//! What is no plain file (standard input, a pipe) cannot be read twice, so there the first bad row ends the import.

mod checked_documents;
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
use crate::progress::ProgressLine;
use crate::resume::{self, EarlierRun, ImportProgress};
use astrarium_client::{ContainerClient, CosmosClient};
use astrarium_rows::csv::{CsvOptions, CsvShape};
use astrarium_rows::documents::DocumentMaker;
use astrarium_rows::template::TextTemplate;
use astrarium_rows::{BadRow, ColumnKinds, InputRows};
use checked_documents::CheckedDocuments;
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
    let is_checked = settings.failed.is_none() || formats::has_kinds_in_rows(format);
    let is_checked = settings.dry_run || (is_plain && is_checked && earlier.is_none());
    let has_known_kinds = !is_checked || !formats::has_kinds_in_rows(format);
    if is_plain
        && has_known_kinds
        && let Some(shape) = formats::shape(format, path, &source.csv)?
    {
        source.tell_columns(&shape);
        source.shape = Some(shape);
    }
    if settings.dry_run {
        // The stream that is open already: a pipe has its bytes once.
        let checked = blocking(move || check(&source, opened)).await?;
        return Ok(checked.counts.dry_report(&settings.container.to_string(), container.name()));
    }
    let mut kept = CheckedDocuments::default();
    if is_checked {
        let (source_to_check, again) = (source.clone(), input::open(path)?);
        let checked = blocking(move || check(&source_to_check, again)).await?;
        source.shape = source.shape.or(checked.shape);
        kept = checked.kept;
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
    write(source, (opened, kept), &client, &container, progress, earlier.as_ref()).await
}

impl ImportSource {
    fn tell_columns(&self, shape: &CsvShape) {
        if !self.settings.quiet {
            formats::tell_columns(shape);
        }
    }
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

/// What reading all rows came to.
struct CheckedRows {
    counts: ImportCounts,
    /// The kinds of columns, where they are those of all rows.
    shape: Option<CsvShape>,
    /// The rows, as far as there is room for them.
    kept: CheckedDocuments,
}

/// Reads all rows, and refuses the file if some are bad and have no other place to go; a dry run only tells of them, and keeps none.
fn check(source: &ImportSource, opened: OpenInput) -> Result<CheckedRows, ToolError> {
    let (settings, is_plain) = (&source.settings, opened.size.is_some());
    let mut whole = read_whole(source, opened, source.shape.clone())?;
    if let Some(kinds) = whole.kinds.take_if(|kinds| is_plain && kinds.used != kinds.found) {
        // A cell after the first rows is of another kind than theirs, by which all documents were made.
        drop(whole);
        whole = read_whole(source, input::open(&settings.file)?, Some(kinds.found))?;
    }
    let ReadWhole { counts, shape, kept, .. } = whole;
    if let Some(shape) = shape.as_ref().filter(|_| is_plain && source.shape.is_none()) {
        source.tell_columns(shape);
    }
    if counts.failed > 0 && !settings.dry_run && settings.failed.is_none() {
        return Err(ToolError::input(format!(
            "{} has {} bad rows of {}, so nothing was imported.\n{}\nMend them, or give --failed FILE: then they go there, and all others are imported",
            settings.file.display(),
            counts.failed,
            counts.rows,
            counts.reasons.values().cloned().collect::<Vec<_>>().join("\n")
        )));
    }
    Ok(CheckedRows { counts, shape, kept })
}

/// What one reading of all rows came to.
struct ReadWhole {
    counts: ImportCounts,
    /// The kinds of columns that rows were made by.
    shape: Option<CsvShape>,
    /// What columns were taken for and what they are, where nobody gave their kinds.
    kinds: Option<ColumnKinds>,
    kept: CheckedDocuments,
}

fn read_whole(
    source: &ImportSource,
    opened: OpenInput,
    shape: Option<CsvShape>,
) -> Result<ReadWhole, ToolError> {
    let (path, is_plain) = (&source.settings.file, opened.size.is_some());
    let mut rows = formats::rows(source.format, opened, path, &source.csv, shape.clone())?;
    if !is_plain {
        tell_first_kinds(&*rows);
    }
    let (mut counts, mut kept) = (ImportCounts::default(), CheckedDocuments::default());
    while let Some(row) = rows.next_row()? {
        counts.rows += 1;
        let row = (row.number, row.text.and_then(|text| prepared(&source.maker, row.number, text)));
        match &row.1 {
            Ok(document) => counts.bytes += document.body.len() as u64,
            Err(bad) => counts.fail(row.0, &bad.reason, BAD_ROWS_SHOWN),
        }
        if !source.settings.dry_run {
            kept.push(&row);
        }
    }
    let kinds = rows.kinds();
    let shape = shape.or_else(|| Some(kinds.as_ref()?.used.clone()));
    Ok(ReadWhole { counts, shape, kinds, kept })
}

/// Says what columns are taken for by their first rows, where no others can be waited for.
fn tell_first_kinds(rows: &dyn InputRows) {
    if let Some(kinds) = rows.kinds() {
        formats::tell_columns(&kinds.used);
    }
}

/// Sends the rows that were kept, and then reads others on a thread of its own; ends when nobody takes them any more.
fn read(
    source: &ImportSource,
    (opened, kept): (OpenInput, CheckedDocuments),
    queue: &RowSender,
) -> Result<(), ToolError> {
    let (path, progress, size) = (&source.settings.file, Arc::clone(&opened.read), opened.size);
    let (kept_bytes, is_whole) = (kept.bytes().max(1) as u64, !kept.is_full && kept.until > 0);
    let done = source.done.max(kept.until);
    for (row, bytes) in kept.into_rows() {
        let share = bytes as f64 / kept_bytes as f64 * size.unwrap_or_default() as f64;
        if is_whole {
            progress.store(share as u64, Ordering::Relaxed);
        }
        if row.0 > source.done && !queue.send(row) {
            return Ok(());
        }
    }
    if is_whole {
        return Ok(());
    }
    let mut rows = formats::rows(source.format, opened, path, &source.csv, source.shape.clone())?;
    if size.is_none() {
        tell_first_kinds(&*rows);
    }
    while let Some(row) = rows.next_row()? {
        if row.number <= done {
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
    (opened, kept): (OpenInput, CheckedDocuments),
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
    let reader = tokio::task::spawn_blocking(move || read(&source, (opened, kept), &sender));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::AccountSettings;
    use astrarium_partition::{PartitionKeyDefinition, PartitionKind};
    use astrarium_value::PropertyPath;

    /// The rows beyond the memory for them are read again, each once and in order; none that an earlier run has dealt with.
    #[test]
    fn what_was_not_kept_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        let lines: Vec<String> = (0..500).map(|number| format!("{number},a")).collect();
        std::fs::write(&path, format!("id,pk\n{}\n", lines.join("\n"))).expect("a file");
        let container = "d/c".parse().expect("a path");
        let settings =
            ImportSettings::new(AccountSettings::new("http://localhost", "a2V5"), container, path.clone());
        let maker = DocumentMaker {
            id: None,
            keys: Vec::new(),
            import_id: String::new(),
            key_definition: PartitionKeyDefinition {
                paths: vec![PropertyPath::parse("/pk").expect("a path")],
                kind: PartitionKind::Hash,
                version: None,
                system_key: false,
            },
        };
        let csv = CsvOptions::default();
        let mut source = ImportSource { settings, format: FileFormat::Csv, csv, shape: None, maker, done: 0 };
        let checked = check(&source, input::open(&path).expect("a file")).expect("good rows");
        source.shape = checked.shape;
        let rows: Vec<ReadRow> = checked.kept.into_rows().map(|(row, _)| row).collect();
        for (kept_count, done) in [(0, 0), (1, 0), (200, 0), (499, 0), (500, 0), (0, 300), (500, 300)] {
            let mut kept = CheckedDocuments::default();
            for row in rows.iter().take(kept_count) {
                kept.push(row);
            }
            kept.is_full = kept_count < rows.len();
            source.done = done;
            let (sender, queue) = row_queue();
            let (source, opened) = (source.clone(), input::open(&path).expect("a file"));
            let reader = std::thread::spawn(move || read(&source, (opened, kept), &sender));
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            let numbers: Vec<u64> = runtime.block_on(async {
                let mut numbers = Vec::new();
                while let Some(taken) = queue.take().await {
                    numbers.extend(taken.rows.iter().map(|(number, _)| *number));
                }
                numbers
            });
            reader.join().expect("it ends").expect("it reads");
            assert_eq!(numbers, (done + 1..=500).collect::<Vec<_>>(), "{kept_count} kept, {done} done");
        }
    }
}
