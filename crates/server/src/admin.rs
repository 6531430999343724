//! `astrarium admin`: what an operator asks of a running server, over its `/_admin` routes, signed with the account key.
//!
//! One request over plain HTTP/1.1 on a connection of its own; the server closes it. So that no HTTP client is needed for this.

use crate::http_answer::read_answer;
use crate::settings::{AdminCommand, AdminSettings, ContainerName, ServerAddress};
use anyhow::{Context as _, bail};
use astrarium_env::Env;
use astrarium_wire::authorization::MasterKey;
use astrarium_wire::{date, percent};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

/// How long the server may take: a split of a small container is done when it answers.
const TIME_MAX: Duration = Duration::from_mins(1);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 16 << 20;

pub(crate) fn run(settings: &AdminSettings) -> anyhow::Result<ExitCode> {
    let (name, body) = request(&settings.command);
    let answer = ask(&settings.server, name, Some(&body))?;
    print!("{}{}", table(&answer), pending(&answer));
    Ok(ExitCode::SUCCESS)
}

/// The name below `/_admin` that a command asks, and what it tells it.
fn request(command: &AdminCommand) -> (&'static str, Value) {
    match command {
        AdminCommand::Ranges(container) => ("ranges", named(container)),
        AdminCommand::Split { of, range } => {
            let mut body = named(of);
            body["range"] = range.to_string().into();
            ("split", body)
        }
        AdminCommand::Merge { of, low, high } => {
            let mut body = named(of);
            body["ranges"] = json!([low.to_string(), high.to_string()]);
            ("merge", body)
        }
    }
}

/// A body that names a container.
pub(crate) fn named(container: &ContainerName) -> Value {
    json!({"database": container.database, "container": container.container})
}

/// Asks something below `/_admin`, a question if nothing is told with it; fails with what the server says if it refuses.
pub(crate) fn ask(server: &ServerAddress, name: &str, body: Option<&Value>) -> anyhow::Result<Value> {
    let (status, answer) = exchange(server, name, body)?;
    let name_of = |name: &str| body.and_then(|body| body.get(name)?.as_str());
    if let (404, Some(database), Some(container)) = (status, name_of("database"), name_of("container")) {
        bail!("there is no container {database}/{container} on this server");
    }
    if status != 200 {
        bail!("the server refused with {status}: {}", reason(&answer));
    }
    Ok(answer)
}

/// Why the server refused, without what is around it for SDKs.
fn reason(answer: &Value) -> String {
    let message = answer.get("message").and_then(Value::as_str).unwrap_or("no reason is given");
    let line = message.lines().next().unwrap_or_default();
    let errors = line.strip_prefix("Message: ").and_then(|json| serde_json::from_str::<Value>(json).ok());
    let first = errors.as_ref().and_then(|errors| errors["Errors"][0].as_str());
    first.unwrap_or(message).to_owned()
}

/// Sends one request; gives the status and the answer.
fn exchange(server: &ServerAddress, name: &str, body: Option<&Value>) -> anyhow::Result<(u16, Value)> {
    let verb = if body.is_some() { "POST" } else { "GET" };
    let body = body.map(Value::to_string).unwrap_or_default();
    let key = MasterKey::from_base64(&server.key).context("read --key")?;
    let endpoint = server.endpoint.strip_prefix("http://").context("--endpoint must begin with http://")?;
    let host = endpoint.trim_end_matches('/');
    let now = Env::system().now_seconds();
    let date = date::format_rfc1123(i64::try_from(now).unwrap_or_default());
    let payload = format!("{}\n_admin\n_admin/{name}\n{}\n\n", verb.to_lowercase(), date.to_lowercase());
    let token = format!("type=master&ver=1.0&sig={}", key.sign_base64(payload.as_bytes()));
    let token = percent::encode_component(&token);
    let request = format!(
        "{verb} /_admin/{name} HTTP/1.1\r\nhost: {host}\r\nx-ms-date: {date}\r\nx-ms-version: 2020-07-15\r\nauthorization: \
         {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream =
        TcpStream::connect(host).with_context(|| format!("connect to {host} (is the server running?)"))?;
    stream.write_all(request.as_bytes())?;
    let answer = read_answer(&mut stream, TIME_MAX, ANSWER_BYTES_MAX).context("read the answer")?;
    anyhow::ensure!(!answer.is_cut, "the answer of {host} did not end within {TIME_MAX:?}");
    let text = String::from_utf8_lossy(&answer.bytes);
    let status = text.get(9..12).and_then(|digits| digits.parse().ok()).context("the answer is not HTTP")?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, serde_json::from_str(body).unwrap_or_default()))
}

/// The ranges of a container, for people.
fn table(answer: &Value) -> String {
    let mut table =
        format!("{:>6}  {:<34} {:<34} {:>12} {:>16}\n", "range", "from", "up to", "documents", "bytes");
    for range in answer["ranges"].as_array().map_or(&[][..], Vec::as_slice) {
        let text = |name: &str| range[name].as_str().unwrap_or_default().to_owned();
        let _ = writeln!(
            table,
            "{:>6}  {:<34} {:<34} {:>12} {:>16}",
            text("id"),
            text("minInclusive"),
            text("maxExclusive"),
            range["documents"].as_u64().unwrap_or_default(),
            range["bytes"].as_u64().unwrap_or_default()
        );
    }
    table
}

/// What is not done yet.
pub(crate) fn pending(answer: &Value) -> String {
    if answer["pending"] != Value::Bool(true) {
        return String::new();
    }
    format!(
        "Under way, {} % copied. `astrarium admin ranges` tells how far it is.\n",
        answer["progressPercent"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_in_columns() {
        let range =
            json!({"id": "1", "minInclusive": "", "maxExclusive": "FF", "documents": 7, "bytes": 1_900});
        let done = table(&json!({"ranges": [range], "pending": false}));
        let lines: Vec<&str> = done.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("bytes") && lines[1].ends_with("  1900"), "{done}");
        assert_eq!(lines[0].len(), lines[1].len(), "{done}");
        let told = pending(&json!({"ranges": [], "pending": true, "progressPercent": 40.0}));
        assert!(told.contains("40.0 % copied"), "{told}");
        assert_eq!(pending(&json!({"ranges": [], "pending": false})), "");
    }

    #[test]
    fn refusals_are_told_as_sentences() {
        let wrapped = "Message: {\"Errors\":[\"There is no such thing.\"]}\r\nActivityId: 7";
        assert_eq!(reason(&json!({"message": wrapped})), "There is no such thing.");
        assert_eq!(reason(&json!({"message": "plain"})), "plain");
        assert_eq!(reason(&json!({})), "no reason is given");
    }

    #[test]
    fn commands_name_what_they_are_about() {
        let of = || ContainerName { database: "d".to_owned(), container: "c".to_owned() };
        let merged = AdminCommand::Merge { of: of(), low: 1, high: 2 };
        let body = json!({"database": "d", "container": "c", "ranges": ["1", "2"]});
        assert_eq!(request(&merged), ("merge", body));
        let split = AdminCommand::Split { of: of(), range: 7 };
        assert_eq!(request(&split), ("split", json!({"database": "d", "container": "c", "range": "7"})));
    }
}
