//! How large the results of functions may grow, and how the size of a value is estimated.
//!
//! Time is bounded elsewhere: who evaluates a call charges for its arguments by their [`weight`], and functions whose work
//! grows faster than their arguments charge for the rest where they do it.
//! A result beyond a limit is `Undefined`. All limits but the one of REPLICATE (which the service has too) lie far above
//! what a document of 2 MB holds; they exist because a query can name the same property thousands of times.

use std::mem::size_of;

use astrarium_value::Value;

/// The longest text a function builds by joining others, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// The longest text REPLICATE builds, in UTF-16 units, as the service has it.
pub const REPLICATE_UNITS_MAX: usize = 10_000;

/// The largest array a function builds by joining others, in bytes as [`approximate_bytes`] counts them.
pub const ARRAY_BYTES_MAX: usize = 64 << 20;

/// The most points of one polygon, as the service has it.
pub const POLYGON_POINTS_MAX: usize = 4096;

/// Bytes of text that are looked at in about one step of `env::charge`.
pub const TEXT_BYTES_PER_STEP: usize = 32;

/// About how many steps it takes to look at all of a value once.
pub fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + (text.len() / TEXT_BYTES_PER_STEP) as u64,
        Value::Array(values) => values.iter().fold(1, |sum, value| sum + weight(value)),
        Value::Object(object) => object.iter().fold(1, |sum, (_, value)| sum + 2 + weight(value)),
        _ => 1,
    }
}

/// Whether the work that this thread is at may go on for so many steps. Loops end where it may not; what they then give is
/// never used, for whoever asked looks at the same meter.
pub(crate) fn may_go_on(steps: usize) -> bool {
    astrarium_env::charge(steps as u64).is_ok()
}

/// About how much memory a value holds: itself, its text, its elements and members.
pub fn approximate_bytes(value: &Value) -> usize {
    /// Two counters in front of shared text.
    const SHARED_HEADER: usize = 16;
    size_of::<Value>()
        + match value {
            Value::String(text) => SHARED_HEADER + text.len(),
            Value::Array(values) => values.iter().map(approximate_bytes).sum(),
            Value::Object(object) => object
                .iter()
                .map(|(name, value)| {
                    size_of::<usize>() * 2 + SHARED_HEADER + name.len() + approximate_bytes(value)
                })
                .sum(),
            _ => 0,
        }
}
