//! The memory of one sandbox: a stretch that can be put back to how it was when the sandbox had just been made.
//!
//! Making a JavaScript world takes some thousand small allocations, and as many calls to take it apart. Here all of it
//! lies in one stretch, so that [`Arena::save`] can copy a fresh world once and [`Arena::restore`] can bring it back after
//! each execution: byte for byte what it was, whatever the script has done to it, in one copy of some hundred kilobytes.
//! Pieces that are large, or for which the stretch has no room, come from the program's allocator; those are given back.
//! Invariants
//! - Every piece begins at a multiple of 16 and has its usable size in the word before it.
//! - A saved world lies wholly inside the stretch.
//!
//! Not here: how much a sandbox may have (`memory`), and that nothing outside still points into a world that is
//! replaced (`sandbox`).
#![expect(
    unsafe_code,
    clippy::cast_ptr_alignment,
    reason = "an allocator hands out raw memory; what each step relies on is said there, alignment in the invariants"
)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};

/// The stretch: some times what a fresh world takes, which is enough for most scripts.
const ARENA_BYTES: usize = 1 << 20;
/// The largest block that the stretch gives, and the largest that differs from the next by 16 bytes.
const BLOCK_BYTES_MAX: usize = 64 << 10;
const FINE_BYTES_MAX: usize = 1 << 10;
/// The smallest block: a header, and room for the link of a free list.
const BLOCK_BYTES_MIN: usize = 32;
const ALIGN: usize = 16;
/// The word before a piece that holds its size.
const HEADER_BYTES: usize = size_of::<usize>();
const CLASS_COUNT: usize = class_of(BLOCK_BYTES_MAX) + 1;

/// The memory of one sandbox. Used from one thread.
pub(super) struct Arena {
    base: NonNull<u8>,
    /// Where the unused part begins.
    top: Cell<usize>,
    /// The first free piece of each class of sizes, linked through their first words.
    free: [Cell<*mut u8>; CLASS_COUNT],
    /// Pieces from the program's allocator, linked in both directions.
    outside: Cell<*mut Outside>,
    saved: RefCell<Option<Saved>>,
}

struct Saved {
    bytes: Box<[u8]>,
    free: [*mut u8; CLASS_COUNT],
}

/// What stands before a piece from the program's allocator.
#[repr(C, align(16))]
struct Outside {
    previous: *mut Outside,
    next: *mut Outside,
    /// Makes the size the last word.
    _unused: usize,
    size: usize,
}

/// The class of a block, whose size is one of those that [`block_bytes`] gives.
const fn class_of(block: usize) -> usize {
    if block <= FINE_BYTES_MAX {
        return block / ALIGN;
    }
    let exponent = block.ilog2() as usize;
    let quarter = (block >> (exponent - 2)) & 3;
    FINE_BYTES_MAX / ALIGN + 4 * (exponent - FINE_BYTES_MAX.ilog2() as usize) + quarter
}

/// The size of the block for a piece: large ones in steps of a quarter, so that few classes do.
fn block_bytes(size: usize) -> usize {
    let block = (size + HEADER_BYTES).next_multiple_of(ALIGN).max(BLOCK_BYTES_MIN);
    if block <= FINE_BYTES_MAX {
        return block;
    }
    block.next_multiple_of(1 << (block.ilog2() - 2))
}

impl Arena {
    /// An arena in which every piece comes from the program's allocator; it cannot be saved.
    pub(super) fn without_stretch() -> Arena {
        let arena = Arena::new();
        arena.top.set(ARENA_BYTES);
        arena
    }

    pub(super) fn new() -> Arena {
        let layout = Arena::layout();
        // SAFETY: the layout has a size. Zeroed, so that `save` finds no byte that was never written.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) });
        Arena {
            base: base.unwrap_or_else(|| handle_alloc_error(layout)),
            // So that pieces, which come behind a header, begin at multiples of 16.
            top: Cell::new(ALIGN - HEADER_BYTES),
            free: [const { Cell::new(null_mut()) }; CLASS_COUNT],
            outside: Cell::new(null_mut()),
            saved: RefCell::new(None),
        }
    }

