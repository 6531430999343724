//! Which names a server with the well-known key answers to.
//!
//! A web page can have its own name point to this machine (DNS rebinding), and a browser then lets it talk to the server. With a
//! secret key nothing comes of that; with the key that everybody knows, the page has the data. It cannot choose the name that
//! the browser sends, though. So while such a key is in use, names that somebody could own on the public network are refused.
//! In: the authority of a request's target and its `Host`. Out: nothing, or the refusal.
//! Invariants
//! - Every name that a request gives must pass. Forwarded headers never let anybody in: who talks to us directly can write them. Where
//!   they are trusted, the explorer refuses by them, too (`explorer::page_checks`).
//! - A request without any name passes: browsers always send one.
//!
//! Not here: which endpoint clients are told (`account_document`).

use crate::error::ErrorAnswer;
use http::header::HOST;
use http::request::Parts;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Endings of names that nobody can own on the public network.
const PRIVATE_ENDINGS: [&str; 3] = [".local", ".internal", ".localhost"];

/// The names to answer to.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    /// Whether names are checked at all.
    is_checked: bool,
    /// Names that pass besides private ones, in lower case; `*.` before one is every name below it.
    allowed: Vec<String>,
}

impl Hosts {
    /// What passes while the well-known key is in use, if it is.
    pub(crate) fn new(is_checked: bool, public_endpoint: Option<&str>, allowed: &[String]) -> Hosts {
        let authority = public_endpoint.and_then(|endpoint| endpoint.split('/').nth(2));
        let public = authority.and_then(name_of).map(str::to_owned);
        let allowed = allowed.iter().map(|name| name.trim().to_owned()).chain(public);
        let allowed = allowed.map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect();
        Hosts { is_checked, allowed }
    }

    /// Refuses a request to a name that is not ours.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), ErrorAnswer> {
        if parts.headers.get_all(HOST).iter().count() > 1 {
            return Err(ErrorAnswer::bad_request("The header host was sent more than once."));
        }
        if self.is_checked { self.check_names(parts) } else { Ok(()) }
    }

    /// The same whatever the key is, for what a browser proves by a cookie.
    pub(crate) fn check_names(&self, parts: &Parts) -> Result<(), ErrorAnswer> {
        let host = parts.headers.get(HOST).map(|host| host.to_str().unwrap_or("\u{FFFD}"));
        let target = parts.uri.authority().map(http::uri::Authority::as_str);
        target.into_iter().chain(host).try_for_each(|authority| self.check_name(authority))
    }

    /// The same for one name, such as a proxy passes on.
    pub(crate) fn check_name(&self, authority: &str) -> Result<(), ErrorAnswer> {
        if self.passes(authority) { Ok(()) } else { Err(refusal(authority)) }
    }

    fn passes(&self, authority: &str) -> bool {
        let Some(name) = name_of(authority) else { return false };
        is_private(name) || self.allowed.iter().any(|allowed| is_allowed(allowed, name))
    }
}

/// Whether an authority names this machine and nothing else can be meant by it.
pub(crate) fn is_this_machine(authority: &str) -> bool {
    let Some(name) = name_of(authority) else { return false };
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback()),
        None => {
            name.eq_ignore_ascii_case("localhost")
                || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// The name in an authority, without port and final dot; nothing if it is no authority.
fn name_of(authority: &str) -> Option<&str> {
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (authority, ""),
    };
    let is_good = port.bytes().all(|byte| byte.is_ascii_digit()) && name.is_ascii();
    is_good.then(|| name.strip_suffix('.').unwrap_or(name))
}

/// Whether a name is an address, or one that only this machine or network knows.
fn is_private(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match inner {
        Some(inner) => inner.split('%').next().is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()),
        None => {
            !name.contains(['.', ':', '@', ',', '[', ']', '%'])
                || name.parse::<Ipv4Addr>().is_ok()
                || PRIVATE_ENDINGS.iter().any(|ending| ends_with(name, ending))
        }
    }
}

fn is_allowed(allowed: &str, name: &str) -> bool {
    match allowed.strip_prefix('*') {
        Some(ending) => ends_with(name, ending),
        None => name.eq_ignore_ascii_case(allowed),
    }
}

