//! Indexed answer = scanned answer, over random documents, policies and queries, with changes in between.
//!
//! Each case has words of its own, from which everything in it is made. Between queries documents are written, replaced,
//! removed and expire. Every query is asked over all kinds of scope; with indexes, without, and as the cost says; whole,
//! in pages of one, in pages that end in a hurry, and changing between indexes and scans from page to page. Rows and
//! their order are the same every time, and what is refused is refused every time.
//! `PROPTEST_CASES` raises the number of cases.

mod documents;
mod policies;
mod queries;
mod words;
mod world;

use astrarium_testkit::EngineKind;
use astrarium_testkit::sql::stage::Stage;
use documents::Document;
use policies::{Definition, Policy};
use proptest::collection::vec;
use proptest::prelude::*;
use queries::Query;
use std::cell::RefCell;
use words::Words;
use world::World;

/// What happens in a case.
#[derive(Debug, Clone)]
enum Step {
    Put(Document),
    Remove(Document),
    /// Removes a partition.
    Clear((usize, usize)),
    Wait(u64),
    /// Erases some documents that have expired.
    Erase,
    Redefine(Policy),
    /// A step of building an index.
    Build,
    /// An order by a path, or by a property that everything has.
    Order(usize),
    /// A query, and the number of the scopes it is asked over.
    Ask(Query, usize),
}

#[derive(Debug, Clone)]
struct Case {
    words: Words,
    definition: Definition,
    documents: Vec<Document>,
    /// How often each of the documents is there, with another id each time: enough of them make indexes worth their cost.
    copies: usize,
    steps: Vec<Step>,
}

fn case() -> BoxedStrategy<Case> {
    let step = prop_oneof![
        3 => documents::document().prop_map(Step::Put),
        2 => documents::document().prop_map(Step::Remove),
        1 => (0_usize..6, 0_usize..4).prop_map(Step::Clear),
        1 => (1_u64..15).prop_map(Step::Wait),
        1 => Just(Step::Erase),
        1 => policies::policy().prop_map(Step::Redefine),
        2 => Just(Step::Build),
        2 => (0_usize..8).prop_map(Step::Order),
        8 => (queries::query(), 0_usize..240).prop_map(|(query, scope)| Step::Ask(query, scope)),
    ];
    let copies = prop_oneof![9 => Just(1_usize), 1 => 2_usize..8];
    (words::words(), policies::definition(), vec(documents::document(), 0..40), copies, vec(step, 1..12))
        .prop_map(|(words, definition, documents, copies, steps)| Case {
            words,
            definition,
            documents,
            copies,
            steps,
        })
        .boxed()
}

fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 4_000, ..ProptestConfig::default() }
}

/// Disks are slow: fewer cases.
fn config_on_disk() -> ProptestConfig {
    let all = config(200);
    ProptestConfig { cases: all.cases / 10, ..all }
}

thread_local! {
    /// One account for many cases: each has a container of its own.
    static MEMORY: RefCell<Stage> = RefCell::new(Stage::new(EngineKind::Memory));
    static FJALL: RefCell<Stage> = RefCell::new(Stage::new(EngineKind::Fjall));
}

fn run(stage: &mut Stage, case: &Case) -> Result<(), TestCaseError> {
    let words = &case.words;
    let told = |error: TestCaseError| {
        let definition = case.definition.json(words);
        let documents: Vec<String> = case.documents.iter().map(|document| document.text(words)).collect();
        let steps: Vec<String> = case.steps.iter().map(|step| format!("{step:?}")).collect();
        world::fail(format!(
            "{error}\n{definition}, {} copies\n{}\n{}",
            case.copies,
            documents.join("\n"),
            steps.join("\n")
        ))
    };
    let mut world = World::new(stage, &case.definition, words)?;
    let mut definition = case.definition.clone();
    for copy in 0..case.copies {
        for document in &case.documents {
            world.put(&document.copied(copy), words).map_err(told)?;
        }
    }
    for step in &case.steps {
        step.take(&mut world, &mut definition, words).map_err(told)?;
    }
    world.end().map_err(told)
}

impl Step {
    fn take(
        &self,
        world: &mut World<'_>,
        definition: &mut Definition,
        words: &Words,
    ) -> Result<(), TestCaseError> {
        match self {
            Step::Put(document) => world.put(document, words),
            Step::Remove(document) => {
                world.remove(document);
                Ok(())
            }
            Step::Clear(key) => world.clear(*key),
            Step::Wait(seconds) => {
                world.wait(*seconds);
                Ok(())
            }
            Step::Erase => world.erase_expired(),
            Step::Redefine(policy) => {
                *definition = definition.with(policy);
                world.redefine(definition, words)
            }
            Step::Build => world.build(),
            Step::Order(number) => {
                // Until the index is built, the policy before decides.
                world.settle()?;
                let path = match number {
                    0 => vec!["id"],
                    1 => vec!["_ts"],
                    _ => words.path(*number),
                };
                match definition.has_order(words, &path) {
                    Some(is_indexed) => world.order(&path, is_indexed),
                    None => Ok(()),
                }
            }
            Step::Ask(query, scope) => world.compare(&query.text(words, definition), words, *scope),
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn an_index_changes_no_answer(case in case()) {
        MEMORY.with_borrow_mut(|stage| run(stage, &case))?;
    }
}

proptest! {
    #![proptest_config(config_on_disk())]

    #[test]
    fn an_index_on_disk_changes_no_answer(case in case()) {
        FJALL.with_borrow_mut(|stage| run(stage, &case))?;
    }
}
