//! The native functions that the JavaScript half of the API calls.
//!
//! Each takes plain texts and numbers and asks the state of the execution. What the host answers with an error becomes a
//! JavaScript error with `number` and `body`. Scripts do not see these functions, only what `api/*.js` make of them.

use super::callback::sees_error_only;
use super::{Program, SandboxState, load};
use crate::exception::cut;
use crate::json::{print, read};
use crate::{
    DocumentLink, HostError, IndexAction, Paging, Read, RowPage, ScriptQuery, Spatial, UnseenWrite, Written,
};
use astrarium_value::json::write_string;
use rquickjs::prelude::List;
use rquickjs::{Array, Ctx, Exception, Function, IntoJs, Object, Persistent, Result, Value};
use std::rc::Rc;

/// The object that our programs get as `native`.
pub(crate) fn install<'js>(
    ctx: &Ctx<'js>,
    state: &Rc<SandboxState>,
    with_collection: bool,
) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let own = || Rc::clone(state);
    let set = |name: &str, function: Result<Function<'js>>| native.set(name, function?);

    let state = own();
    set("now", Function::new(ctx.clone(), move || (state.env().now_micros() / 1_000) as f64))?;
    let state = own();
    set("random", Function::new(ctx.clone(), move || random_fraction(&state))?.with_name("random"))?;
    set(
        "load",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, name: String| {
            load(&ctx, if name == "clock" { Program::Clock } else { Program::Query })
        }),
    )?;
    set("seesErrorOnly", Function::new(ctx.clone(), |text: String| sees_error_only(&text)))?;
    set("print", Function::new(ctx.clone(), |ctx: Ctx<'js>, value: Value<'js>| printed(&ctx, &value)))?;
    let state = own();
    set("logs", Function::new(ctx.clone(), move || state.logs()))?;
    let state = own();
    set("log", Function::new(ctx.clone(), move |text: String| state.log(&text)))?;
    if with_collection {
        install_control(ctx, &native, &own())?;
        install_writes(ctx, &native, &own())?;
        install_reads(ctx, &native, &own())?;
    }
    Ok(native)
}

/// `JSON.stringify`.
fn printed<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Option<rquickjs::String<'js>>> {
    let Some(text) = print(ctx, value)? else { return Ok(None) };
    let text = String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    rquickjs::String::from_str(ctx.clone(), &text).map(Some)
}

/// A number from zero up to one, with all the bits a double has for it.
fn random_fraction(state: &SandboxState) -> f64 {
    (state.env().random_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn install_control<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<SandboxState>) -> Result<()> {
    let own = Rc::clone(state);
    native.set("accepts", Function::new(ctx.clone(), move || own.accepts())?)?;
    let own = Rc::clone(state);
    native.set("uuid", Function::new(ctx.clone(), move || uuid_text(own.env().random_uuid()))?)?;
    let own = Rc::clone(state);
    native.set("requestValues", Function::new(ctx.clone(), move || own.request_values())?)?;
    let own = Rc::clone(state);
    native.set(
        "abort",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, error: Value<'js>| {
            own.abort(Persistent::save(&ctx, error));
        })?,
    )?;
    let own = Rc::clone(state);
    native.set(
        "spatial",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, name: String, first: String, second: String| {
            let function = match name.as_str() {
                "distance" => Spatial::Distance(&first, &second),
                "intersects" => Spatial::Intersects(&first, &second),
                "within" => Spatial::Within(&first, &second),
                "isValid" => Spatial::IsValid(&first),
                _ => Spatial::IsValidDetailed(&first),
            };
            let answer = own.ask(|host| host.spatial(function)).map_err(|error| throw(&ctx, &error))?;
            read(&ctx, answer)
        })?,
    )
}

fn install_writes<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<SandboxState>) -> Result<()> {
    let own = Rc::clone(state);
    native.set(
        "create",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, document: String, index: String, unseen: bool| {
            let index = index_action(&ctx, &index)?;
            if unseen {
                return done(&ctx, &own, UnseenWrite::Create { document: &document, index });
            }
            written(&ctx, own.ask(|host| host.create(&document, index)))
        })?,
    )?;
    let own = Rc::clone(state);
    native.set(
        "upsert",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>, document: String, etag: String, index: String, unseen: bool| {
                let (etag, index) = (given(&etag), index_action(&ctx, &index)?);
                if unseen {
                    return done(&ctx, &own, UnseenWrite::Upsert { document: &document, etag, index });
                }
                written(&ctx, own.ask(|host| host.upsert(&document, etag, index)))
            },
        )?,
    )?;
    let own = Rc::clone(state);
    native.set(
        "replace",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  is_rid: bool,
                  id: String,
                  document: String,
                  etag: String,
                  index: String,
                  unseen: bool| {
                let (link, etag, index) = (link(is_rid, &id), given(&etag), index_action(&ctx, &index)?);
                if unseen {
                    let document = document.as_str();
                    return done(&ctx, &own, UnseenWrite::Replace { link, document, etag, index });
                }
                written(&ctx, own.ask(|host| host.replace(link, &document, etag, index)))
            },
        )?,
    )?;
    let own = Rc::clone(state);
    native.set(
        "remove",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>, is_rid: bool, id: String, etag: String, unseen: bool| {
                let (link, etag) = (link(is_rid, &id), given(&etag));
                own.ask(|host| {
                    if unseen {
                        host.write_unseen(UnseenWrite::Delete { link, etag })
                    } else {
                        host.delete(link, etag)
                    }
                })
                .map_err(|error| throw(&ctx, &error))
            },
        )?,
    )
}

