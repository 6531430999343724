//! Clients: they draw requests, ask the database, and tell the history what they heard.

use crate::dice::Dice;
use crate::history::{ActorRequest, FeedCursor, Shown, Told};
use crate::model::{DocumentChange, DocumentFields, Refused, Slot, Verdict};
use crate::storage::Surroundings;
use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::partition::{Component, PartitionKey};
use astrarium_database::value::Value;
use astrarium_database::value::patch::{PatchOperation, Pointer};
use astrarium_database::{
    Account, BatchAction, BatchOperation, Body, ChangeFeedMode, ChangeFeedStart, Conditions, Container,
    Error, EtagCondition, FeedChange, FeedScope, IndexDirective, IndexUse, Limits, Link, PageLimit, Patch,
    QueryScope, ReadChanges, WriteMode, WriteOptions, etag_text,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Few enough that clients meet.
const PARTITIONS: u64 = 2;
const IDS: u64 = 4;
const ALL: PageLimit = PageLimit { count_max: 1_000, bytes_max: 64 << 20 };
/// Tags of what one operation writes: its number times this, and the place in a batch.
const TAGS: u64 = 10;

/// One client, and what it remembers.
pub(crate) struct Actor {
    pub(crate) account: Account,
    pub(crate) around: Arc<Surroundings>,
    /// Whether one range has all documents, so that a query over all of them sees one state.
    pub(crate) is_one_range: bool,
    /// Whether documents have unique keys.
    pub(crate) is_unique: bool,
    /// Whether change feeds are read: documents that expire leave them at a moment that nobody can tell.
    pub(crate) reads_changes: bool,
    /// Requests that are still to come, shared with who goes on after a crash.
    pub(crate) left: Arc<AtomicU64>,
    pub(crate) etags: BTreeMap<Slot, String>,
    /// For the look at everything in the end: first every document, then what the dice choose.
    pub(crate) only_reads: bool,
}

impl Actor {
    pub(crate) async fn run(mut self) {
        while self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            let operation = self.around.history.lock().next_operation();
            self.around.names.set(operation);
            let request = self.draw(operation);
            self.around.history.lock().begin(operation, &request);
            let told = match self.ask(operation, &request).await {
                Ok(told) => told,
                Err(error) => told(error),
            };
            self.remember(&told);
            self.around.history.lock().end(operation, &told);
            self.around.names.set(0);
            astrarium_env::sleep(Duration::from_millis(self.around.dice.below(300))).await;
        }
    }

    fn remember(&mut self, told: &Told) {
        let shown = match told {
            Told::Changed(shown) | Told::Documents(shown) => shown.as_slice(),
            Told::Document(Some(shown)) => std::slice::from_ref(shown),
            _ => &[],
        };
        self.etags.extend(shown.iter().map(|one| (one.slot, one.etag.clone())));
    }

    fn draw(&self, operation: u64) -> ActorRequest {
        let dice = &self.around.dice;
        let mut slot = draw_slot(dice);
        let left = self.left.load(Relaxed);
        if self.only_reads && left < PARTITIONS * IDS {
            slot = ((left / IDS) as u8, (left % IDS) as u8);
            return ActorRequest::Read(slot);
        }
        let partition = Some(slot.0).filter(|_| !self.is_one_range || dice.chance(500));
        match if self.only_reads { 80 + dice.below(17) } else { dice.below(100) } {
            0..60 => ActorRequest::Change(self.draw_action(slot, operation * TAGS)),
            60..68 => {
                let count = 2 + dice.below(3);
                // With unique keys each document once: values that a batch itself replaces again are checked on its view only,
                // which is as good as an earlier place in the order of commits, but not the place that it has.
                let id =
                    |index| if self.is_unique { (u64::from(slot.1) + index) % IDS } else { dice.below(IDS) };
                let action = |index| self.draw_action((slot.0, id(index) as u8), operation * TAGS + index);
                ActorRequest::Change(DocumentChange::Batch((0..count).map(action).collect()))
            }
            68..80 => ActorRequest::Read(slot),
            80..84 if self.reads_changes => {
                let cursor = self.around.history.lock().cursor(partition);
                ActorRequest::Changes(partition, cursor, 1 + dice.below(6) as usize)
            }
            80..85 => ActorRequest::Feed(partition),
            85..90 => ActorRequest::Equal(partition, draw_small(dice)),
            90..94 => ActorRequest::Count(partition, draw_small(dice)),
            94..97 => ActorRequest::Ordered(partition, draw_small(dice)),
            _ => ActorRequest::Policy(dice.chance(500)),
        }
    }

    fn draw_action(&self, slot: Slot, tag: u64) -> DocumentChange {
        let dice = &self.around.dice;
        let etag = self.etags.get(&slot).cloned().filter(|_| dice.chance(600));
        let content = || DocumentFields {
            n: draw_small(dice),
            a: draw_small(dice),
            u: dice.below(6).cast_signed(),
            operation: tag,
            ttl: dice.chance(200).then(|| 1 + dice.below(30)),
        };
        match dice.below(10) {
            0..3 => DocumentChange::Create(slot, content()),
            3..5 => DocumentChange::Upsert(slot, content()),
            5..7 => DocumentChange::Replace(slot, content(), etag),
            7 => DocumentChange::Delete(slot, etag),
            _ => DocumentChange::Increment(slot, tag),
        }
    }

    async fn ask(&self, operation: u64, request: &ActorRequest) -> Result<Told, Error> {
        let container = self.account.catalog().container(Link::Name("d"), Link::Name("c")).await?;
        let index_use = match self.around.dice.below(3) {
            0 => IndexUse::Always,
            1 => IndexUse::Never,
            _ => IndexUse::ByCost,
        };
        let query = async |text: &str, partition: &Option<u8>, value: i64| {
            self.rows(&container, text, *partition, value, index_use).await
        };
        match request {
            ActorRequest::Change(DocumentChange::Batch(actions)) => self.batch(&container, actions).await,
            ActorRequest::Change(action) => self.change(&container, action).await,
            ActorRequest::Read((partition, id)) => {
                let (id, key) = (format!("i{id}"), key(*partition));
                match self.account.documents(&container).read(Link::Name(&id), Some(&key)).await {
                    Ok(outcome) => {
                        Ok(show(&outcome.body).map_or_else(strange, |one| Told::Document(Some(one))))
                    }
                    Err(Error::NotFound) => Ok(Told::Document(None)),
                    Err(error) => Err(error),
                }
            }
            ActorRequest::Feed(partition) => {
                let page =
                    self.account.documents(&container).read_feed(&scope(*partition), None, ALL).await?;
                let shown: Option<Vec<Shown>> = page.documents.iter().map(show).collect();
                Ok(shown.map_or_else(strange, Told::Documents))
            }
            ActorRequest::Changes(partition, cursor, count) => {
                self.changes(&container, *partition, cursor, *count).await
            }
            ActorRequest::Equal(partition, a) => {
                Ok(Told::Found(query("SELECT VALUE c.op FROM c WHERE c.a = @v", partition, *a).await?))
            }
            ActorRequest::Ordered(partition, n) => {
                let text = "SELECT VALUE c.op FROM c WHERE c.n >= @v ORDER BY c.n";
                Ok(Told::Found(query(text, partition, *n).await?))
            }
            ActorRequest::Count(partition, a) => {
                let rows = query("SELECT VALUE COUNT(1) FROM c WHERE c.a = @v", partition, *a).await?;
                Ok(rows.first().map_or_else(strange, |count| Told::Counted(*count)))
            }
            ActorRequest::Policy(indexes_a) => {
                let excluded = if *indexes_a { "/x/?" } else { "/a/?" };
                let mut definition = container.definition.clone();
                let policy = serde_json::json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
                    "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": excluded}]}});
                let wanted = ContainerDefinition::from_replace(&policy)
                    .map_err(|error| Error::Bug(error.to_string()))?;
                definition.indexing = wanted.indexing;
                let names = (Link::Name("d"), Link::Name("c"));
                self.account
                    .catalog()
                    .replace_container(names.0, names.1, &definition, &Conditions::default())
                    .await?;
                Ok(Told::Unsure(format!("operation {operation} has changed the policy")))
            }
        }
    }

    /// The next changes after a position.
    async fn changes(
        &self,
        container: &Arc<Container>,
        partition: Option<u8>,
        cursor: &FeedCursor,
        count_max: usize,
    ) -> Result<Told, Error> {
        let start = cursor.position.clone().map_or(ChangeFeedStart::Beginning, ChangeFeedStart::Position);
        let request = ReadChanges {
            scope: scope(partition),
            range_id: None,
            mode: ChangeFeedMode::LatestVersion,
            start,
            limit: PageLimit { count_max, ..ALL },
            wait: Duration::from_millis(self.around.dice.below(200)),
        };
        let page = self.account.documents(container).read_changes(&request).await?;
        let changed = |change: &FeedChange| change.current.as_ref().and_then(show);
        let shown: Option<Vec<Shown>> = page.changes.iter().map(changed).collect();
        Ok(shown.map_or_else(strange, |shown| Told::Changes(shown, page.position)))
    }

    async fn change(&self, container: &Arc<Container>, action: &DocumentChange) -> Result<Told, Error> {
        let Some(slot) = action.slot() else { return Ok(Told::Wrong("a change of nothing".to_owned())) };
        let (key, id, conditions) = (key(slot.0), format!("i{}", slot.1), conditions(action));
        let options = WriteOptions {
            partition_key: Some(&key),
            conditions: &conditions,
            index_directive: IndexDirective::Default,
        };
        let outcome = match write(action, &id) {
            Some((mode, text)) => {
                self.account.documents(container).write(mode, text.as_bytes(), options).await?
            }
            None if matches!(action, DocumentChange::Delete(..)) => {
                self.account.documents(container).delete(Link::Name(&id), Some(&key), &conditions).await?;
                return Ok(Told::Changed(Vec::new()));
            }
            None => {
                self.account.documents(container).patch(Link::Name(&id), &patch(action)?, options).await?
            }
        };
        Ok(show(&outcome.body).map_or_else(strange, |one| Told::Changed(vec![one])))
    }

    async fn batch(&self, container: &Arc<Container>, actions: &[DocumentChange]) -> Result<Told, Error> {
        let slots: Vec<Slot> = actions.iter().filter_map(DocumentChange::slot).collect();
        let ids: Vec<String> = slots.iter().map(|slot| format!("i{}", slot.1)).collect();
        let texts: Vec<Option<(WriteMode<'_>, String)>> =
            actions.iter().zip(&ids).map(|(action, id)| write(action, id)).collect();
        let mut operations = Vec::new();
        for ((action, id), text) in actions.iter().zip(&ids).zip(&texts) {
            let done = match (text, action) {
                (Some((mode, text)), _) => BatchAction::Write(*mode, text.as_bytes()),
                (None, DocumentChange::Delete(..)) => BatchAction::Delete(id),
                (None, _) => BatchAction::Patch(id, Box::new(patch(action)?)),
            };
            operations.push(BatchOperation {
                action: Ok(done),
                partition_key: None,
                conditions: conditions(action),
                index_directive: IndexDirective::Default,
                is_shown: true,
            });
        }
        let key = key(slots[0].0);
        let outcome = self.account.documents(container).run_batch(Some(&key), &operations, 1 << 20).await?;
        Ok(match outcome.result {
            Ok(done) => {
                let written = done
                    .iter()
                    .zip(actions)
                    .filter(|(_, action)| !matches!(action, DocumentChange::Delete(..)));
                let shown: Option<Vec<Shown>> = written.map(|(done, _)| show(&done.body)).collect();
                let at = |one: Shown| Shown { lsn: outcome.lsn, ..one };
                shown.map_or_else(strange, |shown| Told::Changed(shown.into_iter().map(at).collect()))
            }
            Err((index, error)) => match refused(&error) {
                Some(refused) => Told::Verdict(Verdict::Failed(index, refused)),
                None => return Err(error),
            },
        })
    }

    /// Rows that are numbers, all in one page.
    async fn rows(
        &self,
        container: &Arc<Container>,
        text: &str,
        partition: Option<u8>,
        value: i64,
        index_use: IndexUse,
    ) -> Result<Vec<u64>, Error> {
        let query = self.account.parse_query(text, vec![("@v".to_owned(), Value::from(value as f64))])?;
        let limits = Limits { row_count_max: 1_000, index_use, ..Limits::default() };
        let scope = QueryScope::Given(scope(partition));
        let page = self.account.documents(container).query(&query, &scope, None, limits).await?;
        let number = |row: &Vec<u8>| std::str::from_utf8(row).ok().and_then(|row| row.parse::<u64>().ok());
        let rows: Option<Vec<u64>> = page.rows.iter().map(number).collect();
        rows.ok_or_else(|| Error::Bug("a row that is no number".to_owned()))
    }
}

