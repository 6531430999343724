//! One client that changes resources only it uses, so that the answer to every request can be foretold.
//!
//! It owns some items of the main container, and a database of its own with containers and items that come and go.
//! Between restarts it remembers what it has, and the one request whose answer it did not get.

use crate::account::{
    Account, Content, POLICY_COUNT, Resource, Resources, item, partition_key_header, policy,
};
use crate::client::{Answer, Client, is_lost_connection};
use crate::shared::Contest;
use crate::{MAIN_CONTAINER, MAIN_DATABASE};
use astrarium_env::Random;
use astrarium_wire::headers;
use serde_json::json;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

const MAIN_ITEM_COUNT: u64 = 60;
const SCRATCH_ITEM_COUNT: u64 = 20;

pub(crate) struct Worker {
    number: u64,
    random: Random,
    resources: Resources,
    under_way: Option<Change>,
    /// Every rid an item of this worker ever had.
    rids: BTreeSet<String>,
    /// LSNs acknowledged in this round, with the rid of their container.
    positions: BTreeSet<(String, u64)>,
    acknowledged_count: u64,
}

/// What a request does to the worker's resources if it succeeds.
#[derive(Debug, Clone)]
struct Change {
    path: String,
    effect: Effect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The resource is made or replaced.
    Put(Content),
    /// The resource and all below it are gone.
    Remove,
    /// The request is refused.
    Nothing,
}

/// Makes what all workers share.
pub(crate) fn create_main_container(client: &mut Client) {
    let database = client.must_send("POST", "dbs", &[], &json!({"id": "main"}).to_string());
    assert_eq!(database.status, 201, "{}", database.text());
    let container = container_definition("items", None, 0);
    let throughput = [(headers::OFFER_THROUGHPUT, "400")];
    let container = client.must_send("POST", &format!("{MAIN_DATABASE}/colls"), &throughput, &container);
    assert_eq!(container.status, 201, "{}", container.text());
}

impl Worker {
    pub(crate) fn new(number: u64, seed: u64) -> Worker {
        Worker {
            number,
            random: Random::from_seed(seed),
            resources: Resources::new(),
            under_way: None,
            rids: BTreeSet::new(),
            positions: BTreeSet::new(),
            acknowledged_count: 0,
        }
    }

    /// Makes a resource that is there the worker's own.
    pub(crate) fn adopt(&mut self, path: &str, account: &Account) {
        let resource = account.get(path).expect("the resource is there").clone();
        self.resources.insert(path.to_owned(), resource);
    }

    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    pub(crate) fn acknowledged_count(&self) -> u64 {
        self.acknowledged_count
    }

    /// Works until the server is gone; gives the LSNs that it acknowledged.
    pub(crate) fn run(
        &mut self,
        address: SocketAddr,
        contest: &Contest,
        account: &Account,
        ending: &AtomicBool,
    ) -> BTreeSet<(String, u64)> {
        let mut client = Client::new(address);
        loop {
            let owns_main = self.resources.contains_key(MAIN_CONTAINER);
            let outcome = match self.random.next_u64() % 100 {
                0 | 1 if owns_main => self.replace_container(&mut client, MAIN_CONTAINER, None),
                0..=64 => self.change_item(&mut client, MAIN_CONTAINER, MAIN_ITEM_COUNT, account),
                65..=79 => self.join_contest(&mut client, contest, account),
                _ => self.change_scratch(&mut client, account),
            };
            if let Err(error) = outcome {
                let dies = ending.load(Ordering::SeqCst) && is_lost_connection(&error);
                assert!(dies, "a connection broke although nobody stopped the server: {error}");
                return std::mem::take(&mut self.positions);
            }
        }
    }

    /// Decides what became of the request under way, by what a restarted server has.
    pub(crate) fn settle(&mut self, found: &Account, context: &str) {
        let Some(Change { path, effect }) = self.under_way.take() else {
            return;
        };
        let present = found.get(&path);
        match effect {
            Effect::Put(content) => {
                if let Some(present) = present.filter(|present| present.content == content) {
                    let kept = self.resources.get(&path).is_none_or(|known| known.rid == present.rid);
                    assert!(kept, "{context}: {path} got another rid by being replaced");
                    self.rids.insert(present.rid.clone());
                    self.resources.insert(path, present.clone());
                }
            }
            Effect::Remove if present.is_none() => self.forget(&path),
            Effect::Remove | Effect::Nothing => {}
        }
    }

