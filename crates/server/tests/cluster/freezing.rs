//! A server stands still for longer than the others wait for it, and comes back late.

use crate::site::{Plan, Site, scaled, seed};
use crate::story::Story;
use std::time::{Duration, Instant};

/// Longer than a heartbeat counts.
const FREEZE: Duration = Duration::from_secs(10);

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
            pulse.wait_for_others(&site, frozen, from);
            site.thaw_server(frozen);
            // It answers what it was asked before, and joins in again.
            std::thread::sleep(Duration::from_secs(2));
        }
    });
    story.end(site);
}
