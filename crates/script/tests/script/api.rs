//! The objects of the server-side API, call by call.

use crate::support::{MemoryHost, check, check_body, check_on, check_throws, run, with_prologue};
use serde_json::json;

fn books() -> MemoryHost {
    MemoryHost::with(&[
        json!({"id": "1", "author": "Ada", "pages": 10, "tags": ["a", "b"]}),
        json!({"id": "2", "author": "Ada", "pages": 30, "tags": []}),
        json!({"id": "3", "author": "Ada", "pages": 20, "tags": ["c"]}),
    ])
}

/// Checks what a body answers with some books there.
fn check_books(body: &str, expected: &serde_json::Value) -> MemoryHost {
    check_on(&with_prologue(body), &json!([]), books(), expected).host
}

#[test]
fn parameters_come_as_arguments_and_the_body_goes_out_as_json() {
    for (source, parameters, expected) in [
        (
            "function f(a, b) { getContext().getResponse().setBody([b, a]); }",
            json!([1, "x"]),
            json!(["x", 1]),
        ),
        (
            "function f(a) { __.response.setBody(a); }",
            json!([{"b": [null, true]}]),
            json!({"b": [null, true]}),
        ),
        ("function f(a) { __.response.setBody(a); }", json!("alone"), json!("alone")),
        ("function f() { __.response.setBody(arguments.length); }", json!([]), json!(0)),
        ("function f() { __.response.setBody(arguments.length); }", json!([1, 2, 3]), json!(3)),
        ("function f() { __.response.setBody('text'); }", json!([]), json!("text")),
        ("function f() { }", json!([]), json!(null)),
        ("function f() { return 5; }", json!([]), json!(null)),
        (
            "function f() { __.response.setBody({ a: undefined, b: () => 1, c: NaN }); }",
            json!([]),
            json!({"c": null}),
        ),
        ("function f(a) { __.response.setBody(__.request.getBody()); }", json!([1, 2]), json!([1, 2])),
        ("function f() { __.response.setBody('\\ud83d\\ude00 ü'); }", json!([]), json!("😀 ü")),
    ] {
        check_on(source, &parameters, MemoryHost::default(), &expected);
    }
}

#[test]
fn the_response_can_be_built_in_parts() {
    check_body(
        "const r = __.response; r.appendBody('a'); r.appendBody('b'); r.appendBody(3);",
        &json!("ab3"),
    );
    check_body("const r = __.response; r.appendBody(1); r.appendBody(2);", &json!("12"));
    check_body("const body = {}; answer(body); body.later = true;", &json!({"later": true}));
    check_body("__.response.setValue('Body', 1); answer(__.response.getValue('Body') + 1);", &json!(2));
    check_body("answer(__.request.getMaxDocumentSize());", &json!(2 << 20));
    check_body(
        "try { __.request.setBody(1); } catch (e) { answer([e.number, e.message]); }",
        &json!([403, "Not a writable property: Body"]),
    );
    check_body("try { __.response.setValue('x', 1); } catch (e) { answer(e.number); }", &json!(400));
    check_body(
        "try { answer('x'.repeat(5e6)); } catch (e) { answer([e.number, e.message.includes('too large')]); }",
        &json!([413, true]),
    );
}

#[test]
fn a_document_goes_through_its_life() {
    let host = check_books(
        "collection.createDocument(link, { id: 'n', author: 'Ada', pages: 5 }, (err, created, info) => {
            if (err) throw err;
            note(created.pages, typeof created._etag, info.statusCode);
            collection.readDocument(created._self, (err, read) => {
                read.pages++;
                collection.replaceDocument(read._self, read, { etag: read._etag }, (err, replaced) => {
                    note(replaced.pages);
                    collection.deleteDocument(collection.getAltLink() + '/docs/n', (err, info) => {
                        note(err === undefined, info.statusCode);
                        collection.readDocument(replaced._self, err => note(err.number, err instanceof Error));
                    });
                });
            });
        });",
        &json!([5, "string", 201, 6, true, 204, 404, true]),
    );
    assert_eq!(host.documents.len(), 3);
}

