//! Queries: text and parameters in, pages of rows out; over the documents of a container, or over values at hand.

use crate::attempts::Failure;
use crate::charge::{QueryWork, query_charge};
use crate::error::QueryFault;
use crate::kept_results::{KeptResult, ResultOrigin};
use crate::planned::{PlanSlot, PlannedQuery};
use crate::query_times::{QueryTimes, Stopwatch};
use crate::scripts::functions::NoFunctions;
use crate::statements::Statement;
use crate::workers::CancelOnDrop;
use crate::{AccountCore, DocumentsHandle, Error};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::definition::container::Geospatial;
use astrarium_env::{Meter, Reservation, Stopped, Work};
use astrarium_partition::EffectiveRange;
use astrarium_sql_exec::{
    AccessWork, Alone, ExecuteError, Helpers, Input, KeptUse, Limits, OperatorReport, OrderStart, Page,
    PricedWork, Resume, Runtime,
};
use astrarium_sql_functions::SpatialMode;
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_functions::limits::{approximate_bytes, weight};
use astrarium_sql_plan::advice::{Advice, advise};
use astrarium_sql_plan::client_plan::{ClientPlan, client_plan};
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::{Grouping, Projection};
use astrarium_sql_plan::routing::Route;
use astrarium_sql_plan::{Catalog, NOT_JSON, Parameters, PlanError, QueryPlan};
use astrarium_sql_syntax::{SyntaxError, TextPosition};
use astrarium_store::{FeedReader, FeedScope};
use astrarium_value::Value;
use astrarium_value::json::{self, seek};
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// A query as a client sends it.
#[derive(Debug, Clone)]
pub struct Query {
    statement: Arc<Statement>,
    parameters: Parameters,
    /// Where its rows begin, as a client says that merges ranges itself.
    pub(crate) start: Option<Arc<OrderStart>>,
    /// Its plan, shared by all parts of the request.
    pub(crate) slot: Arc<PlanSlot>,
    /// Whether text and parameters are so small that planning takes no time worth mentioning.
    is_small: bool,
    /// How long it took to read the text.
    pub(crate) reading: Duration,
}

/// Text and parameters of a small query, in bytes or about eight times the number of values.
const SMALL_QUERY: usize = 16 << 10;
/// Steps of a page that is run on the thread of its request: some tenths of a millisecond.
const SHORT_STEPS_MAX: u64 = 30_000;

/// What one attempt at a page is given.
#[derive(Clone)]
pub(crate) struct Attempt {
    work: Arc<Work>,
    helpers: Arc<dyn Helpers>,
}

pub(crate) type PageFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Where a query looks.
#[derive(Debug, Clone)]
pub enum QueryScope {
    /// Where the request says.
    Given(FeedScope),
    /// Everywhere, if the client allows that or the filter names one partition key.
    Open {
        /// Whether the client allows to look at more than one partition.
        cross_partition: bool,
        /// Whether rows of several ranges are merged here instead of by the client.
        whole: bool,
    },
}

/// A page of rows.
#[derive(Debug, Default)]
pub struct QueryPage {
    /// Rows as JSON.
    pub rows: Vec<Vec<u8>>,
    /// Where to go on.
    pub resume: Option<Resume>,
    /// The range that served.
    pub range_id: u32,
    /// Its LSN.
    pub lsn: u64,
    /// Request units.
    pub charge: f64,
    /// Documents looked at.
    pub documents: u64,
    /// Bytes of those documents.
    pub document_bytes: u64,
    /// Entries of indexes looked at.
    pub index_entries: u64,
    /// Whether documents of equal sort keys come in descending order of their rids.
    pub reverse_ties: bool,
    /// Whether the rows came in the order of an index, without sorting.
    pub in_index_order: bool,
    /// Whether every page of the query looks at documents of its own; otherwise each looks at all of them.
    pub incremental: bool,
    /// How long the page took.
    pub times: QueryTimes,
    /// What each operator did, where the limits ask for it.
    pub(crate) operators: Vec<OperatorReport>,
}

impl Query {
    /// Reads a query; refuses what breaks the grammar.
    pub fn parse(text: &str, parameters: Vec<(String, Value)>) -> Result<Query, Error> {
        Ok(Query::new(Arc::new(Statement::parse(text)?), parameters))
    }

