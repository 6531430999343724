//! A shape on a surface: vertices and edges with what makes comparing them quick.

use super::shape::{Polygon, Position, Shape, ShapeFault};
use crate::limits::may_go_on;

/// A surface on which shapes lie: what the algorithms of `relate` need to know about it.
pub(super) trait Geometry {
    /// A point of the surface.
    type Vertex: Copy + std::fmt::Debug + PartialEq;

    fn vertex(position: Position) -> Self::Vertex;

    /// A point of the edge and how far from it the edge reaches at most, both in terms of `gap`.
    fn extent(a: Self::Vertex, b: Self::Vertex) -> (Self::Vertex, f64);

    /// How far apart two points are, in a measure that is cheap, grows with `distance`, and obeys the triangle inequality.
    fn gap(a: Self::Vertex, b: Self::Vertex) -> f64;

    /// The distance of two points in the units of the surface.
    fn distance(a: Self::Vertex, b: Self::Vertex) -> f64;

    /// Whether the point lies on the edge.
    fn is_on(point: Self::Vertex, edge: &Edge<Self::Vertex>) -> bool;

    /// Whether two edges cross at a point inside both.
    fn crosses(a: &Edge<Self::Vertex>, b: &Edge<Self::Vertex>) -> bool;

    /// The point of the edge that is nearest to a point.
    fn nearest(point: Self::Vertex, edge: &Edge<Self::Vertex>) -> Self::Vertex;

    /// Turns the ring so that it runs around its smaller side counter-clockwise, and tells whether it was turned and
    /// stood for the larger side.
    fn orient(ring: &mut [Self::Vertex]) -> bool;

    /// Whether a point that is not on the ring lies on its smaller side.
    fn encloses(ring: &[Self::Vertex], point: Self::Vertex) -> bool;

    /// The area of a ring's smaller side.
    fn ring_area(ring: &[Self::Vertex]) -> f64;

    /// The area of everything, for rings that stand for their larger side.
    fn whole_area() -> f64;
}

/// A straight line between two vertices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge<V> {
    pub(super) a: V,
    pub(super) b: V,
    middle: V,
    reach: f64,
}

impl<V: Copy> Edge<V> {
    pub(super) fn new<G: Geometry<Vertex = V>>(a: V, b: V) -> Self {
        let (middle, reach) = G::extent(a, b);
        Edge { a, b, middle, reach }
    }

    pub(super) fn middle(&self) -> V {
        self.middle
    }

    /// Whether the edges are so near that looking closer is worth it.
    pub(super) fn may_meet<G: Geometry<Vertex = V>>(&self, other: &Edge<V>) -> bool {
        G::gap(self.middle, other.middle) <= self.reach + other.reach
    }

    /// At least how far a point is from the edge.
    pub(super) fn least_gap<G: Geometry<Vertex = V>>(&self, point: V) -> f64 {
        G::gap(point, self.middle) - self.reach
    }
}

/// A region: an outer ring and its holes.
#[derive(Debug)]
pub(super) struct Region<V> {
    /// The rings, each around its smaller side.
    pub(super) rings: Vec<Vec<V>>,
    pub(super) edges: Vec<Edge<V>>,
    /// Whether the outer ring stands for its larger side.
    pub(super) is_inverted: bool,
}

/// A shape on a surface: single points, edges of lines, and regions.
#[derive(Debug)]
pub(super) struct Figure<G: Geometry> {
    pub(super) points: Vec<G::Vertex>,
    pub(super) lines: Vec<Edge<G::Vertex>>,
    pub(super) regions: Vec<Region<G::Vertex>>,
}

impl<G: Geometry> Figure<G> {
    /// Fails when rings of a polygon cross.
    pub(super) fn new(shape: &Shape) -> Result<Self, ShapeFault> {
        let mut figure = Figure { points: Vec::new(), lines: Vec::new(), regions: Vec::new() };
        match shape {
            Shape::Point(position) => figure.points.push(G::vertex(*position)),
            Shape::LineString(line) => {
                let vertices: Vec<G::Vertex> = line.iter().copied().map(G::vertex).collect();
                figure.lines.extend(vertices.windows(2).map(|pair| Edge::new::<G>(pair[0], pair[1])));
            }
            Shape::Polygon(polygon) => figure.regions.push(region::<G>(polygon)?),
            Shape::MultiPolygon(polygons) => {
                for polygon in polygons {
                    figure.regions.push(region::<G>(polygon)?);
                }
            }
        }
        Ok(figure)
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = &Edge<G::Vertex>> {
        self.lines.iter().chain(self.regions.iter().flat_map(|region| &region.edges))
    }

    pub(super) fn edge_count(&self) -> usize {
        self.lines.len() + self.regions.iter().map(|region| region.edges.len()).sum::<usize>()
    }

    /// Every vertex, and twice those where edges meet.
    pub(super) fn vertices(&self) -> impl Iterator<Item = G::Vertex> {
        self.points.iter().copied().chain(self.edges().flat_map(|edge| [edge.a, edge.b]))
    }
}

fn region<G: Geometry>(polygon: &Polygon) -> Result<Region<G::Vertex>, ShapeFault> {
    let mut region = Region { rings: Vec::new(), edges: Vec::new(), is_inverted: false };
    for (place, ring) in polygon.rings.iter().enumerate() {
        let mut ring: Vec<G::Vertex> = ring.iter().copied().map(G::vertex).collect();
        let is_turned = G::orient(&mut ring);
        // Holes may run either way; only the outer ring's direction says which side is meant.
        if place == 0 {
            region.is_inverted = is_turned;
        }
        let before = region.edges.len();
        let next = ring.iter().cycle().skip(1);
        region.edges.extend(ring.iter().zip(next).map(|(a, b)| Edge::new::<G>(*a, *b)));
        region.rings.push(ring);
        let (known, new) = region.edges.split_at(before);
        if crosses_any::<G>(new, known) {
            return Err(ShapeFault::CrossingRing(place + 1));
        }
    }
    Ok(region)
}

/// Whether the edges of a ring cross each other or edges known before.
fn crosses_any<G: Geometry>(new: &[Edge<G::Vertex>], known: &[Edge<G::Vertex>]) -> bool {
    new.iter().enumerate().any(|(place, edge)| {
        !may_go_on((known.len() + place) * 2)
            || known
                .iter()
                .chain(&new[..place])
                .any(|other| edge.may_meet::<G>(other) && G::crosses(edge, other))
    })
}
