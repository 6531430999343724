//! What queries need of an index: translations written out, and the laws that every translation keeps.

#[path = "needs/answers.rs"]
mod answers;
#[path = "needs/laws.rs"]
mod laws;
#[path = "needs/meets.rs"]
mod meets;
#[path = "needs/print.rs"]
mod print;
#[path = "needs/run.rs"]
mod run;
#[path = "needs/translations.rs"]
mod translations;

use astrarium_sql_plan::{Catalog, Parameters, QueryPlan, plan};
use astrarium_sql_syntax::parse;
use astrarium_value::Value;
use astrarium_value::json::Text;

/// The plan of a query, as it runs.
fn planned(text: &str) -> QueryPlan {
    let query = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let parameters = Parameters::new(vec![("@list".to_owned(), value("[1,\"a\"]"))]);
    plan(&query, &Catalog::default(), &parameters).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn value(json: &str) -> Value {
    Text::parse(json.as_bytes()).expect("JSON").root().to_value()
}
