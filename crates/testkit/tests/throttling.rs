//! Provisioned throughput that is kept to: who is refused, for how long, and that nobody is while it is off.
//!
//! The servers' clock stands until it is moved, so a second's request units are what they are.

#![expect(clippy::unwrap_used, reason = "a test that fails to set up fails")]

use astrarium_testkit::http::Response;
use astrarium_testkit::{Client, EngineKind, Options, Request, Server};
use serde_json::{Value, json};

fn start(throttling: bool) -> Server {
    Server::start(Options { throttling, ..Options::on(EngineKind::Memory) })
}

fn container(client: &mut Client, id: &str, throughput: Option<u32>) {
    let body = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let request = Request::new("POST", "/dbs/d/colls").body(body.to_string());
    let request = match throughput {
        Some(throughput) => request.header("x-ms-offer-throughput", &throughput.to_string()),
        None => request,
    };
    client.expect(201, &request);
}

fn database(client: &mut Client, throughput: Option<u32>) {
    let request = Request::new("POST", "/dbs").body("{\"id\":\"d\"}");
    let request = match throughput {
        Some(throughput) => request.header("x-ms-offer-throughput", &throughput.to_string()),
        None => request,
    };
    client.expect(201, &request);
}

fn creation(container: &str, key: &str, number: usize) -> Request {
    let body = json!({"id": number.to_string(), "pk": key, "text": "x".repeat(60_000)}).to_string();
    Request::new("POST", &format!("/dbs/d/colls/{container}/docs"))
        .partition_key(&format!("[\"{key}\"]"))
        .body(body)
}

fn read(container: &str, key: &str) -> Request {
    Request::new("GET", &format!("/dbs/d/colls/{container}/docs/0")).partition_key(&format!("[\"{key}\"]"))
}

/// Creates items of some 22 RU until one is refused; what they cost, and the refusal.
fn fill(client: &mut Client, container: &str, key: &str, first: usize) -> (f64, Response) {
    let mut charge = 0.0;
    for number in first..first + 1_000 {
        let answer = client.ask(&creation(container, key, number));
        if answer.status == 429 {
            return (charge, answer);
        }
        assert_eq!(answer.status, 201, "{}", answer.text());
        charge += answer.header("x-ms-request-charge").unwrap().parse::<f64>().unwrap();
    }
    panic!("nobody was refused after {charge} RU");
}

fn offers(client: &mut Client) -> Vec<Value> {
    let answer = client.expect(200, &Request::new("GET", "/offers"));
    let body: Value = serde_json::from_str(&answer.text()).unwrap();
    body["Offers"].as_array().unwrap().clone()
}

fn replace(client: &mut Client, offer: &Value, name: &str, value: Value) {
    let mut offer = offer.clone();
    offer["content"][name] = value;
    let target = format!("/offers/{}", offer["_rid"].as_str().unwrap());
    client.expect(200, &Request::new("PUT", &target).body(offer.to_string()));
}

#[test]
fn nobody_is_refused_while_it_is_off() {
    let server = start(false);
    let mut client = server.client();
    database(&mut client, None);
    container(&mut client, "c", None);
    for number in 0..50 {
        client.expect(201, &creation("c", "a", number));
    }
}

