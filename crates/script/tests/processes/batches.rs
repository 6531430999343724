//! Runs that are sent to a process together, and documents that are sent along.

use crate::support::{MemoryHost, block_on, procedure, script, settings, with_prologue};
use astrarium_script::{
    DocumentLink, Host, HostError, IndexAction, Paging, Read, RowPage, ScriptQuery, ScriptSettings, Scripts,
    Written,
};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

/// A host that foresees, and counts what was read with and without waiting.
#[derive(Clone, Default)]
struct ForeseeingHost {
    inner: MemoryHost,
    foreseen: usize,
    read: usize,
    read_unseen: usize,
}

impl Host for ForeseeingHost {
    fn create(&mut self, document: &str, index: IndexAction) -> Result<Written, HostError> {
        self.inner.create(document, index)
    }

    fn upsert(&mut self, text: &str, etag: Option<&str>, index: IndexAction) -> Result<Written, HostError> {
        self.inner.upsert(text, etag, index)
    }

    fn replace(
        &mut self,
        link: DocumentLink<'_>,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        self.inner.replace(link, document, etag, index)
    }

    fn delete(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), HostError> {
        self.inner.delete(link, etag)
    }

    fn read(&mut self, link: DocumentLink<'_>, if_none_match: Option<&str>) -> Result<Read, HostError> {
        self.read += 1;
        self.inner.read(link, if_none_match)
    }

    fn foresee(&mut self, link: DocumentLink<'_>) -> Option<Vec<u8>> {
        self.foreseen += 1;
        match self.inner.read(link, None) {
            Ok(Read::Document(document)) => Some(document),
            _ => None,
        }
    }

    fn read_unseen(&mut self, _: DocumentLink<'_>) -> Result<(), HostError> {
        self.read_unseen += 1;
        Ok(())
    }

    fn read_feed(&mut self, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.inner.read_feed(paging)
    }

    fn query(&mut self, query: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.inner.query(query, paging)
    }
}

/// Reads the document whose id is its second parameter, after what the first says.
const READING: &str = "function f(first, id) {
    const collection = getContext().getCollection(), link = collection.getAltLink() + '/docs/' + id;
    const read = () => collection.readDocument(link, (e, d) => getContext().getResponse().setBody(e ? e.number : d.n));
    if (first === 'write') collection.replaceDocument(link, { id, n: 'new' }, e => { if (e) throw e; read(); });
    else if (first !== 'nothing') read();
}";

#[test]
fn a_document_named_by_a_parameter_comes_with_the_order() {
    let scripts = Scripts::new(settings());
    let host = ForeseeingHost {
        inner: MemoryHost::with(&[json!({"id": "a", "n": 1}), json!({"id": "b", "n": 2})]),
        ..ForeseeingHost::default()
    };
    let reading = script("reading", READING);
    // What is given, what comes back, and how often the host foresaw, was asked, and was told of a read.
    for (parameters, body, counts) in [
        (json!(["read", "a"]), "1", (0, 1, 0)),
        (json!(["read", "b"]), "2", (1, 0, 1)),
        (json!(["read", "missing"]), "404", (1, 1, 0)),
        // A script sees its own writes, whatever was foreseen.
        (json!(["write", "a"]), "\"new\"", (1, 1, 0)),
        (json!(["nothing", "a"]), "", (1, 0, 0)),
        // Three guesses were wrong: no more of them.
        (json!(["read", "a"]), "1", (0, 1, 0)),
    ] {
        let run = scripts.execute(reading.clone(), procedure(&parameters), host.clone());
        let answer = block_on(run).unwrap_or_else(|failure| panic!("{parameters}: {}", failure.error));
        assert_eq!(answer.body.as_deref().unwrap_or_default(), body, "{parameters}");
        let host = answer.host;
        assert_eq!((host.foreseen, host.read, host.read_unseen), counts, "{parameters}");
    }
}

/// Many runs at once on few threads are all answered, each with its own result; one that hangs holds up none of those
/// that were sent to its process behind it.
#[test]
fn runs_behind_one_that_hangs_are_done_elsewhere() {
    let scripts = Scripts::new(ScriptSettings { procedure_threads_max: 2, ..settings() });
    let body = "if (hangs) Array.prototype.reverse.call({ length: 2 ** 53 - 1 });
        collection.createDocument(link, { id: `${n}` }, e => { if (e) throw e; answer(n); });";
    let source = with_prologue(body).replacen("()", "(n, hangs)", 1);
    let often = &script("often", &source);
    let execute = |n: usize, hangs: bool| {
        scripts.execute(often.clone(), procedure(&json!([n, hangs])), MemoryHost::default())
    };
    // From here on it is known to end soon.
    assert!(block_on(execute(0, false)).is_ok());
    let are_done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut runs = Vec::new();
        for n in 1..60 {
            if n == 7 {
                let mut run = Box::pin(execute(n, true));
                scope.spawn(move || {
                    let mut context = Context::from_waker(Waker::noop());
                    // Its time is the end of a test that hangs: then the others were held up.
                    while !are_done.load(Ordering::SeqCst) {
                        assert!(run.as_mut().poll(&mut context).is_pending(), "it hangs");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
            } else {
                let run = execute(n, false);
                runs.push((n, scope.spawn(move || block_on(run).map_err(|failure| failure.error))));
            }
        }
        let ended: Vec<_> = runs.into_iter().map(|(n, run)| (n, run.join())).collect();
        are_done.store(true, Ordering::SeqCst);
        for (n, run) in ended {
            let answer = run.expect("a run").unwrap_or_else(|error| panic!("{n}: {error}"));
            assert_eq!(answer.body, Some(n.to_string()));
            assert!(answer.host.documents.contains_key(&n.to_string()));
        }
    });
}
