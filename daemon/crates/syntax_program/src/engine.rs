//! Compiles queries, and finds their matches in texts.

use agentd_syntax::{Answer, MAX_LINE, MAX_MATCHES, MAX_PATTERN, MAX_TEXT, Match, Query};
use ast_grep_core::{
    AstGrep, Matcher as _, Pattern,
    matcher::PatternNode,
    replacer::{Replacer as _, TemplateFix},
    tree_sitter::StrDoc,
};

use crate::grammar::Grammar;

/// The shortest text that is worth looking for in files.
const MIN_LITERAL: usize = 2;

/// The most literals of a query.
const MAX_LITERALS: usize = 16;

/// The most bytes of replacements of one request: what is left of a line for JSON's escapes.
const MAX_REPLACED: usize = MAX_LINE / 4;

/// A query that can be used.
pub(crate) struct CompiledQuery {
    grammar: Grammar,
    pattern: Pattern,
    rewrite: Option<TemplateFix>,
}

impl CompiledQuery {
    /// # Errors
    /// A sentence why the query cannot be used.
    pub(crate) fn new(query: &Query) -> Result<Self, String> {
        let language = &query.language;
        let grammar = Grammar::of(language)
            .ok_or_else(|| format!("there is no grammar of the language {language:?}"))?;
        let parts = [Some(&query.pattern), query.selector.as_ref(), query.rewrite.as_ref()];
        if parts.into_iter().flatten().any(|part| part.len() > MAX_PATTERN) {
            return Err(format!("it is longer than {MAX_PATTERN} bytes"));
        }
        if query.pattern.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        let built = match &query.selector {
            Some(selector) => Pattern::contextual(&query.pattern, selector, grammar),
            None => Pattern::try_new(&query.pattern, grammar),
        };
        let pattern = built.map_err(|error| error.to_string())?;
        if pattern.has_error() || holds_error(&pattern.node) {
            return Err(format!("it is no code in {language}, or only a part that cannot stand alone"));
        }
        let rewrite =
            query.rewrite.as_deref().map(|rewrite| template(rewrite, &pattern, grammar)).transpose()?;
        Ok(Self { grammar, pattern, rewrite })
    }

    /// Texts that every text with a match contains.
    pub(crate) fn literals(&self) -> Vec<String> {
        let mut literals = Vec::new();
        collect_literals(&self.pattern.node, &mut literals);
        literals.sort_unstable_by_key(|literal| std::cmp::Reverse(literal.len()));
        literals.dedup();
        literals.truncate(MAX_LITERALS);
        literals
    }

    /// The matches in a text, and the bytes of their replacements.
    ///
    /// # Errors
    /// A clause why it was not parsed.
    pub(crate) fn matches(&self, text: &str, replaced: &mut usize) -> Result<Vec<Match>, String> {
        if text.len() > MAX_TEXT {
            return Err(format!("it is longer than {MAX_TEXT} bytes"));
        }
        let root = AstGrep::doc(StrDoc::try_new(text, self.grammar)?);
        let mut found: Vec<Match> = Vec::new();
        for node in root.root().find_all(&self.pattern) {
            let range = node.range();
            // Of a match within another one, only the outer one can be replaced.
            if self.rewrite.is_some() && found.last().is_some_and(|last| range.start < last.end) {
                continue;
            }
            if found.len() == MAX_MATCHES {
                return Err(format!("it has more than {MAX_MATCHES} matches"));
            }
            let replacement = self
                .rewrite
                .as_ref()
                .map(|rewrite| String::from_utf8_lossy(&rewrite.generate_replacement(&node)).into_owned());
            *replaced += replacement.as_ref().map_or(0, String::len);
            if *replaced > MAX_REPLACED {
                return Err("its replacements are too long".to_owned());
            }
            let end = match &self.rewrite {
                // A pattern may match the beginning of a node alone.
                Some(_) => self
                    .pattern
                    .get_match_len(node.get_node().clone())
                    .map_or(range.end, |length| range.start + length),
                None => range.end,
            };
            found.push(Match { start: range.start, end, replacement });
        }
        Ok(found)
    }

    /// The answer to a request with these texts.
    pub(crate) fn answer(&self, texts: &[String]) -> Answer {
        let mut replaced = 0;
        let texts = texts.iter().map(|text| guarded(|| self.matches(text, &mut replaced))).collect();
        Answer::Found { literals: self.literals(), texts }
    }
}

/// Runs what libraries do with a text of anybody's. A panic there is an answer about that text, and nothing more.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("the parser failed on it".to_owned()))
}

/// The kind of nodes that are no code.
const ERROR_KIND: u16 = u16::MAX;

/// Whether the code of a pattern has a fault anywhere: it would match nothing, or what it does not say. What is only missing at its end,
/// such as a semicolon, is none.
fn holds_error(node: &PatternNode) -> bool {
    match node {
        PatternNode::MetaVar { .. } => false,
        PatternNode::Terminal { kind_id, .. } => *kind_id == ERROR_KIND,
        PatternNode::Internal { kind_id, children } => {
            *kind_id == ERROR_KIND || children.iter().any(holds_error)
        }
    }
}

/// A rewriting.
///
/// # Errors
/// It has a name that the pattern does not have.
fn template(rewrite: &str, pattern: &Pattern, grammar: Grammar) -> Result<TemplateFix, String> {
    let template = TemplateFix::try_new(rewrite, &grammar).map_err(|error| error.to_string())?;
    let defined = pattern.defined_vars();
    let mut unknown: Vec<&str> =
        template.used_vars().into_iter().filter(|name| !defined.contains(name)).collect();
    unknown.sort_unstable();
    match unknown.first() {
        Some(name) => Err(format!("rewrite has ${name}, which the pattern does not have")),
        None => Ok(template),
    }
}

/// The texts of the named nodes without children, all of which a match has.
fn collect_literals(node: &PatternNode, literals: &mut Vec<String>) {
    match node {
        PatternNode::MetaVar { .. } => {}
        PatternNode::Terminal { text, is_named, .. } => {
            if *is_named && text.len() >= MIN_LITERAL {
                literals.push(text.clone());
            }
        }
        PatternNode::Internal { children, .. } => {
            children.iter().for_each(|child| collect_literals(child, literals));
        }
    }
}

#[cfg(test)]
mod tests;
