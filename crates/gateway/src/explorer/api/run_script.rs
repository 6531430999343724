//! Runs a stored procedure, or a source that is not stored, to look at: its calls, its log, and what it changes, before that is committed
//! or with the commit.

use super::super::ExplorerCall;
use super::super::refusal::ApiRefusal;
use super::super::sessions::Session;
use super::find_container;
use crate::database::partition::PartitionKey;
use crate::database::value::json::{Kind, Node, Text};
use crate::database::{Link, ProcedureSource, ProcedureTrace, ThroughputDemand, TracedCall, TracedChange};
use crate::routes::throttle;
use crate::wire::authorization::KeyAccess;
use serde_json::json;

/// Runs a script. Who may only read may run none, as with a key.
pub(super) async fn run(
    call: &ExplorerCall<'_>,
    session: Session,
    body: &[u8],
) -> Result<String, ApiRefusal> {
    if session.access != KeyAccess::Full {
        return Err(ApiRefusal::forbidden("This session may only read. Sign in with a key that may write."));
    }
    let malformed = || {
        ApiRefusal::bad_request(
            "The body is {\"database\", \"container\", \"procedure\" or \"body\", \"partitionKey\": [..], \"arguments\": [..], \
             \"commit\"}.",
        )
    };
    let asked = Text::parse(body).map_err(|_| malformed())?;
    let asked = asked.root();
    let text = |name: &str| asked.get(name).and_then(Node::as_str);
    let list = |name: &str| match asked.get(name).filter(|list| list.kind() != Kind::Null) {
        None => Ok("[]"),
        Some(list) if list.kind() == Kind::Array => Ok(list.raw()),
        Some(_) => Err(malformed()),
    };
    let (database, container) =
        (text("database").ok_or_else(malformed)?, text("container").ok_or_else(malformed)?);
    let (procedure, own) = (text("procedure"), text("body"));
    let source = match (&procedure, &own) {
        (Some(id), None) => ProcedureSource::Stored(Link::Name(id)),
        (None, Some(source)) => ProcedureSource::Text(source),
        _ => return Err(malformed()),
    };
    let key = PartitionKey::parse_header(list("partitionKey")?)
        .map_err(|error| ApiRefusal::bad_request(format!("The partition key is invalid: {error}.")))?;
    let commits = asked.get("commit").and_then(Node::as_bool).unwrap_or(false);
    let container = find_container(call, &database, &container).await?;
    let shared = &call.gateway.shared;
    let scripts = shared.account.scripts(&container);
    let arguments = list("arguments")?.as_bytes();
    let demand = ThroughputDemand { partition_key: Some(&key), range_id: None, has_low_priority: false };
    let admitted = throttle::admit_demand(shared, &container, demand).await?;
    let traced = scripts.trace_procedure(source, Some(&key), arguments, commits).await;
    throttle::pay_charge(admitted, traced.as_ref().ok().map(|trace| trace.charge));
    Ok(shown(&traced?))
}

/// The parts that are JSON already stay as they are: numbers keep their digits.
fn shown(trace: &ProcedureTrace) -> String {
    let or_null = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
    let call = |call: &TracedCall| {
        let (function, error) = (json!(call.function), json!(call.error));
        let (arguments, result) = (&call.arguments, or_null(&call.result));
        format!("{{\"function\":{function},\"arguments\":{arguments},\"result\":{result},\"error\":{error}}}")
    };
    let change = |change: &TracedChange| {
        let (kind, id) = (json!(change.kind), json!(change.id));
        let (before, after) = (or_null(&change.before), or_null(&change.after));
        format!("{{\"kind\":{kind},\"id\":{id},\"before\":{before},\"after\":{after}}}")
    };
    let error = trace
        .error
        .as_ref()
        .map(|error| json!({"message": error.message, "stack": error.stack, "line": error.line}));
    let rest = json!({
        "error": error,
        "console": trace.log.lines().collect::<Vec<_>>(),
        "callsLeftOut": trace.calls_left_out,
        "changesLeftOut": trace.changes_left_out,
        "charge": trace.charge,
        "committed": trace.is_committed,
    })
    .to_string();
    let calls: Vec<String> = trace.calls.iter().map(call).collect();
    let changes: Vec<String> = trace.changes.iter().map(change).collect();
    format!(
        "{},\"result\":{},\"calls\":[{}],\"changes\":[{}]}}",
        rest.strip_suffix('}').unwrap_or(&rest),
        or_null(&trace.body),
        calls.join(","),
        changes.join(",")
    )
}
