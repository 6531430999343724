//! How much a page may take: rows, bytes, time, memory.
//!
//! Steps and time are counted by the meter of the thread (`env::charge`), memory here, both for the page and out of what
//! the server has for all of them.

use crate::rows::PricedWork;
use crate::tally::{RowOperator, Tally, TallySum};
use astrarium_env::{Env, Memory, Reservation, Stopped, Work, charge};
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::physical::{IndexPlan, IndexUse, PricedFilter};
use astrarium_sql_plan::plan::QueryPlan;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// Bounds of one page.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows at most.
    pub row_count_max: usize,
    /// No further row once rows hold this many bytes.
    pub byte_count_max: usize,
    /// A streaming query ends its page after so many microseconds.
    pub page_micros: u64,
    /// A query that cannot stream is refused after so many microseconds.
    pub query_micros_max: u64,
    /// Memory for groups, distinct values and sorted rows.
    pub memory_bytes_max: usize,
    /// Documents that one task reads before a query that looks at everything is spread over all cores.
    pub alone_documents_max: u64,
    /// Whether indexes are used.
    pub index_use: IndexUse,
    /// Whether results that were kept for the next pages are given, and new ones kept.
    pub kept_use: KeptUse,
    /// Whether the page tells what each of its operators did.
    pub explain: bool,
    /// Whose page it is: clients share the processor evenly. With 0 the page is a client of its own.
    pub client: u64,
}

/// Which kept results a page may be given: they show the data as it was when they were computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeptUse {
    /// None, and none is kept.
    #[default]
    Never,
    /// Those since which nothing was written.
    Unchanged,
    /// These, and those of one range that show this LSN of it.
    Since(u64),
    /// All.
    Always,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            row_count_max: 100,
            byte_count_max: 4 << 20,
            page_micros: 4_000_000,
            query_micros_max: 60_000_000,
            memory_bytes_max: 256 << 20,
            alone_documents_max: 2_048,
            index_use: IndexUse::ByCost,
            kept_use: KeptUse::Never,
            explain: false,
            client: 0,
        }
    }
}

/// What all parts of a running query share: when it began, what it may take, what it holds.
pub(crate) struct Gauge {
    pub(crate) env: Env,
    pub(crate) limits: Limits,
    /// The time of day at which the page began.
    pub(crate) began: u64,
    work: Arc<Work>,
    /// How long the work was under way when the page began.
    before: Duration,
    held: Mutex<Reservation>,
    /// What its parts tell of themselves, if it is explained.
    pub(crate) explained: Option<TallySum>,
    /// What indexes could do for it, by which documents are priced.
    index: Option<Arc<IndexPlan>>,
}

/// Memory is taken from the server's budget in pieces of this size.
const HELD_STEP: usize = 1 << 20;

impl Gauge {
    pub(crate) fn new(
        env: Env,
        limits: Limits,
        work: Arc<Work>,
        memory: &Memory,
        index: Option<Arc<IndexPlan>>,
    ) -> Gauge {
        let (began, before) = (env.now_micros(), work.elapsed());
        let explained = limits.explain.then(TallySum::default);
        Gauge { env, limits, began, work, before, held: Mutex::new(memory.empty()), explained, index }
    }

    /// What of the query is priced; nothing where no index is asked, and every document counts.
    pub(crate) fn priced(&self) -> Option<&PricedFilter> {
        self.index.as_ref().map(|index| &index.priced)
    }

    /// Whether a streaming page should end.
    pub(crate) fn page_is_over(&self) -> bool {
        let elapsed = self.work.elapsed().saturating_sub(self.before);
        elapsed.as_micros() as u64 >= self.limits.page_micros
    }

    /// A part of the work, which ends by itself.
    pub(crate) fn part_of_work(&self) -> Arc<Work> {
        self.work.part()
    }
}

/// AccessWork what one part of a query does and holds.
pub(crate) struct Budget {
    gauge: Arc<Gauge>,
    held_bytes: Cell<usize>,
    /// What of it is known to the gauge: a multiple of a step, not less than what is held.
    counted_bytes: Cell<usize>,
    /// AccessWork rows of operators, if the query is explained.
    tally: Option<Tally>,
    /// The plan whose documents are priced, by its address.
    plan: usize,
    /// The document at hand, as it is priced.
    document: DocumentPrice,
}

/// What is known of the document at hand that decides what it costs.
#[derive(Debug, Default)]
struct DocumentPrice {
    bytes: Cell<u64>,
    /// Whether it fails a condition that an index serves, so that it need not have been read.
    is_missed: Cell<bool>,
    has_row: Cell<bool>,
    /// Whether a row stands for its price.
    is_paid: Cell<bool>,
}

impl Budget {
    pub(crate) fn new(gauge: Arc<Gauge>, plan: &QueryPlan) -> Budget {
        let tally = gauge.explained.is_some().then(|| Tally::new(plan));
        let (plan, document) = (std::ptr::from_ref(plan).addr(), DocumentPrice::default());
        Budget { gauge, held_bytes: Cell::new(0), counted_bytes: Cell::new(0), tally, plan, document }
    }

    /// Says that a document of so many bytes is looked at next.
    pub(crate) fn begin_document(&self, bytes: usize) {
        let document = &self.document;
        document.bytes.set(bytes as u64);
        document.is_missed.set(false);
        document.has_row.set(false);
        document.is_paid.set(false);
    }

