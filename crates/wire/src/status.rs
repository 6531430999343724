//! Statuses, substatuses, and the body of an error.
//!
//! In: status, message, activity id. Out: the name of the status and the JSON body
//! `{"code":"…","message":"Message: {\"Errors\":[\"…\"]}\r\nActivityId: …, Request URI: …, remark"}`.
//! Invariants
//! - A body is never empty and always JSON: one client crashes on anything else.
//! - A text is escaped once for the inner list and once more for the body, so any text survives both.
//!
//! Not here: which failure has which status (`gateway`).

pub mod substatus;

/// The name of a status as error bodies spell it; a status that is not in the table is named like its class.
pub const fn code_name(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        423 => "Locked",
        424 => "FailedDependency",
        429 => "TooManyRequests",
        449 => "RetryWith",
        500 => "InternalServerError",
        503 => "ServiceUnavailable",
        _ if status < 500 => "BadRequest",
        _ => "InternalServerError",
    }
}

/// The text of status 413 that a client's tests compare.
pub const REQUEST_TOO_LARGE_MESSAGE: &str = "Request size is too large";

/// What went wrong, in one of the shapes that the service uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail<'a> {
    /// Shown as `Message: {"Errors":["<text>"]}`.
    Errors(&'a str),
    /// JSON that is shown as `Message: <json>`, such as the list of a query's syntax errors.
    Json(&'a str),
    /// The same from the planner: JSON that is shown as `Gateway Failed to Retrieve Query Plan: Message: <json>`.
    Planning(&'a str),
    /// Shown as it is: refusals of the signature, and the request for a query plan.
    Plain(&'a str),
}

/// Everything an error body can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorBody<'a> {
    /// Name of the status, see [`code_name`].
    pub code: &'a str,
    /// What went wrong, the useful part first.
    pub detail: Detail<'a>,
    /// UUID of the request.
    pub activity_id: &'a str,
    /// Path of the request, if it should be named.
    pub request_uri: Option<&'a str>,
    /// What helps people and is not in the service's own words. It ends the message, since clients compare beginnings.
    pub remark: Option<&'a str>,
    /// Text of the query plan, only with substatus 1004.
    pub additional_error_info: Option<&'a str>,
}

impl ErrorBody<'_> {
    /// The bytes of the body.
    pub fn to_json(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(256);
        body.extend_from_slice(b"{\"code\":");
        write_json_text(&mut body, self.code);
        body.extend_from_slice(b",\"message\":");
        write_json_text(&mut body, &self.message());
        if let Some(info) = self.additional_error_info {
            body.extend_from_slice(b",\"additionalErrorInfo\":");
            write_json_text(&mut body, info);
        }
        body.push(b'}');
        body
    }

    /// The message before it becomes part of JSON.
    pub fn message(&self) -> String {
        let mut message = match self.detail {
            Detail::Errors(text) => {
                let mut list = b"Message: {\"Errors\":[".to_vec();
                write_json_text(&mut list, text);
                list.extend_from_slice(b"]}");
                String::from_utf8(list).expect("JSON text is UTF-8")
            }
            Detail::Json(json) => ["Message: ", json].concat(),
            Detail::Planning(json) => ["Gateway Failed to Retrieve Query Plan: Message: ", json].concat(),
            Detail::Plain(text) => text.to_owned(),
        };
        message.push_str("\r\nActivityId: ");
        message.push_str(self.activity_id);
        if let Some(uri) = self.request_uri {
            message.push_str(", Request URI: ");
            message.push_str(uri);
        }
        if let Some(remark) = self.remark {
            message.push_str(", ");
            message.push_str(remark);
        }
        message
    }
}

/// The body of an ordinary error.
pub fn error_body(code: &str, message: &str, activity_id: &str) -> Vec<u8> {
    let detail = Detail::Errors(message);
    ErrorBody { code, detail, activity_id, request_uri: None, remark: None, additional_error_info: None }
        .to_json()
}

fn write_json_text(output: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(output, text).expect("writing text to memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    const ACTIVITY_ID: &str = "00000000-0000-0000-0000-000000000001";

    #[track_caller]
    fn check(status: u16, detail: Detail<'_>, request_uri: Option<&str>, message: &str) {
        let code = code_name(status);
        let info = matches!(detail, Detail::Plain(_)).then_some("{\"a\":1}");
        let body = ErrorBody {
            code,
            detail,
            activity_id: ACTIVITY_ID,
            request_uri,
            remark: matches!(detail, Detail::Json(_)).then_some("line 1, column 8"),
            additional_error_info: info,
        };
        let value: Value = serde_json::from_slice(&body.to_json()).unwrap();
        assert_eq!(value["code"], code);
        assert_eq!(value["message"], message);
        assert_eq!(value.get("additionalErrorInfo").and_then(Value::as_str), info);
    }

    #[test]
    fn bodies() {
        let too_large = "Message: {\"Errors\":[\"Request size is too large\"]}\r\n\
             ActivityId: 00000000-0000-0000-0000-000000000001";
        check(413, Detail::Errors(REQUEST_TOO_LARGE_MESSAGE), None, too_large);
        let quoted = "Message: {\"Errors\":[\"say \\\"no\\\"\\n\"]}\r\n\
             ActivityId: 00000000-0000-0000-0000-000000000001, Request URI: /dbs/é";
        check(400, Detail::Errors("say \"no\"\n"), Some("/dbs/é"), quoted);
        let syntax = "Message: {\"errors\":[{\"code\":\"SC1001\"}]}\r\n\
             ActivityId: 00000000-0000-0000-0000-000000000001, line 1, column 8";
        check(400, Detail::Json(r#"{"errors":[{"code":"SC1001"}]}"#), None, syntax);
        let planning = "Gateway Failed to Retrieve Query Plan: Message: {\"errors\":[]}\r\n\
             ActivityId: 00000000-0000-0000-0000-000000000001";
        check(400, Detail::Planning(r#"{"errors":[]}"#), None, planning);
        check(
            401,
            Detail::Plain("no 'x\\n'"),
            None,
            "no 'x\\n'\r\nActivityId: 00000000-0000-0000-0000-000000000001",
        );
    }

    #[test]
    fn bytes_of_a_body() {
        let body = error_body(code_name(404), "Resource Not Found", "id");
        let expected = r#"{"code":"NotFound","message":"Message: {\"Errors\":[\"Resource Not Found\"]}\r\nActivityId: id"}"#;
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn names_of_classes() {
        assert_eq!(code_name(429), "TooManyRequests");
        assert_eq!(code_name(418), "BadRequest");
        assert_eq!(code_name(599), "InternalServerError");
    }

    proptest! {
        #[test]
        fn any_text_survives_both_escapes(text in "\\PC*|[\\x00-\\x7f]*", uri in ".*") {
            let detail = Detail::Errors(&text);
            let uri = Some(uri.as_str());
            let body = ErrorBody {
                code: "x",
                detail,
                activity_id: "a",
                request_uri: uri,
                remark: None,
                additional_error_info: None,
            };
            let value: Value = serde_json::from_slice(&body.to_json()).unwrap();
            let message = value["message"].as_str().unwrap();
            let (list, _) = message.strip_prefix("Message: ").unwrap().split_once("\r\n").unwrap();
            let list: Value = serde_json::from_str(list).unwrap();
            prop_assert_eq!(list["Errors"][0].as_str(), Some(text.as_str()));
        }
    }
}
