//! `astrarium load`: what a dump holds becomes databases, containers and documents again.
//!
//! The archive is read to its end and checked before anything is changed, and then once more. What a load cannot keep is what the account makes itself: `_rid`,
//! `_self`, `_etag`, `_ts` (so that expiry begins anew), resource ids of everything.

use crate::ToolReport;
use crate::archive;
use crate::bulk_writer::ExistingMode;
use crate::connection::{AccountSettings, open_container};
use crate::definitions::{self, text};
use crate::error::ToolError;
use crate::progress::ProgressLine;
use crate::restore::{self, RestoredCounts};
use bytes::Bytes;
use clap::Args;
use std::collections::VecDeque;
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
    counts.total = Some(listed.iter().filter_map(|container| container["documents"].as_u64()).sum());
    // One reader for all containers, whose documents stand in the order of the manifest.
    let (senders, queues): (VecDeque<_>, Vec<_>) = listed
        .iter()
        .map(|container| {
            let (sender, queue) = mpsc::channel(1);
            ((text(container, "folder").to_owned(), sender), queue)
        })
        .unzip();
    let path = settings.file.clone();
    let reader = tokio::task::spawn_blocking(move || send_documents(&path, senders));
    for (container, queue) in listed.iter().zip(queues) {
        let (database, name) = (text(container, "database"), text(container, "container"));
        let opened = open_container(&client, database, name).await?;
        restore::pour(&opened, mode, settings.workers, queue, &mut counts, &mut line).await?;
    }
    reader.await.map_err(|error| ToolError::input(format!("the reader ended unexpectedly: {error}")))??;
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

/// Sends the documents of each container to its queue, one container after the other.
fn send_documents(
    path: &Path,
    mut queues: VecDeque<(String, mpsc::Sender<Vec<Bytes>>)>,
) -> Result<(), ToolError> {
    archive::for_each_entry(path, |name, content| {
        let Some(folder) = archive::folder_of(name) else { return Ok(()) };
        while queues.front().is_some_and(|(own, _)| own != folder) {
            queues.pop_front();
        }
        let Some((_, queue)) = queues.front() else {
            return Err(ToolError::input("the archive has changed since it was checked"));
        };
        let content = Bytes::from(content);
        let documents = archive::documents_in(&content).map(|line| content.slice_ref(line)).collect();
        // Whoever wrote them has failed, and tells.
        queue.blocking_send(documents).map_err(|_| ToolError::input("nobody takes the documents any more"))
    })
}
