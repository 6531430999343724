//! Where an account is: scheme, host and port of a URL, or those in a connection string.

use crate::error::ClientError;

/// The address of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Endpoint {
    /// Reads `https://host:port/`; without a port it is 443, or 80 for `http`.
    pub fn parse(text: &str) -> Result<Endpoint, ClientError> {
        let bad = |what: &str| ClientError::Settings(format!("the endpoint {text:?} {what}"));
        let (is_tls, rest) = if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else if let Some(rest) = text.strip_prefix("http://") {
            (false, rest)
        } else {
            return Err(bad("must begin with http:// or https://, such as http://127.0.0.1:8081"));
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            return Err(bad("must have no path: an account is at the root of its server"));
        }
        if authority.contains('@') {
            return Err(bad("must have no user; the key goes into --key"));
        }
        let (host, port) = split_port(authority).ok_or_else(|| bad("has no valid host and port"))?;
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Endpoint { is_tls, host: host.to_owned(), port })
    }

    /// Whether it can only be this machine.
    pub fn is_loopback(&self) -> bool {
        let is_address = |address: std::net::IpAddr| address.is_loopback();
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(is_address)
    }

    /// Host and port as in the `Host` header.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}/", self.authority())
    }
}

/// Endpoint and key of a connection string, `AccountEndpoint=…;AccountKey=…;`; none if the text is not one.
pub(crate) fn connection_string(text: &str) -> Option<(String, Option<String>)> {
    let parts = || text.split(';').filter_map(|part| part.split_once('='));
    let part = |name: &str| {
        let found = parts().find(|(own, _)| own.trim().eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    };
    Some((part("AccountEndpoint")?, part("AccountKey")))
}

fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let is_host = |host: &str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\\"<>".contains(&byte))
    };
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => authority.find(':').map_or((authority, ""), |at| authority.split_at(at)),
    };
    if !is_host(host) {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(port) => Some((host, Some(port.parse().ok().filter(|port| *port > 0)?))),
        None if rest.is_empty() => Some((host, None)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(bool, &str, u16)>) {
        let found = Endpoint::parse(text).ok();
        let found = found.as_ref().map(|found| (found.is_tls, found.host.as_str(), found.port));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn endpoints() {
        check("http://127.0.0.1:8081", Some((false, "127.0.0.1", 8081)));
        check("https://a.documents.azure.com:443/", Some((true, "a.documents.azure.com", 443)));
        check("https://a.example", Some((true, "a.example", 443)));
        check("http://[::1]:8081/", Some((false, "::1", 8081)));
        for bad in [
            "",
            "a:8081",
            "ftp://a",
            "http://",
            "http://:80",
            "http://a:0",
            "http://a:99999",
            "http://a/b",
            "http://k@a",
        ] {
            check(bad, None);
        }
        assert!(Endpoint::parse("https://LOCALHOST:1").unwrap().is_loopback());
        assert!(Endpoint::parse("https://[::1]:1").unwrap().is_loopback());
        assert!(!Endpoint::parse("https://localhost.example:1").unwrap().is_loopback());
    }

    #[test]
    fn connection_strings() {
        let text = "AccountEndpoint=https://a:1/;AccountKey=QUJD==;";
        assert_eq!(connection_string(text), Some(("https://a:1/".to_owned(), Some("QUJD==".to_owned()))));
        assert_eq!(connection_string("https://a:1/"), None);
    }
}
