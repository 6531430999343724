//! Requests that are not HTTP, or hardly: garbage, oversized heads, pipelines, doubled headers.

use crate::world::{DOCS, World, assert_refusal, create};
use astrarium_testkit::Request;
use astrarium_testkit::http::{Connection, PATIENCE};

/// Sends bytes and reads until the server closes.
#[track_caller]
fn answer_until_close(world: &World, bytes: &[u8]) -> String {
    let mut connection = Connection::open(world.server.address()).unwrap();
    connection.set_patience(PATIENCE).unwrap();
    // The server may have closed before it has seen all of it.
    let _ = connection.send(bytes).and_then(|()| connection.finish_sending());
    let answer = connection.read_to_close().unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn garbage_instead_of_http() {
    let mut world = World::new();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let after_preface = |tail: &[u8]| [preface.as_slice(), tail].concat();
    let attempts: Vec<Vec<u8>> = vec![
        b"\r\n\r\n".to_vec(),
        b"hello\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\n: no name\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\na\x00b: c\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx".to_vec(),
        b"GET \xFF\xFE HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 10_000],
        vec![0xFF; 10_000],
        // A handshake record on a port without TLS.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        // HTTP/2 in clear text: a preface, then frames that are none, too long, of unknown streams.
        preface.clone(),
        after_preface(&[0xFF; 4096]),
        after_preface(&[0; 9]),
        after_preface(b"\xff\xff\xff\x04\x00\x00\x00\x00\x00"),
        after_preface(
            b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x05\x01\x05\x00\x00\x00\x01\xff\xff\xff\xff\xff",
        ),
        after_preface(b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec(),
    ];
    for bytes in attempts {
        let answer = answer_until_close(&world, &bytes);
        let polite = answer.is_empty() || answer.starts_with("HTTP/1.1 4") || !answer.starts_with("HTTP");
        assert!(polite, "{:?}: {answer}", String::from_utf8_lossy(&bytes[..bytes.len().min(80)]));
        world.assert_unchanged();
    }
}

/// HTTP of another century, and a request that names no host: ordinary answers.
#[test]
fn old_http() {
    let world = World::new();
    for head in ["GET /alive HTTP/1.0\r\n\r\n", "GET /alive HTTP/1.1\r\nconnection: close\r\n\r\n"] {
        // Nothing is shut down on this side: a client that does so is taken for one that has gone.
        let mut connection = Connection::open(world.server.address()).unwrap();
        connection.send(head.as_bytes()).unwrap();
        let answer = String::from_utf8_lossy(&connection.read_to_close().unwrap()).into_owned();
        assert!(answer.starts_with("HTTP/1.") && answer.contains(" 200 OK"), "{head:?}: {answer}");
    }
}

#[test]
fn heads_beyond_the_limits() {
    let mut world = World::new();
    let head = |headers: &str| format!("GET /dbs HTTP/1.1\r\nhost: x\r\n{headers}\r\n").into_bytes();
    let long_value = head(&format!("x-long: {}\r\n", "x".repeat(300 << 10)));
    let many: Vec<String> = (0..1_000).map(|number| format!("x-{number}: y\r\n")).collect();
    let endless = [b"GET /dbs HTTP/1.1\r\nx-endless: ".to_vec(), vec![b'x'; 1 << 20]].concat();
    let long_target = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(300 << 10)).into_bytes();
    for bytes in [long_value, head(&many.concat()), endless, long_target] {
        let mut connection = Connection::open(world.server.address()).unwrap();
        // The server may close while we still send.
        let _ = connection.send(&bytes);
        let answer = connection.read_to_close().unwrap_or_default();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    world.assert_unchanged();
    // Session tokens grow: 64 KiB of them are still served.
    let tokens: Vec<String> = (0..4_000).map(|range| format!("{range}:-1#1")).collect();
    let read = Request::new("GET", &format!("{DOCS}/kept")).partition_key("[\"a\"]");
    assert!(tokens.join(",").len() > 32 << 10);
    world.client.expect(200, &read.header("x-ms-session-token", &tokens.join(",")));
}

/// A client that sends before it has read: everything is answered, in order.
#[test]
fn pipelined_requests() {
    let world = World::new();
    let mut bytes = Vec::new();
    for number in 0..50 {
        bytes.extend(world.client.bytes(&create(format!("{{\"id\":\"{number}\",\"pk\":\"a\"}}"))));
        let read = Request::new("GET", &format!("{DOCS}/{number}")).partition_key("[\"a\"]");
        bytes.extend(world.client.bytes(&read));
    }
    bytes.extend(world.client.bytes(&create("{")));
    bytes.extend(world.client.bytes(&Request::new("GET", "/dbs/d")));
    let mut connection = Connection::open(world.server.address()).unwrap();
    connection.send(&bytes).unwrap();
    for number in 0..50 {
        assert_eq!(connection.receive("POST").unwrap().status, 201);
        let read = connection.receive("GET").unwrap();
        assert!(
            read.status == 200 && read.text().starts_with(&format!("{{\"id\":\"{number}\"")),
            "{}",
            read.text()
        );
    }
    assert_refusal(400, "", &connection.receive("POST").unwrap());
    assert_eq!(connection.receive("GET").unwrap().status, 200);
}

/// A refused request with a body does not make its body the next request.
#[test]
fn no_request_is_smuggled_in_a_body() {
    let mut world = World::new();
    let inner = world.client.bytes(&Request::new("DELETE", "/dbs/d"));
    let outer = Request::new("POST", "/dbs/d/colls").body(inner.clone());
    let mut connection = Connection::open(world.server.address()).unwrap();
    assert_refusal(400, "", &connection.exchange("POST", &world.client.bytes(&outer)).unwrap());
    let unsigned = outer.credential(astrarium_testkit::Credential::None);
    let _ = connection.exchange("POST", &world.client.bytes(&unsigned));
    // Both lengths at once are how requests are smuggled past proxies.
    let both =
        Request::new("POST", "/dbs").header("transfer-encoding", "chunked").header("content-length", "4");
    let mut bytes = world.client.bytes(&both);
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes.extend_from_slice(&inner);
    let mut connection = Connection::open(world.server.address()).unwrap();
    let _ = connection.send(&bytes);
    let _ = connection.finish_sending();
    let answer = String::from_utf8_lossy(&connection.read_to_close().unwrap()).into_owned();
    assert!(!answer.contains("204 No Content"), "{answer}");
    world.assert_unchanged();
}

/// Header values that are not UTF-8, or hold what header values cannot.
#[test]
fn binary_headers() {
    let mut world = World::new();
    for name in [
        "x-ms-documentdb-partitionkey",
        "if-match",
        "x-ms-session-token",
        "x-ms-continuation",
        "x-ms-activity-id",
    ] {
        let request = Request::new("GET", &format!("{DOCS}/kept")).header(name, "MARK");
        let bytes = world.client.bytes(&request);
        let place = bytes.windows(4).position(|four| four == b"MARK").unwrap();
        for value in [&b"\xFF\xFE\xFD"[..], b"[\"\xC3\x28\"]", b"\t\t", b"\xE2\x82\xAC"] {
            let bytes = [&bytes[..place], value, &bytes[place + 4..]].concat();
            let mut connection = Connection::open(world.server.address()).unwrap();
            let response = connection.exchange("GET", &bytes).unwrap();
            assert!(
                matches!(response.status, 200 | 304 | 400),
                "{name}: {} {}",
                response.status,
                response.text()
            );
        }
    }
    world.assert_unchanged();
}

/// Values of every header that is a number, a token or JSON, each of them wrong.
#[test]
fn odd_header_values() {
    let mut world = World::new();
    let deep = "[".repeat(50_000);
    let long = "9".repeat(50_000);
    let values = [
        "",
        "-",
        "0",
        "-1",
        "1e400",
        "NaN",
        "null",
        "{}",
        "[]",
        "\"",
        "{\"token\":1}",
        "%00",
        "a,b;c=d",
        &deep,
        &long,
    ];
    for name in [
        "x-ms-documentdb-partitionkey",
        "x-ms-max-item-count",
        "x-ms-continuation",
        "x-ms-session-token",
        "x-ms-documentdb-partitionkeyrangeid",
        "x-ms-start-epk",
        "if-match",
        "if-none-match",
        "x-ms-consistency-level",
        "x-ms-version",
        "x-ms-activity-id",
        "prefer",
        "x-ms-documentdb-expiry-seconds",
        "range",
        "expect",
        "accept-encoding",
    ] {
        for value in values {
            let read = Request::new("GET", DOCS).header(name, value);
            let response = world.server.client().ask(&read);
            assert!(response.status < 500, "{name}: {value:.60}: {} {}", response.status, response.text());
            let write = Request::new("DELETE", &format!("{DOCS}/missing")).header(name, value);
            let response = world.server.client().ask(&write);
            assert!((400..500).contains(&response.status), "{name}: {value:.60}: {}", response.status);
        }
    }
    for name in ["x-ms-offer-throughput", "x-ms-cosmos-offer-autopilot-settings"] {
        for value in values.iter().filter(|value| !value.is_empty()) {
            let make = Request::new("POST", "/dbs").header(name, value).body("{\"id\":\"x\"}");
            assert_refusal(400, "", &world.server.client().ask(&make));
        }
    }
    world.assert_unchanged();
}

/// Heads that two readers could read differently: refused, closed, and what follows on the connection is not read.
#[test]
fn ambiguous_heads() {
    let mut world = World::new();
    let smuggled = String::from_utf8(world.client.bytes(&Request::new("DELETE", "/dbs/d"))).unwrap();
    let good =
        String::from_utf8(world.client.bytes(&Request::new("POST", "/dbs").body("{\"id\":\"x\"}"))).unwrap();
    let (head, body) = good.split_once("\r\n\r\n").unwrap();
    let length = format!("content-length: {}\r\n", body.len());
    let plain = head.replace(&length, "");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let requests = [
        good.replace("\r\n", "\n"),
        format!("{head}\n\n{body}"),
        format!("{head}\r\n\n{body}"),
        format!("{}\r\n\r\n{body}", head.replacen("\r\n", "\n", 1)),
        format!("{head}\r\nHost: astrarium.test:8081\r\n\r\n{body}"),
        format!("{head}\r\nHOST: localhost\r\n\r\n{body}"),
        format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"),
        format!("{plain}\r\nTransfer-Encoding: chunked\r\n{length}\r\n{chunked}"),
        format!("{head}\r\nTransfer-Encoding : chunked\r\n\r\n{chunked}"),
        format!("{head}\r\nTransfer-Encoding: xchunked\r\n\r\n{body}"),
        format!("{plain}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{chunked}"),
        format!("{head}\r\n{length}\r\n{body}"),
        format!("{head}\r\nContent-Length: 0\r\n\r\n{body}"),
        format!("{plain}\r\nContent-Length: +{}\r\n\r\n{body}", body.len()),
    ];
    for request in requests {
        // At once, and byte by byte, where every read ends within a line.
        for piece in [usize::MAX, 1] {
            let mut connection = Connection::open(world.server.address()).unwrap();
            let bytes = format!("{request}{smuggled}").into_bytes();
            for piece in bytes.chunks(piece.min(bytes.len())) {
                // The server may have closed already.
                if connection.send(piece).is_err() {
                    break;
                }
            }
            let answer = String::from_utf8_lossy(&connection.read_to_close().unwrap()).into_owned();
            // Closed with bytes of ours unread, an answer may be lost; there is no other one than the refusal.
            assert!(
                answer.starts_with("HTTP/1.1 400") || (piece == 1 && answer.is_empty()),
                "{request}: {answer}"
            );
            assert_eq!(
                answer.matches("HTTP/1.1").count(),
                usize::from(!answer.is_empty()),
                "{request}: {answer}"
            );
        }
        world.assert_unchanged();
    }
    // The same request in its plain forms.
    let mut connection = Connection::open(world.server.address()).unwrap();
    let response = connection
        .exchange("POST", format!("{plain}\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}").as_bytes());
    assert_eq!(response.unwrap().status, 201);
    assert_eq!(connection.exchange("POST", good.as_bytes()).unwrap().status, 409);
}
