//! What the explorer asks besides the protocol, and what it is told.

use crate::world::{DOCS, World, assert_refused, halves, of_session};
use astrarium_testkit::{Key, Request};
use serde_json::{Value, json};

#[test]
fn the_overview_has_counts_sizes_and_throughput() {
    let mut world = World::new();
    let shared =
        Request::new("POST", "/dbs").header("x-ms-offer-throughput", "500").body("{\"id\":\"shared\"}");
    world.client.expect(201, &shared);
    let body =
        "{\"id\":\"x\",\"partitionKey\":{\"paths\":[\"/a\",\"/b/c\"],\"kind\":\"MultiHash\",\"version\":2}}";
    world.client.expect(201, &Request::new("POST", "/dbs/shared/colls").body(body));
    let token = world.sign_in(Key::Primary);
    let told = world.told(&token, "GET", "overview", &Value::Null);
    let databases = told["databases"].as_array().unwrap();
    assert_eq!(databases.len(), 2);
    assert_eq!((&databases[0]["id"], &databases[0]["throughput"]), (&json!("d"), &Value::Null));
    let container = &databases[0]["containers"][0];
    assert_eq!(container["documents"], 6);
    assert!(container["bytes"].as_u64().is_some_and(|bytes| bytes > 500), "{container}");
    assert_eq!(container["throughput"], 400);
    assert_eq!(container["partitionKey"], json!(["/pk"]));
    assert_eq!(container["ranges"], 1);
    assert_eq!(databases[1]["throughput"], 500);
    let container = &databases[1]["containers"][0];
    assert_eq!(container["throughput"], Value::Null);
    assert_eq!(container["partitionKey"], json!(["/a", "/b/c"]));
}

#[test]
fn the_schema_tells_paths_types_and_values() {
    let mut world = World::new();
    let odd = "{\"id\":\"odd\",\"pk\":\"a\",\"n\":null,\"a \\\"b\\\"\":{\"<b>\":true}}";
    world.client.expect(201, &Request::new("POST", DOCS).partition_key("[\"a\"]").body(odd));
    let token = world.sign_in(Key::Primary);
    let answer = world.ask(&token, "GET", "schema?database=d&container=c", &Value::Null);
    assert!(answer.text().contains("12345678901234567890"), "numbers keep their digits");
    let told: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(told["sampled"], 7);
    let paths = told["paths"].as_array().unwrap();
    let of = |path: Value| paths.iter().find(|found| found["path"] == path).expect("the path");
    assert_eq!(of(json!(["n"]))["types"], json!({"null": 1, "number": 6}));
    assert_eq!(of(json!(["address", "city"]))["values"], json!(["Rome"]));
    assert_eq!(of(json!(["address"]))["types"], json!({"object": 6}));
    assert_eq!(of(json!(["tags", "[]"]))["types"], json!({"string": 6, "number": 6}));
    assert_eq!(of(json!(["a \"b\"", "<b>"]))["values"], json!([true]));
    assert_eq!(of(json!(["pk"]))["values"], json!(["a", "b"]));
    assert!(paths.iter().all(|path| path["path"][0] != "_ts"));
}

#[test]
fn the_words_are_those_of_the_function_table() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let told = world.told(&token, "GET", "words", &Value::Null);
    let keywords = told["keywords"].as_array().unwrap();
    for word in ["SELECT", "GROUP", "VALUE", "undefined", "true"] {
        assert!(keywords.contains(&json!(word)), "{word}");
    }
    let functions = told["functions"].as_array().unwrap();
    let of = |name: &str| functions.iter().find(|function| function["name"] == name).expect("the function");
    assert!(of("STARTSWITH")["signature"].as_str().unwrap().starts_with("(text: string"));
    assert!(of("COUNT")["help"].as_str().unwrap().len() > 5);
    assert!(of("RRF")["help"].as_str().unwrap().contains("RANK"));
    assert!(functions.iter().all(|function| !function["name"].as_str().unwrap().starts_with('_')));
}

