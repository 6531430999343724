//! Scripts that go on before their writes are done.

use crate::support::{MemoryHost, Ran, block_on, procedure, script, settings, with_prologue};
use astrarium_script::{
    DocumentLink, Error, Host, HostError, IndexAction, Paging, Read, RowPage, Script, ScriptQuery, Scripts,
    UnseenWrite, Written,
};
use serde_json::{Value, json};

/// A host that counts the writes whose results were looked at, and those that were not.
#[derive(Clone, Default)]
struct CountingHost {
    inner: MemoryHost,
    seen: usize,
    unseen: usize,
}

impl Host for CountingHost {
    fn create(&mut self, document: &str, index: IndexAction) -> Result<Written, HostError> {
        self.seen += 1;
        self.inner.create(document, index)
    }

    fn upsert(
        &mut self,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        self.seen += 1;
        self.inner.upsert(document, etag, index)
    }

    fn replace(
        &mut self,
        link: DocumentLink<'_>,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        self.seen += 1;
        self.inner.replace(link, document, etag, index)
    }

    fn delete(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), HostError> {
        self.seen += 1;
        self.inner.delete(link, etag)
    }

    fn write_unseen(&mut self, write: UnseenWrite<'_>) -> Result<(), HostError> {
        self.unseen += 1;
        self.inner.write_unseen(write)
    }

    fn read(&mut self, link: DocumentLink<'_>, if_none_match: Option<&str>) -> Result<Read, HostError> {
        self.inner.read(link, if_none_match)
    }

    fn read_feed(&mut self, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.inner.read_feed(paging)
    }

    fn query(&mut self, query: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.inner.query(query, paging)
    }
}

fn execute(scripts: &Scripts, script: Script, host: MemoryHost, ahead: bool) -> Ran {
    let mut call = procedure(&json!([]));
    call.ahead = ahead;
    block_on(scripts.execute(script, call, host))
}

#[test]
fn nobody_waits_for_what_nobody_looks_at() {
    let scripts = Scripts::new(settings());
    // A callback, and how many of its two writes are looked at.
    for (callback, seen) in [
        ("undefined", 0),
        ("function (error) { if (error) throw error; }", 0),
        ("() => {}", 0),
        ("e => { if (e) throw e; }", 0),
        ("function (error, made) { note(made.id); }", 2),
        ("function () { note(arguments[1].id); }", 2),
        ("(...all) => note(all[1].id)", 2),
        ("(e, made = {}) => note(made.id)", 2),
        ("list.push.bind(list)", 2),
        ("new Proxy(e => {}, { apply: (target, self, all) => note(all[1].id) })", 2),
        ("class { constructor(e) {} }.method ?? ((e, made) => note(made.id))", 2),
    ] {
        let body = format!(
            "const list = []; const callback = {callback};
             collection.createDocument(link, {{ id: 'a' }}, callback); collection.upsertDocument(link, {{ id: 'b' }}, callback);
             collection.readDocument(collection.getAltLink() + '/docs/b', (e, read) => note('read', read.id, list.length));"
        );
        let made = script("ahead", &with_prologue(&body));
        let answer = block_on(scripts.execute(made, procedure(&json!([])), CountingHost::default()));
        let answer = answer.unwrap_or_else(|failure| panic!("{callback}: {}", failure.error));
        assert_eq!((answer.host.seen, answer.host.unseen), (seen, 2 - seen), "{callback}");
        assert_eq!(answer.host.inner.documents.len(), 2, "{callback}");
        let body: Value = serde_json::from_str(&answer.body.expect("a body")).expect("JSON");
        let notes = if callback.contains("note") { vec!["a", "b", "read", "b"] } else { vec!["read", "b"] };
        assert!(
            body.to_string().starts_with(json!(notes).to_string().trim_end_matches(']')),
            "{callback}: {body}"
        );
    }
}

#[test]
fn a_script_that_was_ahead_of_a_refused_write_is_void() {
    let scripts = Scripts::new(settings());
    let host = || MemoryHost::with(&[json!({"id": "there"})]);
    for body in [
        // Handles the error, ends with it, or never ends unless there is one.
        "collection.createDocument(link, { id: 'there' }, e => answer(e ? e.number : 'none'));",
        "collection.createDocument(link, { id: 'there' });",
        "collection.createDocument(link, { id: 'there' }, e => { if (e) answer(e.number); else for (;;); });",
        "collection.createDocument(link, { id: 'there' }, e => {
            collection.readDocument(collection.getAltLink() + '/docs/there', (_, read) => answer(e ? e.number : read)); });",
    ] {
        let source = script("conflict", &with_prologue(body));
        let Err(failure) = execute(&scripts, source.clone(), host(), true) else { panic!("{body}: an answer") };
        assert!(matches!(failure.error, Error::Void { .. }), "{body}: {}", failure.error);
        // From here on it waits, whether it has to or not.
        for ahead in [false, true] {
            match execute(&scripts, source.clone(), host(), ahead) {
                Ok(answer) => assert_eq!(answer.body.as_deref(), Some("409"), "{body}"),
                Err(failure) => assert!(matches!(failure.error, Error::Exception(_)), "{body}: {}", failure.error),
            }
        }
    }
}

#[test]
fn a_script_is_only_so_far_ahead() {
    let scripts = Scripts::new(settings());
    let body = "let n = 0; const more = e => { if (e) throw e; if (n++ < 1000 && collection.createDocument(link, { id: `${n}` }, more)) return; answer(n); }; more();";
    let host = MemoryHost { accepts_max: Some(100), ..MemoryHost::default() };
    let answer = execute(&scripts, script("many", &with_prologue(body)), host, true).expect("an answer");
    let made = answer.host.documents.len();
    assert!((100..150).contains(&made), "{made} documents were made where 100 are accepted");
}
