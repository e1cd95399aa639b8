"""Pictures of the terminal chat for the README: `python docs/screenshots_chat.py [FOLDER]`, by default docs/shots.

The real screen over its real runtime process, with a scripted model, in a workspace made for it. Textual writes SVG; a
headless Chromium, where there is one, makes the PNG.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = (132, 40)
SCRIPT = """
coordinator:
  - text: "I ask a researcher where words are split, and look at the notes meanwhile."
    calls:
      - {name: delegate_to_researcher, arguments: {task: "Where are words split?"}}
      - {name: read_file, arguments: {path: notes.md}}
    usage: {input: 2100, output: 80}
  - text: "The notes are wrong about tabs; I put that right."
    calls:
      - name: write_file
        arguments: {path: notes.md, content: "# Notes\\n\\nWords are separated by white space.\\n"}
    usage: {input: 2900, output: 120}
  - text: |
      Words are split in `parse.py`, at **white space**:

      ```python
      def words(s: str) -> list[str]:
          return s.split()
      ```

      | input | words |
      |---|---|
      | `a b` | `a`, `b` |
      | `a\\tb` | `a`, `b` |

      The notes said *blanks*; they say *white space* now.
    usage: {input: 3300, output: 210}
researcher:
  - calls: [{name: search_text, arguments: {pattern: split}}, {name: read_file, arguments: {path: parse.py}}]
    usage: {input: 1400, output: 60}
  - text: "parse.py:2 has `return s.split()`."
    usage: {input: 1900, output: 40}
"""
FILES = {
    "notes.md": "# Notes\n\nWords are separated by blanks.\n",
    "parse.py": "def words(s: str) -> list[str]:\n    return s.split()\n",
}


async def take(base: Path, folder: Path) -> list[Path]:
    """Play the scene and write the pictures as SVG."""
    from runtime.chat.screen import app_for
    from runtime.chat.screen.prompt import Prompt
    from runtime.cli.command_chat import options_of
    from runtime.cli.parser import parse
    from runtime.journal.folder import open_state

    arguments = parse(["chat", "--model", f"scripted/{base.name}.yaml", "--state", str(base / "state")])[1]
    app = app_for(arguments, open_state(arguments.state), options_of(arguments, None, headless=False), None)
    taken: list[Path] = []
    async with app.run_test(size=SIZE) as pilot:

        async def until(met: object) -> None:
            for _ in range(600):
                if callable(met) and met():
                    break
                await pilot.pause(0.05)
            await pilot.pause(0.3)

        def picture(name: str) -> None:
            taken.append(folder / f"{name}.svg")
            taken[-1].write_text(app.export_screenshot(title="elenco chat"))

        await until(lambda: app.session.looked)
        app.query_one(Prompt).put("How are words split, and do the notes say so?")
        await pilot.press("enter")
        await until(lambda: app.session.view.state.asked)
        picture("chat-approval")
        app.query_one(Prompt).put("y")
        await pilot.press("enter")
        await until(lambda: app.session.view.answer.startswith("Words are") and not app.session.busy)
        picture("chat")
        app.query_one(Prompt).put("/")
        await pilot.pause(0.3)
        picture("chat-commands")
        app.leave()
        await until(lambda: not app.session.engine.alive)
    return taken


def as_png(svg: Path) -> None:
    """Render a picture with Chromium: other converters misplace runs of spaces."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium here: the pictures stay SVG", file=sys.stderr)
        return
    text = re.sub(r"@font-face\s*{.*?}", "", svg.read_text(), flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    width, height = (float(each) for each in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())  # type: ignore[union-attr]
    page = svg.with_suffix(".html")
    page.write_text(f'<meta charset="utf-8"><body style="margin:0;width:{width}px">{text}')
    subprocess.run(
        [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(
                f"--window-size={int(width) + 1},{int(height) + 1}",
                f"--screenshot={svg.with_suffix('.png')}",
                str(page),
            ),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    page.unlink()
    svg.unlink()


def main() -> None:
    """Take all pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "shots").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "project"
        place.mkdir()
        for name, content in FILES.items():
            (place / name).write_text(content)
        (place / f"{Path(base).name}.yaml").write_text(SCRIPT)
        os.chdir(place)
        for svg in asyncio.run(take(Path(base), folder)):
            as_png(svg)
            print(svg.with_suffix(".png"))


if __name__ == "__main__":
    main()
