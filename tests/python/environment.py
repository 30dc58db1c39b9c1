"""Makes a virtual environment once, by the first caller, and prints its interpreter.

Usage: environment.py FOLDER [--bare] PACKAGE... [-- IMPORT...]

Several tests may want it at the same moment: a lock next to the folder lets one make it. Packages behind
`--bare` come without what they depend on (MAVProxy asks for maps and windows that a script does not use).
"""

import fcntl
import os
import subprocess
import sys
import venv


def main():
    folder, words = sys.argv[1], sys.argv[2:]
    imports = []
    if "--" in words:
        at = words.index("--")
        words, imports = words[:at], words[at + 1 :]
    bare = []
    if "--bare" in words:
        at = words.index("--bare")
        words, bare = words[:at], words[at + 1 :]
    python = os.path.join(folder, "bin", "python")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        test = [python, "-c", "import " + ", ".join(imports)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        if not os.path.exists(python) or subprocess.run(test, **quiet, stderr=subprocess.DEVNULL).returncode:
            venv.create(folder, with_pip=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            for extra in ([words], [["--no-deps"] + bare]) if bare else ([words],):
                subprocess.run(pip + extra[0], check=True, **quiet)
            subprocess.run(test, check=True, **quiet)
    print(python)


main()
