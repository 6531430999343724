//! Shards from their founding to their end: the same random lives on fjall and on the specification are the same, with leases,
//! watches, draws, fences and drops on the way, groups of commits, and restarts.
//!
//! Space of drops is given back at different times, so nothing is written under a prefix once it was dropped.

use crate::differential::compare;
use crate::fixture::{NO_LIMIT, open};
use astrarium_kv::contract::{block_on, set_key, shard_key};
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv::{
    CommitVersion, Direction, Engine, Error, Founding, KeyRange, Lease, LeaseRequest, Reply, ShardId,
    ShardState, Space, Stamp, View, WriteBatch,
};
use astrarium_kv_fjall::FjallEngine;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

const CATALOG: ShardId = ShardId(0);
/// Shards that live, the catalog besides.
const SHARDS: u64 = 4;
/// Families of keys that can be dropped; one more never is.
const LETTERS: u8 = 3;

#[derive(Debug, Clone)]
enum Change {
    Put { shard: u64, letter: u8, key: u8, value: u8 },
    Delete { shard: u64, letter: u8, key: u8 },
    Found { shard: u64, by_itself: bool, founding: Founding },
    Fence { shard: u64 },
    DropLetter { shard: u64, letter: u8 },
    DropShard { shard: u64 },
}

#[derive(Debug, Clone)]
enum Moment {
    /// Handed over together, then awaited: fjall may group them. Some go by an old epoch.
    Commit(Vec<(Change, bool)>),
    Acquire {
        shard: u64,
        holder: u64,
        now: u64,
    },
    /// A batch under the newest lease but so many.
    Guarded {
        back: usize,
    },
    Release {
        back: usize,
    },
    Watch {
        shard: u64,
        ahead: u64,
    },
    Draw {
        shard: u64,
        above: u64,
        count: u64,
    },
    View {
        shard: u64,
    },
    ForgetViews,
    Reopen {
        close: bool,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let (shard, letter) = (1..=SHARDS, 0..=LETTERS);
    let put = (shard.clone(), letter.clone(), 0..4u8, any::<u8>());
    let founding = (0..50u64, 0..50u64, any::<i8>()).prop_map(|(version, high_water, tally)| Founding {
        version,
        high_water,
        tallies: [i64::from(tally), 1],
    });
    prop_oneof![
        8 => put.prop_map(|(shard, letter, key, value)| Change::Put { shard, letter, key, value }),
        2 => (shard.clone(), letter.clone(), 0..4u8)
            .prop_map(|(shard, letter, key)| Change::Delete { shard, letter, key }),
        4 => (shard.clone(), any::<bool>(), founding)
            .prop_map(|(shard, by_itself, founding)| Change::Found { shard, by_itself, founding }),
        1 => shard.clone().prop_map(|shard| Change::Fence { shard }),
        1 => (shard.clone(), 0..LETTERS).prop_map(|(shard, letter)| Change::DropLetter { shard, letter }),
        1 => shard.prop_map(|shard| Change::DropShard { shard }),
    ]
}

fn moment() -> impl Strategy<Value = Moment> {
    let shard = 0..=SHARDS;
    let changes = vec((change(), proptest::bool::weighted(0.1)), 1..6);
    let acquire = (shard.clone(), 0..3u64, 0..200u64);
    let draw = (shard.clone(), 0..100u64, 0..20u64);
    prop_oneof![
        8 => changes.prop_map(Moment::Commit),
        3 => acquire.prop_map(|(shard, holder, now)| Moment::Acquire { shard, holder, now }),
        2 => (0..3usize).prop_map(|back| Moment::Guarded { back }),
        1 => (0..3usize).prop_map(|back| Moment::Release { back }),
        2 => (shard.clone(), 0..4u64).prop_map(|(shard, ahead)| Moment::Watch { shard, ahead }),
        2 => draw.prop_map(|(shard, above, count)| Moment::Draw { shard, above, count }),
        2 => shard.prop_map(|shard| Moment::View { shard }),
        1 => Just(Moment::ForgetViews),
        1 => any::<bool>().prop_map(|close| Moment::Reopen { close }),
    ]
}

fn key(shard: u64, letter: u8, key: u8) -> Bytes {
    shard_key(ShardId(shard), &[b'a' + letter, key])
}

fn entry(shard: u64, letter: u8, key: u8) -> Vec<u8> {
    set_key(ShardId(shard), &[&[b'a' + letter; 8][..], &[key]].concat())
}

/// What an answer says, errors too.
fn told<T: std::fmt::Debug>(answer: &Result<T, Error>) -> String {
    format!("{answer:?}")
}

type Watch = Pin<Box<Reply<Result<CommitVersion, Error>>>>;

/// Both engines, and what was asked of them.
struct Lives<'f> {
    folder: &'f Path,
    /// Nothing between two openings: the folder is one engine's at a time.
    engine: Option<FjallEngine>,
    model: MemoryEngine,
    /// Letters of shards under which nothing is written any more.
    dropped: BTreeSet<(u64, u8)>,
    leases: Vec<(ShardId, Lease)>,
    watches: Vec<(Watch, Watch)>,
    views: Vec<(Arc<dyn View>, Arc<dyn View>)>,
    /// Shards with numbers that were drawn and not used, before the last restart and since: fjall may give the former again.
    given_back: BTreeSet<u64>,
    unused: BTreeSet<u64>,
}

