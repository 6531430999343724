//! What a request can end with instead of a result: the one table from errors to status, substatus and body.

use crate::answer::Answer;
use crate::database::{self, ScriptError};
use crate::metrics::UsedRange;
use crate::place::ServedBy;
use crate::wire::authorization::AuthorizationError;
use crate::wire::headers;
use crate::wire::status::{self, Detail, ErrorBody};
use http::StatusCode;

/// After what time a client may ask again while storage does not answer: a server asks its store five times a second.
const UNAVAILABLE_RETRY_MS: u32 = 1_000;

/// An error answer.
#[derive(Debug, Clone)]
pub(crate) struct ErrorAnswer {
    pub(crate) status: u16,
    pub(crate) substatus: u32,
    pub(crate) message: String,
    pub(crate) retry_after_ms: Option<u32>,
    /// What the message is.
    pub(crate) form: Form,
    /// What the message ends with, for people.
    pub(crate) remark: Option<Box<str>>,
    /// What the body says beside the message.
    pub(crate) additional: Option<Box<str>>,
    /// Where the failure happened, for the session headers of answers about items.
    pub(crate) place: Option<ServedBy>,
    /// Whether the container's rid is not told: clients then do not take the place for one they have been to.
    pub(crate) hides_owner: bool,
    /// What a script logged before it failed.
    pub(crate) script_log: Option<Box<str>>,
    /// The range that refused the request for want of throughput.
    pub(crate) throttled_at: Option<Box<UsedRange>>,
}

/// What an error's message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A sentence.
    Sentence,
    /// A sentence that clients look for at the start of the message.
    Opening,
    /// The mistakes of a query, as JSON.
    QueryFaults,
    /// The same, told by the planner.
    PlanFaults,
}

