//! A client of one kept connection: signs, sends, reads whole answers. An error means that nobody knows what happened.

use astrarium_env::Env;
use astrarium_wire::address::Address;
use astrarium_wire::authorization::{MasterKey, signing_payload};
use astrarium_wire::key_text::EMULATOR_KEY;
use astrarium_wire::session::SessionToken;
use astrarium_wire::{date, headers, percent};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server that does not answer for so long hangs, which is a failure of its own.
const ANSWER_MAX: Duration = Duration::from_mins(5);

pub(crate) struct Client {
    address: SocketAddr,
    key: MasterKey,
    env: Env,
    connection: Option<BufReader<TcpStream>>,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Client {
        let key = MasterKey::from_base64(EMULATOR_KEY).expect("the well-known key");
        Client { address, key, env: Env::system(), connection: None }
    }

    /// Sends a request for a path without leading slash and waits for its answer.
    pub(crate) fn send(
        &mut self,
        verb: &str,
        path: &str,
        more_headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        let head = self.head(verb, path, more_headers, body.len());
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(connect(self.address)?),
        };
        let outcome = exchange(connection, &[head.as_bytes(), body.as_bytes()].concat());
        if outcome.is_err() {
            self.connection = None;
        }
        outcome
    }

    /// Sends a request to a server that must answer.
    pub(crate) fn must_send(
        &mut self,
        verb: &str,
        path: &str,
        more_headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.send(verb, path, more_headers, body).unwrap_or_else(|error| panic!("{verb} {path}: {error}"))
    }

    /// All resources of a feed, page by page, and the answer to the last page.
    pub(crate) fn feed(&mut self, path: &str, list: &str, page_count: u64) -> (Vec<Value>, Answer) {
        let page_count = page_count.to_string();
        let mut resources = Vec::new();
        let mut token = None::<String>;
        loop {
            let mut more = vec![(headers::MAX_ITEM_COUNT, page_count.as_str())];
            more.extend(token.as_deref().map(|token| (headers::CONTINUATION, token)));
            let answer = self.must_send("GET", path, &more, "");
            assert_eq!(answer.status, 200, "feed {path}: {}", answer.text());
            let Value::Array(page) = answer.json()[list].take() else { panic!("feed {path} has no {list}") };
            resources.extend(page);
            token = answer.header(headers::CONTINUATION).map(str::to_owned);
            if token.is_none() {
                return (resources, answer);
            }
        }
    }

    /// The rows of a query over all items of a container, page by page.
    pub(crate) fn query(&mut self, container: &str, text: &str) -> Vec<Value> {
        let body = json!({"query": text}).to_string();
        let path = format!("{container}/docs");
        let mut rows = Vec::new();
        let mut token = None::<String>;
        loop {
            let mut more = vec![
                (headers::IS_QUERY, "true"),
                (headers::CONTENT_TYPE, "application/query+json"),
                (headers::QUERY_ENABLE_CROSS_PARTITION, "true"),
            ];
            more.extend(token.as_deref().map(|token| (headers::CONTINUATION, token)));
            let answer = self.must_send("POST", &path, &more, &body);
            assert_eq!(answer.status, 200, "{text}: {}", answer.text());
            let Value::Array(page) = answer.json()["Documents"].take() else { panic!("{text} has no rows") };
            rows.extend(page);
            token = answer.header(headers::CONTINUATION).map(str::to_owned);
            if token.is_none() {
                return rows;
            }
        }
    }

    /// How far the index of a container is with its policy, in percent.
    pub(crate) fn index_progress(&mut self, container: &str) -> u64 {
        let answer = self.must_send("GET", container, &[(headers::POPULATE_QUOTA_INFO, "true")], "");
        let progress =
            answer.header(headers::INDEX_TRANSFORMATION_PROGRESS).expect("the progress of the index");
        progress.parse().expect("a number")
    }

    fn head(&self, verb: &str, path: &str, more_headers: &[(&str, &str)], length: usize) -> String {
        let target = format!("/{path}");
        let address = Address::parse(&target, None).expect("a path of the protocol");
        let now = date::format_rfc1123(i64::try_from(self.env.now_seconds()).expect("a time in range"));
        let signature = self.key.sign_base64(signing_payload(verb, &address, Some(&now), None).as_bytes());
        let token = format!("type=master&ver=1.0&sig={signature}");
        let token = percent::encode_component(&token);
        let mut head = format!(
            "{verb} {target} HTTP/1.1\r\nhost: {}\r\nx-ms-date: {now}\r\nx-ms-version: 2020-07-15\r\n\
             authorization: {token}\r\ncontent-length: {length}\r\n",
            self.address
        );
        for (name, value) in more_headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        head
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn etag(&self) -> String {
        self.header(headers::ETAG).expect("an etag").to_owned()
    }

    /// The position of the only range, by the session token.
    pub(crate) fn lsn(&self) -> u64 {
        let text = self.header(headers::SESSION_TOKEN).expect("a session token");
        let token = SessionToken::parse(text).expect("a session token that can be read");
        let [entry] = token.entries() else { panic!("one range has one entry, not {text}") };
        u64::try_from(entry.lsn).expect("a position is not negative")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    Ok(BufReader::new(stream))
}

fn exchange(connection: &mut BufReader<TcpStream>, request: &[u8]) -> io::Result<Answer> {
    connection.get_mut().write_all(request)?;
    let status = line(connection)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("no status"))?;
    let mut headers = Vec::new();
    loop {
        let line = line(connection)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    let length = answer.header(headers::CONTENT_LENGTH).and_then(|length| length.parse().ok()).unwrap_or(0);
    answer.body.resize(length, 0);
    connection.read_exact(&mut answer.body)?;
    Ok(answer)
}

fn line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(whole) => Ok(whole.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Whether a failed exchange is what the death of a server looks like.
pub(crate) fn is_lost_connection(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
