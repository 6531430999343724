//! The primary is lost for good, and its synchronous standby takes its place: clients see a pause, and nothing is lost.

use crate::site::{Plan, Site, scaled, seed};
use crate::story::Story;
use std::time::{Duration, Instant};

#[test]
fn a_synchronous_standby_takes_over() {
    for _ in 0..scaled(1) {
        let Some(site) = Site::start(Plan { has_standby: true, ..Plan::default() }) else { return };
        let standby = site.standby.as_ref().expect("it was asked for");
        let mut story = Story::begin(&site, seed());
        story.live(&site, |pulse| {
            std::thread::sleep(Duration::from_secs(2));
            let lost = Instant::now();
            site.store.kill().expect("kill the primary");
            std::thread::sleep(Duration::from_secs(1));
            standby.promote().expect("the standby is promoted");
            let promoted = Instant::now();
            for server in 0..site.server_count() {
                pulse.wait_for_write(server, promoted);
            }
            println!(
                "all write again {:?} after the loss, {:?} after the promotion",
                lost.elapsed(),
                promoted.elapsed()
            );
            std::thread::sleep(Duration::from_secs(1));
        });
        story.end(site);
    }
}
