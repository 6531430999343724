//! The body of a query request: its text, its parameters, and where its rows begin.
//!
//! In: JSON, or the bare text. Out: a [`QueryBody`]. What SDKs send was read in their sources: all send `query` and
//! `parameters`; .NET sends `resumeFilter` where it goes on with ORDER BY over several ranges from a saved position, and
//! `clientQLCompatibilityLevel` where it asks for a plan in a form that this server does not offer, so it changes no rows.
//! Invariant: a member that is not known is refused, for it may say which rows are wanted.

use crate::database::value::Value;
use crate::database::value::json::{self as json_text, Kind, Node};
use crate::database::{ChildType, Error, OrderStart, Query, Rid, StartKey, query_parameters};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::headers;

/// Longest body, in bytes.
const BODY_BYTES_MAX: usize = 2 << 20;
/// Sort keys of a position at most: a composite index has no more paths.
const KEYS_MAX: usize = 100;

/// What a client asks.
pub(super) struct QueryBody {
    query: Query,
    resume_filter: Option<ResumeFilter>,
}

/// Where rows begin in the order of the query, in the words of the protocol.
struct ResumeFilter {
    value: Vec<StartKey>,
    rid: Option<Rid>,
    exclude: bool,
}

impl QueryBody {
    /// Reads the body of a request.
    pub(super) fn read(shared: &GatewayState, request: &Request<'_>) -> Result<QueryBody, ErrorAnswer> {
        if request.body.len() > BODY_BYTES_MAX {
            return Err(Error::TooLarge.into());
        }
        let content_type = request.header(headers::CONTENT_TYPE).unwrap_or_default();
        if content_type.starts_with("application/sql") {
            let text = std::str::from_utf8(&request.body).map_err(|_| malformed())?;
            let query = shared.account.parse_query(text, Vec::new())?;
            return Ok(QueryBody { query, resume_filter: None });
        }
        let body = json_text::Text::parse(&request.body).map_err(|_| malformed())?;
        let (mut text, mut parameters, mut resume_filter) = (None, Vec::new(), None);
        for (name, member) in body.root().members() {
            match &*name {
                "query" => text = member.as_str(),
                "parameters" if member.kind() == Kind::Null => {}
                "parameters" if member.kind() == Kind::Array => {
                    parameters = query_parameters(member).ok_or_else(malformed)?;
                }
                "parameters" => return Err(malformed()),
                "resumeFilter" if member.kind() == Kind::Null => {}
                "resumeFilter" => {
                    resume_filter = Some(ResumeFilter::read(member).ok_or_else(malformed_filter)?);
                }
                "clientQLCompatibilityLevel" => {}
                _ => return Err(unknown(&name)),
            }
        }
        let query = shared.account.parse_query(&text.ok_or_else(malformed)?, parameters)?;
        Ok(QueryBody { query, resume_filter })
    }

    /// The query over the items of a container.
    pub(super) fn of_documents(self, container: Rid) -> Result<Query, ErrorAnswer> {
        let Some(filter) = self.resume_filter else { return Ok(self.query) };
        if filter.rid.is_some_and(|rid| rid.container_part() != Some(container)) {
            return Err(malformed_filter());
        }
        let document = filter.rid.map(|rid| rid.number());
        Ok(self.query.starting(OrderStart { keys: filter.value, document, exclude: filter.exclude }))
    }

    /// The query over other resources, which nobody merges.
    pub(super) fn of_resources(self) -> Result<Query, ErrorAnswer> {
        if self.resume_filter.is_some() {
            return Err(unknown("resumeFilter"));
        }
        Ok(self.query)
    }
}

impl ResumeFilter {
    fn read(node: Node<'_>) -> Option<ResumeFilter> {
        let (mut value, mut rid, mut exclude) = (Vec::new(), None, None);
        for (name, member) in node.members() {
            match &*name {
                "value" => {
                    value = member.elements().take(KEYS_MAX + 1).map(start_key).collect::<Option<_>>()?;
                }
                "rid" if member.kind() == Kind::Null => {}
                "rid" => {
                    let of_document = |rid: &Rid| rid.child_type() == Some(ChildType::Document);
                    rid = Some(Rid::parse(&member.as_str()?).filter(of_document)?);
                }
                "exclude" => exclude = Some(member.as_bool()?),
                _ => return None,
            }
        }
        (1..=KEYS_MAX).contains(&value.len()).then_some(())?;
        Some(ResumeFilter { value, rid, exclude: exclude? })
    }
}

/// A sort key: a scalar is itself, `[]` is undefined, and an array or an object is its type with both halves of its hash.
fn start_key(node: Node<'_>) -> Option<StartKey> {
    match node.kind() {
        Kind::Array => node.elements().next().is_none().then(|| StartKey::Value(Value::default())),
        Kind::Object => {
            let half = |name| node.get(name)?.raw().parse::<i64>().ok().map(i64::cast_unsigned);
            let (low, high) = (half("low")?, half("high")?);
            match &*node.get("type")?.as_str()? {
                "array" => Some(StartKey::Array(low, high)),
                "object" => Some(StartKey::Object(low, high)),
                _ => None,
            }
        }
        _ => Some(StartKey::Value(node.to_value())),
    }
}

fn malformed() -> ErrorAnswer {
    ErrorAnswer::bad_request(
        "The request payload is invalid. A query request needs a body of the form {\"query\": \"...\", \"parameters\": \
         [{\"name\": \"@p\", \"value\": 1}]}.",
    )
}

fn malformed_filter() -> ErrorAnswer {
    ErrorAnswer::bad_request(
        "The request payload is invalid. A resumeFilter has the form {\"value\": [1], \"rid\": \"...\", \"exclude\": true}: \
         the sort keys of the last row, for one range the _rid of its item, and whether rows with these keys are left out.",
    )
}

fn unknown(name: &str) -> ErrorAnswer {
    let shown: String = name.chars().take(100).collect();
    ErrorAnswer::bad_request(format!(
        "The request payload is invalid. The body of a query request has no member \"{shown}\" here; it has \"query\" and \
         \"parameters\"."
    ))
}
