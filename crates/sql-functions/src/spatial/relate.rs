//! How two figures on the same surface lie to each other; the algorithms know the surface only through `Geometry`.

use super::figure::{Edge, Figure, Geometry, Region};
use crate::limits::may_go_on;

/// Steps to compare one point or edge with so many others.
fn steps(count: usize) -> usize {
    1 + count * 2
}

/// Where a point lies with regard to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RingSide {
    Inside,
    Boundary,
    Outside,
}

/// Whether the figures have a point in common.
pub(super) fn intersects<G: Geometry>(a: &Figure<G>, b: &Figure<G>) -> bool {
    boundaries_meet(a, b) || reaches_into(a, b) || reaches_into(b, a)
}

/// Whether every point of the first figure belongs to the second.
pub(super) fn is_within<G: Geometry>(a: &Figure<G>, b: &Figure<G>) -> bool {
    let point_is_in = |point: G::Vertex| {
        b.points.contains(&point) || is_on_any::<G>(point, &b.lines) || is_in_any::<G>(point, &b.regions)
    };
    let line_is_in = |edges: &[Edge<G::Vertex>]| {
        edges.is_empty()
            || b.regions.iter().any(|region| covers_edges::<G>(region, edges))
            || edges.iter().all(|edge| covers_edge::<G>(&b.lines, edge))
    };
    let region_is_in =
        |inner: &Region<G::Vertex>| b.regions.iter().any(|outer| covers_region::<G>(outer, inner));
    a.points.iter().copied().all(point_is_in) && line_is_in(&a.lines) && a.regions.iter().all(region_is_in)
}

/// The distance of the nearest points of the figures, 0 when they meet.
pub(super) fn distance<G: Geometry>(a: &Figure<G>, b: &Figure<G>) -> f64 {
    if let ([a], [b]) = (a.points.as_slice(), b.points.as_slice()) {
        return G::distance(*a, *b);
    }
    if intersects(a, b) {
        return 0.0;
    }
    // Edges that do not cross are nearest to each other at an end of one of them.
    let mut best = Nearest { gap: f64::INFINITY, distance: f64::INFINITY };
    for (figure, other) in [(a, b), (b, a)] {
        for vertex in figure.vertices() {
            if !may_go_on(steps(other.points.len() + other.edge_count())) {
                return best.distance;
            }
            for point in &other.points {
                best.offer::<G>(vertex, *point);
            }
            for edge in other.edges() {
                if edge.least_gap::<G>(vertex) < best.gap {
                    best.offer::<G>(vertex, G::nearest(vertex, edge));
                }
            }
        }
    }
    best.distance
}

/// The area of all regions of the figure.
pub(super) fn area<G: Geometry>(figure: &Figure<G>) -> f64 {
    let region_area = |region: &Region<G::Vertex>| {
        let mut areas = region.rings.iter().map(|ring| G::ring_area(ring));
        let outer = areas.next().unwrap_or(0.0);
        let outer = if region.is_inverted { G::whole_area() - outer } else { outer };
        outer - areas.sum::<f64>()
    };
    figure.regions.iter().map(region_area).sum()
}

struct Nearest {
    gap: f64,
    distance: f64,
}

impl Nearest {
    fn offer<G: Geometry>(&mut self, a: G::Vertex, b: G::Vertex) {
        let gap = G::gap(a, b);
        if gap < self.gap {
            *self = Nearest { gap, distance: G::distance(a, b) };
        }
    }
}

/// Whether points or edges of one figure touch points or edges of the other.
fn boundaries_meet<G: Geometry>(a: &Figure<G>, b: &Figure<G>) -> bool {
    let touches = |points: &[G::Vertex], other: &Figure<G>| {
        points.iter().any(|point| {
            !may_go_on(steps(other.edge_count()))
                || other.points.contains(point)
                || other.edges().any(|edge| G::is_on(*point, edge))
        })
    };
    touches(&a.points, b)
        || touches(&b.points, a)
        || a.edges().any(|edge| {
            !may_go_on(steps(b.edge_count())) || b.edges().any(|other| edges_meet::<G>(edge, other))
        })
}

fn edges_meet<G: Geometry>(a: &Edge<G::Vertex>, b: &Edge<G::Vertex>) -> bool {
    a.may_meet::<G>(b)
        && (G::crosses(a, b) || G::is_on(a.a, b) || G::is_on(a.b, b) || G::is_on(b.a, a) || G::is_on(b.b, a))
}

/// Whether a part of the first figure lies in a region of the second; enough to ask one vertex of each part, because
/// the boundaries do not meet.
fn reaches_into<G: Geometry>(a: &Figure<G>, b: &Figure<G>) -> bool {
    let line = a.lines.first().map(|edge| edge.a);
    let rings = a.regions.iter().flat_map(|region| &region.rings);
    let mut starts =
        a.points.iter().copied().chain(line).chain(rings.filter_map(|ring| ring.first().copied()));
    starts.any(|vertex| is_in_any::<G>(vertex, &b.regions))
}

fn is_on_any<G: Geometry>(point: G::Vertex, edges: &[Edge<G::Vertex>]) -> bool {
    !may_go_on(steps(edges.len())) || edges.iter().any(|edge| G::is_on(point, edge))
}

fn is_in_any<G: Geometry>(point: G::Vertex, regions: &[Region<G::Vertex>]) -> bool {
    regions.iter().any(|region| locate::<G>(region, point) != RingSide::Outside)
}

fn locate<G: Geometry>(region: &Region<G::Vertex>, point: G::Vertex) -> RingSide {
    if is_on_any::<G>(point, &region.edges) {
        return RingSide::Boundary;
    }
    let mut rings = region.rings.iter().map(|ring| G::encloses(ring, point));
    let is_in_outer = rings.next().unwrap_or(false) != region.is_inverted;
    if is_in_outer && !rings.any(|is_in_hole| is_in_hole) { RingSide::Inside } else { RingSide::Outside }
}

/// Whether the edge lies on edges of a line; ends and middle tell, as edges are straight.
fn covers_edge<G: Geometry>(lines: &[Edge<G::Vertex>], edge: &Edge<G::Vertex>) -> bool {
    [edge.a, edge.b, edge.middle()].into_iter().all(|point| is_on_any::<G>(point, lines))
}

/// Whether edges lie in a region: no end and no middle outside, and none crosses the region's boundary.
fn covers_edges<G: Geometry>(region: &Region<G::Vertex>, edges: &[Edge<G::Vertex>]) -> bool {
    edges.iter().all(|edge| {
        may_go_on(steps(region.edges.len()))
            && !region.edges.iter().any(|other| edge.may_meet::<G>(other) && G::crosses(edge, other))
            && locate::<G>(region, edge.a) != RingSide::Outside
            && locate::<G>(region, edge.b) != RingSide::Outside
            && locate::<G>(region, edge.middle()) != RingSide::Outside
    })
}

/// Whether one region lies in another: its boundary does, and nothing of the other's boundary lies inside of it.
fn covers_region<G: Geometry>(outer: &Region<G::Vertex>, inner: &Region<G::Vertex>) -> bool {
    covers_edges::<G>(outer, &inner.edges)
        && !outer.edges.iter().any(|edge| {
            !may_go_on(steps(inner.edges.len()))
                || [edge.a, edge.middle()]
                    .into_iter()
                    .any(|point| locate::<G>(inner, point) == RingSide::Inside)
        })
}
