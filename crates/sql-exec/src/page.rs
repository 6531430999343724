//! One page of a query: chooses how it runs, reads documents, and stops in good order.

use crate::announce::{Announcer, WINDOW};
use crate::budget::{Budget, Gauge, Limits, charge_documents};
use crate::frame::{Datum, Frame};
use crate::in_order::Walk;
use crate::index_only::{Asking, document_with};
use crate::long_key::{Directions, LastRow};
use crate::operators::collect::{Collector, SortedRow};
use crate::operators::groups::{FinishedGroup, GROUP_BYTES, Groups, RowPlace};
use crate::operators::rank;
use crate::pipeline::{CurrentRow, Flow, Machine, Track, project};
use crate::resume::{PartialDocument, Place, Resume};
use crate::rows::{Counts, Incoming, Input, Reader};
use crate::scan::Job;
use crate::sinks::{CollectorSink, GroupsSink, ScoreSink, StatisticsSink};
use astrarium_env::{Env, Memory, Stopped, Work, charge};
use astrarium_sql_functions::SpatialMode;
use astrarium_sql_functions::limits::{TEXT_BYTES_PER_STEP, approximate_bytes};
use astrarium_sql_plan::evaluate::{EvaluateError, evaluate};
use astrarium_sql_plan::needs::IndexOnly;
use astrarium_sql_plan::physical::IndexUse;
use astrarium_sql_plan::plan::{Grouping, Order, OrderKey, Projection, QueryPlan, RankComponent};
use astrarium_store::{FeedError, FeedPosition};
use astrarium_value::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// What queries may call besides built-in functions.
pub trait UserFunctions: Send + Sync {
    /// Calls a user-defined function; the error is for the query's author.
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String>;

    /// Whether calls cost less when they are announced.
    fn wants_announcements(&self) -> bool {
        false
    }

    /// Tells of calls that are about to come, each by name and arguments, so that they can be made together.
    fn announce(&self, calls: Vec<(Arc<str>, Vec<Value>)>) {
        let _ = calls;
    }
}

/// Threads that help with a page that looks at everything.
pub trait Helpers: Send + Sync {
    /// How many could help at the most.
    fn count_max(&self) -> usize;

    /// Has threads do these, each one of them, as far as there are threads to spare; the others are dropped.
    fn start(&self, tasks: Vec<HelperTask>) -> Box<dyn Team>;
}

/// What one helper does.
pub type HelperTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Helpers at work.
pub trait Team: Send {
    /// Waits until all of them are done, and lets others use the processor meanwhile.
    fn join(self: Box<Self>);
}

/// Where there is nobody to help.
pub struct Alone;

impl Helpers for Alone {
    fn count_max(&self) -> usize {
        0
    }

    fn start(&self, _: Vec<HelperTask>) -> Box<dyn Team> {
        Box::new(Alone)
    }
}

impl Team for Alone {
    fn join(self: Box<Self>) {}
}

/// What a query is given to run with. The meter of its thread has to be in force: it counts for `work`.
#[derive(Clone)]
pub struct Runtime {
    /// Clock and randomness.
    pub env: Env,
    /// What the page is part of: how long that may take, and whether anybody still waits for it.
    pub work: Arc<Work>,
    /// Where the memory comes from.
    pub memory: Memory,
    /// Threads that help.
    pub helpers: Arc<dyn Helpers>,
    /// User-defined functions.
    pub user_functions: Arc<dyn UserFunctions>,
    /// How the container's shapes are meant.
    pub spatial_mode: SpatialMode,
}

/// A page of rows.
#[derive(Debug, Default)]
pub struct Page {
    /// Rows as JSON.
    pub rows: Vec<Vec<u8>>,
    /// Where to go on, if there may be more.
    pub resume: Option<Resume>,
    /// Documents looked at.
    pub documents: u64,
    /// Bytes of those documents.
    pub document_bytes: u64,
    /// How long rows that are streamed were looked for in indexes, and how long their documents were read.
    pub lookup_and_load: (Duration, Duration),
    /// Entries of indexes looked at.
    pub index_entries: u64,
    /// Whether documents of equal sort keys come in descending order of their numbers.
    pub reverse_ties: bool,
    /// Whether the rows came in the order of an index, without sorting.
    pub in_index_order: bool,
    /// Whether every page of the query looks at documents of its own; otherwise each looks at all of them.
    pub incremental: bool,
}