#[test]
fn mistakes_are_told_at_their_places() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let mut check = |sql: &str, places: &[(u64, u64)]| {
        let told = world.told(&token, "POST", "check", &json!({"sql": sql}));
        let errors = told["errors"].as_array().unwrap();
        let place = |error: &Value| (error["start"].as_u64().unwrap(), error["end"].as_u64().unwrap());
        assert_eq!(errors.iter().map(place).collect::<Vec<_>>(), places, "{sql}: {told}");
        assert!(
            errors.iter().all(|error| { error["message"].as_str().is_some_and(|text| !text.is_empty()) })
        );
    };
    check("SELECT * FROM c", &[]);
    check("SELECT TOP @n c.x FROM c WHERE c.y = @y OFFSET @a LIMIT @b", &[(40, 58)]);
    check("SELECT c.x FROM c WHERE c.y = @y OFFSET @a LIMIT @b", &[]);
    check("SELECT FOO(c.x) FROM c", &[(7, 10)]);
    // Places are in units of UTF-16, as editors count.
    check("SELECT '\u{1F600}', FOO(1) FROM c", &[(13, 16)]);
    check("SELECT udf.f(1), '@' FROM c", &[]);
    for body in [json!({}), json!([]), json!({"sql": 1})] {
        assert_refused(400, "BadRequest", &world.ask(&token, "POST", "check", &body));
    }
}

/// The operators of a plan, from the one that gives rows to the one that finds documents.
fn chain(plan: &Value) -> Vec<&Value> {
    let mut found = vec![plan];
    while let Some(below) = found.last().and_then(|node| node["children"].get(0)) {
        found.push(below);
    }
    found
}

#[test]
fn a_plan_is_told_with_and_without_running_it() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let mut body = json!({
        "database": "d", "container": "c",
        "sql": "SELECT DISTINCT c.address.city FROM c JOIN t IN c.tags WHERE c.n = @n AND c.note = 'x'",
        "parameters": [{"name": "@n", "value": 2}],
    });
    let told = world.told(&token, "POST", "explain", &body);
    assert_eq!(told["run"], Value::Null);
    let operators: Vec<&Value> = chain(&told["plan"]).iter().map(|node| &node["operator"]).collect();
    assert_eq!(operators, ["distinct", "project", "join", "filter", "filter", "access"]);
    assert!(chain(&told["plan"]).iter().all(|node| node["actualRows"].is_null()));
    let access = chain(&told["plan"])[5].clone();
    assert_eq!(access["estimatedRows"], 1);
    assert!(access["detail"].as_str().unwrap().contains("/n/?"), "{access}");
    assert!(told["text"].as_str().unwrap().lines().count() == 6);
    body["run"] = json!(true);
    let told = world.told(&token, "POST", "explain", &body);
    let rows: Vec<&Value> = chain(&told["plan"]).iter().map(|node| &node["actualRows"]).collect();
    assert_eq!(rows, [1, 2, 2, 1, 1, 1]);
    assert_eq!((&told["run"]["rows"], &told["run"]["complete"]), (&json!(1), &json!(true)));
    assert!(told["run"]["charge"].as_f64().unwrap() > 1.0);
    body["sql"] = json!("SELECT nothing FROM c");
    let refused = world.ask(&token, "POST", "explain", &body);
    assert_refused(400, "BadRequest", &refused);
    assert_refused(400, "BadRequest", &world.ask(&token, "POST", "explain", &json!({"sql": "SELECT 1"})));
    body["container"] = json!("none");
    assert_refused(404, "NotFound", &world.ask(&token, "POST", "explain", &body));
}

#[test]
fn ranges_tell_what_was_asked_of_them() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let told = world.told(&token, "GET", "ranges?database=d&container=c", &Value::Null);
    let range = &told["ranges"][0];
    assert_eq!(
        (&range["id"], &range["minInclusive"], &range["maxExclusive"]),
        (&json!("0"), &json!(""), &json!("FF"))
    );
    assert_eq!(
        (&range["documents"], &range["requests"], &range["throttled"]),
        (&json!(6), &json!(6), &json!(0))
    );
    let charge = range["charge"].as_f64().unwrap();
    let read = Request::new("GET", &format!("{DOCS}/1")).partition_key("[\"b\"]");
    world.client.expect(200, &read);
    let told = world.told(&token, "GET", "ranges?database=d&container=c", &Value::Null);
    assert_eq!(told["ranges"][0]["requests"], 7);
    assert!(told["ranges"][0]["charge"].as_f64().unwrap() > charge);
    assert_refused(404, "NotFound", &world.ask(&token, "GET", "ranges?database=d&container=x", &Value::Null));
    for path in ["ranges", "schema?database=d", "index-costs?container=c", "schema?database=%FF&container=c"]
    {
        assert_refused(400, "BadRequest", &world.ask(&token, "GET", path, &Value::Null));
    }
}

