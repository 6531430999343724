//! `astrarium admin`: what an operator asks of a running server, over its `/_admin` routes, signed with the account key.
//!
//! One request over plain HTTP/1.1 on a connection of its own; the server closes it. So that no HTTP client is needed for this.

use crate::settings::{AdminCommand, AdminSettings};
use anyhow::{Context as _, bail};
use astrarium_env::Env;
use astrarium_wire::authorization::MasterKey;
use astrarium_wire::{date, percent};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

/// How long the server may take: a split of a small container is done when it answers.
const TIME_MAX: Duration = Duration::from_mins(1);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

pub(crate) fn run(settings: &AdminSettings) -> anyhow::Result<ExitCode> {
    let (name, body) = match &settings.command {
        AdminCommand::Ranges(container) => {
            ("ranges", json!({"database": container.database, "container": container.container}))
        }
        AdminCommand::Split { of, range } => {
            ("split", json!({"database": of.database, "container": of.container, "range": range.to_string()}))
        }
        AdminCommand::Merge { of, low, high } => {
            let ranges = [low.to_string(), high.to_string()];
            ("merge", json!({"database": of.database, "container": of.container, "ranges": ranges}))
        }
    };
    let (status, answer) = ask(settings, name, &body.to_string())?;
    if status != 200 {
        let message = answer.get("message").and_then(Value::as_str).unwrap_or("no reason is given");
        bail!("the server refused with {status}: {message}");
    }
    print!("{}", table(&answer));
    Ok(ExitCode::SUCCESS)
}

/// Sends one request; gives the status and the answer.
fn ask(settings: &AdminSettings, name: &str, body: &str) -> anyhow::Result<(u16, Value)> {
    let key = MasterKey::from_base64(&settings.key).context("read --key")?;
    let endpoint = settings.endpoint.strip_prefix("http://").context("--endpoint must begin with http://")?;
    let host = endpoint.trim_end_matches('/');
    let now = Env::system().now_seconds();
    let date = date::format_rfc1123(i64::try_from(now).unwrap_or_default());
    let payload = format!("post\n_admin\n_admin/{name}\n{}\n\n", date.to_lowercase());
    let token = format!("type=master&ver=1.0&sig={}", key.sign_base64(payload.as_bytes()));
    let token = percent::encode_component(&token);
    let request = format!(
        "POST /_admin/{name} HTTP/1.1\r\nhost: {host}\r\nx-ms-date: {date}\r\nx-ms-version: 2020-07-15\r\nauthorization: \
         {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream =
        TcpStream::connect(host).with_context(|| format!("connect to {host} (is the server running?)"))?;
    stream.set_read_timeout(Some(TIME_MAX))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).context("read the answer")?;
    let text = String::from_utf8_lossy(&answer);
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
    if answer["pending"] == Value::Bool(true) {
        let _ = writeln!(
            table,
            "Under way, {} % copied. `astrarium admin ranges` tells how far it is.",
            answer["progressPercent"]
        );
    }
    table
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
        let pending = table(&json!({"ranges": [], "pending": true, "progressPercent": 40.0}));
        assert!(pending.contains("40.0 % copied"), "{pending}");
    }
}