#[test]
fn upsert_creates_or_replaces() {
    check_books(
        "collection.upsertDocument(link, { id: '1', pages: 11 }, (err, doc, info) => note(info.statusCode));
         collection.upsertDocument(link, { id: '9', pages: 99 }, (err, doc, info) => note(info.statusCode));
         collection.upsertDocument(link, { id: '9' }, { etag: 'other' }, err => note(err.number));",
        &json!([200, 201, 412]),
    );
}

#[test]
fn errors_of_operations_have_numbers_and_bodies() {
    check_books(
        "collection.createDocument(link, { id: '1' }, err => note(err.number, err.message, err.body === err.message));",
        &json!([409, r#"{"Errors":["Resource with specified id or name already exists."]}"#, true]),
    );
    check_books(
        "const alt = collection.getAltLink() + '/docs/';
         collection.deleteDocument(alt + '1', { etag: 'no' }, err => note(err.number === ErrorCodes.PreconditionFailed));
         collection.replaceDocument(alt + 'none', { id: 'none' }, err => note(err.number === ErrorCodes.NotFound));
         collection.createDocument(link, { x: 1 }, { disableAutomaticIdGeneration: true }, err => note(err.number));
         collection.createDocument(link, { id: 'big', x: 'x'.repeat(3e6) }, err => note(err.number));
         collection.queryDocuments(link, 'SELEC', err => note(err.number));
         collection.readDocuments(link, { continuation: 'x' }, err => note(err.message.includes('Invalid Continuation')));",
        &json!([true, true, 400, 413, 400, true]),
    );
}

#[test]
fn reads_can_be_conditional() {
    check_books(
        "collection.readDocument(collection.getAltLink() + '/docs/1', (err, doc) =>
            collection.readDocument(doc._self, { ifNoneMatch: doc._etag }, (err, same, info) =>
                note(err === undefined, same === undefined, info.notModified)));",
        &json!([true, true, true]),
    );
}

#[test]
fn missing_ids_are_made_up_and_the_body_given_is_left_alone() {
    let pattern = "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/";
    check_books(
        &format!(
            "const body = {{ pages: 1 }};
             collection.createDocument(link, body, (err, doc) => note({pattern}.test(doc.id), body.id === undefined));
             collection.createDocument(link, '{{\"pages\":2}}', (err, doc) => note({pattern}.test(doc.id), doc.pages));
             collection.upsertDocument(link, {{ id: '' }}, (err, doc) => note({pattern}.test(doc.id)));"
        ),
        &json!([true, true, true, 2, true]),
    );
}

#[test]
fn options_reach_the_host() {
    let host = check_books(
        "collection.createDocument(link, { id: 'a' }, { indexAction: 'exclude' });
         collection.createDocument(link, { id: 'b' }, { indexAction: 'Include' }, null);
         collection.createDocument(link, { id: 'c' }, null, () => note('c'));
         collection.createDocument(link, { id: 'd' }, { indexAction: 'never' }, err => note(err.number));",
        &json!(["c", 400]),
    );
    assert_eq!(host.unindexed, ["a"]);
}

#[test]
fn callbacks_run_after_the_function_in_the_order_of_their_calls() {
    check_books(
        "note('start');
         for (const id of ['1', '2', '3']) {
            collection.readDocument(collection.getAltLink() + '/docs/' + id, (err, doc) => {
                note(doc.id);
                collection.readDocument(doc._self, (err, doc) => note('again ' + doc.id));
            });
         }
         Promise.resolve().then(() => note('job'));
         note('end');",
        &json!(["start", "end", "job", "1", "2", "3", "again 1", "again 2", "again 3"]),
    );
}

#[test]
fn own_writes_are_seen() {
    check_books(
        "collection.createDocument(link, { id: '4', author: 'Ada' });
         collection.readDocument(collection.getAltLink() + '/docs/4', (err, doc) => note(doc.id));
         collection.queryDocuments(link, { query: 'SELECT * FROM c WHERE c.id = @id',
            parameters: [{ name: '@id', value: '4' }] }, (err, docs) => note(docs.length));
         collection.readDocuments(link, (err, docs) => note(docs.length));",
        &json!(["4", 1, 4]),
    );
}

#[test]
fn feeds_come_in_pages() {
    check_books(
        "const next = continuation => collection.readDocuments(link, { pageSize: 2, continuation }, (err, docs, info) => {
            note(docs.map(doc => doc.id).join());
            if (info.continuation) next(info.continuation);
         });
         next();
         collection.queryDocuments(link, 'SELECT * FROM c', { pageSize: -1 }, (err, docs, info) =>
            note(docs.length, info.continuation === undefined, info.currentCollectionSizeInMB));",
        &json!(["1,2", 3, true, "documentsSize=1;", "3"]),
    );
}