    pub(crate) fn new(statement: Arc<Statement>, parameters: Vec<(String, Value)>) -> Query {
        let weight: u64 = parameters.iter().map(|(_, value)| weight(value)).sum();
        let is_small = statement.text.len().saturating_add(weight as usize * 8) <= SMALL_QUERY;
        let slot = if parameters.is_empty() { Arc::clone(&statement.slot) } else { Arc::default() };
        let parameters = Parameters::new(parameters);
        Query { statement, parameters, start: None, slot, is_small, reading: Duration::ZERO }
    }

    /// The same query with rows from a place in its order on.
    #[must_use]
    pub fn starting(self, start: OrderStart) -> Query {
        Query { start: Some(Arc::new(start)), ..self }
    }

    /// The text as the client sent it.
    pub fn text(&self) -> &str {
        &self.statement.text
    }

    /// What tells this query from others: its text and the values of its parameters. Where rows begin is no part of it, for
    /// clients begin elsewhere in the order with the position of a page that knew of no such place.
    pub fn identity(&self) -> Vec<u8> {
        let mut bytes = self.statement.text.clone().into_bytes();
        for (name, value) in self.parameters.iter() {
            // No text of a query or name of a parameter has this byte.
            bytes.push(0xFF);
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0xFF);
            value.write_json(&mut bytes);
        }
        bytes
    }

    /// The query without its filter, in normal form: what stays the same when an SDK goes on with another filter.
    pub fn shape(&self) -> String {
        let mut tree = self.statement.tree.clone();
        tree.filter = None;
        astrarium_sql_syntax::print(&tree)
    }

    pub(crate) fn plan(&self, catalog: Catalog<'_>) -> Result<Arc<QueryPlan>, Error> {
        let plan = astrarium_sql_plan::plan(&self.statement.tree, &catalog, &self.parameters);
        plan.map(Arc::new).map_err(|error| self.refusal(error))
    }

    fn refusal(&self, error: PlanError) -> Error {
        if error.code.is_empty() {
            return Error::Invalid(error.message);
        }
        let place = error.span.utf16_range(&self.statement.text);
        let TextPosition { line, column } = error.span.position(&self.statement.text);
        Error::Query(vec![QueryFault {
            code: error.code,
            start: place.start,
            end: place.end,
            message: error.message,
            detail: match &*error.instead {
                "" => format!("line {line}, column {column}"),
                instead => format!("line {line}, column {column}: {instead}"),
            },
        }])
    }

    /// What could be asked more cheaply.
    pub fn advice(&self) -> Result<Vec<Advice>, Error> {
        advise(&self.statement.tree, &self.parameters).map_err(|error| self.refusal(error))
    }
}

pub(crate) fn syntax(text: &str, errors: &[SyntaxError]) -> Error {
    let fault = |error: &SyntaxError| {
        let place = error.span.utf16_range(text);
        QueryFault {
            code: error.code,
            start: place.start,
            end: place.end,
            message: error.message.clone(),
            detail: error.detail.clone(),
        }
    };
    Error::Query(errors.iter().map(fault).collect())
}

impl DocumentsHandle<'_> {
    /// Runs a page of a query over a container's documents.
    pub async fn query(
        self,
        query: &Query,
        scope: &QueryScope,
        resume: Option<Resume>,
        limits: Limits,
    ) -> Result<QueryPage, Error> {
        let DocumentsHandle { core, container } = self;
        let (container, own, scope) = (Arc::clone(container), query.clone(), scope.clone());
        core.run_query(query, limits, move |core, attempt| {
            let (container, query, scope, resume) =
                (Arc::clone(&container), own.clone(), scope.clone(), resume.clone());
            Box::pin(async move {
                core.page_of_documents(container, &query, &scope, resume, limits, attempt).await
            })
        })
        .await
    }

    /// The plan that SDKs ask for before they run a query over several ranges themselves.
    pub fn client_plan(
        self,
        query: &Query,
        supported_features: Option<&str>,
    ) -> Result<serde_json::Value, Error> {
        Ok(client_plan_of(self.container, query, supported_features)?.to_json())
    }

    /// The same for a query that is to be explained: the SDK asks the same ranges, and passes on what they say.
    pub fn client_plan_to_explain(
        self,
        query: &Query,
        supported_features: Option<&str>,
    ) -> Result<serde_json::Value, Error> {
        Ok(client_plan_of(self.container, query, supported_features)?.without_merging().to_json())
    }
}

