//! Scripts at the same moment: no update is lost, nobody sees half of one, and nothing of one that fails.

use crate::support::{about, creation, execution, furnished, json, new_script, number, rows, together};
use astrarium_testkit::{Client, EngineKind};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

const CLIENTS: usize = 50;
const ROUNDS: usize = 4;

/// Adds one to the counter of its partition.
const INCREMENT: &str = "function () {
    __.readDocument(__.getAltLink() + '/docs/counter', function (error, counter) {
        if (error) throw error;
        counter.n += 1;
        __.replaceDocument(counter._self, counter, function (error) {
            if (error) throw error;
            __.response.setBody(counter.n);
        });
    });
}";

/// Appends to a list that it finds by a query.
const APPEND: &str = "function (entry) {
    __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c WHERE c.isList = true', function (error, found) {
        if (error) throw error;
        if (found.length !== 1) throw new Error('found ' + found.length);
        found[0].entries.push(entry);
        __.replaceDocument(found[0]._self, found[0], function (error) { if (error) throw error; });
    });
}";

/// Takes from one account what it gives to another; refuses to take what is not there, after the first write.
const TRANSFER: &str = "function (from, to, amount) {
    var alt = __.getAltLink() + '/docs/';
    __.readDocument(alt + to, function (error, receiver) {
        if (error) throw error;
        receiver.balance += amount;
        __.replaceDocument(receiver._self, receiver, function (error) {
            if (error) throw error;
            __.readDocument(alt + from, function (error, giver) {
                if (error) throw error;
                giver.balance -= amount;
                if (giver.balance < 0) throw new Error('too little');
                __.replaceDocument(giver._self, giver, function (error) { if (error) throw error; });
            });
        });
    });
}";

/// Reads accounts one after the other.
const SUM: &str = "function (ids) {
    var sum = 0, left = ids.length;
    ids.forEach(function (id) {
        __.readDocument(__.getAltLink() + '/docs/' + id, function (error, account) {
            if (error) throw error;
            sum += account.balance;
            if (--left === 0) __.response.setBody({ sum: sum });
        });
    });
}";

/// Makes several documents, and fails after the last of them if it is told to.
const GROUP: &str = "function (group, count, fails) {
    var made = 0;
    for (var i = 0; i < count; i++) {
        __.createDocument(__.getSelfLink(), { id: group + '-' + i, pk: 'a', group: group }, function (error) {
            if (error) throw error;
            if (++made === count && fails) throw new Error('after all');
        });
    }
}";

/// Runs a procedure until it is not told to come again; tells whether it succeeded.
fn run(client: &mut Client, id: &str, parameters: &str) -> Option<String> {
    loop {
        let answer = client.ask(&execution(id, "a", parameters));
        match answer.status {
            200 => return Some(answer.text()),
            400 => return None,
            449 => {}
            status => panic!("{id}: {status} {}", answer.text()),
        }
    }
}

#[test]
fn no_update_of_a_counter_is_lost() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let mut client = server.client();
        client.expect(201, &new_script("sprocs", "increment", INCREMENT));
        client.expect(201, &creation("a", "{\"id\":\"counter\",\"pk\":\"a\",\"n\":0}"));
        let numbers = together(&server, CLIENTS, |_, client| {
            let numbers = (0..ROUNDS).map(|_| run(client, "increment", "[]").expect("it cannot fail"));
            numbers.map(|text| text.parse::<usize>().expect("a number")).collect::<Vec<_>>()
        });
        for own in &numbers {
            assert!(own.is_sorted(), "{}: the counter went back: {own:?}", engine.name());
        }
        let all: BTreeSet<usize> = numbers.into_iter().flatten().collect();
        assert_eq!(all, (1..=CLIENTS * ROUNDS).collect(), "{}", engine.name());
        let counter = json(&client.expect(200, &about("GET", "counter", "a")));
        assert_eq!(number(&counter, "n") as usize, CLIENTS * ROUNDS, "{}", engine.name());
    }
}

/// Scripts beside writers without scripts, which wait for nobody.
#[test]
fn no_update_of_other_writers_is_lost() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let mut client = server.client();
        client.expect(201, &new_script("sprocs", "increment", INCREMENT));
        client.expect(201, &creation("a", "{\"id\":\"counter\",\"pk\":\"a\",\"n\":0}"));
        let patch = "{\"operations\":[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]}";
        let patch = about("PATCH", "counter", "a").body(patch);
        together(&server, 12, |number, client| {
            for _ in 0..4 * ROUNDS {
                if number % 3 == 0 {
                    while client.ask(&patch).status == 449 {}
                } else {
                    run(client, "increment", "[]").expect("it cannot fail");
                }
            }
        });
        let counter = json(&client.expect(200, &about("GET", "counter", "a")));
        assert_eq!(number(&counter, "n") as usize, 12 * 4 * ROUNDS, "{}", engine.name());
    }
}

