//! Provisioned throughput that several processes give together.

use crate::world::{CONTAINER, DATABASE, Process, key};
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::definition::throughput::Throughput;
use astrarium_database::{
    Account, BackgroundTask, Conditions, Env, Error, OfferChange, RecordKind, RequestCount, Resource,
    Resources, Rid, ThroughputDemand,
};
use astrarium_env::{Clock, Random};
use astrarium_kv::Engine;
use astrarium_kv::memory::MemoryEngine;
use serde_json::{Value, json};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

/// A clock that is moved by microseconds.
#[derive(Clone)]
struct FineClock(Arc<AtomicU64>);

impl Clock for FineClock {
    fn now_micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

const TICK: u64 = 10_000;
/// Ticks of a second, and after how many of them processes tell each other what they spent.
const TICKS_PER_SECOND: u64 = 1_000_000 / TICK;
const TOLD_EVERY: u64 = 10;
const CHARGE: f64 = 5.0;
/// Requests that come to one process in a tick: far more than there are units for.
const REQUESTS: usize = 10;

struct Servers {
    processes: Vec<Process>,
    clock: FineClock,
}

impl Servers {
    async fn start(count: u64, throttling: bool) -> Servers {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let clock = FineClock(Arc::new(AtomicU64::new(1_000_000_000_000)));
        let mut processes = Vec::new();
        for seed in 0..count {
            let env = Env::new(Box::new(clock.clone()), Random::from_seed(seed));
            let resources = Resources { throttling, ..Resources::default() };
            let account = Account::open_within(Arc::clone(&engine), env, resources).await.unwrap();
            processes.push(Process { account });
        }
        Servers { processes, clock }
    }

    async fn make(&self, throughput: u32) {
        self.make_database(None).await;
        self.processes[0].make(&json!({}), Some(throughput)).await;
    }

    async fn make_database(&self, throughput: Option<u32>) {
        let text = throughput.map(|throughput| throughput.to_string());
        let throughput = Throughput::from_headers(text.as_deref(), None).unwrap();
        let database = DatabaseDefinition { id: "d".to_owned() };
        self.processes[0].account.catalog().create_database(&database, throughput).await.unwrap();
    }

    /// Lets requests come to some of the processes for so many ticks; the units that were spent.
    async fn spend(&self, ticks: u64, asked: impl Fn(u64, usize) -> bool) -> f64 {
        let mut spent = 0.0;
        for tick in 1..=ticks {
            for (place, process) in self.processes.iter().enumerate() {
                for _ in 0..REQUESTS {
                    if !asked(tick, place) || !is_admitted(process).await {
                        break;
                    }
                    spent += CHARGE;
                }
            }
            self.clock.0.fetch_add(TICK, Ordering::Relaxed);
            if tick % TOLD_EVERY == 0 {
                self.tell();
            }
        }
        spent
    }

    /// Has all processes tell all others what they spent.
    fn tell(&self) {
        for (place, process) in self.processes.iter().enumerate() {
            let spent = process.account.monitoring().take_spent();
            for (_, other) in self.processes.iter().enumerate().filter(|(other, _)| *other != place) {
                other.account.monitoring().note_spent_elsewhere(&spent);
            }
        }
    }

    async fn offer(&self) -> (Rid, Value) {
        let catalog = self.processes[0].account.catalog();
        let mut offers = catalog.list_offers(0, 10).await.unwrap().resources;
        let offer: Resource = offers.pop().unwrap();
        assert_eq!(offer.kind, RecordKind::Offer);
        let content: Value = serde_json::from_str(&offer.record.definition).unwrap();
        (offer.rid, json!({"offerVersion": "V2", "content": content}))
    }