/// Why a page could not be made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExecuteError {
    /// The query is at fault, or needs too much.
    #[error(transparent)]
    Evaluate(EvaluateError),
    /// Documents cannot be read.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The index cannot be read.
    #[error(transparent)]
    Index(astrarium_index::finder::Error),
    /// The query has to end.
    #[error("the query was stopped")]
    Stopped(#[from] Stopped),
    /// The position is not one of this query.
    #[error("Invalid Continuation Token")]
    ForeignPosition,
}

impl From<EvaluateError> for ExecuteError {
    fn from(error: EvaluateError) -> ExecuteError {
        match error {
            EvaluateError::Stopped(stopped) => ExecuteError::Stopped(stopped),
            error => ExecuteError::Evaluate(error),
        }
    }
}

impl From<astrarium_index::finder::Error> for ExecuteError {
    fn from(error: astrarium_index::finder::Error) -> ExecuteError {
        match error {
            astrarium_index::finder::Error::Stopped(stopped) => ExecuteError::Stopped(stopped),
            error => ExecuteError::Index(error),
        }
    }
}

/// Makes one page of a query.
pub async fn run(
    runtime: &Runtime,
    plan: &Arc<QueryPlan>,
    input: &Input,
    resume: Option<Resume>,
    limits: Limits,
) -> Result<Page, ExecuteError> {
    let gauge = Gauge::new(runtime.env.clone(), limits, Arc::clone(&runtime.work), &runtime.memory);
    let gauge = Arc::new(gauge);
    let job = Job { runtime: runtime.clone(), plan: Arc::clone(plan), gauge };
    let mut execution = Execution {
        plan,
        frame: job.frame(),
        budget: job.budget(),
        page: Page::default(),
        bytes: 0,
        given: resume.as_ref().map_or(0, |resume| resume.given),
        skipped: resume.as_ref().map_or(0, |resume| resume.skipped),
        job: &job,
    };
    if plan.limit == Some(0) {
        return Ok(execution.page);
    }
    let place = resume.map(|resume| resume.place);
    match (&plan.order, &plan.grouping) {
        (Order::Rank(components), _) => execution.rank(input, components, place).await?,
        (_, Some(grouping)) => execution.group(input, grouping, place).await?,
        (Order::None, None) if !plan.distinct => execution.stream(input, place).await?,
        _ => execution.collect(input, place).await?,
    }
    Ok(execution.page)
}

pub(crate) struct Execution<'a> {
    pub(crate) job: &'a Job,
    pub(crate) plan: &'a QueryPlan,
    pub(crate) frame: Frame,
    pub(crate) budget: Budget,
    page: Page,
    bytes: usize,
    given: u64,
    skipped: u64,
}

/// What came of offering a row to the page.
pub(crate) enum Offer {
    /// Taken, or skipped for OFFSET.
    Taken,
    /// The page is full; the row belongs to the next one.
    Full,
    /// LIMIT is reached: nothing more will come.
    Done,
}

