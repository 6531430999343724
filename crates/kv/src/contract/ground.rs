//! What the contract promises about founding, watching, leases and blocks of numbers.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::suite::{bytes, commit, shard_key, state};
use super::{FOUNDED_EPOCH, block_on};
use crate::{
    CommitVersion, Engine, Error, Expectation, Founding, LeaseRequest, Reply, ShardId, ShardState, Space,
    Stamp, WriteBatch,
};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

const FOUNDING: Founding = Founding { version: 1_000, high_water: 77, tallies: [5, -3] };

pub(super) fn shards_are_founded_once(engine: &dyn Engine) {
    let (catalog, shard, other) = (ShardId(0), ShardId(40), ShardId(41));
    let founding = |by: ShardId, epoch: u64, founded: ShardId| {
        let mut batch = WriteBatch::new(by, epoch);
        batch.found(founded, FOUNDING);
        batch
    };
    commit(engine, founding(catalog, 0, shard)).expect("a new shard is founded");
    let Founding { version, high_water, tallies } = FOUNDING;
    let founded = ShardState { version, epoch: FOUNDED_EPOCH, high_water, tallies, ..ShardState::default() };
    assert_eq!(state(engine, shard), founded);
    let refused = |batch: WriteBatch, of: ShardId| {
        let before = state(engine, batch.shard);
        let by = batch.shard;
        let answer = commit(engine, batch);
        assert!(matches!(answer, Err(Error::ShardExists { shard }) if shard == of), "{answer:?}");
        assert_eq!(state(engine, by), before, "a refused batch changes nothing");
    };
    refused(founding(catalog, 0, shard), shard);
    refused(founding(shard, FOUNDED_EPOCH, shard), shard);
    refused(founding(catalog, 0, catalog), catalog);
    // By its own first batch, which gets the version after the floor.
    let mut own = founding(other, 0, other);
    own.tallies = [1, 1];
    own.put(Space::Body, shard_key(other, b"stamped"), vec![0; 8].into(), Stamp::VALUE);
    assert_eq!(commit(engine, own).expect("a shard may found itself"), CommitVersion(version + 1));
    let tallies = tallies.map(|sum| sum + 1);
    assert_eq!(state(engine, other), ShardState { version: version + 1, tallies, ..founded });
    // Batches that wait together see each other's foundings; a refused batch founds nothing.
    let third = ShardId(42);
    let mut conflicting = founding(catalog, 0, third);
    conflicting.expect(Space::Body, shard_key(catalog, b"absent"), Expectation::Present);
    let replies = [conflicting, founding(catalog, 0, third), founding(catalog, 0, third)]
        .map(|batch| engine.commit(batch));
    let [conflicting, first, second] = replies.map(block_on);
    assert!(matches!(conflicting, Err(Error::Conflict { .. })), "{conflicting:?}");
    first.expect("the first founds");
    assert!(matches!(second, Err(Error::ShardExists { .. })), "{second:?}");
    let mut twice = founding(catalog, 0, ShardId(43));
    twice.found(ShardId(43), FOUNDING);
    assert!(matches!(commit(engine, twice), Err(Error::Contract { .. })));
}

type Watch = Reply<Result<CommitVersion, Error>>;

fn poll(watch: &mut Watch) -> Option<Result<CommitVersion, Error>> {
    match Pin::new(watch).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

pub(super) fn watches_end_when_a_shard_moves(engine: &dyn Engine) {
    let (shard, elsewhere) = (ShardId(5), ShardId(6));
    let write = |shard| commit(engine, WriteBatch::new(shard, 0)).expect("nothing is in the way");
    let mut next = engine.watch(shard, 0, 0);
    let mut far = engine.watch(shard, 0, 2);
    drop(engine.watch(shard, 0, 0));
    write(elsewhere);
    assert!(
        poll(&mut next).is_none() && poll(&mut far).is_none(),
        "another shard's versions count for nobody"
    );
    write(shard);
    assert!(matches!(poll(&mut next), Some(Ok(CommitVersion(1)))), "visible when the commit has answered");
    assert!(poll(&mut far).is_none());
    // One who sleeps is woken by the commit that passes the version, on whatever thread.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| block_on(far).expect("the shard moves on"));
        write(shard);
        write(shard);
        assert!(waiting.join().expect("the waiter ends").0 >= 3);
    });
    assert!(matches!(poll(&mut engine.watch(shard, 0, 1)), Some(Ok(CommitVersion(3)))), "past it already");
    // A fence ends a watch.
    let mut fenced = engine.watch(shard, 0, 10);
    assert!(poll(&mut fenced).is_none());
    let mut fence = WriteBatch::new(ShardId(0), 0);
    fence.fence(shard);
    commit(engine, fence).expect("a fence commits");
    let is_fenced = |answer: &Option<_>| matches!(answer, Some(Err(Error::Fenced { current: 1, .. })));
    assert!(is_fenced(&poll(&mut fenced)));
    assert!(is_fenced(&poll(&mut engine.watch(shard, 0, 0))));
}

