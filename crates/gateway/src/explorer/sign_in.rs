//! Signing in with a key, a link or, on this machine, the key that everybody knows; asking who one is; signing out.

use super::refusal::ApiRefusal;
use super::sessions::{Session, Sessions, SignedIn};
use super::{ExplorerCall, page_checks, this_machine};
use crate::account_document;
use crate::answer::Answer;
use crate::wire::authorization::{AccountKeys, KeyAccess, MasterKey};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::net::IpAddr;

/// How one may sign in besides with a key or a link; answered without a session.
pub(super) fn ways(call: &ExplorerCall<'_>) -> Result<Answer, ApiRefusal> {
    page_checks::page_token(call.parts)?;
    let told = json!({"wellKnownKey": this_machine::access(call).is_some()});
    Ok(Answer::json(StatusCode::OK, told.to_string().into_bytes()))
}

/// Begins a session for whoever has a key of the account, or a link.
pub(super) fn sign_in(call: &ExplorerCall<'_>, body: &[u8]) -> Result<Answer, ApiRefusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|_| ApiRefusal::bad_request("The body of a sign-in is {\"key\": ..} or {\"link\": ..}."))?;
    let now = call.gateway.shared.account.env().now_seconds();
    let access = match (body.get("key"), body.get("link"), body.get("wellKnownKey")) {
        (Some(Value::String(key)), None, None) => access_of_key(call, key, now)?,
        (None, Some(Value::String(link)), None) => {
            if !call.explorer.sessions.use_link(link, now) {
                return Err(ApiRefusal::wrong_link());
            }
            KeyAccess::Full
        }
        (None, None, Some(Value::Bool(true))) => {
            // A header of the page's own: no form of another site can send it.
            page_checks::page_token(call.parts)?;
            this_machine::access(call).ok_or_else(ApiRefusal::not_this_machine)?
        }
        _ => return Err(ApiRefusal::bad_request("A sign-in has a key or a link, as text.")),
    };
    let access = match body.get("readOnly") {
        None | Some(Value::Bool(false) | Value::Null) => access,
        Some(Value::Bool(true)) => KeyAccess::ReadOnly,
        Some(_) => return Err(ApiRefusal::bad_request("readOnly is true or false.")),
    };
    // The browser forgets the session that it has, so nobody could sign out of that any more.
    let sessions = &call.explorer.sessions;
    page_checks::cookies(call.parts).for_each(|former| sessions.end(former));
    let SignedIn { cookie, page_token, session } = sessions.begin(access, now);
    let mut described = describe(call, session);
    described["pageToken"] = page_token.into();
    let mut answer = Answer::json(StatusCode::OK, described.to_string().into_bytes());
    set_cookie(call, &mut answer, &cookie, session.expires.saturating_sub(now));
    Ok(answer)
}

fn access_of_key(call: &ExplorerCall<'_>, text: &str, now: u64) -> Result<KeyAccess, ApiRefusal> {
    judge_key(&call.explorer.sessions, &call.gateway.shared.settings.keys, text, (call.peer.address, now))
}

/// What a key allows. A right one is never refused, however many wrong ones came from its address: behind a proxy all of us have one.
fn judge_key(
    sessions: &Sessions,
    keys: &AccountKeys,
    text: &str,
    (address, now): (IpAddr, u64),
) -> Result<KeyAccess, ApiRefusal> {
    let key = MasterKey::from_base64(text).ok();
    if let Some(access) = key.and_then(|key| keys.access_of_key(&key)) {
        return Ok(access);
    }
    sessions.take_attempt(address, now).map_err(ApiRefusal::too_many)?;
    Err(ApiRefusal::wrong_key())
}

/// What a session asks about itself, and its end.
pub(super) fn session(call: &ExplorerCall<'_>, cookie: &str, session: Session) -> Result<Answer, ApiRefusal> {
    match call.parts.method {
        Method::GET | Method::HEAD => {
            Ok(Answer::json(StatusCode::OK, describe(call, session).to_string().into_bytes()))
        }
        Method::DELETE => {
            call.explorer.sessions.end(cookie);
            let mut answer = Answer::empty(StatusCode::NO_CONTENT);
            set_cookie(call, &mut answer, "", 0);
            Ok(answer)
        }
        _ => Err(ApiRefusal::method("GET, POST, DELETE")),
    }
}

fn describe(call: &ExplorerCall<'_>, session: Session) -> Value {
    let (settings, parts) = (&call.gateway.shared.settings, call.parts);
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    let role = match session.access {
        KeyAccess::Full => "read-write",
        KeyAccess::ReadOnly => "read-only",
    };
    json!({
        "role": role,
        "expires": session.expires,
        "account": {
            "name": settings.server_name.as_deref().unwrap_or(account_document::ACCOUNT),
            "endpoint": account_document::endpoint(settings, &parts.headers, authority, call.peer.scheme),
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}

fn set_cookie(call: &ExplorerCall<'_>, answer: &mut Answer, token: &str, seconds: u64) {
    let name = page_checks::cookie_name(call.parts);
    let secure = if page_checks::is_secure(call) { "; Secure" } else { "" };
    let cookie =
        format!("{name}={token}; Path={}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", super::ROOT);
    answer.set_text("set-cookie", cookie);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::key_text::EMULATOR_KEY;
    use std::net::Ipv4Addr;

    #[test]
    fn a_right_key_is_never_locked_out() {
        let primary = MasterKey::from_base64(EMULATOR_KEY).unwrap();
        let (sessions, keys) = (Sessions::new(primary.clone(), 100), AccountKeys::single(primary));
        let wrong = EMULATOR_KEY.replace('C', "D");
        let from = (IpAddr::V4(Ipv4Addr::LOCALHOST), 1_000);
        let status = |text: &str| judge_key(&sessions, &keys, text, from).map_err(|refusal| refusal.status);
        for _ in 0..100 {
            assert_eq!(status(EMULATOR_KEY), Ok(KeyAccess::Full), "right keys cost nothing");
        }
        for text in [&wrong, "", "<script>"].into_iter().cycle().take(10) {
            assert_eq!(status(text), Err(401));
        }
        assert_eq!(status(&wrong), Err(429));
        assert_eq!(status("no base64"), Err(429));
        assert_eq!(status(EMULATOR_KEY), Ok(KeyAccess::Full));
        assert_eq!(status(&wrong), Err(429), "a right key gives nothing back");
    }
}