impl Execution<'_> {
    pub(crate) fn with_machine<T>(&self, work: impl FnOnce(&Machine<'_>) -> T) -> T {
        self.job.with_machine(&self.frame, &self.budget, work)
    }

    pub(crate) fn count(&mut self, counts: Counts) {
        self.page.documents += counts.documents;
        self.page.document_bytes += counts.bytes;
        self.page.index_entries += counts.entries;
    }

    /// Offers a row to the page.
    pub(crate) fn offer(&mut self, json: Vec<u8>) -> Offer {
        if self.plan.limit.is_some_and(|limit| self.given >= limit) {
            return Offer::Done;
        }
        if self.skipped < self.plan.offset {
            self.skipped += 1;
            return Offer::Taken;
        }
        let limits = self.budget.limits();
        let full = self.page.rows.len() >= limits.row_count_max
            || (!self.page.rows.is_empty() && self.bytes + json.len() > limits.byte_count_max);
        if full {
            return Offer::Full;
        }
        self.bytes += json.len();
        self.given += 1;
        self.page.rows.push(json);
        Offer::Taken
    }

    pub(crate) fn is_done(&self) -> bool {
        self.plan.limit.is_some_and(|limit| self.given >= limit)
    }

    pub(crate) fn stop_at(&mut self, place: Place) {
        self.page.resume = Some(Resume { given: self.given, skipped: self.skipped, place });
    }

    /// Rows as they come.
    async fn stream(&mut self, input: &Input, place: Option<Place>) -> Result<(), ExecuteError> {
        let (mut before, mut done) = match place {
            None => (None, None),
            Some(Place::Stream(position, partial)) => (position, partial),
            Some(_) => return Err(ExecuteError::ForeignPosition),
        };
        let mut reader = Reader::new(input, self.budget.limits(), before.clone());
        let announcer = Announcer::new(self.job);
        self.page.incremental = true;
        let stored = matches!(input, Input::Container(..));
        let mut range_id = reader.first_range_id()?;
        loop {
            // Every range has pages of its own, one at least, as on the service.
            if let Some(position) = reader.position()
                && position.range_id() != *range_id.get_or_insert(position.range_id())
            {
                self.stop_at(Place::Stream(Some(position.clone()), None));
                return Ok(());
            }
            let batch = reader.next().await?;
            self.page.index_entries = reader.entries;
            self.page.lookup_and_load = (reader.lookup, reader.load);
            let Some(mut batch) = batch else { return Ok(()) };
            drop_put_before(&mut batch, done.as_ref());
            let (mut batch, mut told) = (batch.into_iter(), 0);
            while !batch.as_slice().is_empty() {
                self.announce(&announcer, batch.as_slice(), &mut told);
                let Some(document) = batch.next() else { break };
                let (after, number) = (document.after.clone(), document.number());
                // Another document is to be given whole, also where the one given in part is gone.
                let start = done.take_if(|partial| partial.number == number).map(|partial| partial.row);
                let start = start.unwrap_or_default();
                let counts = match &document.datum {
                    Datum::Document(_, body) => {
                        charge_documents(1, body.text().len())?;
                        Counts { documents: 1, bytes: body.text().len() as u64, entries: 0 }
                    }
                    _ => Counts::default(),
                };
                let stopped = self.stream_document(document, start)?;
                // What was read ahead and is left to the next page is that one's to count.
                if stopped.as_ref().is_none_or(|index| !index.is_empty()) {
                    self.count(counts);
                }
                if let Some(row) = stopped {
                    let place = after.as_ref().and_then(just_before).or(before);
                    let partial = (!row.is_empty()).then_some(PartialDocument { number, row });
                    self.stop_at(Place::Stream(place, partial));
                    return Ok(());
                }
                if self.is_done() {
                    return Ok(());
                }
                before = after;
                // As on the service a full page does not look for a next one: there may be none, and then it is empty.
                if stored && self.page.rows.len() >= self.budget.limits().row_count_max {
                    self.stop_at(Place::Stream(before, None));
                    return Ok(());
                }
            }
            if self.job.gauge.page_is_over()
                && let Some(position) = reader.position()
            {
                self.stop_at(Place::Stream(Some(position.clone()), None));
                return Ok(());
            }
        }
    }

    /// Tells the calls of user-defined functions for the next documents, unless they were told before.
    fn announce(&self, announcer: &Announcer, documents: &[Incoming], told: &mut usize) {
        if *told == 0 {
            // Not for many more documents than there is room for in the page.
            let room = self.budget.limits().row_count_max.saturating_sub(self.page.rows.len());
            *told = room.clamp(16, WINDOW);
            let next = documents.iter().take(*told).map(|document| &document.datum);
            self.with_machine(|machine| announcer.tell(self.job, machine, next));
        }
        *told -= 1;
    }

    /// The rows of one document from a place on; the place of the first that did not fit, if one did not.
    fn stream_document(
        &mut self,
        document: Incoming,
        start: Vec<u32>,
    ) -> Result<Option<Vec<u32>>, ExecuteError> {
        self.job.bind(&self.frame, document.datum);
        let plan = self.plan;
        let limits = self.budget.limits();
        let room = limits.row_count_max.saturating_sub(self.page.rows.len()) as u64;
        let left = plan.limit.map_or(u64::MAX, |limit| limit - self.given.min(limit));
        let to_skip = plan.offset - self.skipped.min(plan.offset);
        let mut wanted = room.saturating_add(1).min(left).saturating_add(to_skip);
        let mut bytes = 0;
        let mut rows: Vec<(Vec<u8>, Vec<u32>)> = Vec::new();
        let joined = plan.sources.len() > 1;
        let track = Track::new(plan.sources.len(), start);
        self.with_machine(|machine| {
            machine.visit_from(plan, &track, &mut || {
                if let Some(json) = output(&plan.projection, &machine.row())? {
                    charge((json.len() / TEXT_BYTES_PER_STEP) as u64)?;
                    bytes += json.len();
                    // A document without joins has one row: its place is the document's.
                    rows.push((json, if joined { track.row() } else { Vec::new() }));
                    wanted -= 1;
                }
                let enough = wanted == 0 || bytes > limits.byte_count_max;
                Ok(if enough { Flow::Break(()) } else { Flow::Continue(()) })
            })
        })?;
        for (json, place) in rows {
            match self.offer(json) {
                Offer::Taken => {}
                Offer::Full => return Ok(Some(place)),
                Offer::Done => return Ok(None),
            }
        }
        Ok(track.unfinished())
    }

    /// Sorted or distinct rows.
    async fn collect(&mut self, input: &Input, place: Option<Place>) -> Result<(), ExecuteError> {
        let keys: &[OrderKey] = self.plan.order_keys();
        let ordered = match input {
            Input::Container(_, _, Some(plan)) => plan.order.as_ref(),
            _ => None,
        };
        let first_descends = keys.first().is_some_and(|key| key.descending);
        // A value that comes once comes from its first document, whatever reads it: a position names that document.
        let reverse_ties = !self.plan.distinct && ordered.map_or(first_descends, |ordered| ordered.backward);
        self.page.reverse_ties = reverse_ties;
        let after = match place {
            Some(Place::LongKey(long)) => {
                let last = self.find_keys(input, keys, long.last).await?;
                let next = self.find_keys(input, keys, long.next).await?;
                Some(long.after(last, next, &directions(&descending(keys), reverse_ties)))
            }
            place => resume_after(place)?,
        };
        if let (Input::Container(reader, scope, Some(plan)), Some(ordered), false) =
            (input, ordered, self.plan.distinct)
        {
            let walk = Walk { reader, scope, plan, ordered, index_use: self.budget.limits().index_use };
            if let Some(route) = walk.choose(self.wanted(), after.as_ref()).await? {
                self.page.in_index_order = true;
                self.page.incremental = true;
                return self.in_index_order(&walk, route, after).await;
            }
        }
        let mut collector = self.collector(keys, after, reverse_ties);
        if self.plan.distinct && self.distinct_of_index(input, keys, &mut collector).await? {
            self.give_sorted(collector.finish());
            return Ok(());
        }
        let sink = CollectorSink { collector };
        let (sink, counts) = self.job.everything(input, sink).await?;
        self.count(counts);
        self.give_sorted(sink.collector.finish());
        Ok(())
    }

    /// The sort keys of a row, read again from its document; none if it is gone.
    async fn find_keys(
        &mut self,
        input: &Input,
        keys: &[OrderKey],
        (number, wanted): RowPlace,
    ) -> Result<Option<Vec<Value>>, ExecuteError> {
        let Some(datum) = input.document(number).await? else { return Ok(None) };
        self.job.bind(&self.frame, datum);
        let (mut index, mut found) = (0, None);
        self.with_machine(|machine| {
            machine.visit(self.plan, &mut || {
                if index == wanted {
                    let values = keys.iter().map(|key| machine.evaluate(&key.key));
                    found = Some(values.collect::<Result<Vec<Value>, EvaluateError>>()?);
                    return Ok(Flow::Break(()));
                }
                index += 1;
                Ok(Flow::Continue(()))
            })
        })?;
        Ok(found)
    }

    /// Rows that the page needs, those included that OFFSET skips.
    fn wanted(&self) -> u64 {
        let to_skip = self.plan.offset - self.skipped.min(self.plan.offset);
        let page = self.budget.limits().row_count_max as u64;
        let wanted = self.plan.limit.map_or(page, |limit| page.min(limit - self.given.min(limit)));
        to_skip.saturating_add(wanted)
    }

    /// `reverse_ties` is the direction in which an index has the documents of equal keys.
    pub(crate) fn collector(
        &self,
        keys: &[OrderKey],
        after: Option<LastRow>,
        reverse_ties: bool,
    ) -> Collector {
        let descending = descending(keys);
        let count_max = usize::try_from(self.wanted().saturating_add(1)).unwrap_or(usize::MAX);
        Collector::new(descending, reverse_ties, after, count_max, self.plan.distinct)
    }

    fn give_sorted(&mut self, rows: Vec<SortedRow>) {
        let mut last: Option<LastRow> = None;
        for SortedRow { keys, place, json } in rows {
            match self.offer(json) {
                Offer::Taken => last = Some((keys, place)),
                Offer::Full => return self.stop_after(last, &(keys, place)),
                Offer::Done => return,
            }
        }
    }

    /// Ends the page between two rows.
    pub(crate) fn stop_after(&mut self, last: Option<LastRow>, next: &LastRow) {
        let Some(last) = last else { return };
        let keys = self.plan.order_keys();
        self.stop_at(if keys.is_empty() {
            Place::Row(last.1.0, last.1.1)
        } else {
            directions(&descending(keys), self.page.reverse_ties).between(last, next)
        });
    }

    /// Groups and their aggregates.
    async fn group(
        &mut self,
        input: &Input,
        grouping: &Grouping,
        place: Option<Place>,
    ) -> Result<(), ExecuteError> {
        let groups = if let Some(groups) = self.groups_of_index(input, grouping).await? {
            groups
        } else {
            let sink = GroupsSink { groups: Groups::new(grouping) };
            let (sink, counts) = self.job.everything(input, sink).await?;
            self.count(counts);
            self.budget.hold(sink.groups.bytes())?;
            sink.groups.finish().collect()
        };
        let keys = self.plan.order_keys();
        let after = match place {
            Some(Place::LongKey(long)) => {
                let (last, next) =
                    (self.group_keys(&groups, keys, long.last)?, self.group_keys(&groups, keys, long.next)?);
                Some(long.after(last, next, &directions(&descending(keys), false)))
            }
            place => resume_after(place)?,
        };
        let mut collector = self.collector(keys, after, false);
        self.with_machine(|machine| {
            for group in groups {
                let row = CurrentRow { machine, keys: &group.keys, aggregates: &group.results };
                collect_row(&row, self.plan, keys, group.first, &mut collector)?;
            }
            Ok::<(), EvaluateError>(())
        })?;
        self.give_sorted(collector.finish());
        Ok(())
    }

    /// The sort keys of the group that begins at a row.
    fn group_keys(
        &self,
        groups: &[FinishedGroup],
        keys: &[OrderKey],
        first: RowPlace,
    ) -> Result<Option<Vec<Value>>, EvaluateError> {
        let Some(group) = groups.iter().find(|group| group.first == first) else { return Ok(None) };
        self.with_machine(|machine| {
            let row = CurrentRow { machine, keys: &group.keys, aggregates: &group.results };
            let values = keys.iter().map(|key| evaluate(&key.key, &row).map(std::borrow::Cow::into_owned));
            values.collect::<Result<_, _>>().map(Some)
        })
    }

    fn uses_indexes(&self) -> bool {
        self.budget.limits().index_use != IndexUse::Never
    }

    /// The groups, if an index has them.
    async fn groups_of_index(
        &mut self,
        input: &Input,
        grouping: &Grouping,
    ) -> Result<Option<Vec<FinishedGroup>>, ExecuteError> {
        let Input::Container(reader, scope, Some(plan)) = input else { return Ok(None) };
        let Some(only) = plan.only.as_ref().filter(|_| self.uses_indexes()) else { return Ok(None) };
        let mut asking = Asking::new(plan, reader, scope);
        let groups = asking.groups(only, grouping).await?;
        self.count(asking.counts);
        let held =
            |group: &FinishedGroup| GROUP_BYTES + group.keys.iter().map(approximate_bytes).sum::<usize>();
        self.budget.hold(groups.iter().flatten().map(held).sum())?;
        Ok(groups)
    }

    /// Distinct values, if an index has them.
    async fn distinct_of_index(
        &mut self,
        input: &Input,
        keys: &[OrderKey],
        collector: &mut Collector,
    ) -> Result<bool, ExecuteError> {
        let Input::Container(reader, scope, Some(plan)) = input else { return Ok(false) };
        let Some(IndexOnly::Values { path, undefined }) = plan.only.as_ref().filter(|_| self.uses_indexes())
        else {
            return Ok(false);
        };
        let mut asking = Asking::new(plan, reader, scope);
        if !asking.is_complete().await? {
            return Ok(false);
        }
        let values = asking.values(path, *undefined).await?;
        self.count(asking.counts);
        let Some(values) = values else { return Ok(false) };
        for (value, found) in values {
            self.job.bind(&self.frame, Datum::Value(document_with(path, value)));
            self.with_machine(|machine| {
                collect_row(&machine.row(), self.plan, keys, (found.first, 0), collector)
            })?;
        }
        Ok(true)
    }

    /// Ranked rows.
    async fn rank(
        &mut self,
        input: &Input,
        components: &[RankComponent],
        place: Option<Place>,
    ) -> Result<(), ExecuteError> {
        if !matches!(place, None | Some(Place::Count)) {
            return Err(ExecuteError::ForeignPosition);
        }
        let count = StatisticsSink { components: components.into(), statistics: Vec::new() };
        // Scores compare a document with all others, whatever the filter leaves.
        let (count, _) = self.job.documents(input, IndexUse::Never, count).await?;
        let score = ScoreSink {
            components: components.into(),
            statistics: count.statistics.into(),
            rows: Vec::new(),
            bytes: 0,
        };
        let (score, counts) = self.job.everything(input, score).await?;
        self.count(counts);
        let before = self.given + self.skipped;
        for row in rank::order(components, score.rows)
            .into_iter()
            .skip(usize::try_from(before).unwrap_or(usize::MAX))
        {
            match self.offer(row.json) {
                Offer::Taken => {}
                Offer::Full => {
                    self.stop_at(Place::Count);
                    break;
                }
                Offer::Done => break,
            }
        }
        Ok(())
    }
}

