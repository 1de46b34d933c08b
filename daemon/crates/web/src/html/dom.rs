//! The tree of an HTML document: nodes in one list, found by their number. Parsing takes bounded memory and time, whatever the input is.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    rc::Rc,
};

use html5ever::{
    Attribute, LocalName, Namespace, QualName,
    interface::tree_builder::ElemName,
    tendril::StrTendril,
    tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink},
};

use super::{tag::Tag, tokens::tokenize};

/// No node.
const NONE: u32 = u32::MAX;

/// Nodes of one document: about a hundred bytes each.
const MAX_NODES: usize = 400_000;

/// How deep elements are nested. Browsers stop at 512.
const MAX_DEPTH: u32 = 512;

/// The number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

impl NodeId {
    /// The node's place in lists with an item for each node.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

struct Node {
    parent: u32,
    first: u32,
    last: u32,
    previous: u32,
    next: u32,
    depth: u32,
    content: Content,
}

enum Content {
    /// The document, a comment, or the inside of a template.
    Other,
    Text(StrTendril),
    Element {
        tag: Tag,
        name: QualName,
        attributes: Vec<Attribute>,
        inside: u32,
    },
}

/// The tree of a document.
pub(crate) struct Dom {
    nodes: Vec<Node>,
    /// Whether the document was not read to its end, since it is too large, too deep or takes too long.
    pub(crate) is_cut: bool,
}

impl Dom {
    /// Parses a document. Any text is one.
    pub(crate) fn parse(text: &str) -> Self {
        let is_full = Rc::new(Cell::new(false));
        let builder = TreeBuilder::new(Sink::new(Rc::clone(&is_full)), TreeBuilderOpts::default());
        let is_cut = tokenize(text, &builder, &is_full);
        Self { nodes: builder.sink.finish(), is_cut: is_cut || is_full.get() }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The document.
    pub(crate) fn root(&self) -> NodeId {
        NodeId(0)
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The children of a node, in their order.
    pub(crate) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let first = self.node(id).first;
        std::iter::successors(some(first), |child| some(self.node(*child).next))
    }

    /// The parent of a node.
    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        some(self.node(id).parent)
    }

    /// The nodes above a node, from its parent on.
    pub(crate) fn ancestors(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.parent(id), |node| self.parent(*node)).take(2 * MAX_DEPTH as usize)
    }

    /// The text, for a text node.
    pub(crate) fn text(&self, id: NodeId) -> Option<&str> {
        match &self.node(id).content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The kind of an element.
    pub(crate) fn tag(&self, id: NodeId) -> Option<Tag> {
        match &self.node(id).content {
            Content::Element { tag, .. } => Some(*tag),
            _ => None,
        }
    }

    /// The value of an attribute.
    pub(crate) fn attribute(&self, id: NodeId, name: &str) -> Option<&str> {
        self.attributes(id).find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The attributes, each with its value.
    pub(crate) fn attributes(&self, id: NodeId) -> impl Iterator<Item = (&str, &str)> + '_ {
        let attributes = match &self.node(id).content {
            Content::Element { attributes, .. } => &attributes[..],
            _ => &[],
        };
        attributes.iter().map(|attribute| (&*attribute.name.local, &*attribute.value))
    }

    /// All nodes below a node, with itself, in the order of the document, in a single pass.
    pub(crate) fn below(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = Some(id);
        std::iter::from_fn(move || {
            let current = next?;
            let node = self.node(current);
            next = some(node.first).or_else(|| {
                let mut up = current;
                while up != id {
                    if let Some(sibling) = some(self.node(up).next) {
                        return Some(sibling);
                    }
                    up = self.parent(up)?;
                }
                None
            });
            Some(current)
        })
    }

    /// The first element of a kind below a node.
    pub(crate) fn find(&self, id: NodeId, tag: Tag) -> Option<NodeId> {
        self.below(id).find(|node| self.tag(*node) == Some(tag))
    }

    /// All text below a node, with runs of white space as one blank, up to some bytes.
    pub(crate) fn plain_text(&self, id: NodeId, most: usize) -> String {
        let mut text = String::new();
        for node in self.below(id) {
            if text.len() >= most {
                break;
            }
            if let Some(piece) = self.text(node) {
                push_collapsed(&mut text, piece);
            } else if self.tag(node).is_some_and(Tag::is_block) && !text.ends_with(' ') {
                text.push(' ');
            }
        }
        text.truncate(text.floor_char_boundary(most));
        text.trim().to_owned()
    }
}

/// Adds a text with runs of white space as one blank.
pub(crate) fn push_collapsed(to: &mut String, text: &str) {
    for character in text.chars() {
        if !is_space(character) {
            to.push(character);
        } else if !to.ends_with([' ', '\n']) {
            to.push(' ');
        }
    }
}

/// White space of HTML, which runs together; a no-break space does not.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\n' | '\t' | '\r' | '\u{c}')
}

fn some(id: u32) -> Option<NodeId> {
    (id != NONE).then_some(NodeId(id))
}

/// Builds the tree.
struct Sink {
    nodes: RefCell<Vec<Node>>,
    /// Told when there are too many nodes or too deep ones: the parser is to stop.
    is_full: Rc<Cell<bool>>,
}

impl Sink {
    fn new(is_full: Rc<Cell<bool>>) -> Self {
        let document = new_node(Content::Other);
        Self { nodes: RefCell::new(vec![document]), is_full }
    }

