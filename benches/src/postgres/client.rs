//! As much of PostgreSQL's protocol as timing needs: prepared statements with text or binary values, COPY,
//! plain commands.
//!
//! Blocking, one statement at a time. Statements are prepared, so that parsing is not paid for on every run; the server
//! itself decides between general and particular plans, as it does for applications.

use anyhow::Context as _;
use serde_json::{Map, Value};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Version 3.0.
const PROTOCOL: i32 = 196_608;
/// Longer than any statement of a bench takes, index builds included.
const ANSWER_MAX: Duration = Duration::from_mins(20);
/// The name of a column that is the whole row.
const WHOLE: &str = "value";
const READ_BYTES: usize = 1 << 16;
/// Object identifiers of types whose text is not a number.
const TEXT: u32 = 25;
const JSON: [u32; 2] = [114, 3802];

/// A connection.
pub(crate) struct Client {
    socket: TcpStream,
    /// What was received for the last request, message after message.
    answer: Vec<u8>,
    out: Vec<u8>,
    chunk: Vec<u8>,
    statement_count: usize,
}

/// A statement that the server has parsed.
pub(crate) struct Statement {
    name: String,
    columns: Vec<Column>,
}

struct Column {
    name: String,
    kind: u32,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, user: &str) -> anyhow::Result<Client> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        let (answer, out, chunk) = (Vec::new(), Vec::new(), vec![0; READ_BYTES]);
        let mut client = Client { socket, answer, out, chunk, statement_count: 0 };
        let mut start = PROTOCOL.to_be_bytes().to_vec();
        for text in ["user", user, "database", "postgres", ""] {
            push_text(&mut start, text);
        }
        client.out.extend_from_slice(&length_field(start.len()));
        client.out.extend_from_slice(&start);
        client.exchange(b'Z')?;
        Ok(client)
    }

    /// Runs commands that give no rows.
    pub(crate) fn execute(&mut self, commands: &str) -> anyhow::Result<()> {
        self.push(b'Q', |body| push_text(body, commands));
        self.exchange(b'Z').with_context(|| commands.to_owned())
    }

    /// Writes rows in COPY's text form: columns between tabs, a line each.
    pub(crate) fn copy_in(
        &mut self,
        table: &str,
        chunks: impl Iterator<Item = String>,
    ) -> anyhow::Result<()> {
        let command = format!("COPY {table} FROM STDIN");
        self.push(b'Q', |body| push_text(body, &command));
        self.exchange(b'G')?;
        for chunk in chunks {
            self.push(b'd', |body| body.extend_from_slice(chunk.as_bytes()));
            self.send()?;
        }
        self.push(b'c', |_| ());
        self.exchange(b'Z')
    }

    /// Has a statement parsed; its values are `$1`, `$2` and so on.
    pub(crate) fn prepare(&mut self, text: &str) -> anyhow::Result<Statement> {
        self.statement_count += 1;
        let name = format!("s{}", self.statement_count);
        self.push(b'P', |body| {
            push_text(body, &name);
            push_text(body, text);
            body.extend_from_slice(&[0; 2]);
        });
        self.push(b'D', |body| {
            body.push(b'S');
            push_text(body, &name);
        });
        self.push(b'S', |_| ());
        self.exchange(b'Z').with_context(|| text.to_owned())?;
        let described = messages(&self.answer).find(|(kind, _)| *kind == b'T');
        let columns = described.map(|(_, body)| columns(body).context("read a row's description"));
        Ok(Statement { name, columns: columns.transpose()?.unwrap_or_default() })
    }

    /// Runs a statement and receives all rows, without looking at them.
    pub(crate) fn run(&mut self, statement: &Statement, values: &[String]) -> anyhow::Result<()> {
        self.push(b'B', |body| {
            push_text(body, "");
            push_text(body, &statement.name);
            body.extend_from_slice(&[0; 2]);
            body.extend_from_slice(&(values.len() as u16).to_be_bytes());
            for value in values {
                body.extend_from_slice(&(value.len() as u32).to_be_bytes());
                body.extend_from_slice(value.as_bytes());
            }
            body.extend_from_slice(&[0; 2]);
        });
        self.push(b'E', |body| body.extend_from_slice(&[0; 5]));
        self.push(b'S', |_| ());
        self.exchange(b'Z')
    }

    /// Runs a statement and gives its rows as JSON: a column named `value` alone is the row, otherwise columns are
    /// properties.
    pub(crate) fn query(&mut self, statement: &Statement, values: &[String]) -> anyhow::Result<Vec<Value>> {
        self.run(statement, values)?;
        let rows = messages(&self.answer).filter(|(kind, _)| *kind == b'D');
        rows.map(|(_, body)| row(&statement.columns, body).context("read a row")).collect()
    }

    /// Runs statements one after the other, all sent at once, with values in binary form. Out: the rows of all of them, their
    /// columns in binary form; empty ones for NULL.
    pub(crate) fn run_binary(
        &mut self,
        steps: &[(&Statement, &[Vec<u8>])],
    ) -> anyhow::Result<Vec<Vec<Vec<u8>>>> {
        for (statement, values) in steps {
            self.push(b'B', |body| {
                push_text(body, "");
                push_text(body, &statement.name);
                // One format for all values: binary.
                body.extend_from_slice(&[0, 1, 0, 1]);
                body.extend_from_slice(&(values.len() as u16).to_be_bytes());
                for value in *values {
                    body.extend_from_slice(&(value.len() as u32).to_be_bytes());
                    body.extend_from_slice(value);
                }
                body.extend_from_slice(&[0, 1, 0, 1]);
            });
            self.push(b'E', |body| body.extend_from_slice(&[0; 5]));
        }
        self.push(b'S', |_| ());
        self.exchange(b'Z')?;
        let rows = messages(&self.answer).filter(|(kind, _)| *kind == b'D');
        rows.map(|(_, body)| binary_row(body).context("read a row")).collect()
    }

    fn push(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(kind);
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        body(&mut self.out);
        let length = length_field(self.out.len() - start - 4);
        self.out[start..start + 4].copy_from_slice(&length);
    }

    fn send(&mut self) -> anyhow::Result<()> {
        self.socket.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Sends what was pushed, and receives up to a message of a kind. An error of the server is an error.
    fn exchange(&mut self, last: u8) -> anyhow::Result<()> {
        self.send()?;
        self.answer.clear();
        let mut seen = 0;
        let mut refusal = None;
        loop {
            let count = self.socket.read(&mut self.chunk)?;
            anyhow::ensure!(count > 0, "postgres closed a connection{}", refusal.unwrap_or_default());
            self.answer.extend_from_slice(&self.chunk[..count]);
            while let Some((kind, body)) = message_at(&self.answer[seen..]) {
                seen += 5 + body.len();
                match kind {
                    b'E' => refusal = Some(format!(": {}", fault(body))),
                    // A refused command is over when the server is ready for another.
                    b'Z' if refusal.is_some() => {
                        anyhow::bail!("postgres refuses{}", refusal.unwrap_or_default())
                    }
                    b'R' => anyhow::ensure!(body == [0; 4], "postgres wants a password"),
                    _ if kind == last => return Ok(()),
                    _ => (),
                }
            }
        }
    }
}