/// Leaves out documents that were put before the one that was given in part: they do not come between its rows.
fn drop_put_before(batch: &mut Vec<Incoming>, partial: Option<&PartialDocument>) {
    let is_partial = |document: &Incoming| partial.is_some_and(|partial| partial.number == document.number());
    let before = batch.iter().position(is_partial).unwrap_or(0);
    batch.drain(..before);
}

/// The position right before the document that a position follows, so that a page that stops within a document goes on
/// with that document, however its documents are found then.
fn just_before(position: &FeedPosition) -> Option<FeedPosition> {
    match *position {
        FeedPosition::Number { range_id, number } => {
            Some(FeedPosition::Number { range_id, number: number.saturating_sub(1) })
        }
        FeedPosition::Within { range_id, number } => {
            Some(FeedPosition::Within { range_id, number: number.saturating_sub(1) })
        }
        FeedPosition::Key { .. } => None,
    }
}

/// Where a sorted page goes on.
fn resume_after(place: Option<Place>) -> Result<Option<LastRow>, ExecuteError> {
    match place {
        None => Ok(None),
        Some(Place::Row(number, index)) => Ok(Some((Vec::new(), (number, index)))),
        Some(Place::Key(keys, number, index)) => Ok(Some((keys, (number, index)))),
        Some(_) => Err(ExecuteError::ForeignPosition),
    }
}

