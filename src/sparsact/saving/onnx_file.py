"""Writer of ONNX files: the few messages of ``onnx.proto`` that a graph of tensors needs.

The numbers of fields come from ONNX's protocol buffers [1]_, which never change.

References
----------
.. [1] https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sparsact._version import __version__

IR_VERSION: Final = 9
LARGEST: Final = 2**31 - 1  # bytes of a protocol buffer
ELEMENTS: Final = {  # TensorProto.DataType
    "float32": 1,
    "uint8": 2,
    "uint16": 4,
    "int64": 7,
    "bool": 9,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
}
Attribute = str | int | NDArray[Any] | Sequence[int]
_INT, _STRING, _TENSOR, _INTS = 2, 3, 4, 7  # AttributeProto.AttributeType


class OnnxGraph:
    """A graph to which nodes and constants are added; each has the name of its result.

    Parameters
    ----------
    opsets : dict of str to int
        Versions of the sets of operators, by domain; ``""`` is that of ONNX itself.
    """

    def __init__(self, opsets: dict[str, int]) -> None:
        self._opsets = opsets
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def constant(self, values: ArrayLike, dtype: DTypeLike | None = None) -> str:
        """Add a constant tensor to the graph, or find the equal one that it holds."""
        array = np.ascontiguousarray(values, dtype=dtype).reshape(np.shape(values))
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._names:
            self._names[key] = f"c{len(self._constants)}"
            self._constants.append(_tensor(array, self._names[key]))
        return self._names[key]

    def add(self, operator: str, *inputs: str, domain: str = "", result: str = "", **attributes: Attribute) -> str:
        """Add an operator, and return the name of its result, ``result`` or a new one."""
        result = result or f"t{len(self._nodes)}"
        node = [_text(1, name) for name in inputs]
        node += [_text(2, result), _text(4, operator)]
        node += [_message(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(b"".join(node) + (_text(7, domain) if domain else b""))
        return result

    def to_bytes(self, inputs: dict[str, Sequence[str | int]], outputs: dict[str, Sequence[str | int]]) -> bytes:
        """Return the bytes of a model file with float64 inputs and outputs; texts in shapes name variable lengths."""
        graph = [_message(1, node) for node in self._nodes]
        graph += [_text(2, "sparsact"), *(_message(5, constant) for constant in self._constants)]
        graph += [_message(11, _value(name, shape)) for name, shape in inputs.items()]
        graph += [_message(12, _value(name, shape)) for name, shape in outputs.items()]
        opsets = [_message(8, _text(1, domain) + _int(2, version)) for domain, version in self._opsets.items()]
        about = [_int(1, IR_VERSION), _text(2, "sparsact"), _text(3, __version__)]
        content = b"".join([*about, _message(7, b"".join(graph)), *opsets])
        if len(content) > LARGEST:
            raise ValueError(
                f"the model takes {len(content):,} bytes, more than a file of ONNX holds, {LARGEST:,}; export it as C, "
                "or pass a smaller `max_bytes`."
            )
        return content


def described(content: bytes, text: str) -> bytes:
    """Add a description to the bytes of a model, if there is one."""
    return content + _text(6, text) if text else content


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    digits = bytearray()
    while number >= 128:
        digits.append(number % 128 + 128)
        number //= 128
    return bytes([*digits, number])


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, str):
        kind, content = _STRING, _text(4, value)
    elif isinstance(value, int):
        kind, content = _INT, _int(3, value)
    elif isinstance(value, np.ndarray):
        kind, content = _TENSOR, _message(5, _tensor(value, ""))
    else:
        kind, content = _INTS, b"".join(_int(8, number) for number in value)
    return _text(1, name) + content + _int(20, kind)


def _tensor(array: NDArray[Any], name: str) -> bytes:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    shape = b"".join(_int(1, length) for length in array.shape)
    return shape + _int(2, ELEMENTS[array.dtype.name]) + _text(8, name) + _message(9, little.tobytes())


def _value(name: str, shape: Sequence[str | int]) -> bytes:
    dims = (_text(2, length) if isinstance(length, str) else _int(1, length) for length in shape)
    tensor = _int(1, ELEMENTS["float64"]) + _message(2, b"".join(_message(1, dim) for dim in dims))
    return _text(1, name) + _message(2, _message(1, tensor))
