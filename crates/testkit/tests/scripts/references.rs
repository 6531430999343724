//! A reference checked by a trigger while what it refers to is removed.

use crate::support::{about, creation, execution, furnished, lsn, new_script, new_trigger, rows};
use astrarium_testkit::{Client, EngineKind, Server};
use std::sync::Barrier;
use std::thread;

const ROUNDS: usize = 40;

/// Lets a book in if its author is there.
const AUTHOR_EXISTS: &str = "function () {
    var book = __.request.getBody();
    __.readDocument(__.getAltLink() + '/docs/' + book.author, function (error) {
        if (error) throw new Error(404, 'There is no author ' + book.author);
    });
}";

/// The same, by a query.
const AUTHOR_FOUND: &str = "function () {
    var book = __.request.getBody();
    var query = { query: 'SELECT * FROM c WHERE c.id = @id', parameters: [{ name: '@id', value: book.author }] };
    __.queryDocuments(__.getSelfLink(), query, function (error, found) {
        if (error) throw error;
        if (found.length === 0) throw new Error(404, 'There is no author ' + book.author);
    });
}";

/// Counts the book at its author.
const COUNT_BOOK: &str = "function () {
    __.readDocument(__.getAltLink() + '/docs/' + __.response.getBody().author, function (error, author) {
        if (error) throw error;
        author.books += 1;
        __.replaceDocument(author._self, author, function (error) { if (error) throw error; });
    });
}";

/// Removes an author who has no books.
const REMOVE_AUTHOR: &str = "function (id) {
    __.readDocument(__.getAltLink() + '/docs/' + id, function (error, author) {
        if (error) throw error;
        if (author.books > 0) throw new Error('has books');
        __.deleteDocument(author._self, function (error) { if (error) throw error; });
    });
}";

/// Does two things at the same moment.
fn race<First: Send, Second: Send>(
    server: &Server,
    first: impl FnOnce(&mut Client) -> First + Send,
    second: impl FnOnce(&mut Client) -> Second + Send,
) -> (First, Second) {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            let mut client = server.client();
            start.wait();
            first(&mut client)
        });
        let mut client = server.client();
        start.wait();
        let second = second(&mut client);
        (first.join().expect("a client that panics fails the test"), second)
    })
}

/// No book comes after the end of its author: what a trigger read is still so when its write is made.
#[test]
fn a_book_never_follows_the_end_of_its_author() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let mut client = server.client();
        client.expect(201, &new_trigger("read", "Pre", "Create", AUTHOR_EXISTS));
        client.expect(201, &new_trigger("query", "Pre", "Create", AUTHOR_FOUND));
        let (mut before, mut refused) = (0, 0);
        for round in 0..ROUNDS {
            let author = format!("author-{round}");
            client.expect(201, &creation("a", &format!("{{\"id\":\"{author}\",\"pk\":\"a\"}}")));
            let trigger = if round % 2 == 0 { "read" } else { "query" };
            let body = format!("{{\"id\":\"book-{round}\",\"pk\":\"a\",\"author\":\"{author}\"}}");
            let book = creation("a", &body).header("x-ms-documentdb-pre-trigger-include", trigger);
            let (made, removed) = race(
                &server,
                |client| client.ask(&book),
                |client| {
                    // Half of the rounds a little later, so that both outcomes happen.
                    if round % 4 < 2 {
                        thread::sleep(std::time::Duration::from_micros(500 * (round as u64 % 8)));
                    }
                    client.expect(204, &about("DELETE", &author, "a"))
                },
            );
            match made.status {
                201 => {
                    before += 1;
                    let (book, end) = (lsn(&made), lsn(&removed));
                    assert!(book < end, "{}: book {book} after the end {end} of its author", engine.name());
                }
                400 => {
                    refused += 1;
                    assert_eq!(made.header("x-ms-substatus"), Some("404"), "{}", made.text());
                }
                status => panic!("{status} {}", made.text()),
            }
        }
        println!("{}: {before} books before the end of their author, {refused} refused", engine.name());
    }
}

/// With the books counted at their author, and only authors without books removed, no book is ever without its author.
#[test]
fn no_book_is_ever_without_its_author() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let mut client = server.client();
        client.expect(201, &new_trigger("check", "Pre", "Create", AUTHOR_EXISTS));
        client.expect(201, &new_trigger("count", "Post", "Create", COUNT_BOOK));
        client.expect(201, &new_script("sprocs", "remove", REMOVE_AUTHOR));
        for round in 0..ROUNDS {
            let author = format!("{{\"id\":\"author-{round}\",\"pk\":\"a\",\"books\":0,\"isAuthor\":true}}");
            client.expect(201, &creation("a", &author));
            let body = format!("{{\"id\":\"book-{round}\",\"pk\":\"a\",\"author\":\"author-{round}\"}}");
            let book = creation("a", &body)
                .header("x-ms-documentdb-pre-trigger-include", "check")
                .header("x-ms-documentdb-post-trigger-include", "count");
            let remove = execution("remove", "a", &format!("[\"author-{round}\"]"));
            let (made, removed) = race(&server, |client| client.ask(&book), |client| client.ask(&remove));
            let statuses = (made.status, removed.status);
            assert!(statuses == (201, 400) || statuses == (400, 200), "{}: {statuses:?}", engine.name());
        }
        let authors =
            rows(&mut client, "a", "SELECT VALUE c.id FROM c WHERE c.isAuthor = true AND c.books = 1");
        let referred = rows(&mut client, "a", "SELECT VALUE c.author FROM c WHERE IS_DEFINED(c.author)");
        let texts = |rows: &[astrarium_testkit::json::Json]| {
            let mut texts: Vec<String> = rows.iter().map(ToString::to_string).collect();
            texts.sort();
            texts
        };
        assert_eq!(texts(&authors), texts(&referred), "{}", engine.name());
    }
}
