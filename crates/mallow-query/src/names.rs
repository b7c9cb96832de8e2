//! Names for addresses: what the collector asks for at the end of a recording, and what a trace that was cut short lacks.

use crate::debuginfod;
use mallow_base::Frame;
use mallow_lookup::InChild;
use mallow_profile::Nameless;
use mallow_stacks::{Address, Location, Module, Stacks};
use mallow_symbols::{Ahead, DebugServer, Loss, ModuleKey, OnAttempt, OtherRoots, SearchPaths, Symbolizer};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Resolves addresses of a module in advance.
pub type ResolveAhead = Box<dyn FnMut(&Module, &[u64]) + Send>;

/// Looks names up.
pub struct Names {
    symbolizer: Symbolizer,
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

impl Names {
    /// Opens nothing yet.
    pub fn new() -> Self {
        Self { symbolizer: symbolizer() }
    }

    /// Returns a function that resolves symbols in advance, those of a program that is about to start. If nothing is cached of it, its files will have to be
    /// opened, and what opens them is started now, beside the program.
    pub fn looking_ahead(&mut self, program: Option<&Path>) -> ResolveAhead {
        let is_known =
            |program: &Path| program.canonicalize().is_ok_and(|program| self.symbolizer.has_kept(&program));
        if child().is_some() && !program.is_some_and(is_known) {
            InChild::prepare();
        }
        let ahead = Ahead::default();
        self.symbolizer = symbolizer().sharing(ahead.clone());
        let mut early = symbolizer().sharing(ahead);
        Box::new(move |module, calls| early.look_ahead(&key_of(module), calls))
    }

    /// The frames at addresses inside of calls.
    pub fn of_calls(&mut self, module: &Module, calls: &[u64]) -> Vec<Vec<Frame>> {
        self.symbolizer.resolve(&key_of(module), calls)
    }

    /// Returns the frames at return addresses of a module. A return address points behind its call, which may be the
    /// last instruction of a function, so the byte before it is resolved.
    fn of_returns(&mut self, module: &Module, returns: &[u64]) -> Vec<Vec<Frame>> {
        let calls: Vec<u64> = returns.iter().map(|address| address.saturating_sub(1)).collect();
        let mut frames = self.of_calls(module, &calls);
        for (frames, address) in frames.iter_mut().zip(returns) {
            // An address without a symbol is shown as it was on the stack.
            if let [frame] = frames.as_mut_slice()
                && is_address(&frame.function)
            {
                frame.function = format!("{address:#x}");
            }
        }
        frames
    }

    /// Names what stacks have only addresses for.
    pub fn complete(&mut self, stacks: &mut Stacks) {
        let mut missing: Vec<Vec<usize>> = vec![Vec::new(); stacks.modules.len()];
        for (index, location) in stacks.locations.iter().enumerate() {
            if let (true, Address::InModule { module, .. }) = (is_unnamed(location), location.address)
                && let Some(of_module) = missing.get_mut(module.0 as usize)
            {
                of_module.push(index);
            }
        }
        // A name in brackets is no file.
        let is_file = |module: &Module| !module.path.starts_with('[');
        for (module, indices) in stacks
            .modules
            .iter()
            .zip(missing)
            .filter(|(module, indices)| !indices.is_empty() && is_file(module))
        {
            let svma = |index: &usize| match stacks.locations[*index].address {
                Address::InModule { svma, .. } => svma,
                Address::Anonymous { avma } => avma,
                Address::Unknown => 0,
            };
            let returns: Vec<u64> = indices.iter().map(svma).collect();
            for (index, frames) in indices.into_iter().zip(self.of_returns(module, &returns)) {
                stacks.locations[index].frames = frames;
            }
        }
    }

    /// Returns whether there is a place in a file without a name.
    pub(crate) fn are_missing(stacks: &Stacks) -> bool {
        let in_file = |location: &Location| matches!(location.address, Address::InModule { .. });
        stacks.locations.iter().any(|location| in_file(location) && is_unnamed(location))
    }

    /// The same of one module, of places that are on a stack: those that have names since are still there without.
    pub(crate) fn are_missing_of(stacks: &Stacks, path: &str) -> bool {
        let is_in_it = |location: &Location| match location.address {
            Address::InModule { module, .. } => {
                stacks.modules.get(module.0 as usize).is_some_and(|module| module.path == path)
            }
            _ => false,
        };
        let mut on_stacks =
            stacks.nodes.iter().filter_map(|node| stacks.locations.get(node.location.0 as usize));
        on_stacks.any(|location| is_in_it(location) && is_unnamed(location))
    }

    /// Sentences about what was missing.
    pub fn warnings(&self) -> Vec<String> {
        let nameless = self.nameless();
        let sentences = nameless.iter().map(Nameless::sentence);
        self.symbolizer.warnings().iter().cloned().chain(sentences).chain(self.server_warning()).collect()
    }

    /// Returns the modules whose names are missing because looking them up failed.
    pub fn nameless(&self) -> Vec<Nameless> {
        let nameless =
            |Loss { module, reason }: &Loss| Nameless { module: module.clone(), reason: reason.clone() };
        self.symbolizer.losses().iter().map(nameless).collect()
    }

