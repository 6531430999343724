//! The operations that are counted, and the data they are asked of.
//!
//! The documents are those of the queries' bench, so their answers have known sizes. Writes go to a container of their own with the same
//! number of documents, so that queries find what they expect however often writes are counted.
//! Invariants
//! - A request is a function of its number: two runs send the same.
//! - No two writes of one operation concern the same document, unless the operation is about that.

use super::counts::{TOLERANCE, WRITE_TOLERANCE};
use crate::caller::{self, Caller};
use crate::items::{self, Item, Signer};
use crate::process::Server;
use crate::queries::documents::Documents;
use astrarium_wire::headers;
use astrarium_wire::key_text::EMULATOR_KEY;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const DATABASE: &str = "dbs/bench";
const DOCUMENTS: &str = "dbs/bench/colls/documents";
/// As `Signer::setup` names it.
const ITEMS: &str = items::CONTAINER;
/// How often an operation is counted, and one that writes: flushes and merges are under way beside most requests then, beside all of some
/// turns and beside none of others.
const TURNS: u64 = 3;
const WRITE_TURNS: u64 = 10;
/// Documents of one bulk request while loading.
const LOAD_UNIT: u64 = 100;
const PAGE_COUNT: u64 = 100;
/// The first number of a document that no load makes.
const NEW: u64 = 1_000_000;
/// Between the numbers of operations that make documents.
const APART: u64 = 100_000;

const ADD_BOOK: &str = "function addBook(authorId, book) {
    var collection = getContext().getCollection();
    var link = collection.getAltLink() + '/docs/' + authorId;
    collection.readDocument(link, function (error, author) {
        if (error) throw error;
        author.countOfBooks = (author.countOfBooks || 0) + 1;
        collection.replaceDocument(author._self, author, { etag: author._etag }, function (error) {
            if (error) throw error;
            collection.createDocument(collection.getSelfLink(), book, function (error, created) {
                if (error) throw error;
                getContext().getResponse().setBody({ id: created.id });
            });
        });
    });
}";
const TRIGGER: &str = "function stamp() {
    var request = getContext().getRequest();
    var document = request.getBody();
    document.stamped = true;
    request.setBody(document);
}";
const FUNCTION: &str = "function above(stock) { return stock > 500; }";

/// An operation.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// Requests of one turn.
    pub(crate) count: u64,
    pub(crate) turns: u64,
    /// How far its instructions may be from those of the file.
    pub(crate) tolerance: f64,
    pub(crate) request: Requests,
    pub(crate) status: u16,
    /// How many rows the answer has.
    pub(crate) row_count: Option<u64>,
    pub(crate) body_contains: Option<&'static str>,
}

/// The data, and what requests need to know of it.
pub(crate) struct Setup {
    pub(crate) data: PathBuf,
    documents: Documents,
    /// The continuation of the second page that is counted.
    second_page: String,
    /// The end of the change feed.
    feed_end: String,
}

impl Setup {
    /// Loads the data by the server at full speed, over one connection, so that it is the same every time.
    pub(crate) fn new(program: &Path, folder: &Path, size: u64) -> anyhow::Result<Setup> {
        let documents = Documents::new(size)?;
        let data = folder.join("data");
        let server = Server::start_with(program, &data, &["--log", "error"])?;
        let mut caller = Caller::open(server.address)?;
        let signer = Signer::new()?;
        for request in signer.setup()? {
            caller.expect(&[201], &request)?;
        }
        let container = Documents::container("documents").to_string();
        caller.expect(&[201], &signer.request("POST", &format!("{DATABASE}/colls"), "", &container)?)?;
        load(&mut caller, DOCUMENTS, size, |number| documents.document(number))?;
        load(&mut caller, ITEMS, size, items::item)?;
        for (container, kind, id, body, more) in [
            (ITEMS, "sprocs", "addBook", ADD_BOOK, json!({})),
            (ITEMS, "triggers", "stamp", TRIGGER, json!({"triggerType": "Pre", "triggerOperation": "All"})),
            (DOCUMENTS, "udfs", "above", FUNCTION, json!({})),
        ] {
            let mut script = json!({"id": id, "body": body});
            for (name, value) in more.as_object().into_iter().flatten() {
                script[name] = value.clone();
            }
            caller.expect(
                &[201],
                &signer.request("POST", &format!("{container}/{kind}"), "", &script.to_string())?,
            )?;
        }
        // What loading leaves behind (flushes, merges) is no operation's cost.
        server.usage_when_quiet()?;
        let mut setup = Setup { data, documents, second_page: String::new(), feed_end: String::new() };
        let first = query(&signer, SECOND_PAGE, &json!({}), Asked { page_count: 10, ..ACROSS })?;
        setup.second_page = caller.expect(&[200], &first)?.header(headers::CONTINUATION)?;
        let end = change_feed(&signer, "*")?;
        setup.feed_end = caller.expect(&[304], &end)?.header("etag")?;
        drop(caller);
        server.terminate()?;
        Ok(setup)
    }

