//! Items that all workers fight for: whoever has the highest LSN has won, and an etag is consumed once.

use crate::MAIN_CONTAINER;
use crate::account::{Account, Content, Resource, Resources, item, partition_key_header};
use crate::client::{Answer, Client};
use astrarium_env::Random;
use astrarium_wire::headers;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard};

const ITEM_COUNT: u64 = 8;

#[derive(Default)]
pub(crate) struct Contest {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// For each path the acknowledged change with the highest LSN, and what it left.
    last: BTreeMap<String, (u64, Option<Resource>)>,
    /// Etags that an acknowledged conditional write replaced.
    consumed: BTreeSet<String>,
    /// Requests whose answer never came.
    under_way: Vec<Attempt>,
}

/// A change, and the etag it depends on.
struct Attempt {
    path: String,
    content: Option<Content>,
    if_match: Option<String>,
}

impl Contest {
    /// Changes one of the items in some way; gives the answer of an acknowledged change.
    pub(crate) fn step(&self, client: &mut Client, random: &Random) -> io::Result<Option<Answer>> {
        let path = format!("{MAIN_CONTAINER}/docs/shared-{}", random.next_u64() % ITEM_COUNT);
        let (nonce, filler_length) = (random.next_u64(), (random.next_u64() % 800) as usize);
        let content = Some(Content::Item { nonce, filler_length });
        let attempt = match random.next_u64() % 10 {
            0..=4 => Attempt { path, content, if_match: None },
            5 => Attempt { path, content: None, if_match: None },
            _ => {
                let key = partition_key_header(&path);
                let present = client.send("GET", &path, &[(headers::PARTITION_KEY, &key)], "")?;
                let if_match = (present.status == 200).then(|| present.etag());
                Attempt { path, content, if_match }
            }
        };
        match send(client, &attempt) {
            Ok(answer) => Ok(self.acknowledge(attempt, answer)),
            Err(error) => {
                self.state().under_way.push(attempt);
                Err(error)
            }
        }
    }

    fn acknowledge(&self, attempt: Attempt, answer: Answer) -> Option<Answer> {
        if matches!(answer.status, 404 | 412 | 449) {
            return None;
        }
        assert!(matches!(answer.status, 200 | 201 | 204), "{}: {}", attempt.path, answer.text());
        let left = attempt.content.map(|content| Resource::of(content, &answer));
        let mut state = self.state();
        if let Some(etag) = attempt.if_match {
            assert!(state.consumed.insert(etag), "{}: two writes replaced the same version", attempt.path);
        }
        let last = state.last.entry(attempt.path).or_default();
        if answer.lsn() > last.0 {
            *last = (answer.lsn(), left);
        }
        Some(answer)
    }

    /// Checks what a restarted server has of these items, and goes on from there.
    pub(crate) fn settle(&self, found: &Account, context: &str) -> Resources {
        let mut state = self.state();
        let under_way = std::mem::take(&mut state.under_way);
        let mut settled = Resources::new();
        for number in 0..ITEM_COUNT {
            let path = format!("{MAIN_CONTAINER}/docs/shared-{number}");
            let present = found.get(&path).cloned();
            let acknowledged = state.last.get(&path).and_then(|(_, left)| left.clone());
            let is_late = || {
                under_way.iter().any(|attempt| {
                    attempt.path == path
                        && attempt.content == present.as_ref().map(|present| present.content)
                        && attempt.if_match.as_ref().is_none_or(|etag| !state.consumed.contains(etag))
                })
            };
            assert!(
                present == acknowledged || is_late(),
                "{context}: {path} is {present:?}, acknowledged was {acknowledged:?}"
            );
            state.last.insert(path.clone(), (0, present.clone()));
            settled.extend(present.map(|present| (path, present)));
        }
        settled
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no worker failed with the state in hand")
    }
}

fn send(client: &mut Client, attempt: &Attempt) -> io::Result<Answer> {
    let key = partition_key_header(&attempt.path);
    let mut more = vec![(headers::PARTITION_KEY, key.as_str())];
    more.extend(attempt.if_match.as_deref().map(|etag| (headers::IF_MATCH, etag)));
    let Some(Content::Item { nonce, filler_length }) = attempt.content else {
        return client.send("DELETE", &attempt.path, &more, "");
    };
    let body = item(&attempt.path, nonce, filler_length).to_string();
    if attempt.if_match.is_some() {
        return client.send("PUT", &attempt.path, &more, &body);
    }
    more.push((headers::IS_UPSERT, "true"));
    client.send("POST", &format!("{MAIN_CONTAINER}/docs"), &more, &body)
}