    /// Returns why a configured debuginfod server was not queried.
    pub fn server_warning(&self) -> Option<String> {
        debuginfod::warning()
    }
}

/// Where else to look, as whoever started mallow says.
#[derive(Clone, Debug, Default)]
pub struct DebugPlaces {
    /// Folders laid out like `/usr/lib/debug`, which come before it.
    pub debug_paths: Vec<PathBuf>,
    /// The root under which the modules' paths are valid.
    pub sysroot: Option<PathBuf>,
    /// Asked for a module's own file that is not at its path.
    pub other_roots: Option<OtherRoots>,
    /// Is told of each file that was tried.
    pub on_attempt: Option<OnAttempt>,
}

static PLACES: OnceLock<DebugPlaces> = OnceLock::new();

/// Has files looked for there from now on; only the first call counts.
pub fn look_in(places: DebugPlaces) {
    let _ = PLACES.set(places);
}

/// How many times as much memory and time as usual a look-up in a child gets; 0 where files are parsed in this process.
static PATIENCE: AtomicU32 = AtomicU32::new(0);
/// What somebody gets who asks for names that were given up.
const MUCH_PATIENCE: u32 = 10;

/// Has files parsed in a child process from now on: this program's executable is one that begins with [`mallow_lookup::is_child`].
pub fn look_up_in_child() {
    PATIENCE.store(1, Ordering::Relaxed);
}

/// Gives look-ups more memory and time.
pub fn look_up_with_patience() {
    PATIENCE.fetch_max(MUCH_PATIENCE, Ordering::Relaxed);
}

fn child() -> Option<InChild> {
    let patience = PATIENCE.load(Ordering::Relaxed);
    (patience != 0).then_some(InChild { patience })
}

fn symbolizer() -> Symbolizer {
    let server = debuginfod::is_wanted().then_some(DebugServer(debuginfod::debug_file));
    let DebugPlaces { debug_paths, sysroot, other_roots, on_attempt } =
        PLACES.get().cloned().unwrap_or_default();
    let debug_roots = debug_paths.into_iter().chain(SearchPaths::default().debug_roots).collect();
    let symbolizer = Symbolizer::new(SearchPaths { debug_roots, sysroot, other_roots, server, on_attempt });
    let symbolizer = match child() {
        Some(child) => symbolizer.asking(Arc::new(child)),
        None => symbolizer,
    };
    match kept_folder(|name| std::env::var_os(name)) {
        Some(folder) => symbolizer.keeping(folder),
        None => symbolizer,
    }
}

fn key_of(module: &Module) -> ModuleKey {
    ModuleKey { path: module.path.clone(), build_id: module.build_id.clone() }
}

/// Returns where symbols are cached: in the user's cache folder, unless the environment names another folder, or an
/// empty one for none.
fn kept_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(named) = variable(FOLDER_VARIABLE) {
        return (!named.is_empty()).then(|| named.into());
    }
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("mallow/symbols"))
}

/// Names the folder of answers.
const FOLDER_VARIABLE: &str = "MALLOW_SYMBOL_CACHE";

fn is_unnamed(location: &Location) -> bool {
    matches!(location.frames.as_slice(), [frame] if is_address(&frame.function))
}

fn is_address(function: &str) -> bool {
    function.strip_prefix("0x").is_some_and(|digits| u64::from_str_radix(digits, 16).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_stacks::ModuleId;

    #[test]
    fn answers_are_kept_where_the_environment_says() {
        let folder = |variables: &[(&str, &str)]| {
            kept_folder(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            })
        };
        let home = ("HOME", "/h");
        assert_eq!(folder(&[home]), Some("/h/.cache/mallow/symbols".into()));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "/c")]), Some("/c/mallow/symbols".into()));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "relative")]), Some("/h/.cache/mallow/symbols".into()));
        assert_eq!(folder(&[home, (FOLDER_VARIABLE, "/mine")]), Some("/mine".into()));
        assert_eq!((folder(&[home, (FOLDER_VARIABLE, "")]), folder(&[])), (None, None));
    }

    #[test]
    fn addresses_of_a_file_that_is_gone_stay_addresses() {
        let module = Module { path: "/nonexistent/libgone.so".into(), build_id: vec![1, 2, 3] };
        let address = Address::InModule { module: ModuleId(0), svma: 0x1234 };
        let frame =
            Frame { function: "0x1234".into(), module: Some(module.path.clone()), ..Frame::default() };
        let location = Location { address, frames: vec![frame.clone()] };
        let stacks = Stacks { modules: vec![module], locations: vec![location], ..Stacks::default() };
        let mut stacks = stacks;
        let mut names = Names::new();
        names.complete(&mut stacks);
        assert_eq!(stacks.locations[0].frames, [frame]);
        assert_eq!(names.warnings().len(), 1, "{:?}", names.warnings());
    }

    #[test]
    fn names_that_are_there_are_not_looked_up_again() {
        let address = Address::InModule { module: ModuleId(0), svma: 0x1234 };
        let frame = Frame { function: "0xfeed_me".into(), ..Frame::default() };
        let location = Location { address, frames: vec![frame.clone()] };
        let modules = vec![Module { path: "/nonexistent/libgone.so".into(), build_id: Vec::new() }];
        let stacks = Stacks { modules, locations: vec![location], ..Stacks::default() };
        let mut stacks = stacks;
        let mut names = Names::new();
        names.complete(&mut stacks);
        assert_eq!(stacks.locations[0].frames, [frame]);
        assert!(names.warnings().is_empty());
    }
}
