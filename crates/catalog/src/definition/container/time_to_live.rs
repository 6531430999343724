//! How long documents live: the default of a container, and the lifetime of copies outside it.

use crate::definition::Invalid;
use crate::definition::members::Members;
use serde_json::Value;

/// Longest lifetime, in seconds.
const SECONDS_MAX: i64 = i32::MAX as i64;

/// Whether and when documents of a container expire. Without one, not even those that name a lifetime do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Only documents that name a lifetime expire (-1).
    NoDefault,
    /// Documents that name no lifetime expire so many seconds after their last write.
    Seconds(u32),
}

/// Reads the `defaultTtl` member of a container.
pub(super) fn default_from_json(container: &Members<'_>) -> Result<Option<DefaultTtl>, Invalid> {
    match container.integer("defaultTtl")? {
        None => Ok(None),
        Some(-1) => Ok(Some(DefaultTtl::NoDefault)),
        Some(seconds @ 1..=SECONDS_MAX) => Ok(Some(DefaultTtl::Seconds(seconds as u32))),
        Some(other) => Err(Invalid::new(format!(
            "The defaultTtl {other} is invalid. It must be -1 (only documents with a ttl of their own expire) or a \
             number of seconds from 1 to {SECONDS_MAX}; leave it out to turn expiry off."
        ))),
    }
}

/// The `defaultTtl` member as reads show it.
pub(super) fn default_to_json(ttl: DefaultTtl) -> Value {
    match ttl {
        DefaultTtl::NoDefault => (-1).into(),
        DefaultTtl::Seconds(seconds) => seconds.into(),
    }
}

/// Reads the `analyticalStorageTtl` member of a container: seconds, 0 for off, -1 for ever.
pub(super) fn analytical_from_json(container: &Members<'_>) -> Result<Option<i32>, Invalid> {
    let Some(seconds) = container.integer("analyticalStorageTtl")? else {
        return Ok(None);
    };
    match i32::try_from(seconds) {
        Ok(seconds @ -1..) => Ok(Some(seconds)),
        _ => Err(Invalid::new(format!(
            "The analyticalStorageTtl {seconds} is invalid. It must be -1 (for ever), 0 (off) or a number of \
             seconds up to {SECONDS_MAX}."
        ))),
    }
}
