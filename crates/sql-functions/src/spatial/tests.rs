//! Cases and laws of shapes.

use super::*;
use crate::testing::{check, check_all, check_in, check_wrong_types, print, value};
use proptest::prelude::*;

const PLANE: Context<'static> = Context {
    now_microseconds: 0,
    query_start_microseconds: 0,
    random: &|| 0,
    spatial_mode: SpatialMode::Geometry,
    full_text_language: crate::full_text::TextLanguage::English,
    vector: crate::VectorDefaults {
        distance_function: crate::vector::VectorMetric::Cosine,
        data_type: crate::vector::DataType::Float32,
    },
};

fn point(x: f64, y: f64) -> String {
    format!(r#"{{"type":"Point","coordinates":[{x},{y}]}}"#)
}

fn line(coordinates: &str) -> String {
    format!(r#"{{"type":"LineString","coordinates":{coordinates}}}"#)
}

fn polygon(rings: &str) -> String {
    format!(r#"{{"type":"Polygon","coordinates":{rings}}}"#)
}

/// Corners counter-clockwise from the lower left.
fn square(x: f64, y: f64, size: f64) -> String {
    let (right, top) = (x + size, y + size);
    format!("[[{x},{y}],[{right},{y}],[{right},{top}],[{x},{top}],[{x},{y}]]")
}

fn square_polygon(x: f64, y: f64, size: f64) -> String {
    polygon(&format!("[{}]", square(x, y, size)))
}

#[track_caller]
fn check_both(name: &str, a: &str, b: &str, expected: &str) {
    check(name, &format!("[{a},{b}]"), expected);
    check_in(&PLANE, name, &format!("[{a},{b}]"), expected);
}

#[test]
fn intersections_and_containment() {
    let ring_with_hole = polygon(&format!("[{},{}]", square(0.0, 0.0, 10.0), square(4.0, 4.0, 2.0)));
    let two = format!(
        r#"{{"type":"MultiPolygon","coordinates":[[{}],[{}]]}}"#,
        square(0.0, 0.0, 1.0),
        square(5.0, 5.0, 1.0)
    );
    // First shape, second shape, whether they intersect, whether the first is in the second.
    let cases: Vec<(String, String, bool, bool)> = vec![
        (point(1.0, 1.0), point(1.0, 1.0), true, true),
        (point(1.0, 1.0), point(1.0, 2.0), false, false),
        (point(0.5, 0.5), square_polygon(0.0, 0.0, 1.0), true, true),
        (point(2.0, 0.5), square_polygon(0.0, 0.0, 1.0), false, false),
        (point(0.0, 0.0), square_polygon(0.0, 0.0, 1.0), true, true),
        (point(5.0, 5.0), ring_with_hole.clone(), false, false),
        (point(4.0, 4.0), ring_with_hole.clone(), true, true),
        (point(2.0, 2.0), ring_with_hole.clone(), true, true),
        (point(5.5, 5.5), two.clone(), true, true),
        (point(3.0, 3.0), two.clone(), false, false),
        (point(0.0, 1.0), line("[[0,0],[0,2]]"), true, true),
        (point(1.0, 1.0), line("[[0,0],[0,2]]"), false, false),
        (line("[[0,0],[0,2]]"), line("[[0,1],[0,3]]"), true, false),
        (line("[[0,1],[0,2]]"), line("[[0,0],[0,3]]"), true, true),
        (line("[[-1,0.5],[2,0.5]]"), square_polygon(0.0, 0.0, 1.0), true, false),
        (line("[[0.2,0.5],[0.8,0.5]]"), square_polygon(0.0, 0.0, 1.0), true, true),
        (line("[[2,2],[3,3]]"), square_polygon(0.0, 0.0, 1.0), false, false),
        (line("[[3,5],[7,5]]"), ring_with_hole.clone(), true, false),
        (line("[[-1,1],[1,-1]]"), line("[[-1,-1],[1,1]]"), true, false),
        (square_polygon(0.2, 0.2, 0.2), square_polygon(0.0, 0.0, 1.0), true, true),
        (square_polygon(0.0, 0.0, 1.0), square_polygon(0.2, 0.2, 0.2), true, false),
        (square_polygon(0.5, 0.5, 1.0), square_polygon(0.0, 0.0, 1.0), true, false),
        (square_polygon(3.0, 3.0, 1.0), square_polygon(0.0, 0.0, 1.0), false, false),
        (square_polygon(0.0, 0.0, 1.0), square_polygon(0.0, 0.0, 1.0), true, true),
        (square_polygon(4.5, 4.5, 1.0), ring_with_hole.clone(), false, false),
        (square_polygon(3.0, 3.0, 4.0), ring_with_hole.clone(), true, false),
        (square_polygon(1.0, 1.0, 1.0), ring_with_hole.clone(), true, true),
        (two.clone(), square_polygon(-1.0, -1.0, 8.0), true, true),
        (two.clone(), square_polygon(-1.0, -1.0, 4.0), true, false),
        (square_polygon(0.0, 0.0, 1.0), point(0.5, 0.5), true, false),
        (square_polygon(0.0, 0.0, 1.0), line("[[0,0],[1,0]]"), true, false),
    ];
    for (a, b, meets, within) in cases {
        check_both("ST_INTERSECTS", &a, &b, &meets.to_string());
        check_both("ST_INTERSECTS", &b, &a, &meets.to_string());
        check_both("ST_WITHIN", &a, &b, &within.to_string());
        let zero = print(
            &of_two(&PLANE, &[value(&a), value(&b)], |a, b| Some(Value::Bool(a.distance(b)? == 0.0)))
                .unwrap(),
        );
        assert_eq!(zero, meets.to_string(), "distance of {a} and {b}");
    }
}

#[test]
fn recorded_samples() {
    let campus = polygon(
        "[[[-122.13236581015025,47.64606476313813],[-122.13221982500913,47.633757091363975],\
         [-122.11840598103835,47.641749416109235],[-122.12061400629656,47.64589264786028],\
         [-122.13236581015025,47.64606476313813]]]",
    );
    check(
        "ST_WITHIN",
        &format!("[{},{campus}]", point(-122.128_248_573_325_58, 47.639_551_667_571_2)),
        "true",
    );
    let highway = polygon(
        "[[[-122.13693695285855,47.64996065621003],[-122.1351662656516,47.64627863318731],\
         [-122.13488295569863,47.646326350048696],[-122.1366182291613,47.650016321952904],\
         [-122.13693695285855,47.64996065621003]]]",
    );
    let crossed = polygon(
        "[[[-122.14034847687708,47.6494835188378],[-122.14014779899375,47.64625477474044],\
         [-122.13256925774829,47.646207057813655],[-122.13254564858545,47.64941990019193],\
         [-122.14034847687708,47.6494835188378]]]",
    );
    check("ST_INTERSECTS", &format!("[{highway},{crossed}]"), "true");
    let area = PreparedShape::parse(
        &value(&polygon("[[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]]")),
        SpatialMode::Geography,
    );
    let area = area.unwrap().area();
    assert!((area / 735_970_283.052_261_4 - 1.0).abs() < 1e-9, "{area}");
}

#[test]
fn edges_on_the_earth_are_great_circles() {
    // The great circle between two places of the same latitude passes nearer to the pole.
    let band = polygon("[[[0,0],[90,0],[90,45],[0,45],[0,0]]]");
    check("ST_WITHIN", &format!("[{},{band}]", point(45.0, 50.0)), "true");
    check_in(&PLANE, "ST_WITHIN", &format!("[{},{band}]", point(45.0, 50.0)), "false");
    // Across the date line, and around the pole.
    let date_line = polygon("[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]");
    check("ST_WITHIN", &format!("[{},{date_line}]", point(180.0, 0.0)), "true");
    check("ST_WITHIN", &format!("[{},{date_line}]", point(-175.0, 5.0)), "true");
    check("ST_WITHIN", &format!("[{},{date_line}]", point(0.0, 0.0)), "false");
    let pole = polygon("[[[0,80],[120,80],[-120,80],[0,80]]]");
    check("ST_WITHIN", &format!("[{},{pole}]", point(77.0, 90.0)), "true");
    check("ST_WITHIN", &format!("[{},{pole}]", point(77.0, -90.0)), "false");
}

#[test]
fn a_clockwise_ring_is_the_rest_of_the_earth() {
    let clockwise = polygon("[[[0,0],[0,1],[1,1],[1,0],[0,0]]]");
    check("ST_WITHIN", &format!("[{},{clockwise}]", point(0.5, 0.5)), "false");
    check("ST_WITHIN", &format!("[{},{clockwise}]", point(50.0, 50.0)), "true");
    check("ST_WITHIN", &format!("[{},{clockwise}]", point(-179.5, -0.5)), "true");
    check_in(&PLANE, "ST_WITHIN", &format!("[{},{clockwise}]", point(0.5, 0.5)), "true");
    let area = |text: &str| PreparedShape::parse(&value(text), SpatialMode::Geography).unwrap().area();
    let total = area(&clockwise) + area(&square_polygon(0.0, 0.0, 1.0));
    assert!((total / 5.100_656_217_240_9e14 - 1.0).abs() < 1e-12, "{total}");
    check("ST_INTERSECTS", &format!("[{clockwise},{}]", square_polygon(0.2, 0.2, 0.5)), "false");
    check("ST_INTERSECTS", &format!("[{clockwise},{}]", square_polygon(0.5, 0.5, 5.0)), "true");
}

#[test]
fn distances_and_areas() {
    check_all(&[
        ("ST_AREA", &format!("[{}]", point(1.0, 2.0)), "0"),
        ("ST_AREA", &format!("[{}]", line("[[0,0],[1,1]]")), "0"),
        ("ST_DISTANCE", &format!("[{0},{0}]", point(1.0, 2.0)), "0"),
    ]);
    for (name, arguments, expected) in [
        ("ST_DISTANCE", format!("[{},{}]", point(0.0, 0.0), point(3.0, 4.0)), "5"),
        ("ST_DISTANCE", format!("[{},{}]", point(5.0, 1.0), line("[[0,0],[0,2]]")), "5"),
        ("ST_DISTANCE", format!("[{},{}]", line("[[0,5],[0,9]]"), point(3.0, 1.0)), "5"),
        (
            "ST_DISTANCE",
            format!("[{},{}]", square_polygon(0.0, 0.0, 1.0), square_polygon(4.0, 5.0, 1.0)),
            "5",
        ),
        ("ST_DISTANCE", format!("[{},{}]", point(0.5, 0.5), square_polygon(0.0, 0.0, 1.0)), "0"),
        ("ST_AREA", format!("[{}]", square_polygon(1000.0, 1000.0, 3.0)), "9"),
        (
            "ST_AREA",
            format!("[{}]", polygon(&format!("[{},{}]", square(0.0, 0.0, 10.0), square(4.0, 4.0, 2.0)))),
            "96",
        ),
        ("ST_AREA", format!("[{}]", polygon("[[[0,0],[0,1],[1,1],[1,0],[0,0]]]")), "1"),
    ] {
        check_in(&PLANE, name, &arguments, expected);
    }
    let metres = |a: &str, b: &str| {
        let shape = |text| PreparedShape::parse(&value(text), SpatialMode::Geography).unwrap();
        shape(a).distance(&shape(b)).unwrap()
    };
    // One degree of the equator, from a point straight above the middle of an edge.
    let edge = line("[[-1,0],[1,0]]");
    let up = metres(&point(0.0, 1.0), &edge);
    assert!((up - 110_574.388_6).abs() < 0.1, "{up}");
    let beside = metres(&point(2.0, 0.0), &edge);
    assert!((beside - 111_319.490_8).abs() < 0.001, "{beside}");
}

#[test]
fn validity_and_its_reasons() {
    for (shape, reason) in [
        (point(-84.388_761_943_453_23, 33.756_827_843_063_48), None),
        (
            point(133.756_827_843_063_5, -184.388_761_943_453_23),
            Some("Latitude values must be between -90 and 90 degrees."),
        ),
        (point(190.0, 0.0), Some("Longitude values must be between -180 and 180 degrees.")),
        (line("[[0,0]]"), Some("at least two positions")),
        (polygon("[[[0,0],[1,0],[1,1],[0,1]]]"), Some("ring number 1 are not the same")),
        (
            polygon(&format!("[{},[[0,0],[1,0],[1,1]]]", square(0.0, 0.0, 5.0))),
            Some("ring number 2 are not the same"),
        ),
        (polygon("[[[0,0],[1,0],[0,0]]]"), Some("ring number 1 does not have enough points")),
        (polygon("[[[0,0],[1,1],[1,0],[0,1],[0,0]]]"), Some("ring number 1 crosses")),
        (
            polygon(&format!("[{},{}]", square(0.0, 0.0, 5.0), square(4.0, 4.0, 2.0))),
            Some("ring number 2 crosses"),
        ),
        (polygon("[]"), Some("does not have a ring")),
        (r#"{"type":"MultiPolygon","coordinates":[]}"#.to_owned(), Some("does not have a ring")),
        (r#"{"type":"Point","coordinates":[1]}"#.to_owned(), Some("at least two numbers")),
        (r#"{"type":"Point","coordinates":["1",2]}"#.to_owned(), Some("at least two numbers")),
        (r#"{"type":"Point","coordinates":[1,2,3]}"#.to_owned(), None),
        (r#"{"type":"Circle","coordinates":[1,2]}"#.to_owned(), Some("not a GeoJSON object")),
        (r#"{"type":"Point"}"#.to_owned(), Some("not a GeoJSON object")),
        ("null".to_owned(), Some("not a GeoJSON object")),
        ("5".to_owned(), Some("not a GeoJSON object")),
    ] {
        check("ST_ISVALID", &format!("[{shape}]"), &reason.is_none().to_string());
        let detail = print(&describe(validity(&Context::default(), &[value(&shape)]).unwrap()));
        match reason {
            None => assert_eq!(detail, r#"{"valid":true}"#),
            Some(reason) => assert!(
                detail.starts_with(r#"{"valid":false,"reason":""#) && detail.contains(reason),
                "{detail}"
            ),
        }
    }
    check("ST_ISVALID", "[undefined]", "undefined");
    check("ST_ISVALIDDETAILED", "[undefined]", "undefined");
    check_in(&PLANE, "ST_ISVALID", &format!("[{}]", point(1000.0, -2000.0)), "true");
}

#[test]
fn wrong_types() {
    let invalid = polygon("[[[0,0],[1,0],[1,1],[0,1]]]");
    let wrong = ["undefined", "null", "true", "1", "\"a\"", "[]", "{}", &invalid];
    let good = point(0.0, 0.0);
    for name in ["ST_DISTANCE", "ST_WITHIN", "ST_INTERSECTS"] {
        check_wrong_types(name, &format!("[?,{good}]"), &wrong);
        check_wrong_types(name, &format!("[{good},?]"), &wrong);
    }
    check_wrong_types("ST_AREA", "[?]", &wrong);
}

/// A ring of so many points around a centre.
fn circle(count: usize, radius: f64) -> String {
    let position = |number: usize| {
        let angle = number as f64 / count as f64 * std::f64::consts::TAU;
        format!("[{},{}]", radius * angle.cos(), radius * angle.sin())
    };
    let mut positions: Vec<String> = (0..count).map(position).collect();
    positions.push(positions[0].clone());
    format!("[{}]", positions.join(","))
}

#[test]
fn large_shapes_are_bounded() {
    let (inner, outer) =
        (polygon(&format!("[{}]", circle(1500, 10.0))), polygon(&format!("[{}]", circle(1500, 11.0))));
    check_both("ST_WITHIN", &inner, &outer, "true");
    check_both("ST_INTERSECTS", &outer, &inner, "true");
    check("ST_ISVALID", &format!("[{}]", polygon(&format!("[{}]", circle(4097, 1.0)))), "false");
    check("ST_ISVALID", &format!("[{}]", line(&circle(20_000, 1.0))), "false");
}

fn any_point() -> impl Strategy<Value = (f64, f64)> {
    ((-1_800_000_000_i64..1_800_000_000), (-900_000_000_i64..900_000_000))
        .prop_map(|(x, y)| (x as f64 / 1e7, y as f64 / 1e7))
}

proptest! {
    #[test]
    fn distance_is_symmetric_and_bounded(a in any_point(), b in any_point()) {
        let shape = |(x, y): (f64, f64)| PreparedShape::parse(&value(&point(x, y)), SpatialMode::Geography).unwrap();
        let (there, back) = (shape(a).distance(&shape(b)).unwrap(), shape(b).distance(&shape(a)).unwrap());
        prop_assert!((there - back).abs() < 1e-6);
        prop_assert!((0.0..=20_037_509.0).contains(&there));
    }

    #[test]
    fn small_squares_behave_alike_on_both_surfaces(x in -5.0..5.0_f64, y in -5.0..5.0_f64, at in (-5.0..5.0_f64, -5.0..5.0_f64)) {
        // Far enough from the boundary for the bend of edges not to matter.
        let (left, bottom) = (at.0 - x, at.1 - y);
        prop_assume!(left.abs() > 0.1 && (left - 2.0).abs() > 0.1 && bottom.abs() > 0.1 && (bottom - 2.0).abs() > 0.1);
        let expected = (0.0..2.0).contains(&left) && (0.0..2.0).contains(&bottom);
        check_both("ST_WITHIN", &point(at.0, at.1), &square_polygon(x, y, 2.0), &expected.to_string());
    }

    #[test]
    fn within_implies_intersects(a in (0.0..4.0_f64, 0.0..4.0_f64, 0.1..3.0_f64), b in (0.0..4.0_f64, 0.0..4.0_f64, 0.1..3.0_f64)) {
        for mode in [SpatialMode::Geography, SpatialMode::Geometry] {
            let shape = |(x, y, size)| PreparedShape::parse(&value(&square_polygon(x, y, size)), mode).unwrap();
            let (a, b) = (shape(a), shape(b));
            prop_assert!(a.is_within(&b) != Some(true) || a.intersects(&b) == Some(true));
            prop_assert_eq!(a.intersects(&b), b.intersects(&a));
            prop_assert_eq!(a.intersects(&b) == Some(true), a.distance(&b) == Some(0.0));
            prop_assert_eq!(a.is_within(&a), Some(true));
        }
    }
}
