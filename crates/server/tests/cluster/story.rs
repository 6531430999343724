//! One run of a site: clients work, somebody disturbs, everything is looked at afterwards.
//!
//! In: a site, what to do to it. Out: figures; a failure if anything was wrong.

use crate::pulse::Pulse;
use crate::site::Site;
use astrarium_testkit::history::workload::Workload;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// All clients of a run.
pub(crate) struct Story {
    seed: u64,
    workload: Workload,
    pub(crate) pulse: Pulse,
}

impl Story {
    /// Makes what clients work on. Containers have several ranges from the beginning with much throughput.
    pub(crate) fn begin(site: &Site, seed: u64) -> Story {
        let throughput = if seed.is_multiple_of(2) { 400 } else { 20_000 };
        let workload = Workload::new(&mut site.client(), seed, throughput);
        Story { seed, workload, pulse: Pulse::new(site) }
    }

    /// Clients work while something is done to the site, which servers may not survive.
    pub(crate) fn live<T>(&mut self, site: &Site, disturb: impl FnOnce(&Pulse) -> T) -> T {
        self.workload.expect_trouble();
        self.live_in_peace(site, disturb)
    }

    /// The same for what no client may notice.
    pub(crate) fn live_in_peace<T>(&mut self, site: &Site, disturb: impl FnOnce(&Pulse) -> T) -> T {
        let is_ending = AtomicBool::new(false);
        let (workload, pulse) = (&mut self.workload, &self.pulse);
        let connect = || site.client();
        std::thread::scope(|scope| {
            let is_ending = &is_ending;
            // Also when it fails: the scope waits for everybody.
            let _end = EndAtLast(is_ending);
            scope.spawn(move || workload.run(&connect, is_ending));
            scope.spawn(move || pulse.run(site, is_ending));
            disturb(pulse)
        })
    }

    /// Everything is right: what clients saw, what is there, and how it is stored.
    pub(crate) fn end(mut self, site: Site) {
        site.wait_until_well();
        let problems = self.workload.check(&|| site.client());
        println!("{}", self.workload.summary());
        assert!(problems.is_empty(), "seed {}: {problems:#?}", self.seed);
        self.pulse.check(&site);
        site.verify();
    }
}

struct EndAtLast<'a>(&'a AtomicBool);

impl Drop for EndAtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
