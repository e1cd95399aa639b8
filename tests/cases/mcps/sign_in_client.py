"""What the conformance runner spawns: `elenco mcp login` with a browser that agrees, then a call with the kept tokens.

usage: sign_in_client.py ELENCO FOLDER URL
"""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

elenco, folder, url = sys.argv[1:]
settings = Path(folder) / "home" / ".config" / "elenco"
settings.mkdir(parents=True)
(settings / "config.yaml").write_text(f"mcpServers: {{x: {{url: '{url}'}}}}\n")
around = {"PATH": os.environ["PATH"], "HOME": f"{folder}/home", "ELENCO_STATE": f"{folder}/state"}

with subprocess.Popen([elenco, "mcp", "login", "x"], cwd=folder, env=around, stderr=subprocess.PIPE, text=True) as login:
    for line in login.stderr:
        print(line, end="", file=sys.stderr)
        if line.startswith("http"):
            urllib.request.urlopen(line.strip(), timeout=30).close()
if login.returncode:
    sys.exit(login.returncode)
sys.exit(subprocess.run([elenco, "mcp", "tools", "x"], cwd=folder, env=around, check=False).returncode)