    /// A piece of at least this size; null if there is no memory.
    pub(super) fn alloc(&self, size: usize) -> *mut u8 {
        if size > BLOCK_BYTES_MAX - HEADER_BYTES {
            return self.alloc_outside(size);
        }
        let block = block_bytes(size);
        let class = &self.free[class_of(block)];
        let first = class.get();
        if !first.is_null() {
            // SAFETY: free pieces hold the link to the next in their first word, and have room for it.
            class.set(unsafe { first.cast::<*mut u8>().read() });
            return first;
        }
        let top = self.top.get();
        if top + block > ARENA_BYTES {
            return self.alloc_outside(size);
        }
        self.top.set(top + block);
        // SAFETY: the block lies inside the stretch, and `top` keeps headers where words may be.
        unsafe {
            let header = self.base.as_ptr().add(top);
            header.cast::<usize>().write(block - HEADER_BYTES);
            header.add(HEADER_BYTES)
        }
    }

    /// Takes a piece back.
    ///
    /// # Safety
    /// The piece came from this arena and is not used any more.
    pub(super) unsafe fn dealloc(&self, piece: *mut u8) {
        // SAFETY: every piece has its size before it, and those of the stretch have room for a link.
        unsafe {
            if !self.holds(piece) {
                self.dealloc_outside(piece.cast::<Outside>().sub(1));
                return;
            }
            let class = &self.free[class_of(Arena::usable_size(piece) + HEADER_BYTES)];
            piece.cast::<*mut u8>().write(class.get());
            class.set(piece);
        }
    }

    /// How much room a piece has.
    ///
    /// # Safety
    /// The piece came from an arena.
    pub(super) unsafe fn usable_size(piece: *mut u8) -> usize {
        // SAFETY: every piece has its size before it.
        unsafe { piece.cast::<usize>().sub(1).read() }
    }

