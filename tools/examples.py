#!/usr/bin/env python3
"""Runs the examples of documents, and writes what they return into the documents.

    tools/examples.py FILE… [-- OPTION of psql…]

An example is a block marked sql with a block without a mark right below it: the query, and its output. The examples of a
file run in one session, in their order, on the server that PGHOST and its like name; tools/examples.sh makes one. A line
`<!-- psql: COMMAND -->` is run where it stands and shows nothing. What can't be run everywhere is marked otherwise: the
output of such a query is in a block marked text.

Ends with 1 if an example that was no ERROR has become one. In that case the documents are written all the same.
"""

import re
import subprocess
import sys
import tempfile

SETTINGS = r"""
\set QUIET on
\set VERBOSITY default
\pset null ''
\pset footer off
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
"""
MARK = "==== example"


class Example:
    def __init__(self, line, query, output, first, last):
        # first and last: which lines of the document the output has.
        self.line, self.query, self.output, self.first, self.last = line, query, output, first, last


def block(lines, start):
    """The lines of the block that begins at start, and where it ends."""
    end = lines.index("```", start + 1)
    return lines[start + 1 : end], end


def read(lines):
    """The script of a document, and its examples."""
    script, examples = [SETTINGS], []
    at = 0
    while at < len(lines):
        hidden = re.fullmatch(r"<!-- psql: (.*) -->", lines[at])
        if hidden:
            script.append(hidden[1])
        elif lines[at].startswith("```"):
            mark = lines[at][3:]
            query, end = block(lines, at)
            if mark == "sql" and lines[end + 1 : end + 2] == ["```"]:
                output, last = block(lines, end + 1)
                examples.append(Example(at + 2, query, output, end + 2, last))
                script += [rf"\echo {MARK} {len(examples) - 1}", *query, rf"\echo {MARK} end"]
                end = last
            at = end
        at += 1
    return "\n".join(script) + "\n", examples


def run(script, options):
    """What each example printed, by its number."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as file:
        file.write(script)
        file.flush()
        # Line by line, so that errors stand where they belong.
        psql = ["stdbuf", "-oL", "psql", "-X", *options, "-f", file.name]
        done = subprocess.run(psql, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    printed, number = {}, "end"
    for line in done.stdout.split("\n"):
        if line.startswith(MARK):
            number = line.split()[-1]
            printed.setdefault(number, [])
        elif number != "end":
            printed[number].append(re.sub(r"^psql:\S*:\d+: ", "", line.rstrip()))
        elif "ERROR" in line:
            print(f"hidden command: {line}", file=sys.stderr)
    return {number: "\n".join(lines).strip("\n").split("\n") for number, lines in printed.items()}


def renew(path, options):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    script, examples = read(lines)
    printed = run(script, options)
    failed = False
    for number, example in reversed(list(enumerate(examples))):
        output = printed.get(str(number), ["ERROR:  the session ended before it"])
        if any("ERROR:" in line for line in output) and not any("ERROR:" in line for line in example.output):
            print(f"{path}:{example.line}: " + "\n".join(output), file=sys.stderr)
            failed = True
        lines[example.first : example.last] = output
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print(f"{path}: {len(examples)} examples")
    return failed


def main(arguments):
    paths, options = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        paths, options = arguments[:at], arguments[at + 1 :]
    sys.exit(any([renew(path, options) for path in paths]))


main(sys.argv[1:])
