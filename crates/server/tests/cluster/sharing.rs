//! Servers of one store are one account: clients go from one to another and notice nothing.

use crate::site::{Plan, Site, seconds, seed, verify};
use crate::story::Story;

#[test]
fn three_servers_are_one_account() {
    let Some(site) = Site::start(Plan::default()) else { return };
    let mut story = Story::begin(&site, seed());
    story.live_in_peace(&site, |_| {
        std::thread::sleep(seconds(3));
        // The whole account can be checked while everybody works.
        verify(site.url());
        std::thread::sleep(seconds(2));
    });
    story.pulse.check_undisturbed();
    story.end(site);
}