    /// Remembers everything as it is. Returns whether that was possible.
    pub(super) fn save(&self) -> bool {
        if !self.outside.get().is_null() {
            return false;
        }
        // SAFETY: this part of the stretch has been handed out, and nobody writes to it while the engine is at rest.
        let bytes = unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.top.get()) }.into();
        self.saved.replace(Some(Saved { bytes, free: std::array::from_fn(|class| self.free[class].get()) }));
        true
    }

    /// Puts everything back to how it was saved. Returns whether it was saved.
    ///
    /// # Safety
    /// Nothing of what was made since then is used any more, not even to be dropped.
    pub(super) unsafe fn restore(&self) -> bool {
        let saved = self.saved.borrow();
        let Some(saved) = &*saved else { return false };
        self.clear_outside();
        // SAFETY: the saved bytes come from the beginning of the stretch.
        unsafe {
            copy_nonoverlapping(saved.bytes.as_ptr(), self.base.as_ptr(), saved.bytes.len());
        }
        self.top.set(saved.bytes.len());
        for (class, first) in self.free.iter().zip(saved.free) {
            class.set(first);
        }
        true
    }

    fn holds(&self, piece: *mut u8) -> bool {
        (piece as usize).wrapping_sub(self.base.as_ptr() as usize) < ARENA_BYTES
    }

    fn layout() -> Layout {
        const LAYOUT: Result<Layout, std::alloc::LayoutError> = Layout::from_size_align(ARENA_BYTES, ALIGN);
        LAYOUT.expect("the size is small and the alignment a power of two")
    }

    fn outside_layout(size: usize) -> Option<Layout> {
        Layout::from_size_align(size.checked_add(size_of::<Outside>())?, ALIGN).ok()
    }

    fn alloc_outside(&self, size: usize) -> *mut u8 {
        let Some(layout) = Arena::outside_layout(size) else { return null_mut() };
        // SAFETY: the layout has room for the header, which is written before anybody reads it.
        unsafe {
            let header = alloc(layout).cast::<Outside>();
            if header.is_null() {
                return null_mut();
            }
            let next = self.outside.get();
            header.write(Outside { previous: null_mut(), next, _unused: 0, size });
            if !next.is_null() {
                (*next).previous = header;
            }
            self.outside.set(header);
            header.add(1).cast()
        }
    }

    /// # Safety
    /// The header is that of a piece of this arena which is not used any more.
    unsafe fn dealloc_outside(&self, header: *mut Outside) {
        // SAFETY: the headers in the list are alive, and the layout is the one the piece was made with.
        unsafe {
            let Outside { previous, next, size, .. } = header.read();
            if previous.is_null() {
                self.outside.set(next);
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            if let Some(layout) = Arena::outside_layout(size) {
                dealloc(header.cast(), layout);
            }
        }
    }

    fn clear_outside(&self) {
        while !self.outside.get().is_null() {
            // SAFETY: what is in the list is alive; its users are gone, as `restore` and `drop` demand.
            unsafe { self.dealloc_outside(self.outside.get()) }
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.clear_outside();
        // SAFETY: made with this layout, and the engine that used it is gone.
        unsafe { dealloc(self.base.as_ptr(), Arena::layout()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_are_of_one_size() {
        let mut sizes = [0; CLASS_COUNT];
        for size in 0..=BLOCK_BYTES_MAX - HEADER_BYTES {
            let block = block_bytes(size);
            assert!(block >= size + HEADER_BYTES && block.is_multiple_of(ALIGN) && block <= BLOCK_BYTES_MAX);
            let known = &mut sizes[class_of(block)];
            assert!(*known == 0 || *known == block, "{size}");
            *known = block;
        }
    }

    /// A piece and what it was filled with.
    type Piece = (*mut u8, usize, u8);

    fn make(arena: &Arena, size: usize, fill: u8) -> Piece {
        let piece = arena.alloc(size);
        assert!(!piece.is_null() && (piece as usize).is_multiple_of(ALIGN));
        // SAFETY: the piece has at least this size.
        unsafe {
            assert!(Arena::usable_size(piece) >= size);
            piece.write_bytes(fill, size);
        }
        (piece, size, fill)
    }

    fn check(&(piece, size, fill): &Piece) {
        // SAFETY: the piece is in use and was filled when it was made.
        let bytes = unsafe { std::slice::from_raw_parts(piece, size) };
        assert!(bytes.iter().all(|byte| *byte == fill));
    }

    /// Makes pieces, and takes some back; gives those that are left.
    fn act(arena: &Arena, steps: &[(usize, bool)]) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (number, (size, keeps)) in steps.iter().enumerate() {
            pieces.push(make(arena, *size, number as u8));
            if !keeps {
                let (piece, ..) = pieces.swap_remove(size % pieces.len());
                // SAFETY: just taken out of those in use.
                unsafe { arena.dealloc(piece) };
            }
        }
        pieces.iter().for_each(check);
        pieces
    }

    fn steps(size_max: usize) -> impl Strategy<Value = Vec<(usize, bool)>> {
        let size = prop_oneof![8 => 0..200_usize, 2 => 0..5_000_usize, 1 => 0..size_max];
        proptest::collection::vec((size, any::<bool>()), 0..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn what_was_saved_comes_back(
            before in steps(20_000),
            rounds in proptest::collection::vec(steps(300_000), 1..4),
        ) {
            let arena = Arena::new();
            let kept = act(&arena, &before);
            prop_assert!(arena.save());
            let mut first = None;
            for round in &rounds {
                act(&arena, round);
                // Hurting what was there before hurts nobody after.
                for (piece, size, fill) in &kept {
                    // SAFETY: the piece is in use.
                    unsafe { piece.write_bytes(!fill, *size) };
                }
                // SAFETY: none of the pieces made since is looked at again.
                let is_restored = unsafe { arena.restore() };
                prop_assert!(is_restored);
                kept.iter().for_each(check);
            }
            // The same steps get the same pieces of the stretch each time.
            for _ in 0..2 {
                let made: Vec<_> = act(&arena, &rounds[0]).into_iter().filter(|piece| arena.holds(piece.0)).collect();
                prop_assert_eq!(first.get_or_insert_with(|| made.clone()), &made);
                // SAFETY: as before.
                let is_restored = unsafe { arena.restore() };
                prop_assert!(is_restored);
            }
        }
    }

    #[test]
    fn what_is_too_large_is_not_saved() {
        let arena = Arena::new();
        let large = make(&arena, ARENA_BYTES, 1);
        assert!(!arena.save());
        // SAFETY: nothing is in use but `large`.
        assert!(!unsafe { arena.restore() });
        check(&large);
    }

    #[test]
    fn a_full_stretch_is_not_the_end() {
        let arena = Arena::new();
        let pieces: Vec<Piece> = (0..100).map(|number| make(&arena, 50_000, number)).collect();
        pieces.iter().for_each(check);
        assert!(pieces.iter().any(|piece| !arena.holds(piece.0)));
        for (piece, ..) in pieces {
            // SAFETY: in use until here.
            unsafe { arena.dealloc(piece) };
        }
        assert!(arena.outside.get().is_null());
    }
}