fn draw_slot(dice: &Dice) -> Slot {
    (dice.below(PARTITIONS) as u8, dice.below(IDS) as u8)
}

fn draw_small(dice: &Dice) -> i64 {
    dice.below(4).cast_signed()
}

fn key(partition: u8) -> PartitionKey {
    PartitionKey::new(vec![Component::String(format!("p{partition}").as_str().into())])
}

fn scope(partition: Option<u8>) -> FeedScope {
    partition.map_or(FeedScope::All, |partition| FeedScope::Partition(key(partition)))
}

/// How a document is written by an action that has all of it.
fn write<'a>(action: &DocumentChange, id: &'a str) -> Option<(WriteMode<'a>, String)> {
    let (mode, slot, content) = match action {
        DocumentChange::Create(slot, content) => (WriteMode::Create, slot, content),
        DocumentChange::Upsert(slot, content) => (WriteMode::Upsert, slot, content),
        DocumentChange::Replace(slot, content, _) => (WriteMode::Replace(Link::Name(id)), slot, content),
        DocumentChange::Delete(..) | DocumentChange::Increment(..) | DocumentChange::Batch(_) => return None,
    };
    Some((mode, content.json(*slot).to_string()))
}

fn patch(action: &DocumentChange) -> Result<Patch, Error> {
    let DocumentChange::Increment(_, tag) = action else { return Err(Error::Bug("no patch".to_owned())) };
    let pointer = |text: &str| Pointer::parse(text).map_err(|_| Error::Bug(text.to_owned()));
    let more = PatchOperation::Increment { path: pointer("/n")?, by: "1".into() };
    let by = PatchOperation::Set { path: pointer("/op")?, value: tag.to_string().into() };
    Patch::new(None, vec![more, by])
}