#[test]
fn links_must_be_of_this_collection() {
    for call in [
        "collection.createDocument('dbs/library/colls/other', {})",
        "collection.readDocument('dbs/library/colls/other/docs/1')",
        "collection.readDocument('dbs/library/colls/booksandmore/docs/1')",
        "collection.deleteDocument('x')",
    ] {
        check_throws(&with_prologue(call), "outside current collection");
    }
    for call in [
        "collection.readDocument(collection.getAltLink() + '/docs/')",
        "collection.readDocument(collection.getAltLink() + '/sprocs/a')",
        "collection.readDocument(link + '/docs/a/b')",
        "collection.readDocument(5)",
    ] {
        check_throws(&with_prologue(call), "Invalid document link");
    }
    // An id may have slashes.
    check_throws(
        &with_prologue("collection.readDocument(collection.getAltLink() + '/docs/a/b')"),
        "Entity with the specified id does not exist",
    );
    check_throws(&with_prologue("collection.readDocuments({})"), "Invalid collection link");
    check_books(
        "for (const own of [link, 'dbs/DB==/colls/COLL=', collection.getAltLink(), collection.getAltLink() + '/']) {
            collection.readDocuments(own, (err, docs) => note(docs.length));
         }
         collection.readDocument(collection.getAltLink() + '/DOCS/1/', (err, doc) => note(doc.id));",
        &json!([3, 3, 3, 3, "1"]),
    );
}

#[test]
fn wrong_arguments_are_refused_with_a_number() {
    for call in [
        "collection.createDocument(link)",
        "collection.readDocument()",
        "collection.queryDocuments(link)",
        "collection.createDocument(link, null)",
        "collection.createDocument(link, 5)",
        "collection.createDocument(link, '{')",
        "collection.createDocument(link, {}, 5)",
        "collection.createDocument(link, {}, {}, 5)",
        "collection.queryDocuments(link, 5)",
        "collection.queryDocuments(link, {})",
        "collection.createAttachment('x', {})",
        "collection.readAttachments('x')",
        "collection.spatial.distance({})",
        "collection.spatial.distance({}, 5)",
    ] {
        check_body(&format!("try {{ {call}; }} catch (e) {{ answer(e.number); }}"), &json!(400));
    }
    check_throws(&with_prologue("collection.createAttachment('x', {})"), "attachments are not supported");
}

#[test]
fn an_error_without_callback_ends_the_script() {
    let failure = run(
        &with_prologue(
            "collection.createDocument(link, { id: 'x' }); collection.createDocument(link, { id: '1' });",
        ),
        &json!([]),
        books(),
    );
    let failure = failure.expect_err("a conflict");
    let text = failure.error.to_string();
    assert!(text.contains("Exception = Error: {\"Errors\":[\"Resource with specified id"), "{text}");
}

