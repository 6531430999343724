//! A query over several key ranges, merged here as SDKs do.
//!
//! In: the plan that the server gives to clients, and the rows of each range under the rewritten text. Out: final rows.
//! Merged are plain rows, ORDER BY, DISTINCT, OFFSET, LIMIT and TOP, the aggregates COUNT, SUM, MIN, MAX, AVG, and GROUP BY. Refused with a
//! sentence: what ranks across partitions (full-text scores, RRF, vector distances), and the rarer aggregates.
//! Invariants
//! - Rows of one range come in its own order, so merging holds one page a range, and groups and distinct rows only.
//! - Payloads are passed on as text; only what is compared or summed becomes a value.

mod aggregates;

use crate::container_client::{ContainerClient, ItemPage, RangeOfKeys};
use crate::cosmos_client::WireAnswer;
use crate::error::ClientError;
use crate::query::QueryRequest;
use aggregates::MergedGroups;
use astrarium_partition::EffectiveKey;
use astrarium_value::Value;
use astrarium_value::json::{Node, Text};
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};

/// What the rewritten text has in place of a condition to go on from.
const FILTER_PLACE: &str = "{documentdb-formattableorderbyquery-filter}";
/// Most rows of a merged page where the caller names no size.
const PAGE_ROWS: usize = 100;
/// Most bytes of distinct rows or groups that are held.
const HELD_BYTES_MAX: usize = 256 << 20;

/// A query that is merged here.
#[derive(Debug)]
pub(crate) struct FanOut {
    text: String,
    streams: Vec<RangeRows>,
    descending: Vec<bool>,
    groups: Option<MergedGroups>,
    seen: Option<BTreeSet<Value>>,
    held_bytes: usize,
    skip: usize,
    /// Rows that may still come; none for no bound.
    take: Option<usize>,
    last_answer: Option<WireAnswer>,
    charge: f64,
}

/// The rows of one range.
#[derive(Debug)]
struct RangeRows {
    range: RangeOfKeys,
    continuation: Option<String>,
    is_begun: bool,
    rows: VecDeque<MergedRow>,
}

#[derive(Debug)]
struct MergedRow {
    order: Vec<Value>,
    payload: Bytes,
}

impl FanOut {
    /// Asks for the plan and the ranges.
    pub(crate) async fn begin(
        container: &ContainerClient,
        query: &QueryRequest,
    ) -> Result<FanOut, ClientError> {
        let plan = container.query_plan(query).await?.json()?;
        let info = plan
            .get("queryInfo")
            .filter(|info| info.is_object())
            .ok_or_else(|| unsupported("it ranks rows across partitions (full-text scores or RRF)"))?;
        if info.get("hasNonStreamingOrderBy").and_then(serde_json::Value::as_bool) == Some(true) {
            return Err(unsupported("it orders by a distance or a score"));
        }
        if info.get("dCountInfo").is_some_and(|info| !info.is_null()) {
            return Err(unsupported("it counts distinct values"));
        }
        let text = |name: &str| info.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let count =
            |name: &str| info.get(name).and_then(serde_json::Value::as_u64).map(|count| count as usize);
        let rewritten = match text("rewrittenQuery") {
            "" => query.text.clone(),
            rewritten => rewritten.replace(FILTER_PLACE, "true"),
        };
        let orders = info.get("orderBy").and_then(serde_json::Value::as_array);
        let descending =
            orders.into_iter().flatten().map(|order| order.as_str() == Some("Descending")).collect();
        let ranges = container.ranges().await?.into_iter().filter(|range| is_asked(range, &plan));
        let streams = ranges.map(|range| RangeRows {
            range,
            continuation: None,
            is_begun: false,
            rows: VecDeque::new(),
        });
        Ok(FanOut {
            text: rewritten,
            streams: streams.collect(),
            descending,
            groups: MergedGroups::of_plan(info).map_err(|what| unsupported(&what))?,
            seen: (!matches!(text("distinctType"), "" | "None")).then(BTreeSet::new),
            held_bytes: 0,
            skip: count("offset").unwrap_or(0),
            take: count("limit").or_else(|| count("top")),
            last_answer: None,
            charge: 0.0,
        })
    }

