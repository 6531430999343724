//! Work beside requests that every process does: one at a time, and another one goes on where it stopped.

use crate::world::{CONTAINER, DATABASE, Process, Processes, key};
use astrarium_database::Error;
use serde_json::{Value, json};

const DOCUMENTS: usize = 450;
/// Longer than a lease lasts.
const LEASE_SECONDS: u64 = 31;

async fn fill(process: &Process, pk: &str) {
    for number in 0..DOCUMENTS {
        process.put(&json!({"id": number.to_string(), "pk": pk, "n": number})).await;
    }
}

/// How many documents there are, expired ones included.
async fn stored(process: &Process) -> u64 {
    let container = process.container().await;
    let mut documents = 0;
    for range in &container.ranges {
        documents += process.account.documents(&container).range_usage(range).await.unwrap().documents;
    }
    documents
}

/// Both do a kind of work by turns; how many steps each did.
async fn by_turns(
    processes: &Processes,
    work: impl AsyncFn(&Process) -> Result<bool, Error>,
) -> (usize, usize) {
    let (mut one, mut other) = (0, 0);
    loop {
        let (first, second) = (work(&processes.one).await.unwrap(), work(&processes.other).await.unwrap());
        one += usize::from(first);
        other += usize::from(second);
        if !first && !second {
            return (one, other);
        }
    }
}

#[tokio::test]
async fn expired_documents_are_erased_once() {
    let processes = Processes::new(json!({"defaultTtl": 10})).await;
    fill(&processes.one, "a").await;
    processes.clock.advance_seconds(11);
    let erase = async |process: &Process| process.account.maintenance().erase_expired().await;
    let (one, other) = by_turns(&processes, erase).await;
    assert!(one >= 5 && other <= 1, "one process does it: {one} and {other} steps");
    assert_eq!(stored(&processes.other).await, 0);
    let erased = |process: &Process| process.account.monitoring().background_statistics().expired_documents;
    assert_eq!(erased(&processes.one) + erased(&processes.other), DOCUMENTS as u64);
    assert_eq!(processes.other.problems().await, [] as [&str; 0]);
}

/// Documents that one process writes and another one has looked for before, when there were none.
#[tokio::test]
async fn a_process_finds_what_another_lets_expire() {
    let processes = Processes::new(json!({"defaultTtl": 100})).await;
    let (one, other) = (&processes.one, &processes.other);
    assert!(!other.account.maintenance().erase_expired().await.unwrap());
    one.put(&json!({"id": "1", "pk": "a", "ttl": 5})).await;
    processes.clock.advance_seconds(6);
    assert!(other.account.maintenance().erase_expired().await.unwrap());
    assert_eq!(stored(one).await, 0);
    // A definition by which everything expires sooner.
    other.put(&json!({"id": "2", "pk": "a"})).await;
    assert!(!other.account.maintenance().erase_expired().await.unwrap());
    one.replace(&json!({"defaultTtl": 5})).await;
    processes.clock.advance_seconds(6);
    assert!(other.account.maintenance().erase_expired().await.unwrap());
    assert_eq!(stored(one).await, 0);
}

#[tokio::test]
async fn a_deleted_partition_is_gone_everywhere_and_erased_by_one() {
    for sleeper_returns in [false, true] {
        let processes = Processes::new(json!({})).await;
        let (one, other) = (&processes.one, &processes.other);
        fill(one, "a").await;
        fill(other, "b").await;
        for number in 0..DOCUMENTS {
            one.put(&json!({"id": format!("more {number}"), "pk": "a"})).await;
        }
        let container = one.container().await;
        one.account.documents(&container).delete_partition(&key("a")).await.unwrap();
        assert!(stored(other).await > DOCUMENTS as u64, "what is not erased yet is only hidden");
        for id in ["0", "449", "more 0", "more 449"] {
            assert!(matches!(other.read(id, "a").await, Err(Error::NotFound)));
        }
        assert_eq!(other.query("SELECT VALUE COUNT(1) FROM c").await.unwrap(), [DOCUMENTS]);
        // Written again, by a process that knows of the delete because storage told it.
        other.put(&json!({"id": "0", "pk": "a"})).await;
        let erase = async |process: &Process| process.account.maintenance().erase_deleted().await.unwrap();
        assert!(erase(one).await && !erase(other).await, "the first has the lease");
        // It sleeps for longer than its lease lasts, and perhaps comes back.
        processes.clock.advance_seconds(LEASE_SECONDS);
        assert!(erase(other).await);
        while erase(other).await || (sleeper_returns && erase(one).await) {}
        assert_eq!(stored(one).await, DOCUMENTS as u64 + 1);
        assert_eq!(one.read("0", "a").await.unwrap()["id"], "0");
        assert_eq!(other.problems().await, [] as [&str; 0]);
    }
}

#[tokio::test]
async fn an_index_is_built_by_one_and_used_by_all() {
    let bare = json!({"indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}]}});
    let processes = Processes::new(bare).await;
    let (one, other) = (&processes.one, &processes.other);
    fill(one, "a").await;
    one.replace(&json!({})).await;
    let build = async |process: &Process| process.account.maintenance().build_indexes().await.unwrap();
    assert!(build(other).await, "whoever comes first builds");
    let mut is_sleeping = false;
    for number in 0.. {
        // Both write meanwhile.
        one.put(&json!({"id": format!("one {number}"), "pk": "a", "n": number})).await;
        other.put(&json!({"id": number.to_string(), "pk": "a", "n": -number})).await;
        if number == 1 {
            processes.clock.advance_seconds(LEASE_SECONDS);
            is_sleeping = true;
        }
        if !build(if is_sleeping { one } else { other }).await {
            break;
        }
    }
    assert!(!build(other).await);
    let ordered = async |process: &Process| -> Vec<Value> {
        process.query("SELECT VALUE c.n FROM c WHERE c.n < 3 ORDER BY c.n").await.unwrap()
    };
    assert_eq!(ordered(one).await, ordered(other).await);
    let container = other.account.catalog().current_container(DATABASE, CONTAINER).await.unwrap();
    assert_eq!(other.account.documents(&container).index_progress().await.unwrap(), 100);
    assert_eq!(one.problems().await, [] as [&str; 0]);
    assert_eq!(other.problems().await, [] as [&str; 0]);
}

/// A process whose lease another one took over finishes nothing, and writers never notice.
#[tokio::test]
async fn space_is_freed_by_whoever_comes() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    fill(one, "a").await;
    for round in 0..3 {
        let excluded = json!({"indexingPolicy": {"excludedPaths": [{"path": format!("/n{round}/*")}]}});
        one.replace(&excluded).await;
        while other.account.maintenance().build_indexes().await.unwrap() {}
        let sweep = async |process: &Process| process.account.maintenance().sweep().await;
        by_turns(&processes, sweep).await;
        processes.clock.advance_seconds(LEASE_SECONDS);
    }
    assert_eq!(one.account.monitoring().background_statistics().sweeps_waiting, 0);
    assert_eq!(other.problems().await, [] as [&str; 0]);
}
