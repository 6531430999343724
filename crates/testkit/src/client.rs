//! A client that keeps one connection and one clock.
//!
//! In: [`Request`]s. Out: [`Response`]s. A connection that the server closes is opened anew for the next request; a
//! request is never sent twice, so that a test sees exactly what one sending does.

use crate::http::{Connection, Response};
use crate::request::{HOST, Request};
use astrarium_env::{Clock, SystemClock};
use std::io;
use std::net::SocketAddr;

/// Sends requests one after another.
pub struct Client {
    address: SocketAddr,
    clock: Box<dyn Clock>,
    connection: Option<Connection>,
    /// The name that the server is called by.
    host: &'static str,
}

impl Client {
    /// A client of a server that has this clock.
    pub fn new(address: SocketAddr, clock: Box<dyn Clock>) -> Client {
        Client { address, clock, connection: None, host: HOST }
    }

    /// A client of a server with the machine's clock.
    pub fn of_process(address: SocketAddr) -> Client {
        // A server with the settings of the program does not answer to the name of the tests' own.
        Client { host: "localhost:8081", ..Client::new(address, Box::new(SystemClock)) }
    }

    /// Where it connects to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bytes of a request, signed now.
    pub fn bytes(&self, request: &Request) -> Vec<u8> {
        request.to_bytes(self.host, self.clock.now_micros() / 1_000_000)
    }

    /// Sends a request and reads the response.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        let bytes = self.bytes(request);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address)?,
        };
        let response = connection.exchange(&request.verb, &bytes)?;
        let closes = response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if !closes {
            self.connection = Some(connection);
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
