"""The call sites of a module's text: where they are, what they call, and where a word puts a decision on one.

The text is that of LLVM's own printer: one line an instruction, attributes of functions in groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

DEFAULT, CALL, INLINE = range(3)
"""The values of a decision; a site that cannot be inlined has the first two."""
WORDS = {"0": "", "1": " noinline", "2": ' "function-inline-cost"="-1000000"'}
"""What stands on a call for each value.

With `alwaysinline` a call would be inlined before anything is simplified, which clang's replay does not do.
"""
_CONTINUED = " " * 10 + "to label"
_NAME = r'@("[^"]*"|[-\w.$]+)'
_DEFINE = re.compile(rf"^define ([^@]*){_NAME}(\(.*)$")
_CALL = re.compile(rf"^  (?:%\S+ = )?(?:(musttail|tail|notail) )?(?:call|invoke) [^@]*?{_NAME}(?=\()")
_GROUPS = re.compile(r"^attributes (#\d+) = \{ (.*) \}$", re.MULTILINE)
_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):')
_TARGETS = re.compile(r'label %("[^"]*"|[-\w.$]+)')
_DEBUG = re.compile(r",? !dbg !(\d+)")
_LOCAL = re.compile(r"\b(?:internal|private)\b")
_REPLACEABLE = re.compile(r"\b(?:weak|linkonce|extern_weak|common)\b")
_CONSTANT = re.compile(r"(?:null|true|false|undef|poison|zeroinitializer|-?\d+|@\S+)$")
_TARGET = re.compile(r'"target-(?:cpu|features)"="[^"]*"')


class Site(NamedTuple):
    """A call of a function that the module defines.

    Attributes:
      caller, callee: numbers of functions.
      end: where in the text a decision is written.
      note: from where to where its debug location is written.
      inlinable: whether LLVM can inline it when asked; otherwise the decision is `default` or `call`.
      free: whether the source leaves the decision open.
      arguments, constants: how many there are, and how many of them are constants.
      depth: loops around the call.
      location: number of its debug location, "" if it has none.
    """

    caller: int
    callee: int
    end: int
    note: tuple[int, int]
    inlinable: bool
    free: bool
    arguments: int
    constants: int
    depth: int
    location: str


@dataclass
class Function:
    """A function that the module defines.

    Attributes:
      name: its symbol.
      header: what `define` says.
      start: where `define` begins in the text.
      open: where its ` {` is.
      lines: its instructions, with their places in the text.
      words: its attributes, in full.
    """

    name: str
    header: str
    start: int
    open: int
    lines: list[tuple[int, str]] = field(default_factory=list)
    words: str = ""

    @property
    def local(self) -> bool:
        """Whether nobody outside the module can call it by its name."""
        return bool(_LOCAL.search(self.header.split("@", 1)[0]))

    def depths(self) -> list[int]:
        """Return the loops around each line, as far as the order of blocks shows them: jumps back enclose a loop."""
        labels = {found[1]: row for row, (_, line) in enumerate(self.lines) if (found := _LABEL.match(line))}
        change = [0] * (len(self.lines) + 1)
        for row, (_, line) in enumerate(self.lines):
            for target in _TARGETS.findall(line) if "label %" in line else ():
                if (first := labels.get(target, row + 1)) <= row:
                    change[first] += 1
                    change[row + 1] -= 1
        total, depths = 0, []
        for difference in change[:-1]:
            depths.append(total := total + difference)
        return depths


class Module:
    """The functions of a module's text and the call sites between them.

    Attributes:
      text: as LLVM prints it.
      functions: in the order of the text.
      sites: all calls of these functions, those that are not free, too, in the order of the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.functions = _functions(text)
        groups = dict(_GROUPS.findall(text))
        for function in self.functions:
            function.words = _spelled(function.header, groups)
        numbers = {function.name: number for number, function in enumerate(self.functions)}
        self._groups, self._reasons = groups, [_why_fixed(each, groups) for each in self.functions]
        self.sites = [site for number in numbers.values() for site in self._sites(number, numbers)]
        self.decisions = [site for site in self.sites if site.free]

    def _sites(self, number: int, numbers: dict[str, int]) -> list[Site]:
        caller = self.functions[number]
        depths, found = caller.depths(), []
        for (place, line), depth in zip(caller.lines, depths, strict=True):
            call = _CALL.match(line)
            if call is None or " asm " in line[: call.start(2)] or (name := call[2].strip('"')) not in numbers:
                continue
            end, arguments = _arguments(line, call.end())
            callee, rest = numbers[name], line[end:]
            words = _spelled(rest.split(", !", 1)[0], self._groups)
            location = _DEBUG.search(rest)
            note = location.span() if location else (len(rest), len(rest))
            note = place + end + note[0], place + end + note[1]
            fixed = {"noinline", "alwaysinline", "noduplicate"} & set(words.split()) or "optnone" in caller.words
            free = not fixed and self._reasons[callee] != "decided" and callee != number
            compatible = _TARGET.findall(caller.words) == _TARGET.findall(self.functions[callee].words)
            found.append(
                Site(
                    *(number, callee, place + end, note, compatible and not self._reasons[callee], free),
                    *(len(arguments), sum(bool(_CONSTANT.search(a)) for a in arguments), depth),
                    location[1] if location else "",
                )
            )
        return found

    def decided(self, decisions: str) -> str:
        """Return the text with a decision on each free site, `WORDS` by its number."""
        pieces, before = [], 0
        for site, decision in zip(self.decisions, decisions, strict=True):
            if decision != "0":
                pieces += [self.text[before : site.end], WORDS[decision]]
                before = site.end
        return "".join([*pieces, self.text[before:]])

    def numbered(self) -> str:
        """Return the text with the number of each site as its line, so that what LLVM says of a call names its site.

        Functions without debug information get what is needed for that.
        """
        base = 1 + max(map(int, re.findall(r"^!(\d+) =", self.text, re.MULTILINE)), default=0)
        known = [_DEBUG.search(function.header) for function in self.functions]
        scopes = [int(found[1]) if found else base + 4 + i for i, found in enumerate(known)]
        first = base + 4 + len(scopes)
        notes = [
            (f.open, f.open, f" !dbg !{k}")
            for f, k, found in zip(self.functions, scopes, known, strict=True)
            if not found
        ]
        notes += [(*site.note, f", !dbg !{first + i}") for i, site in enumerate(self.sites)]
        pieces, before = [], 0
        for start, end, note in sorted(notes):
            pieces += [self.text[before:start], note]
            before = end
        places = (f"line: {i + 1}, scope: !{scopes[site.caller]}" for i, site in enumerate(self.sites))
        lines = [*self._programs(base), *(f"!{first + i} = !DILocation({place})" for i, place in enumerate(places))]
        return "".join([*pieces, self.text[before:]]) + "\n".join(lines) + "\n"

    def _programs(self, base: int) -> list[str]:
        """Return debug information for all functions, numbered from `base`; that of the fifth is `base + 4`."""
        unit, file, kind, version = (f"!{base + i}" for i in range(4))
        flags = [] if '"Debug Info Version"' in self.text else [f"!llvm.module.flags = !{{{version}}}"]
        program = f"distinct !DISubprogram(scope: {file}, file: {file}, type: {kind}, unit: {unit}, spFlags: "
        return [
            *flags,
            f"!llvm.dbg.cu = !{{{unit}}}",
            f'{version} = !{{i32 2, !"Debug Info Version", i32 3}}',
            f"{unit} = distinct !DICompileUnit(language: DW_LANG_C11, file: {file}, emissionKind: NoDebug)",
            f'{file} = !DIFile(filename: "sites", directory: "")',
            f"{kind} = !DISubroutineType(types: !{{}})",
            *(f"!{base + 4 + i} = {program}DISPFlagDefinition)" for i in range(len(self.functions))),
        ]


