//! Writers, readers with sessions and readers of change feeds beside each other: what they saw is the history of one container
//! that loses nothing, tells nothing twice, and keeps the order of each logical partition, on every engine.
//!
//! `ASTRARIUM_HISTORY_SEED` sets the choices (printed with every failure). Servers that are stopped and killed meanwhile:
//! `crates/server/tests/crash/history.rs`.

use astrarium_testkit::history::workload::Workload;
use astrarium_testkit::{EngineKind, Options, Request, Server};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const TIME: Duration = Duration::from_millis(1_500);

#[test]
fn what_clients_see_is_one_history() {
    let seed = std::env::var("ASTRARIUM_HISTORY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| astrarium_env::Env::system().random_u64());
    println!("ASTRARIUM_HISTORY_SEED={seed}");
    for engine in EngineKind::ALL {
        for throughput in [400, 20_000] {
            let server = Server::start(Options::on(engine));
            let mut workload = Workload::new(&mut server.client(), seed, throughput);
            let is_ending = AtomicBool::new(false);
            let connect = || server.client();
            std::thread::scope(|scope| {
                scope.spawn(|| workload.run(&connect, &is_ending));
                // The work beside requests: indexes of changed policies, splits.
                scope.spawn(|| {
                    while !is_ending.load(SeqCst) {
                        server.settle();
                        std::thread::sleep(Duration::from_millis(20));
                    }
                });
                std::thread::sleep(TIME);
                is_ending.store(true, SeqCst);
            });
            let ranges = server.client().expect(200, &Request::new("GET", "/dbs/history/colls/c/pkranges"));
            println!("{} key ranges", ranges.header("x-ms-item-count").unwrap_or_default());
            let problems = workload.check(&connect);
            println!("{}, {throughput} RU/s: {}", engine.name(), workload.summary());
            assert!(problems.is_empty(), "{}, {throughput} RU/s: {problems:#?}", engine.name());
        }
    }
}
