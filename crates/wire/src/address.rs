//! Which resource a request target names, by name or by resource id.
//!
//! In: path and query of the request target, raw. Out: [`Address`], the kind of resource and the decoded ids.
//! Invariants
//! - Segments are read by position, so a database may be called `colls`; `.` and `..` are ids like others.
//! - Each id is percent-decoded exactly once and is UTF-8; `+` stays `+`.
//! - One slash at the end and any number at the start change nothing.
//! - On the path of a document `?` and what follows belong to its id: the JavaScript client sends ids so.
//! - Without escapes in the path nothing is allocated.
//!
//! Not here: validity of ids, resolving names or resource ids to resources (`database`), decoding resource ids (`keys`).

mod resource_kind;

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::percent;

pub use resource_kind::ResourceKind;

/// Ids from the database downwards, decoded; four at most.
pub type Ids<'a> = SmallVec<[Cow<'a, str>; 4]>;

/// Longest request target read, in bytes: three ids of greatest length, fully escaped, need about 9,200.
pub const TARGET_BYTES_MAX: usize = 16 * 1024;

/// The most segments any route has: `dbs/d/colls/c/docs/i/attachments/a`.
const SEGMENT_COUNT_MAX: usize = 8;

/// What the paths of the protocol begin with.
const ROOTS: [&str; 2] = ["dbs", "offers"];

/// A parsed request target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address<'a> {
    /// What is addressed, or what the feed holds.
    pub kind: ResourceKind,
    /// The ids given, from the database downwards.
    pub ids: Ids<'a>,
    /// The target as sent, without slashes at the ends.
    raw: Cow<'a, str>,
}

/// Why a request target is not an address. Always the client's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// No resource lives at such a path.
    #[error("The request path does not name a resource of the protocol.")]
    UnknownRoute,
    /// The path begins as those of the protocol do, and goes on as none of them.
    #[error(
        "The request path does not name a resource: below databases and offers it must alternate between keywords and \
         ids, and slashes within an id must be escaped as %2F."
    )]
    UnknownChild,
    /// A client in direct mode asks for the addresses of replicas. No SDK repeats a request after 400.
    #[error(
        "This server has no direct (TCP) mode. Set the client's connection mode to gateway: in Java \
         CosmosClientBuilder.gatewayMode(), in .NET CosmosClientOptions.ConnectionMode = ConnectionMode.Gateway."
    )]
    DirectMode,
    /// An id is not UTF-8 after percent-decoding.
    #[error("The request path is not valid percent-encoded UTF-8.")]
    BadEncoding,
    /// The target is longer than [`TARGET_BYTES_MAX`].
    #[error("The request path is too long.")]
    TooLong,
}

impl AddressError {
    /// The status to answer with.
    pub const fn status(self) -> u16 {
        match self {
            AddressError::UnknownRoute => 404,
            AddressError::UnknownChild
            | AddressError::DirectMode
            | AddressError::BadEncoding
            | AddressError::TooLong => 400,
        }
    }
}

/// One pair of resource type and resource link that a client may have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningCandidate<'a> {
    /// Second line of the signed text.
    pub resource_type: &'static str,
    /// Third line of the signed text.
    pub link: Cow<'a, str>,
    /// Whether who signs this means the ids of the path as resource ids.
    pub by_rid: bool,
}

/// The ways to write the signed link. Those of a name and of a resource id are never equal: a name begins with `dbs/`.
#[derive(Clone, Copy)]
enum LinkForm {
    ResourceId,
    Name,
    Raw,
}

impl<'a> Address<'a> {
    /// Reads path and query of a request target, both as sent.
    pub fn parse(path: &'a str, query: Option<&'a str>) -> Result<Self, AddressError> {
        if path.len() + query.map_or(0, str::len) > TARGET_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        let trimmed = path.trim_start_matches('/');
        Address::parse_trimmed(trimmed, query).map_err(|error| match error {
            AddressError::UnknownRoute if ROOTS.contains(&first_segment(trimmed)) => {
                AddressError::UnknownChild
            }
            other => other,
        })
    }

