//! If-Match and If-None-Match, as an operation sees them.

use crate::Error;
use astrarium_store::etag_text;

/// The etags a condition names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EtagCondition {
    /// Whatever version there is (`*`).
    Any,
    /// One of these versions, texts without their quotes.
    OneOf(Vec<String>),
}

impl EtagCondition {
    /// Whether a version meets the condition.
    pub fn matches(&self, stamp: u64, timestamp: u64) -> bool {
        match self {
            EtagCondition::Any => true,
            EtagCondition::OneOf(etags) => {
                let current = etag_text(stamp, timestamp);
                let current = current.trim_matches('"');
                etags.iter().any(|etag| etag == current)
            }
        }
    }
}

/// What must hold of the present version for a request to go on.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// The present version must be one of these.
    pub if_match: Option<EtagCondition>,
    /// The present version must be none of these.
    pub if_none_match: Option<EtagCondition>,
}

impl Conditions {
    /// Checks a write against the version that is there.
    pub(crate) fn check_write(&self, stamp: u64, timestamp: u64) -> Result<(), Error> {
        let met = self.if_match.as_ref().is_none_or(|condition| condition.matches(stamp, timestamp))
            && self.if_none_match.as_ref().is_none_or(|condition| !condition.matches(stamp, timestamp));
        if met { Ok(()) } else { Err(Error::PreconditionFailed) }
    }

    /// Whether a reader has this version already.
    pub fn is_not_modified(&self, stamp: u64, timestamp: u64) -> bool {
        self.if_none_match.as_ref().is_some_and(|condition| condition.matches(stamp, timestamp))
    }
}
