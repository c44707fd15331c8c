"""Parts of C99 files: the head that all programs share, arrays, and the check of a program's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from string import Template
from typing import Any, Final

from numpy import zeros
from numpy.typing import NDArray

from sparsact import files
from sparsact._version import __version__
from sparsact.saving.onnx_file import described

ON_A_LINE: Final = 8  # numbers
C_TYPES: Final = {
    "float64": "double",
    "float32": "float",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "int32": "int32_t",
}
_HEAD: Final = Template("""\
/* $what, written by sparsact $version.
 *
 * C99, no dependency, no state: any number of threads may call it. One row of $n_columns numbers to $n_targets:
 *
 *     void $name(const double x[$n_columns], double y[$n_targets]);
 *
 * $note Compile it without -ffast-math. With -DSPARSACT_STATIC the function is static, for files that include this one.
 */
#include <math.h> /* its macros alone: no library is linked */
#include <stddef.h>
#include <stdint.h>

#ifdef SPARSACT_STATIC
static
#endif
void $name(const double *x, double *y);
""")


def write_program(
    path: str | Path, name: str | None, description: str, in_c: Callable[[str], str], in_onnx: Callable[[], bytes]
) -> None:
    """Write a program to ``.c`` or ``.onnx``; a C function's name is by default the file's plus ``_predict``.

    A description becomes the first comment of the one, and the description of the other.

    Raises
    ------
    ValueError
        If the path ends otherwise, or C has no such name.
    """
    path = Path(path)
    name = f"{path.stem}_predict" if name is None else name
    kind = path.suffix.lower()
    if kind not in (".c", ".onnx"):
        raise ValueError(f"`path` must end with .c or .onnx; got {str(path)!r}.")
    if kind == ".c" and not (name.isidentifier() and name.isascii()):
        raise ValueError(f"{name!r} is not a name of a C function; pass a `name` of letters, digits and _.")
    if kind == ".c":
        files.write(path, (_comment(description) if description else "") + in_c(name))
    else:
        files.write(path, described(in_onnx(), description))


def head(what: str, name: str, n_columns: int, n_targets: int, note: str) -> str:
    """Comment with ``note``, a sentence on the input; headers, and the declaration of the function."""
    sizes = {"n_columns": n_columns, "n_targets": n_targets}
    return _HEAD.substitute(sizes, what=what, name=name, note=note, version=__version__)


def _comment(text: str) -> str:
    """Return lines as an ASCII comment, which none of their characters can end."""
    plain = text.encode("ascii", "backslashreplace").decode().replace("*/", "* /").replace("/*", "/ *")
    return "/* " + plain.replace("\n", "\n * ") + "\n */\n"


def array(name: str, values: NDArray[Any], *, bitwise: bool = False) -> str:
    """A constant array; ``bitwise`` writes floats by their bits, which compilers read faster."""
    flat = values.ravel() if values.size else zeros(1, values.dtype)
    kind = C_TYPES[flat.dtype.name]
    if not (bitwise and flat.dtype.kind == "f"):
        spellings: dict[str, Callable[[Any], str]] = {"u": hex, "i": str, "f": _in_c}
        spelt = spellings[flat.dtype.kind]
        return f"static const {kind} {name}[{len(flat)}] = {{\n{_lines(map(spelt, flat.tolist()))}\n}};\n"
    word = f"uint{8 * flat.dtype.itemsize}"
    bits = _lines(map(hex, flat.view(word).tolist()))
    declared = f"static const union {{ {word}_t bits[{len(flat)}]; {kind} numbers[{len(flat)}]; }}"
    return f"{declared} {name} = {{{{\n{bits}\n}}}};\n"


def _in_c(number: float) -> str:
    """A float as C99 spells it."""
    words = {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY"}
    return words.get(str(number)) or number.hex()


def _lines(numbers: Iterable[str]) -> str:
    texts = list(numbers)
    return ",\n".join(",".join(texts[start : start + ON_A_LINE]) for start in range(0, len(texts), ON_A_LINE))
