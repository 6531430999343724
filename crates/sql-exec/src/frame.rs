//! What the slots of a plan hold while a row is looked at.

use astrarium_env::charge;
use astrarium_keys::Rid;
use astrarium_keys::body::Body;
use astrarium_sql_functions::limits::weight;
use astrarium_sql_plan::evaluate::step_into;
use astrarium_sql_plan::expression::{Slot, Step};
use astrarium_store::{push_document, system_property};
use astrarium_value::json::seek;
use astrarium_value::{Object, Value, system_properties};
use bytes::Bytes;
use std::cell::RefCell;

/// The content of a slot.
#[derive(Debug, Clone, Default)]
pub(crate) enum Datum {
    /// Nothing yet.
    #[default]
    Empty,
    /// A stored document, of which only what is asked for is read.
    Document(Rid, Body),
    /// A part of a stored document's text, likewise.
    Text(Bytes),
    /// A value.
    Value(Value),
}

impl Datum {
    /// Charges for what it reads; whoever evaluates notices if that was too much.
    fn path(&self, steps: &[Step]) -> Value {
        match self {
            Datum::Empty => Value::Undefined,
            Datum::Value(value) => {
                let found = match steps {
                    [] => value.clone(),
                    [first, rest @ ..] => {
                        rest.iter().fold(step_into(value, first), |value, step| step_into(&value, step))
                    }
                };
                if matches!(found, Value::Array(_) | Value::Object(_)) {
                    let _ = charge(weight(&found));
                }
                found
            }
            Datum::Document(container, body) => document_path(*container, body, steps),
            Datum::Text(text) => raw_path(text, steps).map_or(Value::Undefined, seek::value),
        }
    }

    /// The text at a path, if this is text and the path leads to something the user wrote.
    fn raw(&self, steps: &[Step]) -> Option<&[u8]> {
        match self {
            Datum::Document(_, body) => {
                let own = matches!(steps.first(), Some(Step::Name(name)) if !name.starts_with('_'));
                own.then(|| stored_path(body, steps))?
            }
            Datum::Text(text) => raw_path(text, steps),
            Datum::Empty | Datum::Value(_) => None,
        }
    }

    /// The same, shared.
    fn text(&self, steps: &[Step]) -> Option<Bytes> {
        let raw = self.raw(steps)?;
        match self {
            Datum::Document(_, body) => Some(body.as_bytes().slice_ref(raw)),
            Datum::Text(text) => Some(text.slice_ref(raw)),
            Datum::Empty | Datum::Value(_) => None,
        }
    }

    /// Appends the content as JSON; nothing if it is undefined.
    pub(crate) fn push_json(&self, out: &mut Vec<u8>) {
        match self {
            Datum::Empty => {}
            Datum::Value(value) => value.write_json(out),
            Datum::Document(container, body) => push_document(*container, body, out),
            Datum::Text(text) => seek::value(text).write_json(out),
        }
    }
}

fn document_path(container: Rid, body: &Body, steps: &[Step]) -> Value {
    let [first, rest @ ..] = steps else { return whole(container, body) };
    if let Step::Name(name) = first
        && name.starts_with('_')
        && let Some(value) = system_property(container, body, name)
    {
        return rest.iter().fold(value, |value, step| step_into(&value, step));
    }
    stored_path(body, steps).map_or(Value::Undefined, seek::value)
}

fn stored_path<'t>(body: &'t Body, steps: &[Step]) -> Option<&'t [u8]> {
    match steps {
        [Step::Name(name), rest @ ..] => {
            // Longer texts have no table of their members: all of it is searched.
            if body.text().len() > usize::from(u16::MAX) {
                let _ = charge((body.text().len() / BYTES_PER_STEP) as u64);
            }
            raw_path(body.member(name)?, rest)
        }
        _ => raw_path(body.text(), steps),
    }
}

/// Bytes of text that are read in one step.
const BYTES_PER_STEP: usize = 16;

fn raw_path<'t>(text: &'t [u8], steps: &[Step]) -> Option<&'t [u8]> {
    // What is sought is somewhere in the text, and is read.
    let _ = charge((text.len() / BYTES_PER_STEP) as u64);
    steps.iter().try_fold(text, |raw, step| match step {
        Step::Name(name) => seek::member(raw, name),
        Step::Position(position) => seek::element(raw, *position),
    })
}

/// A document as a value, system properties included.
fn whole(container: Rid, body: &Body) -> Value {
    let _ = charge((body.text().len() / BYTES_PER_STEP) as u64);
    let Value::Object(own) = seek::value(body.text()) else { return Value::Undefined };
    let mut members: Vec<_> = own.iter().map(|(name, value)| (name.into(), value.clone())).collect();
    for name in system_properties::SHOWN {
        members.extend(system_property(container, body, name).map(|value| (name.into(), value)));
    }
    Value::Object(Object::from_members(members))
}

/// The slots of a plan. Nested queries have slots of their own in the same frame, so they can be filled while an
/// expression of the outer row is under way.
pub(crate) struct Frame {
    slots: RefCell<Vec<Datum>>,
}

impl Frame {
    pub(crate) fn new(slot_count: usize) -> Frame {
        Frame { slots: RefCell::new(vec![Datum::Empty; slot_count]) }
    }

    pub(crate) fn set(&self, slot: Slot, datum: Datum) {
        self.slots.borrow_mut()[slot] = datum;
    }

    pub(crate) fn path(&self, slot: Slot, steps: &[Step]) -> Value {
        self.slots.borrow()[slot].path(steps)
    }

    /// Hands the text at a path to some work, if there is such text.
    pub(crate) fn with_raw<T>(&self, slot: Slot, steps: &[Step], work: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.slots.borrow()[slot].raw(steps).map(work)
    }

    /// The elements of the array at a path, each unread; none if there is no array, or if it is no stored text.
    pub(crate) fn elements(&self, slot: Slot, steps: &[Step]) -> Option<Vec<Datum>> {
        let array = self.slots.borrow()[slot].text(steps)?;
        let elements = seek::elements(&array)?;
        Some(elements.map(|element| Datum::Text(array.slice_ref(element))).collect())
    }

    pub(crate) fn push_json(&self, slot: Slot, out: &mut Vec<u8>) {
        self.slots.borrow()[slot].push_json(out);
    }
}