impl AccountCore {
    async fn page_of_documents(
        &self,
        container: Arc<Container>,
        query: &Query,
        scope: &QueryScope,
        resume: Option<Resume>,
        limits: Limits,
        attempt: Attempt,
    ) -> Result<QueryPage, Error> {
        // A container that has changed is refused its views, and the page is planned again; views that were given stay right.
        let prepared = self.attempt(&container, |trial| async move {
            let mut watch = Stopwatch::start(query.reading);
            let container = trial.container;
            let planned = self.planned(&container, query)?;
            watch.planned();
            let input = self.input(&container, &planned, scope).await?;
            watch.chosen();
            Ok((container, planned, input, watch))
        });
        let (container, planned, input, watch) = prepared.await?;
        check_mergeable(&container, query, &planned.plan, scope, &input)?;
        let resume = match (resume, &input) {
            // The position of a query over the rows of another one is among those rows, and names no range.
            (Some(resume), Input::Container(_, scope, _)) if planned.plan.input.is_none() => {
                Some(resume.resolved(&container, scope)?)
            }
            (resume, _) => resume,
        };
        self.run_page(&container, query, &planned.plan, input, resume, limits, watch, attempt).await
    }

    /// Runs a page of a query over one scope as a reader's views have it, whatever becomes of the container meanwhile.
    pub(crate) async fn query_views(
        &self,
        reader: FeedReader,
        query: &Query,
        scope: FeedScope,
        resume: Option<Resume>,
        limits: Limits,
    ) -> Result<QueryPage, Error> {
        let own = query.clone();
        self.run_query(query, limits, move |core, attempt| {
            let (reader, query, scope, resume) = (reader.clone(), own.clone(), scope.clone(), resume.clone());
            Box::pin(async move {
                let watch = Stopwatch::start(query.reading);
                let container = Arc::clone(&reader.container);
                let planned = core.planned(&container, &query)?;
                let input = core.input_of(reader, &planned, scope)?;
                core.run_page(&container, &query, &planned.plan, input, resume, limits, watch, attempt).await
            })
        })
        .await
    }

    /// Whether a query over one document of a container gives a row.
    pub(crate) async fn selects(
        &self,
        container: &Arc<Container>,
        document: Value,
        query: &Query,
        limits: Limits,
    ) -> Result<bool, Error> {
        let (container, own) = (Arc::clone(container), query.clone());
        let page = self
            .run_query(query, limits, move |core, attempt| {
                let (container, query, document) = (Arc::clone(&container), own.clone(), document.clone());
                Box::pin(async move {
                    let plan = Arc::clone(&core.planned(&container, &query)?.plan);
                    let reads = innermost(&plan).reads_documents();
                    let input = if reads { Input::Values(Arc::from([document])) } else { Input::Nothing };
                    let watch = Stopwatch::start(query.reading);
                    core.run_page(&container, &query, &plan, input, None, limits, watch, attempt).await
                })
            })
            .await?;
        Ok(!page.rows.is_empty())
    }

