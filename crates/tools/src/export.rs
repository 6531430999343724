//! `astrarium export`: the documents of a container, or the rows of a query, into a file or onto standard output.
//!
//! Pages are read ahead, of several key ranges at once, and written as they come: within a range in the order in which the server reads it
//! quickest, which is ours of partition keys and ids. A file appears under its name when it is whole. Parquet is written when all rows are known, which wait in a temporary file until then.

mod parquet;
mod rows;

use crate::ToolReport;
use crate::connection::{AccountSettings, ContainerPath, open_container};
use crate::documents;
use crate::error::ToolError;
use crate::formats::FileFormat;
use crate::output::OpenOutput;
use crate::progress::ProgressLine;
use crate::rate::RateBound;
use astrarium_client::{ContainerClient, QueryRequest, RangeOfKeys, UnreadPage};
use bytes::Bytes;
use clap::Args;
use rows::RowSink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Pages that wait to be written.
const PAGES_AHEAD: usize = 4;

/// A page as it came.
enum ReadPage {
    Documents(UnreadPage),
    Rows(Vec<Bytes>),
}

/// What to export, and how.
#[derive(Debug, Clone, Args)]
pub struct ExportSettings {
    /// The account.
    #[command(flatten)]
    pub account: AccountSettings,

    /// The container, as DATABASE/CONTAINER.
    #[arg(value_name = "DB/CONTAINER")]
    pub container: ContainerPath,

    /// File to write; without it standard output. Names that end in .gz or .zst are compressed.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// What to write: json-lines, json, csv, tsv or parquet. The default is told by the file's name, else JSON lines.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FileFormat>,

    /// Export the rows of a query instead of all documents.
    #[arg(long, value_name = "SQL")]
    pub query: Option<String>,

    /// Only this partition key, as JSON: "a" in quotes, or an array of all its values.
    #[arg(long, value_name = "JSON", requires = "query")]
    pub partition_key: Option<String>,

    /// Columns of CSV and Parquet, with commas. The default are the properties of the first thousand rows, for Parquet of all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,

    /// Keep what the system adds to documents: _rid, _self, _etag, _attachments, _ts.
    #[arg(long)]
    pub system_properties: bool,

    /// Most request units a second to spend.
    #[arg(long, value_name = "RU", value_parser = crate::import::positive_number)]
    pub rate: Option<f64>,

    /// Key ranges read at once.
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = crate::connection::worker_count)]
    pub workers: usize,

    /// Show no progress.
    #[arg(long)]
    pub quiet: bool,
}

impl ExportSettings {
    /// An export with the settings that nobody gave.
    pub fn new(account: AccountSettings, container: ContainerPath) -> ExportSettings {
        ExportSettings {
            account,
            container,
            output: None,
            format: None,
            query: None,
            partition_key: None,
            columns: Vec::new(),
            system_properties: false,
            rate: None,
            workers: 4,
            quiet: true,
        }
    }

    /// The file that is written, none for standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
    }

    fn checked_format(&self) -> Result<FileFormat, ToolError> {
        let format = self.file_format();
        let is_packed = |path: &Path| {
            matches!(path.extension().and_then(|end| end.to_str()), Some("gz" | "tgz" | "zst" | "zstd"))
        };
        match self.file() {
            Some(path) if format == FileFormat::Parquet && is_packed(path) => Err(ToolError::input(format!(
                "{}: Parquet is compressed inside, and cannot be read if it is compressed as a whole; give a name that ends in .parquet",
                path.display()
            ))),
            _ => Ok(format),
        }
    }

    fn file_format(&self) -> FileFormat {
        let name = self.output.as_deref().and_then(|path| path.file_name()?.to_str()).unwrap_or_default();
        let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        self.format.unwrap_or(match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "json" => FileFormat::Json,
            "csv" => FileFormat::Csv,
            "tsv" => FileFormat::Tsv,
            "parquet" | "pq" => FileFormat::Parquet,
            _ => FileFormat::JsonLines,
        })
    }
}

