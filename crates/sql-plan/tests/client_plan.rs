//! Plans for clients: what is sent to each partition for every shape of query, where, and what is refused.
//!
//! Expected plans name only the members that differ from those of `SELECT * FROM c`. Every rewritten text, once its
//! placeholders are filled as clients fill them, must parse and bind.

#[path = "client_plan/corpus.rs"]
mod corpus;
#[path = "client_plan/hybrid.rs"]
mod hybrid;
#[path = "client_plan/ranges.rs"]
mod ranges;
#[path = "client_plan/refusals.rs"]
mod refusals;
#[path = "client_plan/shapes.rs"]
mod shapes;

use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_sql_plan::client_plan::client_plan;
use astrarium_sql_plan::{Catalog, Parameters, bind};
use astrarium_sql_syntax::{check, parse};
use astrarium_value::json::Text;
use serde_json::{Value, json};

/// All that clients list, without the form of hybrid searches that only some want.
const FEATURES: &str = "Aggregate, CompositeAggregate, CountIf, DCount, Distinct, GroupBy, HybridSearch, \
                        ListAndSetAggregate, MultipleAggregates, MultipleOrderBy, NonStreamingOrderBy, \
                        NonValueAggregate, OffsetAndLimit, OrderBy, Top, WeightedRankFusion";

/// A container by the members of its definition that matter.
fn container(body: &Value) -> ContainerDefinition {
    let mut whole = json!({"id": "items"});
    let members = whole.as_object_mut().expect("an object");
    members.extend(body.as_object().expect("an object").clone());
    ContainerDefinition::from_json(&whole).expect("a good definition")
}

/// A container with one partition key path.
fn keyed(path: &str) -> ContainerDefinition {
    container(&json!({"partitionKey": {"paths": [path], "kind": "Hash", "version": 2}}))
}

/// Parameters in the form in which requests carry them.
fn parameters(list: &Value) -> Parameters {
    let pair = |parameter: &Value| {
        let text = parameter["value"].to_string();
        let value = Text::parse(text.as_bytes()).expect("a parameter is JSON").root().to_value();
        (parameter["name"].as_str().expect("a parameter has a name").to_owned(), value)
    };
    Parameters::new(list.as_array().map_or_else(Vec::new, |list| list.iter().map(pair).collect()))
}

/// The answer to a request: the plan, or the code and message of the refusal.
fn ask(
    query: &str,
    list: &Value,
    container: &ContainerDefinition,
    features: Option<&str>,
) -> Result<Value, (&'static str, String)> {
    let catalog = Catalog { container: Some(container) };
    let parameters = parameters(list);
    let tree = parse(query).map_err(|error| (error.code, error.message))?;
    let plan = client_plan(&tree, query, &catalog, &parameters, features)
        .map_err(|error| (error.code, error.message))?
        .to_json();
    texts(&plan, &mut |text| runs(text, catalog, &parameters));
    Ok(plan)
}

/// Visits every text that the plan tells the client to send.
fn texts(plan: &Value, visit: &mut dyn FnMut(&str)) {
    match plan {
        Value::Object(members) => members.iter().for_each(|(name, value)| match value {
            Value::String(text) if name == "rewrittenQuery" || name == "globalStatisticsQuery" => visit(text),
            _ => texts(value, visit),
        }),
        Value::Array(elements) => elements.iter().for_each(|element| texts(element, visit)),
        _ => {}
    }
}

/// Asserts that a text is a query that this server runs, once its placeholders are filled.
fn runs(text: &str, catalog: Catalog<'_>, parameters: &Parameters) {
    if text.is_empty() {
        return;
    }
    let mut pieces = text.split("{documentdb-");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').expect("a placeholder is closed");
        filled.push_str(match name {
            "formattableorderbyquery-filter" => "true",
            name if name.contains("hitcountsarray") => "[1, 2]",
            _ => "12",
        });
        filled.push_str(rest);
    }
    let tree = parse(&filled).unwrap_or_else(|error| panic!("{}", error.render(&filled)));
    assert_eq!(check(&tree, &filled), [], "{filled}");
    bind(&tree, &catalog, parameters).unwrap_or_else(|error| panic!("{filled}: {error}"));
}

/// The members of a query info, of which the expected ones name those that are not as usual.
fn info(different: &Value) -> Value {
    let mut whole = json!({
        "distinctType": "None", "top": null, "offset": null, "limit": null, "orderBy": [],
        "orderByExpressions": [], "groupByExpressions": [], "groupByAliases": [], "aggregates": [],
        "groupByAliasToAggregateType": {}, "rewrittenQuery": "", "hasSelectValue": false,
        "dCountInfo": null, "hasNonStreamingOrderBy": false
    });
    let members = whole.as_object_mut().expect("an object");
    for (name, value) in different.as_object().expect("an object") {
        *members.get_mut(name).unwrap_or_else(|| panic!("no member {name}")) = value.clone();
    }
    whole
}
