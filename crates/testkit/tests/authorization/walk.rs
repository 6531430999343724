//! Every route with every verb and every header that could change what it means, for every kind of credential.

use crate::world::{Named, World};
use astrarium_testkit::http::Response;
use astrarium_testkit::{Credential, Key, Request};

type Trick = &'static [(&'static str, &'static str)];

const IS_QUERY: (&str, &str) = ("x-ms-documentdb-isquery", "True");
const GO_QUERY: (&str, &str) = ("x-ms-documentdb-query", "True");
const PLAN: (&str, &str) = ("x-ms-cosmos-is-query-plan-request", "True");
const BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "True");
const ATOMIC: (&str, &str) = ("x-ms-cosmos-batch-atomic", "True");
const UPSERT: (&str, &str) = ("x-ms-documentdb-is-upsert", "True");
const QUERY_TYPE: (&str, &str) = ("content-type", "application/query+json");
const SQL_TYPE: (&str, &str) = ("content-type", "application/sql");
const KEY_A: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"a\"]");
const KEY_B: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"b\"]");
const CROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
const RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "0");

/// What is tried with those who may do nothing at all.
const FEW: &[Trick] = &[&[KEY_A], &[KEY_A, IS_QUERY, QUERY_TYPE], &[KEY_A, PLAN]];

const TRICKS: &[Trick] = &[
    &[],
    &[KEY_A],
    &[KEY_B],
    &[KEY_A, KEY_B],
    &[KEY_A, IS_QUERY],
    &[KEY_B, GO_QUERY, QUERY_TYPE],
    &[KEY_A, SQL_TYPE],
    &[KEY_A, PLAN],
    &[KEY_A, PLAN, IS_QUERY],
    &[KEY_A, BATCH, ATOMIC],
    &[KEY_A, BATCH],
    &[RANGE, BATCH, IS_QUERY],
    &[KEY_A, UPSERT],
    &[KEY_A, UPSERT, IS_QUERY],
    &[IS_QUERY, CROSS],
    &[IS_QUERY, CROSS, RANGE],
    &[RANGE],
    &[KEY_A, RANGE],
    &[
        KEY_A,
        IS_QUERY,
        CROSS,
        RANGE,
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
        ("x-ms-start-epk", ""),
        ("x-ms-end-epk", "FF"),
    ],
    &[
        IS_QUERY,
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
        ("x-ms-start-epk", ""),
        ("x-ms-end-epk", "FF"),
    ],
    &[("x-ms-read-key-type", "EffectivePartitionKeyRange"), ("x-ms-start-epk", "00"), ("x-ms-end-epk", "FF")],
    &[KEY_A, ("x-http-method-override", "GET"), ("x-ms-method", "GET")],
    &[KEY_A, ("x-ms-documentdb-pre-trigger-include", "t")],
    &[KEY_A, ("if-none-match", "*"), ("a-im", "Incremental feed")],
];

/// Destruction comes last, so that the others have something to work on.
const VERBS: [&str; 6] = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"];