#[test]
fn the_last_requests_of_all_clients_are_there() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    // Nothing is noted before somebody signs in.
    let before = world.told(&token, "GET", "requests", &Value::Null);
    assert_eq!(before["requests"], json!([]));
    let seen = 0;
    let query = Request::new("POST", DOCS)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "true")
        .header("x-ms-documentdb-query-enablecrosspartition", "true")
        .header("x-ms-activity-id", "an-id-of-mine")
        .header("user-agent", "tester")
        .body("{\"query\":\"SELECT * FROM c WHERE c.large = @p\",\"parameters\":[{\"name\":\"@p\",\"value\":12345678901234567890}]}");
    world.client.expect(200, &query);
    world.client.expect(404, &Request::new("GET", "/dbs/none"));
    let long = query.clone().body(format!(
        "{{\"query\":\"SELECT 1\",\"parameters\":[{{\"name\":\"@x\",\"value\":\"{}\"}}]}}",
        "y".repeat(10_000)
    ));
    world.client.expect(200, &long);
    world.ask(&token, "GET", "wire/dbs", &Value::Null);
    // Probes would push out everything else.
    for probe in ["/alive", "/ready", "/metrics", "/_explorer/", "/_explorer/api/wireless"] {
        world.client.ask(&Request::new("GET", probe));
    }
    let answer = world.ask(&token, "GET", &format!("requests?after={seen}"), &Value::Null);
    assert!(answer.text().contains("12345678901234567890"));
    let told: Value = serde_json::from_slice(&answer.body).unwrap();
    let requests = told["requests"].as_array().unwrap();
    let numbers: Vec<u64> = requests.iter().map(|request| request["number"].as_u64().unwrap()).collect();
    assert_eq!(
        numbers,
        [seen + 1, seen + 2, seen + 3, seen + 4],
        "the explorer's own questions are left out"
    );
    let first = &requests[0];
    assert_eq!((&first["method"], &first["path"]), (&json!("POST"), &json!(DOCS)));
    assert_eq!((&first["status"], &first["activityId"]), (&json!(200), &json!("an-id-of-mine")));
    assert_eq!((&first["userAgent"], &first["explorer"]), (&json!("tester"), &json!(false)));
    assert_eq!(first["sql"], "SELECT * FROM c WHERE c.large = @p");
    assert_eq!(first["parameters"][0]["name"], "@p");
    assert!(first["charge"].as_f64().unwrap() > 1.0 && first["milliseconds"].as_f64().unwrap() > 0.0);
    assert_eq!((&requests[1]["status"], &requests[1]["sql"]), (&json!(404), &Value::Null));
    assert_eq!((&requests[2]["longQuery"], &requests[2]["sql"]), (&json!(true), &Value::Null));
    assert_eq!((&requests[3]["explorer"], &requests[3]["path"]), (&json!(true), &json!("/dbs")));
    // No keys, no documents.
    let (cookie, page_token) = halves(&token);
    for secret in ["sig", "Rome", cookie, page_token] {
        assert!(!answer.text().contains(secret), "{secret}");
    }
    for _ in 0..600 {
        world.client.expect(200, &Request::new("GET", "/dbs"));
    }
    let told = world.told(&token, "GET", "requests", &Value::Null);
    assert_eq!(told["requests"].as_array().unwrap().len(), 500);
    assert_eq!(told["requests"][499]["number"], json!(seen + 604));
}

#[test]
fn what_indexing_costs_is_measured() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let told = world.told(&token, "GET", "index-costs?database=d&container=c", &Value::Null);
    assert_eq!(told["documents"], 6);
    let paths = told["paths"].as_array().unwrap();
    let terms = |path: &str| paths.iter().find(|cost| cost["path"] == path).map(|cost| cost["terms"].clone());
    assert_eq!(terms("/n/?"), Some(json!(6)));
    assert_eq!(terms("/tags/[]/?"), Some(json!(12)));
    assert_eq!(terms("/address/city/?"), Some(json!(6)));
    assert_eq!(terms("/n ASC, /pk DESC"), Some(json!(6)));
    assert_eq!(terms("/_ts/?"), Some(json!(6)));
    assert_eq!(terms("/note/?"), None, "the policy leaves it out");
    let bytes: Vec<u64> = paths.iter().map(|cost| cost["bytes"].as_u64().unwrap()).collect();
    assert!(
        bytes.is_sorted_by(|left, right| left >= right) && bytes.iter().all(|bytes| *bytes > 0),
        "{told}"
    );
}

