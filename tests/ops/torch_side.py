"""PyTorch's side of the ops' rows: evaluates cases that qkv_fuzz sends, in both types.

Usage: torch_side.py    (started by qkv_fuzz; exits with 77 where PyTorch is not installed)

A case is a line of JSON with the shapes of its inputs and the C++ of its steps, and then the inputs' values and the
output's weights as doubles. The C++ is read as Python, in which the functions of torch_ops.py stand for those of core/ops.h
and those of torch_layers.py for layers and optimizers. The answer is, for each type, the number of values and the values: the
output and the derivatives of sum(output weights) by each input.
"""
import json
import math
import re
import sys

try:
    import numpy
    import torch
except ImportError:
    sys.exit(77)

import torch_layers
import torch_ops

NAMES = {**vars(torch_ops), **vars(torch_layers)}  # which the C++ of a case may use
torch.set_num_threads(1)
torch.backends.mkldnn.enabled = False  # PyTorch 2.6's gradient of a convolution's input is wrong with it on AMD Zen 5


def python_of(code):
    """C++ as Python: braces become lists, or dictionaries where members are named."""
    code = code.replace("Tensor::from(", "Tensor(").replace("std::vector<int>", "vector").replace("::", ".")
    code = re.sub(r"(Shape|vector)(\{[^{}]*\})", r"\1(\2)", code).replace("Shape({", "Shape(*{")
    closing, text = [], ""
    for token in re.findall(r"\{\.(?=\w)|, \.(?=\w+ =)|[{}]|[^{},]+|,", code):
        if token == "{.":
            closing.append(")")
            text += "dict("
        elif token == "{":
            closing.append("]")
            text += "["
        elif token == "}":
            text += closing.pop()
        elif token == ", .":
            text += ", "
        else:
            text += token
    return text


def result_of(steps, names):
    """The value of the last step; `names` holds the inputs x0, x1, ... and the dtype."""
    for i, code in enumerate(steps):
        names[f"y{i}"] = eval(code, NAMES, names)  # text of the project's own program
    return names[f"y{len(steps) - 1}"]


def evaluated(case, values, weights, dtype):
    names = {f"x{i}": value.to(dtype).requires_grad_() for i, value in enumerate(values)}
    inputs = list(names.values())
    names["dtype"] = dtype
    y = result_of(case["steps"], names)
    weights = weights.repeat(y.numel() // len(weights) + 1)[:y.numel()].reshape(y.shape).to(dtype)
    gradients = [None] * len(inputs)
    if y.requires_grad:
        gradients = torch.autograd.grad((y * weights).sum(), inputs, allow_unused=True)
    parts = [y.detach()] + [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients)]
    return torch.cat([part.double().reshape(-1) for part in parts]).contiguous().numpy()


def main():
    torch._C._set_mkldnn_enabled(False)  # its GELU of a permuted tensor has undefined gradients
    read, write = sys.stdin.buffer, sys.stdout.buffer
    write.write(f"PyTorch {torch.__version__}\n".encode())
    write.flush()
    for line in read:
        case = json.loads(line)
        case["steps"] = [python_of(code) for code in case["steps"]]

        def doubles(count):
            return torch.from_numpy(numpy.frombuffer(read.read(8 * count), dtype=numpy.float64).copy())
        values = [doubles(math.prod(shape)).reshape(shape) for shape in case["inputs"]]
        weights = doubles(case["weights"])
        for dtype in (torch.float32, torch.float64):
            try:
                result = evaluated(case, values, weights, dtype)
                write.write(f"{len(result)}\n".encode() + result.tobytes())
            except Exception as error:  # the other side names the case
                write.write(f"! {type(error).__name__}: {error}".replace("\n", " ").encode() + b"\n")
        write.flush()


if __name__ == "__main__":
    main()
