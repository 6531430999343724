//! One run: a database is made, clients and background work meet, the power is cut now and then, and in the end everything
//! is looked at in peace.

use crate::client::Actor;
use crate::dice::Dice;
use crate::executor::{CurrentOperation, Executor};
use crate::history::CommitHistory;
use crate::model::Rules;
use crate::storage::{Disk, FaultyStorage, Likelihoods, Misdeed, Surroundings};
use crate::time::Time;
use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::definition::throughput::Throughput;
use astrarium_database::{Account, BackgroundTask, Env, Error, Link, NewContainer, RequestCount, Resources};
use astrarium_env::{Random, with_timeline};
use parking_lot::Mutex;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Polls of one run at most: far more than one takes that goes on.
const STEPS_MAX: usize = 2_000_000;

/// Requests in the end, all of them reads: of every document, and by every kind of query.
const LAST_READS: u64 = 24;

/// A run that went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedRun {
    /// Of everything that happened, in order.
    pub fingerprint: u64,
    /// Requests that changed something.
    pub changes: usize,
    /// Times that the power was cut.
    pub crashes: u64,
}

/// What went wrong, and what happened before.
#[derive(Debug)]
pub struct SeedFailure {
    /// The seed of the run.
    pub seed: u64,
    /// What should not have happened.
    pub problems: Vec<String>,
    /// The last events.
    pub events: Vec<String>,
}

impl std::fmt::Display for SeedFailure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for event in &self.events {
            writeln!(formatter, "  {event}")?;
        }
        writeln!(formatter, "seed {}: {} problems", self.seed, self.problems.len())?;
        self.problems.iter().try_for_each(|problem| writeln!(formatter, "  {problem}"))
    }
}

/// Makes the run of a seed.
pub fn run(seed: u64, misdeed: Misdeed) -> Result<SeedRun, SeedFailure> {
    let dice = Dice::new(seed);
    let unique = dice.chance(400);
    let rules = Rules { unique, ttl: dice.chance(300).then(|| 2 + dice.below(60)) };
    let time = Time::default();
    let around = Arc::new(Surroundings {
        dice,
        time: time.clone(),
        names: CurrentOperation::default(),
        history: Mutex::new(CommitHistory::new(rules, time.clone())),
        likelihoods: Mutex::new(None),
        misdeed,
    });
    let mut world = Simulation {
        disk: Arc::default(),
        is_one_range: around.dice.chance(800),
        rules,
        crashes: 0,
        account: None,
        around,
    };
    with_timeline(Arc::new(time), || world.live());
    let history = world.around.history.lock();
    if history.problems.is_empty() {
        let (fingerprint, changes) = (history.fingerprint(), history.change_count());
        return Ok(SeedRun { fingerprint, changes, crashes: world.crashes });
    }
    let (problems, events) = (history.problems.clone(), history.events.iter().cloned().collect());
    Err(SeedFailure { seed, problems, events })
}

/// Something that is done with nobody else about.
type Quietly = fn(Account, Quiet) -> Pin<Box<dyn Future<Output = Result<(), Error>>>>;

struct Simulation {
    around: Arc<Surroundings>,
    disk: Arc<Mutex<Disk>>,
    rules: Rules,
    is_one_range: bool,
    crashes: u64,
    account: Option<Account>,
}

impl Simulation {
    fn live(&mut self) {
        self.alone(|account, world| Box::pin(make(account, world)));
        let dice = &self.around.dice;
        let likelihoods =
            Likelihoods { delay: dice.below(600), busy: dice.below(15), lost_sync: dice.below(10) };
        let clients: Vec<Arc<AtomicU64>> =
            (0..2 + dice.below(3)).map(|_| Arc::new(AtomicU64::new(10 + dice.below(30)))).collect();
        let crashes = dice.below(4);
        for crash in 0..=crashes {
            *self.around.likelihoods.lock() = Some(likelihoods);
            let is_last = crash == crashes;
            let steps = if is_last { STEPS_MAX } else { 50 + self.around.dice.below(2_000) as usize };
            self.meet(&clients, steps, is_last);
            if !self.around.history.lock().problems.is_empty() {
                return;
            }
            self.crash();
        }
        self.alone(|account, world| Box::pin(check(account, world)));
    }

    /// The power is cut.
    fn crash(&mut self) {
        self.crashes += 1;
        let mut history = self.around.history.lock();
        history.note("the power is cut");
        history.abandon();
        drop(history);
        self.account = None;
        *self.around.likelihoods.lock() = None;
    }

