//! Where the part of a context begins that a compaction leaves as it is. Pure.

/// The kind of an entry, as far as a cut depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextPiece {
    /// A message that can begin a turn: of the user, a command of the user's, a summary.
    Starter,
    /// An answer: a cut can be before it, and then splits its turn.
    Answer,
    /// A message that nothing can be cut off from: a tool result, or of the system.
    Bound,
    /// Nothing that the model sees: a choice of a model, a label.
    Silent,
    /// A message that an edit leaves out of the context.
    Omitted {
        /// Whether it is an answer.
        is_answer: bool,
    },
    /// A compaction.
    Compaction,
}

impl ContextPiece {
    fn can_be_first(self) -> bool {
        matches!(self, Self::Starter | Self::Answer)
    }

    /// Whether the model sees nothing of it, so that it may as well stay with what follows.
    fn is_invisible(self) -> bool {
        matches!(self, Self::Silent | Self::Omitted { .. })
    }
}

/// A place to cut at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// The first piece that stays.
    pub(super) first_kept: usize,
    /// Where the turn begins that the cut goes through, if it goes through one.
    pub(super) turn_start: Option<usize>,
}

/// Finds the cut that leaves about `keep` tokens, or a little more, at the end of `pieces`; nothing before `begin` is looked
/// at. `tokens` is asked from the end on, and only as far as needed. `None` when there is nothing that could stay.
pub(super) fn cut(
    pieces: &[ContextPiece],
    begin: usize,
    keep: u64,
    tokens: impl Fn(usize) -> u64,
) -> Option<Cut> {
    let candidates = |from: usize| (from..pieces.len()).find(|at| pieces[*at].can_be_first());
    let first = candidates(begin)?;
    let last = (begin..pieces.len()).rfind(|at| pieces[*at].can_be_first())?;
    let mut sum = 0_u64;
    let enough = (begin..pieces.len()).rev().find(|at| {
        sum = sum.saturating_add(tokens(*at));
        sum >= keep
    });
    let mut at = match enough {
        Some(enough) => candidates(enough).unwrap_or(last),
        None => first,
    };
    if enough.is_some() && leaves_only_failures(&pieces[at + 1..]) {
        at += 1;
    }
    while at > begin && pieces[at - 1].is_invisible() {
        at -= 1;
    }
    let splits = !pieces[at..]
        .iter()
        .find(|piece| !piece.is_invisible())
        .is_some_and(|kept| *kept == ContextPiece::Starter);
    let turn_start =
        splits.then(|| (begin..at).rfind(|before| pieces[*before] == ContextPiece::Starter)).flatten();
    Some(Cut { first_kept: at, turn_start })
}

/// Whether what follows a prompt is only a failed answer that was left out: then it is the prompt itself that the model did
/// not take, and it must not stay. (A prompt that is shorter than what may stay is not what fills a window: a summary of it would
/// be no shorter, and the model would not get to see what the user wrote.)
fn leaves_only_failures(after: &[ContextPiece]) -> bool {
    after.iter().all(|piece| piece.is_invisible())
        && after.contains(&ContextPiece::Omitted { is_answer: true })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `u`ser, `a`nswer, `r`esult, `s`ystem, `-` nothing, `x` an omitted answer, `o` an omitted result, `C`ompaction.
    fn piece(letter: char) -> ContextPiece {
        match letter {
            'u' => ContextPiece::Starter,
            'a' => ContextPiece::Answer,
            'r' | 's' => ContextPiece::Bound,
            '-' => ContextPiece::Silent,
            'x' => ContextPiece::Omitted { is_answer: true },
            'o' => ContextPiece::Omitted { is_answer: false },
            'C' => ContextPiece::Compaction,
            other => panic!("no piece is called {other}"),
        }
    }

    /// Every visible piece has ten tokens.
    fn check(pieces: &str, keep: u64, expected: Option<(usize, Option<usize>)>) {
        let list: Vec<ContextPiece> = pieces.chars().map(piece).collect();
        let begin = usize::from(list.first() == Some(&ContextPiece::Compaction));
        let tokens = |at: usize| if list[at].is_invisible() { 0 } else { 10 };
        let found = cut(&list, begin, keep, tokens).map(|cut| (cut.first_kept, cut.turn_start));
        assert_eq!(found, expected, "{pieces} keep {keep}");
    }

    #[test]
    fn what_is_kept_is_at_least_what_is_wished() {
        check("uauaua", 20, Some((4, None)));
        check("uauaua", 21, Some((3, Some(2))));
        check("uauaua", 30, Some((3, Some(2))));
        check("uauaua", 31, Some((2, None)));
        check("uauaua", 1, Some((5, Some(4))));
        check("uauaua", 0, Some((5, Some(4))));
    }

    #[test]
    fn a_short_context_is_kept_whole() {
        check("uaua", 1000, Some((0, None)));
        check("suaua", 1000, Some((1, None)));
        check("-suaua", 1000, Some((2, None)));
        check("", 10, None);
        check("s--", 10, None);
    }

    #[test]
    fn results_stay_with_their_calls() {
        // The sum is reached in a result: the cut is at what comes next.
        check("uarraru", 20, Some((6, None)));
        check("uarraru", 30, Some((4, Some(0))));
        check("uarra", 20, Some((4, Some(0))));
        check("uarra", 40, Some((1, Some(0))));
        // Nothing comes next: the last place where a cut can be.
        check("uarr", 10, Some((1, Some(0))));
        check("uar", 1000, Some((0, None)));
    }

    #[test]
    fn nothing_is_cut_behind_the_last_compaction() {
        check("Cuaua", 1000, Some((1, None)));
        check("Caua", 1000, Some((1, None)));
        check("Cuaua", 20, Some((3, None)));
        check("C--uaua", 1000, Some((1, None)));
    }

    #[test]
    fn what_nobody_sees_stays_with_what_follows() {
        check("ua--ua", 20, Some((2, None)));
        check("ua-x-ua", 20, Some((2, None)));
        check("uas-ua", 20, Some((3, None)));
    }

    #[test]
    fn a_prompt_that_was_not_taken_does_not_stay() {
        check("ux-", 1, Some((1, Some(0))));
        check("uaux-", 10, Some((3, Some(2))));
        check("uauox-", 10, Some((3, Some(2))));
        // Something else stays too: then the prompt does.
        check("uaux-", 11, Some((1, Some(0))));
        // The prompt is short.
        check("ux-", 11, Some((0, None)));
        check("sux-", 1000, Some((1, None)));
        // No answer was left out.
        check("uau--", 10, Some((2, None)));
    }

    proptest! {
        #[test]
        fn laws(letters in "[uars\\-xo]{0,40}", begins in any::<bool>(), keep in 0..200_u64) {
            let text = if begins { format!("C{letters}") } else { letters };
            let pieces: Vec<ContextPiece> = text.chars().map(piece).collect();
            let begin = usize::from(begins);
            let tokens = |at: usize| if pieces[at].is_invisible() { 0 } else { 10 };
            if let Some(Cut { first_kept, turn_start }) = cut(&pieces, begin, keep, tokens) {
                prop_assert!((begin..pieces.len()).contains(&first_kept));
                // What stays begins with a message that can be first, so that no result is without its call.
                let kept = pieces[first_kept..].iter().find(|piece| !piece.is_invisible());
                prop_assert!(kept.is_none_or(|piece| piece.can_be_first()), "{:?}", kept);
                if let Some(start) = turn_start {
                    prop_assert!((begin..first_kept).contains(&start));
                    prop_assert_eq!(pieces[start], ContextPiece::Starter);
                }
            }
        }
    }
}
