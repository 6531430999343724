//! The ellipsoid WGS-84: lengths along it and areas on it.
//!
//! A distance is the length of the great elliptic arc: the plane through both points and the centre cuts the ellipsoid
//! in an ellipse, and the arc of it between them is measured. This fits the service's one long recorded distance to
//! 2e-11, where the shortest line on the ellipsoid is off by 8 cm. The one recorded area fits great circles on the
//! equal-area sphere to 1e-10; spheres with geodetic, geocentric or reduced latitudes fit with no usual radius.

use std::f64::consts::PI;

const EQUATOR_RADIUS: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
const POLE_RADIUS: f64 = EQUATOR_RADIUS * (1.0 - FLATTENING);
const ECCENTRICITY_SQUARED: f64 = FLATTENING * (2.0 - FLATTENING);
const ECCENTRICITY: f64 = 0.081_819_190_842_621_49;

/// The radius of the sphere with the ellipsoid's area.
pub(super) const AUTHALIC_RADIUS: f64 = 6_371_007.180_918_474;

/// The length of the arc between two points given in radians, in metres.
pub(super) fn distance(longitude_a: f64, latitude_a: f64, longitude_b: f64, latitude_b: f64) -> f64 {
    let a = surface_point(longitude_a, latitude_a);
    let b = surface_point(longitude_b, latitude_b);
    let normal = cross(scaled(a), scaled(b));
    let is_near = dot(a, b) > 0.0;
    let normal = match unit(normal) {
        Some(normal) => normal,
        // So near to each other that the arc is a straight line.
        None if is_near => return dot(minus(a, b), minus(a, b)).sqrt(),
        // Points opposite to each other lie in many planes; the arc over a pole is the shortest.
        None => unit(cross(scaled(a), [0.0, 0.0, 1.0])).unwrap_or([0.0, 1.0, 0.0]),
    };
    // The plane's line through the equator is the ellipse's long axis; in the equator's own plane all lines are.
    let long_axis = unit(cross([0.0, 0.0, 1.0], normal)).unwrap_or([1.0, 0.0, 0.0]);
    let short_axis = cross(normal, long_axis);
    let across = short_axis[0] * short_axis[0] + short_axis[1] * short_axis[1];
    let short_radius = 1.0
        / (across / (EQUATOR_RADIUS * EQUATOR_RADIUS)
            + short_axis[2] * short_axis[2] / (POLE_RADIUS * POLE_RADIUS))
            .sqrt();
    let angle = |point| (dot(point, short_axis) / short_radius).atan2(dot(point, long_axis) / EQUATOR_RADIUS);
    let start = angle(a);
    let mut turn = angle(b) - start;
    if turn.abs() > PI {
        turn -= 2.0 * PI * turn.signum();
    }
    arc_length(start, turn, short_radius)
}

/// The latitude on the equal-area sphere that has as much of the ellipsoid between itself and the equator.
pub(super) fn authalic_latitude(latitude: f64) -> f64 {
    (area_function(latitude.sin()) / area_function(1.0)).clamp(-1.0, 1.0).asin()
}

fn area_function(sine: f64) -> f64 {
    let scaled = ECCENTRICITY * sine;
    (1.0 - ECCENTRICITY_SQUARED)
        * (sine / (1.0 - scaled * scaled) - ((1.0 - scaled) / (1.0 + scaled)).ln() / (2.0 * ECCENTRICITY))
}

/// The integral of the speed along the ellipse, by Gauss's rule of five points on eight pieces; the integrand is so
/// smooth that the error is below that of the sum.
fn arc_length(start: f64, turn: f64, short_radius: f64) -> f64 {
    const PIECES: u32 = 8;
    const NODES: [(f64, f64); 5] = [
        (0.0, 0.568_888_888_888_888_9),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
        (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
        (0.906_179_845_938_664, 0.236_926_885_056_189_08),
    ];
    let half = turn / f64::from(PIECES) / 2.0;
    let mut sum = 0.0;
    for piece in 0..PIECES {
        let middle = start + half * f64::from(2 * piece + 1);
        for (node, weight) in NODES {
            let angle = middle + half * node;
            sum += weight * (EQUATOR_RADIUS * angle.sin()).hypot(short_radius * angle.cos());
        }
    }
    sum * half.abs()
}

fn surface_point(longitude: f64, latitude: f64) -> [f64; 3] {
    let radius = EQUATOR_RADIUS / (1.0 - ECCENTRICITY_SQUARED * latitude.sin() * latitude.sin()).sqrt();
    [
        radius * latitude.cos() * longitude.cos(),
        radius * latitude.cos() * longitude.sin(),
        radius * (1.0 - ECCENTRICITY_SQUARED) * latitude.sin(),
    ]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// In units of the equator's radius.
fn scaled(point: [f64; 3]) -> [f64; 3] {
    point.map(|part| part / EQUATOR_RADIUS)
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// None for what is zero up to rounding, for vectors of about length 1.
fn unit(vector: [f64; 3]) -> Option<[f64; 3]> {
    let length = dot(vector, vector).sqrt();
    (length > 1e-12).then(|| vector.map(|part| part / length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: (f64, f64), b: (f64, f64), expected: f64, tolerance: f64) {
        let found = distance(a.0.to_radians(), a.1.to_radians(), b.0.to_radians(), b.1.to_radians());
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
    }

    #[test]
    fn lengths() {
        let quarter_equator = EQUATOR_RADIUS * PI / 2.0;
        let quarter_meridian = 10_001_965.729_312_74;
        check((0.0, 0.0), (90.0, 0.0), quarter_equator, 1e-6);
        check((17.0, 0.0), (17.0, 90.0), quarter_meridian, 1e-3);
        check((17.0, -90.0), (-20.0, 90.0), 2.0 * quarter_meridian, 1e-3);
        check((0.0, 10.0), (180.0, -10.0), 2.0 * quarter_meridian, 1.0);
        check((179.5, 0.0), (-179.5, 0.0), EQUATOR_RADIUS.to_radians(), 1e-6);
        check((5.0, 5.0), (5.0, 5.0), 0.0, 0.0);
        check((0.0, 0.0), (180.0, 0.0), 2.0 * quarter_meridian, 1.0);
        // The service's recorded distances; the short one carries its noise.
        let origin = (-122.117_581_139_535_35, 47.669_010_870_061_31);
        check((-96.843_686_647_659_94, 46.812_977_943_146_63), origin, 1_907_438.421_299_902, 1e-4);
        check((-122.128_268_223_046_72, 47.639_802_393_357_18), origin, 3_345.269_817_267_368, 1e-4);
    }

    #[test]
    fn equal_area_latitudes() {
        assert!(authalic_latitude(0.0).abs() < 1e-15);
        assert!((authalic_latitude(PI / 2.0) - PI / 2.0).abs() < 1e-12);
        assert!((ECCENTRICITY * ECCENTRICITY - ECCENTRICITY_SQUARED).abs() < 1e-15);
        let radius = EQUATOR_RADIUS * (area_function(1.0) / 2.0).sqrt();
        assert!((radius - AUTHALIC_RADIUS).abs() < 1e-6, "{radius}");
    }
}
