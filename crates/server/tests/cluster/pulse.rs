//! Plain writers of each server: how long was nobody served, how quickly was one refused, and is everything acknowledged there.
//!
//! In: a site. Out: what each server did, with times. Beside them are clients that go away before they are answered. Each writer creates documents of its own, one after the other, so that
//! whatever was acknowledged is known exactly; all of them write into a few key ranges, each of which some server owns, so that they
//! meet at its lock and depend on each other.

use crate::catalog::read_all;
use crate::site::{RECOVERY_MAX, Site};
use astrarium_testkit::Request;
use astrarium_testkit::http::{Connection, Response};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const WRITERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(10);

/// What is worth telling of.
const SLOW: Duration = Duration::from_secs(1);
const TOLD_MAX: usize = 6;

/// What became of one write.
#[derive(Debug, Clone)]
pub(crate) struct Beat {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// Nothing if the connection broke.
    pub(crate) status: Option<u16>,
    /// What a refusal said.
    pub(crate) told: String,
    id: String,
}

impl Beat {
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.status == Some(201)
    }
}

/// The writers of all servers.
pub(crate) struct Pulse {
    /// The path of what is written to.
    container: String,
    /// Of each server.
    beats: Vec<Mutex<Vec<Beat>>>,
}

impl Pulse {
    /// Makes the container.
    pub(crate) fn new(site: &Site) -> Pulse {
        let mut client = site.client_of(0);
        client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"pulse\"}"));
        let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let create = Request::new("POST", "/dbs/pulse/colls").body(definition.to_string());
        client.expect(201, &create.header("x-ms-offer-throughput", "60000"));
        Pulse::of(site, "/dbs/pulse/colls/c")
    }

    /// The same for a container that is there.
    pub(crate) fn of(site: &Site, container: &str) -> Pulse {
        let beats = (0..site.server_count()).map(|_| Mutex::default()).collect();
        Pulse { container: container.to_owned(), beats }
    }

    /// Everybody writes until told that the end has come.
    pub(crate) fn run(&self, site: &Site, is_ending: &AtomicBool) {
        std::thread::scope(|scope| {
            for server in 0..self.beats.len() {
                for writer in 0..WRITERS {
                    scope.spawn(move || self.write(site, server, writer, is_ending));
                }
                scope.spawn(move || self.go_away(site, server, is_ending));
            }
        });
    }

    fn write(&self, site: &Site, server: usize, writer: usize, is_ending: &AtomicBool) {
        let mut client = site.client_of(server);
        let mut number = 0;
        while !is_ending.load(SeqCst) {
            number += 1;
            let id = format!("{server}-{writer}-{number}");
            let body = json!({"id": id, "pk": number % 10, "server": server, "writer": writer, "n": number});
            let create = Request::new("POST", &format!("{}/docs", self.container));
            let create = create.partition_key(&format!("[{}]", number % 10)).body(body.to_string());
            let began = Instant::now();
            let answer = client.send(&create);
            let ended = Instant::now();
            let told = answer.as_ref().ok().filter(|answer| answer.status != 201);
            let told = told.map(Response::text).unwrap_or_default();
            let status = answer.ok().map(|answer| answer.status);
            self.beats[server].lock().expect("no writer failed").push(Beat {
                began,
                ended,
                status,
                told,
                id,
            });
            if status.is_none() {
                client = site.client_of(server);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks for things and does not wait for the answer: whatever a server was doing for such a client, nobody else may notice.
    fn go_away(&self, site: &Site, server: usize, is_ending: &AtomicBool) {
        for number in 0.. {
            if is_ending.load(SeqCst) {
                return;
            }
            let documents = format!("{}/docs", self.container);
            let request = match number % 4 {
                0 => Request::new("GET", &documents).header("a-im", "Incremental feed"),
                1 => Request::new("GET", &documents),
                2 => Request::new("GET", &format!("{documents}/{server}-0-1")).partition_key("[1]"),
                _ => Request::new("GET", &self.container),
            };
            let client = site.client_of(server);
            if let Ok(mut connection) = Connection::open(client.address()) {
                let _ = connection.send(&client.bytes(&request));
                std::thread::sleep(Duration::from_micros(number % 40 * 100));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// What one server did, in the order of ends.
    pub(crate) fn beats(&self, server: usize) -> Vec<Beat> {
        let mut beats = self.beats[server].lock().expect("no writer failed").clone();
        beats.sort_by_key(|beat| beat.ended);
        beats
    }

    /// The longest time between two acknowledged writes of a server, within some time.
    pub(crate) fn longest_gap(&self, server: usize, from: Instant, to: Instant) -> Duration {
        let ends = self.beats(server).into_iter().filter(Beat::is_acknowledged).map(|beat| beat.ended);
        let ends = ends.filter(|ended| *ended > from && *ended < to);
        let (mut last, mut longest) = (from, Duration::ZERO);
        for end in ends.chain([to]) {
            longest = longest.max(end - last);
            last = end;
        }
        longest
    }

    /// Waits until every server but one has written anew, which that one must not hinder: it stays as it is meanwhile. How long they could
    /// not since an earlier time is printed.
    pub(crate) fn wait_for_others(&self, site: &Site, place: usize, from: Instant) {
        let to = Instant::now();
        for server in (0..site.server_count()).filter(|server| *server != place) {
            self.wait_for_write(server, to);
            println!(
                "server {server}: {:?} without a successful write, {place} is away",
                self.longest_gap(server, from, to)
            );
            self.tell_trouble(server, from, to);
        }
    }

    /// Waits for an acknowledged write of a server that began after some time.
    pub(crate) fn wait_for_write(&self, server: usize, since: Instant) {
        while !self.beats(server).iter().any(|beat| beat.is_acknowledged() && beat.began > since) {
            assert!(since.elapsed() < RECOVERY_MAX, "server {server} does not write again");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Says what a server did within some time, but for quick successes.
    pub(crate) fn tell_trouble(&self, server: usize, from: Instant, to: Instant) {
        let is_trouble = |beat: &&Beat| !beat.is_acknowledged() || beat.ended - beat.began > SLOW;
        let within = |beat: &&Beat| beat.ended > from && beat.began < to;
        for beat in self.beats(server).iter().filter(within).filter(is_trouble).take(TOLD_MAX) {
            let (at, time) = (beat.began.saturating_duration_since(from), beat.ended - beat.began);
            println!(
                "  {} asked after {at:?}, answered {:?} after {time:?} {}",
                beat.id, beat.status, beat.told
            );
        }
    }

    /// Whether every write was acknowledged.
    pub(crate) fn check_undisturbed(&self) {
        for server in 0..self.beats.len() {
            let failed = self.beats(server).into_iter().find(|beat| !beat.is_acknowledged());
            assert!(failed.is_none(), "server {server}: {failed:?}");
        }
    }

    /// Everything acknowledged is there, and nothing that nobody wrote.
    pub(crate) fn check(&self, site: &Site) {
        let beats: Vec<Beat> = (0..self.beats.len()).flat_map(|server| self.beats(server)).collect();
        let acknowledged: BTreeSet<&str> =
            beats.iter().filter(|beat| beat.is_acknowledged()).map(|beat| beat.id.as_str()).collect();
        let unknown: BTreeSet<&str> =
            beats.iter().filter(|beat| !beat.is_acknowledged()).map(|beat| beat.id.as_str()).collect();
        for beat in beats.iter().filter(|beat| !beat.is_acknowledged()) {
            let is_expected = beat.status.is_none_or(|status| [408, 410, 429, 449, 503].contains(&status));
            assert!(is_expected, "a write is answered {:?}: {}", beat.status, beat.told);
        }
        let all = read_all(&mut site.client(), &format!("{}/docs", self.container));
        let found: BTreeSet<String> = all.iter().cloned().collect();
        assert_eq!(found.len(), all.len(), "the feed has documents twice");
        let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains(**id)).collect();
        assert!(
            lost.is_empty(),
            "{} of {} acknowledged writes are lost: {lost:?}",
            lost.len(),
            acknowledged.len()
        );
        let strange: Vec<_> = found
            .iter()
            .filter(|id| !acknowledged.contains(id.as_str()) && !unknown.contains(id.as_str()))
            .collect();
        assert!(strange.is_empty(), "nobody wrote {strange:?}");
        let happened = found.iter().filter(|id| unknown.contains(id.as_str())).count();
        println!(
            "pulse: {} acknowledged, {} not, of which {happened} happened",
            acknowledged.len(),
            unknown.len()
        );
        assert!(!acknowledged.is_empty(), "the writers did something");
    }
}
