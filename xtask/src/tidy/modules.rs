//! Which file of a crate uses which other, and what of it: the edges that the rules about circles look at.
//!
//! A file uses another where it names an item of it: in an import, or in a path anywhere in its code, macros included. A name
//! that is exported again (`pub use`) leads to the file that defines it, and exporting it is no use. Tests (`#[cfg(test)]`)
//! are left out, and so are methods: who calls one need not name its type.

use super::{TextFile, Tree};
use proc_macro2::{Span, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// A module's place below the crate's root; the root's own is empty.
pub(super) type Place = Vec<String>;

/// A use of one file by another of the same crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) user: Place,
    pub(super) used: Place,
    /// The item's name.
    pub(super) name: String,
    /// Whether it is a type, a trait or a constant: something that is only declared.
    pub(super) is_declaration: bool,
    /// Where in the user's file, counted from 1.
    pub(super) line: usize,
}

/// The modules of one crate.
#[derive(Debug, Default)]
pub(super) struct Crate {
    /// Files relative to the repository, by the place of their module.
    pub(super) files: BTreeMap<Place, PathBuf>,
    /// In the order of their lines; one for each item that a file uses of another.
    pub(super) uses: Vec<Use>,
}

/// What a name of a module stands for.
#[derive(Debug, Clone)]
enum Meaning {
    Item {
        is_declaration: bool,
    },
    /// Another path, as written in this module.
    Path(Vec<String>),
}

/// A module while its crate is read. One with its body in the file of another has that file's place.
#[derive(Debug, Default)]
struct Module {
    file: Place,
    names: BTreeMap<String, Vec<Meaning>>,
    /// Paths of which all is imported.
    globs: Vec<Vec<String>>,
    /// What it names, with the line.
    mentions: Vec<(Vec<String>, usize)>,
}

impl Crate {
    /// The crate of a manifest, or none where the folder has no `src/lib.rs` or `src/main.rs`.
    pub(super) fn read(tree: &Tree, manifest: &Path) -> Option<Crate> {
        let sources = manifest.parent()?.join("src");
        let root = ["lib.rs", "main.rs"].iter().find_map(|name| tree.get(sources.join(name).to_str()?))?;
        let mut reader = Reader { tree, sources, files: BTreeMap::new(), modules: BTreeMap::new() };
        reader.file(root, &[]);
        let mut uses = BTreeMap::new();
        for (place, module) in &reader.modules {
            for (path, line) in &module.mentions {
                let Some((used, name, is_declaration)) = reader.resolved(place, path, 0) else { continue };
                let user = module.file.clone();
                if used != user {
                    let first = uses.entry((user, used, name)).or_insert((*line, is_declaration));
                    first.0 = first.0.min(*line);
                }
            }
        }
        let mut uses: Vec<Use> = uses
            .into_iter()
            .map(|((user, used, name), (line, is_declaration))| Use {
                user,
                used,
                name,
                is_declaration,
                line,
            })
            .collect();
        uses.sort_by(|one, other| (&one.user, one.line).cmp(&(&other.user, other.line)));
        Some(Crate { files: reader.files, uses })
    }
}

struct Reader<'a> {
    tree: &'a Tree,
    sources: PathBuf,
    files: BTreeMap<Place, PathBuf>,
    modules: BTreeMap<Place, Module>,
}

