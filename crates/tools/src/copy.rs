//! `astrarium copy`: databases and containers of one account into another, while the first is in use.
//!
//! Each container is read as of one moment (`snapshot`) and written; with `--follow` what changes afterwards is written too, until somebody ends
//! the command. Deletions after the moment are not in the feed that any server gives, so they are not followed.

use crate::ToolReport;
use crate::bulk_writer::ExistingMode;
use crate::connection::AccountSettings;
use crate::definitions::{self, text};
use crate::documents;
use crate::dump;
use crate::error::ToolError;
use crate::progress::{ProgressLine, tell};
use crate::restore::{self, RestoredCounts};
use crate::snapshot::{self, ContainerSnapshot, SnapshotRange};
use astrarium_client::{ContainerClient, CosmosClient, FeedStart};
use bytes::Bytes;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often a feed without news is asked again.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
/// Documents that go to the writer at once.
const CHUNK: usize = 200;

/// What to copy.
#[derive(Clone, Args)]
pub struct CopySettings {
    /// URL or connection string of the account to read.
    #[arg(long, value_name = "URL")]
    pub from: String,

    /// Its key, if it is not in the connection string. The default is the emulator's well-known key.
    #[arg(long, env = "ASTRARIUM_FROM_KEY", default_value = astrarium_wire::key_text::EMULATOR_KEY, value_name = "KEY", hide_default_value = true, hide_env_values = true)]
    pub from_key: String,

    /// URL or connection string of the account to write.
    #[arg(long, value_name = "URL")]
    pub to: String,

    /// Its key, if it is not in the connection string. The default is the emulator's well-known key.
    #[arg(long, env = "ASTRARIUM_TO_KEY", default_value = astrarium_wire::key_text::EMULATOR_KEY, value_name = "KEY", hide_default_value = true, hide_env_values = true)]
    pub to_key: String,

    /// Only this database, or this container as DATABASE/CONTAINER; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,

    /// Go on where containers exist: documents of the same id are replaced, everything else stays.
    #[arg(long)]
    pub merge: bool,

    /// Go on with what changes afterwards, until the command is ended.
    #[arg(long)]
    pub follow: bool,

    /// Accept any TLS certificate. For servers on this machine that goes without saying.
    #[arg(long)]
    pub insecure: bool,

    /// Requests at once.
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = crate::connection::worker_count)]
    pub workers: usize,

    /// Show no progress.
    #[arg(long)]
    pub quiet: bool,

    /// The accounts themselves, for tests.
    #[arg(skip)]
    pub accounts: Option<(AccountSettings, AccountSettings)>,
}

impl std::fmt::Debug for CopySettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Connection strings have keys.
        formatter.write_str("CopySettings(..)")
    }
}

impl CopySettings {
    fn accounts(&self) -> (AccountSettings, AccountSettings) {
        let made = |endpoint: &str, key: &str| AccountSettings {
            insecure: self.insecure,
            ..AccountSettings::new(endpoint, key)
        };
        self.accounts
            .clone()
            .unwrap_or_else(|| (made(&self.from, &self.from_key), made(&self.to, &self.to_key)))
    }
}

/// Does a copy.
pub async fn copy(settings: &CopySettings) -> Result<ToolReport, ToolError> {
    let (from, to) = settings.accounts();
    let (from, to) = (from.connect(4).await?, to.connect(settings.workers + 1).await?);
    if from.endpoint() == to.endpoint() {
        return Err(ToolError::input("--from and --to are the same account"));
    }
    let databases = dump::chosen(&from, &settings.only).await?;
    restore::check_target(&to, &databases, settings.merge).await?;
    restore::make_containers(&to, &databases).await?;
    let total = if settings.quiet { None } else { dump::expected_documents(&from, &databases).await };
    let mut counts = RestoredCounts { total, ..RestoredCounts::default() };
    let mut line = ProgressLine::new(settings.quiet);
    let mut followed = Vec::new();
    let mut container_count = 0;
    for database in &databases {
        for container in restore::containers(database) {
            container_count += 1;
            let pair = ContainerPair::open(&from, &to, text(database, "id"), text(container, "id")).await?;
            let positions = pair.copy_all(settings, &mut counts, &mut line).await?;
            followed.push((pair, positions));
        }
        definitions::make_rest(&to, database).await?;
    }
    line.end();
    let remark = counts.remark();
    let text = format!(
        "{} documents of {container_count} containers copied in {:.1} s{remark}",
        counts.written,
        line.seconds()
    );
    if settings.follow {
        tell(&format!("{text}\nfollowing changes (not deletions); end with Ctrl-C"));
        counts.total = None;
        counts.failed_told = counts.failed;
        counts.reasons.clear();
        follow(settings, followed, &mut counts, &mut line).await?;
    }
    Ok(ToolReport { text, is_complete: counts.failed == 0 })
}

