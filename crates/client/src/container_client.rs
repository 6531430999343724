//! The items of one container: single operations, pages of all, the change feed, key ranges.
//!
//! In and out: documents as text. Partition keys are JSON arrays as text, `["a"]`.
//! Not here: queries (`query`), many writes at once (`bulk`), scripts (`resources`).

use crate::cosmos_client::{CosmosClient, WireAnswer, WireRequest};
use crate::error::ClientError;
use crate::raw_json;
use crate::target::RequestTarget;
use astrarium_partition::{
    Component, EffectiveKey, HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind,
};
use astrarium_value::PropertyPath;
use astrarium_value::json::{Node, Text, write_number};
use astrarium_wire::headers;
use bytes::Bytes;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;

/// A container of an account.
#[derive(Clone, Debug)]
pub struct ContainerClient {
    client: CosmosClient,
    database: Arc<str>,
    name: Arc<str>,
    link: Arc<str>,
    definition: Arc<Value>,
    key: Arc<PartitionKeyDefinition>,
}

/// A slice of a container's effective partition keys, which requests may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeOfKeys {
    /// Its id.
    pub id: String,
    /// First key.
    pub min: EffectiveKey,
    /// First key after it.
    pub max: EffectiveKey,
}

/// One page of a feed or query.
#[derive(Debug, Clone)]
pub struct ItemPage {
    /// Items or rows, as text.
    pub items: Vec<Bytes>,
    /// Where the next page begins.
    pub continuation: Option<String>,
    /// Request units.
    pub charge: f64,
    /// The answer itself, for its headers; of a merged page the last one that came.
    pub answer: WireAnswer,
}

/// One page of all items, its items not looked for yet: so that the next page can be asked for first.
#[derive(Debug, Clone)]
pub struct UnreadPage {
    /// Where the next page begins.
    pub continuation: Option<String>,
    /// Request units.
    pub charge: f64,
    answer: WireAnswer,
}

/// Where reading a change feed begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedStart {
    /// With the first change.
    Beginning,
    /// With the next change.
    Now,
    /// With changes after a time, `Thu, 27 Apr 2017 00:51:12 GMT`.
    After(String),
    /// After a page, by its etag.
    Position(String),
}

/// One page of a change feed.
#[derive(Debug, Clone)]
pub struct ChangesPage {
    /// Changed documents in the order of their changes.
    pub items: Vec<Bytes>,
    /// The position after this page.
    pub position: String,
    /// Whether there is nothing newer.
    pub is_end: bool,
    /// The answer itself.
    pub answer: WireAnswer,
}

/// How a single write is to be done.
#[derive(Debug, Clone, Default)]
pub struct ItemWrite {
    /// Only if the item has this etag.
    pub if_match: Option<String>,
    /// Trigger to run before.
    pub pre_trigger: Option<String>,
    /// Trigger to run after.
    pub post_trigger: Option<String>,
    /// Whether the answer shall do without the document.
    pub minimal: bool,
}

impl ContainerClient {
    pub(crate) fn new(
        client: CosmosClient,
        database: &str,
        name: &str,
        definition: Value,
    ) -> Result<ContainerClient, ClientError> {
        let key = key_definition(definition.get("partitionKey"))?;
        Ok(ContainerClient {
            client,
            database: database.into(),
            name: name.into(),
            link: format!("dbs/{database}/colls/{name}").into(),
            definition: Arc::new(definition),
            key: Arc::new(key),
        })
    }

    /// A container that is not there yet, by its definition: to work out partition keys before it is made.
    pub fn planned(
        client: &CosmosClient,
        database: &str,
        name: &str,
        definition: Value,
    ) -> Result<ContainerClient, ClientError> {
        ContainerClient::new(client.clone(), database, name, definition)
    }

    /// The client it belongs to.
    pub fn client(&self) -> &CosmosClient {
        &self.client
    }

    /// The database's id.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The container's id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition as it was read.
    pub fn definition(&self) -> &Value {
        &self.definition
    }

    /// How documents are partitioned.
    pub fn key_definition(&self) -> &PartitionKeyDefinition {
        &self.key
    }

    /// The partition key of a document, as the text of its header.
    pub fn key_of(&self, document: &[u8]) -> Result<(PartitionKey, String), ClientError> {
        let text = Text::parse(document)
            .map_err(|error| ClientError::Settings(format!("the document is not JSON: {error}")))?;
        Ok(self.key_in(text.root()))
    }

    /// The same of a document that was parsed already.
    pub fn key_in(&self, document: Node<'_>) -> (PartitionKey, String) {
        let key = self.key.extract(document);
        let header = key_text(&key);
        (key, header)
    }

