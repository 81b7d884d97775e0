"""Python files that a scenario names: one module for each text, picklable, importable where the file is not."""

import pickle
import shutil
import subprocess
import sys
import traceback

import pytest
from pydantic import ValidationError

from fedactors.options import Options
from fedactors.own_code import user_modules
from fedactors.own_code.user_code import Reference, noted_files, parse


class Holder(Options):
    factory: Reference


def written(folder, text, name="nets.py"):
    file = folder / name
    file.write_text(text)
    return file


def test_a_file_is_found_beside_the_scenario_and_loaded(tmp_path):
    written(tmp_path, "class Net:\n    class Inner:\n        width = 3\n")
    holder = Holder.model_validate({"factory": "nets.py:Net.Inner"}, context={"folder": tmp_path})
    assert holder.factory.load().width == 3
    assert holder.model_dump(mode="json") == {"factory": "nets.py:Net.Inner"}


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    written(tmp_path, "\ufeffWIDTH = 3\n")
    marked = parse("nets.py:WIDTH", tmp_path)
    assert marked.load() == 3
    written(tmp_path, "WIDTH = 3\n")
    assert parse("nets.py:WIDTH", tmp_path) == marked


def test_another_text_is_another_module(tmp_path):
    written(tmp_path, "WIDTH = 1\n")
    first = parse("nets.py:WIDTH", tmp_path)
    written(tmp_path, "WIDTH = 2\n")
    second = parse("nets.py:WIDTH", tmp_path)
    assert (first.load(), second.load()) == (1, 2)
    assert first != second


def files_of(reference_text, folder):
    with noted_files() as found:
        reference = parse(reference_text, folder)
    return reference, {where: source.text for where, source in found.items()}


def test_a_helper_beside_a_file_is_part_of_it(tmp_path):
    """Its new text is imported anew, though a module of its name is there already."""
    written(tmp_path, "from helper import WIDTH\n")
    written(tmp_path, "WIDTH = 1\n", "helper.py")
    first, files = files_of("nets.py:WIDTH", tmp_path)
    assert files == {"nets.py": "from helper import WIDTH\n", "helper.py": "WIDTH = 1\n"}
    written(tmp_path, "WIDTH = 2\n", "helper.py")
    second = parse("nets.py:WIDTH", tmp_path)
    assert (second.load(), first.load()) == (2, 1)
    assert first != second


def test_helpers_of_one_name_in_two_folders_are_two(tmp_path):
    found = []
    for width in (1, 2):
        folder = tmp_path / str(width)
        folder.mkdir()
        written(folder, "import helper\n\nWIDTH = helper.WIDTH\n")
        written(folder, f"WIDTH = {width}\n", "helper.py")
        found.append(parse("nets.py:WIDTH", folder).load())
    assert found == [1, 2]


