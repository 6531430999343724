//! Numbers of documents and of catalog resources, drawn from the engine in blocks.
//!
//! In: an engine and a shard. Out: numbers that nobody else is given, in this process or another.
//! Invariants
//! - Numbers of one source grow, unless two of its users draw a block at once.
//! - Whoever uses a number names it as the high water of the batch that does ([`astrarium_kv::Engine::draw`]).

use astrarium_kv::{Engine, Error, ShardId};
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Numbers drawn at once. What is left of a block when a process ends is lost, or given again if nobody can have used it.
const BLOCK: u64 = 64;

/// Gives numbers of a shard's number space; shared by everything that writes to the shard.
#[derive(Clone)]
pub struct NumberSource {
    engine: Arc<dyn Engine>,
    shard: ShardId,
    /// All numbers are above this one.
    above: u64,
    block: Arc<Mutex<Range<u64>>>,
}

impl fmt::Debug for NumberSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NumberSource").field("shard", &self.shard).finish_non_exhaustive()
    }
}

impl NumberSource {
    /// Gives numbers of a shard above one.
    pub fn new(engine: Arc<dyn Engine>, shard: ShardId, above: u64) -> NumberSource {
        NumberSource { engine, shard, above, block: Arc::default() }
    }

    /// A number nobody was given before.
    pub async fn next(&self) -> Result<u64, Error> {
        loop {
            if let Some(number) = self.block.lock().next() {
                return Ok(number);
            }
            let first = self.engine.draw(self.shard, self.above, BLOCK).await?;
            let mut block = self.block.lock();
            // Of two who draw at once the later block counts.
            if block.is_empty() || block.start < first {
                *block = first..first.saturating_add(BLOCK);
            }
        }
    }
}
