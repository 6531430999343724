//! The bytes of messages between the server and its script processes.
//!
//! Both ends are the same program, so there are no versions: a message is its parts one after the other, numbers little
//! endian, texts and lists behind their length. What comes from a script process is still not believed: whatever is cut
//! short, too long or too deep is nothing, never a panic and never a large allocation for a length that was only claimed.

use crate::{
    Error, Exception, HostError, IndexAction, ScriptContainer, ScriptKey, ScriptLimits, ScriptWork,
    TriggeringOperation,
};
use astrarium_value::{Object, Value};
use std::sync::Arc;
use std::time::Duration;

/// How deep a value may nest: a little deeper than `values` lets functions have it.
const DEPTH_MAX: usize = 2 * astrarium_value::json::DEPTH_MAX + 2;

/// What can be in a message.
pub(super) trait MessagePart: Sized {
    /// Adds its bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes its bytes off the front; nothing if they are not there.
    fn take(input: &mut &[u8]) -> Option<Self>;
}

/// A whole message; nothing if the bytes are not exactly one.
pub(super) fn decode<P: MessagePart>(mut bytes: &[u8]) -> Option<P> {
    let part = P::take(&mut bytes)?;
    bytes.is_empty().then_some(part)
}

/// The bytes of some values: equal for equal ones only.
pub(crate) fn encoded(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_list(values, &mut bytes);
    bytes
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl MessagePart for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(input: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = input.split_first_chunk()?;
                *input = rest;
                Some(<$number>::from_le_bytes(*bytes))
            }
        }
    )* };
}
numbers!(u8, u16, u32, u64, f64);

impl MessagePart for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        u64::take(input).and_then(|number| usize::try_from(number).ok())
    }
}

impl MessagePart for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        u8::take(input).map(|byte| byte != 0)
    }
}

impl MessagePart for () {
    fn put(&self, _: &mut Vec<u8>) {}

    fn take(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl MessagePart for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).put(out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        u64::take(input).map(Duration::from_nanos)
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).put(out);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::take(input)? as usize;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

impl MessagePart for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self, out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        take_bytes(input).map(<[u8]>::to_vec)
    }
}

impl MessagePart for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        Some(std::str::from_utf8(take_bytes(input)?).ok()?.to_owned())
    }
}

impl MessagePart for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        Some(std::str::from_utf8(take_bytes(input)?).ok()?.into())
    }
}

impl<P: MessagePart> MessagePart for Box<P> {
    fn put(&self, out: &mut Vec<u8>) {
        P::put(self, out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        P::take(input).map(Box::new)
    }
}

impl<P: MessagePart> MessagePart for Option<P> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(part) = self {
            part.put(out);
        }
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        if bool::take(input)? { P::take(input).map(Some) } else { Some(None) }
    }
}

impl<P: MessagePart, E: MessagePart> MessagePart for Result<P, E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(part) => part.put(out),
            Err(error) => error.put(out),
        }
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        if bool::take(input)? { P::take(input).map(Ok) } else { E::take(input).map(Err) }
    }
}

impl<A: MessagePart, B: MessagePart> MessagePart for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        Some((A::take(input)?, B::take(input)?))
    }
}

/// Several of a kind. Each has at least one byte, so that a length cannot claim more than the message has.
#[derive(Debug, PartialEq)]
pub(super) struct List<P>(pub(super) Vec<P>);

impl<P: MessagePart> MessagePart for List<P> {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(&self.0, out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        take_list(input, P::take).map(List)
    }
}

fn put_list<P: MessagePart>(parts: &[P], out: &mut Vec<u8>) {
    (parts.len() as u32).put(out);
    for part in parts {
        part.put(out);
    }
}

fn take_list<P>(input: &mut &[u8], mut take: impl FnMut(&mut &[u8]) -> Option<P>) -> Option<Vec<P>> {
    let length = u32::take(input)? as usize;
    if length > input.len() {
        return None;
    }
    let mut parts = Vec::with_capacity(length.min(1_000));
    for _ in 0..length {
        parts.push(take(input)?);
    }
    Some(parts)
}

impl MessagePart for Value {
    fn put(&self, out: &mut Vec<u8>) {
        put_value(self, out, 0);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        take_value(input, 0)
    }
}

