//! Looks at every document of a query's input, in any order and on all cores.
//!
//! In: an input, and a [`DocumentSink`] that takes documents. Out: the sink, and what was read.
//! The first documents are read at once, so a small query costs nothing extra. What is left then is divided into parts,
//! each with a sink of its own; this thread and as many helpers as there are to spare take part after part.
//! Invariants
//! - Parts are merged in their order, and where they begin depends on the data only: the same data gives the same
//!   result, sums included, on any machine.
//! - Every document is charged to the meter of its thread, which gives way to others: a long query holds up nobody.

use crate::access::PageAccess;
use crate::ahead::Ahead;
use crate::announce::{Announcer, WINDOW};
use crate::budget::{Budget, Gauge, Limits, charge_documents, charge_row};
use crate::error::ExecuteError;
use crate::frame::{Datum, Frame};
use crate::pipeline::Machine;
use crate::rows::{AccessWork, Cursor, Input};
use crate::runtime::{HelperTask, Runtime};
use astrarium_env::{Instant, Work, within};
use astrarium_keys::Rid;
use astrarium_keys::body::Body;
use astrarium_sql_functions::Context;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::QueryPlan;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parts that the rest is divided into: more than cores, because parts differ in size.
const PART_COUNT: usize = 32;

/// What takes documents in.
pub(crate) trait DocumentSink: Send + Sized + 'static {
    /// Takes the rows of the machine's document, which has this number.
    fn take(&mut self, machine: &Machine<'_>, plan: &QueryPlan, number: u64) -> Result<(), EvaluateError>;

    /// A sink of the same kind that has taken nothing.
    fn empty(&self) -> Self;

    /// Takes in what another sink has taken from later documents.
    fn merge(&mut self, later: Self, budget: &Budget) -> Result<(), EvaluateError>;

    /// Gives back what it holds and will not need, once its part of the documents is over.
    fn settle(&mut self, _: &Budget) -> Result<(), EvaluateError> {
        Ok(())
    }
}

/// A query under way, shared by its tasks.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) runtime: Runtime,
    pub(crate) plan: Arc<QueryPlan>,
    pub(crate) gauge: Arc<Gauge>,
}

impl Job {
    pub(crate) fn new(runtime: &Runtime, plan: &Arc<QueryPlan>, input: &Input, limits: Limits) -> Job {
        let index = if let Input::Container(_, _, index) = input { index.clone() } else { None };
        let (env, work) = (runtime.env.clone(), Arc::clone(&runtime.work));
        let gauge = Gauge::new(env, limits, work, &runtime.memory, index);
        Job { runtime: runtime.clone(), plan: Arc::clone(plan), gauge: Arc::new(gauge) }
    }

    pub(crate) fn frame(&self) -> Frame {
        Frame::new(self.plan.slot_count.max(1))
    }

    pub(crate) fn budget(&self) -> Budget {
        Budget::new(Arc::clone(&self.gauge), &self.plan)
    }

    /// Hands what evaluates expressions to some work.
    pub(crate) fn with_machine<T>(
        &self,
        frame: &Frame,
        budget: &Budget,
        work: impl FnOnce(&Machine<'_>) -> T,
    ) -> T {
        let env = &self.gauge.env;
        let random = || env.random_u64();
        let context = Context {
            now_microseconds: env.now_micros(),
            query_start_microseconds: self.gauge.began,
            random: &random,
            spatial_mode: self.runtime.spatial_mode,
            ..Context::default()
        };
        work(&Machine { runtime: &self.runtime, context, budget, frame })
    }

    /// Binds a document to the plan's first source.
    pub(crate) fn bind(&self, frame: &Frame, document: Datum) {
        if let Some(source) = self.plan.sources.first() {
            frame.set(source.slot, document);
        }
    }

    /// Hands the documents of an input to a sink: those that the chosen ways find, or all of them.
    pub(crate) async fn documents<S: DocumentSink>(
        &self,
        input: &Input,
        access: Option<&mut PageAccess<'_, '_>>,
        mut sink: S,
    ) -> Result<(S, AccessWork), ExecuteError> {
        let mut worker = Worker::new(self.clone());
        let (reader, scope) = match input {
            Input::Nothing => {
                worker.take([(Datum::Empty, 0)], &mut sink)?;
                return Ok((sink, AccessWork::default()));
            }
            Input::Values(values) => {
                let values = values.iter().zip(1..);
                worker
                    .take(values.map(|(value, number)| (Datum::Value(value.clone()), number)), &mut sink)?;
                return Ok((sink, AccessWork::default()));
            }
            Input::Container(reader, scope, _) => (reader, scope),
        };
        let mut cursor = match access {
            Some(access) => {
                let (cursor, work) = Cursor::open(reader, scope, access).await?;
                worker.access = work;
                cursor
            }
            None => Cursor::of_all(reader, scope)?,
        };
        while worker.access.documents < self.gauge.limits.alone_documents_max {
            let Some(bodies) = worker.read(&mut cursor).await? else { return Ok((sink, worker.access)) };
            worker.take_documents(cursor.container(), bodies, &mut sink)?;
        }
        let parts = cursor.divide(PART_COUNT).await?;
        self.in_parallel(parts, Merged { sink, worker, next: 0, waiting: BTreeMap::new() }).await
    }

    /// Reads all parts, on this thread and on those that help.
    async fn in_parallel<S: DocumentSink>(
        &self,
        parts: Vec<Cursor>,
        merged: Merged<S>,
    ) -> Result<(S, AccessWork), ExecuteError> {
        let helpers = &self.runtime.helpers;
        let helper_count = helpers.count_max().min(parts.len().saturating_sub(1));
        let shared = Arc::new(ScanShared {
            job: self.clone(),
            parts: Mutex::new(parts.into_iter().enumerate()),
            empty: Mutex::new(merged.sink.empty()),
            merged: Mutex::new(merged),
            failure: Mutex::new(None),
            work: self.gauge.part_of_work(),
        });
        let tasks = (0..helper_count).map(|_| -> HelperTask {
            let shared = Arc::clone(&shared);
            Box::pin(async move { within(Arc::clone(&shared.work), shared.take_parts()).await })
        });
        let team = helpers.start(tasks.collect());
        within(Arc::clone(&shared.work), shared.take_parts()).await;
        team.join();
        let shared = Arc::into_inner(shared).expect("the helpers are done");
        if let Some(failure) = shared.failure.into_inner() {
            return Err(failure);
        }
        let merged = shared.merged.into_inner();
        Ok((merged.sink, merged.worker.access))
    }
}

/// What the threads of one query share.
struct ScanShared<S> {
    job: Job,
    parts: Mutex<std::iter::Enumerate<std::vec::IntoIter<Cursor>>>,
    empty: Mutex<S>,
    merged: Mutex<Merged<S>>,
    /// Why the query fails, as soon as anybody knows.
    failure: Mutex<Option<ExecuteError>>,
    /// The part of the query's work that its threads do here. It alone is cancelled when one of them fails: the page may be tried again,
    /// with more steps or without the index.
    work: Arc<Work>,
}

impl<S: DocumentSink> ScanShared<S> {
    /// Takes part after part until there are no more, or one of them fails.
    async fn take_parts(&self) {
        loop {
            let part = self.parts.lock().next();
            let Some((place, cursor)) = part else { return };
            if let Err(error) = self.take_part(place, cursor).await {
                self.failure.lock().get_or_insert(error);
                // The other threads need not go on. They will say that they were cancelled, which nobody asks any more.
                self.work.cancel();
                return;
            }
        }
    }

