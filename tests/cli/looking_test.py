"""What a trained model shows of itself: explain, attend, embed, inspect and verify.

Usage: looking_test.py PROGRAM
"""
import itertools
import pathlib
import re
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from built_program import CONFIG, PROJECT, ProgramTest


class Looking(ProgramTest):
    def test_embed_finds_neighbours_and_principal_components_in_a_data_file(self):
        result = self.json("embed", "runs/tiny", "money bank grows", "--data", "test.tsv", "--nearest", 3, "--pca")
        self.assertEqual(len(result["sentences"][0]["neighbours"]), 3)
        self.assertIn("label", result["sentences"][0]["neighbours"][0])
        self.assertNotIn("bank", [n["word"] for n in result["sentences"][0]["static_neighbours"]])
        self.assertEqual(len(result["pca"]["contextual"]["points"]), 1 + 40)
        text = self.run_qkv("embed", "runs/tiny", "money bank grows", "--data", "test.tsv", "--pca").stdout
        self.assertIn("[bank]", text)
        self.assertIn("principal components", text)

    def test_the_embedding_projector_s_files_have_a_line_for_each_vector(self):
        self.run_qkv("embed", "runs/tiny", "money bank grows", "--data", "test.tsv", "--tsv", "v.tsv")
        vectors = [line.split("\t") for line in (self.folder / "v.tsv").read_text().splitlines()]
        metadata = [line.split("\t") for line in (self.folder / "v.metadata.tsv").read_text().splitlines()]
        self.assertEqual({len(v) for v in vectors}, {8})
        self.assertEqual({len(m) for m in metadata}, {4})
        self.assertEqual(len(metadata), len(vectors) + 1)  # it has a head

    def test_attend_gives_attention_statistics_of_each_head_over_a_data_file(self):
        result = self.json("attend", "runs/tiny", "--data", "test.tsv")
        self.assertEqual(result["sentences"], 40)
        for head in result["layers"][0]["heads"]:
            self.assertLess(0, head["self"])
            self.assertLessEqual(head["self"], 1)
        self.assertIn("layer 0, head 1", self.run_qkv("attend", "runs/tiny", "--data", "test.tsv").stdout)

    def test_attend_names_heads_over_a_data_file(self):
        head = self.json("attend", "runs/tiny", "--data", "test.tsv")["layers"][0]["heads"][0]
        self.assertEqual(list(head["scores"]), ["previous_token", "next_token", "first_token", "same_token", "induction"])
        highest = max(value for value in head["scores"].values() if value is not None)
        self.assertEqual(head["name"] is None, highest <= 0.5)
        self.assertIn("same token  induction", self.run_qkv("attend", "runs/tiny", "--data", "test.tsv").stdout)

    def test_ablate_lists_every_head_and_block_and_what_harms_most_first(self):
        found = self.json("ablate", "runs/tiny", "--together", "0.0,0.1", "--together", "0.ff")
        self.assertEqual(found["whole"], self.json("eval", "runs/tiny"))
        self.assertEqual({c["id"] for c in found["components"]}, {"0.0", "0.1", "0.ff"})
        losses = [c["mean"]["loss"] for c in found["components"]]
        self.assertEqual(losses, sorted(losses, reverse=True))
        for component in found["components"]:
            for kind in ("mean", "zero"):
                self.assertAlmostEqual(component[kind]["loss"] - found["whole"]["loss"], component[kind]["loss_change"])
        heads, block = found["together"]
        self.assertEqual((heads["components"], block["components"]), (["0.0", "0.1"], ["0.ff"]))
        alone = next(c for c in found["components"] if c["id"] == "0.ff")
        self.assertEqual((block["mean"], block["zero"]), (alone["mean"], alone["zero"]))
        self.assertEqual(found["components"], self.json("ablate", "runs/tiny", "--data", "test.tsv")["components"])
        self.assertIn("layer 0, head 1", self.run_qkv("ablate", "runs/tiny").stdout)
        self.assert_refused(["ablate", "runs/tiny", "--together", "0.2"], "no component 0.2; it has 0.0 0.1 0.ff")
        config = (self.folder / "tiny.toml").read_text()
        (self.folder / "static.toml").write_text(re.sub("^(heads|feed_forward|dropout) = .*\n", "", config, flags=re.M))
        self.run_qkv("train", "static.toml", "--run", "static", "--set", "model.kind=static", "--set", "train.steps=1")
        self.assert_refused(["ablate", "static"], "no attention heads or feed-forward blocks to ablate")

    def test_ablate_measures_every_task_with_blocks(self):
        (self.folder / "text.txt").write_text("to be or not to be\n" * 40)
        idiom, pronoun = (PROJECT / f"datasets/{name}/valid.tsv" for name in ("idiom", "pronoun"))
        for task, kind, data, metric in (("translate", "encoder-decoder", idiom, "exact_match"),
                                         ("language-model", "decoder", self.folder / "text.txt", "perplexity"),
                                         ("coreference", "encoder", pronoun, "accuracy")):
            with self.subTest(task):
                (self.folder / "one.toml").write_text(
                    f'name = "{task}"\n[task]\nkind = "{task}"\ntrain = "{data}"\ntest = "{data}"\n[model]\nkind = "{kind}"\n'
                    'width = 8\nheads = 2\nmax_length = 40\n[train]\nsteps = 20\nbatch = 4\n')
                self.run_qkv("train", "one.toml")
                found = self.json("ablate", f"runs/{task}")
                self.assertEqual(found["whole"], self.json("eval", f"runs/{task}"))
                self.assertEqual({metric, metric + "_change"}, set(found["components"][0]["mean"]) - {"loss", "loss_change"})
                stacks = {c["stack"] for c in found["components"]}
                self.assertEqual(stacks, set(kind.split("-")))

    def test_patch_shows_where_two_texts_differ(self):
        self.run_qkv("train", "tiny.toml", "--run", "longer", "--set", "train.steps=200")
        texts = [line.split("\t")[-1] for line in (self.folder / "train.tsv").read_text().splitlines()]
        said = zip(texts, (p["label"] for p in self.json("predict", "longer", *texts)["predictions"]))
        two = next([a, b] for (a, one), (b, other) in itertools.combinations(said, 2)
                   if one != other and len(a.split()) == len(b.split()) and a.split()[0] != b.split()[0]
                   and a.split().index("bank") == b.split().index("bank"))
        found = self.json("patch", "longer", *two)
        self.assertEqual(found["tokens"], {"clean": two[0].split(), "corrupt": two[1].split()})
        self.assertEqual([row["layer"] for row in found["residual"]], [0, 1])
        self.assertEqual([row["head"] for row in found["heads"]], [0, 1])
        self.assertAlmostEqual(found["residual"][0]["all"], 1, places=4)
        self.assertAlmostEqual(found["residual"][0]["positions"][two[0].split().index("bank")], 0, places=4)
        text = self.run_qkv("patch", "longer", *two).stdout
        for part in ("/".join(text.split()[0] for text in two), "before layer 0", "after layer 0", "output of attention", "layer 0, head 1"):
            self.assertIn(part, text)
        self.assertIn("\033[48;5;", self.in_terminal("patch", "longer", *two, COLORTERM=""))
        (self.folder / "pairs.tsv").write_text("\t".join(two) + "\n" + "\t".join(reversed(two)) + "\n")
        both = self.json("patch", "longer", "--data", "pairs.tsv")
        self.assertEqual(both["pairs"], 2)
        self.assertAlmostEqual(both["logit_difference"]["clean"], -both["logit_difference"]["corrupt"], places=4)
        self.assert_refused(["patch", "longer", two[0]], "give a clean and a corrupt text or --data, one of the two")
        self.assert_refused(["patch", "longer", two[0], two[0]], "take texts with different answers")
        self.assert_refused(["patch", "longer", two[0], "river bank"], "has 2 tokens")

    def test_linear_probes_read_the_label_at_each_layer(self):
        found = self.json("linear-probe", "runs/tiny")
        self.assertEqual((found["train"], found["test"]), (200, 40))
        self.assertEqual([layer["state"] for layer in found["layers"]], ["input", "layer 0", "contextual"])
        self.assertEqual(found, self.json("linear-probe", "runs/tiny", "--train", "train.tsv", "--data", "test.tsv"))
        self.assertIn("selectivity", self.run_qkv("linear-probe", "runs/tiny").stdout)
        self.assert_refused(["linear-probe", "runs/tiny", "--train", "none.tsv"], "there is no none.tsv")

    def test_linear_probes_of_a_run_whose_data_were_split_use_its_splits(self):
        lines = (self.folder / "train.tsv").read_text()
        (self.folder / "all.tsv").write_text(lines)
        data = ["--set", "task.train=", "--set", "task.valid=", "--set", "task.test=", "--set", "task.data=all.tsv", "--set", "train.steps=2"]
        for share, (train, test) in (("0", (180, 20)), ("0.2", (140, 40))):  # the valid split where there is no test split
            self.run_qkv("train", "tiny.toml", *data, "--set", f"task.test_share={share}", "--run", f"runs/split-{share}")
            found = self.json("linear-probe", f"runs/split-{share}")
            self.assertEqual((found["train"], found["test"]), (train, test))
        named = self.json("linear-probe", "runs/split-0.2", "--train", "train.tsv")
        self.assertEqual((named["train"], named["test"]), (200, 40))
        self.run_qkv("train", "tiny.toml", "--set", "task.fold=1/5", "--set", "train.steps=2", "--run", "runs/fold")
        found = self.json("linear-probe", "runs/fold")
        self.assertEqual((found["train"], found["test"]), (160, 40))

    def test_attend_shows_the_cross_attention_of_what_an_encoder_decoder_writes(self):
        (self.folder / "one.toml").write_text(
            f'name = "copy"\n[task]\nkind = "translate"\ntrain = "{PROJECT}/datasets/sequences/copy/valid.tsv"\n[model]\n'
            'kind = "encoder-decoder"\nwidth = 8\nheads = 2\nmax_length = 12\n[train]\nsteps = 2\n')
        self.run_qkv("train", "one.toml")
        found = self.json("attend", "runs/copy", "a b c", "--target", "d e")
        self.assertEqual((found["tokens"], found["inputs"], found["outputs"]),
                         (["a", "b", "c"], ["<bos>", "d", "e"], ["d", "e", "<eos>"]))
        self.assertEqual(np.array(found["cross"][0]["heads"]).shape, (2, 3, 3))
        np.testing.assert_allclose(np.triu(found["decoder"][0]["heads"][0], 1), 0)
        np.testing.assert_allclose(np.array(found["cross"][0]["heads"]).mean(0), found["alignment"], atol=1e-6)
        written = self.json("predict", "runs/copy", "a b c")["predictions"][0]["output"].split()
        own = self.json("attend", "runs/copy", "a b c")
        self.assertEqual(own["outputs"][:-1], written[:11])
        text = self.run_qkv("attend", "runs/copy", "a b c", "--target", "d e").stdout
        for part in ("encoder, layer 0, head 1", "decoder, layer 0, head 0", "cross-attention of each output", "alignment"):
            self.assertIn(part, text)
        self.assert_refused(["attend", "runs/tiny", "money bank grows", "--target", "x"], "--target: the model writes no text")

    def test_what_an_encoder_decoder_writes_is_explained_token_by_token(self):
        (self.folder / "one.toml").write_text(
            f'name = "copy"\n[task]\nkind = "translate"\ntrain = "{PROJECT}/datasets/sequences/copy/valid.tsv"\n[model]\n'
            'kind = "encoder-decoder"\nwidth = 8\nheads = 2\nmax_length = 12\n[train]\nsteps = 40\n')
        for norm, attention in (("pre", "learned"), ("post", "learned"), ("none", "learned"), ("pre", "parameter-free")):
            self.run_qkv("train", "one.toml", "--run", norm + attention, "--set", f"model.norm={norm}", "--set", f"model.attention={attention}")
            run, probability = norm + attention, 1
            cross = self.json("attend", run, "a b c")["cross"][0]["heads"]
            (prediction,) = self.json("predict", run, "a b c")["predictions"]
            outputs = prediction["output"].split()
            for i in range(min(len(outputs) + 1, 12)):
                found = self.json("explain", run, "a b c", "--output", i)
                best = int(np.argmax(found["logits"]))
                self.assertEqual(found["labels"][best], [*outputs, "<eos>"][i])
                probability *= found["probabilities"][best]
                module = next(a for a in found["attention"] if a["path"].endswith("cross_attention"))
                np.testing.assert_allclose([head["weights"] for head in module["heads"]], cross, atol=1e-6)
                self.assertEqual(found["logit_lens"][-1]["logits"], found["logits"])
                parts = found["attribution"]["parts"]
                self.assertAlmostEqual(sum(part["logit"] for part in parts), max(found["logits"]), places=4)
                ids = [part["component"]["id"] for part in parts if "component" in part]
                self.assertEqual(ids, ["decoder.0.0", "decoder.0.1", "decoder.0.cross.0", "decoder.0.cross.1", "decoder.0.ff"])
            self.assertAlmostEqual(probability, prediction["probability"], places=5)
        text = self.run_qkv("explain", run, "a b c", "--target", "c b a", "--output", 2).stdout
        for part in ("  0 a  1 b  2 c", "  0 <bos>  1 c  2 [b]  3 a", "k = W_k m + b_k", "after [b] here: "):
            self.assertIn(part, text)
        self.assertNotIn("encoder.layers", text.replace("decoder", ""))
        self.assertIn("encoder.layers.0", self.run_qkv("explain", run, "a b c", "--word", "b").stdout)
        self.assert_refused(["explain", run, "a b c", "--target", "a", "--output", 2], "--output 2: the model has 2 of them")
        self.assert_refused(["explain", "runs/tiny", "money bank grows", "--target", "a"], "--target: the model writes no text")
        text = self.run_qkv("gradients", run, "a b c", "--target", "c b").stdout
        for part in ("loss of the target: ", "read by the decoder", "decoder.layers.0.cross_attention.w_q.weight"):
            self.assertIn(part, text)
        (self.folder / "two.tsv").write_text("a b\tb a\nc d\td c\n")
        self.assertEqual(self.json("gradients", run, "--data", "two.tsv")["sentences"], 2)

    def test_explain_ends_in_the_logit_lens_and_the_parts_of_the_logit(self):
        found = self.json("explain", "runs/tiny", "money bank grows")
        self.assertEqual([state["after"] for state in found["logit_lens"]], ["input", "layer 0"])
        self.assertEqual(found["logit_lens"][-1]["logits"], found["logits"])
        parts = found["attribution"]["parts"]
        self.assertEqual([part["component"]["id"] for part in parts if "component" in part], ["0.0", "0.1", "0.ff"])
        self.assertAlmostEqual(sum(part["logit"] for part in parts), max(found["logits"]), places=4)
        text = self.run_qkv("explain", "runs/tiny", "money bank grows").stdout
        for part in ("what each layer would answer (logit lens)", "(direct logit attribution)", "layer 0, head 1"):
            self.assertIn(part, text)
        self.assertNotIn("logit lens", self.run_qkv("explain", "runs/tiny", "money bank grows", "--head", 0).stdout)

    def test_gradients_of_a_sentence_and_by_distance_over_a_data_file(self):
        found = self.json("gradients", "runs/tiny", "money bank grows")
        self.assertEqual(len(found["words"]), 3)
        self.assertEqual(len(found["contributions"]), 3)
        self.assertIn("encoder.layers.0.attention.w_q.weight", [p["path"] for p in found["parameters"]])
        found = self.json("gradients", "runs/tiny", "--data", "test.tsv")
        self.assertEqual(found["sentences"], 40)
        at = {d["distance"]: d["texts"] for d in found["distances"]}
        self.assertEqual(at[0], 40)
        before = self.json("gradients", "runs/tiny", "--data", "test.tsv", "--untrained")
        self.assertGreater(before["loss"], found["loss"])
        text = self.run_qkv("gradients", "runs/tiny", "money bank grows").stdout
        self.assertIn("norm of its vector's gradient", text)
        error = self.run_qkv("gradients", "runs/tiny", code=2).stderr
        self.assertEqual(error, "qkv: give a sentence or --data, one of the two\n")

    def test_scores_spread_more_after_training_than_before(self):
        spread = [self.json("attend", "runs/tiny", "--data", "test.tsv", *more)["layers"][0]["heads"][0]["score_variance"]
                  for more in ((), ("--untrained",))]
        self.assertNotEqual(*spread)
        self.assertIn("variance of scores", self.run_qkv("attend", "runs/tiny", "--data", "test.tsv").stdout)

    def test_static_vectors_written_as_word2vec_text_start_another_model(self):
        self.run_qkv("embed", "runs/tiny", "--word2vec", "v.txt")
        vectors = dict(line.split(" ", 1) for line in (self.folder / "v.txt").read_text().splitlines()[1:])
        shown = self.json("embed", "runs/tiny", "money bank grows")["sentences"][0]["static"]
        self.assertEqual(list(map(float, vectors["bank"].split())), [float(f"{v:.9g}") for v in shown])
        done = self.run_qkv("train", "tiny.toml", "--set", "model.embedding=v.txt", "--set", "train.steps=1", "--set",
                            "name=next")
        self.assertEqual(done.returncode, 0)
        error = self.run_qkv("embed", "runs/tiny", code=2).stderr
        self.assertIn("give a sentence, --data FILE, or --word2vec FILE", error)

    def test_verify_names_every_checkpoint_of_a_run_and_what_is_wrong_with_it(self):
        files = self.json("verify", "runs/tiny")["files"]
        self.assertEqual(len(files), 5)
        self.assertTrue(all(file["ok"] for file in files))
        best = self.json("verify", "runs/tiny/best.h5")["files"][0]
        self.assertRegex(best["parameters_checksum"], "^[0-9a-f]{16}$")
        self.assertRegex(self.run_qkv("verify", "runs/tiny/best.h5").stdout,
                         f'best.h5: valid, step .*, .* parameters with checksum {best["parameters_checksum"]}\n')
        # best.h5 is another name of a step file; another step has other parameters.
        same = {file["step"] for file in files if file["parameters_checksum"] == best["parameters_checksum"]}
        self.assertEqual(same, {best["step"]})
        damaged = self.folder / "runs/tiny/checkpoints/step-00000020.h5"
        content = bytearray(damaged.read_bytes())
        content[1000] ^= 1
        damaged.unlink()
        damaged.write_bytes(content)
        done = self.run_qkv("verify", "runs/tiny", code=1)
        self.assertIn("step-00000020.h5: ", done.stderr)
        self.assertEqual(done.stdout.count("valid"), 4)

    def test_explain_prints_what_the_model_computes(self):
        result = self.json("explain", "runs/tiny", "money bank grows", "--word", "bank")
        self.assertEqual((result["tokens"], result["index"]), (["money", "bank", "grows"], 1))
        for head in result["attention"][0]["heads"]:
            for row in head["weights"]:
                self.assertAlmostEqual(sum(row), 1, places=6)
        predicted = self.json("predict", "runs/tiny", "money bank grows")["predictions"][0]
        self.assertEqual(max(result["probabilities"]), predicted["probability"])
        text = self.run_qkv("explain", "runs/tiny", "money bank grows").stdout
        for part in ("0 money  1 [bank]  2 grows", "p_1 = P_1", "x_1 = e_1 + p_1", "d_k = 4", "/ sqrt(4)", "w_10", "weighted sum",
                     "concatenation", "W_o z_1 + b_o", "residual", "norm", f'{result["logits"][0]:.4f}', "prediction"):
            self.assertIn(part, text)

    def test_numpy_recomputes_the_logits_from_what_explain_prints(self):
        result = self.json("explain", "runs/tiny", "money bank grows")
        p = {path: np.array(values) for path, values in result["parameters"].items()}
        recorded = {step["path"]: np.array(step["values"]) for step in result["steps"]}

        def linear(x, path):
            return x @ p[path + ".weight"].T + p[path + ".bias"]

        def norm(x, path):
            centred = x - x.mean(-1, keepdims=True)
            return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p[path + ".weight"] + p[path + ".bias"]

        def gelu(x):
            return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

        e = recorded["static"]
        time, width = e.shape
        angles = np.arange(time)[:, None] / 10000 ** (2 * (np.arange(width) // 2) / width)
        x = e + np.where(np.arange(width) % 2, np.cos(angles), np.sin(angles))
        for module in result["attention"]:
            layer = module["path"].removesuffix(".attention")
            heads = len(module["heads"])
            h = norm(x, layer + ".norm_1")
            q, k, v = (np.split(linear(h, f"{module['path']}.{w}"), heads, axis=1) for w in ("w_q", "w_k", "w_v"))
            mixed = []
            for head in range(heads):
                scores = q[head] @ k[head].T / np.sqrt(width / heads)
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                weights /= weights.sum(-1, keepdims=True)
                np.testing.assert_allclose(weights, module["heads"][head]["weights"], atol=1e-5)
                mixed.append(weights @ v[head])
            x = x + linear(np.concatenate(mixed, axis=1), module["path"] + ".w_o")
            x = x + linear(gelu(linear(norm(x, layer + ".norm_2"), layer + ".feed_forward.w_1")), layer + ".feed_forward.w_2")
            np.testing.assert_allclose(x, recorded[layer + ".output"], atol=1e-5)
        logits = linear(norm(x, "encoder.norm")[result["index"]], "head")
        np.testing.assert_allclose(logits, result["logits"], atol=1e-5)

    def test_singular_values_are_numpy_s(self):
        w = {name: np.array(self.json("inspect", "runs/tiny", f"encoder.layers.0.attention.w_{name}.weight")["values"])
             for name in "qkvo"}
        heads = self.json("inspect", "runs/tiny")["heads"]
        for head in range(2):
            rows = slice(4 * head, 4 * head + 4)
            for key, product in (("qk", w["q"][rows].T @ w["k"][rows]), ("ov", w["o"][:, rows] @ w["v"][rows])):
                expected = np.linalg.svd(product, compute_uv=False)[:4]
                np.testing.assert_allclose(heads[head][key + "_singular_values"], expected, rtol=1e-4)

    def test_inspect_diff_lists_the_most_changed_first(self):
        first = "runs/tiny/checkpoints/step-00000020.h5"
        changes = self.json("inspect", "runs/tiny/last.h5", "--diff", first)["changes"]
        relative = [change["relative_change"] for change in changes]
        self.assertEqual(relative, sorted(relative, reverse=True))
        self.assertGreater(relative[0], 0)
        same = self.json("inspect", "runs/tiny/best.h5", "--diff", "runs/tiny")["changes"]
        self.assertEqual({change["distance"] for change in same}, {0})
        self.run_qkv("train", "tiny.toml", "--run", "wide", "--set", "model.width=16", "--set", "train.steps=1")
        self.assert_refused(["inspect", "runs/tiny", "--diff", "wide"], "--diff wide", ", 8) in one", ", 16) in the other")

    def test_forty_words_fit_a_terminal_of_eighty_columns(self):
        (self.folder / "long.toml").write_text(CONFIG.replace("max_length = 24", "max_length = 64"))
        self.run_qkv("train", "long.toml", "--run", "long", "--set", "train.steps=1")
        text = self.in_terminal("attend", "long", " ".join(["the bank grows again"] * 10), NO_COLOR="1")
        maps = [line for line in text.splitlines() if not line.startswith(("layer", "attention"))]
        self.assertGreater(len(maps), 40)
        self.assertLessEqual(max(map(len, maps)), 80)

    def test_every_kind_of_model_and_task_can_be_looked_at(self):
        (self.folder / "text.txt").write_text("to be or not to be\n" * 40)
        sentiment, pronoun, idiom = (PROJECT / f"datasets/{name}/valid.tsv" for name in ("sentiment", "pronoun", "idiom"))
        for kind, task, data in (("encoder", "classify", sentiment), ("recurrent", "classify", sentiment),
                                 ("convolution", "classify", sentiment), ("feed-forward", "word-sense", "valid.tsv"),
                                 ("static", "word-sense", "valid.tsv"), ("encoder", "coreference", pronoun),
                                 ("encoder-decoder", "translate", idiom), ("decoder", "language-model", "text.txt"),
                                 ("encoder", "masked-language-model", "valid.tsv")):
            with self.subTest(f"{kind}, {task}"):
                run = f"{kind}-{task}"
                own = 'heads = 2\nposition = "learned"\n' if "coder" in kind else ""
                (self.folder / f"{run}.toml").write_text(
                    f'name = "{run}"\n[task]\nkind = "{task}"\ntrain = "{data}"\ntest = "{data}"\n[model]\nkind = "{kind}"\n'
                    f'width = 8\nmax_length = 40\n{own}[train]\nsteps = 2\nbatch = 4\n')
                self.run_qkv("train", f"{run}.toml")
                folder, text = f"runs/{run}", "it was the bank" if task != "language-model" else "to be"
                word = "b" if task == "language-model" else "bank"
                explained = self.json("explain", folder, text, "--word", word)
                self.assertEqual(explained["steps"][-1]["path"], "contextual")
                self.assertEqual(len(explained["logits"]), len(explained["labels"]))
                self.assertIn("y_", self.run_qkv("explain", folder, text, "--word", word).stdout)
                self.json("embed", folder, text, "--word", word)
                self.json("inspect", folder)
                if "coder" in kind:
                    self.json("attend", folder, text)
                else:
                    self.assert_refused(["attend", folder, text], "no attention")
                self.run_qkv("report", folder)

    def test_explain_names_every_vector_that_a_formula_uses(self):
        for change in ("model.kind=static", "model.attention=parameter-free", "model.attention=uniform", "model.norm=post",
                       "model.kind=recurrent", "model.position=learned", "model.feed_forward=0"):
            with self.subTest(change):
                base = CONFIG.replace("heads = 2\nfeed_forward = 16\ndropout = 0.1\n", "")
                (self.folder / "one.toml").write_text(base.replace('name = "tiny"', f'name = "{change}"'))
                self.run_qkv("train", "one.toml", "--set", change, "--set", "train.steps=1", "--set", "model.layers=2"
                             if "static" not in change else "seed=1")
                lines = self.run_qkv("explain", f"runs/{change}", "money bank grows").stdout.splitlines()
                defined = set()
                for line in lines:
                    if match := re.match(r"  (\w'?_1)(?: = (.*?))?(   |$)", line):
                        for used in re.findall(r"(?<!\w)([ac-z]'?_1)(?!\d)", match.group(2) or ""):
                            self.assertIn(used, defined, line)
                        defined.add(match.group(1))
                logits = next(line for line in lines if "logits = " in line)
                self.assertIn("W y_1 + b", logits)
                self.assertIn("y_1", defined)
                self.assertEqual(any("W_o" in line for line in lines), "attention" in change and "free" not in change
                                 or change.startswith(("model.norm", "model.position", "model.feed_forward")))

    def test_the_vector_of_a_position_is_the_difference_that_it_makes(self):
        steps = {step["path"]: np.array(step["values"]) for step in self.json("explain", "runs/tiny", "money bank grows")["steps"]}
        np.testing.assert_allclose(steps["input"], steps["static"] + steps["position"], atol=1e-6)
        self.assertEqual(steps["position"][0].tolist(), [0, 1] * 4)

    def test_explain_follows_norms_after_the_parts_shared_heads_and_models_without_biases(self):
        changes = ["model.norm=post", "model.kv_heads=1", "model.bias=false", "model.position=rotary", "train.steps=5"]
        self.run_qkv("train", "tiny.toml", "--run", "other", *(part for change in changes for part in ("--set", change)))
        text = self.run_qkv("explain", "other", "money bank grows").stdout
        self.assertIn("x_1 = norm(x_1 + f_1)", text)
        self.assertIn("q = rotary(W_q x)", text)
        self.assertNotIn("h'", text)
        self.assertNotIn("+ b", text)
        self.assertEqual(len(self.json("inspect", "other")["heads"]), 2)


if __name__ == "__main__":
    unittest.main()
