//! Whether a browser may sign in without typing the key that everybody knows.
//!
//! Invariants
//! - It gives what the well-known key gives and nothing more: every program that can make this request could send that key instead. So
//!   nothing depends on it but convenience, and where anything is doubtful it is not offered.
//! - The server listens on this machine only, the connection comes from it, and every name that the request gives is a name of this
//!   machine. A page whose own name points here (DNS rebinding) sends that name.
//! - Nothing stands between: a proxy says that it is one in its headers, or the operator has said so in the settings. One that hides
//!   itself passes on the browser's `Origin`, which is then not ours (`page_checks`).
//!
//! Not here: origins, which every sign-in needs (`page_checks`); keys and links (`sign_in`).

use super::ExplorerCall;
use crate::host;
use crate::service::Settings;
use crate::wire::authorization::{AccountKeys, KeyAccess, MasterKey};
use crate::wire::key_text::EMULATOR_KEY;
use http::header::HOST;
use http::request::Parts;
use std::net::IpAddr;

/// Headers of proxies, besides those that begin with `x-forwarded`.
const PROXY_HEADERS: [&str; 4] = ["forwarded", "via", "x-real-ip", "x-client-ip"];

/// What signing in without a key gives, or nothing where it is not offered.
pub(super) fn access(call: &ExplorerCall<'_>) -> Option<KeyAccess> {
    let settings = &call.gateway.shared.settings;
    let is_ours = is_for_this_machine(settings) && is_direct(call.parts, call.peer.address);
    if is_ours { access_of_well_known(&settings.keys) } else { None }
}

/// Whether the server is for this machine by its settings.
fn is_for_this_machine(settings: &Settings) -> bool {
    let is_local = settings.explorer.is_some_and(|explorer| explorer.is_local);
    is_local && settings.public_endpoint.is_none() && !settings.trust_forwarded
}

/// Whether a request comes from a browser on this machine, with nothing between.
fn is_direct(parts: &Parts, peer: IpAddr) -> bool {
    let host = parts.headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
    let mut names =
        parts.uri.authority().map(http::uri::Authority::as_str).into_iter().chain(host).peekable();
    let is_named = names.peek().is_some();
    let is_passed_on = parts.headers.keys().any(|name| {
        let name = name.as_str();
        name.starts_with("x-forwarded") || PROXY_HEADERS.contains(&name)
    });
    peer.to_canonical().is_loopback() && is_named && names.all(host::is_this_machine) && !is_passed_on
}

/// What the well-known key may do, if it is one of the account's.
fn access_of_well_known(keys: &AccountKeys) -> Option<KeyAccess> {
    let known = MasterKey::from_base64(EMULATOR_KEY).ok()?;
    keys.access_of_key(&known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, headers: &[(&str, &str)], peer: &str, expected: bool) {
        let request = http::Request::builder().uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let parts = request.body(()).expect("a request").into_parts().0;
        assert_eq!(
            is_direct(&parts, peer.parse().expect("an address")),
            expected,
            "{uri} {headers:?} {peer}"
        );
    }

    #[test]
    fn only_what_comes_straight_from_this_machine_counts() {
        let local = ("host", "localhost:8081");
        check("/", &[local], "127.0.0.1", true);
        check("/", &[("host", "[::1]:8081")], "::1", true);
        check("/", &[("host", "127.0.0.1")], "::ffff:127.0.0.1", true);
        check("https://localhost:8081/", &[], "127.0.0.1", true);
        for peer in ["192.168.0.7", "0.0.0.0", "::ffff:10.0.0.1", "fe80::1"] {
            check("/", &[local], peer, false);
        }
        for host in ["astrarium", "my-mac.local", "evil.example:8081", "10.0.0.1:8081", ""] {
            check("/", &[("host", host)], "127.0.0.1", false);
        }
        check("/", &[], "127.0.0.1", false);
        check("http://evil.example/", &[local], "127.0.0.1", false);
        for name in
            ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "via", "x-real-ip"]
        {
            check("/", &[local, (name, "127.0.0.1")], "127.0.0.1", false);
        }
    }

    #[test]
    fn it_gives_what_the_well_known_key_gives() {
        let known = || MasterKey::from_base64(EMULATOR_KEY).expect("the well-known key");
        let own = || MasterKey::from_base64(&format!("{}A==", "S".repeat(85))).expect("a key");
        assert_eq!(access_of_well_known(&AccountKeys::single(known())), Some(KeyAccess::Full));
        assert_eq!(access_of_well_known(&AccountKeys::single(own())), None);
        let reader = AccountKeys { primary_readonly: Some(known()), ..AccountKeys::single(own()) };
        assert_eq!(access_of_well_known(&reader), Some(KeyAccess::ReadOnly));
    }
}
