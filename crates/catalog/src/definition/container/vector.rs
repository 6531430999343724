//! Vectors: which properties hold embeddings, and how they are indexed.
//!
//! The embedding policy says what a vector is (its length, its element type, the distance that compares two); vector
//! indexes, part of the indexing policy, each need an embedding of the same path.

use crate::definition::members::{self, Members};
use crate::definition::{Invalid, Named, choices, excerpt};
use astrarium_value::PropertyPath;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Most dimensions of an embedding.
const DIMENSIONS_MAX: u32 = 4_096;
/// Most dimensions of an embedding with a flat index.
const FLAT_DIMENSIONS_MAX: u32 = 505;
/// Dimensions of an embedding that names none.
const DIMENSIONS_DEFAULT: i64 = 1_536;
/// Most bytes of a quantized vector; a vector never gets more bytes than it has dimensions.
const QUANTIZATION_BYTES_MAX: u32 = 512;
/// How many candidates building a graph index may keep.
const SEARCH_LIST_SIZES: RangeInclusive<u32> = 25..=500;
/// Most paths of the key that splits a vector index into shards.
const SHARD_PATHS_MAX: usize = 1;

/// A property that holds vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorEmbedding {
    /// The property.
    pub path: PropertyPath,
    /// The type of the elements.
    pub data_type: VectorDataType,
    /// The number of elements.
    pub dimensions: u32,
    /// What queries compare vectors by unless they say otherwise.
    pub distance: DistanceFunction,
    /// Where the embedding is to be made from; kept for clients that do so.
    pub source: Option<EmbeddingSource>,
}

/// Element types of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorDataType {
    /// 32-bit floats.
    Float32,
    /// 16-bit floats.
    Float16,
    /// Signed bytes.
    Int8,
    /// Unsigned bytes.
    Uint8,
}

impl Named for VectorDataType {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Float32, "float32"),
        (Self::Float16, "float16"),
        (Self::Int8, "int8"),
        (Self::Uint8, "uint8"),
    ];
}

/// Measures of how far apart two vectors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistanceFunction {
    /// The angle between them.
    Cosine,
    /// The product of their elements, summed.
    DotProduct,
    /// The straight line between them.
    Euclidean,
}

impl Named for DistanceFunction {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Cosine, "cosine"), (Self::DotProduct, "dotproduct"), (Self::Euclidean, "euclidean")];
}

/// The model that makes an embedding and the properties it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingSource {
    /// The properties whose texts are embedded.
    pub source_paths: Vec<PropertyPath>,
    /// The deployment to call.
    pub deployment_name: String,
    /// The model behind it.
    pub model_name: Option<String>,
    /// Where it is.
    pub endpoint: String,
    /// How to sign in there.
    pub authentication: EmbeddingAuthentication,
}

/// Ways to sign in to an embedding model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingAuthentication {
    /// With a key.
    ApiKey,
    /// With an identity of the account's directory.
    Entra,
}

impl Named for EmbeddingAuthentication {
    const ALL: &'static [(Self, &'static str)] = &[(Self::ApiKey, "ApiKey"), (Self::Entra, "Entra")];
}

/// An index over the vectors of one property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorIndex {
    /// The property.
    pub path: PropertyPath,
    /// How the index is built.
    pub kind: VectorIndexType,
    /// How vectors are shortened.
    pub quantizer: Option<Quantizer>,
    /// To how many bytes they are shortened.
    pub quantization_bytes: Option<u32>,
    /// How many candidates building the graph keeps.
    pub search_list_size: Option<u32>,
    /// The property whose values split the index into shards.
    pub shard_key: Option<PropertyPath>,
}

/// Kinds of vector index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorIndexType {
    /// All vectors, compared one by one.
    Flat,
    /// All vectors in shortened form, compared one by one.
    QuantizedFlat,
    /// A graph of near neighbours.
    DiskAnn,
}

impl Named for VectorIndexType {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Flat, "flat"), (Self::QuantizedFlat, "quantizedFlat"), (Self::DiskAnn, "diskANN")];
}

