//! All documents of a container as of one moment, while others write to it.
//!
//! In: a container over the wire. Out: each document once, as it was at a moment after the reading began.
//! How: the change feed of every key range is read to its end, which gives every document in its latest version; what changes meanwhile comes
//! later in the feed, and the later version counts. Deletions are not in that feed, so afterwards all documents are listed by their resource
//! ids, which nothing made later has again: whatever is held and not listed was deleted. If nothing is missing, everything that is held was
//! there at the end of the feed, and that is the moment. Otherwise what is missing is dropped, and one more round is made. With several key
//! ranges all feeds are asked once more before the listing: if none has moved, the moment is one for the whole container; under a steady load
//! it is one for each key range, and the manifest says so.
//! Documents are kept in a file meanwhile, in memory only where each begins.

use crate::documents;
use crate::error::ToolError;
use astrarium_client::{ContainerClient, FeedStart, QueryRequest, RangeOfKeys, raw_json};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Documents of a page of the feed.
const PAGE_ITEMS: u32 = 1_000;
/// Rounds after which deletions that never end are given up on.
const ROUNDS_MAX: usize = 50;
/// How often all ranges are asked whether they stand still.
const STILL_TRIES: usize = 20;
/// How often a container is read from its beginning because its key ranges have changed.
const SPLITS_MAX: usize = 5;

/// What a document is known by: a hash of its resource id, which one that is made anew under its id does not have.
type DocumentKey = [u8; 16];

/// The documents of a container, in a file.
pub(crate) struct ContainerSnapshot {
    file: BufWriter<File>,
    end: u64,
    places: HashMap<DocumentKey, (u64, u32)>,
    ranges: Vec<SnapshotRange>,
    /// Whether the moment is one for the whole container.
    is_one_moment: bool,
}

/// How far the feed of a range was read.
pub(crate) struct SnapshotRange {
    pub(crate) range: RangeOfKeys,
    pub(crate) position: FeedStart,
}

impl ContainerSnapshot {
    /// Reads a container; `folder` has room for its documents. After a split it is read anew: positions and listings of the old ranges are useless.
    pub(crate) async fn take(
        container: &ContainerClient,
        folder: &Path,
        mut tell: impl FnMut(usize),
    ) -> Result<ContainerSnapshot, ToolError> {
        for _ in 0..SPLITS_MAX {
            match ContainerSnapshot::take_once(container, folder, &mut tell).await {
                Err(ToolError::Account { source, .. }) if source.status() == 410 => {}
                taken => return taken,
            }
        }
        Err(ToolError::input(format!(
            "the key ranges of {}/{} change faster than it can be read; try again later",
            container.database(),
            container.name()
        )))
    }

    async fn take_once(
        container: &ContainerClient,
        folder: &Path,
        mut tell: impl FnMut(usize),
    ) -> Result<ContainerSnapshot, ToolError> {
        let file = tempfile::tempfile_in(folder).map_err(ToolError::file("write into", folder))?;
        let ranges = container.ranges().await.map_err(ToolError::account("read the key ranges"))?;
        let ranges = ranges.into_iter().map(|range| SnapshotRange { range, position: FeedStart::Beginning });
        let mut snapshot = ContainerSnapshot {
            file: BufWriter::with_capacity(1 << 20, file),
            end: 0,
            places: HashMap::new(),
            ranges: ranges.collect(),
            is_one_moment: false,
        };
        for round in 0.. {
            snapshot.catch_up(container, &mut tell).await?;
            snapshot.stand_still(container, &mut tell).await?;
            let missing = snapshot.missing(container).await?;
            if missing.is_empty() {
                break;
            }
            if round == ROUNDS_MAX {
                return Err(ToolError::input(format!(
                    "documents of {}/{} are deleted faster than they can be listed, so there is no moment to be read; try again later",
                    container.database(),
                    container.name()
                )));
            }
            for key in missing {
                snapshot.places.remove(&key);
            }
        }
        snapshot.file.flush().map_err(ToolError::file("write into", folder))?;
        Ok(snapshot)
    }

    /// Finds a moment at which all ranges were where they have been read to; a single range always is.
    async fn stand_still(
        &mut self,
        container: &ContainerClient,
        tell: &mut impl FnMut(usize),
    ) -> Result<(), ToolError> {
        self.is_one_moment = self.ranges.len() == 1;
        for _ in 0..STILL_TRIES {
            if self.is_one_moment {
                break;
            }
            self.is_one_moment = !self.catch_up(container, tell).await?;
        }
        Ok(())
    }

