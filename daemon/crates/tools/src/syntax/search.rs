//! Searches files for code: reads them, has the program match, and goes on where the program failed.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use agentd_agent::ToolError;
use agentd_protocol::text_bounds;
use agentd_syntax::{Answer, LANGUAGES, LanguageFacts, Match, Query};
use futures::{StreamExt as _, future::BoxFuture, stream::FuturesOrdered};
use ignore::overrides::Override;
use memchr::memmem::Finder;
use tokio::{
    select,
    sync::{OnceCell, mpsc},
};
use tokio_util::sync::CancellationToken;

use super::{
    program::{SyntaxFailure, SyntaxProgram},
    read::{self, CodeFile, CodeText, Literals, WalkFacts},
    request::{Languages, SyntaxContext, Target},
};
use crate::{
    blocking,
    operations::{FileKind, FileSystem},
    search::Notices,
};

/// Chunks of files that are worked on at once.
const CHUNKS_AT_ONCE: usize = 4;

/// How often the program may fail on a file before a search ends.
const MOST_FAILURES: usize = 8;

/// How many files and languages a notice names.
const MOST_NAMED: usize = 5;

/// What to search for, and where.
pub(super) struct CodeSearch<'a> {
    pub(super) context: &'a SyntaxContext,
    pub(super) target: &'a Target,
    pub(super) rewrite: Option<&'a str>,
    pub(super) cwd: &'a std::path::Path,
    pub(super) cancel: &'a CancellationToken,
}

/// A file with matches.
#[derive(Debug)]
pub(super) struct FileMatches {
    pub(super) file: CodeFile,
    pub(super) text: String,
    /// In the order of the text.
    pub(super) matches: Vec<Match>,
}

/// What else is to be told of a search.
#[derive(Debug, Default)]
pub(super) struct SearchFacts {
    /// Files that were looked at.
    pub(super) files: usize,
    unreadable: usize,
    too_long: usize,
    /// Files that the program could not parse, and why.
    failed: Vec<(String, String)>,
    /// Languages in which the pattern is no code.
    refused: Vec<&'static str>,
    unused: Option<String>,
}

impl SearchFacts {
    /// The notices for the model.
    pub(super) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.unreadable > 0 {
            notices.push(format!(
                "{} could not be read",
                counted(self.unreadable, "file or folder", "files or folders")
            ));
        }
        if self.too_long > 0 {
            notices.push(format!(
                "{} left out: longer than 4 MiB",
                counted(self.too_long, "file is", "files are")
            ));
        }
        if !self.failed.is_empty() {
            let named: Vec<String> =
                self.failed.iter().take(MOST_NAMED).map(|(file, why)| format!("{file} ({why})")).collect();
            let others = self.failed.len().saturating_sub(MOST_NAMED);
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            notices.push(format!("Not searched: {}{more}", named.join(", ")));
        }
        if !self.refused.is_empty() {
            notices.push(format!(
                "Not searched, since the pattern is no code there: {}",
                self.refused.join(", ")
            ));
        }
        notices.extend(self.unused.clone());
        notices
    }

    /// Adds the notices, and the same facts for programs.
    pub(super) fn add_to(&self, notices: &mut Notices) {
        if !self.failed.is_empty() {
            let names: Vec<&str> = self.failed.iter().map(|(file, _)| file.as_str()).collect();
            notices.detail("filesNotSearched", names);
        }
        notices.detail("filesSearched", self.files);
    }
}

fn counted(number: usize, one: &str, several: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {several}") }
}

/// A query in one language, or a sentence why it cannot be used there.
type Compiled = Result<(Arc<Query>, Literals), String>;

/// What the chunks of one search share.
struct Shared<'a> {
    search: &'a CodeSearch<'a>,
    files: Arc<dyn FileSystem>,
    is_named: bool,
    queries: BTreeMap<&'static str, OnceCell<Compiled>>,
    facts: Mutex<SearchFacts>,
}

