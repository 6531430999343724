//! A composite index against the meaning of conditions: what it finds is never less than what meets them, and the same
//! where it says that it is exact.
//!
//! Values are few, so that equalities are met often, and of all types, long texts included, whose terms are shortened.

use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_index::{
    Access, Condition, Document, IndexSet, Need, Path, PathStep, Predicate, Together, Type,
};
use astrarium_keys::index_entry::{PREFIX_BYTES, read_entry};
use astrarium_value::Value;
use astrarium_value::json::Text;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;
use std::ops::Bound;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Values by number, in their order; the first is undefined.
fn value(number: usize) -> Value {
    let long = "x".repeat(120);
    let texts =
        [String::new(), "a".to_owned(), "a\u{0}".to_owned(), "ab".to_owned(), long.clone(), long + "y"];
    match number {
        0 => Value::Undefined,
        1 => Value::Null,
        2 => Value::Bool(false),
        3 => Value::Bool(true),
        4..=8 => Value::Number([-1.5, 0.0, 1.0, 255.0, 1e300][number - 4]),
        9..=14 => Value::String(texts[number - 9].as_str().into()),
        15 => Value::Array(Vec::new()),
        _ => Value::Object(astrarium_value::Object::default()),
    }
}

/// Numbers of values that constants in conditions may have.
const CONSTANTS: std::ops::Range<usize> = 1..15;

fn document(values: [usize; 3]) -> String {
    let members = NAMES.iter().zip(values).filter(|(_, number)| *number != 0).map(|(name, number)| {
        let own = match value(number) {
            Value::Null => json!(null),
            Value::Bool(own) => json!(own),
            Value::Number(own) => json!(own),
            Value::String(own) => json!(&*own),
            Value::Array(_) => json!([]),
            _ => json!({}),
        };
        ((*name).to_owned(), own)
    });
    serde_json::Value::Object(members.collect()).to_string()
}

fn set(directions: [bool; 3]) -> IndexSet {
    let order = |descending: bool| if descending { "descending" } else { "ascending" };
    let parts = NAMES.iter().zip(directions);
    let parts: Vec<_> =
        parts.map(|(name, down)| json!({"path": format!("/{name}"), "order": order(down)})).collect();
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"]},
        "indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}], "compositeIndexes": [parts]}});
    IndexSet::new(1, &ContainerDefinition::from_json(&definition).expect("a definition"))
}

fn is_met(predicate: &Predicate, own: &Value) -> bool {
    match predicate {
        Predicate::OneOf(values) => values.contains(own),
        Predicate::Not(other) => !own.is_undefined() && own != other,
        Predicate::Between(low, high) => {
            let kind = [low, high].into_iter().find_map(|bound| match bound {
                Bound::Included(value) | Bound::Excluded(value) => Type::of(value),
                Bound::Unbounded => None,
            });
            Type::of(own) == kind && std::ops::RangeBounds::contains(&(low.clone(), high.clone()), own)
        }
        Predicate::Prefix(start) => matches!(own, Value::String(text) if text.starts_with(&**start)),
        Predicate::Types(types) => Type::of(own).is_some_and(|kind| types.contains(&kind)),
    }
}

fn bound() -> BoxedStrategy<fn(Value) -> Bound<Value>> {
    let every: Vec<fn(Value) -> Bound<Value>> = vec![Bound::Included, Bound::Excluded, |_| Bound::Unbounded];
    select(every).boxed()
}

fn predicate() -> BoxedStrategy<Predicate> {
    let constant = CONSTANTS.prop_map(value);
    let list = vec(CONSTANTS, 1..4).prop_map(|mut numbers| {
        numbers.sort_unstable();
        numbers.dedup();
        Predicate::OneOf(numbers.into_iter().map(value).collect())
    });
    let between = (CONSTANTS, CONSTANTS, bound(), bound()).prop_filter_map(
        "bounds of one type",
        |(low, high, low_bound, high_bound)| {
            let (low, high) = (value(low), value(high));
            let same = Type::of(&low) == Type::of(&high);
            let bounds = (low_bound(low), high_bound(high));
            let bounded = bounds != (Bound::Unbounded, Bound::Unbounded);
            (same && bounded).then_some(Predicate::Between(bounds.0, bounds.1))
        },
    );
    let long = "x".repeat(100);
    prop_oneof![
        6 => list,
        3 => between,
        1 => constant.prop_map(Predicate::Not),
        1 => select(vec![String::new(), "a".to_owned(), "x".to_owned(), long])
            .prop_map(|text| Predicate::Prefix(text.into())),
        1 => subsequence(Type::ALL.to_vec(), 1..=6).prop_map(Predicate::Types),
    ]
    .boxed()
}

/// The entries that stand for several conditions at once, or for one.
fn together(access: Access) -> Option<(astrarium_index::Served, Vec<usize>)> {
    match access {
        Access::Combined { together, .. } => {
            together.into_iter().next().map(|Together { served, conditions, .. }| (served, conditions))
        }
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn entries_are_those_of_documents_that_meet_the_conditions(
        directions in any::<[bool; 3]>(),
        predicates in (predicate(), predicate(), predicate()),
        count in 2_usize..4,
        documents in vec(any::<[prop::sample::Index; 3]>(), 1..12),
    ) {
        let set = set(directions);
        let predicates = [predicates.0, predicates.1, predicates.2];
        let one = |(name, predicate): (&&str, &Predicate)| Need::One {
            condition: Condition {
                path: Path(vec![PathStep::Name((*name).into())]),
                predicate: predicate.clone(),
            },
            exact: true,
        };
        let need = Need::All(NAMES.iter().zip(&predicates).take(count).map(one).collect());
        let Some((served, conditions)) = together(set.access(&need)) else {
            // A range on the first path ends what the index can do.
            prop_assert!(!matches!(predicates[0], Predicate::OneOf(_)));
            return Ok(());
        };
        prop_assert_eq!(&conditions, &(0..conditions.len()).collect::<Vec<_>>());
        for (number, own) in (1..).zip(documents) {
            let values = own.map(|index| index.index(17));
            let text = document(values);
            let text = Text::parse(text.as_bytes()).expect("JSON of ours");
            let source = Document { root: text.root(), added: &[], partition: b"p", expiry: None, is_excluded: false };
            let entries = set.entries(7, number, &source);
            let prefix = served.family.prefix(7);
            let entry = entries.iter().find(|key| key.starts_with(&prefix)).expect("an entry");
            prop_assert_eq!(read_entry(entry).expect("an entry").1, number);
            let terms = &entry[PREFIX_BYTES..];
            let inside = |range: &astrarium_index::TermRange| terms >= &range.start[..] && terms < &range.end[..];
            let found = served.ranges.iter().filter(|range| inside(range)).count();
            prop_assert!(found <= 1, "ranges overlap");
            let met = conditions.iter().all(|place| is_met(&predicates[*place], &value(values[*place])));
            prop_assert!(found == 1 || !met, "lost: {:?}", values);
            prop_assert!(found == 0 || met || !served.exact, "not exact: {:?}", values);
        }
    }
}
