//! Everything an account holds, by path, and the checks that compare two views of it.
//!
//! A path is that of the protocol (`dbs/main/colls/items/docs/own-1-7`). An item's text is a function of its path, a
//! number and a length, so that a view stays small and a torn item cannot pass for a whole one.

use crate::client::{Answer, Client};
use crate::{MAIN_CONTAINER, MAIN_DATABASE};
use astrarium_env::Random;
use astrarium_wire::headers;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Resources by path.
pub(crate) type Resources = BTreeMap<String, Resource>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) content: Content,
    pub(crate) etag: String,
    pub(crate) rid: String,
}

/// What a client put into a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Database,
    Container { default_ttl: Option<u64>, policy: usize },
    Item { nonce: u64, filler_length: usize },
}

/// What a server has, as its feeds tell.
#[derive(Debug, Default)]
pub(crate) struct Account {
    resources: Resources,
    /// The highest LSN known of each container, by rid.
    positions: BTreeMap<String, u64>,
}

impl Account {
    /// Reads everything by its feeds, in pages of random sizes.
    pub(crate) fn read(client: &mut Client, random: &Random) -> Account {
        let mut account = Account::default();
        let mut container_rids = BTreeSet::new();
        let page = || 1 + random.next_u64() % 60;
        for database in client.feed("dbs", "Databases", page()).0 {
            let database_path = format!("dbs/{}", text(&database, "id"));
            let feed = format!("{database_path}/colls");
            for container in client.feed(&feed, "DocumentCollections", page()).0 {
                let path = format!("{database_path}/colls/{}", text(&container, "id"));
                account.read_items(client, &path, &container, page());
                container_rids.insert(text(&container, "_rid").to_owned());
                let default_ttl = container["defaultTtl"].as_u64();
                let policy = policy_of(&container["indexingPolicy"]);
                let content = Content::Container { default_ttl, policy };
                account.resources.insert(path, resource(content, &container));
            }
            account.resources.insert(database_path, resource(Content::Database, &database));
        }
        let offers = client.feed("offers", "Offers", page()).0;
        let owners: Vec<_> = offers.iter().map(|offer| text(offer, "offerResourceId").to_owned()).collect();
        let owner_set: BTreeSet<_> = owners.iter().cloned().collect();
        assert_eq!(owners.len(), owner_set.len(), "a container has one offer");
        assert_eq!(owner_set, container_rids, "every container came with an offer, and went with it");
        account
    }