impl CodeSearch<'_> {
    /// Searches, and passes files with matches to `take` as `digest` makes them, in the order of a walk, until `take` wants no more.
    ///
    /// # Errors
    /// For the model: the query cannot be used, the place is not there, the program is missing or fails again and again, or the call was
    /// aborted.
    pub(super) async fn run<T: Send>(
        &self,
        digest: impl Fn(FileMatches) -> T + Sync,
        mut take: impl FnMut(T) -> Result<bool, ToolError> + Send,
    ) -> Result<SearchFacts, ToolError> {
        let languages = self.target.languages()?;
        let (files, place) = self.place().await?;
        let (first, named) = match &place {
            Place::File(path) => (languages.of(path, true), true),
            Place::Folder(_) => (None, false),
        };
        let shared = Shared {
            search: self,
            files: Arc::clone(&files),
            is_named: named,
            queries: LANGUAGES.iter().map(|language| (language.name, OnceCell::new())).collect(),
            facts: Mutex::default(),
        };
        if let Languages::Named(languages) = &languages {
            // A query that no file could fit is an error, whatever files there are.
            if let Some(language) = first.or_else(|| languages.first().copied()) {
                shared.checked(language).await?;
            }
        }
        let (sender, chunks) = mpsc::channel(CHUNKS_AT_ONCE);
        let walking = match place {
            Place::File(path) => {
                let Some(language) = first else {
                    let text = format!(
                        "The language of {} is not known from its name: give it as language.",
                        path.display()
                    );
                    return Err(ToolError(text));
                };
                shared.checked(language).await?;
                let shown = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // The channel is empty and has room.
                let _ = sender.try_send(vec![CodeFile { path, shown, language }]);
                drop(sender);
                None
            }
            Place::Folder(root) => {
                let (overrides, cancel) = (self.target.overrides(&root)?, self.cancel.clone());
                let walk = (languages, overrides);
                Some(tokio::task::spawn_blocking(move || {
                    let (languages, overrides): (Languages, Override) = walk;
                    read::walk(&*files, &root, (&languages, overrides), &cancel, &sender)
                }))
            }
        };
        let searching = shared.chunks(chunks, &digest, &mut take);
        let searched = self.cancel.run_until_cancelled(searching).await;
        // With its receiver gone, the walk ends at the next file. Nothing of it goes on after the call.
        let walked = match walking {
            Some(walking) => walking
                .await
                .map_err(|error| ToolError(format!("The search stopped unexpectedly: {error}")))?,
            None => Ok(WalkFacts::default()),
        };
        searched.unwrap_or_else(|| Err(blocking::aborted()))?;
        let walked = walked?;
        shared.finish(walked)
    }

    /// The files of the session, and the place to search.
    async fn place(&self) -> Result<(Arc<dyn FileSystem>, Place), ToolError> {
        let files: Arc<dyn FileSystem> = Arc::from(self.context.host.files(self.cancel));
        let path = self.context.home.resolve(
            self.target.path.as_deref().unwrap_or("."),
            self.cwd,
            &*self.context.host,
        )?;
        let own = Arc::clone(&files);
        let place = blocking::run(move || {
            let about = own.about(&path).map_err(|error| {
                if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) {
                    ToolError(format!("Path not found: {}", path.display()))
                } else {
                    ToolError(crate::errno::describe(&error, "stat", &path))
                }
            })?;
            match about.kind {
                FileKind::Folder => Ok(Place::Folder(own.root_of_walk(&path))),
                FileKind::File => Ok(Place::File(path)),
                _ => Err(ToolError(format!(
                    "Cannot search {}: it is neither a file nor a folder",
                    path.display()
                ))),
            }
        });
        Ok((files, place.await?))
    }
}

enum Place {
    File(PathBuf),
    Folder(PathBuf),
}

