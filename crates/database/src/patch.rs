//! Patch: small changes of one document, computed and written in one transaction.
//!
//! In: a [`Patch`] and the document's name. Out: the document as it is then.
//! The checks come in the service's order: targets, existence, etag, condition, operations, and then those of every
//! document that is written. The outcome is computed anew on each new view, so no concurrent change is lost.
//! Not here: how operations change a text (`value::patch`), the form of the request (`wire`).

use crate::attempts::Failure;
use crate::charge::patch_charge;
use crate::documents::{Staged, checked_key, stage_write};
use crate::{
    AccountCore, DocumentLink, DocumentsHandle, Error, Limits, Link, Outcome, Query, WriteMode, WriteOptions,
};
use astrarium_catalog::container::Container;
use astrarium_keys::body::Body;

use astrarium_store::{Incoming, Location, Transaction, push_document};
use astrarium_value::json::seek;
use astrarium_value::patch::{self, PatchOperation};
use astrarium_value::system_properties;
use bytes::Bytes;
use std::sync::Arc;

/// Microseconds that a condition may take.
const CONDITION_MICROS_MAX: u64 = 5_000_000;

/// Changes of one document, and what must be true of it before.
#[derive(Debug, Clone)]
pub struct Patch {
    condition: Option<Query>,
    operations: Vec<PatchOperation>,
}

impl Patch {
    /// Takes a condition such as `from c where c.a = 1`, and the operations.
    pub fn new(condition: Option<&str>, operations: Vec<PatchOperation>) -> Result<Patch, Error> {
        let condition = condition.map(parse_condition).transpose()?;
        Ok(Patch { condition, operations })
    }
}

/// A condition is the end of a query, with or without the name of its source.
fn parse_condition(text: &str) -> Result<Query, Error> {
    let text = text.trim();
    let is_filter = text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("where"));
    let source = if is_filter { "FROM c " } else { "" };
    Query::parse(&format!("SELECT VALUE 1 {source}{text}"), Vec::new())
}

impl DocumentsHandle<'_> {
    /// Changes parts of a document.
    pub async fn patch(
        self,
        link: DocumentLink<'_>,
        patch: &Patch,
        options: WriteOptions<'_>,
    ) -> Result<Outcome, Error> {
        let DocumentsHandle { core, container } = self;
        let patched = core.attempt(container, |trial| async move {
            core.patch_once(&trial.container, link, patch, options).await
        });
        // A condition is a whole query: too large to be part of every request's future.
        Box::pin(patched).await
    }
}

impl AccountCore {
    async fn patch_once(
        &self,
        container: &Arc<Container>,
        link: DocumentLink<'_>,
        patch: &Patch,
        options: WriteOptions<'_>,
    ) -> Result<Outcome, Failure> {
        let (location, view) = self.locate(container, link, options.partition_key).await?;
        let mut transaction = self.begin(container, location.range, view).await?;
        let staged = self.stage_patch(&mut transaction, container, &location.key, patch, options).await?;
        let (lsn, terms) = self.commit(transaction).await?;
        Ok(Outcome {
            container: container.clone(),
            range_id: location.range.id,
            lsn,
            body: staged.body.committed_at(lsn),
            created: false,
            charge: staged.charge + terms,
        })
    }

    /// Adds the outcome of a patch to a transaction.
    pub(crate) async fn stage_patch(
        &self,
        transaction: &mut Transaction,
        container: &Arc<Container>,
        key: &Bytes,
        patch: &Patch,
        options: WriteOptions<'_>,
    ) -> Result<Staged, Failure> {
        let definition = &container.definition;
        patch::check_targets(&patch.operations, &system_properties::ALL, &definition.partition_key.paths)
            .map_err(Error::from)?;
        let old = transaction.read(key).await?.ok_or(Error::NotFound)?.clone();
        options.conditions.check_write(old.header.etag, old.header.timestamp)?;
        self.check_condition(container, &old, patch).await?;
        let text = patch::apply(old.text(), &patch.operations).map_err(Error::from)?;
        let incoming = Incoming::parse(definition, &text).map_err(Error::from)?;
        let partition = checked_key(&definition.partition_key, &incoming.partition)?;
        if Location::of(container, &partition, &incoming.id).key != *key {
            let message = "Invalid patch request: the patch would change the document's id or partition key.";
            return Err(Error::invalid(message).into());
        }
        let id = incoming.id.clone();
        let mode = WriteMode::Replace(Link::Name(&id));
        let staged = stage_write(transaction, key.into(), mode, incoming, options).await?;
        let charge = staged.charge + patch_charge(patch.operations.len());
        Ok(Staged { charge, ..staged })
    }

    /// Refuses a document that a patch's condition does not select. The condition sees the system properties too, and
    /// computed ones.
    async fn check_condition(
        &self,
        container: &Arc<Container>,
        old: &Body,
        patch: &Patch,
    ) -> Result<(), Error> {
        let Some(condition) = &patch.condition else { return Ok(()) };
        let mut shown = Vec::new();
        push_document(container.rid(), old, &mut shown);
        let limits = Limits { row_count_max: 1, query_micros_max: CONDITION_MICROS_MAX, ..Limits::default() };
        let is_selected = self.selects(container, seek::value(&shown), condition, limits).await?;
        if is_selected { Ok(()) } else { Err(Error::PreconditionFailed) }
    }
}