    fn join_contest(&mut self, client: &mut Client, contest: &Contest, account: &Account) -> io::Result<()> {
        if let Some(answer) = contest.step(client, &self.random)? {
            self.note_position(&answer, account);
        }
        Ok(())
    }

    /// Changes the worker's own database: mostly items, now and then the containers or the database itself.
    fn change_scratch(&mut self, client: &mut Client, account: &Account) -> io::Result<()> {
        let database = format!("dbs/scratch-{}", self.number);
        let container = format!("{database}/colls/part-{}", self.random.next_u64() % 2);
        let choice = self.random.next_u64() % 40;
        let has_container = self.resources.contains_key(&container);
        if !self.resources.contains_key(&database) {
            let body = json!({"id": format!("scratch-{}", self.number)}).to_string();
            return self
                .change(client, "POST", "dbs", &[], &body, put(&database, Content::Database), 201)
                .map(drop);
        }
        match choice {
            0 => self.change(client, "DELETE", &database, &[], "", remove(&database), 204).map(drop),
            1 if has_container => {
                self.change(client, "DELETE", &container, &[], "", remove(&container), 204).map(drop)
            }
            2 | 3 if has_container => {
                // So long that nothing expires during the test.
                let default_ttl = Some(1_000_000 + self.random.next_u64() % 1_000_000);
                self.replace_container(client, &container, default_ttl)
            }
            _ if has_container => self.change_item(client, &container, SCRATCH_ITEM_COUNT, account),
            _ => {
                let policy = self.policy();
                let body = container_definition(id(&container), None, policy);
                let change = put(&container, Content::Container { default_ttl: None, policy });
                let throughput = [(headers::OFFER_THROUGHPUT, "400")];
                let feed = format!("{database}/colls");
                self.change(client, "POST", &feed, &throughput, &body, change, 201).map(drop)
            }
        }
    }

    fn replace_container(
        &mut self,
        client: &mut Client,
        path: &str,
        default_ttl: Option<u64>,
    ) -> io::Result<()> {
        let policy = self.policy();
        let body = container_definition(id(path), default_ttl, policy);
        let change = put(path, Content::Container { default_ttl, policy });
        self.change(client, "PUT", path, &[], &body, change, 200).map(drop)
    }

    fn policy(&self) -> usize {
        (self.random.next_u64() % POLICY_COUNT) as usize
    }

    fn change_item(
        &mut self,
        client: &mut Client,
        container: &str,
        item_count: u64,
        account: &Account,
    ) -> io::Result<()> {
        let path = format!("{container}/docs/own-{}-{}", self.number, self.random.next_u64() % item_count);
        let known = self.resources.get(&path).cloned();
        let exists = known.is_some();
        let key = partition_key_header(&path);
        let mut more = vec![(headers::PARTITION_KEY, key.as_str())];
        let (nonce, filler_length) = (self.random.next_u64(), self.filler_length());
        let body = item(&path, nonce, filler_length).to_string();
        let written = put(&path, Content::Item { nonce, filler_length });
        let nothing = Change { path: path.clone(), effect: Effect::Nothing };
        let feed = format!("{container}/docs");
        let when = |yes: Change| if exists { yes } else { nothing.clone() };
        let answer = match self.random.next_u64() % 10 {
            0..=2 if exists => self.change(client, "POST", &feed, &more, &body, nothing, 409),
            0..=2 => self.change(client, "POST", &feed, &more, &body, written, 201),
            3..=5 => {
                more.push((headers::IS_UPSERT, "true"));
                let status = if exists { 200 } else { 201 };
                self.change(client, "POST", &feed, &more, &body, written, status)
            }
            6 | 7 => {
                more.extend(known.as_ref().map(|known| (headers::IF_MATCH, known.etag.as_str())));
                self.change(client, "PUT", &path, &more, &body, when(written), if exists { 200 } else { 404 })
            }
            8 => {
                let status = if exists { 204 } else { 404 };
                self.change(client, "DELETE", &path, &more, "", when(remove(&path)), status)
            }
            _ => self.change(client, "GET", &path, &more, "", nothing, if exists { 200 } else { 404 }),
        }?;
        if matches!(answer.status, 200 | 201) {
            assert_eq!(Some(answer.etag().as_str()), answer.json()["_etag"].as_str(), "{path}");
        }
        if matches!(answer.status, 200 | 201 | 204) && self.resources.get(&path) != known.as_ref() {
            self.note_position(&answer, account);
            self.note_rid(&path, known.as_ref());
        }
        Ok(())
    }