    /// Runs a page: a short one on the thread of its request, a long one on a thread for queries. Which it is turns out
    /// when it has made more steps than a short one has; it begins again then, which is cheap, for it was stopped early.
    pub(crate) async fn run_query<T: Send + 'static>(
        &self,
        query: &Query,
        limits: Limits,
        page: impl Fn(AccountCore, Attempt) -> PageFuture<Result<T, Error>> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let page = Arc::new(page);
        let result = self.run_once(query, limits, Arc::clone(&page)).await;
        // What is kept for others is the first to go.
        let result = match result {
            Err(Error::Stopped(Stopped::NoMemory)) if self.shared.kept.clear() => {
                self.run_once(query, limits, page).await
            }
            result => result,
        };
        result.map_err(|error| told(error, limits))
    }

    async fn run_once<T: Send + 'static>(
        &self,
        query: &Query,
        limits: Limits,
        page: Arc<impl Fn(AccountCore, Attempt) -> PageFuture<Result<T, Error>> + Send + Sync + 'static>,
    ) -> Result<T, Error> {
        let work = Arc::new(Work::new(Duration::from_micros(limits.query_micros_max)));
        let alone = Attempt { work: Arc::clone(&work), helpers: Arc::new(Alone) };
        if !query.statement.functions.is_empty() {
            // It has a thread beside its functions.
            let unwanted = CancelOnDrop::new(&work);
            let result = page(self.clone(), alone).await;
            unwanted.disarm();
            return result;
        }
        if query.is_small {
            let meter = Meter::with_steps(Arc::clone(&work), SHORT_STEPS_MAX);
            match meter.run(page(self.clone(), alone)).await {
                Err(Error::Stopped(Stopped::StepsSpent)) => {}
                result => return result,
            }
        }
        let (core, own) = (self.clone(), Arc::clone(&work));
        let result = self
            .shared
            .workers
            .run(limits.client, &work, move |helpers| page(core, Attempt { work: own, helpers }))
            .await;
        result.and_then(|result| result)
    }

    /// Runs a page, by way of the index if it can be used; where the index turns out to be damaged, without it.
    #[expect(clippy::too_many_arguments, reason = "the parts of one page, private to this file")]
    async fn run_page(
        &self,
        container: &Arc<Container>,
        query: &Query,
        plan: &Arc<QueryPlan>,
        input: Input,
        resume: Option<Resume>,
        limits: Limits,
        watch: Stopwatch,
        attempt: Attempt,
    ) -> Result<QueryPage, Error> {
        let Input::Container(reader, scope, Some(_)) = &input else {
            return self.run_input(container, query, plan, input, resume, limits, watch, attempt).await;
        };
        let without_index = Input::Container(reader.clone(), scope.clone(), None);
        let again = attempt.clone();
        match self.run_input(container, query, plan, input, resume.clone(), limits, watch, attempt).await {
            Err(Error::IndexLost(_)) => {}
            Err(Error::IndexWrong(what)) => self.note_wrong_index(container, what),
            outcome => return outcome,
        }
        self.run_input(container, query, plan, without_index, resume, limits, watch, again).await
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one page, private to this file")]
    async fn run_input(
        &self,
        container: &Arc<Container>,
        query: &Query,
        plan: &Arc<QueryPlan>,
        input: Input,
        resume: Option<Resume>,
        limits: Limits,
        watch: Stopwatch,
        attempt: Attempt,
    ) -> Result<QueryPage, Error> {
        let limits = whole_set(plan, limits);
        let range = serving_range(container, &input)?;
        let lsn = match &input {
            Input::Container(reader, ..) => reader.view(range.shard)?.state().version,
            Input::Values(_) | Input::Nothing => self.range_lsn(range).await?,
        };
        let known = resume.as_ref().filter(|resume| resume.kept != 0);
        let known = match known {
            Some(resume) => origin(query, &input, limits)?.and_then(|origin| {
                let now = self.env().now_micros();
                Some((resume.kept, self.shared.kept.get(resume.kept, &origin, limits.kept_use, now)?))
            }),
            None => None,
        };
        // An answer shows no more than the result does.
        let lsn = known.as_ref().and_then(|(_, (_, lsns))| lsns.first().copied()).unwrap_or(lsn);
        let spatial_mode = match container.definition.geospatial {
            Geospatial::Geography => SpatialMode::Geography,
            Geospatial::Geometry => SpatialMode::Geometry,
        };
        let work = Arc::clone(&attempt.work);
        let runtime = self.runtime(spatial_mode, attempt);
        let (known_id, known) = known.map_or((0, None), |(id, (result, _))| (id, Some(result)));
        let (mut page, fresh, origin) = if query.statement.functions.is_empty() {
            let position = (query.start.as_deref(), resume);
            let (page, fresh) = run(&runtime, plan, &input, position, limits, known).await?;
            let origin = if fresh.is_some() { origin(query, &input, limits)? } else { None };
            (page, fresh, origin)
        } else {
            let origin = origin(query, &input, limits)?;
            let functions = self.functions(container, &query.statement.functions).await?;
            let (plan, start, handle) = (Arc::clone(plan), query.start.clone(), Handle::current());
            let page = move |functions| {
                let runtime = Runtime { user_functions: Arc::new(functions), ..runtime };
                // Without turns: while it waits for a function, somebody else should have them.
                let meter = Meter::new(work, None);
                let position = (start.as_deref(), resume);
                handle.block_on(meter.run(run(&runtime, &plan, &input, position, limits, known)))
            };
            let (page, fresh) = self.run_with_functions(functions, page).await?;
            (page, fresh, origin)
        };
        if let Some(next) = &mut page.resume {
            next.kept = match (fresh, origin) {
                (Some(result), Some(origin)) => self.keep(result, origin),
                _ => known_id,
            };
        }
        Ok(answer(page, (range.id, lsn), watch))
    }

    /// Keeps a result for the next page; its number, or 0 if there is no memory for it.
    fn keep(&self, result: KeptResult, origin: ResultOrigin) -> u64 {
        let id = self.env().random_u64().max(1);
        let (memory, now) = (&self.shared.memory, self.env().now_micros());
        if self.shared.kept.put(id, result, origin, memory, now) { id } else { 0 }
    }

    /// Runs a page of a query over values at hand.
    pub(crate) async fn query_values(
        &self,
        values: Vec<Value>,
        query: &Query,
        resume: Option<Resume>,
        limits: Limits,
    ) -> Result<QueryPage, Error> {
        let own = query.clone();
        self.run_query(query, limits, move |core, attempt| {
            let (query, resume, values) = (own.clone(), resume.clone(), values.clone());
            Box::pin(async move {
                let plan = query.plan(Catalog::default())?;
                let reads = innermost(&plan).reads_documents();
                let input = if reads { Input::Values(values.into()) } else { Input::Nothing };
                let runtime = core.runtime(SpatialMode::Geography, attempt);
                let position = (query.start.as_deref(), resume);
                let page = run(&runtime, &plan, &input, position, limits, None).await?.0;
                Ok(QueryPage { rows: page.rows, resume: page.resume, charge: 1.0, ..QueryPage::default() })
            })
        })
        .await
    }

    fn runtime(&self, spatial_mode: SpatialMode, attempt: Attempt) -> Runtime {
        Runtime {
            env: self.env().clone(),
            work: attempt.work,
            memory: self.shared.memory.clone(),
            helpers: attempt.helpers,
            user_functions: Arc::new(NoFunctions),
            spatial_mode,
        }
    }

    /// What a query reads: the scope that was given, narrowed to one partition where the filter names it.
    pub(crate) async fn input(
        &self,
        container: &Arc<Container>,
        planned: &PlannedQuery,
        scope: &QueryScope,
    ) -> Result<Input, Failure> {
        if !innermost(&planned.plan).reads_documents() {
            return Ok(Input::Nothing);
        }
        let definition = &container.definition.partition_key;
        let scope = match scope {
            QueryScope::Given(scope) => scope.clone(),
            QueryScope::Open { cross_partition, .. } => match &planned.route {
                Route::Keys(keys) => match keys.as_slice() {
                    [] => return Ok(Input::Values(Arc::from([]))),
                    [key] if key.components().len() == definition.paths.len() => {
                        FeedScope::Partition(key.clone())
                    }
                    [key] if *cross_partition => {
                        FeedScope::Slice(EffectiveRange::of_prefix(definition.effective(key)))
                    }
                    _ if *cross_partition => FeedScope::All,
                    _ => return Err(Error::cross_partition_disabled().into()),
                },
                Route::Everything if *cross_partition => FeedScope::All,
                Route::Everything => return Err(Error::cross_partition_disabled().into()),
            },
        };
        let reader = self.reader(container, &scope).await?;
        Ok(self.input_of(reader, planned, scope)?)
    }

    /// What a query reads of one scope.
    fn input_of(&self, reader: FeedReader, planned: &PlannedQuery, scope: FeedScope) -> Result<Input, Error> {
        if !innermost(&planned.plan).reads_documents() {
            return Ok(Input::Nothing);
        }
        let index = self.index_plan(&reader.container, planned)?;
        // Also where the index is damaged and not used: what a query answers does not depend on that.
        let hiding =
            planned.index.as_ref().ok().and_then(Option::as_ref).filter(|index| index.hides_left_out);
        let reader = match hiding {
            Some(index) => reader.leaving_out(index.indexes.active.left_out()),
            None => reader,
        };
        Ok(Input::Container(reader, scope, index))
    }
}

