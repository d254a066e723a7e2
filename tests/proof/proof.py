"""Compares qkv with PyTorch: every op, layer, model, optimizer and schedule, in float32 and float64, in one table.

Usage: proof.py PROGRAM    (the built qkv_proof)

PROGRAM writes values, outputs, gradients and updated values to a checkpoint file; PyTorch recomputes them from the
values alone. A difference is the largest of |qkv - PyTorch| over a tensor, as a share of the tensor's largest number;
for gradients, of the largest number in all gradients of the row. Exits with 77 where PyTorch is not installed.
"""
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import h5py
    import torch
except ImportError as error:
    print(f"skipped: the proof needs h5py and PyTorch ({error})")
    sys.exit(77)

import layer_recipes
import model_recipes
import optim_recipes

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))
import torch_ops
import torch_side

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
GRADIENT_CHECK = 1e-7
ROOT = pathlib.Path(__file__).parents[2]
COLUMNS = ["gradient check", "float32 output", "gradient", "10 steps", "float64 output", "gradient", "10 steps"]


def tensors(group, prefix=""):
    """Every dataset below a group, by dotted path."""
    found = {}
    for name, item in group.items():
        if isinstance(item, h5py.Group):
            found.update(tensors(item, f"{prefix}{name}."))
        else:
            found[prefix + name] = torch.from_numpy(item[...]) if item.shape else torch.tensor(item[()])
    return found


def largest(values):
    return max((value.abs().max().item() for value in values if value.numel()), default=0)


def difference(actual, expected, scale=None):
    """NaN and infinity where the shapes or the kinds of values differ."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return math.inf
    if not actual.numel():
        return 0.0
    scale = scale or largest([expected]) or 1
    return (actual - expected).abs().max().item() / scale


def worst(actual, expected, scale=None):
    """Over tensors by name."""
    if actual.keys() != expected.keys():
        return math.inf
    return max((difference(actual[name], expected[name], scale) for name in actual), key=not_below, default=0.0)


def not_below(value):
    return math.inf if math.isnan(value) else value


def below(found, prefix):
    return {name[len(prefix):]: value for name, value in found.items() if name.startswith(prefix)}


def compare_row(found, recipe):
    """Differences of output, gradients and values after ten steps; `recipe` takes the values by name."""
    values = {name: value.clone().requires_grad_() for name, value in below(found, "values.").items()}
    y = recipe(values)
    output = difference(found["output"], y.detach())
    (y * found["weights"]).sum().backward()
    expected = {name: torch.zeros_like(value) if value.grad is None else value.grad.clone()
                for name, value in values.items()}
    gradients = worst(below(found, "gradients."), expected, largest(expected.values()))
    optimizer = torch.optim.SGD(values.values(), lr=found["lr"].item(), momentum=0.9)
    for step in range(10):
        if step:
            optimizer.zero_grad()
            (recipe(values) * found["weights"]).sum().backward()
        optimizer.step()
    trained = worst(below(found, "trained."), {name: value.detach() for name, value in values.items()})
    return [output, gradients, trained]


def op_recipe(code):
    """The call of a row, in whose C++ the inputs are x0, x1, ..., and the results of its steps y0, y1, ..."""
    steps = [torch_side.python_of(step) for step in code.split("; ")]

    def recipe(values):
        names = {f"x{name}": value for name, value in values.items()}
        names["dtype"] = names["x0"].dtype
        return torch_side.result_of(steps, names)
    return recipe


def layer_recipe(call):
    return lambda values: call(below(values, "parameters."), *below(values, "inputs.").values())


def recipes_of(labels, codes, recipes):
    """{label: recipe} of the rows that are calls in C++, and of those that `recipes` has."""
    calls = {label: op_recipe(codes[label]) for label in labels if label in codes}
    return {**calls, **{label: layer_recipe(call) for label, call in recipes.items()}}


def prove_rows(group, recipe):
    cells = [group["gradient_check"][()] if "gradient_check" in group else None]
    for dtype in TOLERANCE:
        cells += compare_row(tensors(group[dtype]), recipe)
    return cells


def prove_optimizer(group, label):
    cells = [None]
    for dtype in TOLERANCE:
        found = tensors(group[dtype])
        p = {name: value.clone().requires_grad_() for name, value in below(found, "steps.0.").items()}
        made = list(optim_recipes.steps(label, p, found["x"], found["targets"], 10))
        cells += [None, None, max((worst(below(found, f"steps.{i + 1}."), now) for i, now in enumerate(made)),
                                  key=not_below)]
    return cells


def prove_schedule(group, label):
    return [None] * 4 + [difference(tensors(group)["rates"], optim_recipes.rates(label)), None, None]


def within_tolerance(cells):
    limits = [GRADIENT_CHECK] + [TOLERANCE["float32"]] * 3 + [TOLERANCE["float64"]] * 3
    return all(cell is None or cell <= limit for cell, limit in zip(cells, limits))


def show(label, cells, note):
    numbers = "".join(f"{'' if cell is None else format(cell, '.1e'):>15}" for cell in cells)
    print(f"{label:<48}{numbers}  {note}".rstrip())


def labels_of(file, section):
    return [label.decode().rstrip("\0") for label in file["vocabulary"][section]]


def prove(file, section, recipes, row):
    """Prints a section's rows; returns what failed, and the names that have rows."""
    labels = labels_of(file, section)
    failed = [f"{section}: the recipe of '{label}' has no row" for label in recipes if label not in labels]
    print(f"\n{section:<48}" + "".join(f"{column:>15}" for column in COLUMNS))
    for i, label in enumerate(labels):
        if label not in recipes:
            failed.append(f"{section}: the row '{label}' has no recipe")
            continue
        cells = row(file["model"][section][str(i)], label)
        ok = within_tolerance(cells)
        formula = label.split(":")[0] in torch_ops.FORMULAS
        show(label, cells, ("" if ok else "FAILED") + ("PyTorch 1.13 lacks it: formula" if formula else ""))
        if not ok:
            failed.append(f"{section}: '{label}' differs")
    return failed, {label.split(":")[0] for label in labels}


