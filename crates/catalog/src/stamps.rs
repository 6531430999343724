//! Stamps: numbers that no other process over the same storage gives, now or after a restart. Etags are made of them.
//!
//! In: an engine. Out: stamps, from blocks that this process drew. A block is the version of an empty commit of the catalog, which
//! nobody is given twice, in any process, after any restart, on every engine: `1 (1 bit) | version (43) | place in the block (20)`.
//! The first bit keeps them apart from those that older versions of the program made of the clock.
//! Invariants
//! - No stamp is given twice, whatever clocks say.
//! - Nothing is committed before the first stamp is asked for, so a process that only reads writes nothing.

use crate::{CATALOG_SHARD, records};
use astrarium_kv::{Engine, Error};
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bits of a stamp for the place in its block: one commit for a million stamps.
const PLACE_BITS: u32 = 20;
/// Stamps of blocks have it, and no other ones.
const FROM_BLOCK: u64 = 1 << 63;

/// The version of the catalog that a stamp's block is; 0 for stamps of older versions of the program.
pub fn version_of(stamp: u64) -> u64 {
    if stamp & FROM_BLOCK == 0 { 0 } else { (stamp ^ FROM_BLOCK) >> PLACE_BITS }
}

/// Gives stamps; clones share their block.
#[derive(Clone)]
pub struct StampSource {
    engine: Arc<dyn Engine>,
    block: Arc<Mutex<Range<u64>>>,
}

impl fmt::Debug for StampSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StampSource").field("shard", &CATALOG_SHARD).finish_non_exhaustive()
    }
}

impl StampSource {
    /// Gives stamps of this storage.
    pub fn new(engine: Arc<dyn Engine>) -> StampSource {
        StampSource { engine, block: Arc::default() }
    }

    /// A stamp that nobody was given before.
    pub async fn next(&self) -> Result<u64, Error> {
        loop {
            if let Some(stamp) = self.block.lock().next() {
                return Ok(stamp);
            }
            let version = self.engine.commit(records::batch()).await?.0;
            let first = FROM_BLOCK | version << PLACE_BITS;
            let mut block = self.block.lock();
            // Of two who draw at once the later block counts.
            if block.start < first {
                *block = first..first + (1 << PLACE_BITS);
            }
        }
    }
}