impl Lives<'_> {
    fn engine(&self) -> &FjallEngine {
        self.engine.as_ref().unwrap()
    }

    /// Asks both engines, and compares what they say.
    fn ask<T: std::fmt::Debug>(&self, ask: impl Fn(&dyn Engine) -> Result<T, Error>) -> Result<T, Error> {
        let (ours, theirs) = (ask(self.engine()), ask(&self.model));
        assert_eq!(told(&ours), told(&theirs));
        ours
    }

    fn state(&self, shard: u64) -> Result<ShardState, Error> {
        self.ask(|engine| block_on(engine.shard(ShardId(shard))))
    }

    /// A batch of a shard at its present epoch, or at the one before.
    fn batch(&self, shard: u64, is_old: bool) -> WriteBatch {
        let epoch = self.state(shard).map_or(0, |state| state.epoch);
        WriteBatch::new(ShardId(shard), epoch.wrapping_sub(u64::from(is_old)))
    }

    fn staged(&mut self, change: &Change, is_old: bool) -> WriteBatch {
        match change {
            Change::Put { shard, letter, key: number, value } => {
                let letter = if self.dropped.contains(&(*shard, *letter)) { LETTERS } else { *letter };
                let mut batch = self.batch(*shard, is_old);
                batch.high_water = u64::from(*value);
                batch.tallies = [1, i64::from(*value)];
                for space in Space::ALL {
                    let value = Bytes::from(vec![*value; 10]);
                    batch.put(space, key(*shard, letter, *number), value, Stamp::VALUE);
                }
                batch.set.added.push(&entry(*shard, letter, *number));
                batch
            }
            Change::Delete { shard, letter, key: number } => {
                let mut batch = self.batch(*shard, is_old);
                for space in Space::ALL {
                    batch.delete(space, key(*shard, *letter, *number));
                }
                batch.set.removed.push(&entry(*shard, *letter, *number));
                batch
            }
            Change::Found { shard, by_itself, founding } => {
                let mut batch = self.batch(if *by_itself { *shard } else { CATALOG.0 }, is_old);
                batch.found(ShardId(*shard), *founding);
                batch
            }
            Change::Fence { shard } => {
                let mut batch = self.batch(CATALOG.0, is_old);
                batch.fence(ShardId(*shard));
                batch
            }
            Change::DropLetter { shard, letter } => {
                let mut batch = self.batch(CATALOG.0, is_old);
                self.drop_letter(&mut batch, *shard, *letter);
                batch
            }
            Change::DropShard { shard } => {
                let mut batch = self.batch(CATALOG.0, is_old);
                batch.drop_shard(ShardId(*shard));
                (0..=LETTERS).for_each(|letter| self.drop_letter(&mut batch, *shard, letter));
                batch
            }
        }
    }

    fn drop_letter(&mut self, batch: &mut WriteBatch, shard: u64, letter: u8) {
        for space in Space::ALL {
            batch.drop_prefix(Some(space), shard_key(ShardId(shard), &[b'a' + letter]));
        }
        batch.drop_prefix(None, set_key(ShardId(shard), &[b'a' + letter; 8]).into());
        self.dropped.insert((shard, letter));
    }

    fn commit(&mut self, changes: &[(Change, bool)]) {
        let batches: Vec<WriteBatch> =
            changes.iter().map(|(change, is_old)| self.staged(change, *is_old)).collect();
        let answers = |engine: &dyn Engine| {
            let replies: Vec<_> = batches.iter().map(|batch| engine.commit(batch.clone())).collect();
            replies.into_iter().map(|reply| told(&block_on(reply))).collect::<Vec<_>>()
        };
        assert_eq!(answers(self.engine()), answers(&self.model));
    }

    fn acquire(&mut self, shard: u64, holder: u64, now: u64) {
        let epoch = self.state(shard).map_or(0, |state| state.epoch);
        let shard = ShardId(shard);
        let key = shard_key(shard, b"lease");
        let request = LeaseRequest { shard, epoch, key, holder, duration_micros: 50, takes_over: false };
        let acquired = self.ask(|engine| block_on(request.acquire(engine, now)));
        self.leases.extend(acquired.ok().flatten().map(|lease| (shard, lease)));
    }

    fn lease(&self, back: usize) -> Option<(ShardId, Lease)> {
        self.leases.iter().rev().nth(back).cloned()
    }

    fn draw(&mut self, shard: u64, above: u64, count: u64) {
        let draw = |engine: &dyn Engine| block_on(engine.draw(ShardId(shard), above, count));
        let (ours, theirs) = (draw(self.engine()), draw(&self.model));
        if !self.given_back.contains(&shard) {
            assert_eq!(told(&ours), told(&theirs), "numbers of shard {shard}");
        }
        let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return };
        let high_water = self.state(shard).map_or(0, |state| state.high_water);
        assert!(ours > above && ours > high_water, "{ours} is new, above {above} and {high_water}");
        let mut batch = self.batch(shard, false);
        batch.high_water = ours.max(theirs) + count;
        if self.ask(|engine| block_on(engine.commit(batch.clone()))).is_err() {
            self.unused.insert(shard);
        }
    }

    fn view(&mut self, shard: u64) {
        let epoch = self.state(shard).map_or(0, |state| state.epoch);
        let view = |engine: &dyn Engine| block_on(engine.view(ShardId(shard), epoch));
        match (view(self.engine()), view(&self.model)) {
            (Ok(ours), Ok(theirs)) => self.views.push((ours, theirs)),
            (ours, theirs) => assert_eq!(told(&ours.map(drop)), told(&theirs.map(drop))),
        }
    }

    fn watch(&mut self, shard: u64, ahead: u64) {
        let state = self.state(shard).unwrap_or_default();
        let watch = |engine: &dyn Engine| -> Watch {
            Box::pin(engine.watch(ShardId(shard), state.epoch, state.version + ahead))
        };
        self.watches.push((watch(self.engine()), watch(&self.model)));
    }

    /// Watches end on both engines after the same step, with the same answer.
    fn look_at_watches(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        self.watches.retain_mut(|(ours, theirs)| {
            let (ours, theirs) = (ours.as_mut().poll(&mut context), theirs.as_mut().poll(&mut context));
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            ours.is_pending()
        });
    }

    fn look_at_views(&self) {
        for (ours, theirs) in &self.views {
            assert_eq!(ours.state(), theirs.state());
            compare(&**ours, &**theirs);
            let range = KeyRange::prefix(&ours.shard().0.to_be_bytes());
            let keys = |view: &dyn View| {
                let found = block_on(view.scan_keys(&range, Direction::Forward, NO_LIMIT)).unwrap();
                found.keys.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
            };
            assert_eq!(keys(&**ours), keys(&**theirs));
        }
    }

    fn reopen(&mut self, close: bool) {
        self.views.clear();
        self.watches.clear();
        self.given_back.append(&mut self.unused);
        if close {
            self.engine().close().unwrap();
        }
        self.engine = None;
        self.engine = Some(open(self.folder));
    }

    fn pass(&mut self, moment: Moment) {
        match moment {
            Moment::Commit(changes) => self.commit(&changes),
            Moment::Acquire { shard, holder, now } => self.acquire(shard, holder, now),
            Moment::Guarded { back } => {
                if let Some((shard, lease)) = self.lease(back) {
                    let mut batch = self.batch(shard.0, false);
                    lease.guard(&mut batch);
                    let _ = self.ask(|engine| block_on(engine.commit(batch.clone())));
                }
            }
            Moment::Release { back } => {
                if let Some((shard, lease)) = self.lease(back) {
                    let epoch = self.state(shard.0).map_or(0, |state| state.epoch);
                    let _ = self.ask(|engine| block_on(lease.clone().release(engine, shard, epoch)));
                }
            }
            Moment::Watch { shard, ahead } => self.watch(shard, ahead),
            Moment::Draw { shard, above, count } => self.draw(shard, above, count),
            Moment::View { shard } => self.view(shard),
            Moment::ForgetViews => self.views.clear(),
            Moment::Reopen { close } => self.reopen(close),
        }
        for shard in 0..=SHARDS {
            let _ = self.state(shard);
        }
        self.look_at_watches();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn shards_live_alike_on_fjall_and_in_memory(moments in vec(moment(), 1..30)) {
        let folder = tempfile::tempdir().unwrap();
        let mut lives = Lives {
            folder: folder.path(),
            engine: Some(open(folder.path())),
            model: MemoryEngine::new(),
            dropped: BTreeSet::new(),
            leases: Vec::new(),
            watches: Vec::new(),
            views: Vec::new(),
            given_back: BTreeSet::new(),
            unused: BTreeSet::new(),
        };
        for moment in moments {
            lives.pass(moment);
        }
        (0..=SHARDS).for_each(|shard| lives.view(shard));
        lives.look_at_views();
        lives.ask(|engine| block_on(engine.highest_shard())).unwrap();
        // Some space is given back, and nobody sees a difference.
        lives.views.clear();
        lives.engine().wait_until_reclaimed();
        prop_assert_eq!(block_on(lives.model.unreclaimed()).unwrap(), []);
        (0..=SHARDS).for_each(|shard| lives.view(shard));
        lives.look_at_views();
    }
}
