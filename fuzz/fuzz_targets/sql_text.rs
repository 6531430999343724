//! SQL text: any text is a query or is refused with a place inside it; what is read prints as text that means the same,
//! and is planned, for us and for clients, and advised upon, or refused alike by all.

use astrarium_sql_plan::advice::advise;
use astrarium_sql_plan::client_plan::client_plan;
use astrarium_sql_plan::explain::explain;
use astrarium_sql_plan::physical::PhysicalPlan;
use astrarium_sql_plan::{Catalog, Parameters, plan};
use astrarium_sql_syntax::{check, parse, print};

/// All that a client can merge.
const FEATURES: &str = "Aggregate,CompositeAggregate,Distinct,GroupBy,MultipleAggregates,MultipleOrderBy,OffsetAndLimit,\
     OrderBy,Top,NonValueAggregate,DCount,NonStreamingOrderBy,ListAndSetAggregate,CountIf,HybridSearch,WeightedRankFusion";

pub(crate) fn run(text: &str) {
    let query = match parse(text) {
        Ok(query) => query,
        Err(error) => {
            assert!(error.span.range().end <= text.len());
            return;
        }
    };
    let printed = print(&query);
    // Printing adds parentheses, so a text near the limits may not be read again.
    if let Ok(again) = parse(&printed) {
        assert_eq!(again, query, "{printed}");
        assert_eq!(print(&again), printed);
    }
    if !check(&query, text).is_empty() {
        return;
    }
    let (catalog, parameters) = (Catalog::default(), Parameters::default());
    let planned = plan(&query, &catalog, &parameters);
    match &planned {
        Ok(plan) => drop(explain(plan, &PhysicalPlan::of_all(plan))),
        Err(error) => assert!(error.span.range().end <= text.len()),
    }
    assert_eq!(advise(&query, &parameters).is_ok(), planned.is_ok());
    let client = client_plan(&query, text, &catalog, &parameters, Some(FEATURES));
    if let Ok(client) = client {
        // What is sent to partitions must be readable there, once the client has filled it in.
        drop(client.to_json());
    }
}
