//! A client that keeps one connection and one clock; one of several servers keeps a connection to each, and asks them by turns, as
//! behind a balancer.
//!
//! In: [`Request`]s. Out: [`Response`]s. A connection that the server closes is opened anew for the next request; a
//! request is never sent twice, so that a test sees exactly what one sending does.

use crate::http::{Connection, Response};
use crate::request::{Credential, HOST, Key, Request};
use astrarium_env::{Clock, SystemClock};
use std::io;
use std::net::SocketAddr;

/// Sends requests one after another.
pub struct Client {
    servers: Vec<(SocketAddr, Option<Connection>)>,
    /// The server that is asked next.
    next: usize,
    clock: Box<dyn Clock>,
    /// The name that the server is called by.
    host: &'static str,
    /// What the server has for a primary key.
    primary: Key,
}

impl Client {
    /// A client of a server that has this clock.
    pub fn new(address: SocketAddr, clock: Box<dyn Clock>) -> Client {
        Client { servers: vec![(address, None)], next: 0, clock, host: HOST, primary: Key::Primary }
    }

    /// The same client of one more server.
    #[must_use]
    pub fn and_of(mut self, address: SocketAddr) -> Client {
        self.servers.push((address, None));
        self
    }

    /// A client of a server with the machine's clock.
    pub fn of_process(address: SocketAddr) -> Client {
        // A server with the settings of the program does not answer to the name of the tests' own.
        Client { host: "localhost:8081", ..Client::new(address, Box::new(SystemClock)) }
    }

    /// For a server that has this key for its primary one: requests with the primary key are signed with it.
    #[must_use]
    pub fn with_primary(mut self, key: Key) -> Client {
        self.primary = key;
        self
    }

    /// Where it connects to first.
    pub fn address(&self) -> SocketAddr {
        self.servers[0].0
    }

    /// The bytes of a request, signed now.
    pub fn bytes(&self, request: &Request) -> Vec<u8> {
        let now_seconds = self.clock.now_micros() / 1_000_000;
        if self.primary == Key::Primary || request.credential != Credential::Key(Key::Primary) {
            return request.to_bytes(self.host, now_seconds);
        }
        request.clone().credential(Credential::Key(self.primary)).to_bytes(self.host, now_seconds)
    }

    /// Sends a request and reads the response.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        let bytes = self.bytes(request);
        let place = self.next;
        self.next = (place + 1) % self.servers.len();
        let (address, kept) = &mut self.servers[place];
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => Connection::open(*address)?,
        };
        let response = connection.exchange(&request.verb, &bytes)?;
        let closes = response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if !closes {
            *kept = Some(connection);
        }
        Ok(response)
    }

    /// Sends a request that must be answered.
    #[track_caller]
    pub fn ask(&mut self, request: &Request) -> Response {
        match self.send(request) {
            Ok(response) => response,
            Err(error) => panic!("{} {}: {error}", request.verb, request.target),
        }
    }

    /// Sends a request that must be answered with this status.
    #[track_caller]
    pub fn expect(&mut self, status: u16, request: &Request) -> Response {
        let response = self.ask(request);
        let (verb, target) = (&request.verb, &request.target);
        assert_eq!(response.status, status, "{verb} {target}: {}", response.text());
        response
    }
}