/// Ways to shorten vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantizer {
    /// By products of small codebooks.
    Product,
    /// By directions on a sphere.
    Spherical,
}

impl Named for Quantizer {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Product, "product"), (Self::Spherical, "spherical")];
}

/// Reads the `vectorEmbeddingPolicy` member of a container.
pub(super) fn embeddings_from_json(container: &Members<'_>) -> Result<Vec<VectorEmbedding>, Invalid> {
    let Some(policy) = container.object("vectorEmbeddingPolicy", "vectorEmbeddingPolicy")? else {
        return Ok(Vec::new());
    };
    let embeddings = policy.list("vectorEmbeddings")?.iter().map(embedding).collect::<Result<Vec<_>, _>>()?;
    check_distinct(embeddings.iter().map(|embedding| &embedding.path), "Vector Embedding Policy")?;
    Ok(embeddings)
}

/// The `vectorEmbeddingPolicy` member as reads show it.
pub(super) fn embeddings_to_json(embeddings: &[VectorEmbedding]) -> Value {
    let shown = |embedding: &VectorEmbedding| {
        let mut body = Map::new();
        body.insert("path".to_owned(), embedding.path.as_str().into());
        body.insert("dataType".to_owned(), embedding.data_type.name().into());
        body.insert("dimensions".to_owned(), embedding.dimensions.into());
        body.insert("distanceFunction".to_owned(), embedding.distance.name().into());
        if let Some(source) = &embedding.source {
            body.insert("embeddingSource".to_owned(), source_to_json(source));
        }
        Value::Object(body)
    };
    json!({"vectorEmbeddings": embeddings.iter().map(shown).collect::<Vec<_>>()})
}

/// Reads the `vectorIndexes` member of an indexing policy.
pub(super) fn indexes_from_json(policy: &Members<'_>) -> Result<Vec<VectorIndex>, Invalid> {
    let indexes = policy.list("vectorIndexes")?.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    check_distinct(indexes.iter().map(|index| &index.path), "Vector Indexing Policy")?;
    Ok(indexes)
}

/// The `vectorIndexes` member as reads show it.
pub(super) fn indexes_to_json(indexes: &[VectorIndex]) -> Value {
    let shown = |index: &VectorIndex| {
        let mut body = Map::new();
        body.insert("path".to_owned(), index.path.as_str().into());
        body.insert("type".to_owned(), index.kind.name().into());
        let optional = [
            ("quantizerType", index.quantizer.map(|quantizer| quantizer.name().into())),
            ("quantizationByteSize", index.quantization_bytes.map(Value::from)),
            ("vectorIndexShardKey", index.shard_key.as_ref().map(|path| json!([path.as_str()]))),
            ("indexingSearchListSize", index.search_list_size.map(Value::from)),
        ];
        body.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Value::Object(body)
    };
    indexes.iter().map(shown).collect()
}

/// Checks the indexes against the embeddings they are built over.
pub(super) fn check_indexes(indexes: &[VectorIndex], embeddings: &[VectorEmbedding]) -> Result<(), Invalid> {
    let by_path = by_path(embeddings, |embedding| &embedding.path);
    for index in indexes {
        let path = excerpt(index.path.as_str());
        let Some(embedding) = by_path.get(&index.path) else {
            return Err(Invalid::new(format!(
                "The Vector Indexing Policy's path::{path} not matching in Embedding's path. Every vector index needs \
                 an entry of the same path in vectorEmbeddingPolicy."
            )));
        };
        if index.kind == VectorIndexType::Flat && embedding.dimensions > FLAT_DIMENSIONS_MAX {
            return Err(Invalid::new(format!(
                "The vector index on {path} is of type flat, which has at most {FLAT_DIMENSIONS_MAX} dimensions, but \
                 its embedding has {}. Use quantizedFlat or diskANN.",
                embedding.dimensions
            )));
        }
        let allowed = 1..=embedding.dimensions.min(QUANTIZATION_BYTES_MAX);
        if let Some(bytes) = index.quantization_bytes
            && !allowed.contains(&bytes)
        {
            return Err(out_of_range("QuantizationByteSize", bytes.into(), &allowed));
        }
    }
    Ok(())
}