def enumerators(header, name):
    """The values of an enumeration."""
    text = re.sub("//.*", "", (ROOT / header).read_text())
    return set(re.search(rf"enum class {name} {{(.*?)}}", text, re.S)[1].replace(",", " ").split())


def ops():
    """Every function of core/ops.h that can be differentiated."""
    text = (ROOT / "core/ops.h").read_text()
    constants = {"attention_weights", "rotary_cos_sin"}
    return set(re.findall(r"^(?:Tensor|std::vector<Tensor>|TopK) (\w+)\(", text, re.M)) - constants


def layers():
    """Every module that the headers of layers/ define whole."""
    text = "".join(path.read_text() for path in sorted((ROOT / "layers").glob("*.h")))
    return set(re.findall(r"struct (\w+)(?: final)? : Module {", text)) - {"Model"}


def kinds_of_layers():
    """Every kind of a layer, apart from those of models."""
    return enumerators("layers/options.h", "CellKind") | enumerators("layers/options.h", "PositionKind") - {"none"}


def shown_kinds(labels):
    """The "gru" of "Recurrent: gru, two layers"."""
    return {re.split("[:,] ", label)[1] for label in labels}


def main(program):
    torch.manual_seed(0)
    warnings.filterwarnings("ignore", message=".*epoch parameter.*")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "proof.h5"
        subprocess.run([program, str(path)], check=True)
        with h5py.File(path) as file:
            codes = dict(zip(labels_of(file, "called"), labels_of(file, "calls")))

            def rows_of(section, recipes):
                recipes = recipes_of(labels_of(file, section), codes, recipes)
                return prove(file, section, recipes, lambda group, label: prove_rows(group, recipes[label]))
            sections = [  # what must have a row, what the rows have shown
                (ops(), rows_of("ops", {})),
                (layers(), rows_of("layers", layer_recipes.RECIPES)),
                (enumerators("layers/options.h", "ModelKind"), rows_of("models", model_recipes.RECIPES)),
                (enumerators("optim/options.h", "OptimizerKind"),
                 prove(file, "optimizers", optim_recipes.OPTIMIZERS, prove_optimizer)),
                (enumerators("optim/options.h", "ScheduleKind"),
                 prove(file, "schedules", optim_recipes.SCHEDULES, prove_schedule)),
            ]
            sections.append((kinds_of_layers(), ([], shown_kinds(labels_of(file, "layers")))))
            rows = sum(len(file["vocabulary"][section]) for section in file["vocabulary"] if section not in ("called", "calls"))
    failed = [fault for _, (faults, _) in sections for fault in faults]
    failed += [f"{name} has no row in the proof"
               for wanted, (_, proved) in sections for name in sorted(wanted - proved)]
    print(f"\n{rows} rows; gradient checks within {GRADIENT_CHECK:g}, PyTorch {torch.__version__} within "
          f"{TOLERANCE['float32']:g} (float32) and {TOLERANCE['float64']:g} (float64): "
          + ("all of them" if not failed else f"{len(failed)} faults"))
    for fault in failed:
        print("  " + fault)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
