//! Spatial indexes: which properties hold GeoJSON, and for flat coordinates the area they lie in.
//!
//! A spatial index always covers all four kinds of geometry, whichever of them its author lists; reads show all four.

use crate::definition::members::{self, Members};
use crate::definition::{Invalid, Named};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use super::index_path::IndexPath;

/// The coordinates that a container's geometries are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Geospatial {
    /// Longitude and latitude on the round earth.
    #[default]
    Geography,
    /// A flat plane.
    Geometry,
}

impl Named for Geospatial {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Geography, "Geography"), (Self::Geometry, "Geometry")];
}

/// An index over the geometries of one path.
#[derive(Debug, Clone, PartialEq)]
pub struct SpatialIndex {
    /// The path of the geometries.
    pub path: IndexPath,
    /// The area they lie in: there for flat coordinates, and only for those.
    pub bounding_box: Option<BoundingBox>,
}

/// An upright rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    /// Its left side.
    pub x_min: f64,
    /// Its lower side.
    pub y_min: f64,
    /// Its right side.
    pub x_max: f64,
    /// Its upper side.
    pub y_max: f64,
}

/// The kinds of geometry that a policy can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpatialType {
    Point,
    LineString,
    Polygon,
    MultiPolygon,
}

impl Named for SpatialType {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Point, "Point"),
        (Self::LineString, "LineString"),
        (Self::Polygon, "Polygon"),
        (Self::MultiPolygon, "MultiPolygon"),
    ];
}

/// Reads the `geospatialConfig` member of a container.
pub(super) fn geospatial_from_json(container: &Members<'_>) -> Result<Geospatial, Invalid> {
    let config = container.object("geospatialConfig", "geospatialConfig")?;
    Ok(config.map(|config| config.choice("type")).transpose()?.flatten().unwrap_or_default())
}

/// Reads the `spatialIndexes` member of an indexing policy.
pub(super) fn from_json(policy: &Members<'_>) -> Result<Vec<SpatialIndex>, Invalid> {
    let indexes = policy.list("spatialIndexes")?.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    match indexes.iter().find(|index| !seen.insert(&index.path)) {
        None => Ok(indexes),
        Some(index) => {
            let path = crate::definition::excerpt(index.path.as_str());
            Err(Invalid::new(format!("The spatial index path '{path}' is given twice. Remove one of them.")))
        }
    }
}

/// The `spatialIndexes` member as reads show it.
pub(super) fn to_json(indexes: &[SpatialIndex]) -> Value {
    let types: Vec<&str> = SpatialType::ALL.iter().map(|(_, name)| *name).collect();
    let shown = |index: &SpatialIndex| {
        let mut body = Map::new();
        body.insert("path".to_owned(), index.path.as_str().into());
        body.insert("types".to_owned(), types.clone().into());
        if let Some(area) = &index.bounding_box {
            let side = members::number_json;
            let sides = json!({
                "xmin": side(area.x_min), "ymin": side(area.y_min), "xmax": side(area.x_max), "ymax": side(area.y_max),
            });
            body.insert("boundingBox".to_owned(), sides);
        }
        Value::Object(body)
    };
    indexes.iter().map(shown).collect()
}

/// Checks that the indexes fit the coordinates of the container.
pub(super) fn check_indexes(indexes: &[SpatialIndex], geospatial: Geospatial) -> Result<(), Invalid> {
    for index in indexes {
        let path = crate::definition::excerpt(index.path.as_str());
        match (geospatial, index.bounding_box) {
            (Geospatial::Geometry, None) => {
                return Err(Invalid::new(format!(
                    "The spatial index on '{path}' has no boundingBox. A container whose geospatialConfig type is \
                     Geometry needs one for each spatial index."
                )));
            }
            (Geospatial::Geography, Some(_)) => {
                return Err(Invalid::new(format!(
                    "The spatial index on '{path}' has a boundingBox. Remove it: the container's geospatialConfig \
                     type is Geography."
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

fn index(value: &Value) -> Result<SpatialIndex, Invalid> {
    let body = Members::of(value, "a spatial index")?;
    let path = IndexPath::parse(body.required_text("path")?)?;
    let types = members::texts(body.list("types")?, "the types of a spatial index")?;
    if types.is_empty() {
        let path = crate::definition::excerpt(path.as_str());
        return Err(Invalid::new(format!(
            "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for \
             the path '{path}'."
        )));
    }
    if let Some(unknown) = types.iter().find(|text| SpatialType::from_name(text).is_none()) {
        return Err(body.no_such_choice::<SpatialType>("types", unknown));
    }
    let area = body.object("boundingBox", "boundingBox")?.map(|area| bounding_box(&area)).transpose()?;
    Ok(SpatialIndex { path, bounding_box: area })
}

fn bounding_box(area: &Members<'_>) -> Result<BoundingBox, Invalid> {
    let side = |name: &str| area.number(name)?.ok_or_else(|| area.wrong(name, "a number"));
    let area = BoundingBox {
        x_min: side("xmin")?,
        y_min: side("ymin")?,
        x_max: side("xmax")?,
        y_max: side("ymax")?,
    };
    if area.x_min < area.x_max && area.y_min < area.y_max {
        Ok(area)
    } else {
        Err(Invalid::input("xmin must be less than xmax, and ymin less than ymax, in a boundingBox"))
    }
}
