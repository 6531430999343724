//! Queries, page by page.
//!
//! A query with a partition key goes to it. Others are first sent as they are; a server that leaves the merging to clients refuses them with
//! 400/1004, and then the plan is asked for and the key ranges are queried one by one (`fan_out`).

use crate::container_client::{ContainerClient, ItemPage, RangeOfKeys, ascii_json};
use crate::cosmos_client::{WireAnswer, WireRequest};
use crate::error::ClientError;
use crate::fan_out::FanOut;
use astrarium_value::json::write_string;
use astrarium_wire::headers;

/// What this client can merge, in the protocol's words.
const FEATURES: &str = "Aggregate, CompositeAggregate, CountIf, Distinct, GroupBy, MultipleAggregates, MultipleOrderBy, NonValueAggregate, \
                        OffsetAndLimit, OrderBy, Top";

/// The substatus of a query that the server wants merged by the client.
const NEEDS_PLAN: u32 = 1004;

/// A query and how to run it.
#[derive(Debug, Clone, Default)]
pub struct QueryRequest {
    /// SQL.
    pub text: String,
    /// Parameters: names with their `@`, and values as JSON text.
    pub parameters: Vec<(String, String)>,
    /// Only this partition key, a JSON array.
    pub partition_key: Option<String>,
    /// Most rows of a page; the server decides if none is given.
    pub page_size: Option<u32>,
    /// Further headers, such as those that ask for metrics.
    pub headers: Vec<(&'static str, String)>,
}

impl QueryRequest {
    /// A query over all partitions.
    pub fn new(text: &str) -> QueryRequest {
        QueryRequest { text: text.to_owned(), ..QueryRequest::default() }
    }

    /// The body of the request, with another text for the rewritten ones.
    pub(crate) fn body(&self, text: &str) -> Vec<u8> {
        let mut body = Vec::from(*b"{\"query\":");
        write_string(text, &mut body);
        body.extend_from_slice(b",\"parameters\":[");
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(b"{\"name\":");
            write_string(name, &mut body);
            body.extend_from_slice(b",\"value\":");
            body.extend_from_slice(value.as_bytes());
            body.push(b'}');
        }
        body.extend_from_slice(b"]}");
        body
    }
}

/// The pages of a running query.
#[derive(Debug)]
pub struct QueryPages {
    container: ContainerClient,
    query: QueryRequest,
    state: Progression,
}

#[derive(Debug)]
enum Progression {
    /// The server does everything; where the next page begins.
    Served(Option<String>),
    /// The rows of ranges are merged here.
    Merged(Box<FanOut>),
    Ended,
}

impl ContainerClient {
    /// Begins a query; nothing is sent before the first page is asked for.
    pub fn query(&self, query: QueryRequest) -> QueryPages {
        QueryPages { container: self.clone(), query, state: Progression::Served(None) }
    }

    /// The plan that the server gives to clients for a query, as JSON text.
    pub async fn query_plan(&self, query: &QueryRequest) -> Result<WireAnswer, ClientError> {
        let request = self
            .query_request(query, &query.text)
            .header(headers::IS_QUERY_PLAN_REQUEST, "True")
            .header(headers::QUERY_VERSION, "1.0")
            .header(headers::SUPPORTED_QUERY_FEATURES, FEATURES);
        self.client().send(request).await
    }

    /// One page of a query over one key range, whose rows are not merged with those of others.
    pub async fn query_range(
        &self,
        query: &QueryRequest,
        range: &RangeOfKeys,
        continuation: Option<&str>,
    ) -> Result<ItemPage, ClientError> {
        self.query_page(query, &query.text, Some(range), continuation).await
    }

    fn query_request(&self, query: &QueryRequest, text: &str) -> WireRequest {
        let mut request = WireRequest::new("POST", self.feed("docs"))
            .header(headers::CONTENT_TYPE, "application/query+json")
            .json(query.body(text));
        request.is_read = true;
        if let Some(key) = &query.partition_key {
            request = request.header(headers::PARTITION_KEY, ascii_json(key));
        }
        self.with_session(request)
    }

    /// One page from the server, of one range if one is given.
    pub(crate) async fn query_page(
        &self,
        query: &QueryRequest,
        text: &str,
        range: Option<&RangeOfKeys>,
        continuation: Option<&str>,
    ) -> Result<ItemPage, ClientError> {
        let mut request = self
            .query_request(query, text)
            .header(headers::IS_QUERY, "True")
            .header(headers::QUERY_ENABLE_CROSS_PARTITION, "True");
        if let Some(range) = range {
            request = request.header(headers::PARTITION_KEY_RANGE_ID, &range.id);
        }
        if let Some(size) = query.page_size {
            request = request.header(headers::MAX_ITEM_COUNT, size.to_string());
        }
        if let Some(continuation) = continuation {
            request = request.header(headers::CONTINUATION, continuation);
        }
        request.headers.extend(query.headers.iter().cloned());
        ItemPage::of(self.client().send(request).await?)
    }
}

impl QueryPages {
    /// The next page; none after the last. A page may be empty and not the last.
    pub async fn next_page(&mut self) -> Result<Option<ItemPage>, ClientError> {
        let page = match &mut self.state {
            Progression::Ended => return Ok(None),
            Progression::Merged(fan_out) => fan_out.next_page(&self.container, &self.query).await,
            Progression::Served(continuation) => {
                let from = continuation.take();
                let (container, query) = (&self.container, &self.query);
                match container.query_page(query, &query.text, None, from.as_deref()).await {
                    Err(ClientError::Refused(refusal))
                        if refusal.substatus == NEEDS_PLAN && from.is_none() =>
                    {
                        let mut fan_out = FanOut::begin(container, query).await?;
                        let page = fan_out.next_page(container, query).await;
                        self.state = Progression::Merged(Box::new(fan_out));
                        page
                    }
                    page => page.map(Some),
                }
            }
        };
        let Some(page) = page? else {
            self.state = Progression::Ended;
            return Ok(None);
        };
        if let Progression::Served(continuation) = &mut self.state {
            continuation.clone_from(&page.continuation);
            if continuation.is_none() {
                self.state = Progression::Ended;
            }
        }
        Ok(Some(page))
    }

    /// All rows; for results that are known to be small.
    pub async fn all(mut self) -> Result<Vec<bytes::Bytes>, ClientError> {
        let mut rows = Vec::new();
        while let Some(page) = self.next_page().await? {
            rows.extend(page.items);
        }
        Ok(rows)
    }
}