/// Without case; the ending is ASCII.
fn ends_with(name: &str, ending: &str) -> bool {
    let start = name.len().checked_sub(ending.len());
    start.and_then(|start| name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

fn refusal(authority: &str) -> ErrorAnswer {
    let name = crate::request::excerpt(name_of(authority).unwrap_or("of the request"));
    ErrorAnswer::forbidden(format!(
        "The host name {name} is not one of this server's. While it has the emulator's well-known key, and always for its explorer, \
         it answers only to addresses, localhost, names without a dot, and names that end in .local or .internal, so that no web page can reach \
         it under a name of its own. If the name is yours, start the server with --allowed-host {name} \
         (ASTRARIUM_ALLOWED_HOSTS) or, but for the explorer, with a key of your own (--key)."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(authority: &str, passes: bool) {
        let allowed = ["db.example.org".to_owned(), "*.lan".to_owned(), "Tail.Example.NET.".to_owned()];
        let hosts = Hosts::new(true, Some("https://cosmos.example.com:8443/"), &allowed);
        assert_eq!(hosts.passes(authority), passes, "{authority}");
    }

    #[test]
    fn names() {
        for ours in [
            "localhost",
            "LOCALHOST:8081",
            "localhost.",
            "localhost.:8081",
            "127.0.0.1",
            "192.168.0.7:80",
            "8.8.8.8",
            "[::1]",
            "[::1]:8081",
            "[fe80::1%25eth0]:8081",
            "astrarium",
            "Astrarium:8081",
            "cosmos_db",
            "my-mac.local",
            "My-Mac.Local.:8081",
            "host.docker.internal:8081",
            "db.svc.cluster.local",
            "db.localhost",
            "",
            "db.example.org",
            "DB.example.ORG.:443",
            "cosmos.example.com",
            "cosmos.example.com:1",
            "nas.lan",
            "a.b.lan:80",
            "tail.example.net",
        ] {
            check(ours, true);
        }
        for foreign in [
            "evil.example",
            "evil.example:8081",
            "EVIL.example.",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "evil.example:80:80",
            "user@localhost",
            "localhost@evil.example",
            "evil.local.example",
            "notlocal.example",
            "example.org",
            "x.db.example.org",
            "lan.example",
            "[::1].evil.example",
            "[evil.example]",
            "127.0.0.1:x",
            "evil.example/localhost",
            "localhost,evil.example",
            "evil.example localhost",
            "\u{FFFD}",
            "x.notlan",
            "1.2.3",
            "::1.evil.example",
        ] {
            check(foreign, false);
        }
    }

    #[test]
    fn names_of_this_machine() {
        for ours in [
            "localhost",
            "LocalHost:8081",
            "localhost.:8081",
            "127.0.0.1:8081",
            "127.1.2.3",
            "[::1]",
            "[::1]:8081",
        ] {
            assert!(is_this_machine(ours), "{ours}");
        }
        for other in [
            "",
            "astrarium",
            "my-mac.local:8081",
            "host.docker.internal:8081",
            "db.localhost",
            "192.168.0.7:8081",
            "0.0.0.0:8081",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[fe80::1]",
            "::1",
            "127.0.0.1.nip.io",
            "127.0.0.1:80:80",
            "user@localhost",
            "localhost,evil.example",
            "localhost.evil.example",
        ] {
            assert!(!is_this_machine(other), "{other}");
        }
    }

    /// The target's own authority, as in HTTP/2 and in requests to a proxy, counts as much as the header; forwarded names do
    /// not.
    #[test]
    fn every_name_of_a_request() {
        let hosts = Hosts::new(true, None, &[]);
        let check = |uri: &str, host: &[&str], status: Option<u16>| {
            let mut request = http::Request::builder().uri(uri).header("x-forwarded-host", "localhost");
            for host in host {
                request = request.header(HOST, *host);
            }
            let parts = request.body(()).unwrap().into_parts().0;
            assert_eq!(hosts.check(&parts).err().map(|failure| failure.status), status, "{uri} {host:?}");
        };
        check("http://localhost:8081/dbs", &[], None);
        check("http://localhost:8081/dbs", &["127.0.0.1"], None);
        check("/dbs", &[], None);
        check("/dbs", &["evil.example"], Some(403));
        check("http://evil.example:8081/dbs", &[], Some(403));
        check("http://evil.example:8081/dbs", &["localhost"], Some(403));
        check("http://localhost/dbs", &["evil.example"], Some(403));
        check("/dbs", &["localhost", "localhost"], Some(400));
    }

    #[test]
    fn a_star_allows_everything_and_a_secret_key_too() {
        let parts = |host: &str| http::Request::builder().header(HOST, host).body(()).unwrap().into_parts().0;
        assert!(Hosts::new(true, None, &["*".to_owned()]).check(&parts("evil.example")).is_ok());
        assert!(Hosts::new(false, None, &[]).check(&parts("evil.example")).is_ok());
        // Not for what a browser proves by a cookie.
        assert!(Hosts::new(false, None, &[]).check_names(&parts("evil.example")).is_err());
        assert!(
            Hosts::new(false, None, &["db.example".to_owned()]).check_names(&parts("db.example")).is_ok()
        );
        assert!(Hosts::new(false, None, &[]).check_names(&parts("127.0.0.1:8081")).is_ok());
        let refused = Hosts::new(true, None, &[]).check(&parts("evil.example")).unwrap_err();
        assert!(refused.status == 403 && refused.message.contains("--allowed-host evil.example"));
    }
}
