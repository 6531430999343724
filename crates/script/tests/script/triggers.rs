//! Triggers before and after a write.

use crate::support::{MemoryHost, SCRIPTS, block_on, call, script};
use astrarium_script::{Error, ScriptWork, TriggeringOperation};
use serde_json::{Value, json};

fn before(
    source: &str,
    operation: TriggeringOperation,
    document: Option<Value>,
    host: MemoryHost,
) -> Result<Value, String> {
    let document = document.map(|document| document.to_string().into_bytes());
    let work = ScriptWork::PreTrigger { operation, document };
    match block_on(SCRIPTS.execute(script("before", source), call(work), host)) {
        Ok(answer) => Ok(answer.body.map_or(Value::Null, |body| serde_json::from_str(&body).expect("JSON"))),
        Err(failure) => Err(failure.error.to_string()),
    }
}

#[test]
fn a_trigger_before_a_write_can_change_the_document() {
    for (source, expected) in [
        (
            "function f() { const d = getContext().getRequest().getBody(); d.seen = true; }",
            json!({"id": "1", "seen": true}),
        ),
        (
            "function f() { const r = getContext().getRequest(); r.setBody({ ...r.getBody(), id: 'x' }); }",
            json!({"id": "x"}),
        ),
        (
            "function f() { __.request.getBody().kind = __.request.getOperationType(); }",
            json!({"id": "1", "kind": "Create"}),
        ),
        ("function f() {}", json!({"id": "1"})),
        (
            "function f() { __.request.getBody().now = new Date().toISOString(); }",
            json!({"id": "1", "now": "2023-11-14T22:13:20.000Z"}),
        ),
    ] {
        let result =
            before(source, TriggeringOperation::Create, Some(json!({"id": "1"})), MemoryHost::default());
        assert_eq!(result, Ok(expected), "{source}");
    }
}

#[test]
fn a_trigger_before_a_write_has_no_response() {
    let source = "function f() { __.request.setBody([typeof getContext().getResponse, typeof __.response, arguments.length]); }";
    let result = before(source, TriggeringOperation::Delete, None, MemoryHost::default());
    assert_eq!(result, Ok(json!(["undefined", "undefined", 0])));
    let result = before(
        "function f() { __.filter(d => true); }",
        TriggeringOperation::Delete,
        None,
        MemoryHost::default(),
    );
    assert!(result.is_err_and(|text| text.contains("callback must be given")));
}

#[test]
fn a_trigger_before_a_write_can_look_at_other_documents_and_refuse() {
    let source = "function checkAuthor() {
        const book = getContext().getRequest().getBody();
        const collection = getContext().getCollection();
        collection.readDocument(collection.getAltLink() + '/docs/' + book.author, err => {
            if (err) throw new Error('There is no author ' + book.author);
        });
    }";
    let host = MemoryHost::with(&[json!({"id": "ada"})]);
    let book = |author: &str| Some(json!({"id": "b", "author": author}));
    let kept = before(source, TriggeringOperation::Upsert, book("ada"), host.clone());
    assert_eq!(kept, Ok(json!({"id": "b", "author": "ada"})));
    let refused = before(source, TriggeringOperation::Upsert, book("bob"), host);
    assert!(refused.is_err_and(|text| text.contains("Exception = Error: There is no author bob")));
}

#[test]
fn a_trigger_after_a_write_sees_both_bodies_and_writes_in_the_same_transaction() {
    let source = "function count() {
        const collection = getContext().getCollection();
        const sent = getContext().getRequest().getBody();
        const written = getContext().getResponse().getBody();
        collection.readDocument(collection.getAltLink() + '/docs/' + written.author, (err, author) => {
            if (err) throw err;
            author.books = (author.books || 0) + 1;
            collection.replaceDocument(author._self, author, err => {
                if (err) throw err;
                getContext().getResponse().setBody({ ...written, sent: sent.id, number: author.books,
                    quota: getContext().getResponse().getMaxResourceQuota(), kind: __.request.getOperationType() });
            });
        });
    }";
    let work = ScriptWork::PostTrigger {
        operation: TriggeringOperation::Create,
        document: Some(br#"{"id":"b","author":"ada"}"#.to_vec()),
        written: Some(br#"{"id":"b","author":"ada","_etag":"1"}"#.to_vec()),
    };
    let host = MemoryHost::with(&[json!({"id": "ada", "books": 4})]);
    let answer = block_on(SCRIPTS.execute(script("after", source), call(work), host)).expect("an answer");
    let body: Value = serde_json::from_str(&answer.body.expect("a body")).expect("JSON");
    assert_eq!(
        body,
        json!({"id": "b", "author": "ada", "_etag": "1", "sent": "b", "number": 5, "quota": "documentsSize=100;",
            "kind": "Create"})
    );
    assert_eq!(answer.host.documents["ada"]["books"], 5);
}

#[test]
fn a_trigger_that_throws_fails_the_write() {
    let work =
        ScriptWork::PostTrigger { operation: TriggeringOperation::Delete, document: None, written: None };
    let thrown = block_on(SCRIPTS.execute(
        script("after", "function f() { throw new Error(403, 'never'); }"),
        call(work),
        MemoryHost::default(),
    ));
    match thrown.expect_err("a throw").error {
        Error::Exception(exception) => assert_eq!(exception.number, Some(403)),
        other => panic!("{other}"),
    }
}