fn descending(keys: &[OrderKey]) -> Vec<bool> {
    keys.iter().map(|key| key.descending).collect()
}

fn directions(descending: &[bool], reverse_ties: bool) -> Directions<'_> {
    Directions { descending, reverse_ties }
}

pub(crate) fn collect_row(
    row: &CurrentRow<'_>,
    plan: &QueryPlan,
    keys: &[OrderKey],
    place: (u64, u32),
    collector: &mut Collector,
) -> Result<(), EvaluateError> {
    let keys: Vec<Value> = keys
        .iter()
        .map(|key| evaluate(&key.key, row).map(std::borrow::Cow::into_owned))
        .collect::<Result<_, _>>()?;
    if !collector.wants(&keys, place) {
        return Ok(());
    }
    let (value, json) = if plan.distinct {
        let Some(value) = project(&plan.projection, row)? else { return Ok(()) };
        let mut json = Vec::new();
        refuse_not_json(&value)?;
        value.write_json(&mut json);
        (Some(value), json)
    } else {
        let Some(json) = output(&plan.projection, row)? else { return Ok(()) };
        (None, json)
    };
    collector.add(SortedRow { keys, place, json }, value, row.machine.budget)
}

/// A row as JSON. A whole document is copied as it is stored.
pub(crate) fn output(
    projection: &Projection,
    row: &CurrentRow<'_>,
) -> Result<Option<Vec<u8>>, EvaluateError> {
    let mut json = Vec::new();
    if let Projection::Star(slot) = projection {
        row.machine.frame.push_json(*slot, &mut json);
        return Ok((!json.is_empty()).then_some(json));
    }
    if let Projection::Value(astrarium_sql_plan::Expr::Path(slot, steps)) = projection
        && steps.is_empty()
    {
        row.machine.frame.push_json(*slot, &mut json);
        return Ok((!json.is_empty()).then_some(json));
    }
    let Some(value) = project(projection, row)? else { return Ok(None) };
    refuse_not_json(&value)?;
    value.write_json(&mut json);
    Ok(Some(json))
}

/// JSON has no form for NaN and the infinities, so the service refuses a row that holds one.
fn refuse_not_json(value: &Value) -> Result<(), EvaluateError> {
    if value.is_json() { Ok(()) } else { Err(EvaluateError::Query(astrarium_sql_plan::NOT_JSON.to_owned())) }
}