    fn add(&self, content: Content) -> u32 {
        let mut nodes = self.nodes.borrow_mut();
        let id = u32::try_from(nodes.len()).unwrap_or(NONE - 1);
        if nodes.len() >= MAX_NODES {
            self.is_full.set(true);
        }
        nodes.push(new_node(content));
        id
    }

    /// Puts a node without a parent below another one, before a sibling or at the end.
    fn link(&self, parent: u32, id: u32, before: u32) {
        let mut nodes = self.nodes.borrow_mut();
        let depth = nodes[parent as usize].depth.saturating_add(1);
        if depth > MAX_DEPTH {
            self.is_full.set(true);
        }
        let previous =
            if before == NONE { nodes[parent as usize].last } else { nodes[before as usize].previous };
        let node = &mut nodes[id as usize];
        (node.parent, node.previous, node.next, node.depth) = (parent, previous, before, depth);
        match previous {
            NONE => nodes[parent as usize].first = id,
            previous => nodes[previous as usize].next = id,
        }
        match before {
            NONE => nodes[parent as usize].last = id,
            before => nodes[before as usize].previous = id,
        }
    }

    fn unlink(&self, id: u32) {
        let mut nodes = self.nodes.borrow_mut();
        let Node { parent, previous, next, .. } = nodes[id as usize];
        if parent == NONE {
            return;
        }
        match previous {
            NONE => nodes[parent as usize].first = next,
            previous => nodes[previous as usize].next = next,
        }
        match next {
            NONE => nodes[parent as usize].last = previous,
            next => nodes[next as usize].previous = previous,
        }
        let node = &mut nodes[id as usize];
        (node.parent, node.previous, node.next) = (NONE, NONE, NONE);
    }

    /// Puts a node, or a text, below a parent, before a sibling or at the end. Texts beside each other become one.
    fn put(&self, parent: u32, child: NodeOrText<u32>, before: u32) {
        let id = match child {
            NodeOrText::AppendNode(id) => {
                self.unlink(id);
                id
            }
            NodeOrText::AppendText(text) => {
                let neighbour = {
                    let nodes = self.nodes.borrow();
                    if before == NONE { nodes[parent as usize].last } else { nodes[before as usize].previous }
                };
                if neighbour != NONE
                    && let Content::Text(present) = &mut self.nodes.borrow_mut()[neighbour as usize].content
                {
                    present.push_tendril(&text);
                    return;
                }
                self.add(Content::Text(text))
            }
        };
        self.link(parent, id, before);
    }
}

fn new_node(content: Content) -> Node {
    Node { parent: NONE, first: NONE, last: NONE, previous: NONE, next: NONE, depth: 0, content }
}

/// The name of an element, of its own: the list of nodes may grow while the parser holds it.
#[derive(Debug)]
struct Name {
    namespace: Namespace,
    local: LocalName,
}

impl ElemName for Name {
    fn ns(&self) -> &Namespace {
        &self.namespace
    }

    fn local_name(&self) -> &LocalName {
        &self.local
    }
}

impl TreeSink for Sink {
    type Handle = u32;
    type Output = Vec<Node>;
    type ElemName<'a> = Name;

    fn finish(self) -> Vec<Node> {
        self.nodes.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> u32 {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a u32) -> Name {
        match &self.nodes.borrow()[*target as usize].content {
            Content::Element { name, .. } => Name { namespace: name.ns.clone(), local: name.local.clone() },
            _ => Name { namespace: Namespace::default(), local: LocalName::default() },
        }
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> u32 {
        let inside = if flags.template { self.add(Content::Other) } else { NONE };
        self.add(Content::Element { tag: Tag::of(&name.local), name, attributes, inside })
    }

    fn create_comment(&self, _: StrTendril) -> u32 {
        self.add(Content::Other)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> u32 {
        self.add(Content::Other)
    }

    fn append(&self, parent: &u32, child: NodeOrText<u32>) {
        self.put(*parent, child, NONE);
    }

    fn append_based_on_parent_node(&self, element: &u32, previous: &u32, child: NodeOrText<u32>) {
        if self.nodes.borrow()[*element as usize].parent == NONE {
            self.append(previous, child);
        } else {
            self.append_before_sibling(element, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &u32) -> u32 {
        match &self.nodes.borrow()[*target as usize].content {
            Content::Element { inside, .. } if *inside != NONE => *inside,
            _ => *target,
        }
    }

    fn same_node(&self, one: &u32, other: &u32) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &u32, child: NodeOrText<u32>) {
        if let NodeOrText::AppendNode(id) = &child {
            if id == sibling {
                return;
            }
            self.unlink(*id);
        }
        let parent = self.nodes.borrow()[*sibling as usize].parent;
        if parent != NONE {
            self.put(parent, child, *sibling);
        }
    }

    fn add_attrs_if_missing(&self, target: &u32, more: Vec<Attribute>) {
        if let Content::Element { attributes, .. } = &mut self.nodes.borrow_mut()[*target as usize].content {
            for attribute in more {
                if !attributes.iter().any(|known| known.name == attribute.name) {
                    attributes.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &u32) {
        self.unlink(*target);
    }

    fn reparent_children(&self, node: &u32, new_parent: &u32) {
        loop {
            let child = self.nodes.borrow()[*node as usize].first;
            if child == NONE {
                return;
            }
            self.unlink(child);
            self.link(*new_parent, child, NONE);
        }
    }
}

#[cfg(test)]
mod tests;