/// What a kept result belongs to; nothing if none is wanted.
fn origin(query: &Query, input: &Input, limits: Limits) -> Result<Option<ResultOrigin>, Error> {
    let Input::Container(reader, scope, _) = input else { return Ok(None) };
    if limits.kept_use == KeptUse::Never {
        return Ok(None);
    }
    let mut identity = query.identity();
    let container = &reader.container;
    let _ = write!(identity, "\u{0}{scope:?}\u{0}{:?}\u{0}{:?}", container.rid(), query.start);
    let mut lsns = Vec::new();
    for range in reader.ranges(scope)? {
        let _ = write!(identity, "\u{0}{} {}", range.id, range.epoch);
        lsns.push(reader.view(range.shard)?.state().version);
    }
    Ok(Some(ResultOrigin { query: identity, lsns }))
}

/// A page as it is answered, with what it costs.
fn answer(page: Page, (range_id, lsn): (u32, u64), watch: Stopwatch) -> QueryPage {
    let output_bytes = page.rows.iter().map(|row| row.len() as u64).sum();
    let (access, priced) = (page.access, page.priced);
    let work = QueryWork {
        ranges: priced.ranges,
        seeks: priced.seeks,
        scanned_entries: priced.scanned_entries,
        documents: priced.documents,
        document_bytes: priced.bytes,
        output_bytes,
    };
    QueryPage {
        range_id,
        lsn,
        charge: query_charge(work),
        documents: access.documents,
        document_bytes: access.bytes,
        index_entries: access.entries,
        reverse_ties: page.reverse_ties,
        in_index_order: page.in_index_order,
        incremental: page.incremental,
        times: watch.ran((access.lookup, access.load)),
        operators: page.operators,
        rows: page.rows,
        resume: page.resume,
    }
}

