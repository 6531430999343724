//! A request as its route sees it: checked address, readable headers, the whole body.

use crate::database::partition::{EffectiveKey, EffectiveRange, PartitionKey};
use crate::database::{Conditions, EtagCondition, Link, PageLimit, Rid};
use crate::error::ErrorAnswer;
use crate::operation::Operation;
use crate::wire::address::Address;
use crate::wire::condition::HeaderCondition;
use crate::wire::header_values::{self, MaxItemCount};
use crate::wire::headers;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

/// Bytes of one page's documents.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Items of a page when the client does not say.
const PAGE_COUNT_DEFAULT: usize = 100;
/// Headers of a request that are searched one by one.
const SEARCHED_MAX: usize = 32;
/// Items of a page when the client leaves it to the server.
const PAGE_COUNT_MAX: usize = 1_000;

/// A request that may be served.
pub(crate) struct Request<'a> {
    /// What it asks for. The verb is not kept: this is all that routes go by.
    pub(crate) operation: Operation,
    pub(crate) address: Address<'a>,
    /// Whether ids in the address are rids.
    pub(crate) by_rid: bool,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: Bytes,
    /// The connection it came on.
    pub(crate) client: u64,
    /// When the session of the explorer ends that stands for its sender, if one does: a page, which cannot merge the rows of several
    /// ranges itself, and which gets nothing that outlives its session.
    pub(crate) session_ends_at_seconds: Option<u64>,
    /// Whether the sender may have the tokens of permissions.
    pub(crate) sees_tokens: bool,
}

/// The headers of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Headers<'a> {
    pub(crate) map: &'a HeaderMap,
    /// How long their names are.
    lengths: NameLengths,
}

impl<'a> Headers<'a> {
    pub(crate) fn of(map: &'a HeaderMap) -> Headers<'a> {
        Headers { map, lengths: NameLengths::of(map) }
    }

    /// The value of a header; an empty one counts as absent.
    pub(crate) fn get(self, name: &str) -> Option<&'a str> {
        if self.lengths.may_have(name) { header(self.map, name) } else { None }
    }

    pub(crate) fn flag(self, name: &str) -> bool {
        self.get(name).is_some_and(header_values::parse_boolean)
    }

    /// The first of these headers that was sent more than once.
    pub(crate) fn repeated<'n>(self, names: &[&'n str]) -> Option<&'n str> {
        if self.map.len() == self.map.keys_len() {
            return None;
        }
        names.iter().copied().find(|name| self.map.get_all(*name).iter().count() > 1)
    }
}

/// The lengths of all names of headers, one bit for each, so that most of the headers that a request does not have are not
/// searched for: a query asks for thirty and has a few of them.
#[derive(Debug, Clone, Copy)]
struct NameLengths(u64);

impl NameLengths {
    fn of(headers: &HeaderMap) -> NameLengths {
        NameLengths(headers.keys().fold(0, |bits, name| bits | NameLengths::bit(name.as_str())))
    }

    fn bit(name: &str) -> u64 {
        1 << (name.len() % 64)
    }

    fn may_have(self, name: &str) -> bool {
        self.0 & NameLengths::bit(name) != 0
    }
}

/// The value of a header; an empty one counts as absent.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = find(headers, name)?;
    std::str::from_utf8(value.as_bytes()).ok().map(str::trim).filter(|text| !text.is_empty())
}

/// A request has a dozen headers, and comparing a name with all of them takes less than making it one that the map can
/// look up. Names are in lower case on both sides.
fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a HeaderValue> {
    if headers.len() > SEARCHED_MAX {
        return headers.get(name);
    }
    headers.iter().find(|(own, _)| own.as_str() == name).map(|(_, value)| value)
}

/// The condition that a header, or an operation of a batch, names; nothing if it is empty.
pub(crate) fn etag_condition(text: &str) -> Option<EtagCondition> {
    Some(match HeaderCondition::parse(text)? {
        HeaderCondition::Any => EtagCondition::Any,
        HeaderCondition::Etags(etags) => EtagCondition::OneOf(etags.iter().map(str::to_owned).collect()),
    })
}

