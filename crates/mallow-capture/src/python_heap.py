"""Writes a snapshot of CPython's heap, line by line; docs/guide/heap-python.md tells what stands in the lines.

Nothing of the program's is called: no method, no property, no `__del__`, no `repr`. `_mallow_heap` runs in a forked child, so what it makes of
itself never comes back to the program.
"""


def _mallow_frames():
    """What the variables of running calls hold: a name, and the values. It is for the parent: a child has the frames of one thread."""
    import sys

    here = sys._getframe(0).f_code.co_filename
    held = []
    for frame in sys._current_frames().values():
        calls = []
        while frame is not None:
            calls.append(frame)
            frame = frame.f_back
        if any(call.f_code.co_filename == here for call in calls):
            continue
        for call in calls:
            # The variables of a module are its dictionary's.
            if call.f_locals is not call.f_globals:
                code = call.f_code
                name = "%s (%s:%s)" % (code.co_name, code.co_filename, call.f_lineno)
                held.append((name, list(dict(call.f_locals).values())))
    return held


def _mallow_trace():
    """Tells the line that made an object, as a pair; none where nobody keeps it."""
    try:
        import _tracemalloc
    except ImportError:
        return None
    if not _tracemalloc.is_tracing():
        return None

    by_address = _mallow_trace_by_address()

    def made(thing):
        frames = _tracemalloc._get_object_traceback(thing)
        if frames is None and by_address is not None and type.__dict__["__flags__"].__get__(type(thing)) & 1 << 4:
            frames = by_address(0, id(thing) - 32)
        return frames[0] if frames else None

    return made


def _mallow_trace_by_address():
    """Python 3.11 itself looks for the lines of objects with attributes where they do not begin: 32 bytes behind that."""
    import sys

    if sys.version_info[:2] != (3, 11):
        return None
    try:
        import ctypes

        found = ctypes.pythonapi._PyTraceMalloc_GetTraceback
        found.restype = ctypes.py_object
        found.argtypes = [ctypes.c_uint, ctypes.c_size_t]
        return found
    except Exception:
        return None


class _MallowKind:
    """What is asked of all objects of a type, once."""

    __slots__ = ("number", "name", "is_heap", "is_type", "is_dict", "attributes", "slots", "has_own_size")

    def __init__(self, kind, number):
        import types

        of_type = type.__dict__["__dict__"].__get__
        # A type that was never asked for anything has none yet.
        bases = type.__dict__["__mro__"].__get__(kind) or (kind,)
        self.number = number
        self.is_heap = bool(type.__dict__["__flags__"].__get__(kind) & 512)
        self.is_type = type in bases
        self.is_dict = dict in bases
        self.attributes = None
        self.slots = []
        self.has_own_size = False
        is_known = False
        for base in bases:
            for name, value in list((of_type(base) or {}).items()):
                if name == "__dict__" and not is_known:
                    is_known = True
                    # A property of the program's is none that we ask.
                    self.attributes = value if type(value) is types.GetSetDescriptorType else None
                elif type(value) is types.MemberDescriptorType:
                    self.slots.append((name, value))
                elif name == "__sizeof__" and type(value) is types.FunctionType:
                    self.has_own_size = True
        self.name = type.__dict__["__name__"].__get__(kind)
        if self.is_heap:
            self.name = type.__dict__["__qualname__"].__get__(kind)
            module = (of_type(kind) or {}).get("__module__")
            if type(module) is str and module != "builtins":
                self.name = module + "." + self.name
        elif "." not in self.name:
            self.name = self.name if kind.__module__ == "builtins" else kind.__module__ + "." + self.name