    /// The next rows; none after the last.
    pub(crate) async fn next_page(
        &mut self,
        container: &ContainerClient,
        query: &QueryRequest,
    ) -> Result<Option<ItemPage>, ClientError> {
        let size = query.page_size.map_or(PAGE_ROWS, |size| size.max(1) as usize);
        if self.groups.is_some() {
            return self.aggregated(container, query).await;
        }
        let mut items = Vec::new();
        while items.len() < size && self.take != Some(0) {
            let Some(row) = self.next_row(container, query).await? else { break };
            if let Some(seen) = &mut self.seen {
                self.held_bytes += row.payload.len();
                check_held(self.held_bytes)?;
                if !seen.insert(value_of(&row.payload)?) {
                    continue;
                }
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.take = self.take.map(|take| take - 1);
            items.push(row.payload);
        }
        Ok(if items.is_empty() { None } else { self.page(items) })
    }

    fn page(&mut self, items: Vec<Bytes>) -> Option<ItemPage> {
        let charge = std::mem::take(&mut self.charge);
        let answer = self.last_answer.clone()?;
        Some(ItemPage { items, continuation: None, charge, answer })
    }

    /// The first row in the order of the query, or of the ranges where it has none.
    async fn next_row(
        &mut self,
        container: &ContainerClient,
        query: &QueryRequest,
    ) -> Result<Option<MergedRow>, ClientError> {
        let is_ordered = !self.descending.is_empty();
        let mut best: Option<usize> = None;
        for index in 0..self.streams.len() {
            self.fill(index, container, query).await?;
            let Some(row) = self.streams.get(index).and_then(|stream| stream.rows.front()) else { continue };
            let known = best.and_then(|best| self.streams.get(best)?.rows.front());
            if known.is_none_or(|known| compare(&self.descending, row, known).is_lt()) {
                best = Some(index);
            }
            if !is_ordered {
                break;
            }
        }
        Ok(best.and_then(|best| self.streams.get_mut(best)?.rows.pop_front()))
    }

    /// Sees to it that a range has a row at hand, or has ended.
    async fn fill(
        &mut self,
        index: usize,
        container: &ContainerClient,
        query: &QueryRequest,
    ) -> Result<(), ClientError> {
        let is_ordered = !self.descending.is_empty();
        let Some(stream) = self.streams.get_mut(index) else { return Ok(()) };
        while stream.rows.is_empty() && !(stream.is_begun && stream.continuation.is_none()) {
            let continuation = stream.continuation.take();
            let page = container.query_page(query, &self.text, Some(&stream.range), continuation.as_deref());
            let page = page.await.map_err(told)?;
            stream.is_begun = true;
            stream.continuation = page.continuation;
            self.charge += page.charge;
            self.last_answer = Some(page.answer);
            for item in page.items {
                stream.rows.push_back(if is_ordered {
                    ordered_row(&item)?
                } else {
                    MergedRow { order: Vec::new(), payload: item }
                });
            }
        }
        Ok(())
    }

    async fn aggregated(
        &mut self,
        container: &ContainerClient,
        query: &QueryRequest,
    ) -> Result<Option<ItemPage>, ClientError> {
        while let Some(row) = self.next_row(container, query).await? {
            let Some(groups) = &mut self.groups else { break };
            self.held_bytes += groups.add(&value_of(&row.payload)?);
            check_held(self.held_bytes)?;
        }
        let rows = self.groups.as_mut().map(MergedGroups::take_rows).unwrap_or_default();
        let rows = rows.into_iter().skip(self.skip).take(self.take.unwrap_or(usize::MAX)).collect::<Vec<_>>();
        self.skip = 0;
        Ok(if rows.is_empty() { None } else { self.page(rows) })
    }
}

fn ordered_row(item: &Bytes) -> Result<MergedRow, ClientError> {
    let text =
        Text::parse(item).map_err(|error| ClientError::Protocol(format!("a row is not JSON: {error}")))?;
    let row = text.root();
    let orders = row.get("orderByItems");
    let orders = orders
        .ok_or_else(|| ClientError::Protocol("a row of an ordered query has no orderByItems".to_owned()))?;
    let order = orders.elements().map(|item| item.get("item").map_or(Value::Undefined, Node::to_value));
    let payload = row
        .get("payload")
        .map_or(Bytes::from_static(b"null"), |payload| item.slice_ref(payload.raw().as_bytes()));
    Ok(MergedRow { order: order.collect(), payload })
}

fn compare(descending: &[bool], row: &MergedRow, other: &MergedRow) -> Ordering {
    let pairs = row.order.iter().zip(&other.order).zip(descending);
    let differing = pairs.map(|((a, b), descends)| if *descends { b.cmp(a) } else { a.cmp(b) });
    differing.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn value_of(raw: &Bytes) -> Result<Value, ClientError> {
    let text =
        Text::parse(raw).map_err(|error| ClientError::Protocol(format!("a row is not JSON: {error}")))?;
    Ok(text.root().to_value())
}

/// Whether the plan's ranges touch a key range; a plan without ranges asks all.
fn is_asked(range: &RangeOfKeys, plan: &serde_json::Value) -> bool {
    let Some(asked) = plan.get("queryRanges").and_then(serde_json::Value::as_array) else { return true };
    asked.iter().any(|asked| {
        let bound = |name: &str| {
            asked
                .get(name)
                .and_then(serde_json::Value::as_str)
                .and_then(|text| EffectiveKey::parse(text).ok())
        };
        let (Some(min), Some(max)) = (bound("min"), bound("max")) else { return true };
        let includes_max = asked.get("isMaxInclusive").and_then(serde_json::Value::as_bool) == Some(true);
        min < range.max && (range.min < max || (includes_max && range.min == max))
    })
}

fn check_held(bytes: usize) -> Result<(), ClientError> {
    if bytes > HELD_BYTES_MAX {
        return Err(unsupported(&format!(
            "its groups or distinct rows are more than {} MB",
            HELD_BYTES_MAX >> 20
        )));
    }
    Ok(())
}

fn unsupported(what: &str) -> ClientError {
    ClientError::Unsupported(format!(
        "the server leaves merging this query to clients, and this client cannot: {what}. Give a partition key, or start the server \
         with --whole-queries"
    ))
}

/// A split in the middle of a merged query cannot be followed.
fn told(error: ClientError) -> ClientError {
    match error.refusal() {
        Some(refusal) if refusal.status == 410 => ClientError::Unsupported(
            "the container's key ranges have changed while the query ran; run it again".to_owned(),
        ),
        _ => error,
    }
}