#[test]
fn no_entry_of_a_list_is_lost() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let mut client = server.client();
        client.expect(201, &new_script("sprocs", "append", APPEND));
        client.expect(201, &creation("a", "{\"id\":\"list\",\"pk\":\"a\",\"isList\":true,\"entries\":[]}"));
        together(&server, CLIENTS, |writer, client| {
            for round in 0..ROUNDS {
                run(client, "append", &format!("[[{writer},{round}]]")).expect("it cannot fail");
            }
        });
        let list = rows(&mut client, "a", "SELECT VALUE x FROM c JOIN x IN c.entries");
        let list: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(list.len(), CLIENTS * ROUNDS, "{}: {list:?}", engine.name());
        for writer in 0..CLIENTS {
            let own: Vec<&String> =
                list.iter().filter(|entry| entry.starts_with(&format!("[{writer},"))).collect();
            let expected: Vec<String> = (0..ROUNDS).map(|round| format!("[{writer},{round}]")).collect();
            assert_eq!(own, expected.iter().collect::<Vec<_>>(), "{}: in order, each once", engine.name());
        }
    }
}

#[test]
fn transfers_keep_the_sum() {
    const ACCOUNTS: usize = 3;
    const TRANSFERS: usize = 24;
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let mut client = server.client();
        client.expect(201, &new_script("sprocs", "transfer", TRANSFER));
        client.expect(201, &new_script("sprocs", "sum", SUM));
        for account in 0..ACCOUNTS {
            client.expect(
                201,
                &creation("a", &format!("{{\"id\":\"{account}\",\"pk\":\"a\",\"balance\":10}}")),
            );
        }
        let done = AtomicBool::new(false);
        let sum_of = |client: &mut Client| {
            let read = run(client, "sum", "[[\"0\",\"1\",\"2\"]]").expect("it cannot fail");
            assert_eq!(read, "{\"sum\":30}", "{}: read by a script", engine.name());
            let queried = rows(client, "a", "SELECT VALUE SUM(c.balance) FROM c");
            assert_eq!(queried[0].to_string(), "30", "{}: asked by a query", engine.name());
            let below = rows(client, "a", "SELECT VALUE c.id FROM c WHERE c.balance < 0");
            assert!(below.is_empty(), "{}: an account below zero", engine.name());
        };
        let counts = together(&server, 10, |number, client| {
            if number < 2 {
                let mut looked = 0;
                while !done.load(Ordering::SeqCst) || looked == 0 {
                    sum_of(client);
                    looked += 1;
                }
                return (0, 0);
            }
            let mut succeeded = 0;
            for round in 0..TRANSFERS {
                let (from, to) = ((number + round) % ACCOUNTS, (number + round + 1) % ACCOUNTS);
                let amount = 1 + (number * 7 + round * 3) % 15;
                let parameters = format!("[\"{from}\",\"{to}\",{amount}]");
                succeeded += usize::from(run(client, "transfer", &parameters).is_some());
            }
            if number == 2 {
                done.store(true, Ordering::SeqCst);
            }
            (succeeded, TRANSFERS - succeeded)
        });
        let (succeeded, refused) = counts.iter().fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1));
        assert!(succeeded > 10 && refused > 10, "both happen: {succeeded} done, {refused} refused");
        sum_of(&mut client);
    }
}

/// Documents that belong together come together, and those of a script that fails never.
#[test]
fn nobody_sees_half_a_script() {
    const SIZE: i64 = 5;
    const GROUPS: usize = 16;
    for engine in EngineKind::all() {
        let server = furnished(engine);
        server.client().expect(201, &new_script("sprocs", "group", GROUP));
        let done = AtomicBool::new(false);
        let look = |client: &mut Client| {
            let groups =
                rows(client, "a", "SELECT c[\"group\"] AS g, COUNT(1) AS n FROM c GROUP BY c[\"group\"]");
            for group in &groups {
                assert_eq!(number(group, "n"), SIZE, "{}: half a group: {group}", engine.name());
                let name = group.get("g").map(ToString::to_string).unwrap_or_default();
                assert!(name.starts_with("\"kept"), "{}: a group of a failed script: {group}", engine.name());
            }
            groups.len()
        };
        together(&server, 6, |number, client| {
            if number < 2 {
                while !done.load(Ordering::SeqCst) {
                    look(client);
                }
                return;
            }
            for round in 0..GROUPS {
                let fails = (number + round) % 3 == 0;
                let name = if fails { "undone" } else { "kept" };
                let parameters = format!("[\"{name}-{number}-{round}\",{SIZE},{fails}]");
                assert_eq!(run(client, "group", &parameters).is_none(), fails);
            }
            if number == 2 {
                done.store(true, Ordering::SeqCst);
            }
        });
        let kept = (2..6).map(|number| (0..GROUPS).filter(|round| (number + round) % 3 != 0).count());
        assert_eq!(look(&mut server.client()), kept.sum::<usize>(), "{}", engine.name());
    }
}