/// The parameters of a query as clients and scripts write them: an array of names with values. Nothing if one has no name.
pub fn query_parameters(list: json::Node<'_>) -> Option<Vec<(String, Value)>> {
    let parameter = |node: json::Node<'_>| {
        let name = node.get("name").and_then(json::Node::as_str)?.into_owned();
        Some((name, node.get("value").map_or(Value::Undefined, json::Node::to_value)))
    };
    list.elements().map(parameter).collect()
}

/// Bytes of a page that has to hold all rows that a query asks for.
const WHOLE_SET_BYTES_MAX: usize = 16 << 20;

/// The limits of a page, wide enough for all rows that a query asks for where clients do not ask for a second page.
fn whole_set(plan: &QueryPlan, limits: Limits) -> Limits {
    let Some(limit) = plan.limit.filter(|_| plan.has_non_streaming_order()) else { return limits };
    Limits {
        row_count_max: limits.row_count_max.max(usize::try_from(limit).unwrap_or(usize::MAX)),
        byte_count_max: limits.byte_count_max.max(WHOLE_SET_BYTES_MAX),
        ..limits
    }
}

/// Refuses a query over all partitions whose rows the client must merge, with the plan that tells it how: as the service
/// does, also where one range has all of them.
fn check_mergeable(
    container: &Container,
    query: &Query,
    plan: &QueryPlan,
    scope: &QueryScope,
    input: &Input,
) -> Result<(), Error> {
    let merged_by_client = matches!(scope, QueryScope::Open { whole: false, cross_partition: true });
    let one_range = container.ranges.len() == 1;
    // As on the service, where the filter leaves one partition rows are served, but not aggregates.
    let one_partition = (one_range || plan.grouping.is_none())
        && matches!(input, Input::Container(_, FeedScope::Partition(_), _));
    if !merged_by_client || one_partition || !plan.reads_documents() || plan.is_plain() {
        return Ok(());
    }
    if one_range && !all_clients_merge(plan) {
        return Ok(());
    }
    let catalog = Catalog { container: Some(&container.definition) };
    let plan =
        client_plan(&query.statement.tree, query.text(), &catalog, &query.parameters, Some(ALL_FEATURES));
    let plan = plan.map_err(|error| query.refusal(error))?;
    Err(Error::NeedsClientPlan(plan.to_json().to_string()))
}

/// Whether every client that asks for a plan can do what it says. One knows no groups, of aggregates only a single value, and
/// makes null of one that is undefined, which a count never is.
fn all_clients_merge(plan: &QueryPlan) -> bool {
    let is_value = matches!(plan.projection, Projection::Value(_));
    let is_count = |grouping: &Grouping| {
        let [aggregate] = grouping.aggregates.as_slice() else { return false };
        grouping.keys.is_empty() && is_value && aggregate.function == AggregateFunction::Count
    };
    plan.input.is_none() && plan.grouping.as_ref().is_none_or(is_count)
}

