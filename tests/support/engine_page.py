"""The engine of report pages (page/engine.base64) in Chromium, without a page around it."""
import base64
import json
import pathlib
import tomllib

import browser

PROJECT = pathlib.Path(__file__).resolve().parents[2]


class Page(browser.Browser):
    """A page that has the engine alone."""

    def __init__(self, folder):
        super().__init__()
        page = folder / "module.html"
        page.write_text(f"<!doctype html><meta charset=utf-8><title>engine</title><script>{(PROJECT / 'inspect/report/module.js').read_text()}\n"
                        f"const packed = '{(PROJECT / 'page/engine.base64').read_text()}';\n"
                        "let engine; const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));\n"
                        "async function restart() { engine = await Module.start(await (compiled ??= Module.compile(packed))); } let compiled;\n"
                        "function answer(request) { try { return engine.call(request); } catch (error) {"
                        " if (!(error instanceof EngineError)) throw error; return { error: error.message }; } }</script>")
        self.open(page)
        self.run("restart()")

    def ask(self, **request):
        return self.run(f"answer({json.dumps(request)})")

    def put(self, name, content):
        self.run(f"engine.put({json.dumps(name)}, bytes('{base64.b64encode(content).decode()}'))")

    def config_of(self, run):
        """A run's config, whose data files the engine then has."""
        text = (run / "config.toml").read_text()
        task = tomllib.loads(text)["task"]
        for name in {task.get(key) for key in ("train", "valid", "test", "data")} - {None, ""}:
            self.put(name, next(above / name for above in run.parents if (above / name).exists()).read_bytes())
        return text