    fn parse_trimmed(trimmed: &'a str, query: Option<&'a str>) -> Result<Self, AddressError> {
        let mut segments: SmallVec<[&str; SEGMENT_COUNT_MAX + 1]> = SmallVec::new();
        for segment in trimmed.split('/') {
            // One more than any route has, for the empty segment after a slash at the end.
            if segments.len() > SEGMENT_COUNT_MAX {
                return Err(AddressError::UnknownRoute);
            }
            segments.push(segment);
        }
        // Only here may the sixth segment be empty: a document whose id begins with `?`.
        if let (Some(query), ["dbs", database, "colls", container, "docs", start]) =
            (query, segments.as_slice())
        {
            let tail = Cow::Owned(format!("{start}?{query}"));
            let ids = decode([Cow::Borrowed(*database), Cow::Borrowed(*container), tail])?;
            return Ok(Address {
                kind: ResourceKind::Document,
                ids,
                raw: Cow::Owned(format!("{trimmed}?{query}")),
            });
        }
        if segments.last() == Some(&"") {
            segments.pop();
        }
        if segments.first() == Some(&"addresses") {
            return Err(AddressError::DirectMode);
        }
        let (kind, id_count) = classify(&segments).ok_or(AddressError::UnknownRoute)?;
        let ids = segments.iter().skip(1).step_by(2).take(id_count);
        let ids = decode(ids.map(|segment| Cow::Borrowed(*segment)))?;
        Ok(Address { kind, ids, raw: Cow::Borrowed(trimmed.strip_suffix('/').unwrap_or(trimmed)) })
    }

    /// True when the path names the collection of all resources of its kind below an owner.
    pub fn is_feed(&self) -> bool {
        self.ids.len() < self.kind.depth()
    }

    /// How many ids were given.
    pub fn depth(&self) -> usize {
        self.ids.len()
    }

    /// True for the methods of the protocol on this path; everything else deserves 405.
    pub fn allows(&self, method: &str) -> bool {
        self.allowed_methods().contains(&method)
    }

    /// The methods of the protocol on this path, for the `Allow` header.
    pub fn allowed_methods(&self) -> &'static [&'static str] {
        if self.is_feed() { self.kind.feed_methods() } else { self.kind.resource_methods() }
    }

    /// The decoded path without slashes at the ends, with the keyword of the feed if it is one.
    pub fn name_link(&self) -> String {
        let mut link = self.link_of(self.ids.len());
        let tail = match self.kind {
            ResourceKind::PartitionKeyDelete => "operations/partitionkeydelete",
            kind if self.is_feed() => kind.segment(),
            _ => return link,
        };
        if !link.is_empty() {
            link.push('/');
        }
        link.push_str(tail);
        link
    }

    /// The decoded link of the resource itself, or of a feed's owner: what name-based clients sign.
    pub fn resource_link(&self) -> Cow<'_, str> {
        if self.is_encoded() {
            Cow::Owned(self.link_of(self.ids.len()))
        } else {
            Cow::Borrowed(self.raw_link())
        }
    }

    /// The decoded link of the owner, of a feed and of a single resource alike: `x-ms-alt-content-path`.
    pub fn owner_link(&self) -> String {
        let above = usize::from(!self.is_feed());
        self.link_of(self.ids.len().saturating_sub(above))
    }

    /// True when the ids may be resource ids: the database segment has the form of one, or it is an offer.
    ///
    /// A database may still have such a name. What is meant is told by what was signed ([`SigningCandidate::by_rid`]), or
    /// by the resource that a token is for; never by what happens to exist.
    pub fn looks_like_rid(&self) -> bool {
        match (self.kind, self.ids.first()) {
            (ResourceKind::Offer, Some(_)) => true,
            (_, Some(database)) => is_database_rid(database),
            (_, None) => false,
        }
    }

    /// What a client may have signed for this address, the most likely first; the rest is computed only on demand.
    pub fn signing_candidates(&self) -> impl Iterator<Item = SigningCandidate<'_>> {
        let forms: &[LinkForm] = match (self.looks_like_rid(), self.is_encoded()) {
            (true, true) => &[LinkForm::ResourceId, LinkForm::Name, LinkForm::Raw],
            (true, false) => &[LinkForm::ResourceId, LinkForm::Name],
            (false, true) => &[LinkForm::Name, LinkForm::Raw],
            (false, false) => &[LinkForm::Name],
        };
        let types = self.kind.signed_types();
        forms.iter().flat_map(move |form| {
            types.iter().map(move |resource_type| SigningCandidate {
                resource_type,
                link: self.signed_link(*form),
                by_rid: self.kind == ResourceKind::Offer || matches!(form, LinkForm::ResourceId),
            })
        })
    }

    fn signed_link(&self, form: LinkForm) -> Cow<'_, str> {
        match form {
            // The last id is the resource's own, or that of a feed's owner.
            LinkForm::ResourceId => Cow::Owned(self.ids.last().map_or("", Cow::as_ref).to_ascii_lowercase()),
            LinkForm::Name => self.resource_link(),
            LinkForm::Raw => Cow::Borrowed(self.raw_link()),
        }
    }

    fn is_encoded(&self) -> bool {
        self.raw.as_bytes().contains(&b'%')
    }

    /// The link of the resource or of the feed's owner as it was sent.
    fn raw_link(&self) -> &str {
        let keywords_at_end = match self.kind {
            ResourceKind::PartitionKeyDelete => 2,
            _ => usize::from(self.is_feed()),
        };
        (0..keywords_at_end)
            .fold(self.raw.as_ref(), |link, _| link.rsplit_once('/').map_or("", |(before, _)| before))
    }

    /// The decoded link made of the first `id_count` ids.
    fn link_of(&self, id_count: usize) -> String {
        let pairs = self.kind.path().iter().zip(&self.ids).take(id_count);
        let mut link = String::with_capacity(self.raw.len());
        for (keyword, id) in pairs {
            if !link.is_empty() {
                link.push('/');
            }
            link.push_str(keyword);
            link.push('/');
            link.push_str(id);
        }
        link
    }
}