/// What came of asking a range for changes.
enum FollowedPage {
    Nothing,
    Written,
    /// It was split or merged.
    RangeIsGone,
}

/// A container here and there.
struct ContainerPair {
    from: ContainerClient,
    to: ContainerClient,
}

impl ContainerPair {
    async fn open(
        from: &CosmosClient,
        to: &CosmosClient,
        database: &str,
        name: &str,
    ) -> Result<ContainerPair, ToolError> {
        let what = format!("open {database}/{name}");
        let from = from.container(database, name).await.map_err(ToolError::account(what.clone()))?;
        let to = to.container(database, name).await.map_err(ToolError::account(what))?;
        Ok(ContainerPair { from, to })
    }

    async fn copy_all(
        &self,
        settings: &CopySettings,
        counts: &mut RestoredCounts,
        line: &mut ProgressLine,
    ) -> Result<Vec<SnapshotRange>, ToolError> {
        let folder: PathBuf = std::env::temp_dir();
        let mut snapshot =
            ContainerSnapshot::take(&self.from, &folder, |count| line.show(count as u64, None, "read"))
                .await?;
        let positions = snapshot.take_ranges();
        let (sender, queue) = mpsc::channel(4);
        let reader = tokio::task::spawn_blocking(move || {
            let mut chunk = Vec::with_capacity(CHUNK);
            snapshot.for_each(|document| {
                chunk.push(Bytes::copy_from_slice(document));
                if chunk.len() >= CHUNK {
                    // Whoever wrote them has failed, and tells.
                    let _ = sender.blocking_send(std::mem::take(&mut chunk));
                }
                Ok(())
            })?;
            let _ = sender.blocking_send(chunk);
            Ok::<(), ToolError>(())
        });
        restore::pour(&self.to, ExistingMode::Upsert, settings.workers, queue, counts, line).await?;
        reader
            .await
            .map_err(|error| ToolError::input(format!("the reader ended unexpectedly: {error}")))??;
        Ok(positions)
    }

    /// Writes what has changed in a range.
    async fn follow_once(
        &self,
        place: &mut SnapshotRange,
        settings: &CopySettings,
        counts: &mut RestoredCounts,
        line: &mut ProgressLine,
    ) -> Result<FollowedPage, ToolError> {
        let page = match self.from.changes(&place.range, &place.position, 1_000).await {
            Ok(page) => page,
            Err(error) if error.status() == 410 => return Ok(FollowedPage::RangeIsGone),
            Err(error) => return Err(ToolError::account("read changes")(error)),
        };
        if page.is_end {
            place.position = FeedStart::Position(page.position);
            return Ok(FollowedPage::Nothing);
        }
        let (sender, queue) = mpsc::channel(1);
        let documents =
            page.items.iter().map(|item| Bytes::from(documents::without_system_properties(item))).collect();
        let _ = sender.send(documents).await;
        drop(sender);
        restore::pour(&self.to, ExistingMode::Upsert, settings.workers, queue, counts, line).await?;
        place.position = FeedStart::Position(page.position);
        Ok(FollowedPage::Written)
    }
}

async fn follow(
    settings: &CopySettings,
    mut followed: Vec<(ContainerPair, Vec<SnapshotRange>)>,
    counts: &mut RestoredCounts,
    line: &mut ProgressLine,
) -> Result<(), ToolError> {
    loop {
        let mut is_moved = false;
        for (pair, places) in &mut followed {
            let mut is_split = false;
            for place in places.iter_mut() {
                match pair.follow_once(place, settings, counts, line).await? {
                    FollowedPage::Nothing => {}
                    FollowedPage::Written => is_moved = true,
                    FollowedPage::RangeIsGone => is_split = true,
                }
                tell_failures(counts, &pair.to, line);
            }
            if is_split {
                *places = snapshot::after_split(&pair.from, places).await?;
                is_moved = true;
            }
        }
        if !is_moved {
            tokio::time::sleep(FOLLOW_EVERY).await;
        }
    }
}

/// Failures are told as they happen, since nobody knows when the command ends.
fn tell_failures(counts: &mut RestoredCounts, container: &ContainerClient, line: &mut ProgressLine) {
    if counts.failed > counts.failed_told {
        line.end();
        let count = counts.failed - counts.failed_told;
        let (database, name) = (container.database(), container.name());
        tell(&format!("{count} documents of {database}/{name} failed:\n{}", counts.reasons.join("\n")));
        counts.reasons.clear();
    }
    counts.failed_told = counts.failed;
}
