//! The packed set over blobs in memory, cut as small as it can be: the same keys and counts as a plain map, after every step of
//! every merge, and with little room beside what is there.

#![expect(clippy::unwrap_used, reason = "a test that fails should panic")]

use astrarium_packed::{
    Blob, BlobWriter, Blobs, Control, DamageSignal, Error, FAMILY_BYTES, GroupBlock, Journal, KeyAction,
    KeyChange, MemoryBlobs, Merger, Origin, Publisher, ReplaceError, SetOptions, SetView, Source, recover,
};
use bytes::Bytes;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;

const OWNER: [u8; 16] = [9; 16];
const FAMILIES: u8 = 3;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Blobs in memory, and what a crash after some of their operations would have left: a merge has thousands, each with the names of
/// all blobs, so that keeping all would take gigabytes.
#[derive(Default, Clone)]
struct Recorder {
    blobs: MemoryBlobs,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Default)]
struct Noted {
    /// Of every so many operations one.
    states: Vec<MemoryBlobs>,
    /// The base-two logarithm of how many.
    spacing: u32,
    operations: u64,
    byte_count_max: usize,
}

const STATES_MAX: usize = 32;

/// Far above what a round of merging has.
const OPERATIONS_MAX: u64 = 100_000;

impl Recorder {
    fn note(&self) {
        let mut noted = self.noted.lock();
        noted.byte_count_max = noted.byte_count_max.max(self.blobs.byte_count());
        noted.operations += 1;
        assert!(noted.operations < OPERATIONS_MAX, "merging comes to an end");
        if noted.operations.trailing_zeros() < noted.spacing {
            return;
        }
        noted.states.push(self.blobs.copied());
        if noted.states.len() == STATES_MAX {
            // Of every two the one that stays with twice the spacing.
            let mut place = 0;
            noted.states.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            noted.spacing += 1;
        }
    }

    fn take(&self) -> Noted {
        std::mem::take(&mut self.noted.lock())
    }
}

struct Writer(Recorder, Box<dyn BlobWriter>);

impl BlobWriter for Writer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.1.write(bytes)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Blob>, Error> {
        let blob = self.1.finish()?;
        self.0.note();
        Ok(blob)
    }
}

impl Blobs for Recorder {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>, Error> {
        Ok(Box::new(Writer(self.clone(), self.blobs.create(name)?)))
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Blob>>, Error> {
        self.blobs.open(name)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.blobs.read(name)
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), ReplaceError> {
        self.blobs.replace(name, content)?;
        self.note();
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        self.blobs.list()
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.blobs.remove(name)?;
        self.note();
        Ok(())
    }

    fn set_aside(&self, names: &[String]) -> Result<String, Error> {
        self.blobs.set_aside(names)
    }
}

/// Keeps the block of every group for ever: what counts no more has to be passed over.
#[derive(Default)]
struct Groups(Mutex<Vec<(u64, Bytes)>>);

impl Journal for Groups {
    fn blocks_after(&self, group: u64) -> Result<Vec<(u64, Bytes)>, Error> {
        Ok(self.0.lock().iter().filter(|(number, _)| *number > group).cloned().collect())
    }

    fn release(&self, _: u64) -> Result<(), Error> {
        Ok(())
    }
}

/// As much of an engine as the set needs.
struct World {
    view: Mutex<Arc<SetView>>,
    group: Mutex<u64>,
    journal: Arc<Groups>,
    control: Control,
}

impl Publisher for World {
    fn view(&self) -> Arc<SetView> {
        Arc::clone(&self.view.lock())
    }

    fn update(&self, change: &mut dyn FnMut(u64, &mut SetView)) {
        let group = self.group.lock();
        let mut view = self.view.lock();
        let mut changed = SetView::clone(&view);
        change(*group, &mut changed);
        *view = Arc::new(changed);
    }

    fn journal(&self) -> Result<Arc<dyn Journal>, Error> {
        Ok(Arc::<Groups>::clone(&self.journal))
    }

    fn control(&self) -> &Control {
        &self.control
    }

    fn dropped(&self) -> Vec<Bytes> {
        Vec::new()
    }

    fn damage(&self) -> Option<Arc<DamageSignal>> {
        None
    }

    fn has_room(&self, _: u64) -> bool {
        true
    }

    fn fail(&self, reason: String) {
        panic!("{reason}");
    }
}

struct Set {
    world: Arc<World>,
    recorder: Recorder,
    options: SetOptions,
    merger: JoinHandle<Merger>,
}

fn open(
    blobs: Arc<dyn Blobs>,
    options: &SetOptions,
    journal: &Arc<Groups>,
    last: u64,
) -> (Arc<World>, Merger) {
    let source =
        Source { owner: OWNER, last_group: last, last_change: Some(last), journal: &**journal, first_run: 1 };
    let recovered = recover(blobs, options, 1 << 16, &source).unwrap();
    let world = Arc::new(World {
        view: Mutex::new(recovered.view()),
        group: Mutex::new(last),
        journal: Arc::clone(journal),
        control: Control::new(*options, &recovered.view(), recovered.merged_group()),
    });
    let merger = recovered.into_merger(Arc::<World>::clone(&world));
    (world, merger)
}

impl Set {
    fn new(options: SetOptions) -> Set {
        let recorder = Recorder::default();
        let (world, merger) = open(Arc::new(recorder.clone()), &options, &Arc::default(), 0);
        let merger = std::thread::spawn(move || merger.run());
        Set { world, recorder, options, merger }
    }

