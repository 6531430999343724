//! Who sends a request: the signature or token of its `Authorization` header, checked before anything else is told.

use crate::authorize;
use crate::error::ErrorAnswer;
use crate::request::{Headers, header};
use crate::service::{GatewayState, Settings};
use crate::wire::address::Address;
use crate::wire::authorization::{
    self, Authorization, AuthorizationError, AuthorizationKind, signing_payload,
};
use crate::wire::headers;
use crate::wire::resource_token::ResourceToken;
use crate::wire::status::substatus;
use http::request::Parts;

/// Who sent a request.
pub(crate) struct Sender {
    pub(crate) access: SenderAccess,
    /// Whether the sender means the ids of the address as rids. It signed so, or has a token for that very database;
    /// what exists has no say, so that nothing can be named to be taken for another.
    pub(crate) by_rid: bool,
}

/// What the sender may do.
pub(crate) enum SenderAccess {
    /// Everything.
    Full,
    /// Reads and queries.
    ReadOnly(AccessProof),
    /// What a permission says.
    Token(ResourceToken),
}

/// Who sent a request by a session of the explorer.
pub(crate) struct SessionSender {
    pub(crate) access: SenderAccess,
    /// The second at which the session ends.
    pub(crate) ends_at_seconds: u64,
}

/// What shows who somebody is that may only read, for the words of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessProof {
    /// The signature of a key.
    Signature,
    /// A session of the explorer.
    Session,
}

/// What a signature is made of besides verb and address.
const CREDENTIALS: [&str; 3] = [headers::AUTHORIZATION, headers::X_MS_DATE, headers::DATE];

/// Checks the credentials of a request. Tokens age by the database's clock. Clients sign with the date of their own machines, so signatures
/// go by what the machine's clock says, however far the database's was moved.
pub(crate) fn check(
    shared: &GatewayState,
    parts: &Parts,
    headers: Headers<'_>,
    address: &Address<'_>,
) -> Result<Sender, ErrorAnswer> {
    let (settings, env) = (&shared.settings, shared.account.env());
    let now = env.now_seconds();
    if let Some(name) = headers.repeated(&CREDENTIALS) {
        return Err(ErrorAnswer::bad_request(format!("The header {name} was sent more than once.")));
    }
    let text = header(&parts.headers, headers::AUTHORIZATION).ok_or(AuthorizationError::MissingHeader)?;
    let authorization = Authorization::parse(text)?;
    match authorization.kind {
        AuthorizationKind::Master => {
            let machine_now = now.saturating_sub(env.advanced_seconds());
            check_signature(settings, parts, address, &authorization, machine_now)
        }
        AuthorizationKind::Resource => {
            let token = ResourceToken::verify(&authorization.signature, &settings.keys.primary, now)
                .map_err(|error| ErrorAnswer::new(error.status(), error.to_string()))?;
            let by_rid = address.looks_like_rid() && authorize::is_database_of(&token, address);
            Ok(Sender { access: SenderAccess::Token(token), by_rid })
        }
        AuthorizationKind::Aad => Err(unsupported(substatus::AAD_BAD_TOKEN)),
        AuthorizationKind::Sas => Err(unsupported(substatus::SAS_NOT_SUPPORTED)),
    }
}

fn unsupported(substatus: u32) -> ErrorAnswer {
    let message =
        "This server knows account keys and resource tokens only. Use one of its keys as the credential.";
    ErrorAnswer::new(401, message).with_substatus(substatus)
}

fn check_signature(
    settings: &Settings,
    parts: &Parts,
    address: &Address<'_>,
    authorization: &Authorization<'_>,
    now: u64,
) -> Result<Sender, ErrorAnswer> {
    let x_ms_date = header(&parts.headers, headers::X_MS_DATE);
    let date = header(&parts.headers, headers::DATE);
    let verb = parts.method.as_str();
    let signed = settings.keys.verify(&authorization.signature, verb, address, x_ms_date, date)?;
    settings.date_window.check(x_ms_date, date, i64::try_from(now).unwrap_or(i64::MAX))?;
    let access = match signed.access {
        authorization::KeyAccess::Full => SenderAccess::Full,
        authorization::KeyAccess::ReadOnly => SenderAccess::ReadOnly(AccessProof::Signature),
    };
    Ok(Sender { access, by_rid: signed.by_rid })
}

/// The refusal of a write that a read-only key signed: the same as of a wrong signature. Sessions sign nothing.
pub(crate) fn read_only(proof: AccessProof, parts: &Parts, address: &Address<'_>) -> ErrorAnswer {
    if proof == AccessProof::Session {
        return ErrorAnswer::forbidden("This session may only read. Sign in with a key that may write.");
    }
    let x_ms_date = header(&parts.headers, headers::X_MS_DATE);
    let date = header(&parts.headers, headers::DATE);
    let payload = signing_payload(parts.method.as_str(), address, x_ms_date, date);
    AuthorizationError::SignatureMismatch { payload }.into()
}
