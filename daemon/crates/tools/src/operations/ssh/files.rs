//! The files of another machine.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{
    connection::Connection,
    exchange::{Exchange, remote_folders},
    request::{FOLDERS, LIST, OPEN, READ, REAL, REPLACE, Request, Script},
};
use crate::operations::{
    FileFacts, FileKind, FileSnapshot, FileStamp, FileSystem, FolderEntry, OpenFile, TakeFile, Unreachable,
    WriteError,
};

/// Folders or files per exchange.
const BATCH: usize = 64;

/// The files of another machine, for one call.
pub(super) struct SshFiles {
    connection: Arc<Connection>,
    cancel: CancellationToken,
    runtime: Handle,
}

impl SshFiles {
    /// Must be called on a thread of the runtime.
    pub(super) fn new(connection: Arc<Connection>, cancel: CancellationToken) -> Self {
        Self { connection, cancel, runtime: Handle::current() }
    }

    async fn exchange(&self, script: Script, request: Request) -> Result<Exchange, Unreachable> {
        // Resolve the folders first, so that the home directory is known as soon as anything is.
        let place = self.cancel.run_until_cancelled(remote_folders(&self.connection)).await;
        place.transpose()?;
        Exchange::open(&self.connection, script, request, self.cancel.clone()).await
    }

    /// Asks for the facts about a path; `want` names the purpose.
    async fn ask(&self, path: &Path, want: &str) -> io::Result<(Exchange, FileFacts)> {
        let request = Request::new(OPEN).text(path).line(want);
        let mut exchange = self.exchange(OPEN, request).await?;
        let said = exchange.said().await?;
        let about = about(&said).ok_or_else(|| exchange.garbled())?;
        Ok((exchange, about))
    }

    async fn put(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError> {
        let failed = |source| WriteError::System { call: "open", path: path.to_owned(), source };
        let target = self.real(path).await.map_err(failed)?;
        let want = match before {
            Some(before) => Sha256::digest(before.content).iter().map(|byte| format!("{byte:02x}")).collect(),
            None => "-".to_owned(),
        };
        let request = Request::new(REPLACE).text(&target).line(want).line(content.len()).rest(content);
        let mut exchange = self.exchange(REPLACE, request).await.map_err(|error| failed(error.into()))?;
        match exchange.said().await.map_err(failed)?.as_str() {
            "k" => exchange.finish().await.map_err(failed),
            "n" => Err(WriteError::NotRegular(path.to_owned())),
            "c" => Err(WriteError::Changed(path.to_owned())),
            "t" => {
                let source = rustix::io::Errno::IO.into();
                Err(WriteError::Torn { path: path.to_owned(), source })
            }
            _ => Err(failed(exchange.garbled())),
        }
    }

    async fn real(&self, path: &Path) -> io::Result<PathBuf> {
        let mut exchange = self.exchange(REAL, Request::new(REAL).text(path)).await?;
        exchange.verdict().await?;
        let real = exchange.path().await?;
        exchange.finish().await?;
        Ok(real)
    }

    async fn make_folders(&self, path: &Path) -> io::Result<()> {
        let mut exchange = self.exchange(FOLDERS, Request::new(FOLDERS).text(path)).await?;
        exchange.verdict().await?;
        exchange.finish().await
    }

    async fn list_all(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        let mut exchange = self.exchange(LIST, request_of(LIST, folders)).await?;
        let mut lists = Vec::with_capacity(folders.len());
        for _ in folders {
            lists.push(match exchange.verdict().await {
                Ok(()) => Ok(names(&mut exchange).await?),
                Err(error) if Unreachable::of(&error).is_some() => return Err(error),
                Err(error) => Err(error),
            });
        }
        exchange.finish().await?;
        Ok(lists)
    }
}

impl FileSystem for SshFiles {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let (exchange, about) = self.runtime.block_on(self.ask(path, "content"))?;
        let content = Content { exchange, runtime: self.runtime.clone(), left: None, is_over: false };
        // The other machine's clock is not read: compare the content instead.
        let stamp = FileStamp { file: (0, 0), length: about.length, changed: (0, 0), is_sure: false };
        Ok(OpenFile { about, stamp, limit: u64::MAX, content: Box::new(content) })
    }

