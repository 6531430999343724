//! GeoJSON as positions: what kind of shape it is, and whether its coordinates are what such a shape needs.

use std::fmt;

use astrarium_value::Value;

use crate::SpatialMode;
use crate::arguments::as_text;
use crate::limits::POLYGON_POINTS_MAX;

/// The most points of one shape, all its polygons together.
pub const POINTS_MAX: usize = 16_384;

/// A position: longitude and latitude in degrees, or x and y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Longitude or x.
    pub x: f64,
    /// Latitude or y.
    pub y: f64,
}

/// An outer ring and the holes in it; the last position of each ring, equal to its first, is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    /// The rings, the outer one first.
    pub rings: Vec<Vec<Position>>,
}

/// A shape of GeoJSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// One position.
    Point(Position),
    /// Positions joined by edges.
    LineString(Vec<Position>),
    /// A region.
    Polygon(Polygon),
    /// Several regions.
    MultiPolygon(Vec<Polygon>),
}

/// Why a value is no valid shape; its text is what clients get to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeFault {
    /// It is no object with a known `type` and an array of `coordinates`.
    NotGeoJson,
    /// A position is no array of at least two finite numbers.
    Coordinates,
    /// A latitude lies outside -90 to 90.
    Latitude,
    /// A longitude lies outside -180 to 180.
    Longitude,
    /// A line has fewer than two positions.
    ShortLine,
    /// A polygon has no ring, or a shape no polygon.
    Empty,
    /// The ring of that number, from 1, has fewer than four positions.
    ShortRing(usize),
    /// The ring of that number does not end where it begins.
    OpenRing(usize),
    /// The ring of that number crosses itself or one before it.
    CrossingRing(usize),
    /// There are more points than allowed.
    TooManyPoints,
}

impl fmt::Display for ShapeFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeFault::NotGeoJson => write!(
                formatter,
                "The input is not a GeoJSON object of type Point, LineString, Polygon or MultiPolygon."
            ),
            ShapeFault::Coordinates => {
                write!(formatter, "Each position must be an array of at least two numbers.")
            }
            ShapeFault::Latitude => write!(formatter, "Latitude values must be between -90 and 90 degrees."),
            ShapeFault::Longitude => {
                write!(formatter, "Longitude values must be between -180 and 180 degrees.")
            }
            ShapeFault::ShortLine => write!(
                formatter,
                "The LineString input is not valid because it does not have at least two positions."
            ),
            ShapeFault::Empty => {
                write!(formatter, "The Polygon input is not valid because it does not have a ring.")
            }
            ShapeFault::ShortRing(number) => write!(
                formatter,
                "The Polygon input is not valid because the ring number {number} does not have enough points. Each ring of a \
                 polygon must have at least four positions, the last of them the same as the first."
            ),
            ShapeFault::OpenRing(number) => write!(
                formatter,
                "The Polygon input is not valid because the start and end points of the ring number {number} are not the \
                 same. Each ring of a polygon must have the same start and end points."
            ),
            ShapeFault::CrossingRing(number) => write!(
                formatter,
                "The Polygon input is not valid because the ring number {number} crosses itself or another ring."
            ),
            ShapeFault::TooManyPoints => write!(
                formatter,
                "The input has too many points. A polygon can have {POLYGON_POINTS_MAX} points at most."
            ),
        }
    }
}

impl Shape {
    /// Reads GeoJSON; whether rings cross is found out when the shape is put on its surface.
    pub fn parse(value: &Value, mode: SpatialMode) -> Result<Shape, ShapeFault> {
        let Value::Object(object) = value else { return Err(ShapeFault::NotGeoJson) };
        let kind = object.get("type").and_then(as_text).ok_or(ShapeFault::NotGeoJson)?;
        let coordinates = object.get("coordinates").ok_or(ShapeFault::NotGeoJson)?;
        let shape = match kind {
            "Point" => Shape::Point(position(coordinates, mode)?),
            "LineString" => Shape::LineString(line(coordinates, mode)?),
            "Polygon" => Shape::Polygon(polygon(coordinates, mode)?),
            "MultiPolygon" => Shape::MultiPolygon(
                elements(coordinates)?
                    .iter()
                    .map(|coordinates| polygon(coordinates, mode))
                    .collect::<Result<_, _>>()?,
            ),
            _ => return Err(ShapeFault::NotGeoJson),
        };
        match shape.polygons() {
            [] if kind == "MultiPolygon" => Err(ShapeFault::Empty),
            polygons if polygons.iter().map(Polygon::point_count).sum::<usize>() > POINTS_MAX => {
                Err(ShapeFault::TooManyPoints)
            }
            _ => Ok(shape),
        }
    }

    fn polygons(&self) -> &[Polygon] {
        match self {
            Shape::Polygon(polygon) => std::slice::from_ref(polygon),
            Shape::MultiPolygon(polygons) => polygons,
            Shape::Point(_) | Shape::LineString(_) => &[],
        }
    }
}

impl Polygon {
    fn point_count(&self) -> usize {
        self.rings.iter().map(Vec::len).sum()
    }
}

fn elements(value: &Value) -> Result<&[Value], ShapeFault> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(ShapeFault::NotGeoJson),
    }
}

/// Further elements than two are heights, which do not matter here.
fn position(value: &Value, mode: SpatialMode) -> Result<Position, ShapeFault> {
    let Value::Array(values) = value else { return Err(ShapeFault::Coordinates) };
    let [Value::Number(x), Value::Number(y), ..] = values.as_slice() else {
        return Err(ShapeFault::Coordinates);
    };
    if !x.is_finite() || !y.is_finite() {
        return Err(ShapeFault::Coordinates);
    }
    if mode == SpatialMode::Geography {
        if y.abs() > 90.0 {
            return Err(ShapeFault::Latitude);
        }
        if x.abs() > 180.0 {
            return Err(ShapeFault::Longitude);
        }
    }
    Ok(Position { x: *x, y: *y })
}

fn positions(value: &Value, mode: SpatialMode) -> Result<Vec<Position>, ShapeFault> {
    let values = elements(value)?;
    if values.len() > POINTS_MAX {
        return Err(ShapeFault::TooManyPoints);
    }
    values.iter().map(|value| position(value, mode)).collect()
}

fn line(value: &Value, mode: SpatialMode) -> Result<Vec<Position>, ShapeFault> {
    let line = positions(value, mode)?;
    if line.len() < 2 { Err(ShapeFault::ShortLine) } else { Ok(line) }
}

fn polygon(value: &Value, mode: SpatialMode) -> Result<Polygon, ShapeFault> {
    let mut rings = Vec::new();
    for (place, ring) in elements(value)?.iter().enumerate() {
        let mut ring = positions(ring, mode)?;
        if ring.first() != ring.last() {
            return Err(ShapeFault::OpenRing(place + 1));
        }
        if ring.len() < 4 {
            return Err(ShapeFault::ShortRing(place + 1));
        }
        ring.pop();
        rings.push(ring);
    }
    let polygon = Polygon { rings };
    match polygon.point_count() {
        0 => Err(ShapeFault::Empty),
        count if count > POLYGON_POINTS_MAX => Err(ShapeFault::TooManyPoints),
        _ => Ok(polygon),
    }
}
