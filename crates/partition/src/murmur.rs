//! MurmurHash3 over a slice: the 128-bit variant for 64-bit machines, and the 32-bit one with seed 0.
//!
//! In: bytes. Out: the hash as numbers. Written here because published crates read through `io::Read` a few bytes at a
//! time, and every point read hashes a short key; the test vectors of `effective` pin the results.
//! Not here: what is hashed, and how the result becomes an effective key (`effective`).

/// The 128-bit hash as its two halves, the first one first. The seed has two halves, too: clients hash the parts of a value
/// one after another, each with the hash so far as the seed.
pub fn hash_128(bytes: &[u8], seed: (u64, u64)) -> (u64, u64) {
    let (blocks, tail) = bytes.as_chunks::<16>();
    let (mut first, mut second) = seed;
    for block in blocks {
        let (low, high) = halves(*block);
        first = (first ^ mix_low(low)).rotate_left(27).wrapping_add(second);
        first = first.wrapping_mul(5).wrapping_add(0x52DC_E729);
        second = (second ^ mix_high(high)).rotate_left(31).wrapping_add(first);
        second = second.wrapping_mul(5).wrapping_add(0x3849_5AB5);
    }
    // Missing bytes count as zero, and a zero half mixes to zero, so short tails need no cases.
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (low, high) = halves(last);
    first ^= mix_low(low) ^ bytes.len() as u64;
    second ^= mix_high(high) ^ bytes.len() as u64;
    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    first = finish_64(first);
    second = finish_64(second);
    first = first.wrapping_add(second);
    (first, second.wrapping_add(first))
}

const LOW_FACTOR: u64 = 0x87C3_7B91_1142_53D5;
const HIGH_FACTOR: u64 = 0x4CF5_AD43_2745_937F;

fn halves(block: [u8; 16]) -> (u64, u64) {
    let number = u128::from_le_bytes(block);
    (number as u64, (number >> 64) as u64)
}

fn mix_low(half: u64) -> u64 {
    half.wrapping_mul(LOW_FACTOR).rotate_left(31).wrapping_mul(HIGH_FACTOR)
}

fn mix_high(half: u64) -> u64 {
    half.wrapping_mul(HIGH_FACTOR).rotate_left(33).wrapping_mul(LOW_FACTOR)
}

fn finish_64(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}

/// The 32-bit hash.
pub(crate) fn hash_32(bytes: &[u8]) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash = (hash ^ mix_32(*block)).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    hash ^= mix_32(last) ^ bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

fn mix_32(block: [u8; 4]) -> u32 {
    u32::from_le_bytes(block).wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593)
}