/// The range that an input is in, or the first of them.
fn serving_range<'a>(container: &'a Container, input: &Input) -> Result<&'a Range, Error> {
    let Input::Container(_, scope, _) = input else { return Ok(&container.ranges[0]) };
    Ok(match scope {
        FeedScope::Partition(key) => container.range_of(&container.definition.partition_key.effective(key)),
        FeedScope::Slice(slice) => container.range_of(&slice.min),
        FeedScope::Range(id) => {
            container.ranges.iter().find(|range| range.id == *id).ok_or(Error::KeyRangeGone)?
        }
        FeedScope::All => &container.ranges[0],
    })
}

/// The plan that reads documents: the query itself, or the one that its rows come from.
pub(crate) fn innermost(plan: &QueryPlan) -> &QueryPlan {
    let mut plan = plan;
    while let Some(input) = &plan.input {
        plan = input;
    }
    plan
}

/// Runs a page of a query; the queries that its rows come from are run whole first, unless what they gave is kept. What
/// comes with it is to be kept for the next page.
async fn run(
    runtime: &Runtime,
    plan: &Arc<QueryPlan>,
    input: &Input,
    (start, resume): (Option<&OrderStart>, Option<Resume>),
    limits: Limits,
    kept: Option<KeptResult>,
) -> Result<(Page, Option<KeptResult>), Error> {
    match (kept, &resume) {
        (Some(KeptResult::Rows(rows)), Some(resume)) => {
            if let Some(page) = astrarium_sql_exec::run_kept(plan, &rows, resume, limits) {
                return Ok((page, None));
            }
        }
        (Some(KeptResult::Input(values)), _) => {
            let page =
                astrarium_sql_exec::run(runtime, plan, &Input::Values(values), (start, resume), limits)
                    .await?;
            return Ok((page, None));
        }
        _ => {}
    }
    // A query that would need all there is for everybody would not get it later either, and is told so.
    let memory_bytes_max = limits.memory_bytes_max.min(runtime.memory.bytes_max() / 2);
    let limits = Limits { memory_bytes_max, ..limits };
    let (inner, rows, _held) = run_inner(runtime, plan, input, limits).await?;
    let input = rows.as_ref().unwrap_or(input);
    let is_first = resume.is_none();
    let mut page = astrarium_sql_exec::run(runtime, plan, input, (start, resume), limits).await?;
    page.access.add(inner.access);
    if plan.input.is_some() {
        // The rows of the subquery are paid by the first page, whoever makes them again.
        page.priced = if is_first { inner.priced } else { PricedWork::default() };
    }
    page.operators.splice(0..0, inner.operators);
    let kept = match (page.kept.take(), input) {
        (Some(rows), _) => Some(KeptResult::Rows(Arc::new(rows))),
        // Every page would need the rows of the subquery again.
        (None, Input::Values(values)) if plan.input.is_some() && page.resume.is_some() => {
            Some(KeptResult::Input(Arc::clone(values)))
        }
        _ => None,
    };
    Ok((page, kept))
}

/// What the queries below a query did.
#[derive(Default)]
struct InnerQueries {
    access: AccessWork,
    /// What the innermost costs, which reads documents.
    priced: PricedWork,
    operators: Vec<OperatorReport>,
}

