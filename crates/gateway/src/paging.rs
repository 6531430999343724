//! Continuation tokens of feeds: a position, bound to the feed it belongs to, opaque and signed.
//!
//! Payload: `rid length (1) | rid of the feed's owner | kind of position (1) | position`. A token of one feed is refused
//! by every other. Tokens are good after a restart and any change of the data.

use crate::database::{FeedPosition, Floors, Rid};
use crate::error::ErrorAnswer;
use crate::request::Request;
use crate::service::GatewayState;
use crate::wire::address::ResourceKind;
use crate::wire::{continuation, headers};
use bytes::Bytes;

/// Which feed a token belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Feed {
    pub(crate) owner: Rid,
    pub(crate) kind: ResourceKind,
}

impl Feed {
    fn prefix(self) -> Vec<u8> {
        let mut payload = vec![self.owner.as_bytes().len() as u8];
        payload.extend_from_slice(self.owner.as_bytes());
        payload.extend_from_slice(self.kind.segment().as_bytes());
        payload.push(b':');
        payload
    }
}

const BY_NUMBER: u8 = 1;
const BY_KEY: u8 = 2;
const WITHIN: u8 = 3;
const QUERY: u8 = 4;

/// The position in the request's continuation header.
pub(crate) fn position(
    shared: &GatewayState,
    request: &Request<'_>,
    feed: Feed,
) -> Result<Option<FeedPosition>, ErrorAnswer> {
    let Some(text) = request.header(headers::CONTINUATION) else {
        return Ok(None);
    };
    let token = continuation::Continuation::parse(text).map_err(|_| invalid())?;
    let payload = continuation::open(&token.token, &shared.continuation_key).map_err(|_| invalid())?;
    let position = payload.strip_prefix(feed.prefix().as_slice()).ok_or_else(invalid)?;
    decode(position).map(Some).ok_or_else(invalid)
}

/// The token for a position.
pub(crate) fn token(shared: &GatewayState, feed: Feed, position: &FeedPosition) -> String {
    let mut payload = feed.prefix();
    match position {
        FeedPosition::Number { range_id, number, floors }
        | FeedPosition::Within { range_id, number, floors } => {
            let is_within = matches!(position, FeedPosition::Within { .. });
            payload.push(if is_within { WITHIN } else { BY_NUMBER });
            for (range_id, number) in [(*range_id, *number)].into_iter().chain(floors.iter()) {
                payload.extend_from_slice(&range_id.to_be_bytes());
                payload.extend_from_slice(&number.to_be_bytes());
            }
        }
        FeedPosition::Key { range_id, suffix } => {
            payload.push(BY_KEY);
            payload.extend_from_slice(&range_id.to_be_bytes());
            payload.extend_from_slice(suffix);
        }
    }
    continuation::seal(&payload, &shared.continuation_key)
}

/// What a token of a query is bound to besides the feed, as hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenBinding {
    /// The text with the values of its parameters.
    pub(crate) query: u64,
    /// The text without its filter.
    pub(crate) shape: u64,
    /// The part of the key space that the query looks at.
    pub(crate) scope: u64,
}

impl TokenBinding {
    const BYTES: usize = 24;