pub(super) fn a_closed_engine_ends_watches(engine: &dyn Engine) {
    std::thread::scope(|scope| {
        let mut watch = engine.watch(ShardId(1), 0, 0);
        assert!(poll(&mut watch).is_none());
        let waiting = scope.spawn(|| block_on(watch));
        engine.close().expect("closing works");
        let answer = waiting.join().expect("the waiter ends");
        assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    });
}

fn request(holder: u64) -> LeaseRequest {
    let (key, takes_over) = (bytes("lease of work"), false);
    LeaseRequest { shard: ShardId(0), epoch: 0, key, holder, duration_micros: 100, takes_over }
}

pub(super) fn leases_are_held_by_one(engine: &dyn Engine) {
    let acquire = |holder: u64, now: u64| {
        let request = request(holder);
        let acquired = block_on(request.acquire(engine, now));
        acquired.expect("asking for a lease answers")
    };
    let guarded = |lease: &crate::Lease| {
        let mut batch = WriteBatch::new(ShardId(0), 0);
        lease.guard(&mut batch);
        commit(engine, batch)
    };
    let first = acquire(1, 1_000).expect("a lease that nobody has");
    assert_eq!(first.expires_micros, 1_100);
    assert_eq!(acquire(2, 1_099), None, "it is held");
    guarded(&first).expect("the holder may commit");
    let renewed = acquire(1, 1_050).expect("the holder may have it again");
    assert!(renewed.fencing_number > first.fencing_number && renewed.expires_micros == 1_150);
    assert_eq!(acquire(2, 1_149), None);
    let second = acquire(2, 1_150).expect("it has expired");
    assert!(second.fencing_number > renewed.fencing_number, "fencing numbers grow with each grant");
    for old in [&first, &renewed] {
        let answer = guarded(old);
        assert!(matches!(answer, Err(Error::Conflict { expectation: 0 })), "{answer:?}");
    }
    guarded(&second).expect("the new holder may commit");
    let stand_in =
        |holder: u64, now: u64| block_on(request(holder).stand_in(engine, now)).expect("it answers");
    assert_eq!(stand_in(3, 1_200), None, "it is held");
    let unwritten = stand_in(3, 1_250).expect("it has expired");
    guarded(&unwritten).expect("nobody was granted it since");
    let again = acquire(2, 1_250).expect("the holder may have it again");
    guarded(&unwritten).expect_err("somebody was");
    let taken = LeaseRequest { takes_over: true, ..request(4) };
    let second = block_on(taken.acquire(engine, 1_251)).expect("it answers").expect("it is taken");
    guarded(&again).expect_err("it was taken over");
    block_on(renewed.release(engine, ShardId(0), 0)).expect("giving back what is gone does nothing");
    assert_eq!(acquire(3, 1_151), None);
    block_on(second.clone().release(engine, ShardId(0), 0)).expect("a lease is given back");
    guarded(&second).expect_err("and guards no more");
    let third = acquire(3, 1_151).expect("it is free before it would have expired");
    assert!(third.fencing_number > second.fencing_number);
}

/// What founding and leases left is there after the end of an engine, and goes on.
pub(super) fn holds_founding_and_lease(engine: &dyn Engine, round: u64) {
    let shard = ShardId(70);
    let mut batch = WriteBatch::new(shard, if round == 1 { 0 } else { FOUNDED_EPOCH });
    if round == 1 {
        batch.found(shard, FOUNDING);
    } else {
        let mut again = batch.clone();
        again.found(shard, FOUNDING);
        assert!(matches!(commit(engine, again), Err(Error::ShardExists { .. })), "founded before the end");
    }
    assert_eq!(commit(engine, batch).expect("a founded shard goes on").0, FOUNDING.version + round);
    let asked = block_on(request(round).acquire(engine, round * 1_000));
    let lease = asked.expect("asking for a lease answers").expect("the one before has expired");
    assert_eq!(lease.fencing_number, round * 2 - 1, "the catalog's version, which grows");
    let early = block_on(request(round + 9).acquire(engine, round * 1_000 + 99));
    assert_eq!(early.expect("asking for a lease answers"), None);
    commit(engine, WriteBatch::new(ShardId(0), 0)).expect("the catalog goes on");
}

pub(super) fn blocks_of_numbers_are_apart(engine: &dyn Engine) {
    let shard = ShardId(8);
    let draw = |above: u64, count: u64| block_on(engine.draw(shard, above, count)).expect("a draw answers");
    assert_eq!(draw(0, 10), 1, "numbers begin at 1");
    assert_eq!(draw(0, 10), 11);
    assert_eq!(draw(100, 10), 101, "above what the caller names");
    assert_eq!(draw(0, 1), 111);
    let mut batch = WriteBatch::new(shard, 0);
    batch.high_water = 500;
    commit(engine, batch).expect("nothing is in the way");
    assert_eq!(draw(0, 1), 501, "above what was used");
    assert_eq!(block_on(engine.draw(ShardId(9), 0, 1)).expect("a draw answers"), 1, "each shard has its own");
    let mut drawn: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..50)
                        .flat_map(|_| {
                            let first = draw(0, 3);
                            first..first + 3
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a drawer ends")).collect()
    });
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 600, "nobody is given a number twice");
}
