//! Items that expire, in the program: erased without being asked for, on a clock that is moved for tests, and not after a kill.

use crate::program::{Program, run};
use astrarium_testkit::{Client, Credential, Key, Request};
use std::time::{Duration, Instant};

const DOCS: &str = "/dbs/d/colls/t/docs";
/// Longest time until what has expired is erased.
const PATIENCE: Duration = Duration::from_mins(5);

fn metric(client: &mut Client, name: &str) -> f64 {
    let page = client.expect(200, &Request::new("GET", "/metrics")).text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {page}"))
}

fn furnish(client: &mut Client) {
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
    let container = "{\"id\":\"t\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"defaultTtl\":3600}";
    client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
}

fn create(client: &mut Client, ids: std::ops::Range<usize>) {
    for id in ids {
        let body = format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"n\":{id}}}");
        client.expect(201, &Request::new("POST", DOCS).partition_key("[\"a\"]").body(body));
    }
}

fn advance(client: &mut Client, seconds: u64) {
    let body = format!("{{\"advanceSeconds\":{seconds}}}");
    client.expect(200, &Request::new("POST", "/_admin/clock").body(body));
}

fn wait_for_erased(client: &mut Client, count: f64) {
    let began = Instant::now();
    while metric(client, "astrarium_expired_documents_total") < count {
        assert!(began.elapsed() < PATIENCE, "expired items are erased");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_clock_stands_still_unless_asked() {
    let program = Program::in_memory(&[]);
    let body = "{\"advanceSeconds\":60}";
    let refused = program.client().expect(404, &Request::new("POST", "/_admin/clock").body(body));
    assert!(refused.text().contains("--test-clock"), "{}", refused.text());
    let stranger = Request::new("POST", "/_admin/clock").body(body).credential(Credential::Key(Key::Unknown));
    program.client().expect(401, &stranger);
}

#[test]
fn expired_items_are_erased_and_a_kill_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &["--test-clock"]);
    let mut client = program.client();
    furnish(&mut client);
    create(&mut client, 0..300);
    // Clients go on signing with the date of their own machine.
    advance(&mut client, 3_600);
    wait_for_erased(&mut client, 300.0);
    create(&mut client, 0..300);
    advance(&mut client, 3_600);
    drop(program);
    let verified = run(&["verify", "--data", folder.path().to_str().unwrap()]);
    assert!(verified.success, "{verified:?}");
    // Once the clock is there again, the rest goes too.
    let program = Program::on(folder.path(), &["--test-clock"]);
    let mut client = program.client();
    create(&mut client, 300..310);
    advance(&mut client, 7_201);
    wait_for_erased(&mut client, 10.0);
    let request = Request::new("GET", DOCS).partition_key("[\"a\"]");
    assert!(client.expect(200, &request).text().contains("\"_count\":0"));
    program.stop();
    let verified = run(&["verify", "--data", folder.path().to_str().unwrap()]);
    assert!(verified.success, "{verified:?}");
}
