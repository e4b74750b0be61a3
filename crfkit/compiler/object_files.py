"""Machine code of object files, brought into memory without LLVM.

LLVM takes 10 MB of its own, and room for each file, to copy some sections and write some addresses
into them. That is all that these files need on Linux with x86-64: their code is made for addresses
of 64 bits (System V ABI, AMD64 supplement, 2023; ELF-64 object file format, 1998).
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

# The first bytes of a file of 64 bits whose numbers begin with the lowest byte, and its machine.
MAGIC, X86_64 = b"\x7fELF\x02\x01", 62
_HEADER, _ADDRESS, _RELOCATION = Struct("<16x2HI3QI6H"), Struct("<Q"), Struct("<QIIq")
# Kinds of sections, those that are in memory, and those that are written to there.
BYTES, SYMBOLS, RELOCATIONS, ZEROS = 1, 2, 4, 8
WRITTEN, ALLOCATED = 1, 2
UNDEFINED, COMMON = 0, 0xFFF2  # in place of the section of a symbol
ABSOLUTE = 1  # the relocation that writes an address of 64 bits
READ, EXECUTE = 1, 4
# What was loaded stays: there may be addresses of it anywhere.
_LOADED: list[mmap.mmap] = []


class NotLoadableError(Exception):
    """An object file that is left to LLVM."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int  # in the file
    size: int
    link: int
    info: int  # of relocations the section that they are for
    alignment: int
    entry: int

    def rows(self, file: bytes, form: Struct) -> list[tuple[int, ...]]:
        """Return what the section holds, if that is a table."""
        end = self.offset + self.size
        return [form.unpack_from(file, at) for at in range(self.offset, end, form.size)]


class _Symbol(NamedTuple):
    name: int
    bound: int  # and its type
    seen: int
    section: int
    value: int
    size: int


def load_object(file: bytes, find: Callable[[str], int]) -> dict[str, int]:
    """Bring an object file into memory; returns the addresses of what others may refer to.

    `find` returns the address of a name that the file does not define, 0 where there is none.
    Raises `NotLoadableError` where the file, or the machine, is not of the kind known here.
    """
    if sys.platform != "linux" or not file.startswith(MAGIC):
        raise NotLoadableError("no object file of this system")
    header = _HEADER.unpack_from(file)
    if header[1] != X86_64:
        raise NotLoadableError("the machine code of another processor")
    first, count = header[5], header[11]
    table = _Section(0, 0, 0, 0, first, 64 * count, 0, 0, 0, 0)
    sections = [_Section(*row) for row in table.rows(file, Struct("<2I4Q2I2Q"))]
    [listed] = [section for section in sections if section.kind == SYMBOLS]
    symbols = [_Symbol(*row) for row in listed.rows(file, Struct("<I2BHQQ"))]
    first = sections[listed.link].offset
    names = [_text(file, first + symbol.name) for symbol in symbols]
    loaded = _Loaded(file, sections, symbols)
    loaded.relocate(names, find)
    loaded.protect()
    return {
        name: address
        for name, symbol, address in zip(names, symbols, loaded.addresses, strict=True)
        if symbol.bound >> 4 and symbol.section != UNDEFINED
    }


class _Loaded:
    """Sections in memory, those that are written to last, and the `addresses` of symbols."""

    def __init__(self, file: bytes, sections: list[_Section], symbols: list[_Symbol]) -> None:
        self.file, self.sections, self.symbols = file, sections, symbols
        # Not how to unwind the stack, which is of another kind: kernels raise nothing.
        held = [
            i for i, s in enumerate(sections) if s.flags & ALLOCATED and s.kind in (BYTES, ZEROS)
        ]
        self.starts, size = dict[int, int](), 0
        for written in (0, WRITTEN):
            for number in held:
                if sections[number].flags & WRITTEN == written:
                    size = _up(size, sections[number].alignment)
                    self.starts[number], size = size, size + sections[number].size
            if not written:
                self.fixed = size = _up(size, mmap.PAGESIZE)
        places = []
        for symbol in symbols:
            if symbol.section == COMMON:  # zeros, whose value is their alignment
                size = _up(size, symbol.value)
                places.append(size)
                size += symbol.size
            else:
                places.append(self.starts.get(symbol.section, 0) + symbol.value)
        self.memory = mmap.mmap(-1, max(size, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        _LOADED.append(self.memory)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.addresses = [self.base + place for place in places]
        for number, start in self.starts.items():
            section = sections[number]
            if section.kind == BYTES:
                data = file[section.offset : section.offset + section.size]
                self.memory[start : start + section.size] = data

    def relocate(self, names: list[str], find: Callable[[str], int]) -> None:
        """Write addresses to where they are asked for."""
        known = dict[int, int]()
        for section in self.sections:
            if section.kind != RELOCATIONS or section.info not in self.starts:
                continue
            start = self.starts[section.info]
            for offset, kind, number, added in section.rows(self.file, _RELOCATION):
                if kind != ABSOLUTE:
                    raise NotLoadableError(f"a relocation of kind {kind}")
                if number not in known:
                    known[number] = self._address(number, names[number], find)
                _ADDRESS.pack_into(self.memory, start + offset, known[number] + added)

    def _address(self, number: int, name: str, find: Callable[[str], int]) -> int:
        """Return the address of a symbol."""
        section = self.symbols[number].section
        if section == COMMON or section in self.starts:
            return self.addresses[number]
        address = find(name) if section == UNDEFINED else 0
        if not address:
            raise NotLoadableError(f"nothing has the name {name:.100}")
        return address

    def protect(self) -> None:
        """Make code executable, and write to it no more."""
        change = ctypes.CDLL(None, use_errno=True).mprotect
        where = ctypes.c_void_p(self.base), ctypes.c_size_t(self.fixed)
        if self.fixed and change(*where, READ | EXECUTE):
            raise NotLoadableError(f"mprotect: error {ctypes.get_errno()}")


def _text(file: bytes, at: int) -> str:
    """Return the name that begins at a place of a file."""
    return file[at : file.index(b"\0", at)].decode()


def _up(number: int, alignment: int) -> int:
    """Return the next multiple of an alignment."""
    return -(-number // max(alignment, 1)) * max(alignment, 1)
