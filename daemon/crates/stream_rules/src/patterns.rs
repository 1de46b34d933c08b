//! Many regular expressions as one automaton that is fed byte by byte.

use regex_automata::{
    MatchKind,
    hybrid::{
        LazyStateID,
        dfa::{Cache, DFA},
    },
    nfa::thompson,
    util::start,
};
use regex_syntax::{
    ParserBuilder,
    hir::{Hir, HirKind, Look},
};

/// The longest regular expression.
pub(crate) const MAX_PATTERN: usize = 4 << 10;

/// Bytes of the automaton of one regular expression, before it is determined.
const MAX_NFA: usize = 1 << 20;

/// Bytes of determined states that one stream keeps; beyond it they are made anew.
const MAX_CACHE: usize = 512 << 10;

/// Parses a regular expression for the stream.
///
/// # Errors
/// Why it cannot be used, in a clause.
pub(crate) fn parse(pattern: &str) -> Result<Hir, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("it is longer than {MAX_PATTERN} bytes"));
    }
    let parsed = ParserBuilder::new().utf8(false).build().parse(pattern);
    let hir = parsed.map_err(|error| reason(&error))?;
    if matches!(hir.properties().minimum_len(), Some(0) | None) && hir.properties().look_set().is_empty() {
        return Err("it matches nothing at all, or everywhere".to_owned());
    }
    let hir = with_ascii_words(hir);
    // Alone, so that a name can be given for what is too large.
    nfa(std::slice::from_ref(&hir), Some(MAX_NFA))
        .map(|_| hir)
        .ok_or_else(|| "it is too large, such as by a high number of repetitions".to_owned())
}

/// The reason of a parser in one line.
fn reason(error: &regex_syntax::Error) -> String {
    let text = match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        error => error.to_string(),
    };
    if text.contains("look-around") {
        "look-around ((?=, (?!, (?<=, (?<!) cannot be watched on a stream".to_owned()
    } else if text.contains("backreference") {
        "backreferences cannot be watched on a stream".to_owned()
    } else {
        text
    }
}

/// The automaton of regular expressions; `None` where it is too large.
fn nfa(patterns: &[Hir], limit: Option<usize>) -> Option<thompson::NFA> {
    let config = thompson::Config::new().utf8(false).nfa_size_limit(limit);
    thompson::Compiler::new().configure(config).build_many_from_hir(patterns).ok()
}

/// Word boundaries look at ASCII letters: whether others are letters is not known from byte to byte.
fn with_ascii_words(hir: Hir) -> Hir {
    let all = |parts: Vec<Hir>| parts.into_iter().map(with_ascii_words).collect::<Vec<_>>();
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            look => look,
        }),
        HirKind::Repetition(mut repetition) => {
            *repetition.sub = with_ascii_words(*repetition.sub);
            Hir::repetition(repetition)
        }
        // What is captured is not asked for.
        HirKind::Capture(capture) => with_ascii_words(*capture.sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

/// Regular expressions, each of a rule.
#[derive(Debug)]
pub(crate) struct PatternSet {
    dfa: DFA,
    /// The rule of each, by its index.
    rules: Vec<usize>,
}

impl PatternSet {
    /// Compiles them; `None` without any, and for those that are too large together, which each alone is not.
    pub(crate) fn new(patterns: Vec<(usize, Hir)>) -> Option<Self> {
        let (rules, patterns): (Vec<usize>, Vec<Hir>) = patterns.into_iter().unzip();
        if patterns.is_empty() {
            return None;
        }
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .cache_capacity(MAX_CACHE)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(None);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa(&patterns, None)?).ok()?;
        Some(Self { dfa, rules })
    }

    /// The beginning of a stream.
    pub(crate) fn begin(&self) -> Option<StreamState> {
        let mut cache = self.dfa.create_cache();
        let at = self.dfa.start_state(&mut cache, &start::Config::new()).ok()?;
        Some(StreamState { cache: Box::new(cache), at, is_over: false })
    }
}

/// Where the automaton is in one stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    cache: Box<Cache>,
    at: LazyStateID,
    is_over: bool,
}

impl StreamState {
    /// Goes on by these bytes. `found` gets the rule of each regular expression that has matched, as often as it does.
    pub(crate) fn feed(&mut self, patterns: &PatternSet, bytes: &[u8], mut found: impl FnMut(usize)) {
        if self.is_over {
            return;
        }
        for &byte in bytes {
            // Never fails: states are made anew when there are too many.
            let Ok(next) = patterns.dfa.next_state(&mut self.cache, self.at, byte) else {
                self.is_over = true;
                return;
            };
            self.at = next;
            if next.is_tagged() {
                self.report(patterns, &mut found);
            }
        }
    }

    /// The stream is over: what matches at its end has matched.
    pub(crate) fn end(&mut self, patterns: &PatternSet, mut found: impl FnMut(usize)) {
        if self.is_over {
            return;
        }
        if let Ok(next) = patterns.dfa.next_eoi_state(&mut self.cache, self.at) {
            self.at = next;
            if next.is_tagged() {
                self.report(patterns, &mut found);
            }
        }
        self.is_over = true;
    }

    fn report(&mut self, patterns: &PatternSet, found: &mut impl FnMut(usize)) {
        if self.at.is_match() {
            for index in 0..patterns.dfa.match_len(&self.cache, self.at) {
                let pattern = patterns.dfa.match_pattern(&self.cache, self.at, index);
                found(patterns.rules[pattern.as_usize()]);
            }
        } else if self.at.is_dead() || self.at.is_quit() {
            self.is_over = true;
        }
    }
}
