//! Stands in for the server's program where tests of clients start one: it starts a PostgreSQL, three servers over it, and listens where
//! the one server was to listen. Each request in plain HTTP/1.1 goes to the next of the three, whatever connection it comes on, so that
//! no client stays with one server. What it cannot read (TLS, HTTP/2) goes to the next one by connections.
//!
//! `ASTRARIUM_SERVER` names the program; arguments are those of `astrarium serve`. What says where data is kept is left out. The servers
//! have one certificate. It ends as a killed server does, and leaves nothing behind.

use astrarium_gateway::certificate::Certificate;
use astrarium_testkit::postgres;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SERVER_COUNT: usize = 3;
/// The first byte of a connection that begins with TLS.
const TLS_HANDSHAKE: u8 = 0x16;
/// What HTTP/2 without TLS begins with, as far as no method of HTTP/1.1 does.
const HTTP2: &[u8] = b"PRI";

/// The servers, by turns.
struct Turns {
    addresses: Vec<SocketAddr>,
    next: AtomicUsize,
}

impl Turns {
    fn next(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % self.addresses.len()
    }

    fn connect(&self, number: usize) -> io::Result<TcpStream> {
        let server = TcpStream::connect(self.addresses[number])?;
        server.set_nodelay(true)?;
        Ok(server)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let program = std::env::var("ASTRARIUM_SERVER")?;
    let (listen, rest) = understood(std::env::args().skip(1).collect());
    if postgres::cluster().is_none() {
        return Err("PostgreSQL is missing".into());
    }
    let store = postgres::empty_store();
    let folder = tempfile::tempdir()?;
    let rest = [certificate(folder.path())?, rest].concat();
    let mut servers = Vec::new();
    for number in 0..SERVER_COUNT {
        servers.push(start(&program, &store, number, &rest)?);
    }
    // All of them have read it, and a program that is killed removes nothing.
    folder.close()?;
    let addresses = servers.iter().map(|(_, address)| *address).collect();
    let turns = Arc::new(Turns { addresses, next: AtomicUsize::new(0) });
    let listener = TcpListener::bind(&listen)?;
    println!("{SERVER_COUNT} servers over one store, by turns at http://{}/", listener.local_addr()?);
    for client in listener.incoming().flatten() {
        let turns = Arc::clone(&turns);
        // A connection that breaks is over; whoever has the other end sees it.
        spawn(move || drop(serve(client, &turns)))?;
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

/// Makes a certificate; gives the arguments by which a server takes it. What the server shows to clients is its file, so that has the
/// authority too.
fn certificate(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    Certificate::load_or_make(Some(folder), &[])?;
    let at = |name: &str| folder.join(name);
    let chain = std::fs::read_to_string(at("server.pem"))? + &std::fs::read_to_string(at("authority.pem"))?;
    std::fs::write(at("chain.pem"), chain)?;
    let path = |name: &str| at(name).display().to_string();
    Ok(vec!["--tls-certificate".to_owned(), path("chain.pem"), "--tls-key".to_owned(), path("server.key")])
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
    // What is meant for tests is no setting of a server.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ASTRARIUM_")) {
        command.env_remove(name);
    }
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let address = line.split("://").nth(1).and_then(|rest| rest.split(['/', ';', ' ']).next());
    let address = address.and_then(|address| address.parse().ok());
    Ok((server, address.ok_or_else(|| format!("a server that says {line:?}"))?))
}

fn spawn(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().stack_size(64 << 10).spawn(act).map(drop)
}

fn serve(client: TcpStream, turns: &Turns) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut beginning = [0; HTTP2.len()];
    loop {
        match client.peek(&mut beginning)? {
            0 => return Ok(()),
            _ if beginning[0] == TLS_HANDSHAKE || beginning == HTTP2 => {
                let server = turns.connect(turns.next())?;
                return pass(client, server);
            }
            length if length == beginning.len() => return by_requests(client, turns),
            _ => std::thread::yield_now(),
        }
    }
}

/// Passes bytes both ways until both ends are done.
fn pass(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (client, server) = (Arc::new(client), Arc::new(server));
    for (from, to) in [(Arc::clone(&client), Arc::clone(&server)), (server, client)] {
        spawn(move || {
            // An end that breaks is an end.
            let _ = io::copy(&mut &*from, &mut &*to);
            let _ = to.shutdown(Shutdown::Write);
        })?;
    }
    Ok(())
}

/// Gives each request of a connection to the next server, with one connection to each of them.
fn by_requests(client: TcpStream, turns: &Turns) -> io::Result<()> {
    let mut servers: Vec<Option<BufReader<TcpStream>>> = turns.addresses.iter().map(|_| None).collect();
    let mut client = BufReader::new(client);
    while let Some(request) = Head::read(&mut client)? {
        let number = turns.next();
        let server = match &mut servers[number] {
            Some(server) => server,
            none => none.insert(BufReader::new(turns.connect(number)?)),
        };
        server.get_ref().write_all(request.text.as_bytes())?;
        // A server may refuse a body before its end, and close; then its answer is there all the same.
        let _ = request.pass_body(&mut client, server.get_ref(), Some(0));
        let is_last = loop {
            let Some(answer) = Head::read(server)? else { return Ok(()) };
            client.get_ref().write_all(answer.text.as_bytes())?;
            if !answer.is_bodyless() && !request.text.starts_with("HEAD ") {
                answer.pass_body(server, client.get_ref(), None)?;
            }
            if !answer.is_interim() {
                break request.is_last() || answer.is_last();
            }
        };
        if is_last {
            break;
        }
    }
    client.get_ref().shutdown(Shutdown::Write)
}

/// The head of a request or of an answer, as it came.
struct Head {
    text: String,
}

impl Head {
    /// Nothing at the end of a connection.
    fn read(from: &mut impl BufRead) -> io::Result<Option<Head>> {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            if from.read_line(&mut text)? == 0 {
                return Ok(None);
            }
        }
        Ok(Some(Head { text }))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.text.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    fn says(&self, name: &str, word: &str) -> bool {
        self.header(name).is_some_and(|value| value.eq_ignore_ascii_case(word))
    }

