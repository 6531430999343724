//! A request as a client means it, and its bytes: signed the way SDKs sign, or deliberately otherwise.
//!
//! In: verb, target, headers, body, credential, the time. Out: the bytes of an HTTP/1.1 request.
//! Invariants
//! - A header that a test gives is sent as it is, and takes the place of the one that would have been added.
//! - The signed link is worked out from the target alone, without the server's own reading of addresses.
//!
//! Not here: sending (`http`), keys of a real account.

use astrarium_wire::authorization::MasterKey;
use astrarium_wire::date::format_rfc1123;
use astrarium_wire::key_text::EMULATOR_KEY;
use std::fmt::Write as _;

/// The name and port that clients of a test server call it by.
pub const HOST: &str = "astrarium.test:8081";

/// The keys that a test server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The primary key.
    Primary,
    /// The secondary key.
    Secondary,
    /// The key for reads only.
    ReadOnly,
    /// The second key for reads only.
    SecondaryReadOnly,
    /// A key that the server does not have.
    Unknown,
}

impl Key {
    /// The key's base64 text.
    pub fn text(self) -> String {
        let letter = match self {
            Key::Primary => return EMULATOR_KEY.to_owned(),
            Key::Secondary => "S",
            Key::ReadOnly => "R",
            Key::SecondaryReadOnly => "T",
            Key::Unknown => "U",
        };
        format!("{}==", letter.repeat(85) + "A")
    }

    /// The key, ready to sign.
    pub fn master_key(self) -> MasterKey {
        MasterKey::from_base64(&self.text()).expect("the keys of tests are good")
    }
}

/// How a request shows who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A signature with a key.
    Key(Key),
    /// A resource token, as it stands in `_token`.
    Token(String),
    /// Nothing.
    None,
}

/// When a request claims to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Date {
    /// So many seconds after the client's clock.
    Offset(i64),
    /// It does not say.
    None,
}

/// A request to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The verb.
    pub verb: String,
    /// The request target; what cannot stand in one is percent-encoded on the way.
    pub target: String,
    /// Headers besides those that signing adds.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Who sends it.
    pub credential: Credential,
    /// When.
    pub date: Date,
    /// Whether names are signed also where the path has the form of rids.
    pub signs_names: bool,
}

impl Request {
    /// A request signed with the primary key, now.
    pub fn new(verb: &str, target: &str) -> Request {
        Request {
            verb: verb.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            credential: Credential::Key(Key::Primary),
            date: Date::Offset(0),
            signs_names: false,
        }
    }

    /// Signed as a request by names, also where the path has the form of rids.
    #[must_use]
    pub fn signed_by_names(mut self) -> Request {
        self.signs_names = true;
        self
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    /// With a partition key header.
    #[must_use]
    pub fn partition_key(self, key: &str) -> Request {
        self.header("x-ms-documentdb-partitionkey", key)
    }

    /// From another sender.
    #[must_use]
    pub fn credential(mut self, credential: Credential) -> Request {
        self.credential = credential;
        self
    }

    /// The head and the body as they go over the wire to a host, at a time in seconds since 1970.
    pub fn to_bytes(&self, host: &str, now_seconds: u64) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.verb, encode_target(&self.target));
        for (name, value) in self.added_headers(host, now_seconds).iter().chain(&self.headers) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// What signing and sending need and the test did not give.
    fn added_headers(&self, host: &str, now_seconds: u64) -> Vec<(String, String)> {
        let mut added: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: String| {
            if self.given(name).is_none() {
                added.push((name.to_owned(), value));
            }
        };
        add("host", host.to_owned());
        add("x-ms-version", "2020-07-15".to_owned());
        if let Date::Offset(seconds) = self.date {
            let sent_at = i64::try_from(now_seconds).unwrap_or(i64::MAX).saturating_add(seconds);
            add("x-ms-date", format_rfc1123(sent_at));
        }
        if self.given("transfer-encoding").is_none() && !(self.body.is_empty() && self.verb == "GET") {
            add("content-length", self.body.len().to_string());
        }
        let x_ms_date = added.iter().find(|(name, _)| name == "x-ms-date").map(|(_, value)| value.clone());
        let x_ms_date = x_ms_date.or_else(|| self.given("x-ms-date").map(str::to_owned)).unwrap_or_default();
        if self.given("authorization").is_none()
            && let Some(authorization) = self.authorization(&x_ms_date)
        {
            added.push(("authorization".to_owned(), authorization));
        }
        added
    }

