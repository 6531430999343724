//! Shapes on the Earth or in a plane: distance, containment, intersection, area, and whether GeoJSON is valid.
//!
//! GeoJSON becomes a `Shape` (positions, checked), a `Figure` on a surface (vertices ready for geometry), and the answers come
//! from algorithms that both surfaces share (`relate`). Coordinates are `[longitude, latitude]` or `[x, y]`.
//! Invariants
//! - What is no valid GeoJSON gives undefined in every function but those that ask for validity.
//! - Outer rings run counter-clockwise; on the Earth one that runs clockwise stands for everything outside of it.
//! - At most 4096 points per polygon and [`POINTS_MAX`] per shape, which bounds the work of comparing two of them.
//!
//! Not here: cells and ranges for an index.

mod ellipsoid;
mod figure;
mod plane;
mod relate;
mod shape;
mod sphere;

use std::sync::Arc;

use astrarium_value::{Object, Value};

use crate::arguments::at;
use crate::{Context, FunctionIndexUse, ScalarFunction, SpatialMode};

use figure::Figure;
use plane::Plane;
use sphere::Sphere;

pub use shape::{POINTS_MAX, Polygon, Position, Shape, ShapeFault};

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "ST_DISTANCE",
        signature: "(first: object, second: object) -> number",
        arguments: 2..=2,
        summary: "The distance between two shapes, in metres on the Earth, 0 when they touch.",
        example: Some((r#"{"type":"Point","coordinates":[0,0]},{"type":"Point","coordinates":[0,0]}"#, "0")),
        evaluate: |context, arguments| {
            of_two(context, arguments, |a, b| a.distance(b).map(Value::Number)).unwrap_or_default()
        },
        index_use: Some(FunctionIndexUse::SpatialDistance),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ST_WITHIN",
        signature: "(inner: object, outer: object) -> boolean",
        arguments: 2..=2,
        summary: "True when the first shape lies wholly in the second.",
        example: Some((
            r#"{"type":"Point","coordinates":[1,1]},{"type":"Polygon","coordinates":[[[0,0],[2,0],[2,2],[0,2],[0,0]]]}"#,
            "true",
        )),
        evaluate: |context, arguments| {
            of_two(context, arguments, |a, b| a.is_within(b).map(Value::Bool)).unwrap_or_default()
        },
        index_use: Some(FunctionIndexUse::SpatialWithin),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ST_INTERSECTS",
        signature: "(first: object, second: object) -> boolean",
        arguments: 2..=2,
        summary: "True when the two shapes have a point in common.",
        example: Some((
            r#"{"type":"LineString","coordinates":[[0,0],[2,2]]},{"type":"LineString","coordinates":[[0,2],[2,0]]}"#,
            "true",
        )),
        evaluate: |context, arguments| {
            of_two(context, arguments, |a, b| a.intersects(b).map(Value::Bool)).unwrap_or_default()
        },
        index_use: Some(FunctionIndexUse::SpatialIntersects),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ST_AREA",
        signature: "(shape: object) -> number",
        arguments: 1..=1,
        summary: "The area of the shape, in square metres on the Earth, 0 for points and lines.",
        example: Some((r#"{"type":"Point","coordinates":[0,0]}"#, "0")),
        evaluate: |context, arguments| {
            PreparedShape::parse(at(arguments, 0), context.spatial_mode)
                .map(|shape| Value::Number(shape.area()))
                .unwrap_or_default()
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ST_ISVALID",
        signature: "(shape: any) -> boolean",
        arguments: 1..=1,
        summary: "True when the value is valid GeoJSON.",
        example: Some((r#"{"type":"Point","coordinates":[0,95]}"#, "false")),
        evaluate: |context, arguments| match validity(context, arguments) {
            Some(result) => Value::Bool(result.is_ok()),
            None => Value::Undefined,
        },
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "ST_ISVALIDDETAILED",
        signature: "(shape: any) -> object",
        arguments: 1..=1,
        summary: "Whether the value is valid GeoJSON, and the reason when it is not.",
        example: Some((r#"{"type":"Point","coordinates":[31.9,-4.8]}"#, r#"{"valid":true}"#)),
        evaluate: |context, arguments| validity(context, arguments).map(describe).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
];

/// A shape on its surface, ready to be compared with others; worth keeping for a shape that a query names once.
#[derive(Debug)]
pub struct PreparedShape {
    surface: Surface,
}

#[derive(Debug)]
enum Surface {
    Earth(Figure<Sphere>),
    Plane(Figure<Plane>),
}

impl PreparedShape {
    /// Reads GeoJSON, checks it wholly and prepares it for comparison.
    pub fn parse(value: &Value, mode: SpatialMode) -> Result<PreparedShape, ShapeFault> {
        let shape = Shape::parse(value, mode)?;
        let surface = match mode {
            SpatialMode::Geography => Surface::Earth(Figure::new(&shape)?),
            SpatialMode::Geometry => Surface::Plane(Figure::new(&shape)?),
        };
        Ok(PreparedShape { surface })
    }

    /// The distance to another shape of the same mode; none for one of the other mode.
    pub fn distance(&self, other: &PreparedShape) -> Option<f64> {
        match (&self.surface, &other.surface) {
            (Surface::Earth(a), Surface::Earth(b)) => Some(relate::distance(a, b)),
            (Surface::Plane(a), Surface::Plane(b)) => Some(relate::distance(a, b)),
            _ => None,
        }
    }

    /// Whether this shape lies wholly in another of the same mode; none for one of the other mode.
    pub fn is_within(&self, other: &PreparedShape) -> Option<bool> {
        match (&self.surface, &other.surface) {
            (Surface::Earth(a), Surface::Earth(b)) => Some(relate::is_within(a, b)),
            (Surface::Plane(a), Surface::Plane(b)) => Some(relate::is_within(a, b)),
            _ => None,
        }
    }

    /// Whether this shape and another of the same mode have a point in common; none for one of the other mode.
    pub fn intersects(&self, other: &PreparedShape) -> Option<bool> {
        match (&self.surface, &other.surface) {
            (Surface::Earth(a), Surface::Earth(b)) => Some(relate::intersects(a, b)),
            (Surface::Plane(a), Surface::Plane(b)) => Some(relate::intersects(a, b)),
            _ => None,
        }
    }

    /// The area, 0 for points and lines.
    pub fn area(&self) -> f64 {
        match &self.surface {
            Surface::Earth(figure) => relate::area(figure),
            Surface::Plane(figure) => relate::area(figure),
        }
    }
}

fn of_two(
    context: &Context<'_>,
    arguments: &[Value],
    compare: impl FnOnce(&PreparedShape, &PreparedShape) -> Option<Value>,
) -> Option<Value> {
    let a = PreparedShape::parse(at(arguments, 0), context.spatial_mode).ok()?;
    let b = PreparedShape::parse(at(arguments, 1), context.spatial_mode).ok()?;
    compare(&a, &b)
}

/// None for undefined, which is not even invalid.
fn validity(context: &Context<'_>, arguments: &[Value]) -> Option<Result<(), ShapeFault>> {
    let value = at(arguments, 0);
    (!value.is_undefined()).then(|| PreparedShape::parse(value, context.spatial_mode).map(|_| ()))
}

fn describe(validity: Result<(), ShapeFault>) -> Value {
    let mut members: Vec<(Arc<str>, Value)> = vec![("valid".into(), validity.is_ok().into())];
    if let Err(fault) = validity {
        members.push(("reason".into(), fault.to_string().as_str().into()));
    }
    Value::Object(Object::from_members(members))
}

#[cfg(test)]
mod tests;
