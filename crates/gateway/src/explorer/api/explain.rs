//! How a query runs: its plan as a tree, with what was expected and, if it is run, what was found.

use super::super::ExplorerCall;
use super::super::refusal::ApiRefusal;
use super::find_container;
use crate::database::value::json::{Kind, Node, Text};
use crate::database::{
    ExplainedOperator, Explanation, Limits, QueryScope, ThroughputDemand, query_parameters,
};
use crate::routes::throttle;
use serde_json::{Value, json};

/// Operators that are shown as a tree, which is as deep: a filter can have thousands of conditions.
const OPERATORS_MAX: usize = 60;

/// What a query over everything takes its turn by.
const WHOLE_CONTAINER: ThroughputDemand<'static> =
    ThroughputDemand { partition_key: None, range_id: None, has_low_priority: false };

/// Explains a query over a container.
pub(super) async fn explain(call: &ExplorerCall<'_>, body: &[u8]) -> Result<String, ApiRefusal> {
    let malformed = || {
        ApiRefusal::bad_request(
            "The body is {\"database\", \"container\", \"sql\", \"parameters\": [{\"name\", \"value\"}], \"run\"}.",
        )
    };
    let shared = &call.gateway.shared;
    let asked = Text::parse(body).map_err(|_| malformed())?;
    let asked = asked.root();
    let text = |name: &str| asked.get(name).and_then(Node::as_str).ok_or_else(malformed);
    let (database, container, sql) = (text("database")?, text("container")?, text("sql")?);
    let parameters = match asked.get("parameters").filter(|list| list.kind() != Kind::Null) {
        None => Vec::new(),
        Some(list) if list.kind() == Kind::Array => query_parameters(list).ok_or_else(malformed)?,
        Some(_) => return Err(malformed()),
    };
    let runs = asked.get("run").and_then(Node::as_bool).unwrap_or(false);
    let container = find_container(call, &database, &container).await?;
    let parsed = shared.offload.run(body.len(), || shared.account.parse_query(&sql, parameters)).await;
    let query = parsed?;
    let scope = QueryScope::Open { cross_partition: true, whole: true };
    let limits = Limits { client: call.peer.client, ..Limits::default() };
    let admitted = throttle::admit_demand(shared, &container, WHOLE_CONTAINER).await?;
    let explained = shared.account.documents(&container).explanation(&query, &scope, limits, runs).await;
    throttle::pay_charge(admitted, explained.as_ref().ok().map(charge));
    Ok(shown(&explained?).to_string())
}

/// A plan that is not run costs what a look at a definition does.
fn charge(explanation: &Explanation) -> f64 {
    explanation.run.map_or(throttle::METADATA_CHARGE, |run| run.charge)
}

fn shown(explanation: &Explanation) -> Value {
    // Each operator works on the rows of the one before it.
    let operators = &explanation.operators;
    let left_out = operators.len().saturating_sub(OPERATORS_MAX);
    let (first, rest) = operators.split_at(operators.len().min(OPERATORS_MAX / 2));
    let (skipped, last) = rest.split_at(left_out.min(rest.len()));
    let many = (!skipped.is_empty()).then(|| ExplainedOperator {
        operator: "filter",
        detail: format!("{left_out} more operators"),
        estimated_rows: None,
        work: skipped.last().and_then(|operator| operator.work),
    });
    let shown = first.iter().chain(&many).chain(last);
    let chain = shown.fold(None, |below, operator| Some(node(operator, below)));
    let run = explanation.run.map(|run| {
        json!({"rows": run.rows, "pages": run.pages, "charge": run.charge, "complete": run.is_complete})
    });
    json!({"plan": chain, "text": explanation.text, "run": run})
}

fn node(operator: &ExplainedOperator, below: Option<Value>) -> Value {
    let work = operator.work;
    json!({
        "operator": operator.operator,
        "detail": operator.detail,
        "estimatedRows": operator.estimated_rows,
        "actualRows": work.map(|work| work.rows),
        "entries": work.map(|work| work.entries),
        "documents": work.map(|work| work.documents),
        "bytes": work.map(|work| work.bytes),
        "microseconds": work.map(|work| work.time.as_micros() as u64),
        "children": below.into_iter().collect::<Vec<Value>>(),
    })
}
