//! Histories: what concurrent clients did and were told, and whether one container can have behaved so.
//!
//! In: a server, again and again, since it may be stopped and killed meanwhile. Out: problems, none if all is well.
//! [`workload`] has the clients: writers that contend for a few documents, readers with session tokens that they pass on
//! (`sessions`), and readers of change feeds who go on from their last position (`followers`). Each notes what it did with stamps of one counter, so that it is
//! known what had ended before something else began. [`check`] looks at all of it afterwards.
//! Invariants
//! - Every version of a document has a number of its own, so that whoever sees a version knows its write.
//! - A write whose answer is lost may have happened or not, but not twice.
//!
//! Not here: starting, killing and splitting (whoever runs it does that), the exact model of every operation (`sim`).

pub mod check;
mod followers;
mod sessions;
pub mod workload;

/// A logical partition and an id in it.
pub type DocumentName = (u16, u16);

/// When something happened, by the counter of all.
pub type Stamp = u64;

/// What one operation did to one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRecord {
    /// Which document.
    pub name: DocumentName,
    /// The number that it wrote; nothing if it removed the document.
    pub version: Option<u64>,
    /// When the request was sent.
    pub began: Stamp,
    /// When its answer was there.
    pub ended: Stamp,
    /// The commit; nothing if nobody knows whether it happened.
    pub lsn: Option<u64>,
    /// The number of the version that it was made from, and that has to come right before it; nothing if any may.
    pub replaces: Option<u64>,
}

/// What a reader saw of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRecord {
    /// Which document.
    pub name: DocumentName,
    /// The number of the version; nothing if there was no document.
    pub version: Option<u64>,
    /// The commit that wrote it, as the reader was told.
    pub lsn: Option<u64>,
    /// When the request was sent.
    pub began: Stamp,
    /// When its answer was there.
    pub ended: Stamp,
}

/// One entry of a change feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Which document.
    pub name: DocumentName,
    /// The number of the version; nothing for a delete.
    pub version: Option<u64>,
    /// The commit.
    pub lsn: u64,
    /// The number of the version before, where the feed tells it.
    pub previous: Option<u64>,
}

/// A page of a change feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRecord {
    /// When the request was sent.
    pub began: Stamp,
    /// When its answer was there.
    pub ended: Stamp,
    /// What it showed; nothing means that all was seen.
    pub events: Vec<EventRecord>,
}

/// What a change feed shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedKind {
    /// Each document as it is now.
    Latest,
    /// Every change.
    Versions,
}

/// Whose changes somebody follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowedScope {
    /// All of the container.
    All,
    /// Of one logical partition.
    Partition(u16),
    /// Of the lower or the upper half of effective partition keys.
    Half(bool),
}

/// All pages that one reader of a change feed got, each from the position of the one before, from the container's beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowerRecord {
    /// What it asked for.
    pub kind: FeedKind,
    /// Of which documents.
    pub scope: FollowedScope,
    /// What it got.
    pub pages: Vec<PageRecord>,
}

/// Everything that was done to a container that began empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// By all writers.
    pub writes: Vec<WriteRecord>,
    /// By all readers; what a refused write tells of its document counts.
    pub reads: Vec<ReadRecord>,
    /// The readers of change feeds, in the end without anything left to see.
    pub followers: Vec<FollowerRecord>,
    /// What clients saw at once to be wrong.
    pub problems: Vec<String>,
}
