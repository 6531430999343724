//! Trying an operation again when it lost against somebody else: the one loop of its kind.
//!
//! In: an operation as a closure that makes one attempt on a new view. Out: its outcome, or the error that ended it.
//! An attempt is *lost* when its commit found something changed that it relied on, and *fenced* when the engine refused its
//! view or its commit because the container has changed since it was loaded. A fenced attempt has its container loaded again.
//! Invariants
//! - Nothing of an attempt that did not succeed has happened, so the next one begins from nothing.
//! - What is refused because of a container's definition or ranges, before storage was asked for anything, is refused by the definition
//!   and the ranges that the container has: another process may have changed them.
//!
//! Not here: what is refused for good ([`Failure::Refused`] ends the loop). Attempts that lost do not wait, for somebody else has
//! succeeded; those that met a closed range do.

use crate::{AccountCore, Error};
use astrarium_catalog::container::{Container, Range};
use astrarium_env::{Instant, sleep};
use astrarium_kv::{self as kv, View};
use std::sync::Arc;
use std::time::Duration;

/// Attempts before the client is told to retry.
const ATTEMPTS_MAX: u32 = 50;

/// How long a write waits at most for ranges that take the place of its own, and between two looks for them: longer, the longer it
/// has waited.
const CLOSED_MAX: Duration = Duration::from_secs(10);
const CLOSED_PAUSE: Duration = Duration::from_millis(2);
const CLOSED_PAUSE_MAX: Duration = Duration::from_millis(50);

/// Why one attempt did not succeed.
pub(crate) enum Failure {
    /// Somebody else changed what the attempt relied on: try again.
    Lost,
    /// The container changed: load it again, then try again.
    Fenced,
    /// The range takes no writes for a moment, because others are about to take its place: wait, load it again, then try again.
    Closed,
    /// The answer is no.
    Refused(Error),
}

/// What an attempt is made with.
pub(crate) struct Trial {
    /// The container, as of the last fence.
    pub(crate) container: Arc<Container>,
    /// Attempts before this one that were lost.
    pub(crate) lost: u32,
}

impl AccountCore {
    /// Tries an operation on a container.
    pub(crate) async fn attempt<T, F>(
        &self,
        container: &Arc<Container>,
        attempt: impl FnMut(Trial) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        self.attempt_up_to(ATTEMPTS_MAX, container, attempt).await
    }

    /// The same for operations that have another bound of their own. Boxed, since their futures are larger than all others.
    pub(crate) async fn attempt_without_bound<T, F>(
        &self,
        container: &Arc<Container>,
        attempt: impl FnMut(Trial) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        Box::pin(self.attempt_up_to(u32::MAX, container, attempt)).await
    }

    async fn attempt_up_to<T, F>(
        &self,
        attempts_max: u32,
        container: &Arc<Container>,
        mut attempt: impl FnMut(Trial) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let renew = |container: Arc<Container>, refusal: Option<Error>| async move {
            if let Some(error) = refusal
                && (!goes_by_definition(&error) || self.is_current(&container).await?)
            {
                return Err(error);
            }
            self.reload(&container).await
        };
        if self.shared.containers.is_removed(container.rid()) {
            return Err(Error::OwnerNotFound);
        }
        let attempt =
            |container: &Arc<Container>, lost| attempt(Trial { container: Arc::clone(container), lost });
        retry(attempts_max, Arc::clone(container), renew, attempt).await
    }

