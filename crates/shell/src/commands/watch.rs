//! `.watch`: the change feed of the container, live.

use crate::failure::ShellFailure;
use crate::json_text::compact;
use crate::session::Shell;
use crate::words::{CommandArguments, CommandWord};
use astrarium_client::{ChangesPage, ContainerClient, FeedStart, RangeOfKeys};
use std::time::Duration;

/// How long to wait after all ranges had nothing new.
const PAUSE: Duration = Duration::from_millis(300);
/// Changes that are asked for at once.
const PAGE_ITEMS: u32 = 100;

/// Shows changes until Ctrl-C, or until there were so many.
pub(super) async fn watch(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let arguments = CommandArguments::sort(words, &["--count"], &["--all"])?;
    arguments.end()?;
    let mut left = match arguments.option("--count") {
        Some(word) => word
            .text
            .parse()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| ShellFailure::told("--count needs a number above zero"))?,
        None => u64::MAX,
    };
    let container = shell.current_container().await?;
    let start = if arguments.has("--all") { FeedStart::Beginning } else { FeedStart::Now };
    let mut positions: Vec<(RangeOfKeys, FeedStart)> =
        container.ranges().await?.into_iter().map(|range| (range, start.clone())).collect();
    // Positions are taken before anything is said, so that what happens from then on is seen.
    shell.output.is_live = true;
    shell.is_watching = true;
    let mut is_announced = false;
    loop {
        let mut is_quiet = true;
        let mut index = 0;
        while let Some((range, position)) = positions.get_mut(index) {
            match container.changes(range, position, PAGE_ITEMS).await {
                Ok(page) => {
                    is_quiet &= page.items.is_empty();
                    *position = FeedStart::Position(page.position.clone());
                    left = show(shell, &page, left)?;
                    index += 1;
                }
                Err(error) if error.status() == 410 => {
                    positions = followed(&container, &positions).await?;
                    index = 0;
                }
                Err(error) => return Err(error.into()),
            }
            if left == 0 {
                return Ok(());
            }
        }
        if !is_announced {
            shell.remark("watching; Ctrl-C ends it");
            is_announced = true;
        }
        if is_quiet {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn show(shell: &mut Shell, page: &ChangesPage, mut left: u64) -> Result<u64, ShellFailure> {
    for item in page.items.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        let text = String::from_utf8_lossy(item);
        let line = shell.output.json_for_eyes(&compact(&text)).into_owned();
        shell.output.line(&line)?;
        left -= 1;
    }
    Ok(left)
}

/// The ranges after a split or merge, each with the position of the one it came from.
async fn followed(
    container: &ContainerClient,
    before: &[(RangeOfKeys, FeedStart)],
) -> Result<Vec<(RangeOfKeys, FeedStart)>, ShellFailure> {
    let ranges = container.ranges().await?;
    if ranges.iter().all(|range| before.iter().any(|(old, _)| old == range)) {
        return Err(ShellFailure::told(
            "the server says that a key range is gone, and still lists it; try again",
        ));
    }
    let position = |range: &RangeOfKeys| {
        let origin = before.iter().find(|(old, _)| old.min <= range.min && range.min < old.max);
        origin.map_or(FeedStart::Beginning, |(_, position)| position.clone())
    };
    Ok(ranges
        .into_iter()
        .map(|range| {
            let from = position(&range);
            (range, from)
        })
        .collect())
}