    /// Reads every document once, so that the server has them in memory: whether a block has to be read from its file again depends on
    /// what was asked before, and is no operation's cost.
    pub(crate) fn read_all(caller: &mut Caller) -> anyhow::Result<()> {
        for container in [DOCUMENTS, ITEMS] {
            let mut token = String::new();
            loop {
                let lines = format!(
                    "{}: 1000\r\n{}: 0\r\n{token}",
                    headers::MAX_ITEM_COUNT,
                    headers::PARTITION_KEY_RANGE_ID
                );
                let request = Signer::new()?.request("GET", &format!("{container}/docs"), &lines, "")?;
                let answer = caller.expect(&[200], &request)?;
                let Some(next) = caller::header(answer.head, headers::CONTINUATION) else { break };
                token = format!("{}: {}\r\n", headers::CONTINUATION, String::from_utf8_lossy(next));
            }
        }
        Ok(())
    }

    /// A number below the number of documents, far from that of the request before.
    fn spread(&self, number: u64) -> u64 {
        number * 617 % self.documents.count
    }
}

/// Where a query looks, and which page it asks for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    partition_key: Option<&'a str>,
    page_count: u64,
    continuation: Option<&'a str>,
}

const ACROSS: Asked<'static> = Asked { partition_key: None, page_count: 2_000, continuation: None };
const SECOND_PAGE: &str = "SELECT * FROM c WHERE c.level >= 0";

fn query(signer: &Signer, sql: &str, parameters: &Value, asked: Asked<'_>) -> anyhow::Result<Vec<u8>> {
    let named = parameters.as_object().into_iter().flatten();
    let named: Vec<Value> = named.map(|(name, value)| json!({"name": name, "value": value})).collect();
    let body = json!({"query": sql, "parameters": named});
    let place = match asked.partition_key {
        Some(key) => partition_key_line(key),
        None => format!(
            "{}: True\r\n{}: 0\r\n",
            headers::QUERY_ENABLE_CROSS_PARTITION,
            headers::PARTITION_KEY_RANGE_ID
        ),
    };
    let token = asked.continuation.map(|token| format!("{}: {token}\r\n", headers::CONTINUATION));
    let lines = format!(
        "content-type: application/query+json\r\n{}: True\r\n{}: {}\r\n{place}{}",
        headers::IS_QUERY,
        headers::MAX_ITEM_COUNT,
        asked.page_count,
        token.unwrap_or_default()
    );
    signer.request("POST", &format!("{DOCUMENTS}/docs"), &lines, &body.to_string())
}

fn change_feed(signer: &Signer, position: &str) -> anyhow::Result<Vec<u8>> {
    let lines = format!(
        "{}: Incremental feed\r\n{}: {position}\r\n{}: {PAGE_COUNT}\r\n{}: 0\r\n",
        headers::A_IM,
        headers::IF_NONE_MATCH,
        headers::MAX_ITEM_COUNT,
        headers::PARTITION_KEY_RANGE_ID,
    );
    signer.request("GET", &format!("{DOCUMENTS}/docs"), &lines, "")
}

fn load(
    caller: &mut Caller,
    container: &str,
    count: u64,
    item: impl Fn(u64) -> Item + Copy,
) -> anyhow::Result<()> {
    for first in (0..count).step_by(LOAD_UNIT as usize) {
        let unit = first..count.min(first + LOAD_UNIT);
        caller.expect(&[200], &Signer::new()?.bulk(container, unit.map(item))?)?;
    }
    Ok(())
}

fn partition_key_line(key: &str) -> String {
    format!("{}: [\"{key}\"]\r\n", headers::PARTITION_KEY)
}

/// All operations, the cheap ones first.
pub(crate) fn all(size: u64) -> Vec<Operation> {
    let mut operations = reads();
    operations.extend(feeds());
    operations.extend(lookups());
    operations.extend(partition_lookups());
    operations.extend(scans(size));
    operations.extend(writes().into_iter().chain(group_writes()).map(|operation| Operation {
        turns: WRITE_TURNS,
        tolerance: WRITE_TOLERANCE,
        ..operation
    }));
    operations
}

