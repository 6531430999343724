//! A server stands still for longer than the others wait for it, and comes back late.

use crate::pulse::Pulse;
use crate::site::{Plan, Site, scaled, seed};
use crate::story::Story;
use std::time::{Duration, Instant};

/// Longer than a heartbeat counts.
const FREEZE: Duration = Duration::from_secs(10);

/// How long the others may be without a successful write: they wait four seconds for what they sent to the frozen one, and its
/// transactions are ended by the store after two. The rest is for a machine that does much else.
const GAP_MAX: Duration = Duration::from_secs(8);

#[test]
fn a_frozen_server_comes_back_late() {
    let Some(site) = Site::start(Plan::default()) else { return };
    let mut story = Story::begin(&site, seed());
    story.live(&site, |pulse| {
        for round in 0..scaled(1) as usize {
            let frozen = round % site.server_count();
            std::thread::sleep(Duration::from_millis(1_500));
            let from = Instant::now();
            site.freeze_server(frozen);
            std::thread::sleep(FREEZE);
            let to = Instant::now();
            check_others(&site, pulse, frozen, from, to);
            site.thaw_server(frozen);
            // It answers what it was asked before, and joins in again.
            std::thread::sleep(Duration::from_secs(2));
        }
    });
    story.end(site);
}

fn check_others(site: &Site, pulse: &Pulse, frozen: usize, from: Instant, to: Instant) {
    for server in (0..site.server_count()).filter(|server| *server != frozen) {
        let gap = pulse.longest_gap(server, from, to);
        println!("server {server}: {gap:?} without a successful write beside a frozen server");
        pulse.tell_trouble(server, from, to);
        assert!(gap < GAP_MAX, "server {server} did not write for {gap:?}");
    }
}