    /// Commits a group: keys that get a value, and keys that go.
    fn commit(&self, changes: &[(Vec<u8>, Option<Vec<u8>>)], model: &mut Model) {
        let group = *self.world.group.lock() + 1;
        let mut entries = Vec::new();
        for (key, value) in changes {
            let (action, value) = match value {
                Some(value) => match model.insert(key.clone(), value.clone()) {
                    Some(_) => (KeyAction::Replace, &value[..]),
                    None => (KeyAction::Add, &value[..]),
                },
                None if model.remove(key).is_some() => (KeyAction::Remove, &[][..]),
                None => continue,
            };
            entries.push(([key, value].concat(), value.len(), action));
        }
        let changes = entries.iter().zip(0..).map(|((entry, value_bytes, action), batch)| {
            KeyChange::of_entry(batch, entry, *value_bytes, *action)
        });
        let origin = Origin { owner: OWNER, group, before: group - 1 };
        let block = GroupBlock::of(origin, changes, self.options.block_bytes).unwrap();
        let Some(block) = block else { return };
        self.world.journal.0.lock().push((group, block.value.clone()));
        *self.world.group.lock() = group;
        let grown = {
            let mut view = self.world.view.lock();
            *view = Arc::new(block.onto(&view));
            Arc::clone(&view)
        };
        self.world.control.grown(&grown);
    }

    fn settle(&self) {
        self.world.control.wait_until_settled(|| self.world.view()).unwrap();
    }

    /// States that a crash could have left since the last time are the same set.
    fn check_crashes(&self, model: &Model) {
        let last = *self.world.group.lock();
        for state in self.recorder.take().states {
            let (world, _) = open(Arc::new(state.copied()), &self.options, &self.world.journal, last);
            check(&world.view(), model);
        }
    }

    fn close(self) {
        self.world.control.stop();
        self.merger.join().unwrap().close().unwrap();
    }
}

fn check(view: &SetView, model: &Model) {
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    let entry = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    let end = [0xFF; 16];
    view.scan_forward(&[], &end, |key, value| {
        forward.push(entry(key, value));
        ControlFlow::Continue(())
    })
    .unwrap();
    view.scan_backward(&[], &end, |key, value| {
        backward.push(entry(key, value));
        ControlFlow::Continue(())
    })
    .unwrap();
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(forward, expected);
    backward.reverse();
    assert_eq!(backward, expected);
    for family in 0..=FAMILIES {
        let count = model.keys().filter(|key| key[0] == family).count() as u64;
        assert_eq!(view.count(&[family; FAMILY_BYTES]).unwrap(), count, "family {family}");
    }
    for key in model.keys().step_by(7) {
        let end = [&key[..], &[0]].concat();
        let mut found = Vec::new();
        view.scan_forward(key, &end, |key, value| {
            found.push(entry(key, value));
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(found, [(key.clone(), model[key].clone())]);
        assert_eq!(view.estimate(key, &end).unwrap(), 1);
    }
    view.check().unwrap();
}

fn key(family: u8, number: u16) -> Vec<u8> {
    let mut key = vec![family; FAMILY_BYTES];
    key.extend((u64::from(number) << 20).to_be_bytes());
    key.extend(vec![7; usize::from(number % 9)]);
    key
}

fn change() -> impl Strategy<Value = (Vec<u8>, Option<Vec<u8>>)> {
    let value = prop_oneof![
        3 => Just(Some(vec![])),
        1 => vec(any::<u8>(), 1..20).prop_map(Some),
        2 => Just(None),
    ];
    ((0..FAMILIES, 0..300u16).prop_map(|(family, number)| key(family, number)), value)
}

fn options() -> impl Strategy<Value = SetOptions> {
    (100..2000u64, 2..5usize, 2..4usize, 10..300usize, 100..2000u64).prop_map(
        |(memory_bytes, memory_fan, run_fan, block_bytes, segment_bytes)| SetOptions {
            memory_bytes,
            memory_fan,
            run_fan,
            block_bytes,
            segment_bytes,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn cut_runs_are_the_set_after_every_step(rounds in vec(vec(change(), 0..80), 1..16), options in options()) {
        let set = Set::new(options);
        let mut model = Model::new();
        for round in rounds {
            set.settle();
            set.commit(&round, &mut model);
            set.settle();
            check(&set.world.view(), &model);
            set.check_crashes(&model);
        }
        let recorder = set.recorder.clone();
        let (journal, last) = (Arc::clone(&set.world.journal), *set.world.group.lock());
        set.close();
        let (world, _) = open(Arc::new(recorder.blobs), &options, &journal, last);
        check(&world.view(), &model);
    }
}

/// A merge of much is a series of small ones: what it needs beside what is there is a few segments, not the whole again.
#[test]
fn a_large_merge_needs_little_room() {
    let options =
        SetOptions { memory_bytes: 2000, memory_fan: 4, run_fan: 3, block_bytes: 200, segment_bytes: 2000 };
    let set = Set::new(options);
    let mut model = Model::new();
    let mut worst = 0;
    for round in 0..120_u64 {
        set.settle();
        set.recorder.take();
        let before = set.recorder.blobs.byte_count();
        let number = |index: u64| (round * 100 + index).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let changes: Vec<_> = (0..100)
            .map(|index| ([&[0; FAMILY_BYTES][..], &number(index).to_be_bytes()].concat(), Some(vec![])))
            .collect();
        set.commit(&changes, &mut model);
        set.settle();
        worst = worst.max(set.recorder.take().byte_count_max.saturating_sub(before));
    }
    let whole = set.recorder.blobs.byte_count();
    assert!(whole > 40 * 2000, "{whole} bytes are many segments");
    assert!(worst < 24 * 2000, "{worst} bytes more than before at some moment, of {whole}");
    check(&set.world.view(), &model);
    set.close();
}