class _MallowWalk:
    """Goes through all that the collector knows, and what that leads to."""

    def __init__(self):
        import gc
        import types

        self.referents = gc.get_referents
        self.kinds = {}
        # What refers to nothing.
        self.atoms = {str, int, float, complex, bytes, bool, type(None), bytearray, range}
        self.code, self.module, self.frame = types.CodeType, types.ModuleType, types.FrameType
        self.function, self.cell = types.FunctionType, type((lambda: types).__closure__[0])
        self.methods = (types.MethodType, types.BuiltinFunctionType)
        self.descriptors = (types.GetSetDescriptorType, types.MemberDescriptorType)
        self.paused = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame"}
        if hasattr(types, "AsyncGeneratorType"):
            self.paused[types.AsyncGeneratorType] = "ag_frame"
        # Dictionaries whose keys are names and no contents.
        self.name_dicts = set()
        # What objects referred to before they were asked for their dictionaries.
        self.kept_found = {}

    def kind(self, kind):
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = _MallowKind(kind, len(self.kinds))
        return found

    def named(self, thing, kind):
        """What an object calls those that it refers to: pairs."""
        if kind is self.function:
            names = ("__globals__", "__closure__", "__defaults__", "__kwdefaults__", "__code__")
            return [(name, getattr(thing, name)) for name in names]
        if kind in self.methods:
            return [(name, getattr(thing, name, None)) for name in ("__self__", "__func__")]
        if kind in self.paused:
            frame = getattr(thing, self.paused[kind])
            return list(dict(frame.f_locals).items()) if frame is not None else []
        if kind is self.frame:
            return list(dict(thing.f_locals).items()) if thing.f_locals is not thing.f_globals else []
        about = self.kind(kind)
        pairs = []
        for name, slot in about.slots:
            try:
                pairs.append((name, slot.__get__(thing, kind)))
            except AttributeError:
                pass
        if about.attributes is not None:
            own = about.attributes.__get__(thing, kind)
            if type(own) is dict:
                pairs.append(("__dict__", own))
                # Newer versions keep the values in the object itself; they are found by their names all the same.
                pairs.extend(own.items())
        return pairs

    def references(self, thing, kind):
        """What an object refers to, and what it calls that: a list, True for places, or none that are known yet."""
        if kind is self.code:
            # The collector does not ask these. Its other tuples are made when somebody asks for them.
            names = ["co_consts", "co_names", "co_filename", "co_name"]
            return [getattr(thing, name) for name in names], names
        if kind is list or kind is tuple:
            return list(thing), True
        found = self.kept_found.get(id(thing)) or (self.referents(thing) if kind is not dict else [])
        if kind is dict or self.kind(kind).is_dict:
            return self.items(thing, found)
        return found, None

    def names(self, thing, kind, found):
        """What an object calls each that it refers to. To ask for its dictionary may make one, so this comes after all references are known."""
        names = {}
        for name, value in self.named(thing, kind):
            if value is not None and type(name) is str:
                names.setdefault(id(value), name)
        return [names.get(id(one)) for one in found] if names else None

    def find_name_dicts(self, kept):
        """Dictionaries whose keys are names of attributes, and no contents."""
        for thing in kept:
            kind = type(thing)
            if kind in self.atoms or kind in (list, tuple, dict, self.code):
                continue
            found = self.referents(thing)
            if kind is self.module or self.kind(kind).is_type:
                self.name_dicts.update(id(one) for one in found if type(one) is dict)
            elif self.kind(kind).attributes is not None:
                names = self.names(thing, kind, found) or []
                self.name_dicts.update(id(one) for one, name in zip(found, names) if name == "__dict__")
                self.kept_found[id(thing)] = found

    def items(self, thing, others):
        """Keys are held too, which the collector does not ask for where all of them are texts."""
        found, labels, left = [], [], {}
        for one in others:
            left[id(one)] = left.get(id(one), 0) + 1
        for key, value in list(dict.items(thing)):
            label = None
            if type(key) is str:
                label = key if len(key) <= 80 else key[:80] + "..."
            elif type(key) is int and 0 <= key < 1 << 30:
                label = key
            found += (key, value)
            labels += (None, label)
            for one in (key, value):
                if left.get(id(one)):
                    left[id(one)] -= 1
        # What a class derived from dict holds beside.
        for one in others:
            if left.get(id(one)):
                left[id(one)] -= 1
                found.append(one)
                labels.append("__dict__" if type(one) is dict else None)
        return found, labels

    def walk(self, own):
        """All objects, how often others refer to each, and where they are."""
        import gc
        import sys

        things = gc.get_objects()
        seen = set(map(id, things))
        kept, inward = [], {}
        hidden = set(map(id, own))
        hidden.update(map(id, (things, seen, kept, inward, own, self, self.kinds, self.atoms, self.paused)))
        hidden.update(map(id, (self.name_dicts, self.kept_found)))
        hidden.update((id(hidden), id(self.__dict__)))
        call = sys._getframe(0)
        while call is not None:
            hidden.add(id(call))
            call = call.f_back
        at = 0
        while at < len(things):
            thing = things[at]
            at += 1
            kind = type(thing)
            if id(thing) in hidden or kind is _MallowKind:
                continue
            kept.append(thing)
            if kind in self.atoms:
                continue
            found, _ = self.references(thing, kind)
            for one in found:
                key = id(one)
                inward[key] = inward.get(key, 0) + 1
                if key not in seen:
                    seen.add(key)
                    things.append(one)
        # Without the list in which they were found, each is held once here.
        del things[:], thing, one, found
        seen -= hidden
        return kept, inward, seen

    def unseen(self, kept, inward):
        """Objects that more hold than refer to them: calls of native code, the interpreter itself."""
        from sys import getrefcount

        # `kept`, the loop and the call hold each.
        ours = 3
        # The types that were asked are held once more, as keys.
        asked = set(map(id, self.kinds))
        found = []
        for thing in kept:
            kind = type(thing)
            if kind not in self.atoms and kind not in self.descriptors:
                count = getrefcount(thing) - ours - (id(thing) in asked)
                if count > inward.get(id(thing), 0):
                    found.append(id(thing))
        return found