    fn about(&self, path: &Path) -> io::Result<FileFacts> {
        self.runtime.block_on(self.ask(path, "about")).map(|(_, about)| about)
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        self.runtime.block_on(self.ask(path, "change")).map(drop)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.runtime.block_on(self.real(path))
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        self.runtime.block_on(self.make_folders(path))
    }

    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError> {
        self.runtime.block_on(self.put(path, content, before))
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        self.runtime.block_on(self.list_all(folders))
    }

    fn read_each(&self, files: &[PathBuf], take: TakeFile<'_>) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let exchange = self.runtime.block_on(self.exchange(READ, request_of(READ, files)))?;
        let mut content = Content { exchange, runtime: self.runtime.clone(), left: None, is_over: false };
        for number in 0..files.len() {
            let wants_more = match self.runtime.block_on(content.exchange.said()) {
                Ok(said) => {
                    let about = about(&said).ok_or_else(|| content.exchange.garbled())?;
                    (content.left, content.is_over) = (Some(about.length), false);
                    take(number, Ok(&mut content))
                }
                Err(error) if Unreachable::of(&error).is_some() => return Err(error),
                Err(error) => take(number, Err(error)),
            };
            if !wants_more {
                return Ok(());
            }
            if content.left.is_some_and(|left| left > 0) {
                io::copy(&mut content, &mut io::sink())?;
            }
        }
        self.runtime.block_on(content.exchange.finish())
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

fn request_of(script: Script, paths: &[PathBuf]) -> Request {
    paths.iter().fold(Request::new(script).line(paths.len()), |request, path| request.text(path))
}

/// Parses a line like `f 12`.
fn about(said: &str) -> Option<FileFacts> {
    let (kind, length) = said.split_once(' ')?;
    let mut letters = kind.bytes();
    let kind = letters.next().and_then(kind_of).filter(|_| letters.next().is_none())?;
    Some(FileFacts { kind, length: length.parse().ok()? })
}

/// The kind for a letter of `find`.
fn kind_of(letter: u8) -> Option<FileKind> {
    Some(match letter {
        b'f' => FileKind::File,
        b'd' => FileKind::Folder,
        b'l' => FileKind::Link,
        b'p' => FileKind::Pipe,
        b's' => FileKind::Socket,
        b'o' | b'b' | b'c' | b'D' | b'U' => FileKind::Device,
        _ => return None,
    })
}

async fn names(exchange: &mut Exchange) -> io::Result<Vec<FolderEntry>> {
    let mut names = Vec::new();
    loop {
        let text = exchange.text().await?;
        let [own, target, name @ ..] = &text[..] else {
            return if text.is_empty() { Ok(names) } else { Err(exchange.garbled()) };
        };
        let kind = kind_of(*own).ok_or_else(|| exchange.garbled())?;
        names.push(FolderEntry { name: OsString::from_vec(name.to_vec()), kind, target: kind_of(*target) });
    }
}

/// The content of a file as it arrives. Reading to the end gives the whole file; reading fails if the connection is
/// lost before.
struct Content {
    exchange: Exchange,
    runtime: Handle,
    /// Bytes left; `None` reads to the end of the output.
    left: Option<u64>,
    is_over: bool,
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over || self.left == Some(0) || buffer.is_empty() {
            return Ok(0);
        }
        let most = self
            .left
            .map_or(buffer.len(), |left| buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        let count = self.runtime.block_on(self.exchange.bytes(&mut buffer[..most]))?;
        if let Some(left) = &mut self.left {
            *left -= count as u64;
        }
        if count == 0 {
            self.is_over = true;
            self.runtime.block_on(self.exchange.finish())?;
            if self.left.is_some() {
                return Err(self.exchange.garbled());
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_strictly() {
        assert_eq!(about("f 12"), Some(FileFacts { kind: FileKind::File, length: 12 }));
        assert_eq!(about("d 0"), Some(FileFacts { kind: FileKind::Folder, length: 0 }));
        for garbled in ["", "f", "x 1", "ff 1", "f -1", "f 1 2", "f x"] {
            assert_eq!(about(garbled), None, "{garbled}");
        }
    }
}
