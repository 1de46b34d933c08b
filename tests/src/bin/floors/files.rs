//! What searching and reading files costs at least.

use std::{
    fs::{self, File},
    io::{BufWriter, Read as _, Write as _},
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use memchr::{memchr_iter, memmem};

use crate::report::{Scale, measure};

const WORD: &str = "needle_in_haystack";

/// Every file is opened, read in one call and searched, by as many threads as there are processors; each takes a folder at a time. No rules,
/// no order, no lines.
pub(crate) fn search(scale: Scale) {
    let root = tempfile::tempdir().unwrap();
    let files = scale.of(50_000, 500);
    let matching = make_tree(root.path(), files);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    measure("walk, read, search", scale.of(7, 1), || {
        let folders = Mutex::new(vec![root.path().to_owned()]);
        let (found, left) = (AtomicUsize::new(0), AtomicUsize::new(1));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| search_folders(&folders, &left, &found));
            }
        });
        assert_eq!(found.into_inner(), matching);
    });
}

/// 50 folders with 40 folders each, and files of about 350 bytes; every 500th has the word. Returns how many these are.
fn make_tree(root: &Path, files: usize) -> usize {
    for number in 0..files {
        let folder = root.join(format!("d{:02}/e{:02}", number % 50, number / 50 % 40));
        if number < 2000 {
            fs::create_dir_all(&folder).unwrap();
        }
        let mut file = BufWriter::new(File::create(folder.join(format!("f{number}.rs"))).unwrap());
        for line in 0..12 {
            writeln!(file, "let value_{} = compute({line});", (number * 7919 + line * 31) % 1000).unwrap();
        }
        if number % 500 == 0 {
            writeln!(file, "{WORD} here").unwrap();
        }
    }
    files.div_ceil(500)
}

/// Takes folders until none is left; `left` counts those that are not finished.
fn search_folders(folders: &Mutex<Vec<PathBuf>>, left: &AtomicUsize, found: &AtomicUsize) {
    let word = memmem::Finder::new(WORD);
    let mut buffer = vec![0; 64 * 1024];
    while left.load(Ordering::Acquire) > 0 {
        let Some(folder) = folders.lock().unwrap().pop() else {
            thread::yield_now();
            continue;
        };
        for entry in folder.read_dir().unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                left.fetch_add(1, Ordering::AcqRel);
                folders.lock().unwrap().push(entry.path());
                continue;
            }
            let count = File::open(entry.path()).unwrap().read(&mut buffer).unwrap();
            assert!(count < buffer.len());
            found.fetch_add(usize::from(word.find(&buffer[..count]).is_some()), Ordering::Relaxed);
        }
        left.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The file is read in pieces, and its line feeds are counted.
pub(crate) fn lines(scale: Scale) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let lines = scale.of(2_000_000, 20_000);
    {
        let mut out = BufWriter::new(file.as_file_mut());
        for line in 0..lines {
            writeln!(out, "{line:08} the quick brown fox jumps over the lazy dog").unwrap();
        }
    }
    let mut buffer = vec![0; 256 * 1024];
    measure("read and count", scale.of(15, 1), || {
        let mut content = File::open(file.path()).unwrap();
        let mut found = 0;
        loop {
            match content.read(&mut buffer).unwrap() {
                0 => break,
                count => found += memchr_iter(b'\n', &buffer[..count]).count(),
            }
        }
        assert_eq!(found, lines);
    });
}