impl Reader<'_> {
    fn file(&mut self, file: &TextFile, place: &[String]) {
        // What is no Rust says nothing here; the compiler tells it better.
        let Ok(parsed) = syn::parse_file(&file.text) else { return };
        self.files.insert(place.to_vec(), file.path.clone());
        self.module(&parsed.items, place.to_vec(), place.to_vec());
    }

    fn module(&mut self, items: &[Item], place: Place, file: Place) {
        let mut module = Module { file: file.clone(), ..Module::default() };
        for item in items.iter().filter(|item| !attributes(item).iter().any(is_of_tests)) {
            match item {
                Item::Mod(inner) => {
                    let inner_place = [place.as_slice(), &[inner.ident.to_string()]].concat();
                    match &inner.content {
                        Some((_, items)) => self.module(items, inner_place, file.clone()),
                        None => self.file_of(&inner_place),
                    }
                }
                Item::Use(import) => {
                    let is_exported = !matches!(import.vis, Visibility::Inherited);
                    import_into(&mut module, &import.tree, &[], is_exported);
                }
                item => {
                    if let Some((name, is_declaration)) = defined(item) {
                        module.names.entry(name).or_default().push(Meaning::Item { is_declaration });
                    }
                    Mentions(&mut module.mentions).visit_item(item);
                }
            }
        }
        self.modules.insert(place, module);
    }

    /// Reads the file of `mod NAME;`.
    fn file_of(&mut self, place: &[String]) {
        let base = self.sources.join(place.join("/"));
        let file = [base.with_extension("rs"), base.join("mod.rs")];
        if let Some(file) = file.iter().find_map(|path| self.tree.get(path.to_str()?)) {
            self.file(file, place);
        }
    }

    /// The file, the name and the kind of what a path in the module at `place` names; none where that is not of this
    /// crate, or a module.
    fn resolved(&self, place: &[String], path: &[String], depth: usize) -> Option<(Place, String, bool)> {
        // Exports that lead to each other.
        if depth > 16 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => return self.resolved(&[], rest, depth + 1),
            "self" => return self.resolved(place, rest, depth + 1),
            "super" => return self.resolved(&place[..place.len().checked_sub(1)?], rest, depth + 1),
            _ => {}
        }
        let module = self.modules.get(place)?;
        let inner = [place, std::slice::from_ref(first)].concat();
        if !rest.is_empty() && self.modules.contains_key(&inner) {
            return self.resolved(&inner, rest, depth + 1);
        }
        for meaning in module.names.get(first).into_iter().flatten() {
            match meaning {
                Meaning::Item { is_declaration } => {
                    return Some((module.file.clone(), first.clone(), *is_declaration));
                }
                Meaning::Path(path) => {
                    // A name that is imported under itself is of another crate.
                    let whole = [path.as_slice(), rest].concat();
                    if path.first() != Some(first)
                        && let Some(found) = self.resolved(place, &whole, depth + 1)
                    {
                        return Some(found);
                    }
                }
            }
        }
        module
            .globs
            .iter()
            .filter(|glob| glob.first() != Some(first))
            .find_map(|glob| self.resolved(place, &[glob.as_slice(), path].concat(), depth + 1))
    }
}

/// Notes what an import names: under which name, and as a use unless it is exported again.
fn import_into(module: &mut Module, tree: &UseTree, before: &[String], is_exported: bool) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    let mut note = |name: String, path: Vec<String>, span: Span| {
        if !is_exported {
            module.mentions.push((path.clone(), span.start().line));
        }
        module.names.entry(name).or_default().push(Meaning::Path(path));
    };
    match tree {
        UseTree::Path(path) => import_into(module, &path.tree, &with(&path.ident), is_exported),
        UseTree::Name(name) if name.ident == "self" => {
            note(before.last().cloned().unwrap_or_default(), before.to_vec(), name.ident.span());
        }
        UseTree::Name(name) => note(name.ident.to_string(), with(&name.ident), name.ident.span()),
        UseTree::Rename(name) => note(name.rename.to_string(), with(&name.ident), name.ident.span()),
        UseTree::Glob(_) => module.globs.push(before.to_vec()),
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| import_into(module, tree, before, is_exported));
        }
    }
}

/// The name that an item gives to its module, and whether it is only declared.
fn defined(item: &Item) -> Option<(String, bool)> {
    let (name, is_declaration) = match item {
        Item::Const(item) => (&item.ident, true),
        Item::Enum(item) => (&item.ident, true),
        Item::Struct(item) => (&item.ident, true),
        Item::Trait(item) => (&item.ident, true),
        Item::Type(item) => (&item.ident, true),
        Item::Union(item) => (&item.ident, true),
        Item::Fn(item) => (&item.sig.ident, false),
        Item::Static(item) => (&item.ident, false),
        Item::Macro(item) => (item.ident.as_ref()?, false),
        _ => return None,
    };
    Some((name.to_string(), is_declaration))
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
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_of_tests(attribute: &Attribute) -> bool {
    let is_test = |list: &syn::MetaList| list.tokens.to_string() == "test";
    attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(is_test)
}

/// Gathers the paths of an item's code.
struct Mentions<'a>(&'a mut Vec<(Vec<String>, usize)>);

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first()) {
            let words = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.0.push((words, first.ident.span().start().line));
        }
        visit::visit_path(self, path);
    }

    /// `pub(in …)` says who may use something; it uses nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        if !method.attrs.iter().any(is_of_tests) {
            visit::visit_impl_item_fn(self, method);
        }
    }

    /// An import inside a function.
    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        let mut inside = Module::default();
        import_into(&mut inside, &import.tree, &[], false);
        self.0.append(&mut inside.mentions);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        of_tokens(called.tokens.clone(), self.0);
    }
}

/// Everything in a macro's tokens that reads like a path of two names or more.
fn of_tokens(tokens: TokenStream, mentions: &mut Vec<(Vec<String>, usize)>) {
    let is_colon =
        |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(it)) if it.as_char() == ':');
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Group(group) => of_tokens(group.stream(), mentions),
            TokenTree::Ident(first) => {
                let mut path = vec![first.to_string()];
                while is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1)) {
                    let Some(TokenTree::Ident(next)) = tokens.get(at + 2) else { break };
                    path.push(next.to_string());
                    at += 3;
                }
                if path.len() > 1 {
                    mentions.push((path, first.span().start().line));
                }
            }
            _ => {}
        }
    }
}
