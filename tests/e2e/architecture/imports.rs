//! The import graph of a package's files, read off their syntax. Tests and macros' definitions are left out.
//!
//! A file imports another when it names an item that the other one defines; a re-export counts at the file that defines the item.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Item, ItemUse, UseTree,
    visit::{self, Visit},
};

/// Which files of one target import which, with the names that they take from each other.
pub(super) type Imports = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

/// The segments of a module's path, from the target's root.
type ModulePath = Vec<String>;

#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    /// What the module defines itself.
    items: HashSet<String>,
    /// Names that `use` brings in, and the paths that they stand for.
    aliases: Vec<(String, Vec<String>)>,
    /// The paths of `use …::*`.
    globs: Vec<Vec<String>>,
    /// All paths that the module names outside of `use`.
    paths: Vec<Vec<String>>,
}

/// The imports of the target whose root is that file.
pub(super) fn of_target(root: &Path) -> Imports {
    let mut modules = Modules::default();
    let folder = root.parent().expect("a root file stands in a folder");
    modules.read(root, folder, Vec::new());
    modules.imports()
}

/// The groups of nodes that import each other in a loop: strongly connected components of more than one node.
pub(super) fn circles<N: Ord + Clone>(graph: &BTreeMap<N, BTreeSet<N>>) -> Vec<Vec<N>> {
    let reach = |from: &N| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for next in graph.get(node).into_iter().flatten() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&N, BTreeSet<&N>> = graph.keys().map(|node| (node, reach(node))).collect();
    let mut found: Vec<Vec<N>> = Vec::new();
    for (node, below) in &reached {
        let circle: Vec<N> = below
            .iter()
            .filter(|other| **other != *node && reached.get(*other).is_some_and(|back| back.contains(*node)))
            .map(|other| (*other).clone())
            .chain([(*node).clone()])
            .collect::<BTreeSet<N>>()
            .into_iter()
            .collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[derive(Debug, Default)]
struct Modules(BTreeMap<ModulePath, Module>);

impl Modules {
    /// Reads a file as the module of that path. The files of its own modules stand in `folder`.
    fn read(&mut self, file: &Path, folder: &Path, path: ModulePath) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(syntax.items, file, folder, path);
    }

    fn add(&mut self, items: Vec<Item>, file: &Path, folder: &Path, path: ModulePath) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let below = [path.as_slice(), std::slice::from_ref(&name)].concat();
                    match inner.content {
                        Some((_, items)) => self.add(items, file, &folder.join(&name), below),
                        None => self.read_child(&inner.attrs, folder, &name, below),
                    }
                }
                Item::Use(inner) => module.add_use(&inner),
                other => {
                    module.items.extend(name_of(&other));
                    PathsOf(&mut module.paths).visit_item(&other);
                }
            }
        }
        assert!(self.0.insert(path, module).is_none(), "two modules of one path in {}", file.display());
    }

    fn read_child(&mut self, attributes: &[Attribute], folder: &Path, name: &str, path: ModulePath) {
        let chosen = attributes.iter().find(|attribute| attribute.path().is_ident("path"));
        assert!(chosen.is_none(), "{name}: a module whose file has another name is not read");
        let (flat, nested) = (folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs"));
        let file = if flat.is_file() { flat } else { nested };
        self.read(&file, &folder.join(name), path);
    }

    fn imports(&self) -> Imports {
        let mut imports: Imports =
            self.0.values().map(|module| (module.file.clone(), BTreeMap::new())).collect();
        for (path, module) in &self.0 {
            let used = module.aliases.iter().map(|(_, target)| target).chain(&module.paths);
            for target in used {
                if let Some((file, name)) = self.resolve(path, target, &mut HashSet::new())
                    && file != module.file
                {
                    imports.entry(module.file.clone()).or_default().entry(file).or_default().insert(name);
                }
            }
        }
        imports
    }

    /// The file that defines what a path names, as seen from a module, and the item's name. `None` for what other crates define.
    fn resolve(
        &self,
        from: &[String],
        path: &[String],
        seen: &mut HashSet<(ModulePath, Vec<String>)>,
    ) -> Option<(PathBuf, String)> {
        if !seen.insert((from.to_vec(), path.to_vec())) {
            return None;
        }
        let mut at = from.to_vec();
        let mut rest = path;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop();
                }
                _ => break,
            }
            rest = after;
        }
        loop {
            let Some((first, after)) = rest.split_first() else {
                // The module itself was imported; what is taken from it shows in the paths that begin with its name.
                return None;
            };
            let child = [at.as_slice(), std::slice::from_ref(first)].concat();
            if self.0.contains_key(&child) {
                at = child;
                rest = after;
                continue;
            }
            let module = self.0.get(&at)?;
            if module.items.contains(first) {
                return Some((module.file.clone(), first.clone()));
            }
            // `use json::json` brings in a name of another crate and does not lead back to itself.
            let leads_on = |target: &Vec<String>| target.first() != Some(first);
            let aliases = module.aliases.iter().filter(|(name, target)| name == first && leads_on(target));
            let aliases = aliases.map(|(_, target)| target);
            for target in aliases.chain(&module.globs) {
                let is_glob = module.globs.contains(target);
                let through = if is_glob {
                    [target.as_slice(), rest].concat()
                } else {
                    [target.as_slice(), after].concat()
                };
                if let Some(found) = self.resolve(&at, &through, seen) {
                    return Some(found);
                }
            }
            return None;
        }
    }
}

impl Module {
    fn add_use(&mut self, item: &ItemUse) {
        self.add_tree(&item.tree, &mut Vec::new());
    }

    fn add_tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree, before)),
            UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                self.aliases.push((last, before.clone()));
            }
            UseTree::Name(name) => self.add_alias(name.ident.to_string(), &name.ident.to_string(), before),
            UseTree::Rename(rename) => {
                self.add_alias(rename.rename.to_string(), &rename.ident.to_string(), before);
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
        }
    }

    fn add_alias(&mut self, alias: String, name: &str, before: &[String]) {
        self.aliases.push((alias, [before, &[name.to_owned()]].concat()));
    }
}

/// Collects the paths of an item, those inside of macro calls included.
struct PathsOf<'a>(&'a mut Vec<Vec<String>>);

impl<'ast> Visit<'ast> for PathsOf<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut module = Module::default();
        module.add_use(item);
        self.0.extend(module.aliases.into_iter().map(|(_, path)| path));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        paths_of_tokens(call.tokens.clone(), self.0);
        visit::visit_macro(self, call);
    }
}

fn paths_of_tokens(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    found.push(std::mem::take(&mut path));
                }
                path.push(ident.to_string());
                colons = 0;
                continue;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                colons += 1;
                continue;
            }
            TokenTree::Group(group) => paths_of_tokens(group.stream(), found),
            _ => {}
        }
        found.push(std::mem::take(&mut path));
        colons = 0;
    }
    found.push(path);
    found.retain(|path| !path.is_empty());
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let mut words = Vec::new();
        if attribute.path().is_ident("cfg")
            && let syn::Meta::List(list) = &attribute.meta
        {
            paths_of_tokens(list.tokens.clone(), &mut words);
        }
        // Laws of fuzzing are built for tests and fuzzers alone.
        attribute.path().is_ident("test") || words.iter().flatten().any(|word| word == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