impl ErrorAnswer {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> ErrorAnswer {
        ErrorAnswer {
            status,
            substatus: 0,
            message: message.into(),
            retry_after_ms: None,
            form: Form::Sentence,
            remark: None,
            additional: None,
            place: None,
            hides_owner: false,
            script_log: None,
            throttled_at: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> ErrorAnswer {
        ErrorAnswer::new(400, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> ErrorAnswer {
        ErrorAnswer::new(403, message)
    }

    pub(crate) fn with_substatus(mut self, substatus: u32) -> ErrorAnswer {
        self.substatus = substatus;
        self
    }

    /// The same failure of a query, met while making the plan for a client.
    pub(crate) fn of_plan(mut self) -> ErrorAnswer {
        if self.form == Form::QueryFaults {
            self.form = Form::PlanFaults;
        }
        self
    }

    /// Whether the operator should hear of it.
    pub(crate) fn is_ours(&self) -> bool {
        self.status >= 500
    }

    pub(crate) fn answer(&self, activity_id: &str) -> Answer {
        let code = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let detail = match (self.form, self.status) {
            (Form::QueryFaults, _) => Detail::Json(&self.message),
            (Form::PlanFaults, _) => Detail::Planning(&self.message),
            (Form::Opening, _) | (Form::Sentence, 401 | 403) => Detail::Plain(&self.message),
            (Form::Sentence, _) if self.additional.is_some() => Detail::Plain(&self.message),
            (Form::Sentence, _) => Detail::Errors(&self.message),
        };
        let body = ErrorBody {
            code: status::code_name(self.status),
            detail,
            activity_id,
            request_uri: None,
            remark: self.remark.as_deref(),
            additional_error_info: self.additional.as_deref(),
        };
        let body = body.to_json();
        let mut answer = Answer::json(code, body);
        if self.substatus != 0 {
            answer.set_number(headers::SUBSTATUS, u64::from(self.substatus));
        }
        if let Some(milliseconds) = self.retry_after_ms {
            answer.set_number(headers::RETRY_AFTER_MS, u64::from(milliseconds));
            // What is not the service's own, such as balancers, knows this one only. Those who are throttled come sooner.
            if self.status == 503 {
                answer.set_number(headers::RETRY_AFTER, u64::from(milliseconds.div_ceil(1000)));
            }
        }
        if let Some(place) = &self.place {
            place.set_headers(&mut answer);
            if self.hides_owner {
                answer.headers.remove(headers::CONTENT_PATH);
            }
        }
        if let Some(log) = &self.script_log {
            answer.set_script_log(log);
        }
        if let Some(range) = &self.throttled_at {
            answer.served = Some(**range);
            answer.set_charge(0.0);
        }
        answer
    }
}

impl From<database::Error> for ErrorAnswer {
    fn from(error: database::Error) -> ErrorAnswer {
        use database::Error;
        let message = error.to_string();
        match error {
            Error::Invalid(_) => ErrorAnswer::new(400, message),
            Error::Query(faults) => {
                let details: Vec<&str> = faults.iter().map(|fault| fault.detail.as_str()).collect();
                let remark = Some(details.join("; ").into());
                ErrorAnswer { form: Form::QueryFaults, remark, ..ErrorAnswer::new(400, faults_json(&faults)) }
            }
            Error::Timeout(_) => ErrorAnswer::new(408, message),
            Error::Script(fault) => {
                ErrorAnswer { script_log: Some(fault.log.into()), ..of_script(&fault.error, message) }
            }
            Error::NeedsClientPlan(plan) => ErrorAnswer {
                additional: Some(plan.into()),
                ..ErrorAnswer::new(400, message).with_substatus(1004)
            },
            Error::PartitionKeyMismatch | Error::PartitionKeyDiffers { .. } => {
                ErrorAnswer::new(400, message).with_substatus(1001)
            }
            Error::ContainerRecreated => ErrorAnswer::new(400, message).with_substatus(1024),
            Error::NotFound => ErrorAnswer::new(404, message),
            Error::SessionNotAvailable => {
                ErrorAnswer::new(404, message).with_substatus(status::substatus::READ_SESSION_NOT_AVAILABLE)
            }
            Error::OwnerNotFound => ErrorAnswer::new(404, message).with_substatus(1003),
            Error::Exists => ErrorAnswer::new(409, message),
            Error::UniqueKey => {
                ErrorAnswer::new(409, message).with_substatus(status::substatus::UNIQUE_KEY_VIOLATION)
            }
            Error::KeyRangeGone => ErrorAnswer::new(410, message).with_substatus(1002),
            Error::KeyRangeMoving => ErrorAnswer::new(410, message).with_substatus(1007),
            Error::Resharding => ErrorAnswer::new(423, message),
            Error::PreconditionFailed => ErrorAnswer::new(412, message),
            Error::TooLarge => ErrorAnswer::new(413, message),
            Error::ResponseTooLarge => {
                ErrorAnswer::new(413, message).with_substatus(status::substatus::RESPONSE_SIZE_EXCEEDED)
            }
            Error::Busy => ErrorAnswer {
                retry_after_ms: Some(10),
                ..ErrorAnswer::new(429, message).with_substatus(3200)
            },
            Error::Throttled { retry_after_ms, .. } => ErrorAnswer {
                retry_after_ms: Some(u32::try_from(retry_after_ms).unwrap_or(u32::MAX)),
                ..ErrorAnswer::new(429, message).with_substatus(3200)
            },
            Error::Overloaded(_) => ErrorAnswer {
                retry_after_ms: Some(500),
                ..ErrorAnswer::new(429, message).with_substatus(3200)
            },
            Error::RetryWith => ErrorAnswer { retry_after_ms: Some(10), ..ErrorAnswer::new(449, message) },
            Error::Damaged(_) | Error::Bug(_) | Error::Stopped(_) => ErrorAnswer::new(500, message),
            Error::Unavailable(_) => {
                ErrorAnswer { retry_after_ms: Some(UNAVAILABLE_RETRY_MS), ..ErrorAnswer::new(503, message) }
            }
            Error::IndexLost(_) | Error::IndexWrong(_) => ErrorAnswer::new(503, message),
        }
    }
}

fn of_script(error: &ScriptError, message: String) -> ErrorAnswer {
    match error {
        ScriptError::Compile { .. } => {
            ErrorAnswer::new(400, message).with_substatus(status::substatus::SCRIPT_COMPILE_ERROR)
        }
        ScriptError::Exception(exception) => {
            ErrorAnswer::new(400, message).with_substatus(exception.number.unwrap_or(0))
        }
        ScriptError::Timeout { .. } => ErrorAnswer::new(408, message),
        ScriptError::TooLarge { .. } => ErrorAnswer::new(413, message),
        ScriptError::Host(error) => ErrorAnswer::new(error.number, message),
        ScriptError::Busy => ErrorAnswer {
            retry_after_ms: Some(100),
            ..ErrorAnswer::new(429, message).with_substatus(status::substatus::SCRIPT_CONCURRENCY_EXCEEDED)
        },
        ScriptError::Void { .. } => ErrorAnswer::new(449, message),
        ScriptError::Unavailable { .. } => ErrorAnswer::new(503, message),
        ScriptError::Bug { .. } => ErrorAnswer::new(500, message),
    }
}

/// The mistakes of a query in the service's form.
fn faults_json(faults: &[database::QueryFault]) -> String {
    let error = |fault: &database::QueryFault| {
        serde_json::json!({
            "severity": "Error",
            "location": {"start": fault.start, "end": fault.end},
            // Some codes are numbers on the service, most are texts.
            "code": fault.code.parse::<u32>().map_or_else(|_| fault.code.into(), serde_json::Value::from),
            "message": fault.message,
        })
    };
    serde_json::json!({"errors": faults.iter().map(error).collect::<Vec<_>>()}).to_string()
}

impl From<database::definition::Invalid> for ErrorAnswer {
    fn from(invalid: database::definition::Invalid) -> ErrorAnswer {
        database::Error::from(invalid).into()
    }
}

impl From<AuthorizationError> for ErrorAnswer {
    fn from(error: AuthorizationError) -> ErrorAnswer {
        ErrorAnswer::new(error.status(), error.to_string())
    }
}
