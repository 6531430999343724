//! Kills the server at random moments under concurrent writes, starts it again, and compares everything.
//!
//! Several workers create, replace, upsert and delete items through signed HTTP, and now and then databases and
//! containers. What was acknowledged is remembered exactly, as is the one request each worker had under way when the
//! process died. After each kill:
//! - every acknowledged write is there, with its content, etag and rid; nothing acknowledged as deleted is there;
//! - a request under way is wholly there or not at all;
//! - feeds, point reads, queries, key ranges and offers agree; no LSN went back; no rid is given twice;
//! - indexes whose policies were changed under the load are built to their end;
//! - `astrarium verify` finds no problem, whether it or the server is the first to open the folder.
//!
//! Stored procedures and triggers have a test of their own (`scripts`), and so have sessions and change feeds (`history`).
//!
//! `ASTRARIUM_CRASH_ROUNDS` sets the number of kills, `ASTRARIUM_CRASH_SEED` the choices (printed with every failure).

mod account;
mod client;
mod history;
mod process;
mod scripts;
mod shared;
mod worker;

use account::Account;
use astrarium_env::Random;
use client::Client;
use process::Server;
use shared::Contest;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use worker::Worker;

/// The database and container that all workers write to.
const MAIN_DATABASE: &str = "dbs/main";
const MAIN_CONTAINER: &str = "dbs/main/colls/items";
const WORKER_COUNT: u64 = 6;
const ROUNDS_DEFAULT: u64 = 15;
/// Indexes of this size must be built within this time.
const BUILD_MAX: Duration = Duration::from_mins(5);
/// SIGTERM must end the process within this time, whatever is under way.
const TERMINATION_MAX: Duration = Duration::from_mins(5);

#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let rounds = number_from_environment("ASTRARIUM_CRASH_ROUNDS").unwrap_or(ROUNDS_DEFAULT);
    let mut test = CrashTest::new();
    for round in 0..rounds {
        let server = test.begin_round(&format!("kill {round}"));
        test.run_workers(server, End::Kill);
        match test.random.next_u64() % 3 {
            // The checker is the first to open what the kill left.
            0 => test.verify(),
            // A server is, which is itself killed while it opens.
            1 => test.kill_while_starting(),
            // The server of the next round is.
            _ => {}
        }
    }
    test.finish();
}

#[test]
fn nothing_acknowledged_is_lost_by_termination() {
    let mut test = CrashTest::new();
    for round in 0..2 {
        let server = test.begin_round(&format!("termination {round}"));
        test.run_workers(server, End::Terminate);
    }
    test.finish();
}

/// How a round ends.
#[derive(Clone, Copy)]
enum End {
    Kill,
    Terminate,
}

struct CrashTest {
    folder: tempfile::TempDir,
    seed: u64,
    random: Random,
    workers: Vec<Worker>,
    contest: Contest,
    /// What the last comparison saw; the main container is not there before the first.
    account: Account,
    /// Whether `verify` has seen the folder since the last kill.
    verified: bool,
    /// How often the index of the main container was half built when a server began.
    half_built_count: u64,
}

impl CrashTest {
    fn new() -> CrashTest {
        let seed = number_from_environment("ASTRARIUM_CRASH_SEED")
            .unwrap_or_else(|| astrarium_env::Env::system().random_u64());
        println!("ASTRARIUM_CRASH_SEED={seed}");
        let random = Random::from_seed(seed);
        let workers = (0..WORKER_COUNT).map(|number| Worker::new(number, random.next_u64())).collect();
        CrashTest {
            folder: tempfile::tempdir().expect("a temporary folder"),
            seed,
            random,
            workers,
            contest: Contest::default(),
            account: Account::default(),
            verified: true,
            half_built_count: 0,
        }
    }

    fn verify(&mut self) {
        process::verify(self.folder());
        self.verified = true;
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the server and compares what it has with what it must have.
    fn begin_round(&mut self, name: &str) -> Server {
        let server = Server::start(self.folder());
        let mut client = Client::new(server.address());
        if self.account.is_empty() {
            worker::create_main_container(&mut client);
            self.account = Account::read(&mut client, &self.random);
            self.workers[0].adopt(MAIN_CONTAINER, &self.account);
            return server;
        }
        self.half_built_count += u64::from(client.index_progress(MAIN_CONTAINER) < 100);
        let found = Account::read(&mut client, &self.random);
        let context = format!("seed {}, {name}", self.seed);
        let mut expected = self.account.shared_part();
        for worker in &mut self.workers {
            worker.settle(&found, &context);
            expected.extend(worker.resources().clone());
        }
        expected.extend(self.contest.settle(&found, &context));
        found.check_equals(&expected, &context);
        found.check_positions(&self.account, &context);
        found.check_points(&mut client, &self.random, &context);
        found.check_queries(&mut client, &context);
        self.account = found;
        if self.verified {
            return server;
        }
        server.kill();
        self.verify();
        Server::start(self.folder())
    }

    /// Lets the workers work for a while and ends the server in the middle of it.
    fn run_workers(&mut self, server: Server, end: End) {
        let pause = Duration::from_millis(100 + self.random.next_u64() % 700);
        let (address, ending) = (server.address(), AtomicBool::new(false));
        let (contest, workers) = (&self.contest, &mut self.workers);
        let account = &self.account;
        let lsns = std::thread::scope(|scope| {
            let running: Vec<_> = workers
                .iter_mut()
                .map(|worker| scope.spawn(|| worker.run(address, contest, account, &ending)))
                .collect();
            std::thread::sleep(pause);
            ending.store(true, Ordering::SeqCst);
            match end {
                End::Kill => server.kill(),
                End::Terminate => {
                    let began = Instant::now();
                    let status = server.terminate(TERMINATION_MAX);
                    assert_eq!(
                        status.code(),
                        Some(0),
                        "SIGTERM ends with success, after {:?}",
                        began.elapsed()
                    );
                }
            }
            running
                .into_iter()
                .map(|worker| worker.join().expect("a worker saw something wrong"))
                .collect::<Vec<_>>()
        });
        self.account.raise_positions(lsns);
        self.verified = false;
    }

    /// Waits until every index follows its policy.
    fn wait_for_indexes(&self, client: &mut Client) {
        let deadline = Instant::now() + BUILD_MAX;
        for (path, _) in self.account.containers() {
            while client.index_progress(path) < 100 {
                assert!(Instant::now() < deadline, "seed {}: the index of {path} is not finished", self.seed);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.account.check_queries(client, "built");
    }

    fn kill_while_starting(&mut self) {
        let pause = Duration::from_millis(self.random.next_u64() % 60);
        process::kill_while_starting(self.folder(), pause);
    }

    /// One more comparison, a clean end, and a last look at the files.
    fn finish(mut self) {
        let server = self.begin_round("end");
        self.wait_for_indexes(&mut Client::new(server.address()));
        assert_eq!(server.terminate(TERMINATION_MAX).code(), Some(0), "a quiet server ends with success");
        process::verify(self.folder());
        let writes: u64 = self.workers.iter().map(Worker::acknowledged_count).sum();
        println!("{writes} acknowledged writes, {} resources at the end", self.account.resource_count());
        println!("{} servers began with an index that was half built", self.half_built_count);
        assert!(writes > 0, "the workers did something");
    }
}

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}
