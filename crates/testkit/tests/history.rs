//! Writers, readers with sessions and readers of change feeds beside each other: what they saw is the history of one container
//! that loses nothing, tells nothing twice, and keeps the order of each logical partition, on every engine; where there are several
//! places, ranges move between them meanwhile.
//!
//! `ASTRARIUM_HISTORY_SEED` sets the choices (printed with every failure). Servers that are stopped and killed meanwhile:
//! `crates/server/tests/crash/history.rs`.

use astrarium_testkit::history::workload::Workload;
use astrarium_testkit::{EngineKind, Options, Request, Server};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const TIME: Duration = Duration::from_millis(1_500);

fn seed() -> u64 {
    let seed = std::env::var("ASTRARIUM_HISTORY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| astrarium_env::Env::system().random_u64());
    println!("ASTRARIUM_HISTORY_SEED={seed}");
    seed
}

/// Every change tells what was before it, so that the history can be checked.
fn options(engine: EngineKind) -> Options {
    Options { previous_images: true, ..Options::on(engine) }
}

#[test]
fn what_clients_see_is_one_history() {
    let seed = seed();
    let others = EngineKind::all().into_iter().filter(|engine| *engine != EngineKind::Places);
    for engine in others.chain([EngineKind::Places]) {
        let mut moves = 0;
        for throughput in [400, 20_000] {
            moves += look(&[Server::start(options(engine))], engine.name(), seed, throughput);
        }
        assert!(moves > 0 || engine != EngineKind::Places, "ranges were moved");
    }
}

/// Clients of three servers over one storage, whose every request goes to the next server: the history is as one server's.
#[test]
fn what_clients_of_several_servers_see_is_one_history() {
    let seed = seed();
    for engine in EngineKind::all_shared() {
        for throughput in [400, 20_000] {
            let servers: [Server; 3] = Server::start_several(&options(engine));
            look(&servers, &format!("three servers, {}", engine.name()), seed, throughput);
        }
    }
}

/// The same where ranges move between three places, by whichever server has the lease.
#[test]
fn what_clients_of_several_servers_see_is_one_history_while_ranges_move() {
    let seed = seed();
    let stores = EngineKind::all().into_iter().filter(|engine| *engine == EngineKind::Stores);
    for engine in stores.chain([EngineKind::Places]) {
        let mut moves = 0;
        for throughput in [400, 20_000] {
            let servers: [Server; 3] = Server::start_several(&options(engine));
            moves += look(&servers, &format!("three servers, {}", engine.name()), seed, throughput);
        }
        assert!(moves > 0, "ranges were moved");
    }
}

/// Has clients at work, and checks what they saw; tells how many ranges were moved meanwhile.
fn look(servers: &[Server], what: &str, seed: u64, throughput: u32) -> usize {
    let next = AtomicUsize::new(0);
    let connect = || {
        let first = next.fetch_add(1, SeqCst);
        let server = |place: usize| &servers[(first + place) % servers.len()];
        (1..servers.len()).fold(server(0).client(), |client, place| client.and_of(server(place).address()))
    };
    let mut workload = Workload::new(&mut connect(), seed, throughput);
    let pkranges = Request::new("GET", "/dbs/history/colls/c/pkranges");
    let (first, _) = counted(&connect().expect(200, &pkranges).text(), 0);
    let is_ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| workload.run(&connect, &is_ending));
        // The work beside requests: indexes of changed policies, splits.
        for server in servers {
            let is_ending = &is_ending;
            scope.spawn(move || {
                while !is_ending.load(SeqCst) {
                    server.settle();
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        std::thread::sleep(TIME);
        is_ending.store(true, SeqCst);
    });
    let (count, moves) = counted(&connect().expect(200, &pkranges).text(), first);
    println!("{count} key ranges, {moves} moves");
    let problems = workload.check(&connect);
    println!("{what}, {throughput} RU/s: {}", workload.summary());
    assert!(problems.is_empty(), "{what}, {throughput} RU/s: {problems:#?}");
    moves
}

/// How many ranges there are, and how many were moved: each split takes two new ids and leaves one range more, each move one and none.
fn counted(ranges: &str, first: usize) -> (usize, usize) {
    let ranges: serde_json::Value = serde_json::from_str(ranges).expect("ranges are JSON");
    let ranges = ranges["PartitionKeyRanges"].as_array().expect("a list of ranges");
    let ids = ranges.iter().filter_map(|range| range["id"].as_str()?.parse::<usize>().ok());
    let given = ids.max().unwrap_or_default() + 1;
    (ranges.len(), (given + first).saturating_sub(2 * ranges.len()))
}
