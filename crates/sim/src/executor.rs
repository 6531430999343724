//! Runs tasks on one thread, in an order that the dice choose.
//!
//! In: tasks. Out: they are polled, one at a time, any of those that can go on; when none can, time goes on to the next timer.
//! While a task is polled, whatever it does to storage is done in its name ([`CurrentOperation`]).

use crate::dice::Dice;
use crate::time::Time;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Who is at work: the number of the operation, or 0 for work beside them.
#[derive(Clone, Default)]
pub(crate) struct CurrentOperation {
    current: Arc<AtomicU64>,
}

impl CurrentOperation {
    /// The operation that is being polled.
    pub(crate) fn current(&self) -> u64 {
        self.current.load(Ordering::Relaxed)
    }

    /// From now on the task that is being polled works for this operation.
    pub(crate) fn set(&self, operation: u64) {
        self.current.store(operation, Ordering::Relaxed);
    }
}

struct SimulatedTask {
    future: Pin<Box<dyn Future<Output = ()>>>,
    ready: Arc<Ready>,
    /// For which operation it worked when it was last polled.
    operation: u64,
}

struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct Executor<'a> {
    tasks: Vec<SimulatedTask>,
    dice: &'a Dice,
    time: &'a Time,
    names: &'a CurrentOperation,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(dice: &'a Dice, time: &'a Time, names: &'a CurrentOperation) -> Executor<'a> {
        Executor { tasks: Vec::new(), dice, time, names }
    }

    pub(crate) fn start(&mut self, future: impl Future<Output = ()> + 'static) {
        let ready = Arc::new(Ready(AtomicBool::new(true)));
        self.tasks.push(SimulatedTask { future: Box::pin(future), ready, operation: 0 });
    }

    /// Lets one task go on; gives its place, or nothing if everybody waits for nothing.
    pub(crate) fn step(&mut self) -> Option<usize> {
        loop {
            let is_ready = |task: &SimulatedTask| task.ready.0.load(Ordering::Relaxed);
            let count = self.tasks.iter().filter(|task| is_ready(task)).count() as u64;
            if count > 0 {
                let chosen = self.dice.below(count) as usize;
                let mut ready = (0..self.tasks.len()).filter(|place| is_ready(&self.tasks[*place]));
                let place = ready.nth(chosen)?;
                self.poll(place);
                return Some(place);
            }
            if !self.time.advance_to_timer() {
                return None;
            }
        }
    }

    fn poll(&mut self, place: usize) {
        self.time.advance(Duration::from_micros(self.dice.below(200)));
        let task = &mut self.tasks[place];
        task.ready.0.store(false, Ordering::Relaxed);
        self.names.set(task.operation);
        let waker = Waker::from(Arc::clone(&task.ready));
        let done = task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        task.operation = self.names.current();
        self.names.set(0);
        if done {
            drop(self.tasks.remove(place));
        }
    }
}

/// Lets others go first.
pub(crate) async fn give_way() {
    let mut gave = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