/// Checks what a replace does to the vectors of a container: entries may come and go, but not change.
pub(super) fn check_replacement(
    old: (&[VectorEmbedding], &[VectorIndex]),
    new: (&[VectorEmbedding], &[VectorIndex]),
) -> Result<(), Invalid> {
    let refuse = |policy: &str| {
        Invalid::new(format!(
            "Paths in existing {policy} policy cannot be modified in Collection Replace. They can only be added or \
             removed."
        ))
    };
    let embeddings = by_path(old.0, |embedding| &embedding.path);
    if new.0.iter().any(|embedding| embeddings.get(&embedding.path).is_some_and(|old| *old != embedding)) {
        return Err(refuse("embedding"));
    }
    let indexes = by_path(old.1, |index| &index.path);
    if new.1.iter().any(|index| indexes.get(&index.path).is_some_and(|old| *old != index)) {
        return Err(refuse("vector indexing"));
    }
    Ok(())
}

fn embedding(value: &Value) -> Result<VectorEmbedding, Invalid> {
    let body = Members::of(value, "a vector embedding")?;
    let path = path(body.required_text("path")?, "Vector Embedding Policy", "Path")?;
    let data_type = match body.text("dataType")? {
        None => VectorDataType::Float32,
        Some(text) => VectorDataType::from_name(text).ok_or_else(|| {
            no_such_choice::<VectorDataType>("Vector Embedding Policy has an invalid DataType:", text)
        })?,
    };
    let distance = match body.text("distanceFunction")? {
        None => DistanceFunction::Cosine,
        Some(text) => DistanceFunction::from_name(text).ok_or_else(|| {
            no_such_choice::<DistanceFunction>(
                "Vector Embedding Policy has an invalid DistanceFunction:",
                text,
            )
        })?,
    };
    let dimensions = dimensions(body.integer("dimensions")?.unwrap_or(DIMENSIONS_DEFAULT))?;
    let source = body.object("embeddingSource", "embeddingSource")?.map(|source| source_from_json(&source));
    Ok(VectorEmbedding { path, data_type, dimensions, distance, source: source.transpose()? })
}

fn dimensions(requested: i64) -> Result<u32, Invalid> {
    let stem = format!("The Vector Embedding Policy has Dimensions:{requested}");
    match u32::try_from(requested) {
        Ok(1..=DIMENSIONS_MAX) => Ok(requested as u32),
        _ if requested > 0 => Err(Invalid::new(format!(
            "{stem} which is more than the maximum supported value {DIMENSIONS_MAX}."
        ))),
        _ => Err(Invalid::new(format!("{stem} but a vector has a positive number of dimensions."))),
    }
}

fn source_from_json(source: &Members<'_>) -> Result<EmbeddingSource, Invalid> {
    let texts = members::texts(source.list("sourcePaths")?, "the sourcePaths of embeddingSource")?;
    if texts.is_empty() {
        return Err(source.wrong("sourcePaths", "an array with at least one path"));
    }
    let paths = texts.iter().map(|text| path(text, "Vector Embedding Policy", "source Path"));
    let authentication = source.required_text("authType")?;
    Ok(EmbeddingSource {
        source_paths: paths.collect::<Result<_, _>>()?,
        deployment_name: source.required_text("deploymentName")?.to_owned(),
        model_name: source.text("modelName")?.map(str::to_owned),
        endpoint: source.required_text("endpoint")?.to_owned(),
        authentication: EmbeddingAuthentication::from_name(authentication).ok_or_else(|| {
            Invalid::new(format!(
                "The auth type provided in the embedding source of vector policy is invalid. It must be one of {}.",
                choices::<EmbeddingAuthentication>()
            ))
        })?,
    })
}

