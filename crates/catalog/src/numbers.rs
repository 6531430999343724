//! Numbers of documents and of catalog resources, drawn from the engine in blocks.
//!
//! In: an engine and a shard. Out: numbers that nobody else is given, in this process or another.
//! Invariants
//! - Numbers of one source grow.
//! - Whoever tells the highest number that he has seen is given a higher one, so that numbers are in the order in which documents were
//!   made, also by several processes one after another. Blocks that another process has got beyond are left, and get smaller.
//! - One at a time draws, since a draw may be a durable commit on another machine; whoever takes one of the last numbers of a block draws
//!   the next one, so that the others need not wait.
//! - Whoever uses a number names it as the high water of the batch that does ([`astrarium_kv::Engine::draw`]).

use astrarium_kv::{Engine, Error, ShardId};
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Numbers drawn at first, and at most. What is left of a block when a process ends is lost, or given again if nobody can have used it.
const BLOCK_FIRST: u64 = 64;
const BLOCK_MAX: u64 = 1024;

/// The next block is drawn when this part of one is left.
const REST_PART: u64 = 4;

/// Gives numbers of a shard's number space; shared by everything that writes to the shard.
#[derive(Clone)]
pub struct NumberSource {
    engine: Arc<dyn Engine>,
    shard: ShardId,
    /// All numbers are above this one.
    above: u64,
    blocks: Arc<NumberBlocks>,
}

struct NumberBlocks {
    drawn: Mutex<DrawnNumbers>,
    /// Held by whoever draws.
    drawing: tokio::sync::Mutex<()>,
}

struct DrawnNumbers {
    rest: Range<u64>,
    /// What comes after them.
    spare: Range<u64>,
    /// How many were drawn the last time.
    size: u64,
}

impl fmt::Debug for NumberSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NumberSource").field("shard", &self.shard).finish_non_exhaustive()
    }
}

impl NumberSource {
    /// Gives numbers of a shard above one.
    pub fn new(engine: Arc<dyn Engine>, shard: ShardId, above: u64) -> NumberSource {
        let drawn = DrawnNumbers { rest: 0..0, spare: 0..0, size: BLOCK_FIRST / 2 };
        let blocks = NumberBlocks { drawn: Mutex::new(drawn), drawing: tokio::sync::Mutex::new(()) };
        NumberSource { engine, shard, above, blocks: Arc::new(blocks) }
    }

    /// A number nobody was given before, above the highest that is known to be used.
    pub async fn next_above(&self, used: u64) -> Result<u64, Error> {
        let NumberBlocks { drawn, drawing } = &*self.blocks;
        let taken = drawn.lock().take(used);
        if let Some(number) = taken {
            self.draw_ahead(number).await;
            return Ok(number);
        }
        let _drawing = drawing.lock().await;
        loop {
            let count = {
                let mut drawn = drawn.lock();
                // Somebody may have drawn meanwhile.
                if let Some(number) = drawn.take(used) {
                    return Ok(number);
                }
                drawn.renew()
            };
            let first = self.engine.draw(self.shard, self.above.max(used), count).await?;
            drawn.lock().rest = first..first.saturating_add(count);
        }
    }

    /// Draws the next block if few numbers are left, unless somebody does.
    async fn draw_ahead(&self, last: u64) {
        let NumberBlocks { drawn, drawing } = &*self.blocks;
        if !drawn.lock().is_short() {
            return;
        }
        let Ok(_drawing) = drawing.try_lock() else { return };
        let count = {
            let mut drawn = drawn.lock();
            if !drawn.is_short() {
                return;
            }
            drawn.grow()
        };
        // If it fails, whoever needs the next block is told.
        if let Ok(first) = self.engine.draw(self.shard, self.above.max(last), count).await {
            drawn.lock().spare = first..first.saturating_add(count);
        }
    }

    /// A number that is higher than all that were given before, in this process or another.
    pub async fn next_of_all(&self) -> Result<u64, Error> {
        self.engine.draw(self.shard, self.above, 1).await
    }
}

impl DrawnNumbers {
    /// The next number, if there is one above those that are used.
    fn take(&mut self, used: u64) -> Option<u64> {
        if (self.rest.is_empty() || self.rest.start <= used) && self.spare.start > used {
            self.rest = std::mem::take(&mut self.spare);
        }
        if self.rest.start > used { self.rest.next() } else { None }
    }

    fn is_short(&self) -> bool {
        self.spare.is_empty() && self.rest.end - self.rest.start < self.size / REST_PART
    }

    fn grow(&mut self) -> u64 {
        self.size = (self.size * 2).min(BLOCK_MAX);
        self.size
    }

    /// How many to draw: more than before where all were used, fewer where others were faster.
    fn renew(&mut self) -> u64 {
        let is_used_up = self.rest.is_empty() && self.spare.is_empty();
        (self.rest, self.spare) = (0..0, 0..0);
        if is_used_up {
            return self.grow();
        }
        self.size = (self.size / 2).max(1);
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_kv::contract::block_on;
    use astrarium_kv::memory::MemoryEngine;

    /// Sources of processes over one engine.
    fn sources() -> [NumberSource; 2] {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        [(); 2].map(|()| NumberSource::new(Arc::clone(&engine), ShardId(1), 100))
    }

    #[test]
    fn one_process_uses_its_blocks_up() {
        let [source, _] = sources();
        let numbers: Vec<u64> =
            (0..1_000).map(|used| block_on(source.next_above(used)).unwrap_or(0)).collect();
        assert_eq!(numbers, (101..1_101).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_of_processes_by_turns_grow() {
        let sources = sources();
        let mut last = 0;
        for turn in 0..2_000 {
            let number = block_on(sources[turn / 3 % 2].next_above(last)).unwrap_or(0);
            assert!(number > last, "{number} after {last}");
            last = number;
        }
        assert!(last < 100 + 3 * 2_000, "of large blocks most would be left: {last}");
        // Alone again, it draws large blocks as before.
        for _ in 0..200 {
            last = block_on(sources[0].next_above(last)).unwrap_or(0);
        }
        let first = block_on(sources[0].next_of_all()).unwrap_or(0);
        assert!((last + 1..=last + 2 * BLOCK_MAX).contains(&first), "{first} after {last}");
    }
}
