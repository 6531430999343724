//! Transactions over the documents of a container: check what comes in, stage writes, commit once, read back.
//!
//! In: a [`Container`](astrarium_catalog::container::Container) with its ranges, a snapshot, documents. Out: one
//! `kv::WriteBatch` per transaction, and stored documents. Staging is computation; the caller's commit is the only
//! effect.
//! Invariants
//! - A transaction touches one range and relies only on keys it expects, so a lost update is impossible.
//! - Body, directory entry and change-feed entry of a document are written and removed together.
//! - An expired document is invisible to every reader here, and its place is free for a new one.
//!
//! Not here: names and permissions (`database`), the layout of keys (`keys`), what a document may be (`incoming`
//! knows the service's rules, SQL and scripts come above).

mod bodies;
mod changes;
mod feed;
pub mod incoming;
mod numbers;
mod present;
pub mod rebuild;
pub mod reshard;
pub mod restore;
mod scoped;
mod slices;
pub mod sweep;
pub mod transaction;
pub mod transfer;
pub mod verify;

pub use bodies::{DocumentMemory, UnreadDocuments};
pub use changes::{ChangePage, ChangePosition, trim_history};
pub use feed::PageLimit;
pub use incoming::{Incoming, Refusal};
pub use present::{
    etag_text, indexed_system_property, push_document, push_document_without_links, push_etag,
    system_property,
};
pub use scoped::{FeedError, FeedPage, FeedPosition, FeedReader, FeedScope, Floors};
pub use slices::KeySlice;
pub use transaction::{BYTE_TALLY, DOCUMENT_TALLY, Location, TermCounts, Transaction};

use astrarium_catalog as catalog;
use astrarium_catalog::container::Erasures;
use astrarium_catalog::definition::container::DefaultTtl;
use astrarium_index::LeftOut;
use astrarium_keys::Malformed;
use astrarium_keys::body::{Body, Header};
use astrarium_kv::{self as kv, Engine, Space, View};
use bytes::Bytes;

/// Why documents could not be read or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The engine failed or refused.
    #[error(transparent)]
    Storage(#[from] kv::Error),
    /// Stored bytes are damaged. The operator's to restore.
    #[error("stored data is damaged: {0}")]
    Malformed(#[from] Malformed),
    /// The range takes no more writes, since others take its place in a moment.
    #[error("the key range is about to be replaced by others")]
    RangeClosed,
    /// The index names a document that is not there, or that has not expired as it says. It is derived data: what it was asked for can be had without it.
    #[error("the index names document {number} of shard {}, which is not there or not so", shard.0)]
    DanglingEntry {
        /// The shard.
        shard: kv::ShardId,
        /// The document's number.
        number: u64,
    },
}

impl From<catalog::Error> for Error {
    fn from(error: catalog::Error) -> Error {
        match error {
            catalog::Error::Storage(error) => error.into(),
            catalog::Error::Malformed(error) => error.into(),
        }
    }
}

/// What decides whether a document has expired.
#[derive(Debug, Clone, Copy)]
pub struct Expiry {
    /// The container's default: `None` switches expiry off.
    pub default_ttl: Option<DefaultTtl>,
    /// Now, in seconds.
    pub now: u64,
}

/// Which documents a reader shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisibleDocuments {
    pub(crate) expiry: Expiry,
    /// Those that it does not show, because an index that would not find them serves the query.
    pub(crate) left_out: Option<LeftOut>,
}

impl VisibleDocuments {
    /// Whether the document at a key is among them.
    pub(crate) fn has(self, erasures: &Erasures, key: &[u8], header: &Header) -> bool {
        self.expiry.shows(erasures, key, header)
            && !self.left_out.is_some_and(|left_out| left_out.has(header.index_directive))
    }
}

impl Expiry {
    /// Whether a document at a key is visible: it is alive, and not deleted with its partition.
    pub fn shows(self, erasures: &Erasures, key: &[u8], header: &Header) -> bool {
        self.is_alive(header) && !erasures.has(key, header.lsn)
    }

    /// Whether a document has not expired.
    pub fn is_alive(self, header: &Header) -> bool {
        let lifetime = match (header.ttl, self.default_ttl) {
            (_, None) | (None, Some(DefaultTtl::NoDefault)) => return true,
            (Some(own), Some(_)) => match u64::try_from(own) {
                Ok(seconds) => seconds,
                Err(_) => return true,
            },
            (None, Some(DefaultTtl::Seconds(seconds))) => u64::from(seconds),
        };
        header.timestamp.saturating_add(lifetime) > self.now
    }
}

/// Reads one visible document.
pub async fn read(view: &dyn View, location: &Location<'_>, expiry: Expiry) -> Result<Option<Body>, Error> {
    let found = view.get(Space::Body, &location.key).await?;
    visible(found, location, expiry)
}

/// Reads one visible document as it is now; gives the version of its shard too.
pub async fn read_now(
    engine: &dyn Engine,
    mut location: Location<'_>,
    expiry: Expiry,
) -> Result<(Option<Body>, u64), Error> {
    let range = location.range;
    // Mostly nobody needs the key afterwards, and a second owner of it costs an allocation.
    let key =
        if range.erasures.is_empty() { std::mem::take(&mut location.key) } else { location.key.clone() };
    let (state, found) = engine.read(range.shard, range.epoch, Space::Body, key).await?;
    Ok((visible(found, &location, expiry)?, state.version))
}

fn visible(found: Option<Bytes>, location: &Location<'_>, expiry: Expiry) -> Result<Option<Body>, Error> {
    let Some(bytes) = found else { return Ok(None) };
    let body = Body::decode(bytes)?;
    let is_visible = expiry.shows(&location.range.erasures, &location.key, &body.header);
    Ok(is_visible.then_some(body))
}
