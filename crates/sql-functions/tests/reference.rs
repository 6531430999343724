//! The SQL reference of the documentation is made from the table of functions, and is current.
//!
//! `UPDATE_DOCS=1 cargo test -p astrarium-sql-functions --test reference` writes it anew. What the examples give is checked beside the
//! table; the queries of the first part are run by the tests of the documentation.

use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_functions::{all, groups, rank_functions, synonyms};
use std::fmt::Write as _;
use std::path::Path;

const BEGINNING: &str = include_str!("reference.md");

#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sql-reference.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let stored = std::fs::read_to_string(&path).expect("the page is there");
    assert!(stored == page, "docs/sql-reference.md is not current; run this test with UPDATE_DOCS=1");
}

/// Names that begin with an underscore are for rewritten queries, and nobody's business.
fn is_public(name: &str) -> bool {
    !name.starts_with('_')
}

fn page() -> String {
    let mut page = BEGINNING.to_owned();
    let count = all().filter(|function| is_public(function.name)).count();
    let _ = write!(
        page,
        "\n## Functions\n\nThere are {count} functions. Names may be written in any case. `?` marks an argument that may be left out, `...` one that \
         may be repeated, `any` every type. An argument of another type gives undefined, and so does a result that would be too large.\n"
    );
    for (title, functions) in groups() {
        let _ = write!(page, "\n### {title}\n\n| function | what it gives | example |\n|---|---|---|\n");
        for function in functions.iter().filter(|function| is_public(function.name)) {
            let example = function.example.map(|(arguments, result)| {
                format!("{} gives {}", code(&format!("{}({arguments})", function.name)), code(result))
            });
            row(
                &mut page,
                &[
                    &code(&format!("{}{}", function.name, function.signature)),
                    function.summary,
                    &example.unwrap_or_default(),
                ],
            );
        }
    }
    let also: Vec<String> =
        synonyms().map(|(second, name)| format!("{} is {}", code(second), code(name))).collect();
    let _ = write!(
        page,
        "\nSecond names: {}.\n\n## Aggregates\n\n| function | what it gives |\n|---|---|\n",
        also.join(", ")
    );
    for aggregate in AggregateFunction::ALL {
        row(
            &mut page,
            &[&code(&format!("{}{}", aggregate.name(), aggregate.signature())), aggregate.summary()],
        );
    }
    page.push_str("\nUndefined values are left out by all of them.\n\n## Scores, for ORDER BY RANK\n\n| function | what it gives |\n|---|---|\n");
    for function in rank_functions() {
        row(&mut page, &[&code(&format!("{}{}", function.name, function.signature)), function.summary]);
    }
    page
}

fn code(text: &str) -> String {
    // A bar would end the cell.
    format!("`{}`", text.replace('|', "\\|"))
}

fn row(page: &mut String, cells: &[&str]) {
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}
