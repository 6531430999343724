//! A client with a session: it writes and reads documents, hands its token on, and takes over those of others.
//!
//! In: a connection. Out: records of what it did and saw.
//! Invariant: a session token only grows, and no answer is older than the token it was asked with.

use super::workload::{
    BREAK_PAUSE, Connect, DOCUMENTS, Ended, IDS, SharedState, any_name, document, entries_of, json_of, lsn_of,
};
use super::{DocumentName, ReadRecord, WriteRecord};
use crate::http::Response;
use crate::{Client, Request};
use astrarium_env::Random;
use astrarium_wire::headers;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const PROCEDURE: &str = "/dbs/history/colls/c/sprocs/renew";

/// Answers after which nobody knows whether a write happened.
const UNSURE: [u16; 5] = [408, 410, 429, 449, 503];

/// A client with a session.
pub(super) struct SessionClient {
    shared: Arc<SharedState>,
    random: Random,
    /// What the session has seen of each range.
    token: BTreeMap<String, i64>,
    pub(super) writes: Vec<WriteRecord>,
    pub(super) reads: Vec<ReadRecord>,
    pub(super) problems: Vec<String>,
}

impl SessionClient {
    pub(super) fn new(shared: &Arc<SharedState>, seed: u64) -> SessionClient {
        SessionClient {
            shared: Arc::clone(shared),
            random: Random::from_seed(seed),
            token: BTreeMap::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub(super) fn run(
        &mut self,
        connect: Connect<'_>,
        is_ending: &AtomicBool,
        work: fn(&mut Self, &mut Client) -> Ended,
    ) {
        let mut client = connect();
        while !is_ending.load(SeqCst) {
            self.pass_tokens_on();
            if matches!(work(self, &mut client), Ended::Lost) {
                self.problems.extend(self.shared.note_break(is_ending));
                client = connect();
            } else if self.random.next_u64().is_multiple_of(30) {
                // To another server, if there are several.
                client = connect();
            }
        }
    }

    /// Now and then a token goes from one client to another, and a session begins anew.
    fn pass_tokens_on(&mut self) {
        let mut tokens = self.shared.tokens.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match self.random.next_u64() % 20 {
            0 => {
                tokens.push_back(self.token.clone());
                tokens.truncate(8);
            }
            1 => {
                for (range, lsn) in tokens.pop_front().into_iter().flatten() {
                    let own = self.token.entry(range).or_default();
                    *own = lsn.max(*own);
                }
            }
            2 => self.token.clear(),
            _ => {}
        }
    }

    /// Sends a request with the session's token, and takes in that of the answer.
    fn send(&mut self, client: &mut Client, request: Request) -> Option<Response> {
        let entries: Vec<String> =
            self.token.iter().map(|(range, lsn)| format!("{range}:-1#{lsn}")).collect();
        let request = match entries.as_slice() {
            [] => request,
            entries => request.header(headers::SESSION_TOKEN, &entries.join(",")),
        };
        let answer = client.send(&request).ok()?;
        if answer.status == 503 {
            std::thread::sleep(BREAK_PAUSE);
        }
        if answer.status < 400 {
            let before = self.token.clone();
            for (range, lsn) in entries_of(&answer) {
                if before.get(&range).is_some_and(|seen| lsn < *seen) {
                    self.problems.push(format!("range {range} is at {lsn}, and {before:?} was seen"));
                }
                self.token.insert(range, lsn);
            }
        }
        if answer.header(headers::SUBSTATUS) == Some("1002") && answer.status == 404 {
            self.problems.push(format!("a session is not available: {:?}", self.token));
        }
        Some(answer)
    }

    /// One random write.
    pub(super) fn write(&mut self, client: &mut Client) -> Ended {
        let name = any_name(&self.random);
        let version = self.shared.version();
        let body = document(name, version).to_string();
        let request = |verb: &str, path: &str| Request::new(verb, path).partition_key(&key_of(name.0));
        match self.random.next_u64() % 100 {
            0..30 => {
                let upsert = request("POST", DOCUMENTS).header(headers::IS_UPSERT, "true");
                self.put(client, upsert.body(body), name, version, None)
            }
            30..45 => self.put(client, request("POST", DOCUMENTS).body(body), name, version, None),
            45..55 => self.put(client, request("PUT", &path_of(name)).body(body), name, version, None),
            55..75 => self.replace_as_read(client, name, version),
            75..85 => self.delete(client, name),
            85..95 => self.write_batch(client, name),
            _ => self.run_procedure(client, name),
        }
    }

    fn put(
        &mut self,
        client: &mut Client,
        request: Request,
        name: DocumentName,
        version: u64,
        replaces: Option<u64>,
    ) -> Ended {
        self.write_one(client, request, WriteRecord { version: Some(version), replaces, ..blank(name) })
    }

    fn delete(&mut self, client: &mut Client, name: DocumentName) -> Ended {
        let request = Request::new("DELETE", &path_of(name)).partition_key(&key_of(name.0));
        self.write_one(client, request, blank(name))
    }

    /// Replaces a document if it is still what was read.
    fn replace_as_read(&mut self, client: &mut Client, name: DocumentName, version: u64) -> Ended {
        let Some(answer) = self.read_answer(client, name) else { return Ended::Lost };
        let (before, etag) = (json_of(&answer)["v"].as_u64(), answer.header(headers::ETAG));
        let (200, Some(etag)) = (answer.status, etag) else { return Ended::Well };
        let request = Request::new("PUT", &path_of(name)).partition_key(&key_of(name.0));
        let request = request.header(headers::IF_MATCH, etag).body(document(name, version).to_string());
        self.put(client, request, name, version, before)
    }

    fn write_one(&mut self, client: &mut Client, request: Request, mut record: WriteRecord) -> Ended {
        let name = record.name;
        record.began = self.shared.stamp();
        let answer = self.send(client, request);
        record.ended = self.shared.stamp();
        let (began, ended) = (record.began, record.ended);
        let Some(answer) = answer else {
            self.writes.push(record);
            return Ended::Lost;
        };
        match answer.status {
            200 | 201 | 204 => {
                record.lsn = self.commit_of(&answer);
                self.writes.push(record);
            }
            404 => self.reads.push(ReadRecord { name, version: None, lsn: None, began, ended }),
            409 | 412 => {}
            status if UNSURE.contains(&status) => self.writes.push(record),
            _ => self.problems.push(format!("a write is answered {}: {}", answer.status, answer.text())),
        }
        Ended::Well
    }

    /// The commit of a write that was acknowledged.
    fn commit_of(&mut self, answer: &Response) -> Option<u64> {
        let lsn = lsn_of(answer);
        if lsn.is_none() {
            self.problems.push(format!("a write is acknowledged without its commit: {:?}", answer.headers));
        }
        lsn
    }

    /// Several documents of a partition in one transaction.
    fn write_batch(&mut self, client: &mut Client, first: DocumentName) -> Ended {
        let (names, versions) = self.several(first);
        let operation = |(name, version): (&DocumentName, &u64)| json!({"operationType": "Upsert", "resourceBody": document(*name, *version)});
        let operations: Vec<Value> = names.iter().zip(&versions).map(operation).collect();
        let request = Request::new("POST", DOCUMENTS)
            .partition_key(&key_of(first.0))
            .header(headers::IS_BATCH_REQUEST, "True")
            .header(headers::BATCH_ATOMIC, "True")
            .body(Value::from(operations).to_string());
        self.write_several(client, request, &names, &versions)
    }

    /// The same by a stored procedure, which tells what it found.
    fn run_procedure(&mut self, client: &mut Client, first: DocumentName) -> Ended {
        let (names, versions) = self.several(first);
        let ids: Vec<String> = names.iter().map(|name| format!("i{}", name.1)).collect();
        let parameters = json!([ids, versions, format!("p{}", first.0)]);
        let request = Request::new("POST", PROCEDURE).partition_key(&key_of(first.0));
        let done = self.writes.len();
        let ended = self.write_several(client, request.body(parameters.to_string()), &names, &versions);
        debug_assert_eq!(self.writes.len(), done + names.len());
        ended
    }

    fn several(&self, (partition, first): DocumentName) -> (Vec<DocumentName>, Vec<u64>) {
        let names: Vec<DocumentName> = (0..3).map(|place| (partition, (first + place) % IDS)).collect();
        let versions = names.iter().map(|_| self.shared.version()).collect();
        (names, versions)
    }

    fn write_several(
        &mut self,
        client: &mut Client,
        request: Request,
        names: &[DocumentName],
        versions: &[u64],
    ) -> Ended {
        let began = self.shared.stamp();
        let answer = self.send(client, request);
        let ended = self.shared.stamp();
        let (mut lsn, mut found) = (None, Value::Null);
        match &answer {
            Some(answer) if answer.status == 200 => (lsn, found) = (self.commit_of(answer), json_of(answer)),
            Some(answer) if !UNSURE.contains(&answer.status) => {
                self.problems.push(format!("a transaction is answered {}: {}", answer.status, answer.text()));
            }
            _ => {}
        }
        for (place, (name, version)) in names.iter().zip(versions).enumerate() {
            // Results of a batch are objects, what a procedure found are numbers.
            let (version, replaces) = (Some(*version), found[place].as_u64());
            self.writes.push(WriteRecord { version, began, ended, lsn, replaces, ..blank(*name) });
        }
        if answer.is_some() { Ended::Well } else { Ended::Lost }
    }

    /// One random read: of a document, or of a partition by a query.
    pub(super) fn read(&mut self, client: &mut Client) -> Ended {
        let name = any_name(&self.random);
        if self.random.next_u64() % 10 < 8 {
            self.read_document(client, name)
        } else {
            self.query(client, name.0)
        }
    }

    pub(super) fn read_document(&mut self, client: &mut Client, name: DocumentName) -> Ended {
        if self.read_answer(client, name).is_some() { Ended::Well } else { Ended::Lost }
    }

    fn read_answer(&mut self, client: &mut Client, name: DocumentName) -> Option<Response> {
        let read = Request::new("GET", &path_of(name)).partition_key(&key_of(name.0));
        let began = self.shared.stamp();
        let answer = self.send(client, read);
        let ended = self.shared.stamp();
        let answer = answer?;
        match answer.status {
            200 => {
                let version = json_of(&answer)["v"].as_u64();
                let lsn = answer.header(headers::ITEM_LSN).and_then(|lsn| lsn.parse().ok());
                self.reads.push(ReadRecord { name, version, lsn, began, ended });
            }
            404 => self.reads.push(ReadRecord { name, version: None, lsn: None, began, ended }),
            status if UNSURE.contains(&status) => {}
            _ => self.problems.push(format!("a read is answered {}: {}", answer.status, answer.text())),
        }
        Some(answer)
    }

    fn query(&mut self, client: &mut Client, partition: u16) -> Ended {
        let request = Request::new("POST", DOCUMENTS)
            .partition_key(&key_of(partition))
            .header(headers::IS_QUERY, "True")
            .header("content-type", "application/query+json")
            .body("{\"query\":\"SELECT c.id, c.v FROM c WHERE c.v > 0\"}");
        let began = self.shared.stamp();
        let answer = self.send(client, request);
        let ended = self.shared.stamp();
        let Some(answer) = answer else { return Ended::Lost };
        if UNSURE.contains(&answer.status) {
            return Ended::Well;
        }
        let rows = json_of(&answer);
        let Some(rows) = rows["Documents"].as_array().filter(|_| answer.status == 200) else {
            self.problems.push(format!("a query is answered {}: {}", answer.status, answer.text()));
            return Ended::Well;
        };
        for id in 0..IDS {
            let own = format!("i{id}");
            let row = rows.iter().find(|row| row["id"].as_str() == Some(own.as_str()));
            let version = row.and_then(|row| row["v"].as_u64());
            self.reads.push(ReadRecord { name: (partition, id), version, lsn: None, began, ended });
        }
        Ended::Well
    }
}

fn path_of(name: DocumentName) -> String {
    format!("{DOCUMENTS}/i{}", name.1)
}

fn key_of(partition: u16) -> String {
    format!("[\"p{partition}\"]")
}

/// A delete of which nothing is known yet.
fn blank(name: DocumentName) -> WriteRecord {
    WriteRecord { name, version: None, began: 0, ended: 0, lsn: None, replaces: None }
}
