//! The settings of `astrarium import`.

use crate::bulk_writer::ExistingMode;
use crate::connection::{AccountSettings, ContainerPath};
use crate::error::ToolError;
use crate::formats::FileFormat;
use astrarium_rows::csv::{CellKind, CsvOptions};
use clap::Args;
use std::path::PathBuf;

/// What to import, where to, and how.
#[derive(Debug, Clone, Args)]
pub struct ImportSettings {
    /// The account.
    #[command(flatten)]
    pub account: AccountSettings,

    /// The container, as DATABASE/CONTAINER.
    #[arg(value_name = "DB/CONTAINER")]
    pub container: ContainerPath,

    /// The file; - is standard input. Compression (gzip, zstd) is told by its first bytes; Parquet must be a plain file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// What the file holds, if neither its name nor its first bytes tell.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FileFormat>,

    /// What happens to documents that exist: insert has them fail, upsert replaces them, skip leaves them.
    #[arg(long, default_value = "insert", value_name = "MODE")]
    pub mode: ExistingMode,

    /// Make ids by template, such as '{country}-{number}'; {a.b} leads into objects, {#} is the number of the row.
    #[arg(long, value_name = "TEMPLATE")]
    pub id: Option<String>,

    /// Set the partition key by template; once for each of its paths.
    #[arg(long, value_name = "TEMPLATE")]
    pub partition_key: Vec<String>,

    /// Make database and container if they are not there, with the partition key at this path (several with commas).
    #[arg(long, value_name = "PATH")]
    pub create_container: Option<String>,

    /// Throughput of a container that is made, in request units a second.
    #[arg(long, value_name = "RU", requires = "create_container")]
    pub throughput: Option<u32>,

    /// Kind of a column of CSV or Parquet: NAME=string, number, boolean or json.
    #[arg(long = "type", value_name = "NAME=KIND")]
    pub types: Vec<String>,

    /// Empty cells of CSV and nulls of Parquet become null; otherwise they give no property.
    #[arg(long)]
    pub empty_as_null: bool,

    /// Read and check everything, write nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// Most request units a second to spend.
    #[arg(long, value_name = "RU", value_parser = positive)]
    pub rate: Option<f64>,

    /// Requests at once.
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = crate::connection::worker_count)]
    pub workers: usize,

    /// File for rows that fail, each with its reason, as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub failed: Option<PathBuf>,

    /// File that knows how far the import is; after an interruption the same command goes on from there.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,

    /// Show no progress.
    #[arg(long)]
    pub quiet: bool,
}

impl ImportSettings {
    /// An import with the settings that nobody gave.
    pub fn new(account: AccountSettings, container: ContainerPath, file: PathBuf) -> ImportSettings {
        ImportSettings {
            account,
            container,
            file,
            format: None,
            mode: ExistingMode::Insert,
            id: None,
            partition_key: Vec::new(),
            create_container: None,
            throughput: None,
            types: Vec::new(),
            empty_as_null: false,
            dry_run: false,
            rate: None,
            workers: 8,
            failed: None,
            resume: None,
            quiet: true,
        }
    }

    pub(super) fn csv_options(&self) -> Result<CsvOptions, ToolError> {
        let kinds = self.types.iter().map(|told| {
            let parts = told
                .rsplit_once('=')
                .and_then(|(name, kind)| Some((name.to_owned(), CellKind::parse(kind)?)));
            parts.ok_or_else(|| {
                ToolError::input(format!("--type {told:?} must be NAME=string, number, boolean or json"))
            })
        });
        Ok(CsvOptions { kinds: kinds.collect::<Result<_, _>>()?, empty_is_null: self.empty_as_null })
    }
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it must be a number above zero".to_owned())
}
