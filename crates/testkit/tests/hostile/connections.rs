//! Connections that are slow, silent, many or cut: they cost nobody but themselves.

use crate::world::{DOCS, World, create};
use astrarium_testkit::http::{Connection, PATIENCE};
use astrarium_testkit::{Credential, EngineKind, Key, Options, Request};
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Short enough that a test can wait for it, long enough for a busy machine.
const IDLE: Duration = Duration::from_secs(3);

fn impatient() -> World {
    let mut options = Options::on(EngineKind::Memory);
    options.limits.idle_timeout = IDLE;
    options.limits.handshake_timeout = IDLE;
    options.body_timeout = IDLE;
    World::with(options)
}

/// Waits for the server to close, and gives what it sent.
fn wait_for_close(connection: &mut Connection) -> io::Result<String> {
    connection.set_patience(PATIENCE)?;
    let answer = connection.read_to_close()?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[track_caller]
fn assert_served(world: &World) {
    world.server.client().expect(200, &Request::new("GET", &format!("{DOCS}/kept")).partition_key("[\"a\"]"));
}

/// One byte at a time: closed at the limit, counted from the first byte of the head, not from the last.
#[test]
fn a_head_that_comes_in_drops() {
    let mut world = impatient();
    let mut connection = Connection::open(world.server.address()).unwrap();
    let bytes = world.client.bytes(&Request::new("GET", "/dbs"));
    let (done, stop) = mpsc::channel::<()>();
    let address = world.server.address();
    let began = Instant::now();
    let dripping = thread::spawn(move || {
        let mut sent = 0;
        for byte in &bytes {
            if connection.send(&[*byte]).is_err() || stop.recv_timeout(Duration::from_millis(100)).is_ok() {
                break;
            }
            sent += 1;
        }
        (sent, bytes.len(), wait_for_close(&mut connection))
    });
    // Others are served meanwhile.
    for _ in 0..5 {
        assert_served(&world);
        thread::sleep(Duration::from_millis(100));
    }
    let (sent, whole, closed) = dripping.join().unwrap();
    drop(done);
    assert!(sent < whole, "{sent} of {whole} bytes were taken in {:?} at {address}", began.elapsed());
    let answer = closed.unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    world.assert_unchanged();
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let world = impatient();
    let mut connection = Connection::open(world.server.address()).unwrap();
    assert_eq!(wait_for_close(&mut connection).unwrap(), "");
}

/// Kept alive between requests, but not for ever.
#[test]
fn a_connection_that_has_asked_and_says_no_more_is_closed() {
    let world = impatient();
    let mut connection = Connection::open(world.server.address()).unwrap();
    let bytes = world.client.bytes(&Request::new("GET", "/dbs"));
    assert_eq!(connection.exchange("GET", &bytes).unwrap().status, 200);
    thread::sleep(IDLE / 10);
    assert_eq!(connection.exchange("GET", &bytes).unwrap().status, 200);
    assert_eq!(wait_for_close(&mut connection).unwrap(), "");
}

/// A body in drops ends in 408, or in a closed connection, and in no item.
#[test]
fn a_body_that_comes_in_drops() {
    let mut world = impatient();
    let mut connection = Connection::open(world.server.address()).unwrap();
    let bytes = world.client.bytes(&create("{\"id\":\"slow\",\"pk\":\"a\"}"));
    let body_at = bytes.len() - 22;
    connection.send(&bytes[..body_at]).unwrap();
    let began = Instant::now();
    for byte in &bytes[body_at..bytes.len() - 1] {
        assert_served(&world);
        if connection.send(&[*byte]).is_err() || began.elapsed() > IDLE * 2 {
            break;
        }
        thread::sleep(Duration::from_millis(150));
    }
    let answer = wait_for_close(&mut connection).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    world.assert_unchanged();
}

/// HTTP/2 in clear text: a preface and then silence is an idle connection like any other.
#[test]
fn a_silent_http2_connection_is_closed() {
    let world = impatient();
    let mut connection = Connection::open(world.server.address()).unwrap();
    connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").unwrap();
    // A ping is sent after the idle time, and its answer is waited for.
    wait_for_close(&mut connection).unwrap();
}

/// Half a preface of HTTP/2 cannot hold a connection open either.
#[test]
fn half_a_preface() {
    let world = impatient();
    let mut connection = Connection::open(world.server.address()).unwrap();
    connection.send(b"PRI * HTTP/2.0\r\n").unwrap();
    wait_for_close(&mut connection).unwrap();
}

/// One connection too many is closed at once; when another ends its place is free.
#[test]
fn the_number_of_connections_is_bounded() {
    let mut options = Options::on(EngineKind::Memory);
    options.limits.connections_max = 10;
    let mut world = World::with(options);
    let bytes = world.client.bytes(&Request::new("GET", "/dbs"));
    // The world's own client holds one.
    let mut held: Vec<Connection> = Vec::new();
    while held.len() < 9 {
        let mut connection = Connection::open(world.server.address()).unwrap();
        assert_eq!(connection.exchange("GET", &bytes).unwrap().status, 200);
        held.push(connection);
    }
    let mut refused = Connection::open(world.server.address()).unwrap();
    assert_eq!(refused.read_to_close().unwrap(), b"");
    drop(held);
    let began = Instant::now();
    loop {
        let mut connection = Connection::open(world.server.address()).unwrap();
        if connection.exchange("GET", &bytes).is_ok_and(|response| response.status == 200) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "places are not given back");
        thread::sleep(Duration::from_millis(20));
    }
    world.client.expect(200, &Request::new("GET", "/dbs"));
}