impl Request<'_> {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.headers.flag(name)
    }

    /// The id at a place of the address, from the database downwards.
    pub(crate) fn link(&self, index: usize) -> Link<'_> {
        let id = self.address.ids.get(index).map_or("", |id| id.as_ref());
        if self.by_rid {
            // What is no rid names nothing; it is never taken for a name.
            Link::Rid(Rid::parse(id).unwrap_or(Rid::ROOT))
        } else {
            Link::Name(id)
        }
    }

    /// The body as JSON, of a resource other than a document.
    pub(crate) fn json(&self) -> Result<Value, ErrorAnswer> {
        let text = crate::database::value::json::Text::parse(&self.body).map_err(|error| {
            ErrorAnswer::bad_request(format!(
                "The request payload is invalid. Ensure to provide a valid request payload: {error}."
            ))
        })?;
        drop(text);
        serde_json::from_slice(&self.body).map_err(|_| {
            ErrorAnswer::bad_request(
                "The request payload is invalid. Ensure to provide a valid request payload.",
            )
        })
    }

    pub(crate) fn conditions(&self) -> Conditions {
        Conditions {
            if_match: self.condition(headers::IF_MATCH),
            if_none_match: self.condition(headers::IF_NONE_MATCH),
        }
    }

    fn condition(&self, name: &str) -> Option<EtagCondition> {
        etag_condition(self.header(name)?)
    }

    pub(crate) fn partition_key(&self) -> Result<Option<PartitionKey>, ErrorAnswer> {
        let Some(text) = self.header(headers::PARTITION_KEY) else {
            return Ok(None);
        };
        let key = PartitionKey::parse_header(text).map_err(|error| {
            ErrorAnswer::bad_request(format!("Partition key {} is invalid: {error}.", excerpt(text)))
        })?;
        Ok(Some(key))
    }

    /// The slice of the key space named by the effective-key headers.
    pub(crate) fn slice(&self) -> Result<Option<EffectiveRange>, ErrorAnswer> {
        let (min, max) = (self.header(headers::START_EPK), self.header(headers::END_EPK));
        if min.is_none() && max.is_none() {
            return Ok(None);
        }
        let kind = self.header(headers::READ_KEY_TYPE).unwrap_or_default();
        if !kind.eq_ignore_ascii_case("EffectivePartitionKeyRange") {
            return Err(ErrorAnswer::bad_request(
                "x-ms-start-epk and x-ms-end-epk need the header x-ms-read-key-type: EffectivePartitionKeyRange.",
            ));
        }
        let parse = |text: &str| {
            EffectiveKey::parse(text).map_err(|_| {
                ErrorAnswer::bad_request(format!("{} is not an effective partition key.", excerpt(text)))
            })
        };
        let min = min.map_or(Ok(EffectiveKey::MIN), parse)?;
        let max = max.map_or(Ok(EffectiveKey::max()), parse)?;
        Ok(Some(EffectiveRange::of_bounds(min, max)))
    }

    /// The range id, with or without the container's rid before it.
    pub(crate) fn range_id(&self) -> Result<Option<u32>, ErrorAnswer> {
        let Some(text) = self.header(headers::PARTITION_KEY_RANGE_ID) else {
            return Ok(None);
        };
        let id = text.rsplit(',').next().unwrap_or(text).trim();
        id.parse().map(Some).map_err(|_| crate::database::Error::KeyRangeGone.into())
    }

    pub(crate) fn page_limit(&self) -> Result<PageLimit, ErrorAnswer> {
        let count_max = match self.header(headers::MAX_ITEM_COUNT) {
            None => PAGE_COUNT_DEFAULT,
            Some(text) => match header_values::parse_max_item_count(text) {
                Ok(MaxItemCount::ServerDecides) => PAGE_COUNT_MAX,
                Ok(MaxItemCount::AtMost(count)) => count.get() as usize,
                Err(error) => return Err(ErrorAnswer::bad_request(error.to_string())),
            },
        };
        Ok(PageLimit { count_max, bytes_max: PAGE_BYTES_MAX })
    }
}

/// A piece of client text that is safe and short enough to repeat in a message.
pub(crate) fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(100).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}
