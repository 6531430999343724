//! Where segments live: immutable blobs with names, and one small blob that is replaced whole.
//!
//! In: names and bytes. Out: bytes, or an [`Error`] that tells want ([`Error::Unavailable`]) from damage ([`Error::Damaged`]).
//! An embedded engine gives files of a folder, tests give memory ([`MemoryBlobs`]), another engine may give objects of a remote
//! store.
//! Invariants, the implementor's to keep
//! - A blob that [`BlobWriter::finish`] gave is on stable storage, and its name is after the next [`Blobs::replace`].
//! - [`Blobs::replace`] leaves the old content or the new one, whenever a crash comes.
//! - A removed blob can be read by whoever has it open.

use crate::Error;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A place for blobs.
pub trait Blobs: Send + Sync {
    /// Begins a blob; one of that name that was not finished is begun anew.
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>, Error>;

    /// A finished blob; nothing if there is none of that name.
    fn open(&self, name: &str) -> Result<Option<Box<dyn Blob>>, Error>;

    /// The whole content of a small blob; nothing if there is none of that name.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Gives a small blob another content, and makes everything that was finished or removed before lasting.
    fn replace(&self, name: &str, content: &[u8]) -> Result<(), ReplaceError>;

    /// All names.
    fn list(&self) -> Result<Vec<String>, Error>;

    /// Removes a blob, if it is there.
    fn remove(&self, name: &str) -> Result<(), Error>;

    /// Takes damaged blobs out of the way, and keeps them for whoever wants to look at them, as long as they are few. Tells where.
    fn set_aside(&self, names: &[String]) -> Result<String, Error>;
}

/// A blob on its way.
pub trait BlobWriter: Send {
    /// Appends.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Waits until all is on stable storage.
    fn finish(self: Box<Self>) -> Result<Box<dyn Blob>, Error>;
}

/// A finished blob.
pub trait Blob: Send + Sync {
    /// Its length.
    fn byte_count(&self) -> u64;

    /// Fills the buffer from a place on. A blob that ends before is damaged.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error>;
}

/// Why a small blob was not replaced.
#[derive(Debug)]
pub enum ReplaceError {
    /// The old one is there for sure; it may be tried again.
    Unchanged(Error),
    /// Nobody knows which one is there after a crash.
    Unknown(Error),
}

impl From<ReplaceError> for Error {
    fn from(error: ReplaceError) -> Error {
        match error {
            ReplaceError::Unchanged(error) | ReplaceError::Unknown(error) => error,
        }
    }
}

/// Blobs in memory.
#[derive(Default, Clone)]
pub struct MemoryBlobs {
    blobs: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

impl MemoryBlobs {
    /// Blobs of their own, with the same content as these have now.
    #[must_use]
    pub fn copied(&self) -> MemoryBlobs {
        MemoryBlobs { blobs: Arc::new(Mutex::new(self.blobs.lock().clone())) }
    }

    /// Bytes of all of them.
    pub fn byte_count(&self) -> usize {
        self.blobs.lock().values().map(Bytes::len).sum()
    }
}

struct MemoryWriter {
    blobs: MemoryBlobs,
    name: String,
    bytes: Vec<u8>,
}

impl Blobs for MemoryBlobs {
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>, Error> {
        Ok(Box::new(MemoryWriter { blobs: self.clone(), name: name.to_owned(), bytes: Vec::new() }))
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Blob>>, Error> {
        let found = self.blobs.lock().get(name).cloned();
        Ok(found.map(|bytes| -> Box<dyn Blob> { Box::new(bytes) }))
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.blobs.lock().get(name).map(|bytes| bytes.to_vec()))
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), ReplaceError> {
        self.blobs.lock().insert(name.to_owned(), Bytes::copy_from_slice(content));
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        Ok(self.blobs.lock().keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.blobs.lock().remove(name);
        Ok(())
    }

    fn set_aside(&self, names: &[String]) -> Result<String, Error> {
        let mut blobs = self.blobs.lock();
        blobs.retain(|name, _| !names.contains(name));
        Ok("nowhere".to_owned())
    }
}

impl BlobWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Blob>, Error> {
        let bytes = Bytes::from(self.bytes);
        self.blobs.blobs.lock().insert(self.name, bytes.clone());
        Ok(Box::new(bytes))
    }
}

impl Blob for Bytes {
    fn byte_count(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let found = usize::try_from(offset).ok().and_then(|start| self.get(start..)?.get(..bytes.len()));
        bytes.copy_from_slice(found.ok_or_else(|| crate::damaged("a blob ends early"))?);
        Ok(())
    }
}