#[test]
fn a_container_gives_its_request_units_a_second() {
    let server = start(true);
    let mut client = server.client();
    database(&mut client, None);
    container(&mut client, "c", None);
    container(&mut client, "other", None);
    let (charge, refusal) = fill(&mut client, "c", "a", 0);
    assert!((400.0..425.0).contains(&charge), "{charge}");
    assert_eq!(refusal.header("x-ms-substatus"), Some("3200"));
    assert_eq!(refusal.header("x-ms-request-charge"), Some("0"));
    let body: Value = serde_json::from_str(&refusal.text()).unwrap();
    assert_eq!(body["code"], "TooManyRequests");
    assert!(
        body["message"].as_str().unwrap().contains("Request rate is large. More Request Units may be needed")
    );
    // What was taken beyond has to come in first.
    let wait: f64 = refusal.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
    assert!((wait - (charge - 400.0) / 400.0 * 1_000.0).abs() <= 2.0, "{wait} after {charge}");
    // Others have their own.
    client.expect(404, &read("other", "a"));
    assert_eq!(client.ask(&read("c", "a")).status, 429);
    server.clock().advance_seconds(1);
    client.expect(200, &read("c", "a"));
    let metrics = client.expect(200, &Request::new("GET", "/metrics")).text();
    let line = |name: &str, operation: &str| {
        let is_it =
            |line: &&str| line.starts_with(name) && line.contains(&format!("operation=\"{operation}\""));
        let line = metrics.lines().find(is_it).unwrap_or_else(|| panic!("no {name} in {metrics}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!((line("astrarium_item_request_units_total", "create") - charge).abs() < 0.01);
    assert!((line("astrarium_item_requests_throttled_total", "create") - 1.0).abs() < f64::EPSILON);
    assert!(!metrics.contains("\"c\"") && !metrics.contains("container=\"c"), "no name of a client's");
}

#[test]
fn a_key_range_has_its_share_and_autoscale_its_maximum() {
    let server = start(true);
    let mut client = server.client();
    database(&mut client, None);
    // Two ranges of 6,000: each partition has half.
    container(&mut client, "wide", Some(12_000));
    let (charge, _) = fill(&mut client, "wide", "a", 0);
    assert!((6_000.0..6_025.0).contains(&charge), "{charge}");
    let mut elsewhere = (0..50).map(|number| format!("key {number}"));
    assert!(elsewhere.any(|key| client.ask(&read("wide", &key)).status == 404));
    let body = json!({"id": "scaled", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let request = Request::new("POST", "/dbs/d/colls").body(body.to_string());
    client.expect(201, &request.header("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\":1000}"));
    let (charge, _) = fill(&mut client, "scaled", "a", 0);
    assert!((1_000.0..1_025.0).contains(&charge), "{charge}");
}

#[test]
fn containers_share_what_their_database_has() {
    let server = start(true);
    let mut client = server.client();
    database(&mut client, Some(500));
    container(&mut client, "one", None);
    container(&mut client, "two", None);
    container(&mut client, "own", Some(400));
    let (charge, _) = fill(&mut client, "one", "a", 0);
    assert!((500.0..525.0).contains(&charge), "{charge}");
    assert_eq!(client.ask(&read("two", "a")).status, 429);
    client.expect(404, &read("own", "a"));
}

#[test]
fn an_offer_says_for_itself_whether_it_is_kept_to() {
    let server = start(false);
    let mut client = server.client();
    database(&mut client, None);
    container(&mut client, "c", None);
    container(&mut client, "free", None);
    let all = offers(&mut client);
    replace(&mut client, &all[0], "astrariumThrottling", json!(true));
    assert_eq!(offers(&mut client)[0]["content"]["astrariumThrottling"], json!(true));
    let (charge, _) = fill(&mut client, "c", "a", 0);
    assert!((400.0..425.0).contains(&charge), "{charge}");
    for number in 0..50 {
        client.expect(201, &creation("free", "a", number));
    }
    // More throughput counts at once, and clients that leave our member out leave it as it is.
    replace(&mut client, &all[0], "offerThroughput", json!(1_000));
    let (charge, _) = fill(&mut client, "c", "a", 1_000);
    assert!((1_000.0..1_025.0).contains(&charge), "{charge}");
    replace(&mut client, &all[0], "astrariumThrottling", json!(false));
    client.expect(200, &read("c", "a"));
}

#[test]
fn low_priority_goes_last_and_buckets_are_checked() {
    let server = start(true);
    let mut client = server.client();
    database(&mut client, None);
    container(&mut client, "c", None);
    // More than three quarters of a second's units.
    for number in 0..14 {
        client.expect(201, &creation("c", "a", number));
    }
    let low = read("c", "a").header("x-ms-cosmos-priority-level", "Low");
    assert_eq!(client.ask(&low).status, 429);
    client.expect(200, &read("c", "a").header("x-ms-cosmos-priority-level", "High"));
    client.expect(400, &read("c", "a").header("x-ms-cosmos-priority-level", "Middle"));
    client.expect(200, &read("c", "a").header("x-ms-cosmos-throughput-bucket", "5"));
    client.expect(400, &read("c", "a").header("x-ms-cosmos-throughput-bucket", "6"));
    server.clock().advance_seconds(1);
    client.expect(200, &low);
}

#[test]
fn operations_on_definitions_have_240_a_second() {
    let server = start(true);
    let mut client = server.client();
    database(&mut client, None);
    container(&mut client, "c", None);
    let request = Request::new("GET", "/dbs/d");
    let refused = (0..300).find(|_| client.ask(&request).status == 429);
    // Two were used to make the database and the container.
    assert_eq!(refused, Some(238));
    client.expect(404, &read("c", "a"));
    server.clock().advance_seconds(1);
    client.expect(200, &request);
}
