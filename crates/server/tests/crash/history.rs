//! What clients see over kills, stops and starts of the server is the history of one container: no acknowledged write and no event
//! of a change feed is lost, none comes twice under one position, order and sessions hold (`testkit::history` says exactly what).
//!
//! `ASTRARIUM_SOAK_SECONDS` makes it a long run (`cargo xtask soak`), `ASTRARIUM_CRASH_SEED` sets the choices.

use crate::process::{self, Server};
use crate::{TERMINATION_MAX, number_from_environment};
use astrarium_env::Random;
use astrarium_testkit::Client;
use astrarium_testkit::history::workload::Workload;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Lives of the server in the everyday run.
const LIVES: u64 = 5;

#[test]
fn what_clients_see_over_kills_is_one_history() {
    let seed = number_from_environment("ASTRARIUM_CRASH_SEED")
        .unwrap_or_else(|| astrarium_env::Env::system().random_u64());
    println!("ASTRARIUM_CRASH_SEED={seed}");
    let soak = number_from_environment("ASTRARIUM_SOAK_SECONDS").map(Duration::from_secs);
    let random = Random::from_seed(seed);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let throughput = if random.next_u64().is_multiple_of(2) { 400 } else { 20_000 };
    let mut server = Server::start(folder.path());
    let mut workload = Workload::new(&mut Client::of_process(server.address()), seed, throughput);
    let (began, mut kills, mut stops) = (Instant::now(), 0, 0);
    while soak.map_or(kills + stops < LIVES, |time| began.elapsed() < time) {
        // Some lives are short, so that servers end while they begin to work; in a long run others are long.
        let longest = if soak.is_some() && random.next_u64().is_multiple_of(2) { 10_000 } else { 800 };
        let life = Duration::from_millis(100 + random.next_u64() % longest);
        let is_killed = !random.next_u64().is_multiple_of(4);
        live(&mut workload, server, life, is_killed);
        if is_killed {
            kills += 1;
        } else {
            stops += 1;
        }
        if random.next_u64().is_multiple_of(8) {
            process::verify(folder.path());
        }
        server = Server::start(folder.path());
    }
    let address = server.address();
    let problems = workload.check(&|| Client::of_process(address));
    println!(
        "{throughput} RU/s, {kills} kills, {stops} stops, {} s: {}",
        began.elapsed().as_secs(),
        workload.summary()
    );
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}");
    assert_eq!(server.terminate(TERMINATION_MAX).code(), Some(0), "a quiet server ends with success");
    process::verify(folder.path());
}

/// Clients work while a server lives, and see it end.
fn live(workload: &mut Workload, server: Server, life: Duration, is_killed: bool) {
    let (address, is_ending) = (server.address(), AtomicBool::new(false));
    let connect = || Client::of_process(address);
    std::thread::scope(|scope| {
        scope.spawn(|| workload.run(&connect, &is_ending));
        std::thread::sleep(life);
        is_ending.store(true, Ordering::SeqCst);
        if is_killed {
            server.kill();
        } else {
            assert_eq!(server.terminate(TERMINATION_MAX).code(), Some(0), "SIGTERM ends with success");
        }
    });
}