/// Does an export.
pub async fn export(settings: &ExportSettings) -> Result<ToolReport, ToolError> {
    let format = settings.checked_format()?;
    let client = settings.account.connect(settings.workers + 1).await?;
    let path = &settings.container;
    let container = open_container(&client, &path.database, &path.container).await?;
    let (sender, mut pages) = mpsc::channel(PAGES_AHEAD);
    let mut readers = start_readers(settings, &container, sender).await?;
    let mut output = OpenOutput::open(settings.output.as_deref())?;
    let mut sink = RowSink::new(format, &settings.columns, settings.file());
    let expected =
        if settings.query.is_some() || settings.quiet { None } else { container.document_count().await };
    let mut line = ProgressLine::new(settings.quiet);
    let (mut count, mut bytes) = (0_u64, 0_u64);
    while let Some(page) = pages.recv().await {
        // Writing may wait for a disk or a pipe; nothing else has to be done meanwhile but reading ahead, which other threads do. Rows are found
        // and made ready here and not where they are read, so that the next page is asked for at once.
        tokio::task::block_in_place(|| {
            let page = shown(page.into_rows()?, settings);
            count += page.len() as u64;
            bytes += page.iter().map(|row| row.len() as u64).sum::<u64>();
            sink.write(&page, &mut output)
        })?;
        line.show(count, expected.map(|expected| (count, expected)), &format!("{} MB", bytes >> 20));
    }
    while let Some(joined) = readers.join_next().await {
        joined.map_err(|error| ToolError::input(format!("a reader ended unexpectedly: {error}")))??;
    }
    tokio::task::block_in_place(|| sink.finish(&mut output))?;
    output.finish()?;
    line.end();
    let (seconds, charge) = (line.seconds(), client.traffic().charge);
    let text = format!("{count} rows, {bytes} bytes exported from {path} in {seconds:.1} s, {charge:.0} RU");
    Ok(ToolReport { text, is_complete: true })
}

/// Starts what reads pages.
async fn start_readers(
    settings: &ExportSettings,
    container: &ContainerClient,
    sender: mpsc::Sender<ReadPage>,
) -> Result<JoinSet<Result<(), ToolError>>, ToolError> {
    let mut readers = JoinSet::new();
    let rate = Arc::new(RateBound::new(settings.rate));
    if let Some(text) = &settings.query {
        let mut query = QueryRequest::new(text);
        query.page_size = Some(1_000);
        query.partition_key = settings.partition_key.as_deref().map(key_array).transpose()?;
        let pages = container.query(query);
        readers.spawn(read_query(pages, rate, sender));
        return Ok(readers);
    }
    let ranges = container.ranges().await.map_err(ToolError::account("read the key ranges"))?;
    let turns = Arc::new(tokio::sync::Semaphore::new(settings.workers));
    for range in ranges {
        let (container, rate, turns, sender) =
            (container.clone(), Arc::clone(&rate), Arc::clone(&turns), sender.clone());
        readers.spawn(async move {
            let Ok(_turn) = turns.acquire().await else { return Ok(()) };
            read_range(&container, &range, &rate, &sender).await
        });
    }
    Ok(readers)
}

async fn read_range(
    container: &ContainerClient,
    range: &RangeOfKeys,
    rate: &RateBound,
    sender: &mpsc::Sender<ReadPage>,
) -> Result<(), ToolError> {
    let mut continuation: Option<String> = None;
    loop {
        rate.wait().await;
        let page = container
            .items(range, continuation.as_deref())
            .await
            .map_err(ToolError::account("read documents"))?;
        rate.spend(page.charge);
        continuation.clone_from(&page.continuation);
        if sender.send(ReadPage::Documents(page)).await.is_err() || continuation.is_none() {
            return Ok(());
        }
    }
}

async fn read_query(
    mut pages: astrarium_client::QueryPages,
    rate: Arc<RateBound>,
    sender: mpsc::Sender<ReadPage>,
) -> Result<(), ToolError> {
    loop {
        rate.wait().await;
        let page = pages.next_page().await.map_err(ToolError::account("run the query"))?;
        let Some(page) = page else { return Ok(()) };
        rate.spend(page.charge);
        if sender.send(ReadPage::Rows(page.items)).await.is_err() {
            return Ok(());
        }
    }
}

impl ReadPage {
    fn into_rows(self) -> Result<Vec<Bytes>, ToolError> {
        match self {
            ReadPage::Documents(page) => page.into_items().map_err(ToolError::account("read documents")),
            ReadPage::Rows(rows) => Ok(rows),
        }
    }
}

/// Rows as they are written; only objects have properties of the system. A row of a query is stripped if it is a whole document: single properties
/// were asked for.
fn shown(items: Vec<Bytes>, settings: &ExportSettings) -> Vec<Bytes> {
    if settings.system_properties {
        return items;
    }
    let is_stripped =
        |item: &Bytes| item.first() == Some(&b'{') && (settings.query.is_none() || documents::is_whole(item));
    let strip = |item: Bytes| {
        if is_stripped(&item) { documents::without_system_properties(&item).into() } else { item }
    };
    items.into_iter().map(strip).collect()
}

/// A partition key as an array, from one value or an array.
fn key_array(text: &str) -> Result<String, ToolError> {
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(text);
    match parsed {
        Ok(serde_json::Value::Array(_)) => Ok(text.to_owned()),
        Ok(_) => Ok(format!("[{text}]")),
        Err(error) => Err(ToolError::input(format!(
            "--partition-key {text:?} is not JSON: {error}; a text needs quotes, '\"a\"'"
        ))),
    }
}
