//! `ssh://HOST/PATH` in `read` and `write`.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use agentd_agent::ToolError;
use agentd_protocol::{plain_path::without_dots, remote_hosts::SSH_URL, tool::ToolResult};
use tokio_util::sync::CancellationToken;

use super::hosts::RemoteHosts;
use crate::{
    blocking, errno,
    operations::{FileHost as _, FileKind, FileSystem, OpenFile},
    read::{UrlContent, UrlReader, UrlWritten},
};

/// The largest file that is read or written: 1 MiB.
const MAX_FILE: u64 = 1 << 20;

/// The most entries of a folder that are listed.
const MAX_ENTRIES: usize = 1000;

/// Files and folders of other hosts.
pub struct SshUrls(pub RemoteHosts);

/// The host of a URL, and the path there: absolute, or relative to the home directory after `~/`.
fn split(rest: &str) -> Result<(&str, &str), ToolError> {
    match rest.split_once('/') {
        Some((host, _)) if !host.is_empty() => Ok((host, &rest[host.len()..])),
        _ => Err(ToolError(format!(
            "Invalid URL: ssh://{rest}. It must be ssh://HOST/PATH, or ssh://HOST/~/PATH."
        ))),
    }
}

/// The absolute path on the host, without `.` and `..`.
fn absolute(path: &str, home: &Path) -> PathBuf {
    let given = match path.strip_prefix("/~") {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    };
    without_dots(&Path::new("/").join(given))
}

impl UrlReader for SshUrls {
    fn start(&self) -> &str {
        SSH_URL
    }

    fn read<'a>(&'a self, rest: &'a str, cancel: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move {
            let (host, path) = split(rest)?;
            let (ssh, home) = self.0.connect(host, cancel).await?;
            let (path, files) = (absolute(path, &home), ssh.files(cancel));
            let (shown, stop) = (format!("ssh://{rest}"), cancel.clone());
            blocking::run(move || {
                let found = content(&*files, &path, &shown);
                if stop.is_cancelled() { Err(blocking::aborted()) } else { found }
            })
            .await
        })
    }

    fn write<'a>(&'a self, rest: &'a str, content: String, cancel: &'a CancellationToken) -> UrlWritten<'a> {
        Box::pin(async move {
            let (host, path) = split(rest)?;
            if content.len() as u64 > MAX_FILE {
                let text = format!("ssh://{rest} takes 1 MiB at most, and this is {} bytes.", content.len());
                return Err(ToolError(text));
            }
            let (ssh, home) = self.0.connect(host, cancel).await?;
            let (path, files) = (absolute(path, &home), ssh.files(cancel));
            let shown = format!("ssh://{rest}");
            blocking::run(move || {
                files
                    .replace(&path, content.as_bytes(), None)
                    .map_err(|error| ToolError(error.to_string()))?;
                Ok(ToolResult::text(format!("Successfully wrote {} bytes to {shown}", content.len())))
            })
            .await
        })
    }

    fn is_writable(&self) -> bool {
        true
    }
}

/// The content of a file, or the entries of a folder. Blocks.
fn content(files: &dyn FileSystem, path: &Path, shown: &str) -> Result<Vec<u8>, ToolError> {
    let failed = |error: &io::Error| {
        let whole = errno::whole_message(error);
        ToolError(whole.unwrap_or_else(|| format!("Cannot read {shown}: {}", errno::sentence(error))))
    };
    let OpenFile { about, content, .. } = files.open(path).map_err(|error| failed(&error))?;
    match about.kind {
        FileKind::File => {}
        FileKind::Folder => {
            drop(content);
            return listing(files, path).map_err(|error| failed(&error));
        }
        _ => return Err(ToolError(format!("Cannot read {shown}: it is no regular file."))),
    }
    let mut bytes = Vec::new();
    content.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MAX_FILE {
        let text = format!(
            "{shown} is larger than 1 MiB. Look at a part of it with the tool ssh, such as head or sed -n."
        );
        return Err(ToolError(text));
    }
    if let Err(error) = std::str::from_utf8(&bytes) {
        let at = error.valid_up_to();
        return Err(ToolError(format!(
            "{shown} is no UTF-8 text (at byte {at}). Look at it with the tool ssh."
        )));
    }
    Ok(bytes)
}

/// The entries of a folder, sorted by name, a line each; folders end with a slash.
fn listing(files: &dyn FileSystem, path: &Path) -> io::Result<Vec<u8>> {
    let mut lists = files.list(&[path.to_owned()])?;
    let mut entries = lists.pop().unwrap_or_else(|| Ok(Vec::new()))?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let left_out = entries.len().saturating_sub(MAX_ENTRIES);
    let lines = entries.iter().take(MAX_ENTRIES).map(|entry| {
        let end = if entry.target == Some(FileKind::Folder) { "/" } else { "" };
        format!("{}{end}\n", entry.name.to_string_lossy())
    });
    let mut text: String = lines.collect();
    if left_out > 0 {
        text.push_str(&format!("\n[{left_out} more entries]\n"));
    }
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::operations::MemoryHost;

    #[test]
    fn urls_have_a_host_and_a_path() {
        assert_eq!(split("box/etc/x").unwrap(), ("box", "/etc/x"));
        assert_eq!(split("box/").unwrap(), ("box", "/"));
        assert!(split("box").is_err() && split("").is_err() && split("/x").is_err());
        let home = Path::new("/home/me");
        for (path, there) in
            [("/a/../b", "/b"), ("/~", "/home/me"), ("/~/x", "/home/me/x"), ("/~x", "/~x"), ("/../..", "/")]
        {
            assert_eq!(absolute(path, home), Path::new(there), "{path}");
        }
    }

    #[test]
    fn files_are_texts_within_a_size_and_folders_are_listed() {
        let host = MemoryHost::default();
        let files = host.files(&CancellationToken::new());
        files.create_folders(Path::new("/d/sub")).unwrap();
        files.replace(Path::new("/d/a"), b"text", None).unwrap();
        files.replace(Path::new("/d/big"), &vec![b'x'; MAX_FILE as usize + 1], None).unwrap();
        files.replace(Path::new("/d/odd"), &[0xff], None).unwrap();
        let read = |path: &str| content(&*files, Path::new(path), path).map_err(|error| error.0);
        assert_eq!(read("/d/a").unwrap(), b"text");
        assert_eq!(read("/d").unwrap(), b"a\nbig\nodd\nsub/\n");
        assert!(read("/d/big").unwrap_err().contains("larger than 1 MiB"));
        assert!(read("/d/odd").unwrap_err().contains("no UTF-8"));
        assert!(read("/d/none").is_err());
        let error = files.open(Path::new("/none")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
