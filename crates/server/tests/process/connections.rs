//! Ten thousand connections that say nothing: the next request is answered fast, and memory is bounded.

use crate::program::{Program, create, read};
use astrarium_testkit::Request;
use astrarium_testkit::http::Connection;
use rustix::process::{Resource, getrlimit, setrlimit};

const CONNECTIONS: usize = 10_000;
/// Files that both processes need besides.
const OTHER_FILES: u64 = 200;

/// Lets this process have as many files as the system allows; false if that is too few.
fn enough_files() -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let needed = CONNECTIONS as u64 + OTHER_FILES;
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if allowed < needed {
        println!("skipped: {needed} open files are needed and {allowed} are allowed");
    }
    allowed >= needed
}

#[test]
fn ten_thousand_idle_connections() {
    if !enough_files() {
        return;
    }
    let program = Program::in_memory(&[]);
    program.furnish();
    program.client().expect(201, &create("1", ""));
    let before = program.kilobytes("VmRSS");
    let mut idle = Vec::with_capacity(CONNECTIONS);
    let asked = program.client().bytes(&Request::new("GET", "/dbs"));
    for number in 0..CONNECTIONS {
        let mut connection = Connection::open(program.address).unwrap();
        // Some were silent from the start, some stopped within a head, some have been served before.
        match number % 4 {
            0 => assert_eq!(connection.exchange("GET", &asked).unwrap().status, 200),
            1 => connection.send(&asked[..20]).unwrap(),
            _ => {}
        }
        idle.push(connection);
    }
    for _ in 0..50 {
        // A new connection each time: accepting must work too.
        program.client().expect(200, &read("1"));
    }
    if let (Some(before), Some(after)) = (before, program.kilobytes("VmRSS")) {
        let each = after.saturating_sub(before) / (CONNECTIONS as u64 / 1_000);
        println!("{each} KB per thousand connections");
        assert!(each < 60_000, "{each} KB per thousand connections");
    }
    // Those that were served before still are.
    assert_eq!(idle[0].exchange("GET", &asked).unwrap().status, 200);
    drop(idle);
    program.stop();
}

#[test]
fn beyond_the_limit_connections_are_closed_at_once() {
    let program = Program::in_memory(&["--connections", "3"]);
    let asked = program.client().bytes(&Request::new("GET", "/dbs"));
    let mut held: Vec<Connection> = (0..3).map(|_| Connection::open(program.address).unwrap()).collect();
    for connection in &mut held {
        assert_eq!(connection.exchange("GET", &asked).unwrap().status, 200);
    }
    let mut one_more = Connection::open(program.address).unwrap();
    assert_eq!(one_more.read_to_close().unwrap(), b"");
    assert_eq!(held[0].exchange("GET", &asked).unwrap().status, 200);
}