    /// Changes the last offer through the first process.
    async fn change_offer(&self, member: &str, value: Value) {
        let (rid, mut body) = self.offer().await;
        body["content"][member] = value;
        let change = OfferChange { body, migration: None };
        let catalog = self.processes[0].account.catalog();
        catalog.replace_offer(rid, &change, &Conditions::default()).await.unwrap();
    }
}

async fn is_admitted(process: &Process) -> bool {
    let container = process.container().await;
    let key = key("a");
    let demand = ThroughputDemand { partition_key: Some(&key), range_id: None, has_low_priority: false };
    if !process.account.is_throttling() {
        return true;
    }
    match process.account.documents(&container).admit(demand).await {
        Ok(admitted) => {
            if let Some(admitted) = admitted {
                admitted.pay(CHARGE);
            }
            true
        }
        Err(Error::Throttled { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn is_about(what: &str, spent: f64, expected: f64) {
    println!("{what}: {} of what is provisioned", spent / expected);
    assert!((spent / expected - 1.0).abs() <= 0.15, "{what}: {spent} instead of {expected}");
}

/// Whether a process is asked in a tick.
type WhoIsAsked = fn(u64, usize) -> bool;

/// Whoever is asked, all together give the throughput, and one alone gives all of it.
#[tokio::test]
async fn several_processes_give_one_budget() {
    const SECONDS: u64 = 10;
    let ticks = SECONDS * TICKS_PER_SECOND;
    let patterns: [(&str, WhoIsAsked); 4] = [
        ("one alone", |_, place| place == 0),
        ("all", |_, _| true),
        ("by turns of a second", |tick, place| tick / TICKS_PER_SECOND % 2 == place as u64 % 2),
        ("by turns of a tick", |tick, place| tick % 2 == place as u64 % 2),
    ];
    for rate in [400, 4_000] {
        for count in [2, 3] {
            for (name, asked) in patterns {
                let servers = Servers::start(count, true).await;
                servers.make(rate).await;
                servers.tell();
                let spent = servers.spend(ticks, asked).await;
                // The units of a second are there at once.
                let expected = f64::from(rate) * (SECONDS + 1) as f64;
                is_about(&format!("{name}, {count} processes, {rate}"), spent, expected);
            }
        }
    }
}

/// Without anybody telling, each goes by what it knows: that is what the others are told for.
#[tokio::test]
async fn processes_that_are_told_nothing_give_the_budget_each() {
    let servers = Servers::start(2, true).await;
    servers.make(400).await;
    let mut spent = 0.0;
    for process in &servers.processes {
        while is_admitted(process).await {
            spent += CHARGE;
        }
    }
    is_about("each", spent, 800.0);
    // Nobody asked before, so nothing of that is told.
    assert_eq!(servers.processes[0].account.monitoring().take_spent(), []);
}

/// A process that is asked for the first time knows what the others have spent.
#[tokio::test]
async fn whoever_begins_knows_what_others_spent() {
    let servers = Servers::start(2, true).await;
    servers.make(400).await;
    servers.tell();
    servers.spend(2 * TICKS_PER_SECOND, |_, place| place == 0).await;
    let mut spent = 0.0;
    while is_admitted(&servers.processes[1]).await {
        spent += CHARGE;
    }
    assert!(spent <= 100.0, "{spent}");
}

#[tokio::test]
async fn shared_throughput_and_definitions_have_one_budget_too() {
    let servers = Servers::start(2, true).await;
    servers.make_database(Some(400)).await;
    servers.processes[0].make(&json!({}), None).await;
    servers.tell();
    is_about("shared", servers.spend(5 * TICKS_PER_SECOND, |_, _| true).await, 400.0 * 6.0);
    let mut count = 0_u32;
    for tick in 0..5 * TICKS_PER_SECOND {
        for process in &servers.processes {
            count += u32::from(process.account.admit_metadata(1.0).is_ok());
            count += u32::from(process.account.admit_metadata(1.0).is_ok());
        }
        servers.clock.0.fetch_add(TICK, Ordering::Relaxed);
        if tick % TOLD_EVERY == 0 {
            servers.tell();
        }
    }
    is_about("definitions", f64::from(count), 240.0 * 6.0);
}

/// An offer that is changed through one process counts in the others as soon as they look, which they do twice a second.
#[tokio::test]
async fn offers_of_other_processes_are_followed() {
    let servers = Servers::start(2, false).await;
    servers.make(400).await;
    let [one, other] = &servers.processes[..] else { panic!("two processes") };
    assert!(is_admitted(one).await && is_admitted(other).await);
    assert!(!other.account.is_throttling());
    assert!(!other.account.maintenance().follow_offers().await.unwrap(), "nothing has changed");
    servers.change_offer("astrariumThrottling", json!(true)).await;
    assert!(other.account.maintenance().follow_offers().await.unwrap());
    assert!(other.account.is_throttling());
    servers.tell();
    let only_other = |_: u64, place: usize| place == 1;
    is_about("the other", servers.spend(5 * TICKS_PER_SECOND, only_other).await, 400.0 * 6.0);
    // Something else of the catalog changes: what was spent stays spent.
    other
        .account
        .catalog()
        .create_child(astrarium_database::ChildKind::User(DATABASE), "u", "{}")
        .await
        .unwrap();
    assert!(!other.account.maintenance().follow_offers().await.unwrap());
    assert!(!is_admitted(other).await);
    servers.change_offer("offerThroughput", json!(1_000)).await;
    assert!(!is_admitted(other).await, "not looked at yet");
    assert!(other.account.maintenance().follow_offers().await.unwrap());
    is_about("with more", servers.spend(5 * TICKS_PER_SECOND, only_other).await, 1_000.0 * 6.0);
    servers.change_offer("astrariumThrottling", json!(false)).await;
    other.account.maintenance().follow_offers().await.unwrap();
    assert!(is_admitted(other).await);
    assert!(other.account.catalog().container(DATABASE, CONTAINER).await.is_ok());
}

/// The work beside requests looks, again and again.
#[tokio::test]
async fn the_work_beside_requests_follows_offers() {
    const DEADLINE: Duration = Duration::from_mins(5);
    let servers = Servers::start(2, false).await;
    servers.make(400).await;
    let other = &servers.processes[1].account;
    let count: RequestCount = Arc::new(|| 0);
    let mut tasks = BackgroundTask::all(&other.maintenance(), &count);
    let mut running: Vec<_> = tasks.iter_mut().map(|task| Box::pin(task.run())).collect();
    let working = poll_fn(|context| {
        let is_over = running.iter_mut().any(|task| task.as_mut().poll(context).is_ready());
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    });
    let changed = async {
        // After the first look, which found nothing.
        tokio::time::sleep(Duration::from_millis(20)).await;
        servers.change_offer("astrariumThrottling", json!(true)).await;
        while !other.is_throttling() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = working => panic!("the work has no end"),
        noticed = tokio::time::timeout(DEADLINE, changed) => noticed.expect("the change is noticed"),
    }
}