    async fn take_part(&self, place: usize, cursor: Cursor) -> Result<(), ExecuteError> {
        let mut worker = Worker::new(self.job.clone());
        let empty = self.empty.lock().empty();
        let sink = worker.take_all(cursor, empty).await?;
        Ok(self.merged.lock().add(place, sink, worker)?)
    }
}

/// What the parts have come to so far. Tasks take the parts in order, so few wait here for one before them.
struct Merged<S> {
    sink: S,
    worker: Worker,
    next: usize,
    /// Parts that were done before their turn. The worker of each goes along, for its budget counts what the sink holds.
    waiting: BTreeMap<usize, (S, Worker)>,
}

impl<S: DocumentSink> Merged<S> {
    fn add(&mut self, place: usize, sink: S, worker: Worker) -> Result<(), EvaluateError> {
        self.waiting.insert(place, (sink, worker));
        while let Some((later, part)) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.worker.access.add(part.access);
            self.sink.merge(later, &self.worker.budget)?;
        }
        Ok(())
    }
}

/// One of the tasks of a query, with a frame and a budget of its own.
struct Worker {
    job: Job,
    frame: Frame,
    budget: Budget,
    ahead: Ahead,
    announcer: Announcer,
    access: AccessWork,
}

impl Worker {
    fn new(job: Job) -> Worker {
        let (frame, budget, ahead) = (job.frame(), job.budget(), Ahead::new(&job.plan));
        let announcer = Announcer::new(&job);
        Worker { job, frame, budget, ahead, announcer, access: AccessWork::default() }
    }

    /// The next documents of a cursor.
    async fn read(&mut self, cursor: &mut Cursor) -> Result<Option<Vec<Body>>, ExecuteError> {
        let began = Instant::now();
        let bodies = cursor.next().await?;
        self.access.load += began.elapsed();
        Ok(bodies)
    }

    async fn take_all<S: DocumentSink>(
        &mut self,
        mut cursor: Cursor,
        mut sink: S,
    ) -> Result<S, ExecuteError> {
        while let Some(bodies) = self.read(&mut cursor).await? {
            self.take_documents(cursor.container(), bodies, &mut sink)?;
        }
        sink.settle(&self.budget)?;
        Ok(sink)
    }

    fn take_documents(
        &mut self,
        container: Rid,
        bodies: Vec<Body>,
        sink: &mut impl DocumentSink,
    ) -> Result<(), EvaluateError> {
        self.ahead.fetch(&bodies);
        let bytes: usize = bodies.iter().map(|body| body.text().len()).sum();
        charge_documents(bodies.len(), bytes)?;
        self.access.documents += bodies.len() as u64;
        self.access.bytes += bytes as u64;
        let documents = bodies.into_iter().map(|body| {
            let number = body.header.number;
            (Datum::Document(container, body), number)
        });
        self.take(documents, sink)
    }

    fn take(
        &mut self,
        documents: impl IntoIterator<Item = (Datum, u64)>,
        sink: &mut impl DocumentSink,
    ) -> Result<(), EvaluateError> {
        let job = &self.job;
        let mut documents = documents.into_iter();
        job.with_machine(&self.frame, &self.budget, |machine| {
            loop {
                let window: Vec<(Datum, u64)> = documents.by_ref().take(WINDOW).collect();
                if window.is_empty() {
                    return Ok(());
                }
                self.announcer.tell(job, machine, window.iter().map(|(datum, _)| datum));
                for (datum, number) in window {
                    let bytes =
                        if let Datum::Document(_, body) = &datum { Some(body.text().len()) } else { None };
                    job.bind(machine.frame, datum);
                    charge_row()?;
                    machine.budget.begin_document(bytes.unwrap_or_default());
                    sink.take(machine, &job.plan, number)?;
                    if bytes.is_some() {
                        self.access.price(machine.budget.end_document());
                    }
                }
            }
        })
    }
}
