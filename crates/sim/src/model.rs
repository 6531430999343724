//! What a container should do, in the fewest words: documents by place, and what operations make of them.
//!
//! In: a state and an [`DocumentChange`]. Out: what the action may answer on that state, and the state after it.
//! Where time decides, there is more than one right answer: a clock was somewhere between two readings, so a document may
//! be alive or expired. Such answers are all allowed, and what is certain is required.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A logical partition and an id in it.
pub(crate) type Slot = (u8, u8);

/// All documents, expired ones included.
pub(crate) type Documents = BTreeMap<Slot, Arc<DocumentVersion>>;

/// Readings of the clock that something happened between, in seconds.
pub(crate) type Between = (u64, u64);

/// What a document holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentFields {
    /// Goes up by one with every patch.
    pub(crate) n: i64,
    pub(crate) a: i64,
    /// Unique in its partition, if the container says so.
    pub(crate) u: i64,
    /// The operation that wrote it.
    pub(crate) operation: u64,
    pub(crate) ttl: Option<u64>,
}

/// A document between two writes.
#[derive(Debug)]
pub(crate) struct DocumentVersion {
    pub(crate) content: DocumentFields,
    pub(crate) lsn: u64,
    /// When it was written, as far as the clock tells.
    written: Between,
    /// When it was written, known once somebody was told; so is the etag.
    pub(crate) timestamp: OnceLock<u64>,
    pub(crate) etag: OnceLock<String>,
}

/// What somebody asks of one document.
#[derive(Debug, Clone)]
pub(crate) enum DocumentChange {
    Create(Slot, DocumentFields),
    Upsert(Slot, DocumentFields),
    /// With the etag that must be there, if any.
    Replace(Slot, DocumentFields, Option<String>),
    Delete(Slot, Option<String>),
    /// One more in `n`, by the operation of this number.
    Increment(Slot, u64),
    /// All or nothing.
    Batch(Vec<DocumentChange>),
}

/// How an action ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    Refused(Refused),
    /// In a batch: which of the actions was refused.
    Failed(usize, Refused),
}

/// Why an action was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    NotFound,
    Exists,
    PreconditionFailed,
    UniqueKey,
}

/// What the container is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) unique: bool,
    /// Documents expire after so many seconds; nothing for never.
    pub(crate) ttl: Option<u64>,
}

impl DocumentFields {
    pub(crate) fn json(&self, (partition, id): Slot) -> Value {
        let DocumentFields { n, a, u, operation, ttl } = self;
        let mut value = json!({"id": format!("i{id}"), "pk": format!("p{partition}"), "n": n, "a": a, "u": u, "op": operation});
        if let Some(ttl) = ttl {
            value["ttl"] = json!(ttl);
        }
        value
    }

    /// Reads what the database shows; nothing if that is no document of ours.
    pub(crate) fn read(text: &[u8]) -> Option<(Slot, DocumentFields)> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let number = |name: &str| value[name].as_i64();
        let tail = |name: &str| value[name].as_str()?.get(1..)?.parse().ok();
        let content = DocumentFields {
            n: number("n")?,
            a: number("a")?,
            u: number("u")?,
            operation: number("op")?.try_into().ok()?,
            ttl: value["ttl"].as_u64(),
        };
        Some(((tail("pk")?, tail("id")?), content))
    }
}

impl DocumentVersion {
    /// Takes in what somebody was told of it; false if others were told something else.
    pub(crate) fn learn(&self, etag: &str, timestamp: u64) -> bool {
        let known = self.etag.get_or_init(|| etag.to_owned());
        known == etag
            && *self.timestamp.get_or_init(|| timestamp) == timestamp
            && (self.written.0..=self.written.1).contains(&timestamp)
    }

    /// Whether it may be visible, and whether it may have expired, at some time between.
    pub(crate) fn life(&self, rules: Rules, now: Between) -> (bool, bool) {
        let Some(default) = rules.ttl else { return (true, false) };
        let lifetime = self.content.ttl.unwrap_or(default);
        let (earliest, latest) = self.timestamp.get().map_or(self.written, |known| (*known, *known));
        (latest + lifetime > now.0, earliest + lifetime <= now.1)
    }

    fn has_etag(&self, wanted: Option<&String>) -> (bool, bool) {
        match (wanted, self.etag.get()) {
            (None, _) => (true, false),
            (Some(wanted), Some(etag)) => (wanted == etag, wanted != etag),
            // Nobody was told this version's etag, so nobody can name it.
            (Some(_), None) => (false, true),
        }
    }
}

