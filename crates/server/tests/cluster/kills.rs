//! Servers are killed and come back, again and again.

use crate::site::{Plan, Site, scaled, seed};
use crate::story::Story;
use astrarium_env::Random;
use std::time::Duration;

#[test]
fn servers_are_killed_and_come_back() {
    let Some(site) = Site::start(Plan::default()) else { return };
    let seed = seed();
    let (mut story, random) = (Story::begin(&site, seed), Random::from_seed(seed));
    let pause = |most: u64| std::thread::sleep(Duration::from_millis(random.next_u64() % most));
    story.live(&site, |_| {
        for _ in 0..scaled(7) {
            pause(800);
            let place = (random.next_u64() % 3) as usize;
            if random.next_u64().is_multiple_of(4) {
                site.terminate_server(place);
            } else {
                site.kill_server(place);
            }
            pause(400);
            site.start_server(place);
        }
    });
    story.end(site);
}