def _functions(text: str) -> list[Function]:
    found, place, current = list[Function](), 0, None
    for line in text.splitlines(keepends=True):
        if define := _DEFINE.match(line.rstrip("\n")):
            opened = place + line.rindex(" {")
            current = Function(define[2].strip('"'), line.rstrip("\n"), place, opened)
            found.append(current)
        elif line.startswith("}"):
            current = None
        elif current and line.startswith(_CONTINUED):
            first, begun = current.lines[-1]
            current.lines[-1] = first, begun + "\n" + line.rstrip("\n")
        elif current:
            current.lines.append((place, line.rstrip("\n")))
        place += len(line)
    return found


def _spelled(words: str, groups: dict[str, str]) -> str:
    """Return words with the attributes of the groups that they name."""
    return re.sub(r"#\d+", lambda group: groups.get(group[0], ""), words)


def _arguments(line: str, start: int) -> tuple[int, list[str]]:
    """Return where the arguments of a call end, and these; the call's `(` is at `start`."""
    depth, quoted, begin, found = 0, False, start + 1, list[str]()
    for place in range(start, len(line)):
        letter = line[place]
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= 1
        if (letter == "," and depth == 1) or depth == 0:
            found += [line[begin:place].strip()] if line[begin:place].strip() else []
            begin = place + 1
        if depth == 0:
            return place + 1, found
    return len(line), found


def _why_fixed(function: Function, groups: dict[str, str]) -> str:
    """Return why a function cannot be inlined: `decided` by the source, or by what is in it; empty if it can."""
    words = set(function.words.split())
    if words & {"noinline", "alwaysinline", "optnone"} or _REPLACEABLE.search(
        re.sub(r"\w+_odr\b", "", function.header.split("@", 1)[0])
    ):
        return "decided"
    body = "\n".join(line for _, line in function.lines)
    called = set(re.findall(r"(?:call|invoke)[^\n]*", body))
    if "@llvm.va_start" in body or "@llvm.localescape" in body:
        return "it has varying arguments"
    if "indirectbr" in body or "callbr" in body:
        return "it jumps to addresses"
    if any("noduplicate" in _spelled(line, groups) or "returns_twice" in _spelled(line, groups) for line in called):
        return "it has a call that must not be copied"
    return ""