    fn given(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn authorization(&self, x_ms_date: &str) -> Option<String> {
        let key = match &self.credential {
            Credential::None => return None,
            Credential::Token(token) => return Some(encode_value(token)),
            Credential::Key(key) => key.master_key(),
        };
        let (resource_type, link) = signed_resource(&self.target, self.signs_names);
        // `Date` stands in the payload only when it is the only date there is.
        let date = if x_ms_date.is_empty() { self.given("date").unwrap_or_default() } else { "" };
        let payload = format!(
            "{}\n{}\n{link}\n{}\n{}\n",
            self.verb.to_lowercase(),
            resource_type.to_lowercase(),
            x_ms_date.to_lowercase(),
            date.to_lowercase()
        );
        let signature = key.sign_base64(payload.as_bytes());
        Some(encode_value(&format!("type=master&ver=1.0&sig={signature}")))
    }
}

/// The second and third line of what a client signs for a target.
fn signed_resource(target: &str, names_only: bool) -> (String, String) {
    let path = target.trim_start_matches('/');
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<String> = path.split('/').map(decode).collect();
    if let [above @ .., operations, operation] = segments.as_slice()
        && operations == "operations"
        && operation == "partitionkeydelete"
    {
        return ("partitionkey".to_owned(), link(above, names_only));
    }
    if segments.len().is_multiple_of(2) {
        let resource_type = segments[segments.len() - 2].clone();
        (resource_type, link(&segments, names_only))
    } else {
        let (resource_type, owner) = segments.split_last().expect("splitting gives at least one piece");
        (resource_type.clone(), link(owner, names_only))
    }
}

/// The signed link of whole segments: the path by names, or the last rid in lower case.
fn link(segments: &[String], names_only: bool) -> String {
    let by_rid = match segments {
        [kind, id, ..] => kind == "offers" || (kind == "dbs" && id.len() == 8 && id.ends_with("==")),
        _ => false,
    };
    match segments.last() {
        Some(last) if by_rid && !names_only => last.to_lowercase(),
        _ => segments.join("/"),
    }
}

fn decode(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escaped = (bytes[index] == b'%')
            .then(|| segment.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(bytes[index]));
        index += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Escapes what no request target can hold, and nothing else: `%` is the author's own escape.
fn encode_target(target: &str) -> String {
    encode(target, |byte| byte.is_ascii_graphic())
}

/// Escapes a header value the way SDKs do.
fn encode_value(text: &str) -> String {
    encode(text, |byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

/// Percent-encodes every byte that is not kept.
pub fn encode(text: &str, keep: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if keep(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// An id as one segment of a target.
pub fn encode_id(id: &str) -> String {
    encode_value(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, resource_type: &str, link: &str) {
        assert_eq!(signed_resource(target, false), (resource_type.to_owned(), link.to_owned()), "{target}");
    }

    #[test]
    fn what_is_signed() {
        check("/", "", "");
        check("/dbs", "dbs", "");
        check("/dbs/D%20d/", "dbs", "dbs/D d");
        check("/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c");
        check("/dbs/d/colls/c/docs/a%3Fb", "docs", "dbs/d/colls/c/docs/a?b");
        check("/dbs/ehszAA==/colls/ehszALxRRgA=/pkranges", "pkranges", "ehszalxrrga=");
        check("/dbs/ehszAA%3D%3D", "dbs", "ehszaa==");
        check("/offers/uT2L", "offers", "ut2l");
        check("/offers", "offers", "");
        check("/dbs/d/colls/c/operations/partitionkeydelete", "partitionkey", "dbs/d/colls/c");
    }

    /// The vectors that the service's documentation and SDKs publish.
    #[test]
    fn signatures() {
        let check = |verb: &str, target: &str, signature: &str| {
            let request = Request::new(verb, target);
            let authorization = request.authorization("Thu, 27 Apr 2017 00:51:12 GMT").unwrap();
            assert_eq!(authorization, encode_value(&format!("type=master&ver=1.0&sig={signature}")));
        };
        check("GET", "/", "gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc=");
        check("GET", "/dbs/ToDoList", "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY=");
        check("POST", "/dbs/MyDb/colls/MyColl/docs", "s0xP8VO0ZOVHL99FhcwggjhrnponOpQXEk+T5PrPBUg=");
        check("GET", "/offers/ut2l", "fp5A2Rw3pUULnudpkaCDttdPHDg8q4UMVYumkDJZWv8=");
    }
}