/// Makes the request of a number.
type Requests = fn(&Setup, &Signer, u64) -> anyhow::Result<Vec<u8>>;

impl Operation {
    fn new(name: &'static str, count: u64, status: u16, request: Requests) -> Operation {
        Operation {
            name,
            count,
            turns: TURNS,
            tolerance: TOLERANCE,
            request,
            status,
            row_count: None,
            body_contains: None,
        }
    }

    fn rows(mut self, count: u64) -> Operation {
        self.row_count = Some(count);
        self
    }

    fn containing(mut self, text: &'static str) -> Operation {
        self.body_contains = Some(text);
        self
    }
}

fn reads() -> Vec<Operation> {
    vec![
        Operation::new("point read", 200, 200, |setup, signer, number| {
            let number = setup.spread(number);
            let line = partition_key_line(&Documents::partition_key(number));
            signer.request("GET", &format!("{DOCUMENTS}/docs/{}", Documents::id(number)), &line, "")
        }),
        Operation::new("container read", 100, 200, |_, signer, _| signer.request("GET", DOCUMENTS, "", "")),
        Operation::new("sign-in to the explorer", 50, 200, |_, _, _| {
            // No resource of the protocol, so nothing is signed.
            let body = json!({"key": EMULATOR_KEY}).to_string();
            let text = format!(
                "POST /_explorer/api/session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            Ok(text.into_bytes())
        }),
        Operation::new("query plan", 100, 200, |_, signer, _| {
            let body = json!({
                "query": "SELECT TOP 10 c.id, c.score FROM c WHERE c.city = @city ORDER BY c.score",
                "parameters": [{"name": "@city", "value": "city-1"}],
            });
            let lines = format!(
                "content-type: application/query+json\r\n{}: True\r\n{}: Aggregate, OrderBy, Top\r\n{}: True\r\n",
                headers::IS_QUERY_PLAN_REQUEST,
                headers::SUPPORTED_QUERY_FEATURES,
                headers::QUERY_ENABLE_CROSS_PARTITION,
            );
            signer.request("POST", &format!("{DOCUMENTS}/docs"), &lines, &body.to_string())
        })
        .containing("queryInfo"),
    ]
}

fn feeds() -> Vec<Operation> {
    vec![
        Operation::new("read feed page of 100", 20, 200, |_, signer, _| {
            let lines = format!(
                "{}: {PAGE_COUNT}\r\n{}: 0\r\n",
                headers::MAX_ITEM_COUNT,
                headers::PARTITION_KEY_RANGE_ID
            );
            signer.request("GET", &format!("{DOCUMENTS}/docs"), &lines, "")
        })
        .rows(PAGE_COUNT),
        Operation::new("change feed page of 100", 20, 200, |_, signer, _| change_feed(signer, "\"0\""))
            .rows(PAGE_COUNT),
        Operation::new("change feed, nothing new", 100, 304, |setup, signer, _| {
            change_feed(signer, &setup.feed_end)
        }),
    ]
}

/// Queries across partitions that the index serves.
fn lookups() -> Vec<Operation> {
    vec![
        Operation::new("equality, literal", 100, 200, |setup, signer, number| {
            let sql = format!("SELECT * FROM c WHERE c.name = 'name-{:08}'", setup.spread(number));
            query(signer, &sql, &json!({}), ACROSS)
        })
        .rows(1),
        Operation::new("equality, same text", 100, 200, |_, signer, _| {
            query(signer, "SELECT * FROM c WHERE c.name = 'name-00000007'", &json!({}), ACROSS)
        })
        .rows(1),
        Operation::new("equality, parameter", 100, 200, |setup, signer, number| {
            let name = format!("name-{:08}", setup.spread(number));
            query(signer, "SELECT * FROM c WHERE c.name = @name", &json!({"@name": name}), ACROSS)
        })
        .rows(1),
        Operation::new("equality, nothing found", 100, 200, |_, signer, number| {
            let name = format!("nobody-{number}");
            query(signer, "SELECT * FROM c WHERE c.name = @name", &json!({"@name": name}), ACROSS)
        })
        .rows(0),
        Operation::new("range, 100 documents", 20, 200, |setup, signer, number| {
            let from = setup.spread(number).min(setup.documents.count - 100);
            let parameters = json!({"@from": from, "@to": from + 100});
            query(signer, "SELECT * FROM c WHERE c.level >= @from AND c.level < @to", &parameters, ACROSS)
        })
        .rows(100),
        Operation::new("AND of two, 10 documents", 40, 200, |setup, signer, number| {
            let value = setup.spread(number);
            let parameters = json!({"@city": format!("city-{}", value / 100), "@grade": value % 10});
            query(signer, "SELECT * FROM c WHERE c.city = @city AND c.grade = @grade", &parameters, ACROSS)
        })
        .rows(10),
        Operation::new("ARRAY_CONTAINS, 10 documents", 40, 200, |setup, signer, number| {
            let parameters = json!({"@tag": format!("b{}", setup.spread(number) / 10)});
            query(signer, "SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, @tag)", &parameters, ACROSS)
        })
        .rows(10),
        Operation::new("ORDER BY, TOP 10", 40, 200, |_, signer, _| {
            query(signer, "SELECT TOP 10 * FROM c ORDER BY c.score", &json!({}), ACROSS)
        })
        .rows(10),
        Operation::new("second page of 10", 40, 200, |setup, signer, _| {
            let continuation = Some(setup.second_page.as_str());
            query(signer, SECOND_PAGE, &json!({}), Asked { page_count: 10, continuation, ..ACROSS })
        })
        .rows(10),
        Operation::new("COUNT of a tenth", 20, 200, |_, signer, number| {
            let parameters = json!({"@grade": number % 10});
            query(signer, "SELECT VALUE COUNT(1) FROM c WHERE c.grade = @grade", &parameters, ACROSS)
        })
        .rows(1),
        Operation::new("GROUP BY, 10 groups", 20, 200, |_, signer, _| {
            let sql = "SELECT c.category, COUNT(1) AS documents FROM c GROUP BY c.category";
            query(signer, sql, &json!({}), ACROSS)
        })
        .rows(10),
        Operation::new("DISTINCT, 10 values", 20, 200, |_, signer, _| {
            query(signer, "SELECT DISTINCT VALUE c.category FROM c", &json!({}), ACROSS)
        })
        .rows(10),
    ]
}

/// Queries within one partition.
fn partition_lookups() -> Vec<Operation> {
    vec![
        Operation::new("equality in a partition", 100, 200, |setup, signer, number| {
            let number = setup.spread(number);
            let name = setup.documents.name_of(number);
            let partition_key = &*Documents::partition_key(number);
            let asked = Asked { partition_key: Some(partition_key), ..ACROSS };
            query(signer, "SELECT * FROM c WHERE c.name = @name", &json!({"@name": name}), asked)
        })
        .rows(1),
        Operation::new("range in a partition", 40, 200, |setup, signer, number| {
            let level = setup.documents.level_of(setup.spread(number));
            let partition_key = &*Documents::partition_key(setup.spread(number));
            let asked = Asked { partition_key: Some(partition_key), ..ACROSS };
            let sql = "SELECT * FROM c WHERE c.level >= @from AND c.level <= @to";
            query(signer, sql, &json!({"@from": level, "@to": level}), asked)
        })
        .rows(1),
        Operation::new("ORDER BY in a partition, TOP 1", 40, 200, |setup, signer, number| {
            let partition_key = &*Documents::partition_key(setup.spread(number));
            let asked = Asked { partition_key: Some(partition_key), ..ACROSS };
            query(signer, "SELECT TOP 1 * FROM c ORDER BY c.score", &json!({}), asked)
        })
        .rows(1),
        Operation::new("COUNT in a partition", 40, 200, |setup, signer, number| {
            let partition_key = &*Documents::partition_key(setup.spread(number));
            let asked = Asked { partition_key: Some(partition_key), ..ACROSS };
            query(signer, "SELECT VALUE COUNT(1) FROM c WHERE c.grade >= 0", &json!({}), asked)
        })
        .rows(1),
    ]
}

/// Queries that look at every document.
fn scans(size: u64) -> Vec<Operation> {
    let count = if size > 10_000 { 1 } else { 10 };
    vec![
        Operation::new("scan, SUM", count, 200, |_, signer, _| {
            let parameters = json!({"@limit": 500});
            query(signer, "SELECT VALUE SUM(c.amount) FROM c WHERE c.stock < @limit", &parameters, ACROSS)
        })
        .rows(1),
        Operation::new("scan, GROUP BY of 10", count, 200, |_, signer, _| {
            let sql = "SELECT c.kind, COUNT(1) AS documents, SUM(c.amount) AS total FROM c GROUP BY c.kind";
            query(signer, sql, &json!({}), ACROSS)
        })
        .rows(10),
        Operation::new("scan, join over an array", count, 200, |_, signer, _| {
            let sql = "SELECT COUNT(1) AS lines, SUM(l.price) AS total FROM c JOIN l IN c.lines WHERE l.quantity >= @least";
            query(signer, sql, &json!({"@least": 8}), ACROSS)
        })
        .rows(1),
        Operation::new("filter by a function, TOP 10", 10, 200, |_, signer, _| {
            query(signer, "SELECT TOP 10 c.id FROM c WHERE udf.above(c.stock)", &json!({}), ACROSS)
        })
        .rows(10),
    ]
}

fn writes() -> Vec<Operation> {
    vec![
        Operation::new("create", 25, 201, |_, signer, number| {
            let item = items::item(NEW + number);
            signer.request(
                "POST",
                &format!("{ITEMS}/docs"),
                &partition_key_line(&item.partition_key),
                &item.text,
            )
        }),
        Operation::new("create with a trigger", 15, 201, |_, signer, number| {
            let item = items::item(NEW + APART + number);
            let lines = format!(
                "{}{}: stamp\r\n",
                partition_key_line(&item.partition_key),
                headers::PRE_TRIGGER_INCLUDE
            );
            signer.request("POST", &format!("{ITEMS}/docs"), &lines, &item.text)
        }),
        Operation::new("upsert of an existing document", 25, 200, |setup, signer, number| {
            let item = changed(setup, number);
            let lines =
                format!("{}{}: True\r\n", partition_key_line(&item.partition_key), headers::IS_UPSERT);
            signer.request("POST", &format!("{ITEMS}/docs"), &lines, &item.text)
        }),
        Operation::new("replace", 25, 200, |setup, signer, number| {
            let item = changed(setup, number + APART);
            let path = format!("{ITEMS}/docs/{}", item.id);
            signer.request("PUT", &path, &partition_key_line(&item.partition_key), &item.text)
        }),
        Operation::new("patch of one property", 25, 200, |setup, signer, number| {
            let item = items::item(setup.spread(number));
            let body = json!({"operations": [{"op": "set", "path": "/price", "value": number}]});
            let path = format!("{ITEMS}/docs/{}", item.id);
            signer.request("PATCH", &path, &partition_key_line(&item.partition_key), &body.to_string())
        }),
        Operation::new("delete", 25, 204, |_, signer, number| {
            // All turns and the warm-up take 270 of the load's documents.
            let item = items::item(number);
            signer.request(
                "DELETE",
                &format!("{ITEMS}/docs/{}", item.id),
                &partition_key_line(&item.partition_key),
                "",
            )
        }),
    ]
}

/// Writes of several documents at once.
fn group_writes() -> Vec<Operation> {
    vec![
        Operation::new("batch of 10 creates", 8, 200, |_, signer, number| {
            let mut key = String::new();
            let mut operations = Vec::new();
            for place in 0..10 {
                // Items 500 apart have the same partition key.
                let item = items::item(NEW + 2 * APART + number % 500 + 500 * (number / 500 * 10 + place));
                operations.push(format!("{{\"operationType\":\"Create\",\"resourceBody\":{}}}", item.text));
                key = item.partition_key;
            }
            let lines = format!(
                "content-type: application/json\r\n{}: True\r\n{}: True\r\n{}",
                headers::IS_BATCH_REQUEST,
                headers::BATCH_ATOMIC,
                partition_key_line(&key)
            );
            signer.request("POST", &format!("{ITEMS}/docs"), &lines, &format!("[{}]", operations.join(",")))
        }),
        Operation::new("bulk of 100 creates", 2, 200, |_, signer, number| {
            let first = NEW + 4 * APART + number * 100;
            signer.bulk(ITEMS, (first..first + 100).map(items::item))
        }),
        Operation::new("stored procedure, 1 read, 2 writes", 15, 200, |setup, signer, number| {
            // Behind those that were deleted.
            let author = items::item(500 + setup.spread(number) % (setup.documents.count - 500));
            let mut book: Value = serde_json::from_str(&author.text)?;
            book["id"] = format!("book-{number}").into();
            let body = json!([author.id, book]).to_string();
            let line = partition_key_line(&author.partition_key);
            signer.request("POST", &format!("{ITEMS}/sprocs/addBook"), &line, &body)
        }),
    ]
}

/// An item of the load with another name and price.
fn changed(setup: &Setup, number: u64) -> Item {
    let mut item = items::item(setup.spread(number));
    let mut object: Value = serde_json::from_str(&item.text).unwrap_or_default();
    object["name"] = format!("changed-{number:08}").into();
    object["price"] = json!(number);
    item.text = object.to_string();
    item
}
