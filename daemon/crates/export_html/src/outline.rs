//! Splits the tree of a session into a sequence of pieces that a page can show and hide.
//!
//! A piece is a run of entries without a fork. The pieces of the current path come first, all others follow in the
//! order of the file. So the pieces of any branch are on the page in the order of the conversation.

use agentd_store::{EntryKind, SessionTree};

/// The pieces of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// In the order of the page.
    pub(crate) pieces: Vec<Piece>,
    /// How many of the first pieces are the current path.
    pub(crate) current: usize,
    /// The pieces without a parent.
    pub(crate) roots: Vec<usize>,
}

/// A run of entries without a fork.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its first entry, shown or not.
    pub(crate) first: u32,
    /// The shown entries, as indices in the order of the file.
    pub(crate) entries: Vec<u32>,
    /// The piece that this one follows.
    pub(crate) parent: Option<usize>,
    /// The pieces that follow this one, in the order of the file.
    pub(crate) children: Vec<usize>,
    /// The child to continue with by default: the one on the current path, else the one with the newest entry.
    pub(crate) next: Option<usize>,
}

/// Whether an entry is shown on the page. Labels and names are shown elsewhere; `custom` and `usage` are not for
/// people.
pub(crate) fn is_shown(kind: EntryKind) -> bool {
    !matches!(kind, EntryKind::Usage | EntryKind::Custom | EntryKind::Label | EntryKind::SessionInfo)
}

impl Outline {
    /// The pieces of a tree. Branches without shown entries are left out.
    pub(crate) fn new(tree: &SessionTree) -> Self {
        let shown: Vec<bool> = tree.entries().iter().map(|entry| is_shown(entry.kind())).collect();
        Self::of(&shown, tree.parents(), tree.leaf_index())
    }

    fn of(shown: &[bool], parents: &[Option<u32>], leaf: Option<u32>) -> Self {
        let nodes = Nodes::new(shown, parents, leaf);
        let mut outline = Self::default();
        let (current, others) = nodes.starts();
        outline.current = current.len();
        // The piece of each entry.
        let mut piece_of = vec![usize::MAX; shown.len()];
        // The newest entry in each piece or below it.
        let mut last = Vec::with_capacity(current.len() + others.len());
        for start in current.into_iter().chain(others) {
            let at = outline.pieces.len();
            let parent = parents[start].map(|parent| piece_of[parent as usize]);
            let mut piece = Piece { first: start as u32, parent, ..Piece::default() };
            let mut node = start;
            loop {
                piece_of[node] = at;
                if shown[node] {
                    piece.entries.push(node as u32);
                }
                match nodes.follower(node) {
                    Some(next) => node = next,
                    None => break,
                }
            }
            outline.pieces.push(piece);
            last.push(nodes.last[start]);
            match parent {
                Some(parent) => outline.pieces[parent].children.push(at),
                None => outline.roots.push(at),
            }
        }
        for at in 0..outline.pieces.len() {
            let mut children = std::mem::take(&mut outline.pieces[at].children);
            children.sort_by_key(|child| outline.pieces[*child].first);
            let on_path = children.iter().copied().find(|child| *child < outline.current);
            let piece = &mut outline.pieces[at];
            piece.next = on_path.or_else(|| children.iter().copied().max_by_key(|child| last[*child]));
            piece.children = children;
        }
        let pieces = &outline.pieces;
        outline.roots.sort_by_key(|root| pieces[*root].first);
        outline
    }
}

/// The tree of entries, with what is shown below each.
struct Nodes<'a> {
    parents: &'a [Option<u32>],
    /// The number of an entry's followers.
    followers: Vec<u32>,
    /// The last follower.
    follower: Vec<u32>,
    /// The newest shown entry from this one on; `None` when there is none.
    last: Vec<Option<u32>>,
    on_path: Vec<bool>,
    /// The end of the current path.
    leaf: Option<usize>,
}

impl<'a> Nodes<'a> {
    /// Parents precede their children, so one pass in each direction suffices at any depth.
    fn new(shown: &[bool], parents: &'a [Option<u32>], leaf: Option<u32>) -> Self {
        let count = shown.len();
        let mut last: Vec<Option<u32>> =
            shown.iter().enumerate().map(|(at, shown)| shown.then_some(at as u32)).collect();
        let (mut followers, mut follower) = (vec![0; count], vec![0; count]);
        for at in (0..count).rev() {
            if let (Some(parent), Some(_)) = (parents[at], last[at]) {
                let parent = parent as usize;
                last[parent] = last[parent].max(last[at]);
                if followers[parent] == 0 {
                    follower[parent] = at as u32;
                }
                followers[parent] += 1;
            }
        }
        let mut on_path = vec![false; count];
        let upwards = std::iter::successors(leaf, |at| parents[*at as usize]).map(|at| at as usize);
        let way: Vec<usize> = upwards.skip_while(|at| last[*at].is_none()).collect();
        for at in &way {
            on_path[*at] = true;
        }
        Self { parents, followers, follower, last, on_path, leaf: way.first().copied() }
    }

    /// The next entry in the same piece.
    fn follower(&self, at: usize) -> Option<usize> {
        (self.followers[at] == 1 && self.leaf != Some(at)).then(|| self.follower[at] as usize)
    }