/// Every route, by names and by rids; each with a body that would do something there.
fn targets(world: &World) -> Vec<(String, &'static str)> {
    let item = "{\"id\":\"kept\",\"pk\":\"a\",\"changed\":true,\"operations\":[{\"op\":\"set\",\"path\":\"/n\",\"value\":1}]}";
    let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"defaultTtl\":1}";
    let script =
        "{\"id\":\"x\",\"body\":\"function () {}\",\"triggerType\":\"Pre\",\"triggerOperation\":\"All\"}";
    let permission = "{\"id\":\"x\",\"permissionMode\":\"All\",\"resource\":\"dbs/e\"}";
    let mut targets: Vec<(String, &str)> = Vec::new();
    let mut add = |target: &str, body| targets.push((target.to_owned(), body));
    add("/", "{}");
    add("/dbs", "{\"id\":\"x\"}");
    add("/offers", "{}");
    add("/offers/AAAB", "{\"content\":{\"offerThroughput\":500}}");
    add("/_admin/clock", "{\"advanceSeconds\":0}");
    let (d, c, doc) = (&world.rids["d"], &world.rids["d/c"], &world.rids["item"]);
    let other = &world.rids["item b"];
    for database in ["/dbs/d".to_owned(), "/dbs/e".to_owned(), format!("/dbs/{d}")] {
        add(&database, "{\"id\":\"d\"}");
        add(&format!("{database}/colls"), "{\"id\":\"x\",\"partitionKey\":{\"paths\":[\"/pk\"]}}");
        add(&format!("{database}/users"), "{\"id\":\"x\"}");
        add(&format!("{database}/users/u"), "{\"id\":\"u\"}");
        add(&format!("{database}/users/u/permissions"), permission);
        add(&format!("{database}/users/u/permissions/again"), permission);
        add(&format!("{database}/clientencryptionkeys"), "{\"id\":\"x\"}");
        add(&format!("{database}/clientencryptionkeys/k"), "{\"id\":\"k\"}");
    }
    let containers =
        ["/dbs/d/colls/c".to_owned(), "/dbs/d/colls/other".to_owned(), format!("/dbs/{d}/colls/{c}")];
    for path in containers {
        for (below, body) in [
            ("/docs", item),
            ("/docs/kept", item),
            ("/docs/kept/attachments", "{\"id\":\"x\"}"),
            ("/sprocs", script),
            ("/sprocs/p", script),
            ("/sprocs/teller", "[]"),
            ("/triggers", script),
            ("/triggers/t", script),
            ("/udfs", script),
            ("/udfs/f", script),
            ("/pkranges", "{}"),
            ("/pkranges/0", "{}"),
            ("/conflicts", "{}"),
            ("/conflicts/x", "{}"),
            ("/schemas", "{}"),
            ("/operations/partitionkeydelete", ""),
            ("", container),
        ] {
            add(&format!("{path}{below}"), body);
        }
    }
    add("/dbs/e/colls/c/docs/kept", item);
    add(&format!("/dbs/{d}/colls/{c}/docs/{doc}"), item);
    add(&format!("/dbs/{d}/colls/{c}/docs/{other}"), item);
    targets
}

/// The body that a trick asks for; otherwise what the route takes.
fn body(trick: Trick, usual: &str) -> String {
    let has = |header: (&str, &str)| trick.contains(&header);
    if has(BATCH) {
        return "[{\"operationType\":\"Upsert\",\"partitionKey\":\"[\\\"a\\\"]\",\"resourceBody\":{\"id\":\"n\",\"pk\":\"a\"}},\
                {\"operationType\":\"Upsert\",\"partitionKey\":\"[\\\"b\\\"]\",\"resourceBody\":{\"id\":\"n\",\"pk\":\"b\"}},\
                {\"operationType\":\"Read\",\"id\":\"kept\",\"partitionKey\":\"[\\\"b\\\"]\"}]"
            .to_owned();
    }
    if has(SQL_TYPE) {
        return "SELECT * FROM c".to_owned();
    }
    if has(IS_QUERY) || has(GO_QUERY) || has(PLAN) {
        // Also what the route takes, for those that go by it.
        let rest = usual.strip_prefix('{').unwrap_or("}");
        let comma = if rest == "}" { "" } else { "," };
        return format!("{{\"query\":\"SELECT * FROM c\"{comma}{rest}");
    }
    usual.to_owned()
}

/// Sends everything with a credential, and gives every answer to a check.
fn walk(
    world: &mut World,
    (name, credential): &Named,
    tricks: &[Trick],
    mut check: impl FnMut(&str, &Response),
) {
    let mut client = world.server.client();
    for (target, usual) in targets(world) {
        for verb in VERBS {
            for trick in tricks {
                let mut request = Request::new(verb, &target).credential(credential.clone());
                for (header, value) in *trick {
                    request = request.header(header, value);
                }
                let response = client.ask(&request.body(body(trick, usual)));
                let what = format!("{name}: {verb} {target} {trick:?}");
                assert!(response.status < 500, "{what}: {}", response.text());
                let token = response.text().contains("\"_token\"");
                assert!(!token, "{what} shows tokens: {}", response.text());
                check(&what, &response);
            }
        }
    }
}

/// Fails if an answer has a mark of a document that the sender may not read.
fn assert_marks(what: &str, response: &Response, allowed: &[&str]) {
    let text = response.text();
    for mark in ["d-c-a", "d-c-b", "d-other-a", "d-other-b", "e-c-a", "e-c-b"] {
        assert!(
            allowed.contains(&mark) || !text.contains(&format!("mark-{mark}")),
            "{what} tells of {mark}: {text}"
        );
    }
}

