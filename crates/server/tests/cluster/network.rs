//! One server is cut off from the store: its connections are closed, or nothing comes through any more.

use crate::pulse::Pulse;
use crate::site::{Plan, RECOVERY_MAX, Site, scaled, seed};
use crate::story::Story;
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions};
use std::time::{Duration, Instant};

/// The second one is longer than a heartbeat counts.
const CUT: Duration = Duration::from_secs(3);
const STALL: Duration = Duration::from_secs(10);

/// For how long a heartbeat counts.
const HEARTBEAT_MAX: Duration = Duration::from_secs(7);

#[test]
fn a_server_is_cut_off_from_the_store() {
    let Some(site) = Site::start(Plan { has_proxies: true, ..Plan::default() }) else { return };
    let mut story = Story::begin(&site, seed());
    story.live(&site, |pulse| {
        for round in 0..scaled(2) as usize {
            let place = round % site.server_count();
            std::thread::sleep(Duration::from_millis(1_500));
            let from = Instant::now();
            if round % 2 == 0 {
                site.proxies[place].cut();
                std::thread::sleep(CUT);
            } else {
                site.proxies[place].stall();
                std::thread::sleep(STALL);
            }
            pulse.wait_for_others(&site, place, from);
            if round % 2 == 0 {
                check_undisturbed(&site, pulse, place, from);
            }
            site.proxies[place].resume();
            wait_for_write(pulse, place);
        }
    });
    story.end(site);
}

/// Its connections are dead, and nobody is told: it finds out, and makes new ones.
#[test]
fn connections_to_the_store_are_forgotten() {
    let Some(site) = Site::start(Plan { has_proxies: true, ..Plan::default() }) else { return };
    let mut story = Story::begin(&site, seed());
    story.live(&site, |pulse| {
        for round in 0..scaled(1) as usize {
            let place = round % site.server_count();
            std::thread::sleep(Duration::from_millis(1_500));
            let from = Instant::now();
            site.proxies[place].silence();
            wait_for_write(pulse, place);
            check_alive(&site, from);
            pulse.wait_for_others(&site, place, from);
        }
    });
    story.end(site);
}

/// All servers are alive to each other.
fn check_alive(site: &Site, since: Instant) {
    let engine = PostgresEngine::open(site.url(), PostgresOptions::default()).expect("open the store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let alive = || {
        let servers = runtime.block_on(engine.members()).expect("the store tells its servers");
        servers.iter().filter(|server| server.is_alive).count()
    };
    while since.elapsed() < HEARTBEAT_MAX || alive() < site.server_count() {
        assert!(since.elapsed() < RECOVERY_MAX, "only {} servers are alive", alive());
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{} servers are alive after {:?}", alive(), since.elapsed());
}

/// Whoever asks a server that is not cut off is served, whichever server owns what he writes.
fn check_undisturbed(site: &Site, pulse: &Pulse, place: usize, from: Instant) {
    for server in (0..site.server_count()).filter(|server| *server != place) {
        let beats = pulse.beats(server);
        let refused: Vec<_> = beats
            .iter()
            .filter(|beat| beat.began > from && beat.status == Some(503))
            .filter(|beat| !beat.told.contains("whether the write happened is unknown"))
            .collect();
        assert!(refused.is_empty(), "server {server} refuses, though only {place} is cut off: {refused:#?}");
    }
}

/// It writes again, by itself.
fn wait_for_write(pulse: &Pulse, place: usize) {
    let since = Instant::now();
    pulse.wait_for_write(place, since);
    println!("server {place} writes again after {:?}", since.elapsed());
}