/// A message's length counts itself.
fn length_field(body: usize) -> [u8; 4] {
    (body as u32 + 4).to_be_bytes()
}

fn push_text(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(text.as_bytes());
    body.push(0);
}

/// The message at the beginning of some bytes, if it is whole.
fn message_at(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    Some((*kind, rest.get(..u32::from_be_bytes(*length) as usize - 4)?))
}

fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (kind, body) = message_at(bytes)?;
        bytes = &bytes[5 + body.len()..];
        Some((kind, body))
    })
}

/// The message of an error: fields of a letter and a text each.
fn fault(body: &[u8]) -> String {
    let mut fields = body.split(|byte| *byte == 0);
    let text = fields.find_map(|field| field.strip_prefix(b"M")).unwrap_or(body);
    String::from_utf8_lossy(text).into_owned()
}

fn columns(body: &[u8]) -> Option<Vec<Column>> {
    let (count, mut rest) = body.split_first_chunk()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        // After the name: table (4), place (2), type (4), and 8 bytes about its form.
        let fields = rest.get(end + 1..end + 19)?;
        columns.push(Column { name, kind: u32::from_be_bytes(*fields[6..].first_chunk()?) });
        rest = &rest[end + 19..];
    }
    Some(columns)
}

fn row(columns: &[Column], body: &[u8]) -> Option<Value> {
    let mut rest = body.get(2..)?;
    let mut object = Map::new();
    for column in columns {
        let (length, after) = rest.split_first_chunk()?;
        let length = i32::from_be_bytes(*length);
        // A negative length is NULL.
        let text = after.get(..length.max(0) as usize)?;
        rest = &after[text.len()..];
        let value =
            if length < 0 { Value::Null } else { value(column.kind, std::str::from_utf8(text).ok()?)? };
        if column.name == WHOLE {
            return Some(value);
        }
        object.insert(column.name.clone(), value);
    }
    Some(Value::Object(object))
}

fn binary_row(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (count, mut rest) = body.split_first_chunk()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk()?;
        // A negative length is NULL.
        let column = after.get(..i32::from_be_bytes(*length).max(0) as usize)?;
        rest = &after[column.len()..];
        columns.push(column.to_vec());
    }
    Some(columns)
}

fn value(kind: u32, text: &str) -> Option<Value> {
    match kind {
        TEXT => Some(Value::from(text)),
        kind if JSON.contains(&kind) => serde_json::from_str(text).ok(),
        _ => Some(Value::from(text.parse::<f64>().ok()?)),
    }
}