    fn is_last(&self) -> bool {
        self.says("connection", "close")
    }

    /// The status of an answer.
    fn status(&self) -> &str {
        self.text.split(' ').nth(1).unwrap_or_default()
    }

    fn is_interim(&self) -> bool {
        self.status().starts_with('1')
    }

    fn is_bodyless(&self) -> bool {
        self.is_interim() || ["204", "304"].contains(&self.status())
    }

    /// Passes what follows; where nothing says how long it is, `otherwise` does: nothing, or everything that comes.
    fn pass_body(
        &self,
        from: &mut BufReader<TcpStream>,
        mut to: &TcpStream,
        otherwise: Option<u64>,
    ) -> io::Result<()> {
        if self.says("transfer-encoding", "chunked") {
            return pass_chunks(from, to);
        }
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        match length.or(otherwise) {
            Some(length) => io::copy(&mut from.take(length), &mut to).map(drop),
            None => io::copy(from, &mut to).map(drop),
        }
    }
}

fn pass_chunks(from: &mut BufReader<TcpStream>, mut to: &TcpStream) -> io::Result<()> {
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(digits, 16).map_err(io::Error::other)?;
        to.write_all(line.as_bytes())?;
        // The last chunk is followed by lines up to an empty one, each other by the end of its line.
        if length == 0 {
            let mut end = String::new();
            while !matches!(end.as_str(), "\r\n") {
                end.clear();
                if from.read_line(&mut end)? == 0 {
                    return Ok(());
                }
                to.write_all(end.as_bytes())?;
            }
            return Ok(());
        }
        io::copy(&mut from.take(length + 2), &mut to)?;
    }
}
