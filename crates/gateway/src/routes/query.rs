//! Queries over items and over every other feed: the request's body and headers, pages, tokens, metrics.

use super::documents::given_scope;
use super::explain;
use super::query_body::QueryBody;
use super::query_metrics;
use crate::answer::{Answer, fixed_name};
use crate::database::partition::{EffectiveRange, PartitionKey};
use crate::database::value::json as json_text;
use crate::database::{
    Advice, Container, FeedScope, IndexUtilization, Limits, Query, QueryPage, QueryScope, Resume,
};
use crate::error::ErrorAnswer;
use crate::paging::{self, Feed, TokenBinding};
use crate::place::ServedBy;
use crate::render;
use crate::request::Request;
use crate::service::GatewayState;
use crate::session;
use crate::wire::address::ResourceKind;
use crate::wire::continuation::fingerprint;
use crate::wire::{continuation, headers, percent};
use base64::Engine as _;
use http::{HeaderValue, StatusCode};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Runs a query over the items of a container.
pub(super) async fn documents(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    key: Option<&PartitionKey>,
) -> Result<Answer, ErrorAnswer> {
    let body = shared.offload.run(request.body.len(), || QueryBody::read(shared, request)).await?;
    let query = body.of_documents(container.rid())?;
    let (scope, scoped) = scope(shared, request, container, key)?;
    if explain::is_asked(request) {
        return explain::answer(shared, container, &query, scope, limits(request)?).await;
    }
    if request.header(headers::QUERY_ENABLE_SCAN).is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        shared.account.documents(container).check_no_scan(&query)?;
    }
    let looks_at = if let QueryScope::Given(scope) = &scope { scope } else { &FeedScope::All };
    session::check(shared, request, container, looks_at).await?;
    let feed = Feed { owner: container.rid(), kind: ResourceKind::Document };
    let resume = match request.header(headers::CONTINUATION) {
        Some(_) => {
            let keys = keys(container, &scope);
            resume(shared, request, feed, &query, interval(&keys), &former_intervals(container, &keys))?
        }
        None => None,
    };
    let first = resume.is_none();
    let kept_use = session::kept_use(shared, request, container, looks_at)?;
    let limits = Limits { kept_use, ..limits(request)? };
    let page = shared.account.documents(container).query(&query, &scope, resume, limits).await?;
    let token = page.resume.as_ref().map(|resume| {
        let interval = interval(&keys(container, &scope));
        paging::query_token(shared, feed, binding(&query, interval), &resume.encode())
    });
    let began = Instant::now();
    let mut answer = rows(feed, &page);
    let writing = began.elapsed();
    if let Some(token) = token {
        let token = if scoped { token } else { continuation::wrap(&token, "", "FF") };
        answer.set_text(headers::CONTINUATION, token);
    }
    if request.flag(headers::POPULATE_QUERY_METRICS) {
        answer.set_text(headers::QUERY_METRICS, query_metrics::text(&page, writing));
    }
    if request.flag(headers::POPULATE_INDEX_METRICS) || request.flag(headers::POPULATE_INDEX_METRICS_V2) {
        let modern = request.flag(headers::POPULATE_INDEX_METRICS_V2);
        let utilization = shared.account.documents(container).index_utilization(&query, &scope)?;
        answer.set_text(headers::INDEX_UTILIZATION, utilization_text(&utilization, modern));
    }
    // Advice comes with the first page only, as on the service.
    if first && request.flag(headers::POPULATE_QUERY_ADVICE) {
        let advice = query.advice()?;
        if !advice.is_empty() {
            answer.set_text(headers::QUERY_ADVICE, advice_text(&advice));
        }
    }
    // Tells clients that merge how rows of equal sort keys are ordered.
    let info = HeaderValue::from_static(if page.reverse_ties {
        "{\"reverseRidEnabled\":false,\"reverseIndexScan\":true}"
    } else {
        "{\"reverseRidEnabled\":false,\"reverseIndexScan\":false}"
    });
    answer.headers.insert(fixed_name!(headers::QUERY_EXECUTION_INFO), info);
    let place = ServedBy { container: container.clone(), range_id: page.range_id, lsn: page.lsn };
    place.set_headers(&mut answer);
    Ok(answer)
}

/// Runs a query over resources at hand.
pub(super) async fn resources(
    shared: &GatewayState,
    request: &Request<'_>,
    feed: Feed,
    resources: Vec<serde_json::Value>,
) -> Result<Answer, ErrorAnswer> {
    let body = shared.offload.run(request.body.len(), || QueryBody::read(shared, request)).await?;
    let query = body.of_resources()?;
    let values =
        resources.iter().map(|resource| json_text::seek::value(resource.to_string().as_bytes())).collect();
    let resume = resume(shared, request, feed, &query, 0, &[])?;
    let page = shared.account.query_values(values, &query, resume, limits(request)?).await?;
    let mut answer = rows(feed, &page);
    if let Some(resume) = &page.resume {
        let token = paging::query_token(shared, feed, binding(&query, 0), &resume.encode());
        answer.set_text(headers::CONTINUATION, token);
    }
    Ok(answer)
}

fn rows(feed: Feed, page: &QueryPage) -> Answer {
    let mut answer = Answer::json(StatusCode::OK, render::feed(feed.owner, feed.kind, &page.rows));
    answer.headers.insert(fixed_name!(headers::ITEM_COUNT), HeaderValue::from(page.rows.len()));
    answer.set_charge(page.charge);
    answer
}

