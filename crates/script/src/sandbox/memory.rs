//! The allocator under a sandbox: an arena with a limit, and with a switch for when the sandbox has to stop.
//!
//! Large pieces are refused where they would exceed the limit, which a script sees as an error it can catch. Small pieces
//! are given beyond it, because refusing those could hit the engine at any point of its work, and not every point is
//! prepared for that: a sandbox over its limit is ended instead, at the next question whether to go on. Only far beyond
//! the limit, where that question was not asked for long, is everything refused.
//! Garbage, which is circles of objects only, is not collected where the engine would do it, inside an allocation: an
//! allocation that fails makes an error object, and collecting in the middle of what failed ends in a crash. It is
//! collected where the engine asks whether to go on.
//! The switch: the engine asks whether it should stop only while it interprets. A loop that sorts or joins long arrays
//! spends its time in native code, between such questions; that code needs large pieces of memory, so refusing them ends
//! such loops soon after the deadline.

use super::arena::Arena;
use crate::deadline::Stop;
use rquickjs::allocator::Allocator;
use std::cell::Cell;
use std::ptr::{copy_nonoverlapping, null_mut};
use std::rc::Rc;

/// Pieces smaller than this are not refused before the last limit. The engine takes its small objects from pieces of
/// 4 KiB.
const LARGE_BYTES: usize = 16 << 10;

/// How much memory is let grow before it is worth looking for garbage.
const COLLECT_BYTES_MIN: usize = 512 << 10;

/// An arena with a limit and a switch.
pub(super) struct LimitedAllocator {
    stop: Stop,
    quota: Rc<Quota>,
    arena: Rc<Arena>,
}

/// How much a sandbox has and may have.
#[derive(Debug)]
pub(crate) struct Quota {
    bytes: Cell<usize>,
    bytes_max: Cell<usize>,
    last_bytes_max: Cell<usize>,
    /// From how much on it is worth looking for garbage.
    collect_at: Cell<usize>,
    exceeded: Cell<bool>,
    refused: Cell<bool>,
    /// What was there when the limit was set.
    bytes_before: Cell<usize>,
}

impl Quota {
    /// No limit yet: a world that is only half made could not be taken apart again.
    pub(crate) fn unlimited() -> Quota {
        Quota {
            bytes: Cell::new(0),
            bytes_max: Cell::new(usize::MAX),
            last_bytes_max: Cell::new(usize::MAX),
            collect_at: Cell::new(usize::MAX),
            exceeded: Cell::new(false),
            refused: Cell::new(false),
            bytes_before: Cell::new(0),
        }
    }

    /// From here on no more than this, on top of what is there.
    pub(crate) fn limit_growth(&self, bytes_max: usize) {
        let bytes = self.bytes.get();
        self.bytes_max.set(bytes.saturating_add(bytes_max));
        self.last_bytes_max.set(bytes.saturating_add(bytes_max.saturating_mul(2)).saturating_add(8 << 20));
        self.collect_at.set(bytes.saturating_add(COLLECT_BYTES_MIN));
        self.bytes_before.set(bytes);
    }

    /// There is again what was there when the limit was set.
    pub(crate) fn renew(&self) {
        let bytes = self.bytes_before.get();
        self.bytes.set(bytes);
        self.collect_at.set(bytes.saturating_add(COLLECT_BYTES_MIN));
        self.exceeded.set(false);
        self.refused.set(false);
    }

    /// Whether there may be enough garbage to look for it.
    pub(crate) fn wants_collection(&self) -> bool {
        self.exceeded.get() || self.bytes.get() > self.collect_at.get()
    }

    /// What is left after garbage was collected is what counts.
    pub(crate) fn note_collection(&self) {
        let bytes = self.bytes.get();
        self.exceeded.set(bytes > self.bytes_max.get());
        self.collect_at.set(bytes.saturating_add((bytes / 2).max(COLLECT_BYTES_MIN)));
    }

    /// Whether there is more than allowed, so that the sandbox has to end.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    /// Whether a piece was ever refused for want of memory.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused.get()
    }

    fn add(&self, bytes: usize) {
        let bytes = self.bytes.get().saturating_add(bytes);
        self.bytes.set(bytes);
        if bytes > self.bytes_max.get() {
            self.exceeded.set(true);
        }
    }

    fn subtract(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }
}

impl LimitedAllocator {
    pub(super) fn new(stop: Stop, quota: Rc<Quota>, arena: Rc<Arena>) -> LimitedAllocator {
        LimitedAllocator { stop, quota, arena }
    }

    /// Whether a piece is not to be given, with so much given back for it.
    fn refuses(&self, size: usize, returned: usize) -> bool {
        let quota = &self.quota;
        let bytes = quota.bytes.get().saturating_sub(returned).saturating_add(size);
        let is_large = size >= LARGE_BYTES;
        if bytes > if is_large { quota.bytes_max.get() } else { quota.last_bytes_max.get() } {
            quota.refused.set(true);
            return true;
        }
        is_large && self.stop.is_set()
    }

    #[expect(unsafe_code, reason = "asks the arena about a piece it has just given")]
    fn give(&self, size: usize) -> *mut u8 {
        let piece = self.arena.alloc(size);
        if !piece.is_null() {
            // SAFETY: the piece came from the arena a moment ago.
            self.quota.add(unsafe { Arena::usable_size(piece) });
        }
        piece
    }
}

// SAFETY: every piece comes from the arena and goes back to it, so its guarantees are ours; refusing a piece with a null
// pointer is what the engine expects when there is no memory, and leaves a piece to be enlarged as it is. The engine asks
// for the size of, gives back and enlarges only pieces it got here.
#[expect(unsafe_code, reason = "the engine's allocator is an unsafe trait")]
unsafe impl Allocator for LimitedAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if self.refuses(size, 0) { null_mut() } else { self.give(size) }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(size) = count.checked_mul(size).filter(|size| *size > 0) else { return null_mut() };
        let piece = self.alloc(size);
        if !piece.is_null() {
            // SAFETY: the piece has at least this size.
            unsafe { piece.write_bytes(0, size) };
        }
        piece
    }

    unsafe fn dealloc(&mut self, piece: *mut u8) {
        // SAFETY: the caller gives back what it got here.
        unsafe {
            self.quota.subtract(Arena::usable_size(piece));
            self.arena.dealloc(piece);
        }
    }

    unsafe fn realloc(&mut self, piece: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: the caller got the piece here.
        let old_size = unsafe { Arena::usable_size(piece) };
        // What hardly shrinks stays where it is.
        if new_size <= old_size && new_size >= old_size / 2 {
            return piece;
        }
        if self.refuses(new_size, old_size) {
            return null_mut();
        }
        let moved = self.give(new_size);
        if !moved.is_null() {
            // SAFETY: both pieces have at least so many bytes, and do not overlap.
            unsafe {
                copy_nonoverlapping(piece, moved, old_size.min(new_size));
                self.dealloc(piece);
            }
        }
        moved
    }

    unsafe fn usable_size(piece: *mut u8) -> usize {
        // SAFETY: the caller got the piece here.
        unsafe { Arena::usable_size(piece) }
    }
}
