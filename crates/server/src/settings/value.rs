//! What the texts of settings mean: addresses to listen on, switches, endpoints, origins, log filters.
//!
//! In: text from a flag or a variable. Out: the value, or a sentence that says what to write instead. Not here: which
//! setting has which kind of value (`settings`), and where a wrong text came from (`read`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The port of the service's emulator.
const PORT_DEFAULT: u16 = 8081;
const THIS_MACHINE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Where to listen: an address with or without port, a port with or without colon, or a name with a port. Without an
/// address it is this machine only, so that nobody opens a server to a network by leaving something out.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT_DEFAULT));
    }
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(SocketAddr::new(THIS_MACHINE, PORT_DEFAULT));
    }
    let (name, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port = port.parse().map_err(|_| {
        "write an address and a port, such as 127.0.0.1:8081, localhost:8081 or 8081; ports are 0 to 65535"
            .to_owned()
    })?;
    if name.is_empty() || name.eq_ignore_ascii_case("localhost") {
        return Ok(SocketAddr::new(THIS_MACHINE, port));
    }
    let found = (name, port).to_socket_addrs();
    let mut found: Vec<SocketAddr> = found.map_err(|error| format!("look up {name}: {error}"))?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| format!("no address is known for {name}"))
}

/// A switch as people write it in the environment.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" | "y" | "t" => Ok(true),
        "" | "0" | "false" | "no" | "off" | "n" | "f" => Ok(false),
        _ => Err("write 1, true, yes or on, or 0, false, no or off".to_owned()),
    }
}

/// Whether there is an explorer when nobody says so in our own words: as the emulator's image takes it.
pub(super) fn explorer_default() -> bool {
    std::env::var("ENABLE_EXPLORER").ok().and_then(|text| boolean(&text).ok()).unwrap_or(true)
}

/// The endpoint to tell clients.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    let text = text.trim();
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let authority = rest.map(|rest| rest.split_once('/').map_or(rest, |(authority, _)| authority));
    if authority.is_some_and(is_authority) && !text.contains(['?', '#']) && is_printable(text) {
        return Ok(text.to_owned());
    }
    Err("write a URL with http:// or https:// and a host, such as https://db.example.org/".to_owned())
}

/// An origin as browsers send it.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let text = text.trim();
    let authority = text.split_once("://").map(|(_, authority)| authority);
    let is_origin = authority.is_some_and(|authority| is_authority(authority) && !authority.contains('/'));
    if matches!(text, "*" | "null") || (is_origin && is_printable(text)) {
        return Ok(text.to_owned());
    }
    Err("write an origin as browsers send it, such as https://app.example.org, without a path, or *"
        .to_owned())
}

/// What a server or a store is called.
pub(super) fn server_name(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -._:".contains(&byte);
    if !text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("write a name of letters, digits, spaces and -._: with 64 of them at most, such as West 1".to_owned())
}

/// A name to answer to: of a host, or of everything below one.
pub(super) fn host(text: &str) -> Result<String, String> {
    let text = text.trim();
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text == "*" || (!name.is_empty() && name.bytes().all(is_name)) {
        return Ok(text.to_owned());
    }
    Err("write a host name without scheme and port, such as db.example.org or *.example.org".to_owned())
}

/// A host with an optional port, as it stands in a URL.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    !host.is_empty() && !host.contains(['@', ',']) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What to log. The library takes a misspelt level for the name of a part of the program, and then logs nothing.
pub(super) fn log_filter(text: &str) -> Result<String, String> {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let known = |directive: &str| match directive.trim().rsplit_once('=') {
        Some((_, level)) => is_level(level.trim()),
        None => is_level(directive.trim()),
    };
    if let Some(wrong) = text.split(',').find(|directive| !known(directive)) {
        return Err(format!(
            "{wrong:?} is no level; write off, error, warn, info, debug or trace, or part=level, separated by commas"
        ));
    }
    let text = text.split(',').map(str::trim).collect::<Vec<_>>().join(",");
    EnvFilter::try_new(&text).map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_listen() {
        for (text, expected) in [
            ("127.0.0.1:8081", "127.0.0.1:8081"),
            ("localhost:9000", "127.0.0.1:9000"),
            ("LOCALHOST:0", "127.0.0.1:0"),
            ("localhost", "127.0.0.1:8081"),
            (":9000", "127.0.0.1:9000"),
            ("9000", "127.0.0.1:9000"),
            (" 9000\n", "127.0.0.1:9000"),
            ("0.0.0.0", "0.0.0.0:8081"),
            ("0.0.0.0:9000", "0.0.0.0:9000"),
            ("[::1]:9000", "[::1]:9000"),
            ("[::]", "[::]:8081"),
            ("::1", "[::1]:8081"),
        ] {
            assert_eq!(listen(text).map(|address| address.to_string()), Ok(expected.to_owned()), "{text}");
        }
        for text in
            ["", ":", "nonsense", "localhost:", "localhost:99999", "-1", "127.0.0.1:x", "http://localhost:1"]
        {
            assert!(listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn switches() {
        for (text, expected) in
            [("1", true), ("Yes", true), ("on", true), ("TRUE", true), ("", false), ("0", false)]
        {
            assert_eq!(boolean(text), Ok(expected), "{text}");
        }
        for (text, expected) in [("no", false), ("off", false), ("false", false)] {
            assert_eq!(boolean(text), Ok(expected), "{text}");
        }
        assert!(boolean("maybe").is_err());
    }

    #[test]
    fn endpoints_and_origins() {
        for text in
            ["https://db.example.org/", "http://127.0.0.1:8081", "https://[::1]:8081/", "http://db/account/"]
        {
            assert_eq!(endpoint(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "db.example.org",
            "db:8081",
            "ftp://db/",
            "https://",
            "https:///x",
            "http://db:x/",
            "http://a b/",
        ] {
            assert!(endpoint(text).is_err(), "{text}");
        }
        for text in ["http://user@db/", "http://db/?x=1", "https://:8081/"] {
            assert!(endpoint(text).is_err(), "{text}");
        }
        for text in ["*", "null", "https://app.example.org", "http://localhost:3000"] {
            assert_eq!(origin(text).as_deref(), Ok(text));
        }
        for text in ["", "app.example.org", "https://app.example.org/", "https://"] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn log_filters() {
        for text in [
            "warn",
            "INFO",
            "off",
            "warn,astrarium_gateway=debug",
            "info, request=off",
            "warn,[span{a=1}]=info",
        ] {
            assert!(log_filter(text).is_ok(), "{text}");
        }
        for text in ["", "verbose", "warning", "warn,astrarium=loud", "info,,", "astrarium"] {
            assert!(log_filter(text).is_err(), "{text}");
        }
    }
}
