//! Rows as documents are found, in order of insertion: every page reads the documents of its own rows.

use super::join::Track;
use super::limit::PageLimiter;
use super::project::output;
use super::{OutputRow, RowBatch, RowMark};
use crate::access::Found;
use crate::announce::{Announcer, WINDOW};
use crate::budget::charge_documents;
use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::frame::Datum;
use crate::pipeline::Flow;
use crate::resume::{PartialDocument, ResumePlace};
use crate::rows::{AccessWork, Input, PricedWork, ReadDocument, Reader};
use astrarium_env::charge;
use astrarium_sql_functions::limits::TEXT_BYTES_PER_STEP;
use astrarium_store::FeedPosition;

/// Reads documents and makes their rows.
pub(crate) struct StreamRows<'a> {
    reader: Reader<'a>,
    announcer: Announcer,
    documents: std::vec::IntoIter<ReadDocument>,
    /// Documents whose calls of user-defined functions were told already.
    told: usize,
    /// The position right before the next document, if positions are not numbers.
    before: Option<FeedPosition>,
    /// The document that the page before gave in part.
    partial: Option<PartialDocument>,
    /// The range whose page this is.
    range_id: Option<u32>,
    /// Whether documents were read already.
    has_begun: bool,
    is_stored: bool,
}

impl<'a> StreamRows<'a> {
    pub(crate) fn open(
        execution: &Execution<'a>,
        input: &'a Input,
        found: Option<Found>,
        place: Option<ResumePlace>,
        rows: u64,
    ) -> Result<StreamRows<'a>, ExecuteError> {
        let (before, partial) = match place {
            None => (None, None),
            Some(ResumePlace::Stream(position, partial)) => (position, partial),
            Some(_) => return Err(ExecuteError::ForeignPosition),
        };
        let reader = Reader::new(input, found, before.clone(), rows);
        let range_id = reader.first_range_id()?;
        Ok(StreamRows {
            reader,
            announcer: Announcer::new(execution.job),
            documents: Vec::new().into_iter(),
            told: 0,
            before,
            partial,
            range_id,
            has_begun: false,
            is_stored: matches!(input, Input::Container(..)),
        })
    }

    /// The rows of the next document that has some.
    pub(crate) async fn next(
        &mut self,
        execution: &mut Execution<'_>,
        taken: &PageLimiter,
    ) -> Result<Option<RowBatch>, ExecuteError> {
        loop {
            while !self.documents.as_slice().is_empty() {
                self.announce(execution, taken);
                let Some(document) = self.documents.next() else { break };
                let batch = self.document(execution, taken, document)?;
                if !batch.rows.is_empty() || batch.end.is_some() {
                    return Ok(Some(batch));
                }
                execution.count(batch.counts);
            }
            if let Some(position) = self.stopping_place(execution) {
                let end = Some(ResumePlace::Stream(Some(position), None));
                return Ok(Some(RowBatch { end, ..RowBatch::default() }));
            }
            let documents = self.reader.next().await?;
            self.has_begun = true;
            execution.looked_up(&mut self.reader);
            let Some(mut documents) = documents else { return Ok(None) };
            if let Some(partial) = &self.partial {
                // Documents that were put before it since do not come between its rows.
                let given = documents.iter().position(|document| document.number() == partial.number);
                documents.drain(..given.unwrap_or(0));
            }
            (self.documents, self.told) = (documents.into_iter(), 0);
        }
    }

    /// Where the page ends before it reads on. Every range has pages of its own, one at least, as on the service.
    fn stopping_place(&mut self, execution: &Execution<'_>) -> Option<FeedPosition> {
        let position = self.reader.position()?;
        let is_of_next = position.range_id() != *self.range_id.get_or_insert(position.range_id());
        let is_late = self.has_begun && execution.job.gauge.page_is_over();
        (is_of_next || is_late).then(|| position.clone())
    }

    /// Tells the calls of user-defined functions for the next documents, unless they were told before.
    fn announce(&mut self, execution: &Execution<'_>, taken: &PageLimiter) {
        if self.told == 0 {
            // Not for many more documents than there is room for in the page.
            self.told = taken.room().clamp(16, WINDOW);
            let next = self.documents.as_slice().iter().take(self.told).map(|document| &document.datum);
            execution.with_machine(|machine| self.announcer.tell(execution.job, machine, next));
        }
        self.told -= 1;
    }

    fn document(
        &mut self,
        execution: &Execution<'_>,
        taken: &PageLimiter,
        document: ReadDocument,
    ) -> Result<RowBatch, ExecuteError> {
        let (after, number) = (document.after.clone(), document.number());
        // Another document is to be given whole, also where the one given in part is gone.
        let start = self.partial.take_if(|partial| partial.number == number).map(|partial| partial.row);
        let mut batch = RowBatch::default();
        // A document that was given in part is paid.
        let is_priced = start.is_none() && matches!(document.datum, Datum::Document(..));
        if let Datum::Document(_, body) = &document.datum {
            let bytes = body.text().len();
            charge_documents(1, bytes)?;
            execution.budget.begin_document(bytes);
            batch.counts = AccessWork { documents: 1, bytes: bytes as u64, ..AccessWork::default() };
        }
        let before = after.as_ref().and_then(just_before).or_else(|| self.before.take());
        execution.job.bind(&execution.frame, document.datum);
        let plan = execution.plan;
        let mut wanted = taken.wanted_of_document();
        let mut bytes = 0;
        let is_joined = plan.sources.len() > 1;
        let track = Track::new(plan.sources.len(), start.unwrap_or_default());
        let mark = |row: Vec<u32>| RowMark::Document(before.clone(), Some(PartialDocument { number, row }));
        execution.with_machine(|machine| {
            machine.visit_from(plan, &track, &mut || {
                if let Some(json) = output(plan, &machine.row())? {
                    charge((json.len() / TEXT_BYTES_PER_STEP) as u64)?;
                    // Rows that OFFSET skips take no room.
                    if batch.rows.len() as u64 >= taken.to_skip() {
                        bytes += json.len();
                    }
                    // A document without joins has one row: its place is the document's.
                    let mark =
                        if is_joined { mark(track.row()) } else { RowMark::Document(before.clone(), None) };
                    batch.rows.push(OutputRow { json, mark, priced: PricedWork::default() });
                    wanted -= 1;
                }
                let enough = wanted == 0 || bytes > taken.byte_count_max();
                Ok(if enough { Flow::Break(()) } else { Flow::Continue(()) })
            })
        })?;
        if is_priced {
            batch.counts.price(execution.budget.end_document());
        }
        batch.end = track
            .unfinished()
            .map(|row| ResumePlace::Stream(before.clone(), Some(PartialDocument { number, row })));
        // As on the service a full page of all documents does not look for a next one: there may be none, and then it is
        // empty. With a filter it does, so that the last page says that it is the last.
        let looks_no_further = self.is_stored && plan.filters.iter().all(Vec::is_empty);
        batch.after = looks_no_further.then(|| ResumePlace::Stream(after.clone(), None));
        self.before = after;
        Ok(batch)
    }
}

/// The position right before the document that a position follows, so that a page that stops within a document goes on
/// with that document, however its documents are found then.
fn just_before(position: &FeedPosition) -> Option<FeedPosition> {
    let mut before = position.clone();
    match &mut before {
        FeedPosition::Number { number, .. } | FeedPosition::Within { number, .. } => {
            *number = number.saturating_sub(1);
        }
        FeedPosition::Key { .. } => return None,
    }
    Some(before)
}
