//! Values of the query language as JavaScript values, and back.
//!
//! Arguments are built piece by piece, because JSON could not carry `undefined` or what is no number. Results that are
//! objects go by way of JSON, because that is what decides what a JavaScript object means as data: getters, `toJSON`,
//! functions left out, circles refused.

use crate::sandbox::Sandbox;
use astrarium_value::{Value, json};
use rquickjs::{Array, Ctx, Object, String as Text, Value as Script};

/// How deep a value may nest on its way into a script: documents nest less.
const DEPTH_MAX: usize = 2 * json::DEPTH_MAX;

/// A value as an argument.
pub(crate) fn to_script<'js>(ctx: &Ctx<'js>, value: &Value) -> rquickjs::Result<Script<'js>> {
    build(ctx, value, 0)
}

fn build<'js>(ctx: &Ctx<'js>, value: &Value, depth: usize) -> rquickjs::Result<Script<'js>> {
    if depth > DEPTH_MAX {
        return Err(rquickjs::Exception::throw_range(ctx, "The argument nests too deep."));
    }
    Ok(match value {
        Value::Undefined => Script::new_undefined(ctx.clone()),
        Value::Null => Script::new_null(ctx.clone()),
        Value::Bool(value) => Script::new_bool(ctx.clone(), *value),
        Value::Number(value) => Script::new_number(ctx.clone(), *value),
        Value::String(text) => Text::from_str(ctx.clone(), text)?.into_value(),
        Value::Array(elements) => {
            let array = Array::new(ctx.clone())?;
            for (index, element) in elements.iter().enumerate() {
                array.set(index, build(ctx, element, depth + 1)?)?;
            }
            array.into_value()
        }
        Value::Object(members) => {
            let object = Object::new(ctx.clone())?;
            for (name, member) in members.iter() {
                // Defining, where setting would take `__proto__` for the prototype.
                let member = rquickjs::object::Property::from(build(ctx, member, depth + 1)?);
                object.prop(name, member.writable().enumerable().configurable())?;
            }
            object.into_value()
        }
    })
}

/// Why a result is not a value of the query language.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The engine reported an error; its exception is pending.
    Engine(rquickjs::Error),
    /// The reason, in words.
    Because(String),
}

impl From<rquickjs::Error> for Unusable {
    fn from(error: rquickjs::Error) -> Unusable {
        Unusable::Engine(error)
    }
}

/// A result as a value.
pub(crate) fn from_script<'js>(
    ctx: &Ctx<'js>,
    sandbox: &Sandbox,
    result: Script<'js>,
    bytes_max: usize,
) -> Result<Value, Unusable> {
    if result.is_undefined() || result.is_function() || result.is_symbol() {
        return Ok(Value::Undefined);
    }
    if result.is_null() {
        return Ok(Value::Null);
    }
    if let Some(value) = result.as_bool() {
        return Ok(Value::Bool(value));
    }
    if let Some(value) = result.as_number() {
        return Ok(Value::Number(value));
    }
    if let Some(text) = result.as_string() {
        let text = match text.to_string() {
            Ok(text) => text,
            Err(_) => sandbox.hooks(ctx)?.well_formed.call::<_, String>((text.clone(),))?,
        };
        check_size(text.len(), bytes_max)?;
        return Ok(Value::String(text.into()));
    }
    let Some(text) = ctx.json_stringify(result)? else {
        return Ok(Value::Undefined);
    };
    let text = text.to_string()?;
    check_size(text.len(), bytes_max)?;
    match json::Text::parse(text.as_bytes()) {
        Ok(text) => Ok(text.root().to_value()),
        Err(error) => Err(Unusable::Because(format!("its result cannot be used: {error}."))),
    }
}

fn check_size(bytes: usize, bytes_max: usize) -> Result<(), Unusable> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(Unusable::Because(format!("its result has {bytes} bytes of at most {bytes_max}.")))
}