    /// The key ranges there are now, in order; together they have every key once.
    pub async fn ranges(&self) -> Result<Vec<RangeOfKeys>, ClientError> {
        read_ranges(&self.client.list(self.feed("pkranges"), "PartitionKeyRanges").await?)
    }

    /// How many documents there are about now, if the server tells.
    pub async fn document_count(&self) -> Option<u64> {
        let target = RequestTarget::resource(&["dbs", &self.database, "colls", &self.name]);
        let request = WireRequest::new("GET", target).header(headers::POPULATE_QUOTA_INFO, "True");
        let answer = self.client.send(request).await.ok()?;
        let usage = answer.header(headers::RESOURCE_USAGE)?;
        let told = usage.split(';').find_map(|part| part.trim().strip_prefix("documentsCount="));
        told?.parse().ok()
    }

    /// Writes a new item.
    pub async fn create(
        &self,
        key: &str,
        document: impl Into<Bytes>,
        how: &ItemWrite,
    ) -> Result<WireAnswer, ClientError> {
        let request = WireRequest::new("POST", self.feed("docs"));
        self.client.send(self.write(request, key, how).json(document)).await
    }

    /// Writes an item, new or not.
    pub async fn upsert(
        &self,
        key: &str,
        document: impl Into<Bytes>,
        how: &ItemWrite,
    ) -> Result<WireAnswer, ClientError> {
        let request = WireRequest::new("POST", self.feed("docs")).header(headers::IS_UPSERT, "True");
        self.client.send(self.write(request, key, how).json(document)).await
    }

    /// Reads an item.
    pub async fn read(&self, id: &str, key: &str) -> Result<WireAnswer, ClientError> {
        let request = WireRequest::new("GET", self.item(id)).header(headers::PARTITION_KEY, ascii_json(key));
        self.client.send(self.with_session(request)).await
    }

    /// Writes an item over an existing one.
    pub async fn replace(
        &self,
        id: &str,
        key: &str,
        document: impl Into<Bytes>,
        how: &ItemWrite,
    ) -> Result<WireAnswer, ClientError> {
        let request = WireRequest::new("PUT", self.item(id));
        self.client.send(self.write(request, key, how).json(document)).await
    }

    /// Changes parts of an item: `patch` is `{"operations":[…]}`.
    pub async fn patch(
        &self,
        id: &str,
        key: &str,
        patch: impl Into<Bytes>,
        how: &ItemWrite,
    ) -> Result<WireAnswer, ClientError> {
        let request = WireRequest::new("PATCH", self.item(id))
            .header(headers::CONTENT_TYPE, "application/json-patch+json");
        self.client.send(self.write(request, key, how).json(patch)).await
    }

    /// Removes an item.
    pub async fn delete(&self, id: &str, key: &str, how: &ItemWrite) -> Result<WireAnswer, ClientError> {
        let request = WireRequest::new("DELETE", self.item(id));
        self.client.send(self.write(request, key, how)).await
    }

    /// One page of all items of a range, in whatever order is quickest: with its effective keys named, our server reads them as they are
    /// stored. Pages go up to the greatest size the server has.
    pub async fn items(
        &self,
        range: &RangeOfKeys,
        continuation: Option<&str>,
    ) -> Result<UnreadPage, ClientError> {
        let mut request = WireRequest::new("GET", self.feed("docs"))
            .header(headers::PARTITION_KEY_RANGE_ID, &range.id)
            .header(headers::READ_KEY_TYPE, "EffectivePartitionKeyRange")
            .header(headers::START_EPK, range.min.to_string())
            .header(headers::END_EPK, range.max.to_string())
            .header(headers::MAX_ITEM_COUNT, "-1");
        if let Some(continuation) = continuation {
            request = request.header(headers::CONTINUATION, continuation);
        }
        let answer = self.client.send(self.with_session(request)).await?;
        let continuation = answer.continuation().map(str::to_owned);
        Ok(UnreadPage { continuation, charge: answer.charge(), answer })
    }

    /// One page of the changes of a range: every item once, as it is now, by its latest change; deletes are not told.
    pub async fn changes(
        &self,
        range: &RangeOfKeys,
        start: &FeedStart,
        item_count: u32,
    ) -> Result<ChangesPage, ClientError> {
        let mut request = WireRequest::new("GET", self.feed("docs"))
            .header(headers::A_IM, "Incremental feed")
            .header(headers::PARTITION_KEY_RANGE_ID, &range.id)
            .header(headers::MAX_ITEM_COUNT, item_count.to_string());
        request = match start {
            FeedStart::Beginning => request,
            FeedStart::Now => request.header(headers::IF_NONE_MATCH, "*"),
            FeedStart::After(date) => request.header(headers::IF_MODIFIED_SINCE, date),
            FeedStart::Position(position) => request.header(headers::IF_NONE_MATCH, position),
        };
        let answer = self.client.send(self.with_session(request)).await?;
        let position = answer
            .etag()
            .map(str::to_owned)
            .ok_or_else(|| ClientError::Protocol("a page of the change feed has no position".to_owned()))?;
        if answer.status == 304 {
            return Ok(ChangesPage { items: Vec::new(), position, is_end: true, answer });
        }
        let page = ItemPage::of(answer)?;
        Ok(ChangesPage { items: page.items, position, is_end: false, answer: page.answer })
    }

