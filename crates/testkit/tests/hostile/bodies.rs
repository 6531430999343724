//! Bodies of every size and shape: exactly at the limits and one beyond.

use crate::world::{World, create};
use astrarium_testkit::Request;
use astrarium_testkit::http::Connection;

const ITEM_BYTES_MAX: usize = 2 << 20;

/// An item whose stored text has exactly this many bytes.
fn item_of(bytes: usize) -> String {
    let frame = "{\"id\":\"big\",\"pk\":\"a\",\"x\":\"\"}".len();
    format!("{{\"id\":\"big\",\"pk\":\"a\",\"x\":\"{}\"}}", "x".repeat(bytes - frame))
}

fn nested(depth: usize, open: &str, close: &str) -> String {
    // The item itself is the first level.
    let inner = depth - 1;
    format!("{{\"id\":\"deep\",\"pk\":\"a\",\"x\":{}1{}}}", open.repeat(inner), close.repeat(inner))
}

#[test]
fn the_largest_item_and_one_byte_more() {
    let mut world = World::new();
    world.refused(
        413,
        "Message: {\"Errors\":[\"Request size is too large\"]}\r\n",
        &create(item_of(ITEM_BYTES_MAX + 1)),
    );
    world.assert_unchanged();
    world.client.expect(201, &create(item_of(ITEM_BYTES_MAX)));
    let read = Request::new("GET", "/dbs/d/colls/c/docs/big").partition_key("[\"a\"]");
    let body = world.client.expect(200, &read).text();
    assert!(body.starts_with(item_of(ITEM_BYTES_MAX).trim_end_matches('}')));
    let replace = Request::new("PUT", "/dbs/d/colls/c/docs/big").partition_key("[\"a\"]");
    world.refused(413, "too large", &replace.body(item_of(ITEM_BYTES_MAX + 1)));
    assert_eq!(world.client.expect(200, &read).text(), body);
}

/// The limit is of what is stored: spaces and system properties do not count.
#[test]
fn what_is_not_stored_does_not_count() {
    let mut world = World::new();
    let padded = item_of(ITEM_BYTES_MAX - 100).replacen('{', &format!("{{{}", " ".repeat(10_000)), 1);
    let padded = padded.replacen("\"id\"", &format!("\"_self\":\"{}\",\"id\"", "y".repeat(10_000)), 1);
    assert!(padded.len() > ITEM_BYTES_MAX);
    world.client.expect(201, &create(padded));
}

/// Beyond the limit of a request nothing is read, however the length is announced.
#[test]
fn bodies_beyond_the_limit_of_a_request() {
    let mut world = World::new();
    let body = " ".repeat((4 << 20) + 1);
    let mut connection = Connection::open(world.server.address()).unwrap();
    let bytes = world.client.bytes(&create(body.clone()));
    let response = connection.exchange("POST", &bytes).unwrap();
    crate::world::assert_refusal(413, "too large", &response);

    let mut chunked = create(Vec::new()).header("transfer-encoding", "chunked");
    chunked.body = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes();
    let mut connection = Connection::open(world.server.address()).unwrap();
    let response = connection.exchange("POST", &world.client.bytes(&chunked)).unwrap();
    crate::world::assert_refusal(413, "too large", &response);

    // A length that nobody could send is refused without waiting for it.
    let claimed = create(Vec::new()).header("content-length", "99999999999");
    let mut connection = Connection::open(world.server.address()).unwrap();
    let response = connection.exchange("POST", &world.client.bytes(&claimed)).unwrap();
    crate::world::assert_refusal(413, "too large", &response);
    world.assert_unchanged();
}

#[test]
fn nesting() {
    let mut world = World::new();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        world.refused(400, "", &create(nested(129, open, close)));
        world.refused(400, "", &create(nested(100_000, open, close)));
        // Never closed: a parser that recurses would not live to see the end.
        world.refused(
            400,
            "",
            &create(format!("{{\"id\":\"deep\",\"pk\":\"a\",\"x\":{}", open.repeat(400_000))),
        );
        world.assert_unchanged();
        world.client.expect(201, &create(nested(128, open, close)));
        let read = Request::new("GET", "/dbs/d/colls/c/docs/deep").partition_key("[\"a\"]");
        assert!(world.client.expect(200, &read).text().contains(&open.repeat(127)));
        world
            .client
            .expect(204, &Request::new("DELETE", "/dbs/d/colls/c/docs/deep").partition_key("[\"a\"]"));
    }
}

/// Catalog bodies have the same limits: they are read by another road.
#[test]
fn nesting_and_size_of_definitions() {
    let mut world = World::new();
    for target in
        ["/dbs", "/dbs/d/colls", "/dbs/d/users", "/dbs/d/colls/c/sprocs", "/dbs/d/clientencryptionkeys"]
    {
        let deep = format!("{{\"id\":\"x\",\"y\":{}", "[".repeat(400_000));
        world.refused(400, "", &Request::new("POST", target).body(deep));
        let name = format!("{{\"id\":\"{}\"}}", "x".repeat(3 << 20));
        world.refused(400, "", &Request::new("POST", target).body(name));
        let number = "{\"id\":\"x\",\"y\":1e400}";
        world.refused(400, "", &Request::new("POST", target).body(number));
        world.refused(400, "", &Request::new("POST", target).body(&b"{\"id\":\"\xFF\"}"[..]));
        world.refused(400, "", &Request::new("POST", target));
    }
    let script = format!("{{\"id\":\"s\",\"body\":\"{}\"}}", "x".repeat((2 << 20) + 1));
    world.refused(413, "too large", &Request::new("POST", "/dbs/d/colls/c/sprocs").body(script));
    let paths: Vec<String> = (0..20_000).map(|number| format!("{{\"path\":\"/p{number}/?\"}}")).collect();
    let policy = format!(
        "{{\"id\":\"x\",\"partitionKey\":{{\"paths\":[\"/pk\"]}},\"indexingPolicy\":{{\"excludedPaths\":[{}]}}}}",
        paths.join(",")
    );
    world.refused(400, "Too many", &Request::new("POST", "/dbs/d/colls").body(policy));
    world.assert_unchanged();
}