    /// Says that the document at hand fails a condition of a plan, once so many sources are bound; `fails` tells of the
    /// conditions after it.
    pub(crate) fn miss(
        &self,
        plan: &QueryPlan,
        source_count: usize,
        place: usize,
        mut fails: impl FnMut(usize) -> bool,
    ) {
        if source_count > 1 || !self.is_of(plan) || self.document.is_missed.get() {
            return;
        }
        let served = self.gauge.priced().map_or(&[][..], |priced| &priced.served);
        let is_served = |place: usize| served.get(place).copied().unwrap_or(false);
        let is_missed = source_count == 0
            || is_served(place)
            || (place + 1..served.len()).any(|later| is_served(later) && fails(later));
        self.document.is_missed.set(is_missed);
    }

    /// Says that the document at hand has a row of a plan.
    pub(crate) fn note_row(&self, plan: &QueryPlan) {
        if self.is_of(plan) {
            self.document.has_row.set(true);
        }
    }

    /// What the document at hand costs, and whether it gave no row.
    pub(crate) fn end_document(&self) -> (PricedWork, bool) {
        let (document, has_row) = (&self.document, self.document.has_row.get());
        let needs_row = self.gauge.priced().is_some_and(|priced| priced.needs_row);
        if document.is_missed.get() || (needs_row && !has_row) {
            return (PricedWork::default(), true);
        }
        (PricedWork::document(document.bytes.get()), !has_row)
    }

    /// What a row of the document at hand stands for: the first for the document.
    pub(crate) fn price_of_row(&self) -> PricedWork {
        if self.document.is_paid.replace(true) {
            return PricedWork::default();
        }
        PricedWork::document(self.document.bytes.get())
    }

    fn is_of(&self, plan: &QueryPlan) -> bool {
        self.plan == std::ptr::from_ref(plan).addr()
    }

    /// What counts the rows of a plan's operators, if that is the plan that is explained.
    pub(crate) fn tally(&self, plan: &QueryPlan) -> Option<&Tally> {
        self.tally.as_ref().filter(|tally| tally.is_of(plan))
    }

    /// Does what an operator does with a row, and counts its time without that of the operators in it.
    pub(crate) fn counted<T>(&self, plan: &QueryPlan, operator: RowOperator, work: impl FnOnce() -> T) -> T {
        match self.tally(plan) {
            Some(tally) => tally.around(operator, work),
            None => work(),
        }
    }

    /// Adds what was counted to the sum of all parts.
    pub(crate) fn flush(&self) {
        if let (Some(tally), Some(explained)) = (&self.tally, &self.gauge.explained) {
            tally.flush(explained);
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.gauge.limits
    }

    pub(crate) fn page_is_over(&self) -> bool {
        self.gauge.page_is_over()
    }

    /// Says how many bytes this part holds now; an error when all parts together hold more than a query may, or all
    /// queries more than the server has.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), EvaluateError> {
        self.held_bytes.set(bytes);
        let counted = self.counted_bytes.get();
        if bytes <= counted && counted - bytes <= HELD_STEP {
            return Ok(());
        }
        let wanted = bytes.next_multiple_of(HELD_STEP);
        let mut held = self.gauge.held.lock();
        let total = held.bytes() - counted + wanted;
        self.check_total(total)?;
        if !held.resize(total) {
            return Err(EvaluateError::Stopped(Stopped::NoMemory));
        }
        self.counted_bytes.set(wanted);
        Ok(())
    }

    /// An error when so many bytes, held for a moment, are more than a query may hold.
    pub(crate) fn check_moment(&self, bytes: usize) -> Result<(), EvaluateError> {
        let held = self.held_bytes.get();
        if held + bytes <= self.counted_bytes.get() {
            return Ok(());
        }
        self.hold(held + bytes)?;
        self.held_bytes.set(held);
        Ok(())
    }

    fn check_total(&self, bytes: usize) -> Result<(), EvaluateError> {
        if bytes <= self.limits().memory_bytes_max {
            return Ok(());
        }
        Err(EvaluateError::Budget(format!(
            "The query needs more than {} MB to group, sort or remove duplicates. Narrow its filter, or group by fewer values.",
            self.limits().memory_bytes_max >> 20
        )))
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.flush();
        let counted = self.counted_bytes.get();
        if counted > 0 {
            let mut held = self.gauge.held.lock();
            let rest = held.bytes() - counted;
            // Less is always to be had.
            let _ = held.resize(rest);
        }
    }
}

/// Steps to make a row.
const ROW_STEPS: u64 = 4;
/// Steps to find a stored document and make it ready.
const DOCUMENT_STEPS: u64 = 60;
/// Bytes of a document that are fetched in one step.
const DOCUMENT_BYTES_PER_STEP: usize = 256;

/// Charges for a row that is looked at; an error when the query has to end.
pub(crate) fn charge_row() -> Result<(), Stopped> {
    charge(ROW_STEPS)
}

/// Charges for documents that were read; an error when the query has to end.
pub(crate) fn charge_documents(count: usize, bytes: usize) -> Result<(), Stopped> {
    charge(count as u64 * DOCUMENT_STEPS + (bytes / DOCUMENT_BYTES_PER_STEP) as u64)
}
