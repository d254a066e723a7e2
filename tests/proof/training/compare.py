"""What the program trains of a config against the reference."""
import math

import torch

from options import NEUTRAL, Config
from program import Failed, Refused, first_parameters, train
from reference import Reference

TOLERANCE = 1e-5  # of a value, of 1 where it is less
UNTRAINED = 1e-20  # what the step that gives the first parameters can change
ROUNDING = 20     # times the most that rounding changes in the reference up to that step
ERRORS = ("loss", "perplexity", "bits_per_token", "error")
HEADLINES = {"classify": "accuracy", "word-sense": "accuracy", "coreference": "accuracy", "tagging": "span_f1",
             "translate": "exact_match"}


def differences(config, folder):
    """[(kind, text), ...], the earliest first; empty where the program trains what the config says. Raises Undecided."""
    try:
        trained = train(config, folder)
        start = first_parameters(config, folder)
    except (Refused, Failed) as error:
        return [(type(error).__name__.lower(), str(error))]
    reference = Reference(config, folder, start)
    found = wrong_start(config, start) + wrong_choices(config, trained, reference.steps)
    if found:
        return found
    expected = values_of(reference.train(trained.last.step), trained.best.step)
    actual = values_in(trained)
    wrong = [name for name, value in expected.items() if distance(actual.get(name), value) > TOLERANCE]
    if wrong:
        roughs = [values_of(reference.train(trained.last.step), trained.best.step) for reference in
                  (Reference(config, folder, start, torch.float32), *(Reference(config, folder, start).moved(i) for i in range(3)))]
        found = [(name[0], f"step {name[1]}: {' '.join(map(str, name[2:]))} {shown(actual.get(name))}, expected "
                   f"{shown(expected[name])}") for name in wrong
                  if not distance(actual.get(name), expected[name]) <= ROUNDING * rounding(roughs, expected, name)]
    return found


def rounding(roughs, expected, name):
    """The most that float32 changes in the reference up to the step of a value; infinite where the value is. A gradient that is
    nearly zero makes of the last bits an update of Adam that no single run in float32 needs to show."""
    own = max(distance(rough.get(name), expected[name]) for rough in roughs)
    earlier = (distance(rough.get(other), value) for rough in roughs for other, value in expected.items() if other[1] <= name[1])
    return max([own, *filter(math.isfinite, earlier)])


def wrong_start(config, start):
    """The embeddings' standard deviation, within five times its standard error; biases of relative positions, which begin with 0."""
    wrong = [("positions", f"{path} does not begin with 0") for path, value in start.parameters.items()
             if path.endswith("attention.positions.weight") and abs(value).max() > UNTRAINED]
    if "model.embedding_std" not in config:
        return wrong
    table = start.parameters["embedding.weight"][1:]  # without padding
    std, wanted = float(table.std()), config["model.embedding_std"]
    far = abs(std - wanted) > 5 * wanted / math.sqrt(2 * table.size)
    return wrong + ([("embeddings", f"begin with a standard deviation of {std:.3g}, expected {wanted:g}")] if far else [])


def wrong_choices(config, trained, steps):
    """The last step, and the best checkpoint by the validation data as the program has them."""
    key = config["train.select"] or HEADLINES.get(config["task.kind"], "loss")
    best, behind, last = None, 0, steps
    for line in trained.metrics["valid"]:
        score = (-line[key] if key in ERRORS else line[key], -line["loss"])
        behind += 1
        if best is None or score > best[0]:
            best, behind = (score, line["step"]), 0
        if 0 < config["train.patience"] <= behind:
            last = min(last, line["step"])
    found = []
    if trained.last.step != last:
        found.append(("steps", f"{trained.last.step} steps, expected {last}"))
    if trained.best.step != best[1]:
        found.append(("best", f"the checkpoint of step {trained.best.step}, expected that of {best[1]}"))
    return found


def values_of(evaluations, best):
    """{(kind, step, name...): value} of the reference."""
    values = {}
    for step, found in evaluations.items():
        values |= {("train", step, name): value for name, value in found.train.items()}
        values |= {("valid", step, name): value for name, value in found.valid.items()}
        if step in (best, max(evaluations)):
            values |= {("parameters", step, name): value for name, value in found.parameters.items()}
    return values | {("test", best, name): value for name, value in evaluations[best].test.items()}


def values_in(trained):
    """The same of the program."""
    values = {(split, line["step"], name): value for split, lines in trained.metrics.items() for line in lines
              for name, value in line.items()}
    return values | {("parameters", run.step, name): torch.from_numpy(value)
                     for run in (trained.best, trained.last) for name, value in run.parameters.items()}


def distance(actual, expected):
    """The largest, as a share of the largest value or of 1."""
    if actual is None:
        return math.inf
    actual, expected = (torch.as_tensor(value, dtype=torch.float64) for value in (actual, expected))
    found = ((actual - expected).abs().max() / expected.abs().max().clamp(min=1)).item()
    return math.inf if math.isnan(found) else found


def shown(value):
    if isinstance(value, torch.Tensor):
        return "[" + ", ".join(f"{x:.6g}" for x in value.flatten()[:3]) + (", ...]" if value.numel() > 3 else "]")
    return "nothing" if value is None else f"{value:.7g}"


def idle_differences(option, context, folder):
    """Whether an option that nothing reads is accepted, and trains as if it were another value."""
    (key, value), = option.items()
    try:
        skips = (context | option).get("train.on_divergence") == "skip"
        changed = train(Config(context | option | ({} if skips else {"train.on_divergence": "detect"})), folder)
    except Refused:
        return []
    except Failed as error:
        return [("failed", f"{key} is refused too late: {error}")]
    neutral = {key: NEUTRAL[key]} if key in NEUTRAL else {}
    if not same(changed, train(Config(context | neutral), folder)):
        return []
    return [("idle", f"{key} is accepted, but {value} and {neutral.get(key, 'its default')} train the same")]


def same(a, b):
    """Whether metrics and parameters that both have are equal to the last bit."""
    shared = a.last.parameters.keys() & b.last.parameters.keys()
    return a.metrics == b.metrics and all((a.last.parameters[name] == b.last.parameters[name]).all() for name in shared)