    fn read_items(&mut self, client: &mut Client, container_path: &str, container: &Value, page_count: u64) {
        let (ranges, _) = client.feed(&format!("{container_path}/pkranges"), "PartitionKeyRanges", 100);
        assert_eq!(ranges.len(), 1, "{container_path} has its key range");
        let (items, answer) = client.feed(&format!("{container_path}/docs"), "Documents", page_count);
        let mut rids = BTreeSet::new();
        for item in &items {
            let path = format!("{container_path}/docs/{}", text(item, "id"));
            assert!(rids.insert(text(item, "_rid")), "{path} shares its rid with another item");
            let twice = self.resources.insert(path.clone(), resource(item_content(&path, item), item));
            assert_eq!(twice, None, "{path} is in the feed twice");
        }
        self.positions.insert(text(container, "_rid").to_owned(), answer.lsn());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    pub(crate) fn resource_count(&self) -> usize {
        self.resources.len()
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Resource> {
        self.resources.get(path)
    }

    /// What belongs to no worker and never changes: the database that all use.
    pub(crate) fn shared_part(&self) -> Resources {
        self.resources.iter().filter(|(path, _)| *path == MAIN_DATABASE).map(own).collect()
    }

    /// Containers and the policies they have.
    pub(crate) fn containers(&self) -> impl Iterator<Item = (&str, usize)> {
        self.resources.iter().filter_map(|(path, resource)| match resource.content {
            Content::Container { policy, .. } => Some((path.as_str(), policy)),
            _ => None,
        })
    }

    /// Queries that an index serves find what the feeds have, whatever policy is in force or on its way.
    pub(crate) fn check_queries(&self, client: &mut Client, context: &str) {
        for kind in 0..KIND_COUNT {
            let mut expected: Vec<&str> = self
                .resources
                .iter()
                .filter(|(path, resource)| {
                    let in_main = path.starts_with(MAIN_CONTAINER);
                    matches!(resource.content, Content::Item { nonce, .. } if in_main && nonce % KIND_COUNT == kind)
                })
                .map(|(path, _)| id(path))
                .collect();
            expected.sort_unstable();
            let text = format!("SELECT VALUE c.id FROM c WHERE c.kind = {kind}");
            let rows = client.query(MAIN_CONTAINER, &text);
            let mut found: Vec<&str> = rows.iter().filter_map(Value::as_str).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{context}: {text}");
        }
    }

    /// The highest LSN known of a container.
    pub(crate) fn position(&self, container_rid: &str) -> u64 {
        self.positions.get(container_rid).copied().unwrap_or(0)
    }

    /// Takes note of LSNs that were acknowledged to workers, with the rids of their containers.
    pub(crate) fn raise_positions(&mut self, acknowledged: Vec<BTreeSet<(String, u64)>>) {
        let mut all = BTreeSet::new();
        for (rid, lsn) in acknowledged.into_iter().flatten() {
            let known = self.positions.entry(rid.clone()).or_insert(0);
            *known = lsn.max(*known);
            assert!(all.insert((rid, lsn)), "two commits got LSN {lsn}");
        }
    }

    pub(crate) fn check_equals(&self, expected: &Resources, context: &str) {
        let paths: BTreeSet<_> = self.resources.keys().chain(expected.keys()).collect();
        let different = paths.into_iter().filter(|path| self.resources.get(*path) != expected.get(*path));
        let different: Vec<_> = different
            .map(|path| {
                format!("{path}:\n  expected {:?}\n  found    {:?}", expected.get(path), self.get(path))
            })
            .collect();
        assert!(different.is_empty(), "{context}: {} differences\n{}", different.len(), different.join("\n"));
    }

    /// No container is behind what it acknowledged before.
    pub(crate) fn check_positions(&self, before: &Account, context: &str) {
        for (rid, lsn) in &self.positions {
            let acknowledged = before.position(rid);
            assert!(
                *lsn >= acknowledged,
                "{context}: container {rid} went back from LSN {acknowledged} to {lsn}"
            );
        }
    }

    /// A sample of point reads agrees with the feeds, and what the feeds do not have is missing.
    pub(crate) fn check_points(&self, client: &mut Client, random: &Random, context: &str) {
        for (path, expected) in &self.resources {
            let Content::Item { .. } = expected.content else {
                continue;
            };
            if !random.next_u64().is_multiple_of(4) {
                continue;
            }
            let answer = read_item(client, path);
            assert_eq!(answer.status, 200, "{context}: {path} {}", answer.text());
            let found = resource(item_content(path, &answer.json()), &answer.json());
            assert_eq!(&found, expected, "{context}: {path}");
            assert_eq!(answer.etag(), expected.etag, "{context}: {path}");
        }
        for number in 0..20 {
            let path = format!("{MAIN_CONTAINER}/docs/shared-{number}");
            let status = read_item(client, &path).status;
            assert_eq!(
                status == 200,
                self.resources.contains_key(&path),
                "{context}: {path} answers {status}"
            );
        }
    }
}

fn read_item(client: &mut Client, path: &str) -> Answer {
    client.must_send("GET", path, &[(headers::PARTITION_KEY, &partition_key_header(path))], "")
}

fn own((path, resource): (&String, &Resource)) -> (String, Resource) {
    (path.clone(), resource.clone())
}

fn resource(content: Content, json: &Value) -> Resource {
    Resource { content, etag: text(json, "_etag").to_owned(), rid: text(json, "_rid").to_owned() }
}

fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_else(|| panic!("no text {name} in {json}"))
}

/// The path's last part.
fn id(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Partition keys of every simple kind, the same for a path always.
fn partition_key(path: &str) -> Value {
    let sum: u64 = id(path).bytes().map(u64::from).sum();
    match sum % 8 {
        0 => Value::Null,
        1 => json!(true),
        number @ 2..=4 => json!(number),
        number => json!(format!("key-{number}")),
    }
}

pub(crate) fn partition_key_header(path: &str) -> String {
    json!([partition_key(path)]).to_string()
}

/// Indexing policies that containers have in turn.
pub(crate) fn policy(number: usize) -> Value {
    let etag = json!({"path": "/\"_etag\"/?"});
    let everything = json!({"path": "/*"});
    match number {
        0 => json!({"indexingMode": "consistent", "automatic": true, "includedPaths": [everything],
            "excludedPaths": [etag]}),
        1 => json!({"indexingMode": "consistent", "automatic": true,
            "includedPaths": [{"path": "/kind/?"}, {"path": "/tags/[]/?"}], "excludedPaths": [everything, etag]}),
        2 => json!({"indexingMode": "consistent", "automatic": true, "includedPaths": [everything],
            "excludedPaths": [{"path": "/filler/?"}, etag], "compositeIndexes": [[
                {"path": "/kind", "order": "ascending"}, {"path": "/nonce", "order": "descending"}]]}),
        // Nothing at all; the mode "none" cannot be had together with a time to live.
        _ => json!({"indexingMode": "consistent", "automatic": true, "includedPaths": [],
            "excludedPaths": [everything, etag]}),
    }
}

/// How many policies there are.
pub(crate) const POLICY_COUNT: u64 = 4;

fn policy_of(found: &Value) -> usize {
    let place = (0..POLICY_COUNT as usize).find(|number| policy(*number) == *found);
    place.unwrap_or_else(|| panic!("nobody gave a container the policy {found}"))
}

/// Values of the property `kind` of items.
const KIND_COUNT: u64 = 7;

/// The item that a path, a number and a length give.
pub(crate) fn item(path: &str, nonce: u64, filler_length: usize) -> Value {
    let random = Random::from_seed(nonce);
    let mut filler = String::with_capacity(filler_length + 16);
    while filler.len() < filler_length {
        let _ = write!(filler, "{:016x}", random.next_u64());
    }
    filler.truncate(filler_length);
    let id = id(path);
    json!({"id": id, "pk": partition_key(path), "nonce": nonce.to_string(), "filler": filler,
        "kind": nonce % KIND_COUNT, "tags": [nonce % 3, {"deep": nonce % 5}], "code": format!("{id}/{}", nonce % 4)})
}

/// Reads an item back; one that is not exactly what some write made is torn.
fn item_content(path: &str, found: &Value) -> Content {
    let nonce = text(found, "nonce").parse().expect("a number");
    let filler_length = text(found, "filler").len();
    let mut own = found.clone();
    let members = own.as_object_mut().expect("an item is an object");
    for name in ["_rid", "_self", "_etag", "_attachments", "_ts"] {
        assert!(members.remove(name).is_some(), "{path} has no {name}");
    }
    assert!(own == item(path, nonce, filler_length), "{path} is torn: {found}");
    Content::Item { nonce, filler_length }
}
