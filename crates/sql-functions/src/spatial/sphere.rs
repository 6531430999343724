//! The Earth: edges on great circles of a sphere whose points carry the ellipsoid's latitudes, distances and areas on
//! the ellipsoid.
//!
//! A point is a unit vector, so that neither poles nor the date line are special.

use std::f64::consts::PI;

use super::ellipsoid;
use super::figure::{Edge, Geometry};
use super::shape::Position;

#[derive(Debug)]
pub(super) struct Sphere;

type Vertex = [f64; 3];

/// How near to a great circle, in radians, counts as on it: under a micrometre, above what rounding does.
const ON_EDGE: f64 = 1e-13;

impl Geometry for Sphere {
    type Vertex = Vertex;

    fn vertex(position: Position) -> Vertex {
        unit(position.x.to_radians(), position.y.to_radians())
    }

    fn extent(a: Vertex, b: Vertex) -> (Vertex, f64) {
        let sum = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
        let middle = normalized(sum).unwrap_or(a);
        // The arc from the middle to an end is at most a quarter longer than the chord for up to a right angle, and an
        // edge between opposite points, whose middle is no point of it, may be anywhere.
        let reach = if norm(sum) < 1e-9 {
            2.0
        } else {
            Sphere::gap(middle, a).max(Sphere::gap(middle, b)) * 1.000_001
        };
        (middle, reach)
    }

    /// The chord through the sphere.
    fn gap(a: Vertex, b: Vertex) -> f64 {
        norm(minus(a, b))
    }

    fn distance(a: Vertex, b: Vertex) -> f64 {
        ellipsoid::distance(longitude(a), latitude(a), longitude(b), latitude(b))
    }

    fn is_on(point: Vertex, edge: &Edge<Vertex>) -> bool {
        if Sphere::gap(point, edge.a) <= ON_EDGE || Sphere::gap(point, edge.b) <= ON_EDGE {
            return true;
        }
        let Some(normal) = normalized(cross(edge.a, edge.b)) else { return false };
        dot(normal, minus(point, edge.a)).abs() <= ON_EDGE && is_between(point, edge, normal)
    }

    /// Each edge separates the other's ends, and the crossing is on this side of the sphere for both.
    fn crosses(a: &Edge<Vertex>, b: &Edge<Vertex>) -> bool {
        // Edges of a ring share vertices; rounding must not make that a crossing.
        if [b.a, b.b].iter().any(|end| is_same(*end, a.a) || is_same(*end, a.b)) {
            return false;
        }
        let first = -side(a, b.a);
        first * side(a, b.b) > 0.0 && first * -side(b, a.b) > 0.0 && first * side(b, a.a) > 0.0
    }

    fn nearest(point: Vertex, edge: &Edge<Vertex>) -> Vertex {
        let nearer_end =
            if Sphere::gap(point, edge.a) <= Sphere::gap(point, edge.b) { edge.a } else { edge.b };
        let Some(normal) = normalized(cross(edge.a, edge.b)) else { return nearer_end };
        let off = dot(point, normal);
        let foot = [point[0] - off * normal[0], point[1] - off * normal[1], point[2] - off * normal[2]];
        match normalized(foot) {
            Some(foot) if is_between(foot, edge, normal) => foot,
            _ => nearer_end,
        }
    }

    fn orient(ring: &mut [Vertex]) -> bool {
        let is_larger = left_area(ring) > 2.0 * PI;
        if is_larger {
            ring.reverse();
        }
        is_larger
    }

    /// The ring, seen from a point inside, turns once around to the left; from outside not at all, and once to the right
    /// when the point opposite is inside.
    fn encloses(ring: &[Vertex], point: Vertex) -> bool {
        let next = ring.iter().cycle().skip(1);
        let turn: f64 = ring
            .iter()
            .zip(next)
            .map(|(a, b)| dot(point, cross(*a, *b)).atan2(dot(*a, *b) - dot(*a, point) * dot(*b, point)))
            .sum();
        turn > PI
    }

    /// On the sphere that has, latitude by latitude, the same areas as the ellipsoid.
    fn ring_area(ring: &[Vertex]) -> f64 {
        let equal_area: Vec<Vertex> = ring
            .iter()
            .map(|vertex| unit(longitude(*vertex), ellipsoid::authalic_latitude(latitude(*vertex))))
            .collect();
        left_area(&equal_area) * ellipsoid::AUTHALIC_RADIUS * ellipsoid::AUTHALIC_RADIUS
    }

    fn whole_area() -> f64 {
        4.0 * PI * ellipsoid::AUTHALIC_RADIUS * ellipsoid::AUTHALIC_RADIUS
    }
}

/// Positive when the point is to the left of the edge, zero when rounding leaves it open; taken from the edge's start, so
/// that for short edges no digits are lost.
fn side(edge: &Edge<Vertex>, point: Vertex) -> f64 {
    const NOISE: f64 = 4e-16;
    let (normal, offset) = (cross(edge.a, edge.b), minus(point, edge.a));
    let side = dot(normal, offset);
    if side.abs() <= NOISE * norm(normal) * norm(offset) { 0.0 } else { side }
}

/// Whether a point on the edge's great circle lies on the edge itself.
fn is_between(point: Vertex, edge: &Edge<Vertex>, normal: Vertex) -> bool {
    dot(cross(edge.a, point), normal) >= 0.0 && dot(cross(point, edge.b), normal) >= 0.0
}

/// The solid angle to the left of the ring, from 0 to 4π: the sum of the signed triangles that a vertex makes with
/// all edges.
fn left_area(ring: &[Vertex]) -> f64 {
    let Some(first) = ring.first() else { return 0.0 };
    let sum: f64 = ring
        .windows(2)
        .map(|pair| {
            let volume = dot(*first, cross(pair[0], pair[1]));
            let angles = 1.0 + dot(*first, pair[0]) + dot(pair[0], pair[1]) + dot(pair[1], *first);
            2.0 * volume.atan2(angles)
        })
        .sum();
    sum.rem_euclid(4.0 * PI)
}

fn unit(longitude: f64, latitude: f64) -> Vertex {
    [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
}

fn longitude(vertex: Vertex) -> f64 {
    vertex[1].atan2(vertex[0])
}

fn latitude(vertex: Vertex) -> f64 {
    vertex[2].atan2(vertex[0].hypot(vertex[1]))
}

fn dot(a: Vertex, b: Vertex) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// As the product of sum and difference, which for near vectors keeps the digits that the plain form loses.
fn cross(a: Vertex, b: Vertex) -> Vertex {
    let sum = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
    let difference = minus(b, a);
    [
        (sum[1] * difference[2] - sum[2] * difference[1]) / 2.0,
        (sum[2] * difference[0] - sum[0] * difference[2]) / 2.0,
        (sum[0] * difference[1] - sum[1] * difference[0]) / 2.0,
    ]
}

fn is_same(a: Vertex, b: Vertex) -> bool {
    minus(a, b).iter().all(|part| *part == 0.0)
}

fn minus(a: Vertex, b: Vertex) -> Vertex {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn norm(vertex: Vertex) -> f64 {
    dot(vertex, vertex).sqrt()
}

fn normalized(vertex: Vertex) -> Option<Vertex> {
    let length = norm(vertex);
    (length > 0.0).then(|| [vertex[0] / length, vertex[1] / length, vertex[2] / length])
}
