//! `astrarium store`, `status` and `verify --store`: what they tell, what they refuse, and that they tell no password.

use crate::program::{DOCS, Ended, Program, create, refused, run};
use astrarium_postgres_fixture::{Cluster, Installation, Settings};
use astrarium_testkit::{Request, postgres};
use std::sync::atomic::{AtomicBool, Ordering};

/// The address of a store that has no tables, under a user with a password, which the tests' PostgreSQL does not ask for.
fn bare_store(cluster: &Cluster, schema: &str) -> String {
    let address = format!("127.0.0.1:{}", cluster.port());
    format!("postgres://postgres:sesame@{address}/postgres?schema={schema}")
}

#[track_caller]
fn told(arguments: &[&str], fragments: &[&str]) -> Ended {
    let ended = run(arguments);
    assert!(ended.success, "{arguments:?}: {ended:?}");
    check(&ended, fragments);
    ended
}

#[track_caller]
fn check(ended: &Ended, fragments: &[&str]) {
    for fragment in fragments {
        assert!(ended.stdout.contains(fragment), "{fragment:?} in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("sesame") && !ended.stderr.contains("sesame"), "{ended:?}");
}

#[test]
fn stores_are_made_shown_and_added() {
    let Some(cluster) = postgres::cluster() else { return };
    let (first, second) = (bare_store(cluster, "made_1"), bare_store(cluster, "made_2"));
    let bare = run(&["store", "status", &first]);
    assert!(!bare.success);
    check(&bare, &["astrarium store init", "PostgreSQL"]);
    let refusal = refused(&["serve", "--listen", "0", "--store", &first], &["astrarium store init"]);
    check(&refusal, &[]);
    told(&["store", "init", &first], &["tables   made", "account  "]);
    told(&["store", "init", &first], &["there already"]);
    told(&["store", "status", &first], &["format   1\n", "shards   0\n", "warning  fsync is off"]);
    told(&["store", "migrate", &first], &["up to date"]);
    told(&["store", "add", "--store", &first, "second", &second], &["store  second", "place  1"]);
    refused(&["store", "add", "--store", &first, "second", &second], &["there is a store second already"]);
    refused(
        &["store", "add", "--store", &first, "third", &second],
        &["is the account's store second already"],
    );
    let respelt = second.replace("127.0.0.1", "localhost");
    refused(&["store", "add", "--store", &first, "third", &respelt], &["under another address"]);
    let respelt = first.replace("127.0.0.1", "localhost");
    refused(&["store", "add", "--store", &first, "third", &respelt], &["under another address"]);
    // The same store under another address is where it may go; the first one and strangers are not.
    let respelt = second.replace("127.0.0.1", "localhost");
    refused(&["store", "set-url", "--store", &first, "first", &respelt], &["where --store says"]);
    refused(&["store", "set-url", "--store", &first, "third", &respelt], &["there is no store third"]);
    refused(
        &["store", "set-url", "--store", &first, "second", &first],
        &["is not the account's store second"],
    );
    let foreign = postgres::empty_store();
    refused(&["store", "set-url", "--store", &first, "second", &foreign], &["not a store of this account"]);
    told(&["store", "set-url", "--store", &first, "second", &respelt], &["localhost"]);
    told(&["status", "--store", &first], &["localhost", "2 of 2 answer"]);
    refused(&["store", "add", "--store", &first, "third", &foreign], &["belongs to account"]);
    told(&["status", "--store", &first], &["problems  none", "no server is running", "second"]);
    told(&["verify", "--store", &first], &["store second: ", "no problems found"]);
    // One that is not drained stays, and so does the first one; its name and its tables are free for another account's or this one's.
    refused(&["store", "remove", "--store", &first, "third"], &["there is no store third"]);
    refused(&["store", "remove", "--store", &first, "first"], &["stays"]);
    refused(&["store", "remove", "--store", &first, "second"], &["store drain second"]);
    cluster.psql("UPDATE made_1.store SET is_draining = true WHERE id = 1").unwrap();
    told(&["store", "remove", "--store", &first, "second"], &["removed"]);
    told(&["status", "--store", &first], &["1 of 1 answer", "problems  none"]);
    told(&["verify", "--store", &first], &["no problems found"]);
    told(&["store", "add", "--store", &first, "second", &second], &["store  second", "place  2"]);
    cluster.psql("UPDATE made_2.meta SET value = '99' WHERE name = 'format'").unwrap();
    let newer = run(&["status", "--store", &first]);
    assert!(!newer.success);
    check(&newer, &["PROBLEM", "store second has format 99"]);
    refused(&["store", "migrate", &second], &["use a newer program"]);
}

#[test]
fn addresses_that_lead_nowhere_are_refused() {
    let nowhere = "postgres://ada:sesame@127.0.0.1:1/db";
    for command in
        [&["store", "init"][..], &["store", "status"], &["status", "--store"], &["verify", "--store"]]
    {
        let refusal = refused(&[command, &[nowhere]].concat(), &["the store does not answer"]);
        check(&refusal, &[]);
    }
    let refusal = refused(&["store", "status", "mysql://ada:sesame@h/d"], &["postgres://user@host"]);
    check(&refusal, &[]);
    refused(&["verify", "--store", nowhere, "--data", "x"], &["cannot be used with"]);
}

#[test]
fn servers_stores_and_ranges_are_shown() {
    let Some(_) = postgres::cluster() else { return };
    let store = postgres::empty_store();
    let (one, two) = (
        Program::on_store(&store, &["--server-name", "West"]),
        Program::on_store(&store, &["--server-name", "East"]),
    );
    one.furnish();
    for number in 0..5 {
        two.client().expect(201, &create(&number.to_string(), "x"));
    }
    let endpoint = format!("http://{}/", one.address);
    let shown =
        told(&["status", "--store", &store], &["servers   2 alive", "problems  none", "d/c", &endpoint]);
    assert_eq!(
        shown.stdout.lines().filter(|line| line.ends_with("alive")).count(),
        2 + 1,
        "{}",
        shown.stdout
    );
    let json = run(&["status", "--store", &store, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let range = &json["ranges"][0];
    assert_eq!(
        (&range["container"], &range["documents"], &range["lsn"]),
        (&"c".into(), &5.into(), &6.into())
    );
    assert!(range["owner"] == "West" || range["owner"] == "East", "{range}");
    assert_eq!(range["store"], "first");
    assert!(range["unmergedBlocks"].as_u64().unwrap() > 0, "{range}");
    two.stop();
    told(&["status", "--store", &store], &["1 alive", "problems  none"]);
    one.kill();
    let began = std::time::Instant::now();
    let dead = loop {
        let ended = run(&["status", "--store", &store]);
        if !ended.success || began.elapsed().as_secs() > 300 {
            break ended;
        }
    };
    check(&dead, &["DEAD", "server West went without a word", "0 alive"]);
    // A server of the same name takes its place.
    let _again = Program::on_store(&store, &["--server-name", "West"]);
    told(&["status", "--store", &store], &["replaced", "problems  none"]);
}

#[test]
fn a_standby_and_a_store_that_is_down_are_shown() {
    let Ok(installation) = Installation::find() else { return };
    let first = Cluster::start(&installation, Settings::default()).unwrap();
    let second = Cluster::start(&installation, Settings::default()).unwrap();
    told(&["store", "init", &first.url()], &["made"]);
    told(&["store", "add", "--store", &first.url(), "second", &second.url()], &["place  1"]);
    let standby = first.standby().unwrap();
    told(&["status", "--store", &first.url()], &["streaming async", "are asynchronous"]);
    first.make_synchronous(standby.name()).unwrap();
    let shown = told(&["status", "--store", &first.url()], &["streaming sync", "2 of 2 answer"]);
    assert!(!shown.stdout.contains("asynchronous"), "{}", shown.stdout);
    second.stop().unwrap();
    let down = run(&["status", "--store", &first.url()]);
    assert!(!down.success);
    check(&down, &["DOWN", "PROBLEM", "1 of 2 answer", "store second cannot be used"]);
    let unchecked = run(&["verify", "--store", &first.url()]);
    assert!(!unchecked.success);
    check(&unchecked, &["store second: ", "1 problems found"]);
}

#[test]
fn an_account_is_checked_while_it_is_written_to() {
    let Some(cluster) = postgres::cluster() else { return };
    let store = postgres::empty_store();
    let server = Program::on_store(&store, &[]);
    server.furnish();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let mut client = server.client();
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = format!("{writer}-{}", number % 60);
                    let body = format!("{{\"id\":\"{id}\",\"pk\":\"{}\",\"n\":{number}}}", number % 7);
                    let key = format!("[\"{}\"]", number % 7);
                    let upsert = Request::new("POST", DOCS).partition_key(&key).body(body);
                    let upsert = upsert.header("x-ms-documentdb-is-upsert", "true");
                    let status = client.ask(&upsert).status;
                    assert!(matches!(status, 200 | 201 | 410 | 429 | 449), "{status}");
                }
            });
        }
        let (server, is_over) = (&server, &is_over);
        scope.spawn(move || {
            let mut client = server.client();
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let mode = ["consistent", "none"][number % 2];
                let is_automatic = number % 2 == 0;
                let policy = format!("{{\"indexingMode\":\"{mode}\",\"automatic\":{is_automatic}}}");
                let key = "{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}";
                let body = format!("{{\"id\":\"c\",\"partitionKey\":{key},\"indexingPolicy\":{policy}}}");
                client.expect(200, &Request::new("PUT", "/dbs/d/colls/c").body(body));
            }
        });
        for _ in 0..5 {
            told(&["verify", "--store", &store], &["d/c: ", "no problems found"]);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    server.stop();
    let schema = store.rsplit('=').next().unwrap();
    // A document that is gone, and nothing that belongs to it.
    let body = format!("SELECT ctid FROM {schema}.kv WHERE shard > 1 AND space = 1 ORDER BY k LIMIT 1");
    cluster.psql(&format!("DELETE FROM {schema}.kv WHERE ctid = ({body})")).unwrap();
    let damaged = run(&["verify", "--store", &store]);
    assert!(!damaged.success, "{damaged:?}");
    check(&damaged, &["DAMAGED", "change feed has", "problems found"]);
}
