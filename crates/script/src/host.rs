//! What a script asks of the database: the one trait through which it reads and writes.
//!
//! A host is one transaction: a snapshot of one logical partition, and the writes staged on it. The thread of the script
//! owns the host and calls it, one call at a time; calls block that thread, so an implementer that waits for
//! asynchronous work does so with a channel or a runtime handle. Nothing a host does may be visible to anybody else
//! before its owner commits it, and its owner gets it back from an [`crate::Answer`] only.
//!
//! Documents are JSON texts in both directions: what the script printed, and what the database stores.

use astrarium_env::Instant;
use std::any::Any;

/// One transaction, as a script sees it.
pub trait Host: Any + Send {
    /// The script starts now, after waiting for a thread, and is ended at this moment: what a call has to wait for
    /// should not take longer.
    fn begin(&mut self, end: Instant) {
        let _ = end;
    }

    /// Creates a document; the answer is the document as it would be stored.
    fn create(&mut self, document: &str, index: IndexAction) -> Result<Written, HostError>;

    /// Creates the document, or replaces the one of the same id; `etag` must be the present one if it is given.
    fn upsert(
        &mut self,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError>;

    /// Replaces a document that is there.
    fn replace(
        &mut self,
        link: DocumentLink<'_>,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError>;

    /// Deletes a document that is there.
    fn delete(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), HostError>;

    /// Reads a document, this transaction's own writes included.
    fn read(&mut self, link: DocumentLink<'_>, if_none_match: Option<&str>) -> Result<Read, HostError>;

    /// A page of all documents of the logical partition.
    fn read_feed(&mut self, paging: Paging<'_>) -> Result<RowPage, HostError>;

    /// A page of the rows of a query over the logical partition.
    fn query(&mut self, query: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError>;

    /// Does a write whose result the script does not look at.
    fn write_unseen(&mut self, write: UnseenWrite<'_>) -> Result<(), HostError> {
        match write {
            UnseenWrite::Create { document, index } => self.create(document, index).map(drop),
            UnseenWrite::Upsert { document, etag, index } => self.upsert(document, etag, index).map(drop),
            UnseenWrite::Replace { link, document, etag, index } => {
                self.replace(link, document, etag, index).map(drop)
            }
            UnseenWrite::Delete { link, etag } => self.delete(link, etag),
        }
    }

    /// The document that the script is likely to read first, as [`Host::read`] would give it. The script has not read it
    /// before [`Host::read_unseen`] says so.
    fn foresee(&mut self, link: DocumentLink<'_>) -> Option<Vec<u8>> {
        let _ = link;
        None
    }

    /// The script has read a document that was foreseen.
    fn read_unseen(&mut self, link: DocumentLink<'_>) -> Result<(), HostError> {
        self.read(link, None).map(drop)
    }

    /// Computes one of the functions of `__.spatial`; the answer is JSON.
    fn spatial(&mut self, function: Spatial<'_>) -> Result<String, HostError> {
        let _ = function;
        Err(HostError::new(400, "Spatial functions are not available in scripts."))
    }

    /// The script takes longer than a moment: what was put off is to be done now.
    fn catch_up(&mut self) {}

    /// Whether the transaction can take more work. A script whose call is not accepted is expected to wrap up, so this
    /// turns false while what is staged can still be committed.
    fn accepts(&mut self) -> bool {
        true
    }
}

/// Which document, by one of its two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentLink<'a> {
    /// By the resource id in its self link.
    Rid(&'a str),
    /// By its id within the logical partition.
    Id(&'a str),
}

/// Whether a document written is to be found by the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexAction {
    /// As the container's policy says.
    #[default]
    Default,
    /// Indexed, even where documents are not by default.
    Include,
    /// Left out.
    Exclude,
}

/// A write whose result nobody looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnseenWrite<'a> {
    /// See [`Host::create`].
    Create {
        /// Its JSON.
        document: &'a str,
        /// Whether the index finds it.
        index: IndexAction,
    },
    /// See [`Host::upsert`].
    Upsert {
        /// Its JSON.
        document: &'a str,
        /// What the present one must have.
        etag: Option<&'a str>,
        /// Whether the index finds it.
        index: IndexAction,
    },
    /// See [`Host::replace`].
    Replace {
        /// Which one.
        link: DocumentLink<'a>,
        /// The JSON of the new one.
        document: &'a str,
        /// What the present one must have.
        etag: Option<&'a str>,
        /// Whether the index finds it.
        index: IndexAction,
    },
    /// See [`Host::delete`].
    Delete {
        /// Which one.
        link: DocumentLink<'a>,
        /// What it must have.
        etag: Option<&'a str>,
    },
}

/// A document that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The JSON text with its system properties.
    pub document: Vec<u8>,
    /// Whether it is new.
    pub created: bool,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The JSON text.
    Document(Vec<u8>),
    /// The document has the etag given, so its text is not sent.
    NotModified,
}

/// Which part of a result is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging<'a> {
    /// How many rows at most; nothing if the host decides.
    pub row_count_max: Option<u32>,
    /// Where the last page ended.
    pub continuation: Option<&'a str>,
}

/// A query as the script wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptQuery<'a> {
    /// SQL.
    pub text: &'a str,
    /// The JSON array of names and values, if there are parameters.
    pub parameters: Option<&'a str>,
    /// Whether the script allows a scan where no index serves.
    pub enable_scan: bool,
}

/// A page of rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowPage {
    /// The JSON text of each row.
    pub rows: Vec<Vec<u8>>,
    /// Where the next page starts, if there may be one.
    pub continuation: Option<String>,
}

/// A question about GeoJSON shapes, each given as JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spatial<'a> {
    /// Metres between two shapes.
    Distance(&'a str, &'a str),
    /// Whether two shapes have a point in common.
    Intersects(&'a str, &'a str),
    /// Whether the first shape lies in the second.
    Within(&'a str, &'a str),
    /// Whether the shape is valid.
    IsValid(&'a str),
    /// Whether the shape is valid, and why not.
    IsValidDetailed(&'a str),
}

/// Why a host did not do what a script asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// The status the script sees as `number`.
    pub number: u16,
    /// What went wrong, in a sentence.
    pub message: String,
    /// Whether the transaction can no longer succeed, so that the script need not be asked what to do about it.
    pub fatal: bool,
}

impl HostError {
    /// An error that the script may handle.
    pub fn new(number: u16, message: impl Into<String>) -> HostError {
        HostError { number, message: message.into(), fatal: false }
    }

    /// An error that ends the script: storage is gone, or the transaction has lost against another one.
    pub fn fatal(number: u16, message: impl Into<String>) -> HostError {
        HostError { number, message: message.into(), fatal: true }
    }
}