    /// The first entries of the pieces on the current path, and of all others.
    fn starts(&self) -> (Vec<usize>, Vec<usize>) {
        let begins = |at: &usize| {
            self.last[*at].is_some()
                && self.parents[*at].is_none_or(|parent| self.follower(parent as usize) != Some(*at))
        };
        (0..self.parents.len()).filter(begins).partition(|at| self.on_path[*at])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOT: usize = usize::MAX;

    /// Each entry by its parent; `shown` has one letter per entry (`.` is not shown).
    fn outline(shown: &str, parents: &[usize], leaf: Option<u32>) -> Outline {
        let shown: Vec<bool> = shown.chars().map(|mark| mark != '.').collect();
        let parents: Vec<Option<u32>> =
            parents.iter().map(|parent| (*parent != ROOT).then_some(*parent as u32)).collect();
        Outline::of(&shown, &parents, leaf)
    }

    fn entries(outline: &Outline) -> Vec<Vec<u32>> {
        outline.pieces.iter().map(|piece| piece.entries.clone()).collect()
    }

    #[test]
    fn a_line_is_one_piece() {
        let outline = outline("a.b", &[ROOT, 0, 1], Some(2));
        assert_eq!((entries(&outline), outline.current), (vec![vec![0, 2]], 1));
    }

    #[test]
    fn the_current_path_comes_first() {
        // 0 - 1 - 2          0 - 3 - 4 (leaf)
        let outline = outline("abcde", &[ROOT, 0, 1, 0, 3], Some(4));
        assert_eq!((entries(&outline), outline.current), (vec![vec![0], vec![3, 4], vec![1, 2]], 2));
        assert_eq!((outline.pieces[0].children.clone(), outline.pieces[0].next), (vec![2, 1], Some(1)));
        assert_eq!(outline.pieces[2].parent, Some(0));
    }

    #[test]
    fn a_branch_without_anything_to_show_is_none() {
        // A label on a side branch, which is where the file ends.
        let outline = outline("ab.", &[ROOT, 0, 0], Some(2));
        assert_eq!((entries(&outline), outline.current), (vec![vec![0], vec![1]], 1));
        assert_eq!(self::outline("..", &[ROOT, 0], Some(1)), Outline::default());
    }

    #[test]
    fn what_comes_after_the_leaf_is_a_branch() {
        let outline = outline("abc", &[ROOT, 0, 1], Some(0));
        assert_eq!((entries(&outline), outline.current), (vec![vec![0], vec![1, 2]], 1));
    }

    #[test]
    fn there_may_be_many_roots_or_no_leaf() {
        let outline = outline("abc", &[ROOT, ROOT, 0], Some(1));
        assert_eq!((entries(&outline), outline.roots.clone()), (vec![vec![1], vec![0, 2]], vec![1, 0]));
        let outline = self::outline("ab", &[ROOT, 0], None);
        assert_eq!((outline.current, outline.roots), (0, vec![0]));
    }

    #[test]
    fn depth_and_width_cost_no_stack() {
        let count = 200_000;
        let parents: Vec<Option<u32>> = (0..count).map(|at: u32| at.checked_sub(2)).collect();
        let outline = Outline::of(&vec![true; count as usize], &parents, Some(count - 1));
        assert_eq!(outline.pieces.len(), 2);
        let star: Vec<Option<u32>> = (0..count).map(|at| (at > 0).then_some(0)).collect();
        assert_eq!(Outline::of(&vec![true; count as usize], &star, Some(7)).pieces.len(), count as usize);
    }

    proptest! {
        #[test]
        fn every_entry_is_on_its_path_in_order(
            tree in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 0..4u8), 1..40),
            leaf: prop::sample::Index,
        ) {
            let shown: Vec<bool> = tree.iter().map(|(shown, ..)| *shown).collect();
            let parents: Vec<Option<u32>> = tree.iter().enumerate().map(|(at, (_, parent, root))| {
                (at > 0 && *root > 0).then(|| parent.index(at) as u32)
            }).collect();
            let leaf = leaf.index(tree.len()) as u32;
            let outline = Outline::of(&shown, &parents, Some(leaf));
            let path = |from: u32| {
                let up = std::iter::successors(Some(from), |at| parents[*at as usize]);
                let mut path: Vec<u32> = up.filter(|at| shown[*at as usize]).collect();
                path.reverse();
                path
            };
            let current: Vec<u32> = outline.pieces[..outline.current].iter().flat_map(|piece| piece.entries.clone()).collect();
            prop_assert_eq!(current, path(leaf));
            let mut seen: Vec<u32> = Vec::new();
            for (at, piece) in outline.pieces.iter().enumerate() {
                seen.extend(&piece.entries);
                prop_assert!(piece.parent.is_none_or(|parent| parent < at && outline.pieces[parent].children.contains(&at)));
                prop_assert_eq!(piece.next.is_some(), !piece.children.is_empty());
                // Walking up from any piece gives its path, and the places on the page are in that order.
                if let Some(end) = piece.entries.last() {
                    let mut way: Vec<usize> = std::iter::successors(Some(at), |at| outline.pieces[*at].parent).collect();
                    way.reverse();
                    let entries: Vec<u32> = way.iter().flat_map(|at| outline.pieces[*at].entries.clone()).collect();
                    prop_assert_eq!(entries, path(*end));
                    prop_assert!(way.is_sorted());
                }
            }
            seen.sort_unstable();
            let all: Vec<u32> = (0..tree.len() as u32).filter(|at| shown[*at as usize]).collect();
            prop_assert_eq!(seen, all);
        }
    }
}