impl Shared<'_> {
    fn program(&self) -> &SyntaxProgram {
        &self.search.context.program
    }

    fn facts(&self) -> std::sync::MutexGuard<'_, SearchFacts> {
        // No holder of this lock leaves a half-made change.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The query in a language.
    async fn query(&self, language: &'static LanguageFacts) -> Result<&Compiled, ToolError> {
        let Some(cell) = self.queries.get(language.name) else {
            return Err(ToolError(format!("The language {} is not known.", language.name)));
        };
        cell.get_or_try_init(|| async {
            let query = self.search.target.query(language, self.search.rewrite);
            let turn = self.program().turn().await.map_err(unavailable)?;
            let asked =
                self.program().ask(&turn, query.clone(), Vec::new(), self.search.context.timeout).await;
            match asked.map_err(unavailable)? {
                Answer::Refused(why) => Ok(Err(why)),
                Answer::Found { literals, .. } => {
                    let finders = literals.iter().map(|literal| Finder::new(literal).into_owned());
                    Ok(Ok((Arc::new(query), finders.collect())))
                }
            }
        })
        .await
    }

    /// The same, where the language alone counts.
    async fn checked(&self, language: &'static LanguageFacts) -> Result<(), ToolError> {
        match self.query(language).await? {
            Ok(_) => Ok(()),
            Err(why) => Err(ToolError(format!("Invalid pattern for {}: {why}", language.name))),
        }
    }

    /// Works on chunks, some at once, and passes what comes of them on in their order.
    async fn chunks<T: Send>(
        &self,
        mut chunks: mpsc::Receiver<Vec<CodeFile>>,
        digest: &(dyn Fn(FileMatches) -> T + Sync),
        take: &mut (dyn FnMut(T) -> Result<bool, ToolError> + Send),
    ) -> Result<(), ToolError> {
        let mut running: FuturesOrdered<BoxFuture<'_, Result<Vec<T>, ToolError>>> = FuturesOrdered::new();
        let mut are_more = true;
        loop {
            select! {
                biased;
                chunk = chunks.recv(), if are_more && running.len() < CHUNKS_AT_ONCE => match chunk {
                    Some(chunk) => running.push_back(Box::pin(self.chunk(chunk, digest))),
                    None => are_more = false,
                },
                Some(done) = running.next(), if !running.is_empty() => {
                    for file in done? {
                        if !take(file)? {
                            return Ok(());
                        }
                    }
                }
                else => return Ok(()),
            }
        }
    }

    async fn chunk<T>(
        &self,
        chunk: Vec<CodeFile>,
        digest: &(dyn Fn(FileMatches) -> T + Sync),
    ) -> Result<Vec<T>, ToolError> {
        let mut literals: BTreeMap<&'static str, Literals> = BTreeMap::new();
        for file in &chunk {
            if literals.contains_key(file.language.name) {
                continue;
            }
            if let Ok((_, of_query)) = self.query(file.language).await? {
                literals.insert(file.language.name, Arc::clone(of_query));
            }
        }
        let count = chunk.iter().filter(|file| literals.contains_key(file.language.name)).count();
        self.facts().files += count;
        let (literals, mut left) = (Arc::new(literals), chunk);
        let mut digested = Vec::new();
        while !left.is_empty() {
            let (files, literals, cancel) =
                (Arc::clone(&self.files), Arc::clone(&literals), self.search.cancel.clone());
            let is_named = self.is_named;
            let read = blocking::run(move || {
                let of = |file: &CodeFile| literals.get(file.language.name).cloned();
                let texts = read::read_texts(&*files, &left, of, is_named, &cancel)?;
                let rest = left.split_off(texts.taken.min(left.len()));
                Ok((texts, rest))
            });
            let (texts, rest) = read.await?;
            left = rest;
            self.note(&texts);
            for file in self.matches(texts.texts).await? {
                digested.push(digest(file));
            }
            if self.search.cancel.is_cancelled() {
                return Err(blocking::aborted());
            }
        }
        Ok(digested)
    }

    fn note(&self, texts: &read::Texts) {
        let mut facts = self.facts();
        facts.unreadable += texts.unreadable;
        facts.too_long += texts.too_long;
    }

    /// The texts that have matches, in their order.
    async fn matches(&self, texts: Vec<CodeText>) -> Result<Vec<FileMatches>, ToolError> {
        let mut by_language: BTreeMap<&'static str, Vec<(usize, CodeText)>> = BTreeMap::new();
        for (number, text) in texts.into_iter().enumerate() {
            by_language.entry(text.file.language.name).or_default().push((number, text));
        }
        let mut found: Vec<(usize, FileMatches)> = Vec::new();
        for texts in by_language.into_values() {
            let Some((_, first)) = texts.first() else { continue };
            let Ok((query, _)) = self.query(first.file.language).await? else { continue };
            let contents = texts.iter().map(|(_, text)| text.text.clone()).collect();
            let turn = self.program().turn().await.map_err(unavailable)?;
            let asked =
                self.program().ask(&turn, (**query).clone(), contents, self.search.context.timeout).await;
            drop(turn);
            match asked {
                Ok(Answer::Refused(why)) => {
                    return Err(ToolError(format!("The pattern cannot be used: {why}")));
                }
                Ok(Answer::Found { texts: answers, .. }) => {
                    for ((number, text), answer) in texts.into_iter().zip(answers) {
                        found.extend(self.with_matches(text, answer)?.map(|file| (number, file)));
                    }
                }
                Err(SyntaxFailure::Unavailable(why)) => return Err(ToolError(why)),
                // Which of the texts it was, shows when each is alone.
                Err(SyntaxFailure::Lost(_)) => {
                    for (number, text) in texts {
                        let answer = self.alone(query, &text).await?;
                        found.extend(self.with_matches(text, answer)?.map(|file| (number, file)));
                    }
                }
            }
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        Ok(found.into_iter().map(|(_, file)| file).collect())
    }

    /// The matches of one text, while the program has no other request of anybody.
    async fn alone(&self, query: &Query, text: &CodeText) -> Result<Result<Vec<Match>, String>, ToolError> {
        let turn = self.program().turn_alone().await.map_err(unavailable)?;
        let asked = self
            .program()
            .ask(&turn, query.clone(), vec![text.text.clone()], self.search.context.timeout)
            .await;
        match asked {
            Ok(Answer::Refused(why)) => Err(ToolError(format!("The pattern cannot be used: {why}"))),
            Ok(Answer::Found { mut texts, .. }) => {
                Ok(texts.pop().unwrap_or_else(|| Err("no answer".to_owned())))
            }
            Err(SyntaxFailure::Unavailable(why)) => Err(ToolError(why)),
            Err(SyntaxFailure::Lost(why)) => Ok(Err(format!("the parser failed: {why}"))),
        }
    }

    /// Notes a text that could not be parsed.
    fn with_matches(
        &self,
        CodeText { file, text }: CodeText,
        answer: Result<Vec<Match>, String>,
    ) -> Result<Option<FileMatches>, ToolError> {
        match answer {
            Ok(matches) => Ok((!matches.is_empty()).then_some(FileMatches { file, text, matches })),
            Err(why) => {
                let why = text_bounds::head(&why, 200).to_owned();
                let mut facts = self.facts();
                facts.failed.push((file.shown, why));
                if facts.failed.len() >= MOST_FAILURES {
                    let text = facts.notices().join(". ");
                    return Err(ToolError(format!(
                        "The search ended, since too many files could not be parsed. {text}"
                    )));
                }
                Ok(None)
            }
        }
    }

    fn finish(self, walked: WalkFacts) -> Result<SearchFacts, ToolError> {
        let Self { queries, facts, .. } = self;
        let mut facts = facts.into_inner().unwrap_or_else(PoisonError::into_inner);
        facts.unreadable += walked.unreadable;
        facts.unused = walked.unused;
        let compiled: Vec<(&'static str, Compiled)> =
            queries.into_iter().filter_map(|(name, cell)| Some((name, cell.into_inner()?))).collect();
        let refused = |(name, query): &(&'static str, Compiled)| query.is_err().then_some(*name);
        facts.refused = compiled.iter().filter_map(refused).collect();
        if !compiled.is_empty() && facts.refused.len() == compiled.len() {
            let why =
                compiled.into_iter().find_map(|(name, query)| Some(format!("{name}: {}", query.err()?)));
            return Err(ToolError(format!(
                "Invalid pattern: it is code in no language of these files ({}).",
                why.unwrap_or_default()
            )));
        }
        Ok(facts)
    }
}

fn unavailable(failure: SyntaxFailure) -> ToolError {
    match failure {
        SyntaxFailure::Unavailable(why) => ToolError(why),
        SyntaxFailure::Lost(why) => ToolError(format!("The parser failed: {why}. Try it again.")),
    }
}
