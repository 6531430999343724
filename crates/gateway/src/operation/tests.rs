//! What requests mean, and what their operations need.

use super::*;
use http::{HeaderMap, HeaderName, HeaderValue};

const IS_QUERY: (&str, &str) = (headers::IS_QUERY, "True");
const GO_QUERY: (&str, &str) = (headers::QUERY, "True");
const QUERY_TYPE: (&str, &str) = (headers::CONTENT_TYPE, "application/query+json");
const PLAN: (&str, &str) = (headers::IS_QUERY_PLAN_REQUEST, "True");
const BATCH: (&str, &str) = (headers::IS_BATCH_REQUEST, "True");
const ATOMIC: (&str, &str) = (headers::BATCH_ATOMIC, "True");
const UPSERT: (&str, &str) = (headers::IS_UPSERT, "True");
const TRIGGER: (&str, &str) = (headers::PRE_TRIGGER_INCLUDE, "t");

fn map(sent: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in sent {
        let name: HeaderName = name.parse().expect("a name");
        map.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    map
}

fn operation(verb: &str, target: &str, sent: &[(&str, &str)]) -> Result<Operation, u16> {
    let map = map(sent);
    let address = Address::parse(target, None).expect("an address");
    let method = Method::from_bytes(verb.as_bytes()).expect("a verb");
    Operation::of(&method, &address, Headers::of(&map)).map_err(|failure| failure.status)
}

#[track_caller]
fn check(verb: &str, target: &str, sent: &[(&str, &str)], expected: Result<Action, u16>) {
    let found = operation(verb, target, sent).map(|operation| operation.action);
    assert_eq!(found, expected, "{verb} {target} {sent:?}");
}

#[test]
fn posts_to_items() {
    let docs = "/dbs/d/colls/c/docs";
    check("POST", docs, &[], Ok(Action::Create));
    check("POST", docs, &[(headers::IS_QUERY, "False"), (headers::IS_UPSERT, "")], Ok(Action::Create));
    check("POST", docs, &[UPSERT], Ok(Action::Upsert));
    for query in [IS_QUERY, GO_QUERY, QUERY_TYPE, (headers::CONTENT_TYPE, "Application/SQL")] {
        check("POST", docs, &[query], Ok(Action::Query));
        check("POST", docs, &[query, PLAN], Ok(Action::PlanQuery));
        check("POST", docs, &[query, UPSERT], Err(400));
        check("POST", docs, &[query, BATCH], Err(400));
    }
    check("POST", docs, &[PLAN], Ok(Action::PlanQuery));
    check("POST", docs, &[PLAN, BATCH], Err(400));
    check("POST", docs, &[PLAN, UPSERT], Err(400));
    check("POST", docs, &[BATCH], Ok(Action::Bulk));
    check("POST", docs, &[BATCH, ATOMIC], Ok(Action::Transaction));
    check("POST", docs, &[BATCH, UPSERT], Err(400));
    check("POST", docs, &[ATOMIC], Ok(Action::Create));
    check("POST", docs, &[IS_QUERY, (headers::IS_QUERY, "False")], Err(400));
}

#[test]
fn headers_count_only_where_they_mean_something() {
    let everything = [IS_QUERY, GO_QUERY, QUERY_TYPE, PLAN, BATCH, ATOMIC, UPSERT];
    for sent in [&everything[..], &[IS_QUERY], &[PLAN], &[UPSERT], &[BATCH]] {
        check("POST", "/dbs/d/colls/c/sprocs/p", sent, Ok(Action::Execute));
        check("POST", "/dbs/d/colls/c/operations/partitionkeydelete", sent, Ok(Action::DeletePartition));
        for target in ["/dbs/d", "/dbs/d/colls/c", "/dbs/d/colls/c/docs/1", "/dbs/d/users/u/permissions/p"] {
            check("GET", target, sent, Ok(Action::Read));
            check("DELETE", target, sent, Ok(Action::Delete));
        }
        check("GET", "/dbs/d/colls/c/docs", sent, Ok(Action::ReadFeed));
        check("PUT", "/dbs/d/colls/c", sent, Ok(Action::Replace));
        check("PATCH", "/dbs/d/colls/c/docs/1", sent, Ok(Action::Patch));
        check("POST", "/dbs/d/colls/c", sent, Err(405));
    }
    for target in ["/dbs", "/dbs/d/colls", "/dbs/d/clientencryptionkeys"] {
        check("POST", target, &[PLAN, BATCH, ATOMIC, UPSERT], Ok(Action::Create));
        check("POST", target, &everything, Ok(Action::Query));
    }
    for target in ["/dbs/d/users", "/dbs/d/users/u/permissions", "/dbs/d/colls/c/udfs"] {
        check("POST", target, &[PLAN, BATCH, ATOMIC], Ok(Action::Create));
        check("POST", target, &[PLAN, BATCH, ATOMIC, UPSERT], Ok(Action::Upsert));
        check("POST", target, &[PLAN, BATCH, ATOMIC, IS_QUERY], Ok(Action::Query));
        check("POST", target, &everything, Err(400));
    }
    for target in ["/offers", "/dbs/d/colls/c/pkranges"] {
        check("POST", target, &[PLAN, BATCH, UPSERT], Err(405));
        check("POST", target, &everything, Ok(Action::Query));
    }
}

/// A row of the table: what the operation needs, in the words of the types.
#[track_caller]
fn needs(verb: &str, target: &str, sent: &[(&str, &str)], expected: &str) {
    let Needs { effect, reach, partition } = operation(verb, target, sent).expect("an operation").needs();
    assert_eq!(format!("{effect:?} {reach:?} {partition:?}"), expected, "{verb} {target}");
}

#[test]
fn the_table() {
    needs("GET", "/", &[], "Read Anything Neutral");
    needs("GET", "/dbs", &[], "Read AccountKey Beyond");
    needs("POST", "/dbs", &[IS_QUERY], "Read AccountKey Beyond");
    needs("POST", "/dbs", &[PLAN], "Write AccountKey Beyond");
    needs("GET", "/dbs/d", &[], "Read Database Beyond");
    needs("DELETE", "/dbs/d", &[IS_QUERY], "Write AccountKey Beyond");
    needs("GET", "/offers/uT2L", &[], "Read AccountKey Beyond");
    needs("PUT", "/offers/uT2L", &[], "Write AccountKey Beyond");
    for target in ["/dbs/d/users", "/dbs/d/users/u/permissions"] {
        needs("GET", target, &[], "Read Database Beyond");
        needs("POST", target, &[IS_QUERY], "Read Database Beyond");
        needs("POST", target, &[UPSERT], "Write AccountKey Beyond");
    }
    needs("PUT", "/dbs/d/users/u/permissions/p", &[], "Write AccountKey Beyond");
    needs("POST", "/dbs/d/clientencryptionkeys", &[], "Write Database Beyond");
    needs("POST", "/dbs/d/colls", &[], "Write Database Beyond");
    needs("GET", "/dbs/d/colls", &[], "Read Database Beyond");
    needs("HEAD", "/dbs/d/colls/c", &[], "Read Routing Neutral");
    needs("PUT", "/dbs/d/colls/c", &[], "Write Container Beyond");
    needs("GET", "/dbs/d/colls/c/pkranges", &[], "Read Routing Neutral");
    needs("GET", "/dbs/d/colls/c/schemas", &[], "Read Container Beyond");
    needs("POST", "/dbs/d/colls/c/operations/partitionkeydelete", &[IS_QUERY], "Write Container Within");
    let docs = "/dbs/d/colls/c/docs";
    needs("GET", docs, &[], "Read Container Within");
    needs("POST", docs, &[IS_QUERY], "Read Container Within");
    needs("POST", docs, &[PLAN], "Read Container Neutral");
    needs("POST", docs, &[BATCH], "Write Container Within");
    needs("POST", docs, &[TRIGGER], "Write Container Within");
    let item = "/dbs/d/colls/c/docs/1";
    needs("GET", item, &[TRIGGER], "Read Resource Within");
    needs("PUT", item, &[], "Write Resource Within");
    needs("DELETE", item, &[TRIGGER], "Write Container Within");
    needs("PATCH", item, &[PLAN], "Write Resource Within");
    for script in ["sprocs", "triggers", "udfs"] {
        let feed = format!("/dbs/d/colls/c/{script}");
        needs("GET", &feed, &[], "Read Container Beyond");
        needs("POST", &feed, &[], "Write Container Beyond");
        needs("PUT", &format!("{feed}/s"), &[IS_QUERY], "Write Resource Beyond");
    }
    needs("POST", "/dbs/d/colls/c/sprocs/p", &[IS_QUERY, PLAN], "Write Resource Within");
}