def test_packages_beside_a_file_are_part_of_it(tmp_path):
    """One with an `__init__.py` and one without, imports that are relative, late, in a circle, or of what is absent."""
    for name, text in {
        "nets.py": "import whole.a as a, parts.deep.b\n"
        "def width():\n    from late import C\n    return a.A, parts.deep.b.B, C\n",
        "late.py": "import nets\ntry:\n    import no_such\nexcept ImportError:\n    C = nets.__name__\n",
        "whole/__init__.py": "",
        "whole/a.py": "from . import c\nfrom .c import A\n",
        "whole/c.py": "import whole.a\nA = 1\n",
        "whole/unused.py": "",
        "parts/deep/b.py": "import json, numpy, fedactors.errors\nB = 2\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        written(tmp_path, text, name)
    reference, files = files_of("nets.py:width", tmp_path)
    assert sorted(files) == ["late.py", "nets.py", "parts/deep/b.py", "whole/__init__.py", "whole/a.py", "whole/c.py"]
    packed = pickle.dumps((user_modules.sources(), reference.module))
    shutil.rmtree(tmp_path)
    code = (
        "import importlib, pickle, sys; from fedactors.own_code import user_modules\n"
        "sources, module = pickle.loads(sys.stdin.buffer.read())\n"
        "user_modules.adopt(sources); print(importlib.import_module(module).width() == (1, 2, module))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=False)
    assert done.stdout.strip() == b"True", done.stderr.decode()


def test_modules_that_are_not_installed_are_noted_and_keep_their_names(tmp_path, monkeypatch):
    (tmp_path / "lab").mkdir()
    written(tmp_path / "lab", "", "__init__.py")
    written(tmp_path / "lab", "from lab import more\nWIDTH = 3\n", "nets.py")
    written(tmp_path / "lab", "", "more.py")
    (tmp_path / "scenario").mkdir()
    written(tmp_path / "scenario", "from lab.nets import WIDTH\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    lab = {"lab", "lab.nets", "lab.more"}
    assert set(files_of("lab.nets:WIDTH", tmp_path)[1]) == lab
    reference, files = files_of("nets.py:WIDTH", tmp_path / "scenario")
    assert set(files) == {"nets.py", *lab}
    assert reference.load() == 3
    assert "lab.nets" in sys.modules


def test_a_dotted_module_is_imported_as_it_is(tmp_path):
    assert parse("collections:OrderedDict.fromkeys", tmp_path).load().__name__ == "fromkeys"


def test_objects_of_the_users_classes_are_unpickled_where_the_file_is_not(tmp_path):
    text = "import helper\n\nclass Net:\n    def __init__(self, width):\n        self.width = width\n"
    file = written(tmp_path, text)
    written(tmp_path, "", "helper.py")
    net = parse("nets.py:Net", tmp_path).load()(7)
    packed = pickle.dumps((user_modules.sources(), pickle.dumps(net)))
    file.unlink()
    code = (
        "import pickle, sys; from fedactors.own_code import user_modules\n"
        "sources, packed = pickle.loads(sys.stdin.buffer.read())\n"
        "user_modules.adopt(sources); print(pickle.loads(packed).width)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=False)
    assert done.stdout.strip() == b"7", done.stderr.decode()


def test_a_traceback_shows_the_users_lines_though_the_file_is_gone(tmp_path):
    file = written(tmp_path, "def broken():\n    return 1 / 0  # mine\n")
    broken = parse("nets.py:broken", tmp_path).load()
    file.unlink()
    with pytest.raises(ZeroDivisionError) as raised:
        broken()
    assert "return 1 / 0  # mine" in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nets.py", "must name something in Python code"),
        ("nets.py:", "must name something in Python code"),
        ("nets.py:a b", "must name something in Python code"),
        ("gone.py:Net", "no file"),
        ("a/b:Net", "neither a file nor a module"),
        ("folder.py:Net", "not a file"),
        ("latin.py:Net", "not UTF-8 text: byte 1"),
        (3, "must be a text such as"),
        (
            "__main__:Net",
            r"found __main__:Net: other processes cannot see .* \(accepted: .*\"nets.py:Net\"; .*writefile",
        ),
        (Holder, r"found Holder: other processes cannot see classes and functions .*\"nets.py:Holder\""),
    ],
)
def test_what_cannot_be_used_is_told(text, said, tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "latin.py").write_bytes(b"#\xe9\n")
    with pytest.raises(ValidationError, match=said):
        Holder.model_validate({"factory": text}, context={"folder": tmp_path})


def test_nothing_is_imported_before_it_is_asked_for(tmp_path):
    written(tmp_path, "raise RuntimeError('on import')\n")
    found = parse("nets.py:Net", tmp_path)
    with pytest.raises(RuntimeError, match="on import"):
        found.load()


def test_the_schema_calls_it_a_text():
    assert Holder.model_json_schema()["properties"]["factory"]["type"] == "string"


CALLS = {
    "import_module": 'import importlib\nWIDTH = importlib.import_module("helper").WIDTH\n',
    "imported by name": 'from importlib import import_module as load\nWIDTH = load(name="helper").WIDTH\n',
    "late": "def width():\n    from importlib import import_module\n"
    '    return import_module("helper").WIDTH\n\nWIDTH = width()\n',
    "built in": 'WIDTH = __import__("helper").WIDTH\n',
    "built in, by its module": 'import builtins\nWIDTH = builtins.__import__("helper").WIDTH\n',
    "in a package": 'import importlib\nWIDTH = importlib.import_module("parts.deep").WIDTH\n',
    "from a package": 'WIDTH = __import__("parts", fromlist=["deep"]).deep.WIDTH\n',
    "relative": "from parts.beside import WIDTH\n",
}


@pytest.mark.parametrize("name", CALLS)
def test_a_literal_name_of_a_call_is_an_import(name, tmp_path):
    """Its module is part of the file: a change makes another module, which has the new text."""
    text = CALLS[name]
    (tmp_path / "parts").mkdir()
    written(tmp_path, "", "parts/__init__.py")
    written(
        tmp_path, 'import importlib\nWIDTH = importlib.import_module(".deep", __package__).WIDTH\n', "parts/beside.py"
    )
    written(tmp_path, text)
    found = []
    for width in (1, 2):
        helper = "helper.py" if "helper" in text else "parts/deep.py"
        text_of_helper = (
            f"WIDTH = {width}\n" + "\n" * width
        )  # of another length: Python's cache goes by it and by seconds
        written(tmp_path, text_of_helper, helper)
        found.append(files_of("nets.py:WIDTH", tmp_path))
        assert helper in found[-1][1]
        assert found[-1][0].load() == width
    assert found[0][0] != found[1][0]


def test_other_calls_are_no_imports_that_are_seen(tmp_path):
    """A name that is computed, or is no name; a level; a function of that name with something else."""
    text = (
        'import importlib\nNAME = "helper"\n'
        "def late(import_module):\n"
        "    importlib.import_module(NAME)\n    importlib.import_module('../helper')\n"
        "    __import__('helper', level=1)\n"
        "    importlib.import_module('.helper', NAME)\n    import_module(3)\n    import_module()\n"
        "WIDTH = 3\n"
    )
    written(tmp_path, text)
    written(tmp_path, "", "helper.py")
    reference, files = files_of("nets.py:WIDTH", tmp_path)
    assert (sorted(files), reference.load()) == (["nets.py"], 3)


def test_the_lines_of_a_file_with_such_a_call_stay_where_they_are(tmp_path):
    written(
        tmp_path, 'import importlib\nHELPER = importlib.import_module("helper")\n\ndef fail():\n    raise ValueError\n'
    )
    written(tmp_path, "", "helper.py")
    fail = parse("nets.py:fail", tmp_path).load()
    with pytest.raises(ValueError, match=r"^$") as told:
        fail()
    last = traceback.extract_tb(told.value.__traceback__)[-1]
    assert (last.lineno, last.line) == (5, "raise ValueError")
