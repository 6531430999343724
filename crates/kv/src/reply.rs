//! An answer that is here already, or will come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that costs nothing when the engine can answer at once.
pub enum Reply<T> {
    /// The answer; taken by the first poll.
    Ready(Option<T>),
    /// The answer comes later.
    Later(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T> Reply<T> {
    /// An answer that is here.
    pub fn ready(value: T) -> Reply<T> {
        Reply::Ready(Some(value))
    }

    /// An answer that a future will give.
    pub fn later(future: impl Future<Output = T> + Send + 'static) -> Reply<T> {
        Reply::Later(Box::pin(future))
    }

    /// The answer turned into another: at once if it is here, when it comes if not.
    pub fn map<U>(self, turn: impl FnOnce(T) -> U + Send + 'static) -> Reply<U>
    where
        T: 'static,
    {
        match self {
            Reply::Ready(value) => Reply::Ready(value.map(turn)),
            Reply::Later(future) => Reply::later(async move { turn(future.await) }),
        }
    }
}

impl<T: Unpin> Future for Reply<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Reply::Ready(value) => {
                Poll::Ready(value.take().expect("a reply is polled once after it is ready"))
            }
            Reply::Later(future) => future.as_mut().poll(context),
        }
    }
}