    pub(crate) fn feed(&self, kind: &str) -> RequestTarget {
        RequestTarget::feed(&["dbs", &self.database, "colls", &self.name], kind)
    }

    pub(crate) fn with_session(&self, mut request: WireRequest) -> WireRequest {
        request.container = Some(Arc::clone(&self.link));
        request
    }

    fn item(&self, id: &str) -> RequestTarget {
        RequestTarget::resource(&["dbs", &self.database, "colls", &self.name, "docs", id])
    }

    fn write(&self, request: WireRequest, key: &str, how: &ItemWrite) -> WireRequest {
        let mut request = self.with_session(request).header(headers::PARTITION_KEY, ascii_json(key));
        let optional = [
            (headers::IF_MATCH, &how.if_match),
            (headers::PRE_TRIGGER_INCLUDE, &how.pre_trigger),
            (headers::POST_TRIGGER_INCLUDE, &how.post_trigger),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if how.minimal { request.header(headers::PREFER, "return=minimal") } else { request }
    }
}

impl ChangesPage {
    /// Whether this page is known to be the last there was when it was read. A server that does not tell gives an empty page at the end.
    pub fn reaches_end(&self) -> bool {
        let position = self.position.trim_matches('"').parse::<u64>().ok();
        let latest = self.answer.header(headers::LSN).and_then(|text| text.parse::<u64>().ok());
        self.is_end || position.zip(latest).is_some_and(|(position, latest)| position == latest)
    }
}

impl UnreadPage {
    /// The items, as text.
    pub fn into_items(self) -> Result<Vec<Bytes>, ClientError> {
        items_in(&self.answer)
    }
}

impl ItemPage {
    pub(crate) fn of(answer: WireAnswer) -> Result<ItemPage, ClientError> {
        let items = items_in(&answer)?;
        let continuation = answer.continuation().map(str::to_owned);
        Ok(ItemPage { items, continuation, charge: answer.charge(), answer })
    }
}

fn items_in(answer: &WireAnswer) -> Result<Vec<Bytes>, ClientError> {
    answer.text()?;
    let array = raw_json::member(&answer.body, "Documents")
        .ok_or_else(|| ClientError::Protocol("a page has no Documents".to_owned()))?;
    Ok(raw_json::elements(array).map(|item| answer.body.slice_ref(item)).collect())
}

/// Ranges that cover all keys without gaps: whoever goes by others would leave documents out.
fn read_ranges(listed: &[Value]) -> Result<Vec<RangeOfKeys>, ClientError> {
    // Servers may list ranges that were split together with those that came of them.
    let parents: Vec<&str> = listed
        .iter()
        .filter_map(|range| range.get("parents")?.as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_there = |range: &&Value| !parents.contains(&range["id"].as_str().unwrap_or_default());
    let ranges = listed.iter().filter(is_there).map(read_range).collect::<Option<Vec<_>>>();
    let mut ranges =
        ranges.ok_or_else(|| ClientError::Protocol("a key range lacks its id or bounds".to_owned()))?;
    ranges.sort_by(|a, b| a.min.cmp(&b.min));
    let mut end = &EffectiveKey::MIN;
    for range in &ranges {
        if range.min != *end || range.max <= range.min {
            return Err(ClientError::Protocol("the key ranges have gaps, or overlap".to_owned()));
        }
        end = &range.max;
    }
    if *end != EffectiveKey::max() {
        return Err(ClientError::Protocol("the key ranges do not cover all keys".to_owned()));
    }
    Ok(ranges)
}

fn read_range(range: &Value) -> Option<RangeOfKeys> {
    let text = |name: &str| range.get(name).and_then(Value::as_str);
    let bound = |name: &str| EffectiveKey::parse(text(name)?).ok();
    Some(RangeOfKeys { id: text("id")?.to_owned(), min: bound("minInclusive")?, max: bound("maxExclusive")? })
}

fn key_definition(definition: Option<&Value>) -> Result<PartitionKeyDefinition, ClientError> {
    let bad = || ClientError::Protocol("the container's partition key is not understood".to_owned());
    let definition = definition.ok_or_else(bad)?;
    let paths = definition.get("paths").and_then(Value::as_array).ok_or_else(bad)?;
    let paths = paths.iter().map(|path| PropertyPath::parse(path.as_str().unwrap_or_default()));
    let paths = paths.collect::<Result<Vec<_>, _>>().map_err(|_| bad())?;
    let kind = match definition.get("kind").and_then(Value::as_str).unwrap_or("Hash") {
        "Hash" => PartitionKind::Hash,
        "MultiHash" => PartitionKind::MultiHash,
        "Range" => PartitionKind::Range,
        _ => return Err(bad()),
    };
    let version = match definition.get("version").and_then(Value::as_u64) {
        Some(2) => Some(HashVersion::V2),
        Some(1) => Some(HashVersion::V1),
        None => None,
        Some(_) => return Err(bad()),
    };
    let system_key = definition.get("systemKey").and_then(Value::as_bool).unwrap_or_default();
    Ok(PartitionKeyDefinition { paths, kind, version, system_key })
}

/// A partition key as the JSON array of its header; none at all is `[]`.
pub fn key_text(key: &PartitionKey) -> String {
    let mut text = Vec::from(*b"[");
    for (index, component) in key.components().iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        match component {
            Component::Undefined => text.extend_from_slice(b"{}"),
            Component::Null => text.extend_from_slice(b"null"),
            Component::Bool(true) => text.extend_from_slice(b"true"),
            Component::Bool(false) => text.extend_from_slice(b"false"),
            Component::Number(number) => write_number(*number, &mut text),
            Component::String(string) => astrarium_value::json::write_string(string, &mut text),
        }
    }
    text.push(b']');
    ascii_json(&String::from_utf8_lossy(&text))
}

/// JSON text in printable ASCII, as headers need it: other characters, which stand in strings only, become escapes.
pub(crate) fn ascii_json(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_whitespace() {
            // White space stands between tokens only, where any will do; headers may have no line ends.
            ascii.push(' ');
        } else if character.is_ascii_graphic() {
            ascii.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ascii() {
        assert_eq!(ascii_json("[\n\"\u{7f} x\"]"), "[ \"\\u007f x\"]");
        assert_eq!(ascii_json("[\"é𝄞\"]"), "[\"\\u00e9\\ud834\\udd1e\"]");
        let key = PartitionKey::new(vec![
            Component::Undefined,
            Component::Null,
            Component::Bool(true),
            Component::Number(1.5),
            Component::String("a\"é".into()),
        ]);
        assert_eq!(key_text(&key), "[{},null,true,1.5,\"a\\\"\\u00e9\"]");
    }

    #[test]
    fn ranges_cover_all_keys() {
        let check = |listed: Value, expected: Option<&[&str]>| {
            let read = read_ranges(listed.as_array().unwrap());
            let ids = read.map(|ranges| ranges.into_iter().map(|range| range.id).collect::<Vec<_>>());
            let expected = expected.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
            assert_eq!(ids.ok(), expected, "{listed}");
        };
        let range = |id: &str, min: &str, max: &str, parents: &[&str]| serde_json::json!({"id": id, "minInclusive": min, "maxExclusive": max, "parents": parents});
        check(serde_json::json!([range("0", "", "FF", &[])]), Some(&["0"]));
        check(
            serde_json::json!([range("2", "3F", "FF", &["0"]), range("1", "", "3F", &["0"])]),
            Some(&["1", "2"]),
        );
        let with_parent = serde_json::json!([
            range("0", "", "FF", &[]),
            range("1", "", "3F", &["0"]),
            range("2", "3F", "FF", &["0"])
        ]);
        check(with_parent, Some(&["1", "2"]));
        check(serde_json::json!([]), None);
        check(serde_json::json!([range("1", "", "3F", &[])]), None);
        check(serde_json::json!([range("1", "", "3F", &[]), range("2", "4F", "FF", &[])]), None);
        check(serde_json::json!([range("1", "", "4F", &[]), range("2", "3F", "FF", &[])]), None);
    }

    #[test]
    fn key_definitions() {
        let read = |text: &str| key_definition(Some(&serde_json::from_str(text).unwrap())).ok();
        let known = read("{\"paths\":[\"/a\",\"/b/c\"],\"kind\":\"MultiHash\",\"version\":2}").unwrap();
        assert_eq!((known.paths.len(), known.kind), (2, PartitionKind::MultiHash));
        for bad in [
            "{}",
            "{\"paths\":[7]}",
            "{\"paths\":[\"/a\"],\"kind\":\"x\"}",
            "{\"paths\":[\"/a\"],\"version\":3}",
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
