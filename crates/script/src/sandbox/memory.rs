//! The allocator under a sandbox: the program's own, with a limit, and with a switch for when the sandbox has to stop.
//!
//! The engine asks whether it should stop only while it interprets: a loop that sorts or joins long arrays spends its
//! time in native code, between such questions. That code needs large pieces of memory, so refusing them ends such loops
//! soon after the deadline. Small pieces are then still given: the engine needs them to end in good order.
//! The limit is counted here and not by the engine because the engine, when nothing at all is left, reports an error
//! without a word; so what was refused is noted.

use crate::deadline::Stop;
use rquickjs::allocator::{Allocator, RustAllocator};
use std::cell::Cell;
use std::ptr::null_mut;
use std::rc::Rc;

/// Pieces smaller than this are given also after the time is over. The engine takes its small objects from pieces of
/// 4 KiB.
const LARGE_BYTES: usize = 16 << 10;

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
    exhausted: Cell<bool>,
}

impl Quota {
    /// No limit yet: a world that is only half made could not be taken apart again.
    pub(crate) fn unlimited() -> Quota {
        Quota { bytes: Cell::new(0), bytes_max: Cell::new(usize::MAX), exhausted: Cell::new(false) }
    }

    /// From here on no more than this, on top of what is there.
    pub(crate) fn limit_growth(&self, bytes_max: usize) {
        self.bytes_max.set(self.bytes.get().saturating_add(bytes_max));
    }

    /// Whether memory was ever refused for want of it.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
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
        let bytes = self.quota.bytes.get().saturating_sub(returned).saturating_add(size);
        if bytes > self.quota.bytes_max.get() {
            self.quota.exhausted.set(true);
            return true;
        }
        size >= LARGE_BYTES && self.stop.is_set()
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
#[expect(unsafe_code, reason = "the engine's allocator is an unsafe trait; this only passes calls on, or refuses them")]
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