fn first_segment(path: &str) -> &str {
    path.split_once('/').map_or(path, |(first, _)| first)
}

/// The kind of resource and how many ids the segments hold.
fn classify(segments: &[&str]) -> Option<(ResourceKind, usize)> {
    let kind = match segments {
        [] => ResourceKind::Account,
        ["dbs"] | ["dbs", _] => ResourceKind::Database,
        ["dbs", _, "colls"] | ["dbs", _, "colls", _] => ResourceKind::Container,
        ["dbs", _, "colls", _, "operations", "partitionkeydelete"] => {
            return Some((ResourceKind::PartitionKeyDelete, 2));
        }
        ["dbs", _, "colls", _, child] | ["dbs", _, "colls", _, child, _] => match *child {
            "docs" => ResourceKind::Document,
            "sprocs" => ResourceKind::StoredProcedure,
            "triggers" => ResourceKind::Trigger,
            "udfs" => ResourceKind::UserDefinedFunction,
            "pkranges" => ResourceKind::PartitionKeyRange,
            "conflicts" => ResourceKind::Conflict,
            "schemas" => ResourceKind::Schema,
            _ => return None,
        },
        ["dbs", _, "colls", _, "docs", _, "attachments"]
        | ["dbs", _, "colls", _, "docs", _, "attachments", _] => ResourceKind::Attachment,
        ["dbs", _, "users"] | ["dbs", _, "users", _] => ResourceKind::User,
        ["dbs", _, "users", _, "permissions"] | ["dbs", _, "users", _, "permissions", _] => {
            ResourceKind::Permission
        }
        ["dbs", _, "clientencryptionkeys"] | ["dbs", _, "clientencryptionkeys", _] => {
            ResourceKind::ClientEncryptionKey
        }
        ["offers"] | ["offers", _] => ResourceKind::Offer,
        ["_admin"] | ["_admin", _] => ResourceKind::Admin,
        _ => return None,
    };
    // Keywords and ids alternate, the keyword first.
    Some((kind, segments.len() / 2))
}

fn decode<'a>(segments: impl IntoIterator<Item = Cow<'a, str>>) -> Result<Ids<'a>, AddressError> {
    let mut ids = Ids::new();
    for segment in segments {
        if segment.is_empty() {
            return Err(AddressError::UnknownRoute);
        }
        let id = match segment {
            Cow::Borrowed(text) => percent::decode_once(text),
            Cow::Owned(text) => percent::decode_once(&text).map(|id| Cow::Owned(id.into_owned())),
        };
        ids.push(id.ok_or(AddressError::BadEncoding)?);
    }
    Ok(ids)
}

/// Four bytes in base64 with `-` for `/`: six characters, of which the last leaves four bits unused, and `==`.
fn is_database_rid(text: &str) -> bool {
    let [first, second, third, fourth, fifth, sixth, b'=', b'='] = text.as_bytes() else {
        return false;
    };
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-');
    [first, second, third, fourth, fifth].into_iter().all(digit) && matches!(sixth, b'A' | b'Q' | b'g' | b'w')
}

#[cfg(test)]
mod tests;
