//! Feeds in pages: any page size gives what one page gives, and a page ends at 4 MiB however many items are asked for.

use astrarium_testkit::http::Response;
use astrarium_testkit::json::Json;
use astrarium_testkit::{Client, EngineKind, Options, Request, Server};

const PAGE_BYTES_MAX: usize = 4 << 20;
const DOCS: &str = "/dbs/d/colls/c/docs";

fn furnished(engine: EngineKind) -> Server {
    let server = Server::start(Options::on(engine));
    let mut client = server.client();
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
    let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
    client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
    server
}

fn create(client: &mut Client, id: &str, key: usize, filler: &str) {
    let body = format!("{{\"id\":\"{id}\",\"pk\":{key},\"x\":\"{filler}\"}}");
    client.expect(201, &Request::new("POST", DOCS).partition_key(&format!("[{key}]")).body(body));
}

/// The ids of a page.
fn ids(page: &Response) -> Vec<String> {
    let body = Json::parse(&page.text()).expect("a page is JSON");
    let Some(Json::Array { items, .. }) = body.get("Documents") else { panic!("no Documents in {body}") };
    let ids: Vec<String> =
        items.iter().filter_map(|item| item.get("id")?.as_text().map(str::to_owned)).collect();
    assert_eq!(body.get("_count").map(Json::to_string), Some(ids.len().to_string()));
    assert_eq!(page.header("x-ms-item-count"), Some(ids.len().to_string().as_str()));
    ids
}

/// Follows continuations to the end and gives the pages.
fn pages(client: &mut Client, feed: &Request) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let request = match &token {
            Some(token) => feed.clone().header("x-ms-continuation", token),
            None => feed.clone(),
        };
        let page = client.expect(200, &request);
        assert!(page.body.len() <= PAGE_BYTES_MAX + (64 << 10), "a page of {} bytes", page.body.len());
        pages.push(ids(&page));
        token = page.header("x-ms-continuation").map(str::to_owned);
        match &token {
            None => return pages,
            // Clients keep tokens in headers, and JavaScript allows one kilobyte.
            Some(token) => assert!(!token.is_empty() && token.len() < 1_024 && token.is_ascii()),
        }
        assert!(pages.len() < 10_000, "a feed without end");
    }
}

#[test]
fn any_page_size_gives_the_same() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let mut client = server.client();
        let expected: Vec<String> = (0..120).map(|number| format!("item {}", (number * 7) % 120)).collect();
        for (number, id) in expected.iter().enumerate() {
            create(&mut client, id, number % 3, "");
        }
        for size in ["1", "7", "100", "119", "120", "121", "1000", "-1"] {
            let feed = Request::new("GET", DOCS).header("x-ms-max-item-count", size);
            assert_eq!(pages(&mut client, &feed).concat(), expected, "{}, pages of {size}", engine.name());
            for key in 0..3 {
                let feed = feed.clone().partition_key(&format!("[{key}]"));
                let expected: Vec<String> = expected.iter().skip(key).step_by(3).cloned().collect();
                assert_eq!(pages(&mut client, &feed).concat(), expected, "{}, key {key}", engine.name());
            }
            let bounds = ["", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF"];
            let slices = bounds.windows(2).flat_map(|bounds| {
                let feed = feed.clone().header("x-ms-read-key-type", "EffectivePartitionKeyRange");
                let feed = feed.header("x-ms-start-epk", bounds[0]).header("x-ms-end-epk", bounds[1]);
                pages(&mut client, &feed).concat()
            });
            let mut together: Vec<String> = slices.collect();
            together.sort();
            let mut sorted = expected.clone();
            sorted.sort();
            assert_eq!(together, sorted, "{}, slices, pages of {size}", engine.name());
        }
        // A page has 100 items if nothing is said.
        assert_eq!(ids(&client.expect(200, &Request::new("GET", DOCS))).len(), 100);
    }
}

#[test]
fn a_page_ends_at_four_mebibytes() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    let filler = "x".repeat(1_500_000);
    for number in 0..5 {
        create(&mut client, &number.to_string(), 1, &filler);
    }
    for feed in [Request::new("GET", DOCS), Request::new("GET", DOCS).partition_key("[1]")] {
        let pages = pages(&mut client, &feed.header("x-ms-max-item-count", "-1"));
        assert_eq!(pages.concat(), ["0", "1", "2", "3", "4"]);
        assert!(pages.len() >= 3, "{pages:?}");
    }
}

/// Databases, containers, users and offers page alike.
#[test]
fn feeds_of_the_catalog() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    for number in 0..25 {
        client.expect(201, &Request::new("POST", "/dbs").body(format!("{{\"id\":\"d{number}\"}}")));
        client.expect(201, &Request::new("POST", "/dbs/d/users").body(format!("{{\"id\":\"u{number}\"}}")));
        let container = format!("{{\"id\":\"c{number}\",\"partitionKey\":{{\"paths\":[\"/pk\"]}}}}");
        client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
    }
    for (target, count) in [("/dbs", 26), ("/dbs/d/colls", 26), ("/dbs/d/users", 25), ("/offers", 26)] {
        for size in ["1", "10", "25", "26", "-1"] {
            let mut found = 0;
            let mut token: Option<String> = None;
            loop {
                let feed = Request::new("GET", target).header("x-ms-max-item-count", size);
                let feed = token.iter().fold(feed, |feed, token| feed.header("x-ms-continuation", token));
                let page = client.expect(200, &feed);
                found +=
                    page.header("x-ms-item-count").and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
                token = page.header("x-ms-continuation").map(str::to_owned);
                if token.is_none() {
                    break;
                }
            }
            assert_eq!(found, count, "{target} in pages of {size}");
        }
    }
}

/// Clients want more than nothing of every time of the metrics.
#[test]
fn times_of_queries_are_measured() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    for number in 0..3 {
        create(&mut client, &number.to_string(), number, "x");
    }
    for text in
        ["SELECT * FROM c", "SELECT c.id FROM c WHERE c.pk > 0 ORDER BY c.pk", "SELECT VALUE COUNT(1) FROM c"]
    {
        let query = Request::new("POST", DOCS)
            .header("x-ms-documentdb-isquery", "True")
            .header("x-ms-documentdb-partitionkeyrangeid", "0")
            .header("x-ms-documentdb-populatequerymetrics", "True")
            .body(format!("{{\"query\":\"{text}\"}}"));
        let page = client.expect(200, &query);
        let metrics = page.header("x-ms-documentdb-query-metrics").expect("metrics").to_owned();
        let times: Vec<(&str, f64)> = metrics
            .split(';')
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| name.ends_with("InMs"))
            .map(|(name, value)| (name, value.parse().expect("a number")))
            .collect();
        assert_eq!(times.len(), 11, "{metrics}");
        assert!(times.iter().all(|(_, time)| *time > 0.0), "{metrics}");
    }
}
