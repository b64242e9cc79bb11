"""Serving templates that reach for code, files or more than a machine has, and what becomes of each.

    python -m tests.engines.hostile_templates FOLDER

Each is rendered in a process of its own, with 10 s of CPU and 1 GiB of memory. One JSON object comes out: by name,
the findings that the rendering ended with, CPU seconds, the peak of memory in MiB, and whether it ran code (it writes
`FOLDER/escaped`); null where the process was ended or failed otherwise.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import tests.mutations.mutated_import  # noqa: F401 (a mutant of the sandbox is one in this process, too)
from seatrial_base.errors import RenderError
from seatrial_lint.engines.templates import TemplateVariables, WrittenOption, render_template

MOST_CPU_S = 10
MOST_MEMORY_BYTES = 2**30
TEMPLATE = "vllm/container.env.j2"
OPTIONS = {"model": [WrittenOption("SM_VLLM_MODEL", "org/model", "model_id")], "extra": []}
LONG = "{% set a = '" + "x" * 1000 + "' %}" + "{% set a = a ~ a %}" * 7
"""128,000 characters."""
POPEN = ".__init__.__globals__.os.popen('touch escaped').read()"

ESCAPES = {
    "cycler": f"{{{{ cycler{POPEN} }}}}",
    "joiner": f"{{{{ joiner{POPEN} }}}}",
    "namespace": f"{{{{ namespace{POPEN} }}}}",
    "lipsum": "{{ lipsum.__globals__['os'].popen('touch escaped').read() }}",
    "lipsum by item": "{{ lipsum['__globals__']['os'].popen('touch escaped').read() }}",
    "lipsum by attr": "{{ (lipsum | attr('__globals__'))['os'].popen('touch escaped').read() }}",
    "context of self": "{{ self._TemplateReference__context.cycler" + POPEN + " }}",
    "builtins of self": "{{ self.__init__.__globals__.__builtins__.open('escaped', 'w') }}",
    "subclasses": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "subclasses by item": "{{ ''['__class__']['__mro__'][1]['__subclasses__']() }}",
    "a name that is joined": "{{ ''['__cl' ~ 'ass__'] }}",
    "attr of a name that is joined": "{{ '' | attr('__cl' ~ 'ass__') }}",
    "attr by map": "{{ [''] | map('attr', '__class__') | list }}",
    "attribute of map": "{{ [''] | map(attribute='__class__') | list }}",
    "parts of the attribute of map": "{{ options.model | map(attribute='name.__class__') | list }}",
    "format": "{{ '{0.__class__.__mro__}'.format(1) }}",
    "format by item": "{{ '{0.__class__}'['format'](1) }}",
    "format_map": "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "format by a filter": "{{ '%s' | format(cycler.__init__.__globals__) }}",
    "the options": "{{ options.__class__.__init__ }}",
    "an option": "{{ options.model[0].__class__.__init__.__globals__ }}",
    "fields of an option": "{{ options.model[0]['__dataclass_fields__'] }}",
    "clear": "{{ options.clear() }}",
    "append": "{{ options.extra.append(1) }}",
    "setdefault by item": "{{ options['setdefault']('a', 1) }}",
    "a method that is kept": "{% set f = options.update %}{{ f({'a': 1}) }}",
    "loop": "{% for i in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "loop by item": "{% for i in [1] %}{{ loop['_iter' ~ 'able'] }}{% endfor %}",
    "cycle of a loop": "{% for i in [1] %}{{ loop.cycle(1) }}{% endfor %}",
    "caller": "{% macro m() %}{{ caller.__init__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "a macro": "{% macro m() %}{% endmacro %}{{ m.__init__.__globals__ }}",
    "function of a macro": "{% macro m() %}{% endmacro %}{{ m['_fu' ~ 'nc'] }}",
    "arguments of a macro": "{% macro m() %}{{ varargs.__class__ }}{% endmacro %}{{ m(1) }}",
    "a module": "{% import '_lines.j2' as lines %}{{ lines['__cl' ~ 'ass__'] }}",
    "address of a method": "{{ options.values }}",
    "address of a macro": "{% macro m() %}{% endmacro %}{{ [m] }}",
    "arguments that are spread": "{{ header.split(*['a']) }}",
    "names of Python": "{{ __import__('os').popen('touch escaped') }}",
    "the environment": "{{ environment.globals }}",
    "the context": "{{ context.eval_ctx }}",
    "a set attribute": "{% set n = namespace() %}{% set n.a = 1 %}",
    "extends": "{% extends header %}",
    "a dynamic file": "{% include header %}",
    "a file above": "{% include '../secret' %}",
    "a file of the system": "{% include '/etc/hostname' %}",
    "a list of files": "{% include ['../secret', '/etc/hostname'] %}",
    "a file imported from above": "{% from '../secret' import a %}",
    "a link out of the folder": "{% include '_link' %}",
    "a folder that leads out": "{% include '_folder/secret' %}",
}
"""None may reach what is no value of the template."""
BOMBS = {
    "range": "{% for i in range(1000000000) %}x{% endfor %}",
    "range of a power": "{% for i in range(10 ** 9) %}x{% endfor %}",
    "text times": "{{ 'a' * 10 ** 9 }}",
    "power of powers": "{{ 10 ** 10 ** 10 }}",
    "list times": "{{ ([[0] * 10000] * 10000) | string | length }}",
    "center": "{{ 'x'.center(1000000000) }}",
    "center by a filter": "{{ 'x' | center(1000000000) }}",
    "ljust": "{{ 'x'.ljust(1000000000) }}",
    "zfill": "{{ 'x'.zfill(1000000000) }}",
    "expandtabs": "{{ '\t'.expandtabs(1000000000) }}",
    "indent": "{{ 'x\ny' | indent(1000000000) }}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "percent by a filter": "{{ '%1000000000d' | format(1) }}",
    "a wide format": "{{ '{0:1000000000}'.format(1) }}",
    "a wide format_map": "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
    "indent of tojson": "{{ [1, [2]] | tojson(indent=1000000000) }}",
    "lipsum": "{{ lipsum(n=100000, min=1000, max=1001) }}",
    "batch": "{{ [1] | batch(1000000000, 0) | list }}",
    "slice": "{{ [1] | slice(1000000000) | list }}",
    "wordwrap": "{{ header | wordwrap(1, wrapstring='x' * 100000000) }}",
    "replace": LONG + "{{ a | replace('x', a) }}",
    "replace of nothing": LONG + "{{ a | replace('', a) }}",
    "method replace": LONG + "{{ a.replace('x', a) }}",
    "join": LONG + "{{ a | join(a) }}",
    "method join": LONG + "{{ a.join(a) }}",
    "text doubled": "{% set a = 'x' %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}",
    "block doubled": "{% set a = 'x' %}" + "{% set a %}{{ a }}{{ a }}{% endset %}" * 60 + "{{ a }}",
    "argument doubled": "{% macro m(f, a) %}{{ f(f, a ~ a) }}{% endmacro %}{{ m(m, 'x' * 1000) }}",
    "list doubled": "{% set a = ['x'] %}" + "{% set a = [a, a] %}" * 60 + "{{ a }}",
    "list doubled, its JSON": "{% set a = ['x'] %}" + "{% set a = [a, a] %}" * 60 + "{{ a | tojson | length }}",
    "mapping doubled": "{% set a = {'a': 'x'} %}" + "{% set a = {'a': a, 'b': a} %}" * 60 + "{{ a == {} }}",
    "lists in lists": "{% set a = ['x'] %}" + "{% set a = [a] %}" * 1000 + "{{ a }}",
    "loops in loops": LONG + "{% for i in a %}{% for j in a %}{% for k in a %}x{% endfor %}{% endfor %}{% endfor %}",
    "loops that take nothing": LONG + "{% for i in a %}{% for j in a if j == 'y' %}{% endfor %}{% endfor %}",
    "loops that write nothing": LONG + "{% for i in a %}{% for j in a %}{% set b = 1 %}{% endfor %}{% endfor %}",
    "a long text in a loop": LONG + "{% for i in a %}" + "y" * 20_000 + "{% endfor %}",
    "comparisons": LONG + "{% set b = a ~ 'y' %}{% for i in a %}{% if b in a %}{% endif %}{% endfor %}",
    "tests": LONG + "{% set b = a ~ 'y' %}{% for i in a %}{% if a is eq(b) %}{% endif %}{% endfor %}",
    "sorted again and again": LONG + "{% for i in a %}{{ a | sort | length }}{% endfor %}",
    "methods again and again": LONG + "{% for i in a %}{% set b = a.upper().lower() %}{% endfor %}",
    "splits": LONG + "{% for i in a %}{% set b = a.split('x') %}{% endfor %}",
    "a macro that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a macro that calls itself twice": "{% macro m(f) %}{{ f(f) }}{{ f(f) }}{% endmacro %}{{ m(m) }}",
    "two macros": "{% macro m(f) %}{{ f(m) }}{% endmacro %}{% macro n(f) %}{{ f(n) }}{% endmacro %}{{ m(n) }}",
    "macros doubled": "".join(
        f"{{% macro m{n + 1}() %}}{{{{ m{n}() }}}}{{{{ m{n}() }}}}{{% endmacro %}}" for n in range(19)
    ).join(("{% macro m0() %}xxxxxxxx{% endmacro %}", "{{ m19() }}")),
    "caller that calls itself": "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
    "a recursive loop": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "it includes itself": f"{{% include '{TEMPLATE}' %}}",
    "it imports itself": f"{{% import '{TEMPLATE}' as m %}}",
    "it imports from itself": f"{{% from '{TEMPLATE}' import m %}}",
    "it extends itself": f"{{% extends '{TEMPLATE}' %}}",
    "two that include each other": "{% include '_one' %}",
    "files doubled": "{% include '_10' %}",
    "many files": "{% include '_chain1' %}",
    "a large file": "{% include '_large' %}",
    "a large template": "x" * 40_000,
    "brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "lists": "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "nots": "{{ " + "not " * 5000 + "1 }}",
    "signs": "{{ " + "-" * 5000 + "1 }}",
    "attributes": "{{ header" + ".a" * 5000 + " }}",
    "filters": "{{ header" + "|lower" * 4000 + " }}",
    "ands": "{{ 1" + " and 1" * 4000 + " }}",
    "conditions": "{{ 1" + " if 1 else 1" * 2000 + " }}",
    "ifs": "{% if 1 %}" * 1000 + "{% endif %}" * 1000,
    "fors": "{% for i in [1] %}" * 21 + "{% endfor %}" * 21,
    "a long number": "{{ " + "9" * 9000 + " }}",
    "a long number in hexadecimal": "{{ 0x" + "f" * 9000 + " }}",
    "an infinite number": "{{ '1e999' | float | tojson }}",
    "an open bracket": "{{" * 10_000,
    "an open comment": "{#" * 10_000,
    "an open block": "{%-" * 10_000,
    "quotes": "{{ " + "'" * 9_999 + " }}",
}
"""None may take more than a machine has, or end without a finding."""
FILES = {
    "_one": "{% include '_two' %}",
    "_two": "{% include '_one' %}",
    "_large": "x" * 2**20,
    "_0": "x",
    **{f"_{number + 1}": f"{{% include '_{number}' %}}" * 20 for number in range(10)},
    **{f"_chain{number}": f"{{% include '_chain{number + 1}' %}}" for number in range(1, 1000)},
}


def outcome(text: str) -> dict[str, object]:
    """Return what becomes of a template, in this process."""
    Path("own", TEMPLATE).write_text(text, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_SELF)
    findings: list[tuple[str, int, str, str]] = []
    try:
        render_template(TEMPLATE, TemplateVariables("first line", OPTIONS), own=Path("own"))
    except RenderError as error:
        findings = [(one.rule, one.place.line, one.place.file, f"{one}") for one in error.problems]
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"findings": findings, "cpu_s": round(spent_s, 3), "memory_mib": after.ru_maxrss // 1024}


def apart(text: str) -> dict[str, object] | None:
    """Return what becomes of a template in a process of its own; `None` where it did not end by itself."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        code = 1
        try:
            os.write(writer, json.dumps(outcome(text)).encode()[: 2**16])
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        written = answer.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        return None
    ran_code = Path("escaped").exists()
    Path("escaped").unlink(missing_ok=True)
    return {**json.loads(written), "ran_code": ran_code}


def main(folder: Path) -> None:
    """Print what becomes of every template."""
    os.chdir(folder)
    Path("own/vllm").mkdir(parents=True)
    Path("secret").write_text("a secret\n", encoding="utf-8")
    Path("own/_link").symlink_to("../secret")
    Path("own/_folder").symlink_to("..")
    for name, text in FILES.items():
        Path("own", name).write_text(text, encoding="utf-8")
    outcome("{{ header }}")  # what is imported at first counts for none
    found = {name: apart(text) for name, text in {**ESCAPES, **BOMBS}.items()}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
