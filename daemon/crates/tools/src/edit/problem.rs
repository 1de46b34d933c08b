//! Why edits cannot be made, in pi's words.

/// The problem of a call's edits. Edits are named by their index in the call, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// The old text is empty.
    EmptyOld(usize),
    /// The file does not have the old text.
    NotFound(usize),
    /// The file has the old text this often.
    Ambiguous(usize, usize),
    /// Two edits want to change the same text.
    Overlap(usize, usize),
    /// The file would stay as it is.
    NoChange,
    /// The file changed while the edit was made.
    Changed,
    /// The run was aborted.
    Aborted,
}

impl Problem {
    /// The message for a call with `edits` edits of the file that the model calls `path`.
    pub(super) fn message(self, path: &str, edits: usize) -> String {
        let single = edits == 1;
        match self {
            Self::EmptyOld(_) if single => format!("oldText must not be empty in {path}."),
            Self::EmptyOld(index) => format!("edits[{index}].oldText must not be empty in {path}."),
            Self::NotFound(_) if single => format!(
                "Could not find the exact text in {path}. The old text must match exactly including all \
                 whitespace and newlines."
            ),
            Self::NotFound(index) => format!(
                "Could not find edits[{index}] in {path}. The oldText must match exactly including all \
                 whitespace and newlines."
            ),
            Self::Ambiguous(_, count) if single => format!(
                "Found {count} occurrences of the text in {path}. The text must be unique. Please provide more \
                 context to make it unique."
            ),
            Self::Ambiguous(index, count) => format!(
                "Found {count} occurrences of edits[{index}] in {path}. Each oldText must be unique. Please \
                 provide more context to make it unique."
            ),
            Self::Overlap(first, second) => format!(
                "edits[{first}] and edits[{second}] overlap in {path}. Merge them into one edit or target \
                 disjoint regions."
            ),
            Self::NoChange if single => format!(
                "No changes made to {path}. The replacement produced identical content. This might indicate an \
                 issue with special characters or the text not existing as expected."
            ),
            Self::NoChange => {
                format!("No changes made to {path}. The replacements produced identical content.")
            }
            Self::Changed => format!(
                "Could not edit file: {path}. It was changed by something else while the edit was being made, and \
                 nothing was written. Read the file again, then repeat the edit."
            ),
            Self::Aborted => crate::blocking::aborted().0,
        }
    }
}