#[test]
fn strangers_learn_and_change_nothing() {
    let mut world = World::new();
    let strangers = world.strangers();
    let before = world.state();
    for stranger in &strangers {
        walk(&mut world, stranger, FEW, |what, response| {
            assert!(matches!(response.status, 401 | 403), "{what}: {} {}", response.status, response.text());
        });
        assert_eq!(world.state(), before, "{}", stranger.0);
    }
}

#[test]
fn who_may_read_changes_nothing() {
    let mut world = World::new();
    world.strangers();
    let readers: [(Named, &[&str]); 6] = [
        (
            ("a read-only key", Credential::Key(Key::ReadOnly)),
            &["d-c-a", "d-c-b", "d-other-a", "d-other-b", "e-c-a", "e-c-b"],
        ),
        (
            ("a Read token of a database", world.grant("u", "1", "Read", "dbs/d", "")),
            &["d-c-a", "d-c-b", "d-other-a", "d-other-b"],
        ),
        (
            ("a Read token of a container", world.grant("u", "2", "Read", "dbs/d/colls/c", "")),
            &["d-c-a", "d-c-b"],
        ),
        (
            ("a Read token of a partition", world.grant("u", "3", "Read", "dbs/d/colls/c", "[\"a\"]")),
            &["d-c-a"],
        ),
        (
            ("a Read token of a database's partition", world.grant("u", "4", "Read", "dbs/d", "\"a\"")),
            &["d-c-a", "d-other-a"],
        ),
        (
            ("a Read token of an item", world.grant("u", "5", "Read", "dbs/d/colls/c/docs/kept", "[\"a\"]")),
            &["d-c-a"],
        ),
    ];
    let before = world.state();
    for (reader, marks) in &readers {
        let mut seen = Vec::new();
        walk(&mut world, reader, TRICKS, |what, response| {
            assert_marks(what, response, marks);
            seen.push(response.text());
        });
        assert_eq!(world.state(), before, "{}", reader.0);
        // What it may read, it did read: otherwise the walk would prove nothing.
        for mark in *marks {
            let mark = format!("mark-{mark}");
            assert!(seen.iter().any(|text| text.contains(&mark)), "{} never saw {mark}", reader.0);
        }
    }
}

/// A permitted resource and partition key, the part of the account that it may change, the marks that it may see, and what of
/// that part it may not change.
type Scope = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

/// Tokens that may write: whatever they change lies in what they are for, and they see no more than that.
#[test]
fn who_may_write_stays_inside() {
    let container = "/dbs/d/colls/c";
    let cases: [Scope; 5] = [
        ("dbs/d", "", "/dbs/d/", &["d-c-a", "d-c-b", "d-other-a", "d-other-b"], &["/dbs/d/users"]),
        ("dbs/d/colls/c", "", container, &["d-c-a", "d-c-b"], &[]),
        ("dbs/d/colls/c", "[\"a\"]", "/dbs/d/colls/c/docs a", &["d-c-a"], &[]),
        ("dbs/d/colls/c/docs/kept", "[\"a\"]", "/dbs/d/colls/c/docs a", &["d-c-a"], &[]),
        ("dbs/d/colls/c/sprocs/p", "[\"a\"]", "/dbs/d/colls/c/docs a", &[], &[]),
    ];
    for (resource, key, inside, marks, never) in cases {
        let mut world = World::new();
        world.strangers();
        let holder = ("an All token", world.grant("u", "h", "All", resource, key));
        let before = world.state();
        walk(&mut world, &holder, TRICKS, |what, response| {
            assert_marks(&format!("{what} for {resource} {key}"), response, marks);
        });
        let mut changed = 0;
        for (part, now) in world.state() {
            let same = before.get(&part) == Some(&now);
            changed += usize::from(!same);
            // The lists of containers and offers change with what a token of the database or the container may do.
            let listed = key.is_empty() && matches!(part.as_str(), "/dbs/d/colls" | "/offers");
            let may =
                (part.starts_with(inside) || listed) && !never.iter().any(|never| part.starts_with(never));
            assert!(same || may, "{resource} {key} changed {part}: {now}");
        }
        assert!(changed > 0, "{resource} {key} changed nothing at all");
    }
}
