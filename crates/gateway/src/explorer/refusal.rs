//! What the explorer's API answers instead of a result: `{"code": .., "message": ..}`.

use crate::answer::Answer;
use crate::database;
use crate::error::{ErrorAnswer, Form};
use crate::wire::headers;
use crate::wire::status::code_name;
use http::StatusCode;

/// A refusal.
#[derive(Debug)]
pub(super) struct ApiRefusal {
    pub(super) status: u16,
    code: &'static str,
    message: String,
    retry_after_seconds: Option<u64>,
}

impl ApiRefusal {
    fn new(status: u16, code: &'static str, message: impl Into<String>) -> ApiRefusal {
        ApiRefusal { status, code, message: message.into(), retry_after_seconds: None }
    }

    /// Nobody is signed in, or not any more.
    pub(super) fn sign_in() -> ApiRefusal {
        ApiRefusal::new(
            401,
            "SignInNeeded",
            "There is no session, or it has ended. Sign in with an account key.",
        )
    }

    /// Neither the key nor the link is one of ours.
    pub(super) fn wrong_key() -> ApiRefusal {
        ApiRefusal::new(401, "WrongKey", "This is not a key of the account.")
    }

    /// The link was used, or is too old, or never was one.
    pub(super) fn wrong_link() -> ApiRefusal {
        let message = "The sign-in link is not good any more: it works once, and not for long. Sign in with an account key.";
        ApiRefusal::new(401, "WrongLink", message)
    }

    /// Signing in without a key is for browsers on this machine, while its key is the one that everybody knows.
    pub(super) fn not_this_machine() -> ApiRefusal {
        let message = "Signing in without a key works on the server's own machine only, under the name localhost or a loopback address, \
                       while the server listens there alone and has the emulator's well-known key. Sign in with an account key.";
        ApiRefusal::new(403, "NotThisMachine", message)
    }

    /// Too many wrong keys.
    pub(super) fn too_many(seconds: u64) -> ApiRefusal {
        let message = format!("Too many wrong keys came from this address. Try again in {seconds} s.");
        let refusal = ApiRefusal::new(429, "TooManyAttempts", message);
        ApiRefusal { retry_after_seconds: Some(seconds), ..refusal }
    }

    pub(super) fn forbidden(message: impl Into<String>) -> ApiRefusal {
        ApiRefusal::new(403, "Forbidden", message)
    }

    pub(super) fn bad_request(message: impl Into<String>) -> ApiRefusal {
        ApiRefusal::new(400, "BadRequest", message)
    }

    pub(super) fn not_found() -> ApiRefusal {
        ApiRefusal::new(404, "NotFound", "There is nothing at this path.")
    }

    pub(super) fn method(allowed: &str) -> ApiRefusal {
        ApiRefusal::new(
            405,
            "MethodNotAllowed",
            format!("The verb is not supported on this path; it takes {allowed}."),
        )
    }

    pub(super) fn answer(&self) -> Answer {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::json!({"code": self.code, "message": self.message});
        let mut answer = Answer::json(status, body.to_string().into_bytes());
        if let Some(seconds) = self.retry_after_seconds {
            answer.set_number(headers::RETRY_AFTER, seconds);
        }
        answer
    }
}

impl From<ErrorAnswer> for ApiRefusal {
    fn from(failure: ErrorAnswer) -> ApiRefusal {
        let message = match failure.form {
            Form::Sentence | Form::Opening => failure.message,
            // The message is JSON for clients; the remark says it in words.
            Form::QueryFaults | Form::PlanFaults => failure.remark.map_or(failure.message, String::from),
        };
        ApiRefusal {
            retry_after_seconds: failure
                .retry_after_ms
                .map(|milliseconds| u64::from(milliseconds.div_ceil(1000))),
            ..ApiRefusal::new(failure.status, code_name(failure.status), message)
        }
    }
}

impl From<database::Error> for ApiRefusal {
    fn from(error: database::Error) -> ApiRefusal {
        ErrorAnswer::from(error).into()
    }
}
