//! Every function on large arguments ends soon after its time is over: what grows with the arguments is charged by whoever
//! calls, what grows faster is charged by the function itself.

use astrarium_env::{Meter, Work};
use astrarium_sql_functions::{Context, ScalarFunction, SpatialMode, all, limits};
use astrarium_value::{Object, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest that a call may go on after its time: a tenth of it where nothing else runs and the code is optimised. Without
/// the charges it would be minutes.
const GRACE: Duration = Duration::from_secs(10);

fn text(text: impl Into<Arc<str>>) -> Value {
    Value::String(text.into())
}

fn position(x: f64, y: f64) -> Value {
    Value::Array(vec![Value::Number(x), Value::Number(y)])
}

fn shape(kind: &str, coordinates: Value) -> Value {
    let members = vec![("type".into(), text(kind)), ("coordinates".into(), coordinates)];
    Value::Object(Object::from_members(members))
}

/// A comb of so many points: its edges are near to those of any other comb.
fn comb(count: usize, closed: bool) -> Vec<Value> {
    let mut points: Vec<Value> = (0..count)
        .map(|place| position(place as f64 / count as f64, if place % 2 == 0 { 0.0 } else { 1.0 }))
        .collect();
    if closed {
        points.push(position(1.0, 2.0));
        points.push(position(0.0, 2.0));
        points.push(position(0.0, 0.0));
    }
    points
}

fn large_arguments() -> Vec<Value> {
    let words: String =
        (0..977).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ").repeat(16);
    let terms: Vec<Value> = (0..1_000).map(|number| text(format!("word{number}"))).collect();
    let objects = (0..1_500).map(|number| {
        let member =
            |place: i32| (Arc::<str>::from(format!("m{place}")), Value::Number(f64::from(number + place)));
        Value::Object(Object::from_members((0..8).map(member)))
    });
    vec![
        text("a".repeat(120_000)),
        text(format!("{}b", "a".repeat(60_000))),
        text(words),
        text("%_a%_a%_a%_a_b".repeat(200)),
        text("([ab]*a[ab]{60}){40}"),
        text("(?=(a+)+b)a\\1"),
        Value::Number(3.0),
        Value::Array((0..30_000).map(|number| Value::Number(f64::from(number))).collect()),
        Value::Array(objects.collect()),
        Value::Array(terms),
        Value::Object(Object::from_members(vec![
            ("term".into(), text("a".repeat(60_000))),
            ("distance".into(), Value::Number(2.0)),
        ])),
        shape("LineString", Value::Array(comb(16_000, false))),
        shape("Polygon", Value::Array(vec![Value::Array(comb(4_000, true))])),
    ]
}

fn check(function: &ScalarFunction, context: &Context<'_>, arguments: &[Value]) {
    let meter = Meter::new(Arc::new(Work::new(Duration::from_millis(20))), None);
    let began = Instant::now();
    meter.scope(|| {
        let weight = arguments.iter().map(limits::weight).sum();
        if astrarium_env::charge(weight).is_ok() {
            (function.evaluate)(context, arguments);
        }
    });
    let took = began.elapsed();
    let shown = || -> Vec<String> {
        arguments.iter().map(|value| format!("{value:?}").chars().take(40).collect()).collect()
    };
    assert!(took < GRACE, "{} took {took:?} of {:?}", function.name, shown());
}

#[test]
fn every_function_ends_soon_after_its_time() {
    let arguments = large_arguments();
    let plane = Context { spatial_mode: SpatialMode::Geometry, ..Context::default() };
    for function in all() {
        let (least, most) = (*function.arguments.start(), *function.arguments.end());
        if most == 0 {
            continue;
        }
        // Only functions of shapes look into shapes; others look at any object.
        let arguments = if function.name.starts_with("ST_") { &arguments[11..] } else { &arguments[..11] };
        for first in arguments {
            if least <= 1 {
                check(function, &plane, std::slice::from_ref(first));
            }
            if most == 1 {
                continue;
            }
            for second in arguments {
                let mut both = vec![first.clone(), second.clone()];
                both.resize(least.max(2), second.clone());
                check(function, &plane, &both);
            }
        }
    }
}

#[test]
fn shapes_on_the_earth_end_soon_after_their_time() {
    let shapes = &large_arguments()[11..];
    let earth = Context::default();
    for function in all().filter(|function| function.name.starts_with("ST_")) {
        for first in shapes {
            check(function, &earth, &[first.clone(), shapes[0].clone()]);
            check(function, &earth, &[first.clone(), shapes[1].clone()]);
        }
    }
}