    fn to_bytes(self) -> [u8; TokenBinding::BYTES] {
        let mut bytes = [0; TokenBinding::BYTES];
        for (place, hash) in bytes.chunks_exact_mut(8).zip([self.query, self.shape, self.scope]) {
            place.copy_from_slice(&hash.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; TokenBinding::BYTES]) -> TokenBinding {
        let (hashes, _) = bytes.as_chunks::<8>();
        let hash = |index: usize| hashes.get(index).map_or(0, |bytes| u64::from_be_bytes(*bytes));
        TokenBinding { query: hash(0), shape: hash(1), scope: hash(2) }
    }

    /// Whether a token may go on with another query. A client that merges ranges itself goes on with another filter, so
    /// there only the shape of the query counts. `former` are the parts of the key space whose ranges were split into those asked
    /// for.
    fn serves(self, asked: TokenBinding, former: &[u64], merged_by_client: bool) -> bool {
        let same_query = if merged_by_client { self.shape == asked.shape } else { self.query == asked.query };
        same_query && (self.scope == asked.scope || former.contains(&self.scope))
    }
}

/// The token of a query: its position, bound to the query and its scope. The position only tells where within the scope of
/// a request to go on; what a request may see is never taken from a token.
pub(crate) fn query_token(
    shared: &GatewayState,
    feed: Feed,
    binding: TokenBinding,
    position: &[u8],
) -> String {
    let mut payload = feed.prefix();
    payload.push(QUERY);
    payload.extend_from_slice(&binding.to_bytes());
    payload.extend_from_slice(position);
    continuation::seal(&payload, &shared.continuation_key)
}

/// The position of a query in the request's continuation header.
pub(crate) fn query_position(
    shared: &GatewayState,
    request: &Request<'_>,
    feed: Feed,
    binding: TokenBinding,
    former: &[u64],
) -> Result<Option<Vec<u8>>, ErrorAnswer> {
    let Some(text) = request.header(headers::CONTINUATION) else { return Ok(None) };
    if text.starts_with("-RID:") || text.starts_with("+RID:") {
        // A token of the service itself, kept by a client that moved here: its place means nothing, so start anew.
        return Ok(None);
    }
    let token = continuation::Continuation::parse(text).map_err(|_| invalid())?;
    let payload = continuation::open(&token.token, &shared.continuation_key).map_err(|_| invalid())?;
    let mut prefix = feed.prefix();
    prefix.push(QUERY);
    let rest = payload.strip_prefix(prefix.as_slice()).ok_or_else(invalid)?;
    let (own, position) = rest.split_first_chunk().ok_or_else(invalid)?;
    let merged_by_client = request.header(headers::PARTITION_KEY_RANGE_ID).is_some();
    if TokenBinding::from_bytes(own).serves(binding, former, merged_by_client) {
        Ok(Some(position.to_vec()))
    } else {
        Err(invalid())
    }
}

/// The number after which a listing of the catalog goes on.
pub(crate) fn after(shared: &GatewayState, request: &Request<'_>, feed: Feed) -> Result<u64, ErrorAnswer> {
    match position(shared, request, feed)? {
        None => Ok(0),
        Some(FeedPosition::Number { number, .. }) => Ok(number),
        Some(_) => Err(invalid()),
    }
}

fn decode(bytes: &[u8]) -> Option<FeedPosition> {
    let (&kind, rest) = bytes.split_first()?;
    let (range_id, rest) = rest.split_first_chunk::<4>()?;
    let range_id = u32::from_be_bytes(*range_id);
    if kind == BY_KEY {
        return Some(FeedPosition::Key { range_id, suffix: Bytes::copy_from_slice(rest) });
    }
    let (number, mut rest) = rest.split_first_chunk::<8>()?;
    let number = u64::from_be_bytes(*number);
    let mut floors = Vec::new();
    while !rest.is_empty() {
        let (range_id, after) = rest.split_first_chunk::<4>()?;
        let (number, after) = after.split_first_chunk::<8>()?;
        floors.push((u32::from_be_bytes(*range_id), u64::from_be_bytes(*number)));
        rest = after;
    }
    let floors = Floors::new(floors);
    match kind {
        BY_NUMBER => Some(FeedPosition::Number { range_id, number, floors }),
        WITHIN => Some(FeedPosition::Within { range_id, number, floors }),
        _ => None,
    }
}

pub(crate) fn invalid() -> ErrorAnswer {
    ErrorAnswer::bad_request(
        "Invalid Continuation Token. Send back the token of the previous page unchanged, or none: one of an older \
         version of the server may not be taken.",
    )
}