/// Where the request wants to look, and whether it says so itself.
fn scope(
    shared: &GatewayState,
    request: &Request<'_>,
    container: &Arc<Container>,
    key: Option<&PartitionKey>,
) -> Result<(QueryScope, bool), ErrorAnswer> {
    if let Some(given) = given_scope(shared, request, container, key)? {
        return Ok((QueryScope::Given(given), true));
    }
    let cross_partition = request.flag(headers::QUERY_ENABLE_CROSS_PARTITION);
    let whole = shared.settings.whole_queries || request.session_ends_at_seconds.is_some();
    Ok((QueryScope::Open { cross_partition, whole }, false))
}

fn limits(request: &Request<'_>) -> Result<Limits, ErrorAnswer> {
    let page = request.page_limit()?;
    Ok(Limits {
        row_count_max: page.count_max,
        byte_count_max: page.bytes_max,
        client: request.client,
        ..Limits::default()
    })
}

/// What a token is bound to.
fn binding(query: &Query, scope: u64) -> TokenBinding {
    TokenBinding {
        query: fingerprint(&[&query.identity()]),
        shape: fingerprint(&[query.shape().as_bytes()]),
        scope,
    }
}

/// The part of the key space that a query looks at, however the request names it.
fn keys(container: &Container, scope: &QueryScope) -> EffectiveRange {
    match scope {
        QueryScope::Given(FeedScope::Partition(key)) => {
            EffectiveRange::of_prefix(container.definition.partition_key.effective(key))
        }
        QueryScope::Given(FeedScope::Slice(slice)) => slice.clone(),
        QueryScope::Given(FeedScope::Range(id)) => {
            let range = container.ranges.iter().find(|range| range.id == *id);
            range.map_or_else(EffectiveRange::full, |range| range.keys.clone())
        }
        QueryScope::Given(FeedScope::All) | QueryScope::Open { .. } => EffectiveRange::full(),
    }
}

fn interval(keys: &EffectiveRange) -> u64 {
    match keys.common_prefix() {
        Some(prefix) => fingerprint(&[prefix.as_bytes()]),
        None => fingerprint(&[keys.min.as_bytes(), keys.max.as_bytes()]),
    }
}

/// The same of ranges that are gone, of which those came that hold a part of the key space: clients go on in each of these with the
/// token of the one that was split.
fn former_intervals(container: &Container, keys: &EffectiveRange) -> Vec<u64> {
    let holders = container.ranges.iter().filter(|range| range.keys.overlaps(keys));
    let gone = holders.flat_map(|range| range.parents.iter().copied());
    gone.filter_map(|id| container.former_keys(id)).map(|keys| interval(&keys)).collect()
}

fn resume(
    shared: &GatewayState,
    request: &Request<'_>,
    feed: Feed,
    query: &Query,
    scope: u64,
    former: &[u64],
) -> Result<Option<Resume>, ErrorAnswer> {
    if request.header(headers::CONTINUATION).is_none() {
        return Ok(None);
    }
    let position = paging::query_position(shared, request, feed, binding(query, scope), former)?;
    let Some(bytes) = position else { return Ok(None) };
    Resume::decode(&bytes).map(Some).ok_or_else(paging::invalid)
}

/// The index utilisation header: JSON in base64, or percent-encoded in the newer form.
fn utilization_text(utilization: &IndexUtilization, modern: bool) -> String {
    let single = |specs: &[String]| -> Vec<serde_json::Value> {
        let spec = |spec: &String| {
            if modern {
                return json!({"IndexSpec": spec, "IndexImpactScore": "High"});
            }
            json!({
                "FilterExpression": "",
                "IndexSpec": spec,
                "FilterPreciseSet": true,
                "IndexPreciseSet": true,
                "IndexImpactScore": "High",
            })
        };
        specs.iter().map(spec).collect()
    };
    let composite = |indexes: &[Vec<String>]| -> Vec<serde_json::Value> {
        indexes.iter().map(|specs| json!({"IndexSpecs": specs, "IndexImpactScore": "High"})).collect()
    };
    let (used, possible) = (&utilization.utilized_single, &utilization.potential_single);
    let (used_composite, possible_composite) =
        (&utilization.utilized_composite, &utilization.potential_composite);
    if modern {
        let text = json!({
            "Utilized": {"SingleIndexes": single(used), "CompositeIndexes": composite(used_composite)},
            "Potential": {"SingleIndexes": single(possible), "CompositeIndexes": composite(possible_composite)},
        });
        return percent::encode_component(&text.to_string()).into_owned();
    }
    let text = json!({
        "UtilizedSingleIndexes": single(used),
        "PotentialSingleIndexes": single(possible),
        "UtilizedCompositeIndexes": composite(used_composite),
        "PotentialCompositeIndexes": composite(possible_composite),
    });
    base64::engine::general_purpose::STANDARD.encode(text.to_string())
}

/// The query advice header: the rules that the query matches, as percent-encoded JSON. Clients know their sentences.
fn advice_text(advice: &[Advice]) -> String {
    let rules: Vec<_> = advice.iter().map(|rule| json!({"Id": rule.id(), "Params": []})).collect();
    percent::encode_component(&json!(rules).to_string()).into_owned()
}
