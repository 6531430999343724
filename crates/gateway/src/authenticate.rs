//! Who sends a request: the signature or token of its `Authorization` header, checked before anything else is told.

use crate::error::Failure;
use crate::request::header;
use crate::service::Settings;
use crate::wire::address::Address;
use crate::wire::authorization::{
    self, Authorization, AuthorizationError, AuthorizationKind, signing_payload,
};
use crate::wire::headers;
use crate::wire::resource_token::ResourceToken;
use crate::wire::status::substatus;
use http::request::Parts;

/// What the sender may do.
pub(crate) enum Access {
    /// Everything.
    Full,
    /// Reads and queries.
    ReadOnly,
    /// What a permission says.
    Token(ResourceToken),
}

/// Checks the credentials of a request.
pub(crate) fn check(
    settings: &Settings,
    parts: &Parts,
    address: &Address<'_>,
    now: u64,
) -> Result<Access, Failure> {
    let text = header(&parts.headers, headers::AUTHORIZATION).ok_or(AuthorizationError::MissingHeader)?;
    let authorization = Authorization::parse(text)?;
    match authorization.kind {
        AuthorizationKind::Master => check_signature(settings, parts, address, &authorization, now),
        AuthorizationKind::Resource => {
            ResourceToken::verify(&authorization.signature, &settings.keys.primary, now)
                .map(Access::Token)
                .map_err(|error| Failure::new(error.status(), error.to_string()))
        }
        AuthorizationKind::Aad => Err(unsupported(substatus::AAD_BAD_TOKEN)),
        AuthorizationKind::Sas => Err(unsupported(substatus::SAS_NOT_SUPPORTED)),
    }
}

fn unsupported(substatus: u32) -> Failure {
    let message =
        "This server knows account keys and resource tokens only. Use one of its keys as the credential.";
    Failure::new(401, message).with_substatus(substatus)
}

fn check_signature(
    settings: &Settings,
    parts: &Parts,
    address: &Address<'_>,
    authorization: &Authorization<'_>,
    now: u64,
) -> Result<Access, Failure> {
    let x_ms_date = header(&parts.headers, headers::X_MS_DATE);
    let date = header(&parts.headers, headers::DATE);
    let verb = parts.method.as_str();
    let access = settings.keys.verify(&authorization.signature, verb, address, x_ms_date, date)?;
    settings.date_window.check(x_ms_date, date, i64::try_from(now).unwrap_or(i64::MAX))?;
    Ok(match access {
        authorization::Access::Full => Access::Full,
        authorization::Access::ReadOnly => Access::ReadOnly,
    })
}

/// The refusal of a write that a read-only key signed: the same as of a wrong signature.
pub(crate) fn read_only(parts: &Parts, address: &Address<'_>) -> Failure {
    let x_ms_date = header(&parts.headers, headers::X_MS_DATE);
    let date = header(&parts.headers, headers::DATE);
    let payload = signing_payload(parts.method.as_str(), address, x_ms_date, date);
    AuthorizationError::SignatureMismatch { payload }.into()
}