/// Runs the queries that a query's rows come from, the innermost first; the rows of each are the input of the next, those of the last
/// are given.
async fn run_inner(
    runtime: &Runtime,
    plan: &Arc<QueryPlan>,
    input: &Input,
    limits: Limits,
) -> Result<(InnerQueries, Option<Input>, Reservation), Error> {
    let mut inner = Vec::new();
    let mut next = plan;
    while let Some(plan) = &next.input {
        inner.push(plan);
        next = plan;
    }
    let mut done = InnerQueries::default();
    // What the rows of the last of them hold; they are needed until the next one is done.
    let mut held = runtime.memory.empty();
    let mut given = None;
    for (place, plan) in inner.into_iter().rev().enumerate() {
        let (mut rows, mut bytes, mut position) = (Vec::new(), 0, None);
        let mut own = runtime.memory.empty();
        let limits = inner_limits(plan, limits);
        loop {
            let input = given.as_ref().unwrap_or(input);
            let page = astrarium_sql_exec::run(runtime, plan, input, (None, position), limits).await?;
            done.access.add(page.access);
            if place == 0 {
                done.priced.add(page.priced);
            }
            if rows.is_empty() {
                done.operators.extend(page.operators);
            }
            for row in page.rows {
                let value = seek::value(&row);
                bytes += approximate_bytes(&value);
                rows.push(value);
            }
            position = page.resume;
            if bytes > limits.memory_bytes_max {
                return Err(Error::Timeout(
                    "The subquery in FROM gives more rows than fit into memory.".to_owned(),
                ));
            }
            if !own.resize(bytes) {
                return Err(Error::Stopped(Stopped::NoMemory));
            }
            if position.is_none() {
                break;
            }
        }
        given = Some(Input::Values(rows.into()));
        held = own;
    }
    Ok((done, given, held))
}

/// The limits of a page of a query whose rows another one reads. Where every page would look at all documents again there
/// is one page, bounded by memory.
pub(crate) fn inner_limits(plan: &QueryPlan, limits: Limits) -> Limits {
    if plan.is_streamed() {
        return Limits { row_count_max: 10_000, byte_count_max: 16 << 20, ..limits };
    }
    Limits { row_count_max: usize::MAX, byte_count_max: limits.memory_bytes_max, ..limits }
}

/// What a client is told of a query that had to end.
fn told(error: Error, limits: Limits) -> Error {
    let Error::Stopped(stopped) = error else { return error };
    match stopped {
        Stopped::Late | Stopped::Cancelled | Stopped::StepsSpent => Error::Timeout(format!(
            "The query took longer than {} seconds. Narrow its filter, or ask for fewer joins.",
            limits.query_micros_max.div_ceil(1_000_000)
        )),
        Stopped::NoMemory => Error::Overloaded(
            "The server has no memory left for this query at the moment. Retry it later, narrow its filter, or start the \
             server with a larger --memory-budget."
                .to_owned(),
        ),
        Stopped::Refused(why) => Error::invalid(why),
    }
}

fn client_plan_of(container: &Container, query: &Query, features: Option<&str>) -> Result<ClientPlan, Error> {
    let catalog = Catalog { container: Some(&container.definition) };
    let (tree, text) = (&query.statement.tree, query.text());
    client_plan(tree, text, &catalog, &query.parameters, features).map_err(|error| query.refusal(error))
}

/// Everything a client could merge; what it really can it says when it asks for the plan.
const ALL_FEATURES: &str = "Aggregate,CompositeAggregate,Distinct,GroupBy,MultipleAggregates,MultipleOrderBy,\
    OffsetAndLimit,OrderBy,Top,NonValueAggregate,DCount,NonStreamingOrderBy,ListAndSetAggregate,CountIf,HybridSearch,\
    WeightedRankFusion,HybridSearchSkipOrderByRewrite";

impl From<ExecuteError> for Error {
    fn from(error: ExecuteError) -> Error {
        match error {
            ExecuteError::Evaluate(EvaluateError::Query(message)) if message == NOT_JSON => {
                let detail = "a row of the result holds such a number".to_owned();
                Error::Query(vec![QueryFault { code: "4001", start: 0, end: 0, message, detail }])
            }
            ExecuteError::Evaluate(EvaluateError::Query(message)) => Error::Invalid(message),
            ExecuteError::Evaluate(EvaluateError::Budget(message)) => Error::Timeout(message),
            ExecuteError::Feed(error) => error.into(),
            ExecuteError::Index(error) => match error {
                astrarium_index::finder::Error::Stopped(stopped) => Error::Stopped(stopped),
                astrarium_index::finder::Error::Storage(error) => error.into(),
                astrarium_index::finder::Error::Malformed(error) => {
                    astrarium_store::Error::from(error).into()
                }
            },
            ExecuteError::Stopped(stopped) => Error::Stopped(stopped),
            ExecuteError::Evaluate(EvaluateError::Stopped(stopped)) => Error::Stopped(stopped),
            error @ (ExecuteError::ForeignPosition | ExecuteError::ForeignStart) => {
                Error::invalid(error.to_string())
            }
        }
    }
}