def _mallow_size(thing, kind, about):
    """Bytes, with the collector's head; none where nobody knows. Without a method of the program's."""
    import sys

    try:
        if about.has_own_size:
            return object.__sizeof__(thing) + 16
        size = sys.getsizeof(thing, -1)
        return None if size < 0 else size
    except Exception:
        return None


def _mallow_heap(write, frames, redact):
    """Writes the lines. `frames` is what the parent's calls hold."""
    import gc
    import sys

    gc.disable()
    modules = [(name, module) for name, module in list(sys.modules.items()) if type(name) is str]
    walk = _MallowWalk()
    own = [frames, modules] + [pair for pair in modules] + [pair for pair in frames] + [pair[1] for pair in frames]
    kept, inward, seen = walk.walk(own)
    unseen = walk.unseen(kept, inward)
    inward.clear()
    # What these import is not of the program, so it comes behind the walk.
    import json

    made_at = _mallow_trace()
    out = []

    def quoted(text):
        return json.dumps(text.encode("utf-8", "replace").decode("utf-8"))

    def put(line):
        out.append(line)
        if len(out) >= 4000:
            flush()

    def flush():
        write(("\n".join(out) + "\n").encode("ascii"))
        del out[:]

    version = sys.version.split()[0]
    put('{"mallow":"python-heap/1","version":%s,"traced":%s}' % (quoted(version), "true" if made_at else "false"))
    known = set()
    for name, module in modules:
        known.add(id(module))
        if type(module) is walk.module:
            known.add(id(module.__dict__))
        put('{"root":%s,"r":[%d]}' % (quoted("module " + name), id(module)))
    for name, values in frames:
        known.update(map(id, values))
        put('{"root":%s,"r":%s}' % (quoted(name), [id(value) for value in values]))
    put('{"root":"native code","r":%s}' % [key for key in unseen if key not in known])
    if redact:
        walk.find_name_dicts(kept)
    sites, told = {}, set()
    for thing in kept:
        kind = type(thing)
        about = walk.kind(kind)
        if about.number not in told:
            told.add(about.number)
            group = "instance" if about.is_heap else "builtin"
            put('{"type":%d,"name":%s,"kind":"%s"}' % (about.number, quoted(about.name), group))
        row = '{"at":%d,"t":%d' % (id(thing), about.number)
        size = _mallow_size(thing, kind, about)
        if size is not None:
            row += ',"s":%d' % size
        if kind is str or kind is bytes:
            row += ',"h":%d,"n":%d' % (hash(thing) & 0xFFFFFFFFFFFFFFFF, len(thing))
            if not redact:
                text = thing[:200]
                row += ',"v":' + quoted(text if kind is str else text.decode("latin-1"))
        elif kind not in walk.atoms:
            found, labels = walk.references(thing, kind)
            if found and labels is None:
                labels = walk.names(thing, kind, found)
            if redact and about.is_dict and id(thing) not in walk.name_dicts:
                labels = None
            if labels is not True and not all(id(one) in seen for one in found):
                # It came behind the walk.
                told_of = [at for at, one in enumerate(found) if id(one) in seen]
                labels = labels and [labels[at] for at in told_of]
                found = [found[at] for at in told_of]
            if found:
                row += ',"r":%s' % [id(one) for one in found]
                if labels is True:
                    row += ',"i":true'
                elif labels and any(label is not None for label in labels):
                    texts = [quoted(one) if type(one) is str else "null" if one is None else str(one) for one in labels]
                    row += ',"l":[%s]' % ",".join(texts)
            name = None
            if kind is walk.module:
                name = dict.get(thing.__dict__, "__name__")
            elif kind is walk.function or about.is_type:
                name = thing.__qualname__ if kind is walk.function else type.__dict__["__qualname__"].__get__(thing)
            elif kind is walk.code:
                name = thing.co_name
            if type(name) is str:
                row += ',"name":' + quoted(name)
        made = made_at(thing) if made_at else None
        if made:
            site = sites.get(made)
            if site is None:
                site = sites[made] = len(sites)
                put('{"site":%d,"file":%s,"line":%d}' % (site, quoted(made[0]), made[1]))
            row += ',"m":%d' % site
        put(row + "}")
    put('{"end":%d}' % len(kept))
    flush()


def _mallow_in_a_child(work):
    """Runs something in the child of a child, so that the program goes on and has nobody to wait for later.

    What is to be collected is collected before: nothing is finalized in the child, which has the program's files and sockets.
    """
    import gc
    import os

    gc.collect()
    frames = _mallow_frames()
    child = os.fork()
    if child == 0:
        try:
            if os.fork() == 0:
                work(frames)
        except BaseException:
            pass
        finally:
            os._exit(0)
    try:
        os.waitpid(child, 0)
    except OSError:
        pass  # The program waits for any child, and had this one.


def _mallow_chain():
    """Runs the `sitecustomize` that would have run if this one were not in the way; its faults are its own."""
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as fault:
        if getattr(fault, "name", "sitecustomize") != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours
