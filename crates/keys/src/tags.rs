//! The first byte of every key, by space. A byte is never given a second meaning.

/// Space `Meta`.
pub mod meta {
    /// A catalog resource: see [`crate::record::record_key`].
    pub const RECORD: u8 = 0x01;
    /// From a name to a catalog resource: see [`crate::record::name_key`].
    pub const NAME: u8 = 0x02;
    /// The key ranges of a container: see [`crate::record::ranges_key`].
    pub const RANGES: u8 = 0x03;
    /// A shard whose data waits to be removed: see [`crate::record::sweep_key`].
    pub const SWEEP: u8 = 0x04;
    /// The generations of a container's index: see [`crate::index_state::generations_key`].
    pub const GENERATIONS: u8 = 0x05;
    /// How far an index under construction is in a shard: see [`crate::index_state::watermark_key`]. Further bytes tell other records
    /// of the shard: see [`crate::resharding::copy_key`].
    pub const WATERMARK: u8 = 0x06;
    /// A generation of a shard's index that waits to be removed: see [`crate::index_state::sweep_key`].
    pub const SWEEP_GENERATION: u8 = 0x07;
    /// Work that one process at a time does: see [`crate::lease::lease_key`].
    pub const LEASE: u8 = 0x08;
    /// A delete of a logical partition that is not done yet: see [`crate::erasure::erasure_key`].
    pub const ERASURE: u8 = 0x09;
    /// New key ranges that are made of a container's: see [`crate::resharding`].
    pub const RESHARDING: u8 = 0x0B;
    /// What was done to all data of the account: see [`crate::account_state`].
    pub const ACCOUNT_STATE: u8 = 0x0C;
    /// A removed database of which something is left: see [`crate::removed_database`].
    pub const REMOVED_DATABASE: u8 = 0x0D;
}

/// Space `Body`.
pub mod body {
    /// A document: see [`crate::document::document_key`].
    pub const DOCUMENT: u8 = 0x01;
}

/// What everything of a shard in space `Log` begins with, one for each kind.
pub fn log_prefixes(shard: u64) -> [[u8; 9]; 5] {
    [log::NUMBER, log::FEED, log::UNIQUE, log::HISTORY, log::TRAIL].map(|tag| {
        let mut prefix = [tag; 9];
        prefix[1..].copy_from_slice(&shard.to_be_bytes());
        prefix
    })
}

/// Space `Log`.
pub mod log {
    /// From a document's number to its key: see [`crate::number`].
    pub const NUMBER: u8 = 0x01;
    /// The change feed, one entry for each document: see [`crate::feed`].
    pub const FEED: u8 = 0x02;
    /// The document that holds a unique key: see [`crate::unique`].
    pub const UNIQUE: u8 = 0x03;
    /// Every change of every document, where a container keeps them: see [`crate::history`].
    pub const HISTORY: u8 = 0x04;
    /// Documents that were changed while their shard was copied: see [`crate::trail`].
    pub const TRAIL: u8 = 0x06;
}