/// Does a write whose result nobody looks at.
fn done<'js>(
    ctx: &Ctx<'js>,
    state: &SandboxState,
    write: UnseenWrite<'_>,
) -> Result<List<(Value<'js>, u32)>> {
    state.ask(|host| host.write_unseen(write)).map_err(|error| throw(ctx, &error))?;
    Ok(List((Value::new_undefined(ctx.clone()), 0)))
}

fn install_reads<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<SandboxState>) -> Result<()> {
    let own = Rc::clone(state);
    native.set(
        "read",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, is_rid: bool, id: String, etag: String| {
            match own.ask(|host| host.read(link(is_rid, &id), given(&etag))) {
                Ok(Read::Document(text)) => read(&ctx, text),
                Ok(Read::NotModified) => Ok(Value::new_undefined(ctx)),
                Err(error) => Err(throw(&ctx, &error)),
            }
        })?,
    )?;
    let own = Rc::clone(state);
    native.set(
        "feed",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, size: f64, continuation: String| {
            feed(&ctx, own.ask(|host| host.read_feed(paging(size, &continuation))))
        })?,
    )?;
    let own = Rc::clone(state);
    native.set(
        "query",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  text: String,
                  parameters: String,
                  size: f64,
                  continuation: String,
                  enable_scan: bool| {
                let query = ScriptQuery { text: &text, parameters: given(&parameters), enable_scan };
                feed(&ctx, own.ask(|host| host.query(query, paging(size, &continuation))))
            },
        )?,
    )
}

fn link(is_rid: bool, id: &str) -> DocumentLink<'_> {
    if is_rid { DocumentLink::Rid(id) } else { DocumentLink::Id(id) }
}

/// The JavaScript half says nothing with an empty text.
fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Negative sizes leave the choice to the host; what is no number at all was replaced before.
fn paging(size: f64, continuation: &str) -> Paging<'_> {
    let row_count_max = (size >= 1.0).then_some(size.min(f64::from(u32::MAX)) as u32);
    Paging { row_count_max, continuation: given(continuation) }
}

fn index_action(ctx: &Ctx<'_>, name: &str) -> Result<IndexAction> {
    match name.to_ascii_lowercase().as_str() {
        "" | "default" => Ok(IndexAction::Default),
        "include" => Ok(IndexAction::Include),
        "exclude" => Ok(IndexAction::Exclude),
        _ => Err(throw(
            ctx,
            &HostError::new(400, format!("The index action '{}' is not known.", cut(name, 100))),
        )),
    }
}

/// The pair of document and status that `collection.js` hands to callbacks.
fn written<'js>(
    ctx: &Ctx<'js>,
    answer: std::result::Result<Written, HostError>,
) -> Result<List<(Value<'js>, u32)>> {
    let written = answer.map_err(|error| throw(ctx, &error))?;
    let status = if written.created { 201 } else { 200 };
    Ok(List((read(ctx, written.document)?, status)))
}

/// The pair of rows and continuation.
fn feed<'js>(
    ctx: &Ctx<'js>,
    answer: std::result::Result<RowPage, HostError>,
) -> Result<List<(Value<'js>, Option<String>)>> {
    let feed = answer.map_err(|error| throw(ctx, &error))?;
    let rows = Array::new(ctx.clone())?;
    for (index, row) in feed.rows.into_iter().enumerate() {
        rows.set(index, read(ctx, row)?)?;
    }
    Ok(List((rows.into_js(ctx)?, feed.continuation)))
}

/// Throws what the host answered, in the shape scripts know: `number`, and the service's list of errors as text.
fn throw(ctx: &Ctx<'_>, error: &HostError) -> rquickjs::Error {
    let mut body = b"{\"Errors\":[".to_vec();
    write_string(&error.message, &mut body);
    body.extend_from_slice(b"]}");
    let body = String::from_utf8_lossy(&body);
    let thrown = Exception::from_message(ctx.clone(), &body).and_then(|exception| {
        exception.as_object().set("number", error.number)?;
        exception.as_object().set("body", &*body)?;
        Ok(exception)
    });
    match thrown {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_pages_are_whole_and_bounded() {
        for (size, expected) in [
            (100.0, Some(100)),
            (2.7, Some(2)),
            (-1.0, None),
            (0.5, None),
            (f64::NAN, None),
            (1e300, Some(u32::MAX)),
        ] {
            assert_eq!(paging(size, "").row_count_max, expected, "{size}");
        }
    }

    #[test]
    fn identifiers_are_written_in_groups() {
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        assert_eq!(uuid_text(bytes), "00010203-0405-0607-0809-0a0b0c0d0eff");
    }
}
