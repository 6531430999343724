//! The allocator under a sandbox: the program's own, with a limit, and with a switch for when the sandbox has to stop.
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

use crate::deadline::Stop;
use rquickjs::allocator::{Allocator, RustAllocator};
use std::cell::Cell;
use std::ptr::null_mut;
use std::rc::Rc;

/// Pieces smaller than this are not refused before the last limit. The engine takes its small objects from pieces of
/// 4 KiB.
const LARGE_BYTES: usize = 16 << 10;

/// How much memory is let grow before it is worth looking for garbage.
const COLLECT_BYTES_MIN: usize = 512 << 10;

/// The program's allocator with a limit and a switch.
pub(super) struct LimitedAllocator {
    stop: Stop,
    quota: Rc<Quota>,
    inner: RustAllocator,
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
        }
    }

    /// From here on no more than this, on top of what is there.
    pub(crate) fn limit_growth(&self, bytes_max: usize) {
        let bytes = self.bytes.get();
        self.bytes_max.set(bytes.saturating_add(bytes_max));
        self.last_bytes_max.set(bytes.saturating_add(bytes_max.saturating_mul(2)).saturating_add(8 << 20));
        self.collect_at.set(bytes.saturating_add(COLLECT_BYTES_MIN));
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
    pub(super) fn new(stop: Stop, quota: Rc<Quota>) -> LimitedAllocator {
        LimitedAllocator { stop, quota, inner: RustAllocator }
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

    #[expect(unsafe_code, reason = "asks the inner allocator about a piece it has just given")]
    fn counted(&self, pointer: *mut u8) -> *mut u8 {
        if !pointer.is_null() {
            // SAFETY: the piece came from `RustAllocator` a moment ago.
            self.quota.add(unsafe { RustAllocator::usable_size(pointer) });
        }
        pointer
    }
}

// SAFETY: every piece comes from `RustAllocator` and goes back to it unchanged, so its guarantees are ours; refusing a
// piece with a null pointer is what the engine expects when there is no memory, and leaves a piece to be enlarged as it
// is. The engine asks for the size of, gives back and enlarges only pieces it got here.
#[expect(
    unsafe_code,
    reason = "the engine's allocator is an unsafe trait; this only passes calls on, or refuses them"
)]
unsafe impl Allocator for LimitedAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if self.refuses(size, 0) {
            return null_mut();
        }
        let pointer = self.inner.alloc(size);
        self.counted(pointer)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if self.refuses(count.saturating_mul(size), 0) {
            return null_mut();
        }
        let pointer = self.inner.calloc(count, size);
        self.counted(pointer)
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        unsafe {
            self.quota.subtract(RustAllocator::usable_size(pointer));
            self.inner.dealloc(pointer);
        }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        let old_size = unsafe { RustAllocator::usable_size(pointer) };
        if self.refuses(new_size, old_size) {
            return null_mut();
        }
        let moved = unsafe { self.inner.realloc(pointer, new_size) };
        if !moved.is_null() {
            self.quota.subtract(old_size);
        }
        self.counted(moved)
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        unsafe { RustAllocator::usable_size(pointer) }
    }
}