/// Clients that go away in the middle of anything leave a server that works, and whole writes or none.
#[test]
fn clients_that_vanish() {
    let mut world = World::new();
    let bytes = world.client.bytes(&create("{\"id\":\"vanished\",\"pk\":\"a\"}"));
    for length in 0..bytes.len() {
        let mut connection = Connection::open(world.server.address()).unwrap();
        connection.send(&bytes[..length]).unwrap();
    }
    assert_served(&world);
    world.assert_unchanged();
}

/// Stopping: what is running is answered, idle connections are closed, and it does not take the whole grace time.
#[test]
fn idle_connections_do_not_delay_the_end() {
    let mut options = Options::on(EngineKind::Memory);
    options.limits.shutdown_timeout = PATIENCE * 2;
    let mut world = World::with(options);
    let bytes = world.client.bytes(&Request::new("GET", "/dbs"));
    let mut idle = Connection::open(world.server.address()).unwrap();
    assert_eq!(idle.exchange("GET", &bytes).unwrap().status, 200);
    let _silent = Connection::open(world.server.address()).unwrap();
    let took = world.server.stop();
    assert!(took < PATIENCE, "stopping took {took:?}");
    assert_eq!(idle.read_to_close().unwrap(), b"");
    assert!(Connection::open(world.server.address()).is_err());
}

/// Refusals do not need the body. It is read all the same, or the connection is ended and says so: what is left of a body
/// would be taken for the next request, or break the connection under the client.
#[test]
fn refusals_keep_the_connection() {
    let mut world = World::new();
    let mut connection = Connection::open(world.server.address()).unwrap();
    let bad = [
        create("{}").credential(Credential::None),
        create("{}").credential(Credential::Key(Key::Unknown)),
        Request::new("POST", "/dbs/d/colls/c"),
        Request::new("POST", "/nowhere"),
        Request::new("OPTIONS", DOCS),
        Request::new("GET", "/alive"),
    ];
    for size in [10, 1_000, 70_000, 900_000] {
        for request in bad.iter().cycle().take(60) {
            let bytes = world.client.bytes(&request.clone().body(vec![b'x'; size]));
            let (head, body) = bytes.split_at(bytes.len() - size);
            connection.send(head).unwrap();
            connection.send(body).unwrap();
            let response = connection.receive(&request.verb).unwrap();
            assert!(response.status < 500, "{} {}", request.verb, request.target);
            assert_eq!(response.header("connection"), None, "{} {} {size}", request.verb, request.target);
        }
    }
    let bytes = world.client.bytes(&Request::new("GET", "/dbs"));
    assert_eq!(connection.exchange("GET", &bytes).unwrap().status, 200);
    // Nobody waits for what a stranger only announces, and a client that asks first is not told to send.
    for announced in [
        Request::new("POST", DOCS).header("content-length", "100000000"),
        Request::new("POST", DOCS).header("content-length", "10").header("expect", "100-continue"),
    ] {
        let bytes = world.client.bytes(&announced.credential(Credential::None));
        let response = Connection::open(world.server.address()).unwrap().exchange("POST", &bytes).unwrap();
        assert_eq!((response.status, response.header("connection")), (401, Some("close")));
    }
    world.assert_unchanged();
}
