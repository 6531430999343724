//! Which access is chosen, given how many documents and entries there are.
//!
//! A container of a million documents whose statistics are made up: each index, as EXPLAIN names it, has so many entries.

use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_index::{IndexSet, Indexes, Ordered, Served};
use astrarium_sql_plan::physical::{
    Demand, IndexPlan, IndexUse, KnownRange, OrderDemand, OrderEntries, PageDemand, Statistics, choose_order,
    choose_page, choose_postings,
};
use astrarium_sql_plan::{Catalog, Parameters, plan};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

const DOCUMENTS: u64 = 1_000_000;
const ALL: u64 = u64::MAX;

/// How many entries the ranges of an index have that a query asks for, by the index's name.
struct Known<'a>(&'a [(&'a str, u64)]);

impl Known<'_> {
    fn of(&self, shown: &str) -> u64 {
        self.0.iter().find(|(name, _)| *name == shown).map_or(DOCUMENTS, |(_, entries)| *entries)
    }
}

impl Statistics for Known<'_> {
    type Error = Infallible;

    async fn documents(&mut self) -> Result<u64, Infallible> {
        Ok(DOCUMENTS)
    }

    async fn excluded(&mut self) -> Result<u64, Infallible> {
        Ok(0)
    }

    async fn estimate(&mut self, served: &Served) -> Result<u64, Infallible> {
        Ok(self.of(&served.shown))
    }

    async fn seek(&mut self, served: &Served) -> Result<u64, Infallible> {
        Ok(self.of(&served.shown))
    }

    async fn knows_expired(&mut self) -> Result<bool, Infallible> {
        Ok(true)
    }

    async fn order(&mut self, ordered: &Ordered) -> Result<OrderEntries, Infallible> {
        Ok(OrderEntries { all: DOCUMENTS, within: self.of(&ordered.shown) })
    }
}

/// Nothing here waits.
fn now<T>(future: impl Future<Output = Result<T, Infallible>>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(found)) => found,
        Poll::Pending => panic!("statistics at hand do not wait"),
    }
}

fn index_plan(query: &str) -> IndexPlan {
    let definition = serde_json::json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/hidden/?"}],
            "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "ascending"}]],
        },
    });
    let definition = ContainerDefinition::from_json(&definition).expect("a definition of ours");
    let query = astrarium_sql_syntax::parse(query).expect("a query of ours");
    let catalog = Catalog { container: Some(&definition) };
    let plan = plan(&query, &catalog, &Parameters::default()).expect("a plan");
    let indexes = Arc::new(Indexes::new(IndexSet::new(1, &definition), None, Vec::new()));
    IndexPlan::new(&plan, indexes, &[]).expect("no order is excluded")
}

/// The access to documents that pass a filter, for a page of so many rows in order of insertion, or for all in any order.
fn check(filter: &str, known: &[(&str, u64)], rows: u64, expected: &str) {
    let plan = index_plan(&format!("SELECT * FROM c WHERE {filter}"));
    let demand =
        Demand { rows, in_order: rows != ALL, whole: false, scope: None, index_use: IndexUse::ByCost };
    let found = now(choose_postings(&plan, &demand, &mut Known(known))).to_string();
    assert_eq!(found, expected, "{filter} {known:?}, {rows} rows");
}

/// The access within a partition of so many documents, for a page of a hundred rows.
fn check_partition(filter: &str, documents: u64, known: &[(&str, u64)], expected: &str) {
    let plan = index_plan(&format!("SELECT * FROM c WHERE {filter}"));
    let scope = plan.indexes.active.partitions((b"a", b"b"), true);
    let scoped = Some(&scope);
    let demand =
        Demand { rows: 100, in_order: true, whole: false, scope: scoped, index_use: IndexUse::ByCost };
    let known = [known, &[("partition key", documents)]].concat();
    let found = now(choose_postings(&plan, &demand, &mut Known(&known))).to_string();
    assert_eq!(found, expected, "{filter} in {documents} documents, {known:?}");
}

#[test]
fn within_a_partition_the_index_is_used_where_it_reads_less() {
    // Few documents of the whole container have the value: nothing else is asked.
    check_partition("c.x = 1", 2, &[("/x/?", 1)], "seek /x/? [1 term]");
    check_partition("c.x = 1 AND c.y > 2", 50, &[("/x/?", 3)], "seek /x/? [1 term]");
    // Many have it, and the partition is small.
    check_partition("c.x = 1", 6, &[("/x/?", 100_000)], "scan");
    check_partition("c.y > 2", 6, &[("/y/?", 10)], "scan");
    // It is not: what is found in both is read.
    let both = "intersection (seek /x/? [1 term] ~60; seek partition key [1 term] ~64)";
    check_partition("c.x = 1", 64, &[("/x/?", 60)], both);
    let both = "intersection (seek /x/? [1 term] ~20; seek partition key [1 term] ~10000)";
    check_partition("c.x = 1", 10_000, &[("/x/?", 20)], both);
}