/// Offers are known by their rids alone.
#[test]
fn throughput_is_read_and_changed_through_the_wire() {
    let mut world = World::new();
    let token = world.sign_in(Key::Primary);
    let offers = world.told(&token, "GET", "wire/offers", &Value::Null);
    let mut offer = offers["Offers"][0].clone();
    let path = format!("wire/offers/{}", offer["_rid"].as_str().unwrap());
    assert_eq!(world.told(&token, "GET", &path, &Value::Null), offer);
    offer["content"]["offerThroughput"] = json!(700);
    world.told(&token, "PUT", &path, &offer);
    let overview = world.told(&token, "GET", "overview", &Value::Null);
    assert_eq!(overview["databases"][0]["containers"][0]["throughput"], 700);
    let reader = world.sign_in(Key::ReadOnly);
    assert_refused(403, "Forbidden", &world.ask(&reader, "PUT", &path, &offer));
}

/// The page cannot merge rows of several ranges, as SDKs do.
#[test]
fn queries_of_the_page_are_answered_whole() {
    let mut world = World::new();
    let body = "{\"id\":\"wide\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
    let wide = Request::new("POST", "/dbs/d/colls").header("x-ms-offer-throughput", "30000").body(body);
    world.client.expect(201, &wide);
    for number in 0..20 {
        let item = format!("{{\"id\":\"{number}\",\"pk\":\"{number}\",\"n\":{number}}}");
        let create = Request::new("POST", "/dbs/d/colls/wide/docs").partition_key(&format!("[\"{number}\"]"));
        world.client.expect(201, &create.body(item));
    }
    let token = world.sign_in(Key::Primary);
    let told = world.told(&token, "GET", "ranges?database=d&container=wide", &Value::Null);
    assert!(told["ranges"].as_array().unwrap().len() > 1);
    let query = |text: &str| {
        of_session(&token, "POST", "wire/dbs/d/colls/wide/docs")
            .header("content-type", "application/query+json")
            .header("x-ms-documentdb-isquery", "true")
            .header("x-ms-documentdb-query-enablecrosspartition", "true")
            .body(json!({"query": text}).to_string())
    };
    let rows = |answer: &astrarium_testkit::http::Response| {
        serde_json::from_slice::<Value>(&answer.body).unwrap()["Documents"].clone()
    };
    let sum = world.client.expect(200, &query("SELECT VALUE SUM(c.n) FROM c"));
    assert_eq!(rows(&sum), json!([190]));
    let ordered = query("SELECT VALUE c.n FROM c ORDER BY c.n DESC").header("x-ms-max-item-count", "3");
    let page = world.client.expect(200, &ordered);
    assert_eq!(rows(&page), json!([19, 18, 17]));
    let continuation = page.header("x-ms-continuation").unwrap().to_owned();
    let next = world.client.expect(200, &ordered.header("x-ms-continuation", &continuation));
    assert_eq!(rows(&next), json!([16, 15, 14]));
}

