//! Stands in for the server's program where tests of clients start one: it starts a PostgreSQL, three servers over it, and listens where
//! the one server was to listen, giving each connection to the next of the three.
//!
//! `ASTRARIUM_SERVER` names the program; arguments are those of `astrarium serve`. What says where data is kept is left out. It ends as a
//! killed server does, and leaves nothing behind.

use astrarium_testkit::postgres;
use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const SERVER_COUNT: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let program = std::env::var("ASTRARIUM_SERVER")?;
    let (listen, rest) = understood(std::env::args().skip(1).collect());
    if postgres::cluster().is_none() {
        return Err("PostgreSQL is missing".into());
    }
    let store = postgres::empty_store();
    let mut servers = Vec::new();
    for number in 0..SERVER_COUNT {
        servers.push(start(&program, &store, number, &rest)?);
    }
    let addresses: Vec<SocketAddr> = servers.iter().map(|(_, address)| *address).collect();
    let listener = TcpListener::bind(&listen)?;
    println!("{SERVER_COUNT} servers over one store, by turns at http://{}/", listener.local_addr()?);
    for (stream, address) in listener.incoming().zip(addresses.iter().cycle()) {
        let (Ok(client), Ok(server)) = (stream, TcpStream::connect(address)) else { continue };
        pass(client, server)?;
    }
    Ok(())
}

/// Where to listen, and what else was said.
fn understood(arguments: Vec<String>) -> (String, Vec<String>) {
    let (mut listen, mut rest) = ("127.0.0.1:8081".to_owned(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "serve" | "--memory" => {}
            "--listen" => listen = arguments.next().unwrap_or(listen),
            "--data" => drop(arguments.next()),
            _ => rest.push(argument),
        }
    }
    (listen, rest)
}

/// A server that dies with this program, and where it listens.
fn start(
    program: &str,
    store: &str,
    number: usize,
    rest: &[String],
) -> Result<(Child, SocketAddr), Box<dyn Error>> {
    let mut command = Command::new("setpriv");
    command.args([
        "--pdeathsig",
        "KILL",
        "--",
        program,
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        store,
    ]);
    command.args(["--server-name", &format!("server-{number}")]).args(rest);
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let address = line.split("://").nth(1).and_then(|rest| rest.split(['/', ';', ' ']).next());
    let address = address.and_then(|address| address.parse().ok());
    Ok((server, address.ok_or_else(|| format!("a server that says {line:?}"))?))
}

/// Passes bytes both ways until both ends are done.
fn pass(client: TcpStream, server: TcpStream) -> std::io::Result<()> {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client, server) = (Arc::new(client), Arc::new(server));
    for (from, to) in [(Arc::clone(&client), Arc::clone(&server)), (server, client)] {
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            // An end that breaks is an end.
            let _ = std::io::copy(&mut &*from, &mut &*to);
            let _ = to.shutdown(Shutdown::Write);
        })?;
    }
    Ok(())
}
