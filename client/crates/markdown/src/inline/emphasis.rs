//! Marks of emphasis in pairs.

use super::node::{Content, Marks, Node};

/// How far back openers are looked for, per kind of closer: what was in vain once is not tried again.
#[derive(Default)]
struct Bottoms([usize; 9]);

impl Bottoms {
    fn at(&mut self, marks: &Marks<'_>) -> &mut usize {
        let kind = match marks.mark {
            b'*' => 0,
            b'_' => 1,
            _ => return &mut self.0[8],
        };
        let group = if marks.opens { 2 } else { 0 } + usize::from(marks.text.len().is_multiple_of(3));
        &mut self.0[kind * 4 + group]
    }
}

/// Pairs the marks from `bottom` on, and turns the rest into text. Marks of the end that open something are closed there where the text
/// goes on.
pub(super) fn pair(nodes: &mut [Node<'_>], bottom: usize, goes_on: bool) {
    let mut openers: Vec<usize> = Vec::new();
    let mut bottoms = Bottoms::default();
    for at in bottom..nodes.len() {
        while let Content::Marks(closer) = &nodes[at].content {
            if !closer.closes || closer.text.is_empty() {
                break;
            }
            let lowest = *bottoms.at(closer);
            let fits = |opener: &&usize| matches(&nodes[**opener], closer);
            let found = openers.iter().rev().take_while(|opener| **opener >= lowest).find(fits).copied();
            let Some(opener) = found else {
                *bottoms.at(closer) = at;
                break;
            };
            let count = join(nodes, opener, at);
            while openers.last().is_some_and(|last| *last > opener) {
                openers.pop();
            }
            let is_used_up = matches!(&nodes[opener].content, Content::Marks(left) if left.text.is_empty());
            if is_used_up {
                openers.pop();
            }
            if count == 0 {
                break;
            }
        }
        if let Content::Marks(marks) = &nodes[at].content
            && marks.opens
            && !marks.text.is_empty()
        {
            openers.push(at);
        }
    }
    if goes_on && bottom == 0 {
        close_at_end(nodes, &openers);
    }
    for node in &mut nodes[bottom..] {
        if let Content::Marks(marks) = &node.content {
            node.content = Content::Text(marks.text);
        }
    }
}

fn matches(opener: &Node<'_>, closer: &Marks<'_>) -> bool {
    let Content::Marks(opener) = &opener.content else { return false };
    if opener.mark != closer.mark || opener.text.is_empty() {
        return false;
    }
    if opener.mark == b'~' {
        return opener.text.len() == closer.text.len();
    }
    let (length, other) = (opener.text.len(), closer.text.len());
    let is_odd = (opener.closes || closer.opens) && (length + other) % 3 == 0;
    !is_odd || (length % 3 == 0 && other % 3 == 0)
}

/// Emphasises what is between two runs of marks; gives how many marks of each are used.
fn join(nodes: &mut [Node<'_>], opener: usize, closer: usize) -> usize {
    let left = |node: &Node<'_>| match &node.content {
        Content::Marks(marks) => marks.text.len(),
        _ => 0,
    };
    let count = left(&nodes[opener]).min(left(&nodes[closer])).min(2);
    change(&mut nodes[opener], count, 1);
    change(&mut nodes[closer], count, -1);
    count
}

/// Takes marks from a run, and has the emphasis begin behind it (`1`) or end before it (`-1`).
fn change(node: &mut Node<'_>, count: usize, by: i32) {
    let Content::Marks(marks) = &mut node.content else { return };
    marks.text = &marks.text[count..];
    let emphases = if by > 0 { &mut node.after } else { &mut node.before };
    match (marks.mark, count) {
        (b'~', _) => emphases.strikethrough += by,
        (_, 2) => emphases.bold += by,
        _ => emphases.italic += by,
    }
}

fn close_at_end(nodes: &mut [Node<'_>], openers: &[usize]) {
    for at in openers {
        while let Content::Marks(marks) = &nodes[*at].content {
            // A single mark may be one of a pair that has not arrived whole.
            let count = marks.text.len().min(2);
            if count == 0 || (marks.mark == b'~' && count == 1) {
                break;
            }
            change(&mut nodes[*at], count, 1);
        }
    }
}