#[test]
fn a_schema_tells_ranges_and_kinds_of_items() {
    let mut world = World::new();
    for (id, body) in [
        ("x", json!({"id": "x", "pk": "z", "type": "post", "title": "a", "tags": []})),
        ("y", json!({"id": "y", "pk": "z", "type": "post", "title": "b", "tags": [1, 2, 3]})),
    ] {
        let create = Request::new("POST", DOCS).partition_key("[\"z\"]").body(body.to_string());
        assert_eq!(world.client.ask(&create).status, 201, "{id}");
    }
    let token = world.sign_in(Key::ReadOnly);
    let told = world.told(&token, "GET", "schema?database=d&container=c", &Value::Null);
    assert_eq!((&told["sampled"], &told["documents"]), (&json!(8), &json!(8)));
    let paths = told["paths"].as_array().unwrap();
    let of = |path: Value| paths.iter().find(|found| found["path"] == path).expect("the path");
    assert_eq!(of(json!(["n"]))["numbers"], json!([1, 6]));
    assert_eq!(of(json!(["title"]))["texts"], json!(["a", "b"]));
    assert_eq!(of(json!(["tags"]))["lengths"], json!([0, 3]));
    assert_eq!((&of(json!(["tags"]))["numbers"], &of(json!(["n"]))["lengths"]), (&Value::Null, &Value::Null));
    let shapes = told["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 2);
    assert_eq!(shapes[0]["count"], 6);
    assert_eq!(shapes[0]["names"], json!(["address", "id", "large", "n", "note", "pk", "tags"]));
    assert_eq!(shapes[1]["constants"], json!({"pk": "z", "type": "post"}));
    assert_eq!(told["otherShapes"], 0);
}

/// However many there are: a sample comes from all over the container, not from its beginning.
#[test]
fn samples_are_spread() {
    let mut world = World::new();
    for number in 0..1_200 {
        let item = format!("{{\"id\":\"s{number}\",\"pk\":\"k{}\",\"age\":{number}}}", number / 100);
        let create = Request::new("POST", DOCS).partition_key(&format!("[\"k{}\"]", number / 100));
        world.client.expect(201, &create.body(item));
    }
    let token = world.sign_in(Key::Primary);
    let told = world.told(&token, "GET", "schema?database=d&container=c", &Value::Null);
    assert_eq!((&told["sampled"], &told["documents"]), (&json!(300), &json!(1_206)));
    let paths = told["paths"].as_array().unwrap();
    let age = paths.iter().find(|found| found["path"] == json!(["age"])).expect("the path");
    let (least, greatest) = (age["numbers"][0].as_u64().unwrap(), age["numbers"][1].as_u64().unwrap());
    assert!(least < 100 && greatest > 1_100, "{age}");
}

#[test]
fn the_largest_partition_keys_are_told() {
    let mut world = World::new();
    for number in 0..9 {
        let item = format!("{{\"id\":\"s{number}\",\"pk\":\"large\"}}");
        world.client.expect(201, &Request::new("POST", DOCS).partition_key("[\"large\"]").body(item));
    }
    world.client.expect(201, &Request::new("POST", DOCS).partition_key("[{}]").body("{\"id\":\"none\"}"));
    let token = world.sign_in(Key::ReadOnly);
    let told = world.told(&token, "GET", "partition-keys?database=d&container=c", &Value::Null);
    assert_eq!(
        (&told["sampled"], &told["documents"], &told["partial"]),
        (&json!(16), &json!(16), &json!(false))
    );
    let keys = told["keys"].as_array().unwrap();
    let found: Vec<(&Value, &Value)> = keys.iter().map(|key| (&key["key"], &key["documents"])).collect();
    assert_eq!(found[0], (&json!(["large"]), &json!(9)));
    assert_eq!(found.len(), 4);
    assert!(found.contains(&(&json!([{}]), &json!(1))), "{found:?}");
    assert!(keys[0]["bytes"].as_u64().unwrap() >= 9 * 20, "{told}");
    assert_refused(
        404,
        "NotFound",
        &world.ask(&token, "GET", "partition-keys?database=d&container=x", &Value::Null),
    );
}

/// What the page asks for is what an operator asks for, with the same right.
#[test]
fn ranges_are_split_and_merged_by_who_may_write() {
    let mut world = World::new();
    let (writer, reader) = (world.sign_in(Key::Primary), world.sign_in(Key::ReadOnly));
    let body = json!({"database": "d", "container": "c", "range": "0"});
    let refused = world.ask(&reader, "POST", "wire/_admin/split", &body);
    assert!(matches!(refused.status, 401 | 403), "{}", refused.text());
    let ids = |world: &mut World| {
        let told = world.told(&writer, "GET", "ranges?database=d&container=c", &Value::Null);
        assert_eq!(told["pending"], false);
        told["ranges"].as_array().unwrap().iter().map(|range| range["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&mut world), ["0"]);
    world.told(&writer, "POST", "wire/_admin/split", &body);
    world.server.settle();
    let halves = ids(&mut world);
    assert_eq!(halves.len(), 2);
    let body = json!({"database": "d", "container": "c", "ranges": halves});
    let refused = world.ask(&reader, "POST", "wire/_admin/merge", &body);
    assert!(matches!(refused.status, 401 | 403), "{}", refused.text());
    world.told(&writer, "POST", "wire/_admin/merge", &body);
    world.server.settle();
    assert_eq!(ids(&mut world).len(), 1);
}
