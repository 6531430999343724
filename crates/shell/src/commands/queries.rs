//! Queries: their rows, how they run (`.explain`), and what indexes they use and lack (`.index`).

use crate::failure::ShellFailure;
use crate::json_text::pretty;
use crate::rows::ShownRows;
use crate::session::Shell;
use astrarium_client::{ContainerClient, QueryRequest, WireAnswer};
use astrarium_value::json::{Node, Text};
use astrarium_wire::headers;
use astrarium_wire::percent::decode_once;
use serde_json::Value;

/// Asks this project's server for the plan instead of rows; others pass it over.
const EXPLAIN_HEADER: &str = "x-astrarium-explain";

/// Runs a query and shows its rows as they come.
pub(super) async fn select(shell: &mut Shell, text: &str) -> Result<(), ShellFailure> {
    let container = shell.current_container().await?;
    let mut pages = container.query(request(shell, text));
    let mut writer = ShownRows::new(shell.options.mode, shell.options.system);
    shell.row_count = Some(0);
    while let Some(page) = pages.next_page().await? {
        writer.add(page.items, &mut shell.output)?;
        shell.row_count = Some(writer.count());
    }
    writer.end(&mut shell.output)
}

/// Shows the plan: this server's own with its steps, of another what it gives to clients, and its metrics.
pub(super) async fn explain(shell: &mut Shell, text: &str) -> Result<(), ShellFailure> {
    check_query(text, ".explain")?;
    let container = shell.current_container().await?;
    let mut query = request(shell, text);
    query.page_size = query.page_size.or(Some(100));
    query.headers =
        vec![(EXPLAIN_HEADER, "1".to_owned()), (headers::POPULATE_QUERY_METRICS, "True".to_owned())];
    let page = container.query(query.clone()).next_page().await.map_err(|error| at_query(error, text))?;
    let Some(page) = page else {
        return shell.output.line("The query has no rows, and nothing is told about it.");
    };
    let mut is_told = false;
    for row in &page.items {
        let Ok(row) = Text::parse(row) else { continue };
        let is_plan = row.root().members().all(|(name, _)| matches!(&*name, "plan" | "range"));
        let Some(plan) = row.root().get("plan").filter(|_| is_plan).and_then(Node::as_str) else {
            continue;
        };
        if let Some(range) = row.root().get("range").and_then(Node::as_str) {
            let line = format!("range {range}");
            let line = shell.output.for_eyes(&line).into_owned();
            shell.output.line(&line)?;
        }
        let plan = shell.output.for_eyes(plan.trim_end()).into_owned();
        shell.output.line(&plan)?;
        is_told = true;
    }
    if is_told { Ok(()) } else { explain_elsewhere(shell, &container, &query, &page.answer).await }
}

/// What any server of the protocol tells about a query.
async fn explain_elsewhere(
    shell: &mut Shell,
    container: &ContainerClient,
    query: &QueryRequest,
    answer: &WireAnswer,
) -> Result<(), ShellFailure> {
    if let Some(metrics) = answer.header(headers::QUERY_METRICS) {
        shell.output.line("metrics of the first page")?;
        for metric in metrics.split(';') {
            let line = format!("  {metric}");
            let line = shell.output.for_eyes(&line).into_owned();
            shell.output.line(&line)?;
        }
    }
    let plan = container.query_plan(query).await?;
    shell.output.line("plan for clients")?;
    let plan = shell.output.json_for_eyes(&pretty(plan.text()?, 0)).into_owned();
    shell.output.line(&plan)
}

/// Shows which indexes a query uses, and which would help.
pub(super) async fn index(shell: &mut Shell, text: &str) -> Result<(), ShellFailure> {
    check_query(text, ".index")?;
    let container = shell.current_container().await?;
    let mut query = request(shell, text);
    query.headers = vec![
        (headers::POPULATE_INDEX_METRICS_V2, "True".to_owned()),
        (headers::POPULATE_QUERY_ADVICE, "True".to_owned()),
    ];
    let page = container.query(query).next_page().await.map_err(|error| at_query(error, text))?;
    let Some(page) = page else {
        return shell.output.line("The query has no rows, and nothing is told about its indexes.");
    };
    let told = |name: &str| -> Option<Value> {
        let text = page.answer.header(name)?;
        serde_json::from_str(&decode_once(text).unwrap_or_default()).ok()
    };
    let Some(metrics) = told(headers::INDEX_UTILIZATION) else {
        return shell.output.line("The server tells nothing about the indexes of this query.");
    };
    for (title, part) in [("used", "Utilized"), ("would help", "Potential")] {
        let specs = index_specs(metrics.get(part));
        shell.output.line(&format!("{title}:{}", if specs.is_empty() { " nothing" } else { "" }))?;
        for spec in specs {
            let line = shell.output.for_eyes(&format!("  {spec}")).into_owned();
            shell.output.line(&line)?;
        }
    }
    if let Some(advice) = told(headers::QUERY_ADVICE) {
        let rules = advice
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|rule| rule.get("Id")?.as_str().map(str::to_owned));
        let rules: Vec<String> = rules.collect();
        if !rules.is_empty() {
            let line = shell.output.for_eyes(&format!("advice: {}", rules.join(", "))).into_owned();
            shell.output.line(&line)?;
        }
    }
    Ok(())
}

fn index_specs(part: Option<&Value>) -> Vec<String> {
    let list = |name: &str| part.and_then(|part| part.get(name)?.as_array()).cloned().unwrap_or_default();
    let single =
        list("SingleIndexes").into_iter().filter_map(|one| Some(one.get("IndexSpec")?.as_str()?.to_owned()));
    let composite = list("CompositeIndexes").into_iter().filter_map(|one| {
        let specs: Vec<&str> = one.get("IndexSpecs")?.as_array()?.iter().filter_map(Value::as_str).collect();
        Some(format!("composite {}", specs.join(", ")))
    });
    single.chain(composite).collect()
}

/// Shows the indexing policy of the container.
pub(super) async fn indexing_policy(shell: &mut Shell) -> Result<(), ShellFailure> {
    let container = shell.current_container().await?;
    let (database, name) = (container.database().to_owned(), container.name().to_owned());
    let definition = shell.client.read_definition(&["dbs", &database, "colls", &name]).await?;
    let policy = definition.get("indexingPolicy").map(Value::to_string).unwrap_or_default();
    let policy = shell.output.json_for_eyes(&pretty(&policy, 0)).into_owned();
    shell.output.line(&policy)
}

/// A query as the settings want it.
fn request(shell: &Shell, text: &str) -> QueryRequest {
    let mut request = QueryRequest::new(text);
    request.parameters = shell.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    request.partition_key.clone_from(&shell.options.key);
    request.page_size = shell.options.page;
    request
}

fn check_query(text: &str, command: &str) -> Result<(), ShellFailure> {
    if crate::statement::is_sql(text) {
        return Ok(());
    }
    Err(ShellFailure::told(format!("{command} is followed by a query: {command} SELECT * FROM c")))
}

/// A refusal with the caret under the query's text, which here is a part of what was typed.
fn at_query(error: astrarium_client::ClientError, text: &str) -> ShellFailure {
    let failure = ShellFailure::from(error);
    if failure.exit_code() == crate::failure::EXIT_UNREACHABLE {
        return failure;
    }
    ShellFailure::Told(failure.message(Some(text)))
}