    /// Reads the feeds of all ranges to their ends; whether there was anything new.
    async fn catch_up(
        &mut self,
        container: &ContainerClient,
        tell: &mut impl FnMut(usize),
    ) -> Result<bool, ToolError> {
        let mut is_moved = false;
        for index in 0..self.ranges.len() {
            while let Some(entry) = self.ranges.get(index) {
                let page =
                    container.changes(&entry.range, &entry.position, PAGE_ITEMS).await.map_err(changed)?;
                if let Some(entry) = self.ranges.get_mut(index) {
                    entry.position = FeedStart::Position(page.position.clone());
                }
                if page.is_end {
                    break;
                }
                is_moved = true;
                for item in &page.items {
                    self.keep(item)?;
                }
                tell(self.places.len());
                if page.reaches_end() {
                    break;
                }
            }
        }
        Ok(is_moved)
    }

    fn keep(&mut self, item: &[u8]) -> Result<(), ToolError> {
        let document = documents::without_system_properties(item);
        let key = key_of(raw_json::member(item, "_rid"))?;
        self.file.write_all(&document).map_err(ToolError::file("write", Path::new("a temporary file")))?;
        self.places.insert(key, (self.end, document.len() as u32));
        self.end += document.len() as u64;
        Ok(())
    }

    /// Documents that are held, and are no longer listed.
    async fn missing(&self, container: &ContainerClient) -> Result<Vec<DocumentKey>, ToolError> {
        let mut listed: HashSet<DocumentKey> = HashSet::with_capacity(self.places.len());
        let query = listing();
        for entry in &self.ranges {
            let mut continuation: Option<String> = None;
            loop {
                let page = container
                    .query_range(&query, &entry.range, continuation.as_deref())
                    .await
                    .map_err(changed)?;
                for item in &page.items {
                    listed.insert(key_of(Some(item))?);
                }
                continuation = page.continuation;
                if continuation.is_none() {
                    break;
                }
            }
        }
        Ok(self.places.keys().filter(|key| !listed.contains(*key)).copied().collect())
    }

    /// Whether the moment is one for the whole container.
    pub(crate) fn is_one_moment(&self) -> bool {
        self.is_one_moment
    }

    /// How many documents there are.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// How far the feeds were read, for whoever follows them.
    pub(crate) fn take_ranges(&mut self) -> Vec<SnapshotRange> {
        std::mem::take(&mut self.ranges)
    }

    /// Which moment it is, for the manifest.
    pub(crate) fn moment(&self) -> Value {
        let positions = self.ranges.iter().map(|entry| {
            let position = match &entry.position {
                FeedStart::Position(position) => position.as_str(),
                _ => "",
            };
            json!({"range": entry.range.id, "position": position})
        });
        json!({"of": if self.is_one_moment { "container" } else { "keyRange" }, "positions": positions.collect::<Vec<_>>()})
    }

    /// Gives every document, in the order in which it was read.
    pub(crate) fn for_each(
        self,
        mut take: impl FnMut(&[u8]) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let failed = |error| ToolError::file("read", Path::new("a temporary file"))(error);
        let file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        let mut reader = std::io::BufReader::with_capacity(1 << 20, file);
        let mut places: Vec<(u64, u32)> = self.places.into_values().collect();
        places.sort_unstable();
        let mut at = 0;
        reader.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut document = Vec::new();
        for (start, length) in places {
            reader.seek_relative((start - at).cast_signed()).map_err(failed)?;
            document.resize(length as usize, 0);
            reader.read_exact(&mut document).map_err(failed)?;
            at = start + u64::from(length);
            take(&document)?;
        }
        Ok(())
    }
}

/// A query for the resource ids of all documents.
fn listing() -> QueryRequest {
    QueryRequest { page_size: Some(10_000), ..QueryRequest::new("SELECT VALUE c._rid FROM c") }
}

fn key_of(rid: Option<&[u8]>) -> Result<DocumentKey, ToolError> {
    let rid =
        rid.ok_or_else(|| ToolError::input("a document has no _rid, so the server is not understood"))?;
    let mut key = [0; 16];
    key.iter_mut().zip(Sha256::digest(rid)).for_each(|(to, from)| *to = from);
    Ok(key)
}

/// The ranges after a split or merge, each with the position of the one it came from. One that came of several begins anew: their positions
/// do not compare.
pub(crate) async fn after_split(
    container: &ContainerClient,
    before: &[SnapshotRange],
) -> Result<Vec<SnapshotRange>, ToolError> {
    let ranges = container.ranges().await.map_err(ToolError::account("read the key ranges"))?;
    if ranges.iter().all(|range| before.iter().any(|old| old.range == *range)) {
        return Err(ToolError::input(
            "the server says that a key range is gone, and still lists it; try again",
        ));
    }
    Ok(ranges
        .into_iter()
        .map(|range| SnapshotRange { position: position_of(&range, before), range })
        .collect())
}

fn position_of(range: &RangeOfKeys, before: &[SnapshotRange]) -> FeedStart {
    let origin = before.iter().find(|old| old.range.min <= range.min && range.max <= old.range.max);
    origin.map_or(FeedStart::Beginning, |old| old.position.clone())
}

fn changed(error: astrarium_client::ClientError) -> ToolError {
    ToolError::account("read documents")(error)
}