/// Whether a query over a partition of so many documents is answered by the index alone.
fn check_alone(query: &str, documents: u64, known: &[(&str, u64)], expected: bool) {
    let query = astrarium_sql_syntax::parse(query).expect("a query of ours");
    let plan = plan(&query, &Catalog::default(), &Parameters::default()).expect("a plan");
    let index = index_plan(&astrarium_sql_syntax::print(&query));
    let scope = index.indexes.active.partitions((b"a", b"b"), true);
    let known = [known, &[("partition key", documents)]].concat();
    let mut ranges = [KnownRange { statistics: Known(&known), scope: Some(&scope) }];
    let demand = PageDemand {
        rows: ALL,
        index_use: IndexUse::ByCost,
        is_lacking: None,
        is_in_key_order: false,
        needs_documents: false,
    };
    let chosen = now(choose_page(&plan, &index, demand, &mut ranges));
    assert_eq!(chosen.is_index_only(), expected, "{documents} documents, {known:?}");
}

#[test]
fn a_count_reads_entries_only_where_they_cost_less_than_the_documents() {
    let query = "SELECT VALUE COUNT(1) FROM c WHERE c.y >= 0";
    // The entries of the condition are those of all partitions.
    check_alone(query, 50, &[("/y/?", 50_000)], false);
    check_alone(query, 50_000, &[("/y/?", 60_000)], true);
    check_alone("SELECT VALUE COUNT(1) FROM c WHERE c.x = 1", 500, &[("/x/?", 100)], true);
}

#[test]
fn the_smallest_postings_lead() {
    check("c.a = 1", &[("/a/?", 10)], 100, "seek /a/? [1 term]");
    check("c.a IN (1, 2)", &[("/a/?", 10)], 100, "seek /a/? [2 terms]");
    check("c.hidden = 1", &[], 100, "scan");
    check("c.a = 1 AND c.a = 2", &[], 100, "nothing: no document can pass");
    check(
        "c.a = 1 OR c.x = 2",
        &[("/a/?", 10), ("/x/?", 5)],
        100,
        "union (seek /a/? [1 term] ~10; seek /x/? [1 term] ~5)",
    );
    check("c.a = 1 OR c.hidden = 2", &[("/a/?", 10)], 100, "scan");
    // A second term is galloped through, unless nearly every document has it.
    let both = "intersection (seek /x/? [1 term] ~1000; seek /y/? [1 term] ~50000)";
    check("c.y = 1 AND c.x = 2", &[("/y/?", 50_000), ("/x/?", 1_000)], 100, both);
    check("c.y = 1 AND c.x = 2", &[("/y/?", 900_000), ("/x/?", 1_000)], 100, "seek /x/? [1 term]");
}

#[test]
fn ranges_are_put_in_order_where_that_pays() {
    check("c.x > 1", &[("/x/?", 1_000)], 100, "range /x/? [1 range]");
    // Most documents pass: reading in order of insertion until the page is full is cheaper.
    check("c.x > 1", &[("/x/?", 800_000)], 100, "scan");
    check("c.x > 1", &[("/x/?", 800_000)], ALL, "scan");
    check("c.x > 1", &[("/x/?", 200_000)], ALL, "range /x/? [1 range]");
    check("c.x > 1", &[("/x/?", 5_000_000)], ALL, "scan");
    // A range joins a term if the entries that are read cost less than the documents they spare.
    let both = "intersection (seek /x/? [1 term] ~1000; range /y/? [1 range] ~2000)";
    check("c.x = 1 AND c.y > 2", &[("/x/?", 1_000), ("/y/?", 2_000)], 100, both);
    check("c.x = 1 AND c.y > 2", &[("/x/?", 1_000), ("/y/?", 400_000)], 100, "seek /x/? [1 term]");
}

#[test]
fn composite_entries_are_taken_where_they_save() {
    let filter = "c.a = 1 AND c.b > 2";
    let known = |composite| [("/a/?", 200_000), ("/b/?", 500_000), ("/a ASC, /b ASC", composite)];
    // A range is read whole: for all of it, or where it is much smaller.
    check(filter, &known(150_000), ALL, "composite /a ASC, /b ASC [1 range]");
    check(filter, &known(150_000), 100, "seek /a/? [1 term]");
    check(filter, &known(20_000), 100, "composite /a ASC, /b ASC [1 range]");
    // One term is in order already.
    check("c.a = 1 AND c.b = 2", &known(150_000), 100, "composite /a ASC, /b ASC [1 term]");
}

/// Whether a page of so many rows is read in the order of an index, where each of four ranges has so many entries.
fn check_order(query: &str, known: &[(&str, u64)], rows: u64, expected: bool) {
    let plan = index_plan(query);
    let ordered = plan.order.as_ref().expect("an index has the order");
    let range = || KnownRange { statistics: Known(known), scope: None };
    let mut ranges = [range(), range(), range(), range()];
    let demand = OrderDemand { rows, is_lacking: None, index_use: IndexUse::ByCost };
    let found = now(choose_order(&plan, ordered, demand, &mut ranges));
    assert_eq!(found.is_some(), expected, "{query} {known:?}, {rows} rows");
}

#[test]
fn an_order_is_read_from_the_index_where_sorting_costs_more() {
    check_order("SELECT * FROM c ORDER BY c.x", &[], 100, true);
    check_order("SELECT * FROM c WHERE c.y > 1 ORDER BY c.x", &[("/y/?", 800_000)], 100, true);
    // Few documents pass, and they are anywhere in the order.
    check_order("SELECT * FROM c WHERE c.y = 1 ORDER BY c.x", &[("/y/?", 1_000)], 100, false);
    check_order(
        "SELECT * FROM c WHERE c.a = 1 ORDER BY c.b",
        &[("/a/?", 1_000), ("/a ASC, /b ASC", 1_000)],
        100,
        true,
    );
}