    /// Clients and background work, until all clients are done or so many steps are made.
    fn meet(&mut self, clients: &[Arc<AtomicU64>], steps: usize, is_last: bool) {
        let account = self.opened();
        let around = Arc::clone(&self.around);
        let mut executor = Executor::new(&around.dice, &around.time, &around.names);
        let running = Rc::new(RefCell::new(0));
        for left in clients {
            *running.borrow_mut() += 1;
            let client = Actor {
                account: account.clone(),
                around: Arc::clone(&around),
                is_one_range: self.is_one_range,
                is_unique: self.rules.unique,
                reads_changes: self.rules.ttl.is_none(),
                left: Arc::clone(left),
                etags: BTreeMap::new(),
                only_reads: false,
            };
            let running = Rc::clone(&running);
            executor.start(async move {
                client.run().await;
                *running.borrow_mut() -= 1;
            });
        }
        let requests: RequestCount = Arc::new(|| 0);
        for mut task in BackgroundTask::all(&account.maintenance(), &requests) {
            executor.start(async move { task.run().await });
        }
        for _ in 0..steps {
            let Some(place) = executor.step() else { break };
            if around.dice.chance(2) {
                let seconds = around.dice.below(40).cast_signed() - 10;
                around.time.jump_seconds(seconds);
                around.history.lock().note(format!("the clock jumps by {seconds} s"));
            }
            let mut history = around.history.lock();
            history.note_step(place);
            if *running.borrow() == 0 || !history.problems.is_empty() {
                return;
            }
        }
        if is_last && *running.borrow() > 0 {
            around.history.lock().problem("clients do not come to an end".to_owned());
        }
    }

    fn opened(&mut self) -> Account {
        if let Some(account) = &self.account {
            return account.clone();
        }
        let storage = Arc::new(FaultyStorage::open(&self.disk, &self.around));
        let env = Env::new(Box::new(self.around.time.clone()), Random::from_seed(self.around.dice.number()));
        let resources = Resources { inline_queries: true, ..Resources::default() };
        let opened = self.finish(async move { Account::open_within(storage, env, resources).await });
        let account = opened.and_then(|opened| match opened {
            Ok(account) => Some(account),
            Err(error) => {
                self.around.history.lock().problem(format!("the account does not open: {error}"));
                None
            }
        });
        let account = account.expect("an account opens on the reference engine");
        self.account = Some(account.clone());
        account
    }

    /// Does something with nobody else about.
    fn alone(&mut self, work: Quietly) {
        let account = self.opened();
        let checked =
            Quiet { around: Arc::clone(&self.around), rules: self.rules, is_one_range: self.is_one_range };
        if let Some(Err(error)) = self.finish(work(account, checked)) {
            self.around.history.lock().problem(format!("in peace: {error}"));
        }
    }

    fn finish<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Option<T> {
        let result = Rc::new(RefCell::new(None));
        let own = Rc::clone(&result);
        let mut executor = Executor::new(&self.around.dice, &self.around.time, &self.around.names);
        executor.start(async move {
            let output = future.await;
            *own.borrow_mut() = Some(output);
        });
        while result.borrow().is_none() && executor.step().is_some() {}
        drop(executor);
        result.take()
    }
}

/// What is known where a run is set up and checked.
struct Quiet {
    around: Arc<Surroundings>,
    rules: Rules,
    is_one_range: bool,
}

async fn make(account: Account, world: Quiet) -> Result<(), Error> {
    account.catalog().create_database(&DatabaseDefinition { id: "d".to_owned() }, None).await?;
    let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    if world.rules.unique {
        definition["uniqueKeyPolicy"] = json!({"uniqueKeys": [{"paths": ["/u"]}]});
    }
    if let Some(ttl) = world.rules.ttl {
        definition["defaultTtl"] = json!(ttl);
    }
    let definition =
        ContainerDefinition::from_json(&definition).map_err(|error| Error::Bug(error.to_string()))?;
    let throughput = (!world.is_one_range).then_some(Throughput::Manual(12_000));
    account.catalog().create_container(Link::Name("d"), &NewContainer { definition, throughput }).await?;
    Ok(())
}

/// Looks at everything: storage agrees with itself and with the model.
async fn check(account: Account, world: Quiet) -> Result<(), Error> {
    let mut problems = Vec::new();
    while account.maintenance().build_indexes().await? {}
    while account.maintenance().sweep().await? {}
    account
        .maintenance()
        .verify(|name, report| problems.extend(report.problems.iter().map(|one| format!("{name}: {one}"))))
        .await?;
    let container = account.catalog().container(Link::Name("d"), Link::Name("c")).await?;
    let (documents, mut count) = (account.documents(&container), 0);
    for range in &container.ranges {
        count += documents.range_usage(range).await?.documents;
    }
    world.around.history.lock().check_count(count);
    for problem in problems {
        world.around.history.lock().problem(problem);
    }
    let (left, is_one_range) = (Arc::new(AtomicU64::new(LAST_READS)), world.is_one_range);
    let (is_unique, reads_changes) = (world.rules.unique, world.rules.ttl.is_none());
    let client = Actor {
        account,
        around: world.around,
        is_one_range,
        is_unique,
        reads_changes,
        left,
        etags: BTreeMap::new(),
        only_reads: true,
    };
    client.run().await;
    Ok(())
}