    /// Sends a request whose answer is known beforehand, and remembers what it does.
    #[expect(
        clippy::too_many_arguments,
        reason = "a request and what is expected of it, spelled out at each call"
    )]
    fn change(
        &mut self,
        client: &mut Client,
        verb: &str,
        path: &str,
        more_headers: &[(&str, &str)],
        body: &str,
        change: Change,
        status: u16,
    ) -> io::Result<Answer> {
        self.under_way = Some(change.clone());
        let answer = client.send(verb, path, more_headers, body)?;
        self.under_way = None;
        assert_eq!(answer.status, status, "{verb} {}: {}", change.path, answer.text());
        match change.effect {
            Effect::Put(content) => {
                self.resources.insert(change.path, Resource::of(content, &answer));
                self.acknowledged_count += 1;
            }
            Effect::Remove => {
                self.forget(&change.path);
                self.acknowledged_count += 1;
            }
            Effect::Nothing => {}
        }
        Ok(answer)
    }

    fn forget(&mut self, path: &str) {
        let below = format!("{path}/");
        self.resources.retain(|own, _| own != path && !own.starts_with(&below));
    }

    /// LSNs are new in each round, and no two commits share one.
    fn note_position(&mut self, answer: &Answer, account: &Account) {
        let container = answer.header(headers::CONTENT_PATH).expect("the container's rid").to_owned();
        let (lsn, before) = (answer.lsn(), account.position(&container));
        assert!(lsn > before, "container {container} gave LSN {lsn} after {before} in an earlier life");
        let last =
            self.positions.range((container.clone(), 0)..).take_while(|(own, _)| *own == container).last();
        assert!(last.is_none_or(|(_, last)| *last < lsn), "LSN {lsn} follows {last:?} in one session");
        self.positions.insert((container, lsn));
    }

    /// An item keeps its rid as long as it lives, and no other ever gets it.
    fn note_rid(&mut self, path: &str, before: Option<&Resource>) {
        let Some(now) = self.resources.get(path) else {
            return;
        };
        match before {
            Some(before) => assert_eq!(now.rid, before.rid, "{path} got another rid by being replaced"),
            None => assert!(self.rids.insert(now.rid.clone()), "{path} got the rid of another item"),
        }
    }

    /// Mostly about a kilobyte; now and then enough to fill a memtable within the test.
    fn filler_length(&self) -> usize {
        let most = match self.random.next_u64() % 200 {
            0 => 300_000,
            1..=15 => 20_000,
            _ => 1_500,
        };
        (self.random.next_u64() % most) as usize
    }
}

impl Resource {
    /// The resource that an answer to a write shows.
    pub(crate) fn of(content: Content, answer: &Answer) -> Resource {
        let json = answer.json();
        let rid = json["_rid"].as_str().expect("a rid").to_owned();
        Resource { content, etag: answer.etag(), rid }
    }
}

fn put(path: &str, content: Content) -> Change {
    Change { path: path.to_owned(), effect: Effect::Put(content) }
}

fn remove(path: &str) -> Change {
    Change { path: path.to_owned(), effect: Effect::Remove }
}

fn id(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn container_definition(id: &str, default_ttl: Option<u64>, policy_number: usize) -> String {
    let mut definition = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/code"]}]}, "indexingPolicy": policy(policy_number)});
    if let Some(seconds) = default_ttl {
        definition["defaultTtl"] = json!(seconds);
    }
    definition.to_string()
}