    /// Tries something with the catalog, which nobody fences. Boxed, for it is also what loads a container again, and would be part
    /// of every operation's future.
    pub(crate) async fn attempt_catalog<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let renew = |(), refusal: Option<Error>| std::future::ready(refusal.map_or(Ok(()), Err));
        Box::pin(retry(ATTEMPTS_MAX, (), renew, |(), _| attempt())).await
    }

    /// A view of a range, if it is what the container was loaded with.
    pub(crate) async fn view(&self, range: &Range) -> Result<Arc<dyn View>, kv::Error> {
        self.engine().view(range.shard, range.epoch).await
    }

    /// The same for a write that needs nothing of the range but its counters, as of now or a while ago.
    pub(crate) async fn view_to_write(&self, range: &Range) -> Result<Arc<dyn View>, kv::Error> {
        self.engine().view_to_write(range.shard, range.epoch).await
    }

    /// Whether a container is what it was when it was loaded. Who alone has the storage open has forgotten it otherwise.
    pub(crate) async fn is_current(&self, container: &Container) -> Result<bool, Error> {
        if self.engine().is_exclusive() {
            return Ok(true);
        }
        for range in &container.ranges {
            match self.engine().shard(range.shard).await {
                Ok(state) if state.epoch == range.epoch => {}
                Ok(_) | Err(kv::Error::Dropped { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// A view of the catalog.
    pub(crate) async fn catalog(&self) -> Result<Arc<dyn View>, kv::Error> {
        astrarium_catalog::view(self.engine()).await
    }
}

/// Whether an error may come of a container's definition or ranges alone, without a look at storage.
fn goes_by_definition(error: &Error) -> bool {
    matches!(
        error,
        Error::Invalid(_)
            | Error::Query(_)
            | Error::NeedsClientPlan(_)
            | Error::PartitionKeyMismatch
            | Error::PartitionKeyDiffers { .. }
            | Error::KeyRangeGone
    )
}

/// The loop. `renew` makes of what the attempts go by what it is now; after a refusal it ends the loop with that, unless what the
/// attempt went by is outdated.
async fn retry<S, T, F, R>(
    attempts_max: u32,
    mut subject: S,
    renew: impl Fn(S, Option<Error>) -> R,
    mut attempt: impl FnMut(&S, u32) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Failure>>,
    R: Future<Output = Result<S, Error>>,
{
    let mut lost = 0;
    let mut closed = None;
    let mut left = attempts_max;
    while left > 0 {
        left -= 1;
        match attempt(&subject, lost).await {
            Ok(outcome) => return Ok(outcome),
            Err(Failure::Refused(error)) => subject = renew(subject, Some(error)).await?,
            Err(Failure::Lost) => lost += 1,
            Err(Failure::Fenced) => subject = renew(subject, None).await?,
            Err(Failure::Closed) => {
                let since = *closed.get_or_insert_with(Instant::now);
                if since.elapsed() > CLOSED_MAX {
                    return Err(Error::KeyRangeMoving);
                }
                left += 1;
                sleep((since.elapsed() / 4).clamp(CLOSED_PAUSE, CLOSED_PAUSE_MAX)).await;
                subject = renew(subject, None).await?;
            }
        }
    }
    Err(Error::RetryWith)
}

impl<E: FailureSource> From<E> for Failure {
    fn from(error: E) -> Failure {
        error.failure()
    }
}

/// Errors that an attempt can end with; a trait of our own because storage errors are not all refusals.
pub(crate) trait FailureSource {
    fn failure(self) -> Failure;
}

impl FailureSource for kv::Error {
    fn failure(self) -> Failure {
        match self {
            kv::Error::Conflict { .. } | kv::Error::ShardExists { .. } => Failure::Lost,
            kv::Error::Fenced { .. } | kv::Error::Dropped { .. } => Failure::Fenced,
            other => Failure::Refused(other.into()),
        }
    }
}

impl FailureSource for astrarium_catalog::Error {
    fn failure(self) -> Failure {
        match self {
            astrarium_catalog::Error::Storage(error) => error.failure(),
            damaged @ astrarium_catalog::Error::Malformed(_) => Failure::Refused(damaged.into()),
        }
    }
}

impl FailureSource for astrarium_store::Error {
    fn failure(self) -> Failure {
        match self {
            astrarium_store::Error::Storage(error) => error.failure(),
            astrarium_store::Error::RangeClosed => Failure::Closed,
            damaged => Failure::Refused(damaged.into()),
        }
    }
}

impl FailureSource for astrarium_index::finder::Error {
    fn failure(self) -> Failure {
        match self {
            astrarium_index::finder::Error::Storage(error) => error.failure(),
            other => Failure::Refused(Error::IndexWrong(other.to_string())),
        }
    }
}

impl FailureSource for astrarium_store::FeedError {
    fn failure(self) -> Failure {
        match self {
            astrarium_store::FeedError::Store(error) => error.failure(),
            refused => Failure::Refused(refused.into()),
        }
    }
}

impl FailureSource for Error {
    fn failure(self) -> Failure {
        Failure::Refused(self)
    }
}
