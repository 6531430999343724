//! PostgreSQL is killed, stopped and started: requests are refused quickly meanwhile, and everything recovers by itself.

use crate::pulse::Pulse;
use crate::site::{Plan, Site, scaled, seed};
use crate::story::Story;
use astrarium_testkit::Request;
use std::time::{Duration, Instant};

/// After this time everybody knows.
const NOTICE_MAX: Duration = Duration::from_secs(2);

#[test]
fn the_store_goes_away_and_comes_back() {
    let Some(site) = Site::start(Plan::default()) else { return };
    let mut story = Story::begin(&site, seed());
    story.live(&site, |pulse| {
        for round in 0..scaled(2) {
            std::thread::sleep(Duration::from_millis(1_500));
            if round % 2 == 0 {
                site.store.kill().expect("kill PostgreSQL");
            } else {
                site.store.stop().expect("stop PostgreSQL");
            }
            std::thread::sleep(NOTICE_MAX);
            for server in 0..site.server_count() {
                check_refusals(&site, server);
            }
            site.store.start_again().expect("PostgreSQL starts again");
            wait_for_writes(&site, pulse, Instant::now());
        }
    });
    story.end(site);
}

/// While the store is down nobody is kept waiting until it is back, and everybody is told what is wrong and when to come again.
fn check_refusals(site: &Site, server: usize) {
    let mut client = site.client_of(server);
    let query = Request::new("POST", "/dbs/pulse/colls/c/docs")
        .header("x-ms-documentdb-isquery", "True")
        .header("x-ms-documentdb-query-enablecrosspartition", "True")
        .header("content-type", "application/query+json")
        .body("{\"query\":\"SELECT * FROM c\"}");
    let requests = [
        Request::new("GET", "/dbs/pulse/colls/c/docs/0-0-1").partition_key("[1]"),
        Request::new("POST", "/dbs/pulse/colls/c/docs").partition_key("[1]").body("{\"id\":\"x\",\"pk\":1}"),
        query,
        Request::new("GET", "/dbs/pulse/colls/c/docs"),
        Request::new("POST", "/dbs").body("{\"id\":\"x\"}"),
        Request::new("GET", "/ready"),
    ];
    for request in requests {
        let began = Instant::now();
        let answer = client.expect(503, &request);
        let (time, what) = (began.elapsed(), format!("{} {}", request.verb, request.target));
        println!("server {server}: {what} refused after {time:?}");
        if request.target != "/ready" {
            assert!(answer.header("x-ms-retry-after-ms").is_some(), "{what}: {:?}", answer.headers);
        }
    }
    client.expect(200, &Request::new("GET", "/alive"));
}

/// Waits until every server has written again.
pub(crate) fn wait_for_writes(site: &Site, pulse: &Pulse, since: Instant) {
    for server in 0..site.server_count() {
        pulse.wait_for_write(server, since);
    }
    println!("all write again {:?} after the store came back", since.elapsed());
}
