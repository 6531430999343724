//! The words of the query language, and the mistakes in a text that somebody writes.

use super::super::ExplorerCall;
use super::super::refusal::ApiRefusal;
use super::find_container;
use crate::database::{FunctionHelp, QueryFault, query_functions, query_keywords};
use serde_json::{Value, json};

/// Keywords and functions.
pub(super) fn words() -> String {
    let function = |function: &FunctionHelp| json!({"name": function.name, "signature": function.signature, "help": function.summary});
    let functions: Vec<Value> = query_functions().iter().map(function).collect();
    json!({"keywords": query_keywords(), "functions": functions}).to_string()
}

/// What is wrong with a query, by places in its text.
pub(super) async fn check(call: &ExplorerCall<'_>, body: &[u8]) -> Result<String, ApiRefusal> {
    let shared = &call.gateway.shared;
    let asked: Value = serde_json::from_slice(body)
        .map_err(|_| ApiRefusal::bad_request("The body is {\"sql\": \"..\"}."))?;
    let text = |name: &str| asked.get(name).and_then(Value::as_str);
    let sql = text("sql").ok_or_else(|| ApiRefusal::bad_request("The body is {\"sql\": \"..\"}."))?;
    // Computed properties are names that only their container has; one that is not there has none.
    let container = match (text("database"), text("container")) {
        (Some(database), Some(container)) => find_container(call, database, container).await.ok(),
        _ => None,
    };
    let faults = shared.offload.run(sql.len(), || shared.account.query_faults(sql, container.as_ref())).await;
    let error = |fault: &QueryFault| json!({"message": fault.message, "detail": fault.detail, "start": fault.start, "end": fault.end, "code": fault.code});
    Ok(json!({"errors": faults.iter().map(error).collect::<Vec<_>>()}).to_string())
}