impl DocumentChange {
    pub(crate) fn slot(&self) -> Option<Slot> {
        match self {
            DocumentChange::Create(slot, _)
            | DocumentChange::Upsert(slot, _)
            | DocumentChange::Replace(slot, _, _) => Some(*slot),
            DocumentChange::Delete(slot, _) | DocumentChange::Increment(slot, _) => Some(*slot),
            DocumentChange::Batch(_) => None,
        }
    }

    /// What it may answer on a state.
    pub(crate) fn answers(&self, documents: &Documents, rules: Rules, now: Between) -> Vec<Verdict> {
        let DocumentChange::Batch(actions) = self else {
            let refused = self.refusals(documents, rules, now);
            let mut answers: Vec<Verdict> = refused.0.into_iter().map(Verdict::Refused).collect();
            answers.extend(refused.1.then_some(Verdict::Done));
            return answers;
        };
        let (mut documents, mut answers) = (documents.clone(), Vec::new());
        for (index, action) in actions.iter().enumerate() {
            let (refused, may_go_on) = action.refusals(&documents, rules, now);
            answers.extend(refused.into_iter().map(|refused| Verdict::Failed(index, refused)));
            if !may_go_on {
                return answers;
            }
            action.apply(&mut documents, rules, 0, now);
        }
        answers.push(Verdict::Done);
        answers
    }

    /// Why it may be refused, and whether it may be done.
    fn refusals(&self, documents: &Documents, rules: Rules, now: Between) -> (Vec<Refused>, bool) {
        let Some(slot) = self.slot() else { return (Vec::new(), true) };
        let old = documents.get(&slot);
        let (alive, expired) = old.map_or((false, true), |old| old.life(rules, now));
        let (mut refused, mut may) = (Vec::new(), true);
        match self {
            DocumentChange::Create(..) => {
                refused.extend(alive.then_some(Refused::Exists));
                may = expired;
            }
            DocumentChange::Upsert(..) | DocumentChange::Batch(_) => {}
            DocumentChange::Replace(_, _, etag) | DocumentChange::Delete(_, etag) => {
                let (same, other) = old.map_or((true, true), |old| old.has_etag(etag.as_ref()));
                refused.extend(expired.then_some(Refused::NotFound));
                refused.extend((alive && other).then_some(Refused::PreconditionFailed));
                may = alive && same;
            }
            DocumentChange::Increment(..) => {
                refused.extend(expired.then_some(Refused::NotFound));
                may = alive;
            }
        }
        if let (true, Some(content)) = (rules.unique && may, self.written(documents)) {
            let lives = holders(documents, slot, content.u).map(|(_, holder)| holder.life(rules, now));
            for (alive, expired) in lives {
                refused.extend(alive.then_some(Refused::UniqueKey));
                may &= expired;
            }
        }
        (refused, may)
    }

    /// What it would write.
    fn written(&self, documents: &Documents) -> Option<DocumentFields> {
        match self {
            DocumentChange::Create(_, content)
            | DocumentChange::Upsert(_, content)
            | DocumentChange::Replace(_, content, _) => Some(content.clone()),
            DocumentChange::Increment(slot, operation) => {
                let old = &documents.get(slot)?.content;
                Some(DocumentFields { n: old.n + 1, operation: *operation, ..old.clone() })
            }
            DocumentChange::Delete(..) | DocumentChange::Batch(_) => None,
        }
    }

    /// Does it.
    pub(crate) fn apply(&self, documents: &mut Documents, rules: Rules, lsn: u64, now: Between) {
        if let DocumentChange::Batch(actions) = self {
            for action in actions {
                action.apply(documents, rules, lsn, now);
            }
        }
        let Some(slot) = self.slot() else { return };
        let Some(content) = self.written(documents) else {
            documents.remove(&slot);
            return;
        };
        if rules.unique {
            // An expired document gives way.
            let gone: Vec<Slot> = holders(documents, slot, content.u).map(|(slot, _)| slot).collect();
            documents.retain(|slot, _| !gone.contains(slot));
        }
        let version =
            DocumentVersion { content, lsn, written: now, timestamp: OnceLock::new(), etag: OnceLock::new() };
        documents.insert(slot, Arc::new(version));
    }
}

/// Other documents of a partition that have a unique value.
fn holders(documents: &Documents, own: Slot, u: i64) -> impl Iterator<Item = (Slot, &DocumentVersion)> {
    let others = documents.iter().filter(move |(slot, _)| slot.0 == own.0 && **slot != own);
    others.filter(move |(_, version)| version.content.u == u).map(|(slot, version)| (*slot, &**version))
}