fn source_to_json(source: &EmbeddingSource) -> Value {
    let paths: Vec<&str> = source.source_paths.iter().map(PropertyPath::as_str).collect();
    let mut body = Map::new();
    body.insert("sourcePaths".to_owned(), paths.into());
    body.insert("deploymentName".to_owned(), source.deployment_name.as_str().into());
    if let Some(model) = &source.model_name {
        body.insert("modelName".to_owned(), model.as_str().into());
    }
    body.insert("endpoint".to_owned(), source.endpoint.as_str().into());
    body.insert("authType".to_owned(), source.authentication.name().into());
    Value::Object(body)
}

fn index(value: &Value) -> Result<VectorIndex, Invalid> {
    let body = Members::of(value, "a vector index")?;
    let kind = body.required_text("type")?;
    let shard_paths = members::texts(body.list("vectorIndexShardKey")?, "the paths of vectorIndexShardKey")?;
    if shard_paths.len() > SHARD_PATHS_MAX {
        return Err(Invalid::new(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: \
             {SHARD_PATHS_MAX}.",
            shard_paths.len()
        )));
    }
    let shard_path = |text: &&str| path(text, "Vector Indexing Policy", "Shard Path");
    Ok(VectorIndex {
        path: path(body.required_text("path")?, "Vector Indexing Policy", "Path")?,
        kind: VectorIndexType::from_name(kind).ok_or_else(|| {
            no_such_choice::<VectorIndexType>("Vector Indexing Policy's Index Type::", kind)
        })?,
        quantizer: body.choice("quantizerType")?,
        // The upper end depends on the embedding and is checked with it.
        quantization_bytes: tuning(&body, "quantizationByteSize", "QuantizationByteSize", 0..=u32::MAX)?,
        search_list_size: tuning(
            &body,
            "indexingSearchListSize",
            "IndexingSearchListSize",
            SEARCH_LIST_SIZES,
        )?,
        shard_key: shard_paths.first().map(shard_path).transpose()?,
    })
}

fn tuning(
    body: &Members<'_>,
    name: &str,
    title: &str,
    allowed: RangeInclusive<u32>,
) -> Result<Option<u32>, Invalid> {
    let Some(requested) = body.integer(name)? else {
        return Ok(None);
    };
    let within = u32::try_from(requested).ok().filter(|value| allowed.contains(value));
    within.map(Some).ok_or_else(|| out_of_range(title, requested, &allowed))
}

fn out_of_range(title: &str, requested: i64, allowed: &RangeInclusive<u32>) -> Invalid {
    let (start, end) = (allowed.start(), allowed.end());
    Invalid::new(format!(
        "The Vector Indexing Policy parameter {title} value :: {requested} is out of range. The allowed range is \
         between {start} and {end}."
    ))
}

fn no_such_choice<T: Named>(stem: &str, text: &str) -> Invalid {
    let problem = if stem.ends_with("::") { " is invalid" } else { "" };
    Invalid::new(format!("The {stem}{}{problem}. It must be one of {}.", excerpt(text), choices::<T>()))
}

fn path(text: &str, policy: &str, role: &str) -> Result<PropertyPath, Invalid> {
    PropertyPath::parse(text).map_err(|error| {
        Invalid::new(format!(
            "The {policy} has an invalid {role}: {}. A path names one property, such as /vector ({error}).",
            excerpt(text)
        ))
    })
}

fn check_distinct<'a>(paths: impl Iterator<Item = &'a PropertyPath>, policy: &str) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for path in paths {
        if !seen.insert(path) {
            let path = excerpt(path.as_str());
            return Err(Invalid::new(format!("Duplicate Path :{path} found in {policy}.")));
        }
    }
    Ok(())
}

fn by_path<T>(list: &[T], path: impl Fn(&T) -> &PropertyPath) -> BTreeMap<&PropertyPath, &T> {
    list.iter().map(|entry| (path(entry), entry)).collect()
}
