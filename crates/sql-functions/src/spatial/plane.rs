//! The plane: straight edges, Euclidean distance.

use super::figure::{Edge, Geometry};
use super::shape::Position;

#[derive(Debug)]
pub(super) struct Plane;

type Vertex = [f64; 2];

impl Geometry for Plane {
    type Vertex = Vertex;

    fn vertex(position: Position) -> Vertex {
        [position.x, position.y]
    }

    fn extent(a: Vertex, b: Vertex) -> (Vertex, f64) {
        let middle = [f64::midpoint(a[0], b[0]), f64::midpoint(a[1], b[1])];
        // A little more than half the length, for what rounding moved the middle.
        (middle, Plane::gap(a, b) * 0.500_001)
    }

    fn gap(a: Vertex, b: Vertex) -> f64 {
        (a[0] - b[0]).hypot(a[1] - b[1])
    }

    fn distance(a: Vertex, b: Vertex) -> f64 {
        Plane::gap(a, b)
    }

    fn is_on(point: Vertex, edge: &Edge<Vertex>) -> bool {
        side(edge, point) == 0.0
            && point[0] >= edge.a[0].min(edge.b[0])
            && point[0] <= edge.a[0].max(edge.b[0])
            && point[1] >= edge.a[1].min(edge.b[1])
            && point[1] <= edge.a[1].max(edge.b[1])
    }

    fn crosses(a: &Edge<Vertex>, b: &Edge<Vertex>) -> bool {
        side(a, b.a) * side(a, b.b) < 0.0 && side(b, a.a) * side(b, a.b) < 0.0
    }

    fn nearest(point: Vertex, edge: &Edge<Vertex>) -> Vertex {
        let along = [edge.b[0] - edge.a[0], edge.b[1] - edge.a[1]];
        let squared = along[0] * along[0] + along[1] * along[1];
        if squared == 0.0 {
            return edge.a;
        }
        let offset = (point[0] - edge.a[0]) * along[0] + (point[1] - edge.a[1]) * along[1];
        let part = (offset / squared).clamp(0.0, 1.0);
        [edge.a[0] + part * along[0], edge.a[1] + part * along[1]]
    }

    /// The plane has no larger side: a ring stands for what it encloses, whichever way it runs.
    fn orient(ring: &mut [Vertex]) -> bool {
        if signed_area(ring) < 0.0 {
            ring.reverse();
        }
        false
    }

    /// An odd number of edges to the right of the point.
    fn encloses(ring: &[Vertex], point: Vertex) -> bool {
        let next = ring.iter().cycle().skip(1);
        let is_right = |(a, b): &(&Vertex, &Vertex)| {
            (a[1] > point[1]) != (b[1] > point[1])
                && point[0] < (b[0] - a[0]) * (point[1] - a[1]) / (b[1] - a[1]) + a[0]
        };
        ring.iter().zip(next).filter(is_right).count() % 2 == 1
    }

    fn ring_area(ring: &[Vertex]) -> f64 {
        signed_area(ring).abs()
    }

    fn whole_area() -> f64 {
        f64::INFINITY
    }
}

/// Positive when the point is to the left of the edge, zero on its line.
fn side(edge: &Edge<Vertex>, point: Vertex) -> f64 {
    (edge.b[0] - edge.a[0]) * (point[1] - edge.a[1]) - (edge.b[1] - edge.a[1]) * (point[0] - edge.a[0])
}

/// Taken from the first vertex, so that far from the origin no digits are lost.
fn signed_area(ring: &[Vertex]) -> f64 {
    let Some(origin) = ring.first() else { return 0.0 };
    let next = ring.iter().cycle().skip(1);
    let doubled: f64 = ring
        .iter()
        .zip(next)
        .map(|(a, b)| (a[0] - origin[0]) * (b[1] - origin[1]) - (b[0] - origin[0]) * (a[1] - origin[1]))
        .sum();
    doubled / 2.0
}