/// What nests too deep is cut off where it is still deeper than functions are given it, so that they refuse it.
fn put_value(value: &Value, out: &mut Vec<u8>, depth: usize) {
    match value {
        Value::Undefined => out.push(0),
        Value::Array(_) | Value::Object(_) if depth >= DEPTH_MAX => out.push(1),
        Value::Null => out.push(1),
        Value::Bool(value) => out.push(2 + u8::from(*value)),
        Value::Number(value) => {
            out.push(4);
            value.put(out);
        }
        Value::String(text) => {
            out.push(5);
            text.put(out);
        }
        Value::Array(elements) => {
            out.push(6);
            (elements.len() as u32).put(out);
            for element in elements {
                put_value(element, out, depth + 1);
            }
        }
        Value::Object(members) => {
            out.push(7);
            (members.iter().count() as u32).put(out);
            for (name, member) in members.iter() {
                put_bytes(name.as_bytes(), out);
                put_value(member, out, depth + 1);
            }
        }
    }
}

fn take_value(input: &mut &[u8], depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    Some(match u8::take(input)? {
        0 => Value::Undefined,
        1 => Value::Null,
        2 => Value::Bool(false),
        3 => Value::Bool(true),
        4 => Value::Number(f64::take(input)?),
        5 => Value::String(MessagePart::take(input)?),
        6 => Value::Array(take_list(input, |input| take_value(input, depth + 1))?),
        7 => {
            let members =
                take_list(input, |input| Some((<Arc<str>>::take(input)?, take_value(input, depth + 1)?)))?;
            Value::Object(Object::from_members(members))
        }
        _ => return None,
    })
}

/// A struct is its fields in order.
macro_rules! structure {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl MessagePart for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(input: &mut &[u8]) -> Option<Self> {
                Some($type { $($field: MessagePart::take(input)?),* })
            }
        }
    };
}
pub(super) use structure;

/// An enum is a number and the fields of the variant.
macro_rules! variants {
    ($type:ident { $($tag:literal = $name:ident $({ $($field:ident),* $(,)? })? $(( $inner:ident ))?),* $(,)? }) => {
        impl MessagePart for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($type::$name $({ $($field),* })? $(($inner))? => {
                        out.push($tag);
                        $($($field.put(out);)*)?
                        $($inner.put(out);)?
                    })*
                }
            }

            fn take(input: &mut &[u8]) -> Option<Self> {
                Some(match u8::take(input)? {
                    $($tag => {
                        $($(let $field = MessagePart::take(input)?;)*)?
                        $(let $inner = MessagePart::take(input)?;)?
                        $type::$name $({ $($field),* })? $(($inner))?
                    })*
                    _ => return None,
                })
            }
        }
    };
}
pub(super) use variants;

structure!(ScriptKey { id, version });
structure!(HostError { number, message, fatal });
structure!(Exception { text, thrown, number, line });
structure!(ScriptLimits {
    time,
    accept_time,
    grace,
    memory_bytes_max,
    stack_bytes_max,
    log_bytes_max,
    message_bytes_max,
    source_bytes_max,
    document_bytes_max,
});
variants!(IndexAction { 0 = Default, 1 = Include, 2 = Exclude });
variants!(TriggeringOperation { 0 = Create, 1 = Replace, 2 = Upsert, 3 = Delete });
variants!(ScriptWork {
    0 = Procedure { parameters },
    1 = PreTrigger { operation, document },
    2 = PostTrigger { operation, document, written },
});
variants!(Error {
    0 = Compile { name, message },
    1 = Exception(exception),
    2 = Timeout { name },
    3 = TooLarge { name, bytes, bytes_max },
    4 = Host(error),
    5 = Busy,
    6 = Bug { name, what },
    7 = Unavailable { name, what },
    8 = Void { name },
});

impl MessagePart for ScriptContainer {
    fn put(&self, out: &mut Vec<u8>) {
        self.self_link.put(out);
        self.alt_link.put(out);
        (self.partition_key_paths.len() as u32).put(out);
        for path in &self.partition_key_paths {
            put_list(path, out);
        }
        self.quota_current.put(out);
        self.quota_max.put(out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        Some(ScriptContainer {
            self_link: MessagePart::take(input)?,
            alt_link: MessagePart::take(input)?,
            partition_key_paths: take_list(input, |input| take_list(input, String::take))?,
            quota_current: MessagePart::take(input)?,
            quota_max: MessagePart::take(input)?,
        })
    }
}
