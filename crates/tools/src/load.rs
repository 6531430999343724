//! `astrarium load`: what a dump holds becomes databases, containers and documents again.
//!
//! The archive is read to its end and checked before anything is changed. What a load cannot keep is what the account makes itself: `_rid`,
//! `_self`, `_etag`, `_ts` (so that expiry begins anew), resource ids of everything.

use crate::ToolReport;
use crate::archive;
use crate::bulk_writer::ExistingMode;
use crate::connection::AccountSettings;
use crate::definitions::{self, text};
use crate::error::ToolError;
use crate::progress::ProgressLine;
use crate::restore::{self, RestoredCounts};
use bytes::Bytes;
use clap::Args;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// What to load, and where to.
#[derive(Debug, Clone, Args)]
pub struct LoadSettings {
    /// The account.
    #[command(flatten)]
    pub account: AccountSettings,

    /// The archive that a dump has written.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Go on where containers exist: documents of the same id are replaced, everything else stays.
    #[arg(long)]
    pub merge: bool,

    /// Only check the archive.
    #[arg(long)]
    pub dry_run: bool,

    /// Requests at once.
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = crate::connection::worker_count)]
    pub workers: usize,

    /// Show no progress.
    #[arg(long)]
    pub quiet: bool,
}

/// Does a load.
pub async fn load(settings: &LoadSettings) -> Result<ToolReport, ToolError> {
    let path = settings.file.clone();
    let checked = tokio::task::spawn_blocking(move || archive::check(&path)).await;
    let checked =
        checked.map_err(|error| ToolError::input(format!("the reader ended unexpectedly: {error}")))??;
    let databases = checked.definitions["databases"].as_array().cloned().unwrap_or_default();
    let listed = checked.manifest["containers"].as_array().cloned().unwrap_or_default();
    if settings.dry_run {
        let text = format!(
            "{} is whole: {} containers of {} databases",
            settings.file.display(),
            listed.len(),
            databases.len()
        );
        return Ok(ToolReport { text, is_complete: true });
    }
    let client = settings.account.connect(settings.workers + 1).await?;
    restore::check_target(&client, &databases, settings.merge).await?;
    restore::make_containers(&client, &databases).await?;
    let mode = if settings.merge { ExistingMode::Upsert } else { ExistingMode::Insert };
    let mut counts = RestoredCounts::default();
    let mut line = ProgressLine::new(settings.quiet);
    for container in &listed {
        let (database, name) = (text(container, "database"), text(container, "container"));
        let opened = client
            .container(database, name)
            .await
            .map_err(ToolError::account(format!("open {database}/{name}")))?;
        let (sender, queue) = mpsc::channel(1);
        let (path, folder) = (settings.file.clone(), format!("{}/", text(container, "folder")));
        let reader = tokio::task::spawn_blocking(move || send_documents(&path, &folder, &sender));
        restore::pour(&opened, mode, settings.workers, queue, &mut counts, &mut line).await?;
        reader
            .await
            .map_err(|error| ToolError::input(format!("the reader ended unexpectedly: {error}")))??;
    }
    for database in &databases {
        definitions::make_rest(&client, database).await?;
    }
    line.end();
    let text = format!(
        "{} documents of {} containers loaded in {:.1} s{}",
        counts.written,
        listed.len(),
        line.seconds(),
        counts.remark()
    );
    Ok(ToolReport { text, is_complete: counts.failed == 0 })
}

/// Sends the documents of one container.
fn send_documents(path: &Path, folder: &str, queue: &mpsc::Sender<Vec<Bytes>>) -> Result<(), ToolError> {
    archive::for_each_entry(path, |name, content| {
        if name.starts_with(folder) {
            let content = Bytes::from(content);
            let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let documents = lines.map(|line| content.slice_ref(line)).collect();
            // Whoever wrote them has failed, and tells.
            let _ = queue.blocking_send(documents);
        }
        Ok(())
    })
}
