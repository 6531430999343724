//! Whether the present thread may wait for a disk.
//!
//! Threads that serve requests may not: others wait behind them. Threads that do one long thing after another say that they may,
//! and are then answered in place, which is cheaper than being answered by another thread.

use std::cell::Cell;

thread_local! {
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread serves no requests and may wait for a disk.
pub fn allow_blocking() {
    MAY_BLOCK.set(true);
}

/// Whether this thread has said so.
pub fn may_block() -> bool {
    MAY_BLOCK.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_says_it_for_itself() {
        allow_blocking();
        assert!(may_block());
        assert!(!std::thread::spawn(may_block).join().unwrap());
    }
}