/// A body that ends before its announced length, and one that is cut within a character.
#[test]
fn truncated_bodies() {
    let mut world = World::new();
    let whole = world.client.bytes(&create("{\"id\":\"1\",\"pk\":\"a\"}"));
    for missing in [1, 5, 19] {
        let mut connection = Connection::open(world.server.address()).unwrap();
        connection.send(&whole[..whole.len() - missing]).unwrap();
        connection.finish_sending().unwrap();
        // An answer or none: the client is gone. What counts is that nothing is stored.
        connection.read_to_close().unwrap();
    }
    world.refused(400, "", &create(&b"{\"id\":\"1\",\"pk\":\"a\",\"x\":\"\xE2\x82"[..]));
    world.refused(400, "", &create(&b"\xEF\xBB\xBF{\"id\":\"1\",\"pk\":\"a\"}"[..]));
    world.assert_unchanged();
}

/// Chunks that are no chunks.
#[test]
fn malformed_chunks() {
    let mut world = World::new();
    for chunks in
        ["zz\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n{}", "2\r\n{}garbage"]
    {
        let request = create(chunks).header("transfer-encoding", "chunked");
        let mut connection = Connection::open(world.server.address()).unwrap();
        // The server may close at the first wrong byte.
        let _ = connection.send(&world.client.bytes(&request)).and_then(|()| connection.finish_sending());
        let answer = String::from_utf8_lossy(&connection.read_to_close().unwrap()).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{chunks:?}: {answer}");
    }
    world.assert_unchanged();
}

/// Numbers at the edges, through a write and a read, with their spelling.
#[test]
fn numbers_keep_their_spelling() {
    let mut world = World::new();
    let spellings = [
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1E+2",
        "1e2",
        "1.50",
        "12345678901234567890",
        "123456789012345678901234567890",
        "9007199254740993",
        "1.7976931348623157e308",
        "5e-324",
        "1e-400",
        "0.1e1",
        "-1E-1",
    ];
    let members: Vec<String> =
        spellings.iter().enumerate().map(|(index, text)| format!("\"n{index}\":{text}")).collect();
    let members = members.join(",");
    world.client.expect(201, &create(format!("{{\"id\":\"n\",\"pk\":\"a\",{members}}}")));
    let read = Request::new("GET", "/dbs/d/colls/c/docs/n").partition_key("[\"a\"]");
    assert!(world.client.expect(200, &read).text().contains(&members));
    for wrong in [
        "1e400",
        "-1e400",
        "1e99999999999",
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "0x10",
        "NaN",
        "Infinity",
        "--1",
        "1_000",
    ] {
        world.refused(400, "", &create(format!("{{\"id\":\"m\",\"pk\":\"a\",\"n\":{wrong}}}")));
    }
    world.client.expect(404, &Request::new("GET", "/dbs/d/colls/c/docs/m").partition_key("[\"a\"]"));
}

/// Duplicate names at every level: the last counts, also for the id and the partition key.
#[test]
fn duplicate_names() {
    let mut world = World::new();
    let many: Vec<String> = (0..10_000).map(|number| format!("\"n\":{number}")).collect();
    let body = format!("{{\"id\":\"first\",{},\"pk\":\"b\",\"pk\":\"a\",\"id\":\"last\"}}", many.join(","));
    world.client.expect(201, &create(body));
    let read = Request::new("GET", "/dbs/d/colls/c/docs/last").partition_key("[\"a\"]");
    let text = world.client.expect(200, &read).text();
    assert_eq!(text.matches("\"n\":").count(), 1, "{text}");
    assert!(text.contains("\"n\":9999"), "{text}");
    world.client.expect(404, &Request::new("GET", "/dbs/d/colls/c/docs/first").partition_key("[\"a\"]"));
}

/// The binary form of JSON that the Rust SDK sends: cut at every byte, with lengths that lie, nested without end.
#[test]
fn binary_bodies() {
    let mut world = World::new();
    let whole = b"\x80\xED\x0D\x03\x82id\x81b\x82pk\x81a\x81n\xD1";
    let starts = (1..whole.len()).map(|length| whole[..length].to_vec());
    let lies: [&[u8]; 9] = [
        b"\x80",
        b"\x80\xED\xFF\x03\x82id\x81b",
        b"\x80\xEF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x82id\x81b",
        b"\x80\xED\x05\xFF\x82id\x81b",
        b"\x80\xC2\xFF\xFF\xFF\x7Fx",
        b"\x80\xED\x05\x01\x82\xFF\xFE\x81b",
        b"\x80\xED\x04\x01\xD1\x82id",
        b"\x80\x81x",
        b"\x80\xED\x05\x01\x82id\xC3\x00",
    ];
    let deep = [vec![0x80], vec![0xE1; 300_000], vec![0xD1]].concat();
    for body in starts.chain(lies.map(<[u8]>::to_vec)).chain([deep]) {
        world.refused(400, "", &create(body));
    }
    world.assert_unchanged();
    world.client.expect(201, &create(&whole[..]));
    let read = Request::new("GET", "/dbs/d/colls/c/docs/b").partition_key("[\"a\"]");
    let text = world.client.expect(200, &read).text();
    assert!(text.starts_with("{\"id\":\"b\",\"pk\":\"a\",\"n\":false,"), "{text}");
}