fn conditions(action: &DocumentChange) -> Conditions {
    let etag = match action {
        DocumentChange::Replace(_, _, etag) | DocumentChange::Delete(_, etag) => etag.clone(),
        _ => None,
    };
    Conditions { if_match: etag.map(|etag| EtagCondition::OneOf(vec![etag])), if_none_match: None }
}

fn show(body: &Body) -> Option<Shown> {
    let (slot, content) = DocumentFields::read(body.text())?;
    let header = &body.header;
    let etag = etag_text(header.etag, header.timestamp).trim_matches('"').to_owned();
    Some(Shown { slot, content, lsn: header.lsn, etag, timestamp: header.timestamp })
}

fn strange() -> Told {
    Told::Wrong("an answer that is none".to_owned())
}

fn refused(error: &Error) -> Option<Refused> {
    match error {
        Error::NotFound => Some(Refused::NotFound),
        Error::Exists => Some(Refused::Exists),
        Error::PreconditionFailed => Some(Refused::PreconditionFailed),
        Error::UniqueKey => Some(Refused::UniqueKey),
        _ => None,
    }
}

/// What an error tells.
fn told(error: Error) -> Told {
    match error {
        Error::Unavailable(_) | Error::Busy | Error::RetryWith | Error::Timeout(_) => {
            Told::Unsure(error.to_string())
        }
        other => match refused(&other) {
            Some(refused) => Told::Verdict(Verdict::Refused(refused)),
            None => Told::Wrong(format!("{other:?}")),
        },
    }
}
