//! The simulator itself: it can be repeated, and it notices storage that breaks the contract.

use astrarium_sim::{Misdeed, run};

/// Seeds that a misdeed is looked for in.
const SEEDS: std::ops::Range<u64> = 0..200;

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..5 {
        let (first, second) = (run(seed, Misdeed::None), run(seed, Misdeed::None));
        match (first, second) {
            (Ok(first), Ok(second)) => assert_eq!(first, second),
            (Err(failure), _) | (_, Err(failure)) => panic!("{failure}"),
        }
    }
}

#[test]
fn other_seeds_are_other_runs() {
    let fingerprint = |seed| run(seed, Misdeed::None).map(|run| run.fingerprint).ok();
    assert_ne!(fingerprint(1), fingerprint(2));
}

fn is_noticed(misdeed: Misdeed) {
    let noticed = SEEDS.into_iter().any(|seed| run(seed, misdeed).is_err());
    assert!(noticed, "storage that {misdeed:?} is not noticed in {SEEDS:?}");
}

#[test]
fn a_forgotten_batch_is_noticed() {
    is_noticed(Misdeed::ForgetsTheLastBatch);
}

#[test]
fn a_torn_batch_is_noticed() {
    is_noticed(Misdeed::TearsTheLastBatch);
}

#[test]
fn ignored_expectations_are_noticed() {
    is_noticed(Misdeed::IgnoresExpectations);
}

#[test]
fn ignored_epochs_are_noticed() {
    is_noticed(Misdeed::IgnoresEpochs);
}

#[test]
fn reads_of_the_past_are_noticed() {
    is_noticed(Misdeed::ShowsThePast);
}