#[test]
fn the_context_has_the_documented_shape() {
    check_body(
        "const context = getContext();
         answer([context === getContext(), context.getCollection() === collection, Object.getPrototypeOf(__) === collection,
            context.getRequest() === __.request, context.getResponse() === __.response, collection.getSelfLink(),
            collection.getAltLink(), JSON.stringify(collection.getPartitionKeyDefinition()),
            Object.isFrozen(ErrorCodes), ErrorCodes.RetryWith]);",
        &json!([
            true,
            true,
            true,
            true,
            true,
            "dbs/DB==/colls/COLL=/",
            "dbs/library/colls/books",
            "[[\"author\"]]",
            true,
            449
        ]),
    );
}

#[test]
fn values_of_the_request_can_be_read() {
    use crate::support::{SCRIPTS, block_on, procedure, script};
    let source = "function f() { const r = getContext().getRequest();
        getContext().getResponse().setBody([r.getValue('x-ms-version'), r['getx-ms-version'](), r.getValue('none')]);
        try { r.setValue('x-ms-version', 'y'); } catch (e) { console.log(e.number); } }";
    let mut call = procedure(&json!([]));
    call.request_values = vec![("x-ms-version".to_owned(), "2018-12-31".to_owned())];
    let answer =
        block_on(SCRIPTS.execute(script("values", source), call, MemoryHost::default())).expect("an answer");
    assert_eq!(answer.body.as_deref(), Some(r#"["2018-12-31","2018-12-31",null]"#));
    assert_eq!(answer.log, "403");
}

#[test]
fn logs_are_collected_where_they_are_wanted() {
    use crate::support::{SCRIPTS, block_on, procedure, script};
    let source = "function f() { console.log('The value of %s is %s.', 'a', { b: 1 }); console.log('x', 5);
        console.log({ c: [1] }); console.info(undefined); console.log(); console.log('%s'); }";
    let expected = "The value of a is {\"b\":1}.x 5{\"c\":[1]}undefined%s";
    for (log, expected) in [(true, expected), (false, "")] {
        let mut call = procedure(&json!([]));
        call.log = log;
        let answer = block_on(SCRIPTS.execute(script("log", source), call, MemoryHost::default()));
        assert_eq!(answer.expect("an answer").log, expected);
    }
    let failure = run("function f() { console.log('before'); throw 1; }", &json!([]), MemoryHost::default());
    assert_eq!(failure.expect_err("a throw").log, "before");
}

#[test]
fn spatial_functions_go_to_the_host() {
    check(
        "function f() { __.response.setBody([__.spatial.distance({}, {}), __.spatial.isValid({}), __.spatial.isValidDetailed({})]); }",
        &json!([4, true, {"valid": true}]),
    );
}

/// The pattern of bulk import in the documentation: one document after the other until a call is not accepted.
#[test]
fn a_bulk_import_stops_where_calls_are_no_longer_accepted_and_says_how_far_it_came() {
    let source = "function bulkImport(docs) {
        var collection = getContext().getCollection();
        var count = 0;
        if (docs.length === 0) { getContext().getResponse().setBody(0); return; }
        tryCreate(docs[count]);
        function tryCreate(doc) {
            if (!collection.createDocument(collection.getSelfLink(), doc, callback)) {
                getContext().getResponse().setBody(count);
            }
        }
        function callback(err) {
            if (err) throw err;
            count++;
            if (count >= docs.length) getContext().getResponse().setBody(count);
            else tryCreate(docs[count]);
        }
    }";
    let docs: Vec<_> = (0..100).map(|number| json!({"id": number.to_string()})).collect();
    let all = check_on(source, &json!([docs]), MemoryHost::default(), &json!(100));
    assert_eq!(all.host.documents.len(), 100);
    let host = MemoryHost { accepts_max: Some(40), ..MemoryHost::default() };
    let some = run(source, &json!([docs]), host).expect("an answer");
    let count = some.host.documents.len();
    assert_eq!(some.body, Some(count.to_string()));
    // It looks at errors only, so it may be some writes ahead when it hears of it.
    assert!((40..=40 + 33).contains(&count), "{count}");
}
