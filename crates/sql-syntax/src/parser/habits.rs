//! What this language has instead of what people write who know other databases.
//!
//! In: the token that the grammar does not take, with its neighbours. Out: what to write, for the detail of the error.
//! Not here: names of functions, which the grammar does not know (`sql-plan::bind::habits`).

use super::Parser;
use crate::token::TokenKind;

/// Words where the grammar takes none of them.
const WORDS: [(&str, &str); 14] = [
    ("LIMIT", "write OFFSET 0 LIMIT n at the end, or SELECT TOP n"),
    ("FETCH", "write OFFSET n LIMIT m at the end"),
    ("IS", "write IS_NULL(c.x) or c.x = null; what is absent is NOT IS_DEFINED(c.x)"),
    (
        "HAVING",
        "filter the groups in a query around them: SELECT * FROM (SELECT .. GROUP BY ..) AS g WHERE ..",
    ),
    ("UNION", "send two queries, or join their conditions with OR"),
    ("WHEN", "write condition ? value : other"),
    ("ON", "JOIN goes over an array within an item: JOIN x IN c.items"),
    ("LEFT", "JOIN goes over an array within an item: JOIN x IN c.items"),
    ("RIGHT", "JOIN goes over an array within an item: JOIN x IN c.items"),
    ("INNER", "JOIN goes over an array within an item: JOIN x IN c.items"),
    ("CROSS", "JOIN goes over an array within an item: JOIN x IN c.items"),
    ("ILIKE", "LIKE compares case: write CONTAINS(c.x, \"text\", true) or LOWER(c.x) LIKE .."),
    ("SEPARATOR", "write a comma"),
    ("NULLS", "null comes before all other values, and what is absent before null"),
];

/// Statements that are no queries.
const STATEMENTS: [(&str, &str); 11] = [
    ("UPDATE", "queries only read: patch or replace the item"),
    ("INSERT", "queries only read: create or upsert the item"),
    ("UPSERT", "queries only read: upsert the item"),
    ("MERGE", "queries only read: upsert or patch the item"),
    ("DELETE", "queries only read: delete the item by its id and partition key"),
    ("TRUNCATE", "queries only read: delete items, or the container"),
    ("CREATE", "queries only read: databases and containers are made by requests of their own"),
    ("DROP", "queries only read: databases and containers are deleted by requests of their own"),
    ("ALTER", "queries only read: a container is replaced with another definition"),
    ("WITH", "put the query into FROM: SELECT * FROM (SELECT ..) AS x"),
    ("EXPLAIN", "send the query with the header x-astrarium-explain: true"),
];

/// Words that can have been read as an alias.
const AFTER: [&str; 5] = ["FETCH", "HAVING", "UNION", "WHEN", "ON"];

fn of(list: &[(&str, &'static str)], piece: &str) -> Option<&'static str> {
    list.iter().find(|(word, _)| piece.eq_ignore_ascii_case(word)).map(|(_, instead)| *instead)
}

impl Parser<'_> {
    /// What to write instead of the current token, where it is a known habit.
    pub(super) fn instead(&self, expected: &str) -> Option<&'static str> {
        let (before, piece) = (self.previous.of(self.text), self.piece());
        match (before, piece) {
            ("", _) => of(&STATEMENTS, piece),
            ("=", "=") => Some("equality is written with one ="),
            ("&", "&") => Some("write AND"),
            ("(", "*") => Some("write COUNT(1)"),
            (_, ",") if expected.starts_with("another clause") => {
                Some("FROM has one container; its arrays are joined with JOIN x IN c.items")
            }
            (_, "!") => Some("write NOT"),
            (_, "`") => Some("write c[\"name\"]"),
            (_, ";") => Some("a query ends without ;"),
            // Where a name may stand, the word was taken for an alias.
            _ if AFTER.iter().any(|word| before.eq_ignore_ascii_case(word)) => of(&WORDS, before),
            _ if matches!(self.current.kind, TokenKind::Identifier | TokenKind::Keyword(_)) => {
                of(&WORDS, piece)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    /// What a text is answered with in the end of its detail.
    fn check(text: &str, instead: &str) {
        let error = parse(text).expect_err(text);
        assert!(error.detail.ends_with(&format!("; {instead}")), "{text}: {}", error.detail);
    }

    #[test]
    fn habits_of_other_databases_are_answered_with_what_this_language_has() {
        check("SELECT * FROM c LIMIT 5", "write OFFSET 0 LIMIT n at the end, or SELECT TOP n");
        check("SELECT * FROM c WHERE c.a = 1 limit 5", "write OFFSET 0 LIMIT n at the end, or SELECT TOP n");
        check("SELECT COUNT(*) FROM c", "write COUNT(1)");
        check("SELECT VALUE count( * ) FROM c", "write COUNT(1)");
        check("UPDATE c SET c.a = 1", "queries only read: patch or replace the item");
        check("insert into c values (1)", "queries only read: create or upsert the item");
        check("DELETE FROM c", "queries only read: delete the item by its id and partition key");
        let null = "write IS_NULL(c.x) or c.x = null; what is absent is NOT IS_DEFINED(c.x)";
        check("SELECT * FROM c WHERE c.a IS NULL", null);
        check("SELECT * FROM c WHERE c.a IS NOT NULL", null);
        check("SELECT * FROM c WHERE c.a == 1", "equality is written with one =");
        check("SELECT * FROM c WHERE c.a = 1 && c.b = 2", "write AND");
        check("SELECT * FROM c WHERE !c.a", "write NOT");
        check("SELECT * FROM c;", "a query ends without ;");
        check("SELECT `a` FROM c", "write c[\"name\"]");
        let join = "JOIN goes over an array within an item: JOIN x IN c.items";
        check("SELECT * FROM c JOIN d ON c.id = d.id", join);
        check("SELECT * FROM c LEFT JOIN d", join);
        check("SELECT * FROM c, d", "FROM has one container; its arrays are joined with JOIN x IN c.items");
        check("SELECT * FROM c UNION SELECT * FROM c", "send two queries, or join their conditions with OR");
        check("SELECT CASE WHEN c.a THEN 1 END FROM c", "write condition ? value : other");
    }

    #[test]
    fn other_mistakes_are_told_as_before() {
        for text in ["SELECT", "SELECT * FROM", "SELECT c.a, FROM c", "SELECT VALUE 1)", "x"] {
            let error = parse(text).expect_err(text);
            assert!(!error.detail.contains("; "), "{text}: {}", error.detail);
        }
    }
}
