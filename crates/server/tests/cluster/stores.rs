//! Two stores with containers in both: one is killed, and the containers of the other go on.

use crate::pulse::Pulse;
use crate::site::{Plan, Site, installation, scaled, seed};
use crate::store_outage::wait_for_writes;
use crate::story::Story;
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions};
use astrarium_postgres_fixture::{Cluster, Settings};
use astrarium_testkit::Request;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const OUTAGE: Duration = Duration::from_secs(6);

#[test]
fn one_of_two_stores_is_killed() {
    let Some(installation) = installation() else { return };
    let second = Cluster::start(&installation, Settings::default().durable()).expect("a second store starts");
    let Some(site) = Site::start(Plan { other_stores: vec![second.url()], ..Plan::default() }) else {
        return;
    };
    let mut story = Story::begin(&site, seed());
    let pulses = [container_in(&site, "first"), container_in(&site, "store-1")];
    let is_ending = AtomicBool::new(false);
    story.live(&site, |_| {
        std::thread::scope(|scope| {
            let is_ending = &is_ending;
            let _end = EndPulses(is_ending);
            for pulse in &pulses {
                let site = &site;
                scope.spawn(move || pulse.run(site, is_ending));
            }
            for _ in 0..scaled(1) {
                kill_one(&site, &second, (&pulses[1], &pulses[0]), Some("store store-1 does not answer"));
                // The first one has the catalog and the list of places.
                kill_one(&site, &site.store, (&pulses[0], &pulses[1]), None);
            }
        });
    });
    for pulse in &pulses {
        pulse.check(&site);
    }
    story.end(site);
}

/// Kills a store; the containers of the other one go on. Servers stay ready if they say so, or else are not.
fn kill_one(site: &Site, store: &Cluster, (own, other): (&Pulse, &Pulse), ready: Option<&str>) {
    std::thread::sleep(Duration::from_secs(1));
    store.kill().expect("kill a store");
    let from = Instant::now();
    std::thread::sleep(OUTAGE);
    let to = Instant::now();
    for server in 0..site.server_count() {
        other.wait_for_write(server, to);
        let gap = other.longest_gap(server, from, to);
        println!("server {server}: {gap:?} without a successful write in the store that is there");
        other.tell_trouble(server, from, to);
        let status = if ready.is_some() { 200 } else { 503 };
        let told = site.client_of(server).expect(status, &Request::new("GET", "/ready")).text();
        assert!(told.contains(ready.unwrap_or_default()), "server {server}: {told}");
    }
    store.start_again().expect("the store starts again");
    let since = Instant::now();
    wait_for_writes(site, own, since);
    wait_for_writes(site, other, since);
}

/// Makes a container, and moves it to a store.
fn container_in(site: &Site, store: &str) -> Pulse {
    let mut client = site.client_of(0);
    let path = format!("/dbs/{store}/colls/c");
    client.expect(201, &Request::new("POST", "/dbs").body(json!({"id": store}).to_string()));
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let create = Request::new("POST", &format!("/dbs/{store}/colls"));
    client.expect(201, &create.body(definition.to_string()));
    let placement = client.expect(200, &Request::new("GET", "/_admin/placement"));
    let placement: Value = serde_json::from_slice(&placement.body).expect("a placement");
    let ranges = placement["ranges"].as_array().expect("ranges");
    let own = ranges.iter().find(|range| range["database"] == store).expect("the container's range");
    if own["place"] != store {
        let body = json!({"database": store, "container": "c", "range": own["range"], "place": store});
        client.expect(200, &Request::new("POST", "/_admin/move").body(body.to_string()));
    }
    Pulse::of(site, &path)
}

/// Adds stores to the account of a store.
pub(crate) fn add_stores(url: &str, others: &[String]) {
    let engine = PostgresEngine::open(url, PostgresOptions::default()).expect("open the first store");
    for (number, other) in others.iter().enumerate() {
        engine.add_store(&format!("store-{}", number + 1), other).expect("add a store");
    }
}

struct EndPulses<'a>(&'a AtomicBool);

impl Drop for EndPulses<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
