//! The properties that the database gives to documents, listed once.
//!
//! Whoever treats them apart (what a client sends for them is dropped, no index has some of them, `SELECT *` shows most
//! of them) reads this list. Not here: their values (`store`), the dictionary of binary JSON, which the protocol fixes (`wire`).

/// A resource id.
pub const RID: &str = "_rid";
/// The link by resource ids.
pub const SELF_LINK: &str = "_self";
/// What changes with every write.
pub const ETAG: &str = "_etag";
/// A relic that SDKs still expect.
pub const ATTACHMENTS: &str = "_attachments";
/// The time of the last write in seconds.
pub const TIMESTAMP: &str = "_ts";
/// The place of the last write in its key range, shown by change feeds only.
pub const LSN: &str = "_lsn";

/// Everything that belongs to the database: what a client sends for it is dropped.
pub const ALL: [&str; 6] = [RID, SELF_LINK, ETAG, ATTACHMENTS, TIMESTAMP, LSN];

/// What every document shows.
pub const SHOWN: [&str; 5] = [RID, SELF_LINK, ETAG, ATTACHMENTS, TIMESTAMP];

/// What no index has.
pub const NOT_INDEXED: [&str; 4] = [RID, SELF_LINK, ATTACHMENTS, LSN];
