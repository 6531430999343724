//! The allocator under a sandbox: the program's own, but it gives no large pieces once the sandbox has to stop.
//!
//! The engine asks whether it should stop only while it interprets: a loop that sorts or joins long arrays spends its
//! time in native code, between such questions. That code needs large pieces of memory, so refusing them ends such loops
//! soon after the deadline. Small pieces are always given: the engine needs them to end in good order.
//!
//! Not here: the limit of memory, which the engine counts itself.

use crate::deadline::Stop;
use rquickjs::allocator::{Allocator, RustAllocator};
use std::ptr::null_mut;

/// Pieces smaller than this are never refused. The engine takes its small objects from pieces of 4 KiB.
const LARGE_BYTES: usize = 16 << 10;

/// The program's allocator with a switch.
pub(super) struct StoppableAllocator {
    stop: Stop,
    inner: RustAllocator,
}

impl StoppableAllocator {
    pub(super) fn new(stop: Stop) -> StoppableAllocator {
        StoppableAllocator { stop, inner: RustAllocator }
    }

    fn refuses(&self, size: usize) -> bool {
        size >= LARGE_BYTES && self.stop.is_set()
    }
}

// SAFETY: every piece comes from `RustAllocator` and goes back to it unchanged, so its guarantees are ours; refusing a
// piece with a null pointer is what the engine expects when there is no memory, and leaves a piece to be enlarged as it is.
#[expect(unsafe_code, reason = "the engine's allocator is an unsafe trait; this only passes calls on, or refuses them")]
unsafe impl Allocator for StoppableAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if self.refuses(size) { null_mut() } else { self.inner.alloc(size) }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size) {
            Some(total) if !self.refuses(total) => self.inner.calloc(count, size),
            _ => null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        unsafe { self.inner.dealloc(pointer) }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        if self.refuses(new_size) { null_mut() } else { unsafe { self.inner.realloc(pointer, new_size) } }
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        unsafe { RustAllocator::usable_size(pointer) }
    }
}
